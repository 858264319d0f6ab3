"""Resampling and reweighting for imbalanced classes: Reweighted, Resampled and EasyEnsemble.

A fit gives rare classes more weight, or draws more of their rows. `predict` returns the predictions
of the fitted classifier without a correction, while probabilities are corrected to the class shares
p of the original rows. With q the class shares of the rows as fitted,

    P(k|x) ~ P_q(k|x) p_k / q_k

Rows are resampled only in `fit`: held-out rows are neither resampled nor used for synthetic rows.

EasyEnsemble (Liu, Wu and Zhou 2009) averages classifiers on many undersamples. A single undersample
has m of the n rows of a frequent class and discards all others. T independent undersamples together
use the share 1 - (1 - m/n)^T of the rows on average: if n = T m, more than a third of the rows are
never used. If the rows are instead divided into n/m disjoint parts, every row is used once. Moments
are additive, so a classifier that is fitted from moments reads the rows only once for all T fits,
and rows common to all undersamples are summed once.

SMOTE works on arrays, sparse matrices and data frames, and returns rows of the same type.

Numeric columns of a synthetic row are interpolated; its categories are chosen by a vote of the
neighbours. The algorithm is in `imbalance.synthetic_rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.resampling.folds import (
    drop_empty_classes,
    estimator_with_class_order,
    is_moment_based,
    prior_option,
)
from discriminant.engines.dispatch import anchor_of, fold, read_moments
from discriminant.engines.local import available_threads, blas_context, map_rows, one_blas_thread
from discriminant.errors import (
    ClassWeightError,
    OptionError,
    PosteriorError,
    ResamplingError,
    ShapeError,
    WeightError,
    merge_warnings,
)
from discriminant.estimators.base import (
    ClassifierWrapper,
    MomentClassifier,
    available_if,
    check_choice,
    has_probabilities,
    partitioned_or_none,
    require_classifier,
    second_minus_first,
    to_memory,
)
from discriminant.estimators.meta.decision import (
    assumed_prior,
    declared_prior,
    final_estimator,
    log_posterior_of,
    training_shares,
)
from discriminant.imbalance.rebalance import (
    RowNumbers,
    SubsetsReading,
    Target,
    class_weights,
    expected_sample_moments,
    over_sample,
    rows_by_class,
    scatter_factors,
    split_under_samples,
    target_of,
    under_sample,
    under_samples,
    with_rows,
)
from discriminant.imbalance.synthetic_rows import (
    ClassAmongAll,
    Nominal,
    draw_segments,
    expected_moments,
    gaussian_rows,
    interpolate,
    mixed_neighbours,
    nearest_neighbours,
    nominal_neighbours,
    value_differences,
    vote_categories,
)
from discriminant.models.rules import LinearRule, MeanRule
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.posterior import change_prior, log_posterior, not_probabilistic
from discriminant.table.blocks import (
    Block,
    Codes,
    Features,
    Floats,
    Labels,
    Places,
    canonical_rows,
    dense,
    is_sparse,
    numbered_names,
)
from discriminant.table.labels import declared_order
from discriminant.table.memory import (
    Table,
    as_features,
    as_indexable,
    as_table,
    check_weight,
    encode_classes,
)

# (numbers of all rows, codes, code of a class, its label, number of rows) -> synthetic rows
Synthesis = Callable[[Features, Codes, int, object, int], Any]


@dataclass(frozen=True, slots=True, eq=False)
class SmoteTable:
    """Rows split into numeric and categorical columns."""

    X: Any  # (N, d) the rows of the user
    names: tuple[str, ...] | None  # d column names of a frame; None for others
    numeric: Places  # (p,) positions of the numeric columns
    numbers: Features  # (N, p) numeric columns, as floats or CSR
    nominal: Nominal  # (N, d - p) category codes, in the order of the columns

    @classmethod
    def from_rows(cls, X: Any, nominal: Any) -> SmoteTable:
        """Split rows into numeric and categorical columns; numeric cells must be finite."""
        frame = not is_sparse(X) and not isinstance(X, np.ndarray)
        if is_sparse(X) and nominal is not None:
            raise ResamplingError.nominal_sparse()
        given = getattr(X, "column_names", None) or X.columns if frame else ()
        names = tuple(map(str, given)) if frame else None
        if len(X.shape) != 2:
            raise ShapeError.not_two_dimensional(len(X.shape))
        places = _nominal_places(X, nominal, names)
        numeric = np.setdiff1d(np.arange(X.shape[1]), places)
        numbers = _numeric_columns(X, numeric, names)
        columns = [_category_codes(X, int(j), names) for j in places]
        empty = np.zeros((X.shape[0], 0), dtype=np.intp)
        return cls(X, names, numeric, numbers, np.column_stack(columns) if columns else empty)

    def oversample(
        self,
        codes: Codes,
        labels: Labels,
        target: Target,
        neighbours: int,
        random: np.random.RandomState,
    ) -> tuple[Any, Codes]:
        """Return the rows followed by synthetic rows of the same type, and the class codes of all
        rows.
        """
        class_rows = rows_by_class(codes, len(labels))
        more = np.maximum(target.wanted - np.array([len(rows) for rows in class_rows]), 0)
        room, filled = self._allocate_rows(int(more.sum())), len(codes)
        parts, donors = [], [np.zeros((0, self.nominal.shape[1]), dtype=np.intp)]
        differences = None
        if not len(self.numeric):
            differences = value_differences(self.nominal, codes, len(labels))
        for k in np.flatnonzero(more):
            rows, count = class_rows[k], int(more[k])
            near = self._neighbours(rows, differences, neighbours, labels[k])
            segments = draw_segments(near, count, random)
            if room is None:
                parts.append(interpolate(self.numbers[rows], segments))
            elif len(self.numeric):
                interpolate(self.numbers[rows], segments, out=room[filled : filled + count])
            filled += count
            if self.nominal.shape[1]:
                if differences is not None:  # each row also votes for its own category
                    near = np.hstack([np.arange(len(near))[:, None], near])
                chosen = vote_categories(self.nominal[rows], near, segments.start, random)
                donors.append(_donors(self.nominal, chosen))
        new = np.repeat(np.arange(len(labels)), more).astype(codes.dtype)
        numbers = _stack_sparse(self.numbers, parts) if room is None else room
        return self._join_columns(numbers, np.concatenate(donors)), np.concatenate([codes, new])

    def add_rows(
        self, codes: Codes, labels: Labels, target: Target, synthesise: Synthesis
    ) -> tuple[Any, Codes]:
        """Return the rows followed by the synthetic rows of each class that needs more rows."""
        count = np.bincount(codes, minlength=len(labels))
        parts, new = [], [codes]
        for k in np.flatnonzero(target.wanted > count):
            more = int(target.wanted[k] - count[k])
            rows = synthesise(self.numbers, codes, int(k), labels[k], more)
            parts.append(rows.astype(self.numbers.dtype))
            new.append(np.full(rows.shape[0], k, dtype=codes.dtype))
        if is_sparse(self.numbers):
            numbers = _stack_sparse(self.numbers, parts)
        else:
            numbers = np.vstack([self.numbers, *parts])
        added = numbers.shape[0] - len(codes)
        donors = np.zeros((added, 0), dtype=np.intp)
        return self._join_columns(numbers, donors), np.concatenate(new)

    def _neighbours(self, rows: Places, differences: Any, neighbours: int, label: object) -> Places:
        """Return the nearest neighbours (n, k) of each row of one class."""
        numbers, nominal = self.numbers[rows], self.nominal[rows]
        if differences is not None:
            return nominal_neighbours(nominal, differences, neighbours, label)
        with one_blas_thread():
            threads = available_threads()
            if nominal.shape[1]:
                return mixed_neighbours(numbers, nominal, neighbours, label, threads=threads)
            return nearest_neighbours(numbers, neighbours, label, threads=threads)

    def _allocate_rows(self, more: int) -> npt.NDArray[Any] | None:
        """Return an array with the rows and space for `more` further rows; None for sparse rows."""
        if is_sparse(self.numbers):
            return None
        N, p = self.numbers.shape
        room = np.empty((N + more, p), dtype=self.numbers.dtype)
        room[:N] = self.numbers
        return room

    def _join_columns(self, numbers: Any, donors: Nominal) -> Any:
        """Return rows of the type of the input, from numeric columns and categories.

        `donors` contains, for each synthetic row and categorical column, the number of the row
        whose category is copied.
        """
        if self.names is not None:
            return self._join_frame(numbers, donors)
        if not self.nominal.shape[1]:
            return numbers
        rows = np.empty((len(numbers), self.X.shape[1]), dtype=np.result_type(self.X, numbers))
        if self.X.dtype.kind == "O":
            rows = rows.astype(object)
        rows[:, self.numeric] = numbers
        old = len(self.X)
        others = np.setdiff1d(np.arange(self.X.shape[1]), self.numeric)
        for donor, j in zip(donors.T, others, strict=True):
            rows[:old, j], rows[old:, j] = self.X[:, j], self.X[donor, j]
        return rows

    def _join_frame(self, numbers: Any, donors: Nominal) -> Any:
        import narwhals as nw

        assert self.names is not None
        given = nw.from_native(self.X, eager_only=True)
        backend = given.implementation
        place = {int(j): i for i, j in enumerate(self.numeric)}
        others = [j for j in range(len(self.names)) if j not in place]
        rows = np.arange(self.X.shape[0])
        columns = {}
        for j, name in enumerate(given.columns):
            if j in place:
                columns[name] = nw.new_series(str(name), numbers[:, place[j]], backend=backend)
            else:
                donor = donors[:, others.index(j)]
                columns[name] = given[:, j][np.concatenate([rows, donor])]
        if backend.is_pandas():  # synthetic rows have no index of their own
            native = {
                name: column.to_native().reset_index(drop=True) for name, column in columns.items()
            }
            return type(self.X)(native)
        return nw.from_dict(columns, backend=backend).to_native()


def _nominal_places(X: Any, nominal: Any, names: tuple[str, ...] | None) -> Places:
    width = int(X.shape[1])
    if nominal is None:
        if names is None:
            return np.zeros(0, dtype=np.intp)
        import narwhals as nw

        kinds = nw.from_native(X, eager_only=True).schema.values()
        flags = [not (kind.is_numeric() or kind == nw.Boolean) for kind in kinds]
        return np.flatnonzero(flags)
    try:
        columns = [nominal] if isinstance(nominal, str) else list(nominal)
        places = [(names or ()).index(c) if isinstance(c, str) else c for c in columns]
        return np.unique(np.arange(width)[places]).astype(np.intp)
    except (TypeError, ValueError, IndexError):
        raise ResamplingError.of_nominal(nominal, width) from None


def _numeric_columns(X: Any, numeric: Places, names: tuple[str, ...] | None) -> Features:
    """Return the numeric columns (N, p) as float32, float64 or CSR; all must be finite."""
    if not len(numeric) and not is_sparse(X):
        return np.zeros((X.shape[0], 0))
    columns = X
    if is_sparse(X):
        numbers = canonical_rows(X)
    else:
        if len(numeric) < X.shape[1] and names is not None:
            import narwhals as nw

            columns = nw.from_native(X, eager_only=True)[:, numeric.tolist()].to_native()
        elif len(numeric) < X.shape[1]:
            columns = X[:, numeric]
        numbers = as_features(columns)[0][:]
    numbers = numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
    cells = numbers.data if is_sparse(numbers) else numbers
    if not np.isfinite(cells.sum(dtype=np.float64)):
        labels = numbered_names(X.shape[1]) if names is None else names
        block = Block(numbers, np.zeros(numbers.shape[0], dtype=np.uint8))
        block.raise_bad_cell([labels[j] for j in numeric])
    return numbers


def _category_codes(X: Any, place: int, names: tuple[str, ...] | None) -> npt.NDArray[np.intp]:
    """Return the category code of each row (N,) in one column of any type."""
    name, missing = f"x{place}", 0
    if names is None:
        column = np.asarray(X[:, place])
    else:
        import narwhals as nw

        series = nw.from_native(X, eager_only=True)[:, place]
        name, missing, column = names[place], series.null_count(), np.asarray(series.to_numpy())
    if not missing:  # NaN and NaT, which differ from themselves
        missing = sum(cell is None or cell != cell for cell in column.tolist())
    if missing:
        raise ResamplingError.nominal_missing(name, int(missing))
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1].astype(np.intp)
    codes: dict[Any, int] = {}
    # True and 1 are different categories
    cells = ((isinstance(cell, bool), cell) for cell in column.tolist())
    return np.array([codes.setdefault(cell, len(codes)) for cell in cells], dtype=np.intp)


def _donors(nominal: Nominal, chosen: Nominal) -> Nominal:
    """For each synthetic row and column, return the number of a row with the chosen category."""
    donors = np.empty_like(chosen)
    for j, column in enumerate(nominal.T):
        first = np.zeros(int(column.max()) + 1, dtype=np.intp)
        first[column[::-1]] = np.arange(len(column))[::-1]
        donors[:, j] = first[chosen[:, j]]
    return donors


def _stack_sparse(numbers: Any, parts: list[Any]) -> Any:
    from scipy import sparse

    blocks: list[Any] = [numbers]
    blocks += [part if is_sparse(part) else sparse.csr_array(part) for part in parts]
    return sparse.vstack(blocks, format="csr") if parts else numbers


def has_posterior(self: Any) -> bool:
    """Return whether the classifier has posteriors.

    Raise `AttributeError` if its posteriors need a correction but are not true probabilities.
    """
    model = getattr(self, "estimator_", self.estimator)
    if self.keep_probabilities and (name := not_probabilistic(model)) is not None:
        what = f"{type(self).__name__}(keep_probabilities=True).predict_proba"
        raise AttributeError(str(PosteriorError.not_probabilities(name, what)))
    return has_probabilities(model)


def _inner_has_decision(self: Any) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "decision_function")


class RebalancingClassifier(ClassifierWrapper):
    """Base class: decisions of the rebalanced fit, probabilities for the original class shares.

    Parameters
    ----------
    keep_probabilities : bool, default True
        True: probabilities are corrected to the original class shares. False: `predict_proba`
        returns the probabilities of the rebalanced fit. The option can be changed after the fit;
        `predict` does not depend on it.

    Attributes
    ----------
    class_shares_, fitted_prior_ : arrays of shape (K,)
        Class priors of the original rows, and of the rebalanced fit. They are the same if the
        classifier has an option `prior` and it is set.
    """

    _fitted_attribute = "classes_"
    keep_probabilities: Any
    estimator_: Any
    classes_: Labels
    fitted_prior_: Floats
    class_shares_: Floats

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row by the rebalanced fit, without correction."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.predict(X))

    @available_if(_inner_has_decision)
    def decision_function(self, X: Any) -> Floats:
        """Return scores (n, K) of the rebalanced fit; with two classes (n,)."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)

    @available_if(has_posterior)
    def predict_log_proba(self, X: Any) -> Floats:
        """Return log posteriors (n, K).

        With `keep_probabilities`, posteriors refer to the original class shares, otherwise to those
        of the fit.
        """
        self._check_is_fitted()
        log_posteriors = self._fitted_log_posterior(X)
        if not self.keep_probabilities:
            return log_posteriors
        old, new = self.fitted_prior_, self.class_shares_
        return map_rows(lambda logs: change_prior(logs, old, new), log_posteriors)

    @available_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """Return posteriors (n, K).

        With `keep_probabilities`, posteriors refer to the original class shares, otherwise to those
        of the fit.
        """
        return map_rows(np.exp, self.predict_log_proba(X))

    @property
    def prior_(self) -> Floats:
        """Class priors (K,) that the posteriors assume."""
        self._check_is_fitted()
        return self.class_shares_ if self.keep_probabilities else self.fitted_prior_

    # --- inside -----------------------------------------------------------------------------------

    def _rows_without_weight(self, X: Any, y: Any, others: dict[str, Any]) -> tuple[Any, Any]:
        """Return rows in memory and their labels.

        Raises an error if sample weights are given, since resampling cannot use them.
        """
        name = type(self).__name__
        require_classifier(self.estimator, name, "draws rows of each class")
        if others.pop("sample_weight", None) is not None:
            raise ResamplingError.of_sample_weight(name)
        if others:
            raise TypeError(f"{name}.fit() got an unexpected keyword: {list(others)}")
        X, y, weight = to_memory(X, y, None, name)
        if weight is not None:
            raise ResamplingError.of_sample_weight(name)
        return X, y

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return log_posterior_of(self.estimator_, X)

    def _set_state(self, model: Any, before: Floats, after: Floats) -> None:
        """Store the class labels, and the class priors for correcting posteriors.

        The priors are the class shares `before` and `after` rebalancing. If the fitted classifier
        declares its priors, these are used instead of `after`. If the user set them as an option of
        the classifier, its posteriors are not corrected.
        """
        self.classes_ = np.asarray(model.classes_)
        declared = declared_prior(model, self.classes_)
        self.fitted_prior_ = after / after.sum() if declared is None else declared
        option = prior_option(final_estimator(model))
        given = option is not None and option[1] is not None
        self.class_shares_ = self.fitted_prior_ if given else before / before.sum()
        self._copy_input_names(model)


def check_positive_int(name: str, value: Any) -> None:
    """Raise `OptionError` unless `value` is an integer of at least 1."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise OptionError.of(name, value, "a whole number, 1 or more")


def posterior_or_vote(model: Any, X: Any) -> Floats:
    """Return posteriors (n, K).

    If the classifier has no probabilities, the entry of the predicted class is 1 and all others are
    0.
    """
    if has_probabilities(model):
        return np.asarray(np.exp(log_posterior_of(model, X)))
    chosen = np.asarray(model.predict(X))[:, None] == np.asarray(model.classes_)
    return np.asarray(chosen, dtype=np.float64)


def class_ranking(model: Any, X: Any) -> Floats:
    """Return `decision_function` as scores (n, K); for two classes as columns -score and score.

    If `decision_function` returns a score for each pair of classes (one-vs-one), the scores are
    summed for each class.
    """
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.column_stack([-scores.ravel(), scores.ravel()])
    K = len(model.classes_)
    if scores.shape[1] == K:
        return scores
    totals = np.zeros((len(scores), K))
    for (i, j), score in zip(combinations(range(K), 2), scores.T, strict=True):
        totals[:, i] += score
        totals[:, j] -= score
    return totals


def safe_log(posterior: Floats) -> Floats:
    """Return the logs of probabilities (n, K); -inf for 0, without a warning."""

    def logs(part: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return log_posterior(np.log(part))

    return map_rows(logs, posterior)


def _has_decision_scores(self: Any) -> bool:
    """Return whether scores of the ensemble are votes or fitted values, not posteriors."""
    return _decides_by_votes(self) or not_probabilistic(self) is not None


def _decides_by_votes(self: Any) -> bool:
    """Return whether classifiers vote: they have `decision_function` but no posteriors."""
    model = self.estimators_[0] if hasattr(self, "estimators_") else self.estimator
    return not has_probabilities(model) and hasattr(model, "decision_function")


_LARGEST = 1e300  # scores are clipped to this size, so that their means are finite


class EasyEnsemble(RebalancingClassifier):
    """Average of classifiers, each fitted to an undersample; probabilities stay calibrated.

    Each undersample has all rows of the rarest class and the same number of rows of every other
    class.

    Parameters
    ----------
    estimator : classifier
        Classifier that is cloned and fitted to each undersample. A classifier that is fitted from
        moments (LDA, QDA, RDA, NearestMean, Fisher, LeastSquares) reads the rows only once for all
        undersamples. If the classifier has no probabilities, the clones vote, and
        `decision_function` breaks ties.
    subsets : int or 'divide', default 10
        Number of undersamples. Undersamples are drawn independently, so some rows may not be used
        at all. 'divide': the rows of each frequent class are shuffled and divided into disjoint
        parts of the size of the rarest class, so that every row is used. The sizes of the parts may
        differ by one row; `fitted_prior_` is the mean over the parts.
    strategy : str, float or dict, default 'auto'
        Number of rows of each class in an undersample; see `Resampled`.
    random_state : int or RandomState, default 0
        Seed of the draws.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers.
    subset_rows_ : list of arrays
        Row numbers of each undersample.
    n_unused_ : int
        Number of rows that are in no undersample; 0 with 'divide'.

    See Also
    --------
    Resampled : A single under- or oversample.
    compare_imbalance : Compare strategies on held-out rows.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = EasyEnsemble(LDA(), subsets=20).fit(rows, y)
    >>> model.predict([[2.0]]).tolist(), len(model.subset_rows_[0])
    (['b'], 4)
    >>> model = EasyEnsemble(LDA(), "divide").fit(rows, y)  # six rows of 'a': three parts of two
    >>> [subset.tolist() for subset in model.subset_rows_], model.n_unused_
    ([[2, 5, 6, 7], [1, 3, 6, 7], [0, 4, 6, 7]], 0)
    """

    estimators_: list[Any]
    subset_rows_: list[RowNumbers]
    n_unused_: int

    def __init__(
        self,
        estimator: Any,
        subsets: Any = 10,
        *,
        strategy: Any = "auto",
        keep_probabilities: Any = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.subsets = subsets
        self.strategy = strategy
        self.keep_probabilities = keep_probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **others: Any) -> Self:
        """Draw the undersamples of rows X with labels y, and fit a classifier to each."""
        X, y = self._rows_without_weight(X, y, others)
        divide = isinstance(self.subsets, str) and self.subsets == "divide"
        if isinstance(self.subsets, str) and not divide:
            raise OptionError.of("subsets", self.subsets, "a whole number, 1 or more, or 'divide'")
        if not divide:
            check_positive_int("subsets", self.subsets)
        X = as_indexable(X)
        labels, codes = encode_classes(X, y)
        count = np.bincount(codes, minlength=len(labels))
        target = target_of(count, labels, self.strategy, "under")
        random = check_random_state(self.random_state)
        if divide:
            subsets = split_under_samples(codes, target, random)
        else:
            subsets = under_samples(codes, target, random, int(self.subsets))
        estimator = estimator_with_class_order(self.estimator, declared_order(y))
        with merge_warnings():
            models = self._fit_moments(X, y, subsets, target.resampled) or [
                clone(estimator).fit(_safe_indexing(X, rows), labels[codes[rows]])
                for rows in subsets
            ]
        self.estimators_, self.subset_rows_ = models, subsets
        self.n_unused_ = len(codes) - len(np.unique(np.concatenate(subsets)))
        fitted = training_shares(models[0], labels[codes[subsets[0]]], None, labels)
        self._set_state(models[0], count.astype(np.float64), fitted)
        if divide:
            pairs = zip(models, subsets, strict=True)
            priors = [assumed_prior(m, labels[codes[rows]], None, labels) for m, rows in pairs]
            self.fitted_prior_ = np.mean(priors, axis=0)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class with the most votes, or with the largest mean posterior of the fits."""
        self._check_is_fitted()
        return np.asarray(self.classes_[self._decision_scores(X).argmax(axis=1)])

    @available_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """Return posteriors (n, K).

        With `keep_probabilities`, posteriors refer to the original class shares, otherwise to those
        of the fit.
        """
        self._check_is_fitted()
        posteriors = self._mean_posterior(X)
        if self.keep_probabilities:
            posteriors *= self.class_shares_ / self.fitted_prior_
            posteriors /= posteriors.sum(axis=1, keepdims=True)
        return posteriors

    @available_if(_has_decision_scores)
    def decision_function(self, X: Any) -> Floats:
        """Return scores (n, K): votes with ties broken by confidence, or mean fitted values.

        For two classes, the result has shape (n,): the second score minus the first.
        """
        return second_minus_first(self._decision_scores(X))

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return safe_log(self._mean_posterior(X))

    def _decision_scores(self, X: Any) -> Floats:
        """Return scores (n, K): mean posteriors or fitted values, or votes.

        To break ties, votes are increased by less than half a vote according to confidence.
        """
        self._check_is_fitted()
        if not _decides_by_votes(self):
            return self._mean_posterior(X)
        votes = sum(posterior_or_vote(model, X) for model in self.estimators_)
        scores = [np.clip(class_ranking(m, X), -_LARGEST, _LARGEST) for m in self.estimators_]
        confidence = np.mean(scores, axis=0)
        return np.asarray(votes + confidence / (3.0 * (np.abs(confidence) + 1.0)))

    def _mean_posterior(self, X: Any) -> Floats:
        if (rule := self._linear_ensemble()) is not None:
            first = self.estimators_[0]
            return np.asarray(first._score_rows(rule.posterior, X))
        total = sum(posterior_or_vote(model, X) for model in self.estimators_)
        return np.asarray(total / len(self.estimators_))

    def _linear_ensemble(self) -> MeanRule | None:
        """Return the average of all classifiers as one rule.

        Return None unless every posterior is computed from linear scores.
        """
        plain = MomentClassifier.predict_log_proba
        if any(getattr(type(m), "predict_log_proba", None) is not plain for m in self.estimators_):
            return None
        rules = [model.rule_ for model in self.estimators_]
        return MeanRule.average(rules) if all(isinstance(r, LinearRule) for r in rules) else None

    def _fit_moments(
        self, X: Any, y: Any, subsets: list[RowNumbers], sampled: npt.NDArray[np.bool_]
    ) -> list[Any] | None:
        """Return all classifiers, fitted in one pass; None if they need the rows themselves.

        `sampled` (K,) is True for classes that are undersampled. All subsets contain all rows of
        the classes that are not undersampled.
        """
        if not is_moment_based(self.estimator):
            return None
        table = as_table(X, y, name=type(self.estimator).__name__)
        detail = self.estimator.detail_for(min(map(len, subsets)), table.width)
        if detail == "rows":
            return None
        reading = MomentsReading(
            table.schema.labels, table.schema.features, anchor_of(table), detail
        )
        differ = sampled[table.codes]
        disjoint = (np.flatnonzero(~differ), *(rows[differ[rows]] for rows in subsets))
        shared, *parts = fold(table, SubsetsReading(reading, disjoint)).parts
        moments = [shared + part for part in parts]
        if any(subset.badly_scaled().any() for subset in moments):
            return None  # sums overflow or underflow: read each undersample in units of its own
        if any(self.estimator.needs_rows_for(subset) for subset in moments):
            return None
        with blas_context(table.width):
            models = [clone(self.estimator).fit_moments(subset) for subset in moments]
        for model in models:
            model._set_features(table.schema.features, table.schema.named)
        return models


class Reweighted(RebalancingClassifier):
    """Fit a classifier with class weights, with probabilities for the original class shares.

    Parameters
    ----------
    estimator : classifier
        Classifier whose `fit` accepts `sample_weight`. The classifier is cloned before it is
        fitted.
    weights : {'balanced', 'inverse', 'effective'}, dict or array of shape (K,), default 'balanced'
        Weight of a row of each class. 'balanced': n / (K n_k), so that all classes have the same
        total weight. 'inverse': proportional to 1 / n_k, with mean 1 over the classes. 'effective':
        proportional to (1 - beta) / (1 - beta^n_k), with mean 1 over the classes (the
        class-balanced loss). A dict maps labels to weights; the weight of a class that is not in it
        is 1.
    beta : float, default 0.999
        Parameter of 'effective'. With beta=0 all weights are equal; as beta approaches 1, the
        weights approach 'inverse'.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    weights_ : array of shape (K,)
        Weight of a row of each class.

    See Also
    --------
    Resampled, EasyEnsemble : Resampling in place of weights.
    Decision : Costs after the fit.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = Reweighted(LDA()).fit(rows, y)
    >>> model.predict([[2.0]]).tolist(), model.predict_proba([[2.0]]).round(2).tolist()
    (['b'], [[0.56, 0.44]])
    """

    weights_: Floats

    def __init__(
        self,
        estimator: Any,
        weights: Any = "balanced",
        *,
        beta: Any = 0.999,
        keep_probabilities: Any = True,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.beta = beta
        self.keep_probabilities = keep_probabilities

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a clone of the classifier.

        The weight of a row is its class weight times its `sample_weight`.
        """
        require_classifier(self.estimator, "Reweighted", "weights the classes")
        model = clone(self.estimator)
        if not has_fit_parameter(model, "sample_weight"):
            raise ClassWeightError.not_supported(type(model).__name__)
        table = partitioned_or_none(X, y, sample_weight)
        if table is not None:
            total = table.moments.weight
            factors = self._class_weights(total, table.schema.labels)
            model.fit(table.reweight(factors))
            fitted = total * factors
        else:
            X = as_indexable(X)
            labels, codes = encode_classes(X, y)
            weight = check_weight(sample_weight, len(codes))
            total = np.bincount(codes, weight, minlength=len(labels)).astype(np.float64)
            factors = self._class_weights(total, labels)
            weight = factors[codes] if weight is None else weight * factors[codes]
            model.fit(X, y, sample_weight=weight)
            fitted = training_shares(model, labels[codes], weight, labels)
        self.estimator_, self.weights_ = model, factors
        self._set_state(model, total, fitted)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit from class moments, which are scaled by the class weights, without the rows."""
        model = _moment_clone(self.estimator)
        moments = drop_empty_classes(moments)
        factors = self._class_weights(moments.weight, moments.labels)
        model.fit_moments(moments.scale(factors))
        self.estimator_, self.weights_ = model, factors
        self._set_state(model, moments.weight, moments.weight * factors)
        return self

    def _class_weights(self, total: Floats, labels: Labels) -> Floats:
        """Return the weight of a row of each class (K,), from the total weight of each class."""
        for k in np.flatnonzero(total == 0):
            raise WeightError.zero_class(labels[k])
        return class_weights(total, labels, self.weights, beta=self.beta)


METHODS = ("under", "over", "smote", "adasyn", "borderline-1", "borderline-2", "gaussian")
_FROM_MOMENTS = ("under", "over", "gaussian")  # expected moments follow from those of the rows
_EXPECTED = (*_FROM_MOMENTS, "smote")


class Resampled(RebalancingClassifier):
    """Fit a classifier to oversampled, undersampled or SMOTE rows; correct its probabilities.

    Parameters
    ----------
    estimator : classifier
        Classifier that is cloned and fitted.
    method : str, default 'over'
        'under': drop rows of frequent classes. 'over': repeat rows of rare classes. 'smote': add
        synthetic rows, which lie on the segments between rows of a rare class and their neighbours.
        'adasyn': the same, with more rows where other classes are near. 'borderline-1' and
        'borderline-2': the same, starting only at rows with many neighbours of other classes.
        'gaussian': add rows from the Gaussian distribution of the class.
    strategy : str, float or dict, default 'auto'
        Number of rows of each class after resampling. 'auto': equal for all classes. 'minority',
        'majority', 'not minority', 'not majority' or 'all': as in imbalanced-learn. A float in (0,
        1], for two classes: the ratio of rare to frequent rows. A dict: {label: number of rows}.
    neighbours : int, default 5
        Number of nearest neighbours that SMOTE and its variants use.
    danger_neighbours : int, default 10
        Number of nearest neighbours, among the rows of all classes, from which 'borderline-1' and
        'borderline-2' decide where to start.
    nominal : sequence of str or int, or None, default None
        Names or positions of the categorical columns, for SMOTE. The value of a categorical column
        in a synthetic row is the most frequent value among the neighbours. None means the columns
        of a data frame that are neither numbers nor booleans.
    expected : bool or None, default None
        True: fit to the expected moments of the resampled rows, without drawing any. False: draw
        rows. None means True if `estimator` is fitted from class moments (LDA, QDA, RDA,
        NearestMean, Fisher, LeastSquares), unless its shrinkage is estimated from the rows or there
        are fewer rows than columns; otherwise it means False.
    random_state : int or RandomState, default 0
        Seed of the draws. imbalanced-learn draws the same rows with the same seed. The result of
        'under' is in the original order of the rows; imbalanced-learn sorts it by class.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    rows_ : array of shape (K,)
        Number of rows of each class after resampling.
    expected_ : bool
        Whether the fit used expected moments instead of drawing rows.

    See Also
    --------
    EasyEnsemble : The mean over many undersamples.
    Reweighted : Weights in place of resampling.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = Resampled(LDA(), "smote", neighbours=1).fit(rows, y)
    >>> model.rows_.tolist(), model.predict([[2.0]]).tolist()
    ([6, 6], ['b'])
    """

    rows_: npt.NDArray[np.intp]
    expected_: bool

    def __init__(
        self,
        estimator: Any,
        method: Any = "over",
        *,
        strategy: Any = "auto",
        neighbours: Any = 5,
        danger_neighbours: Any = 10,
        nominal: Any = None,
        expected: Any = None,
        keep_probabilities: Any = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.strategy = strategy
        self.neighbours = neighbours
        self.danger_neighbours = danger_neighbours
        self.nominal = nominal
        self.expected = expected
        self.keep_probabilities = keep_probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **others: Any) -> Self:
        """Resample the rows and fit a clone of the classifier.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table must fit into memory; for a larger one use
            `fit_moments(rows.moments)`.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        X, y = self._rows_without_weight(X, y, others)
        order = declared_order(y)
        X, labels, codes, target = self._open_rows(X, y)
        model, fitted = (
            clone(estimator_with_class_order(self.estimator, order)),
            target.wanted.astype(np.float64),
        )
        self.expected_ = self._uses_expected_moments(model, X) and self._fit_expected(
            model, X, y, target
        )
        if not self.expected_:
            rows, row_codes = self._draw_sample(X, codes, labels, target)
            model.fit(rows, labels[row_codes])
            fitted = training_shares(model, labels[row_codes], None, labels)
            count = np.bincount(row_codes, minlength=len(labels))  # ADASYN rounds
            target = replace(target, wanted=count)
        self.estimator_, self.rows_ = model, target.wanted
        self._set_state(model, np.bincount(codes).astype(np.float64), fitted)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit to the expected moments of resampled rows.

        SMOTE and its variants are not supported, because they need rows. The rows of the moments
        must be unweighted.
        """
        model = _moment_clone(self.estimator)
        check_choice("method", self.method, METHODS)
        needs_rows = self.method not in _FROM_MOMENTS
        if needs_rows or (self.expected is not None and not self.expected):
            name = "method" if needs_rows else "expected"
            allowed = "one that can be computed from moments; for the others call fit(X, y)"
            raise OptionError.of(name, getattr(self, name), allowed)
        moments = drop_empty_classes(moments)
        target = target_of(moments.rows, moments.labels, self.strategy, self.method)
        self._check_gaussian(moments.rows, moments.labels, target)
        model.fit_moments(expected_sample_moments(moments, target, self.method))
        self.estimator_, self.rows_, self.expected_ = model, target.wanted, True
        self._set_state(model, moments.weight, target.wanted.astype(np.float64))
        return self

    def resample(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
        """Return the rows and labels to which `fit` would fit the classifier; nothing is fitted."""
        X, labels, codes, target = self._open_rows(X, y)
        rows, codes = self._draw_sample(X, codes, labels, target)
        return rows, np.asarray(labels[codes])

    # --- inside -----------------------------------------------------------------------------------

    def _open_rows(self, X: Any, y: Any) -> tuple[Any, Labels, Codes, Target]:
        """Return rows, labels, class codes, and the target number of rows of each class."""
        check_choice("method", self.method, METHODS)
        check_positive_int("neighbours", self.neighbours)
        check_positive_int("danger_neighbours", self.danger_neighbours)
        X = as_indexable(X)
        labels, codes = encode_classes(X, y)
        count = np.bincount(codes, minlength=len(labels))
        target = target_of(count, labels, self.strategy, self.method)
        self._check_gaussian(count, labels, target)
        return X, labels, codes, target

    def _check_gaussian(self, count: RowNumbers, labels: Labels, target: Target) -> None:
        """Raise an error if rows must be drawn from the Gaussian of a class with a single row."""
        for k in np.flatnonzero((target.wanted > count) & (count < 2)):
            if self.method == "gaussian":
                raise ResamplingError.of_gaussian(labels[k], int(count[k]))

    def _uses_expected_moments(self, model: Any, X: Any) -> bool:
        """Return whether the fit uses expected moments instead of drawing rows."""
        if self.expected is not None and not self.expected:
            return False
        able = is_moment_based(model)
        if able:  # expected third and fourth powers over draws are not implemented
            able = model.detail_for(*X.shape) in ("diagonal", "pooled", "class")
            able = able and self.method in _EXPECTED
            able = able and (self.method != "smote" or self.nominal is None)
        if self.expected and not able:
            allowed = f"None or False: {type(model).__name__} needs rows for method={self.method!r}"
            raise OptionError.of("expected", True, allowed)
        return able

    def _draw_sample(
        self, X: Any, codes: Codes, labels: Labels, target: Target
    ) -> tuple[Any, Codes]:
        random = check_random_state(self.random_state)
        if self.method == "smote":
            table = SmoteTable.from_rows(X, self.nominal)
            return table.oversample(codes, labels, target, int(self.neighbours), random)
        if self.method not in ("under", "over"):
            table = SmoteTable.from_rows(X, self.nominal)
            if table.nominal.shape[1]:
                width = table.nominal.shape[1]
                raise ResamplingError.of_method_categories(self.method, width)
            return table.add_rows(codes, labels, target, self._synthesise(random))
        draw: Callable[..., Any] = under_sample if self.method == "under" else over_sample
        rows = draw(codes, target, random)
        return _safe_indexing(X, rows), codes[rows]

    def _synthesise(self, random: np.random.RandomState) -> Synthesis:
        """Return the function that generates the synthetic rows of one class."""
        k, m = int(self.neighbours), int(self.danger_neighbours)
        method = str(self.method)

        def synthesise(
            numbers: Features, codes: Codes, code: int, label: object, count: int
        ) -> Any:
            if method == "gaussian":
                own = dense(numbers[np.flatnonzero(codes == code)])
                return gaussian_rows(own, count, label, random)
            rows = ClassAmongAll.of(numbers, codes, code, label)
            if method == "adasyn":
                return interpolate(numbers, rows.adasyn(count, k, random))
            any_class = method == "borderline-2"
            segments = rows.borderline(count, k, m, random, any_class=any_class)
            return interpolate(numbers, segments)

        return synthesise

    def _fit_expected(self, model: Any, X: Any, y: Any, target: Target) -> bool:
        """Fit to the expected moments of resampled rows, and return whether that was possible.

        If `expected` is None and these moments are not accurate enough, return False without
        fitting.
        """
        table = as_table(X, y, name=type(model).__name__)
        detail = model.detail_for(len(table), table.width)
        expect = self._expected_smote if self.method == "smote" else self._expected_draw
        moments = expect(table, detail, target)
        if self.expected is None and model.needs_rows_for(moments):
            return False
        model.fit_moments(moments)
        model._set_features(table.schema.features, table.schema.named)
        return True

    def _expected_draw(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Return the expected moments of the rows after random rows are dropped or repeated."""
        share = scatter_factors(np.bincount(table.codes), target, self.method)
        if detail != "pooled" or not share.all():  # a class reduced to one row keeps its mean
            moments = read_moments(table, detail="class" if detail == "pooled" else detail)
            return expected_sample_moments(moments, target, self.method).reduce(detail)
        weighted = replace(table, weight=share[table.codes])  # one pooled scatter for all classes
        return with_rows(read_moments(weighted, detail=detail), target)

    def _expected_smote(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Return the moments of the rows plus the expected moments of the synthetic rows."""
        moments = read_moments(table, detail=detail)
        total, count = moments, np.bincount(table.codes)
        for k in np.flatnonzero(target.wanted > count):
            rows = dense(table.features[np.flatnonzero(table.codes == k)])
            with one_blas_thread():
                near = nearest_neighbours(
                    rows, int(self.neighbours), table.schema.labels[k], threads=available_threads()
                )
            more = int(target.wanted[k] - count[k])
            offsets = moments.anchor.offsets(rows)
            total = total + expected_moments(moments, int(k), offsets, near, more)
        return total


def _moment_clone(estimator: Any) -> Any:
    """Return a clone of a classifier that can be fitted from moments; reject any other."""
    if not is_moment_based(estimator):
        allowed = "fitted from moments, as LDA is; to fit another classifier, call fit(X, y)"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)
    return clone(estimator)
