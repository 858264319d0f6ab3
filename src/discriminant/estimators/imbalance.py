"""Reweighted and Resampled: rare classes brought up for the fit, probabilities brought back.

`predict` decides as the weights ask, and `predict_proba` stays honest: `estimators.rebalanced`.
Resampling is done in `fit` alone: rows that are held out are never drawn, nor made up from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.folds import only_present
from discriminant.assessment.refit import made_from_moments
from discriminant.engines.engine import read_moments
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.parted import Parted
from discriminant.errors import ClassWeightError, OptionError, WeightError
from discriminant.estimators.available import require_classifier
from discriminant.estimators.in_parts import at_hand, parted
from discriminant.estimators.posteriors import share_of
from discriminant.estimators.rebalanced import (
    Rebalanced,
    arrayed,
    classes_of,
    no_weights,
    whole_number,
)
from discriminant.estimators.synthetic import Synthesis
from discriminant.imbalance.drawing import Target, over_sample, target_of, under_sample
from discriminant.imbalance.expected import drawn_in_the_mean, scatter_shares, with_rows
from discriminant.imbalance.neighbours import neighbours_of
from discriminant.imbalance.smote import expected_moments
from discriminant.imbalance.weights import class_weights
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.table.schema import Codes, Floats, Labels, dense
from discriminant.table.source import Table, open_table, open_weight


class Reweighted(Rebalanced):
    """Weigh classes for the fit, so that a rare one counts; probabilities stay honest.

    Parameters
    ----------
    estimator
        A classifier whose fit takes sample_weight; cloned and fitted.
    weights
        'balanced', n / (K n_k): all classes weigh the same; 'inverse', ~ 1 / n_k, with mean 1 over
        classes; 'effective', ~ (1 - beta) / (1 - beta^n_k), with mean 1 over classes: the
        class-balanced loss; {label: weight}, 1 where not named; or (K,) weights.
    beta
        Of 'effective': 0 is no weights, towards 1 it becomes 'inverse'.
    keep_probabilities
        Whether probabilities are those of the rows as they came. False: those of a population with
        the weighed classes. Read when it is used; `predict` does not depend on it.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    weights_
        (K,) weight of a row of each class.
    class_shares_, fitted_prior_
        (K,) priors of the rows as they came, and as weighed. The same where the priors are an
        option of the classifier and do not come from the rows.

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
        """Fit a clone of the classifier to the rows, each with the weight of its class."""
        require_classifier(self.estimator, "Reweighted", "weights the classes")
        model = clone(self.estimator)
        if not has_fit_parameter(model, "sample_weight"):
            raise ClassWeightError.not_taken(type(model).__name__)
        found = parted(X, y, sample_weight)
        if found is not None:
            return self._fit_parted(model, found)
        X = arrayed(X)
        labels, codes = classes_of(X, y)
        weight = open_weight(sample_weight, len(codes))
        count = np.bincount(codes, weight, minlength=len(labels)).astype(np.float64)
        for k in np.flatnonzero(count == 0):
            raise WeightError.class_without(labels[k])
        factor = class_weights(count, labels, self.weights, beta=self.beta)
        row = factor[codes] if weight is None else weight * factor[codes]
        model.fit(X, y, sample_weight=row)
        self.estimator_, self.weights_ = model, factor
        self._hold(model, count, share_of(model, labels[codes], row, labels))
        return self

    def _fit_parted(self, model: Any, rows: Parted) -> Self:
        count = rows.moments.weight
        for k in np.flatnonzero(count == 0):
            raise WeightError.class_without(rows.schema.labels[k])
        factor = class_weights(count, rows.schema.labels, self.weights, beta=self.beta)
        model.fit(rows.weighed(factor))
        self.estimator_, self.weights_ = model, factor
        self._hold(model, count, count * factor)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit from moments, of which each class is scaled; no rows are needed."""
        model = _moment_clone(self.estimator)
        moments = only_present(moments)
        factor = class_weights(moments.weight, moments.labels, self.weights, beta=self.beta)
        model.fit_moments(moments.scale(factor))
        self.estimator_, self.weights_ = model, factor
        self._hold(model, moments.weight, moments.weight * factor)
        return self


class Resampled(Rebalanced):
    """Draw rows of each class for the fit, or make some up; probabilities stay honest.

    Parameters
    ----------
    estimator
        A classifier; cloned and fitted.
    method
        'under': drop rows of frequent classes; 'over': repeat rows of rare ones; 'smote': make up
        rows on the segments between rows of a rare class and their neighbours.
    strategy
        'auto': equal numbers of rows; or, as in imbalanced-learn, 'minority', 'majority',
        'not minority', 'not majority', 'all'; a ratio in (0, 1] of rare to frequent rows, for two
        classes; or {label: rows}.
    neighbours
        Of SMOTE: how many of the nearest rows of the same class a row may be joined to.
    nominal
        Names or places of the columns that are categories, for SMOTE: they are voted on. None:
        the columns of a data frame that are neither numbers nor booleans.
    expected
        True: no draw, but a fit to the moments that draws have in the mean, which are known:
        weight, mean and scatter of each class. None: so where `estimator` is made from these
        (LDA, QDA, RDA, NearestMean, Fisher, LeastSquares; not with a shrinkage that is found from
        the rows, nor with fewer rows than columns), and as `expected_` says. False: draw.
    keep_probabilities
        As in `Reweighted`.
    random_state
        Seed of the draws; of one seed rows are those that imbalanced-learn draws. Rows kept by
        'under' stay in their order, while imbalanced-learn sorts them by class.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    rows_
        (K,) rows of each class after resampling.
    expected_
        Whether there was no draw.
    class_shares_, fitted_prior_
        (K,) priors of the rows as they came, and as resampled; see `Reweighted`.

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
        nominal: Any = None,
        expected: Any = None,
        keep_probabilities: Any = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.strategy = strategy
        self.neighbours = neighbours
        self.nominal = nominal
        self.expected = expected
        self.keep_probabilities = keep_probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **others: Any) -> Self:
        """Resample, and fit a clone of the classifier to what there is then; rows have no weights.

        What is not drawn is fitted as `expected` says. Rows in parts must be few; of many there is
        `fit_moments(rows.moments)`.
        """
        require_classifier(self.estimator, "Resampled", "draws rows of each class")
        no_weights(self, others)
        X, y, weight = at_hand(X, y, None, "Resampled")
        if weight is not None:
            no_weights(self, {"sample_weight": weight})
        X, labels, codes, target = self._asked(X, y)
        model, fitted = clone(self.estimator), target.wanted.astype(np.float64)
        self.expected_ = self._without_draw(model, X) and self._fit_expected(model, X, y, target)
        if not self.expected_:
            rows, drawn = self._draw(X, codes, labels, target)
            model.fit(rows, labels[drawn])
            fitted = share_of(model, labels[drawn], None, labels)
        self.estimator_, self.rows_ = model, target.wanted
        self._hold(model, np.bincount(codes).astype(np.float64), fitted)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit to what draws from the rows of these moments have for moments in the mean.

        Rows must have had no weights; SMOTE, which needs to know who is near whom, has its own.
        """
        model = _moment_clone(self.estimator)
        self._check_method()
        if self.method == "smote" or (self.expected is not None and not self.expected):
            name = "method" if self.method == "smote" else "expected"
            allowed = "another where there are moments alone; for rows there is fit(X, y)"
            raise OptionError.of(name, getattr(self, name), allowed)
        moments = only_present(moments)
        target = target_of(moments.rows, moments.labels, self.strategy, self.method)
        model.fit_moments(drawn_in_the_mean(moments, target, self.method))
        self.estimator_, self.rows_, self.expected_ = model, target.wanted, True
        self._hold(model, moments.weight, target.wanted.astype(np.float64))
        return self

    def resample(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
        """Rows and labels as they are drawn or made up for a fit; nothing is fitted."""
        X, labels, codes, target = self._asked(X, y)
        rows, codes = self._draw(X, codes, labels, target)
        return rows, np.asarray(labels[codes])

    # --- inside -----------------------------------------------------------------------------------

    def _asked(self, X: Any, y: Any) -> tuple[Any, Labels, Codes, Target]:
        """Rows, labels, codes, and how many rows of each class there shall be."""
        self._check_method()
        whole_number("neighbours", self.neighbours)
        X = arrayed(X)
        labels, codes = classes_of(X, y)
        count = np.bincount(codes, minlength=len(labels))
        return X, labels, codes, target_of(count, labels, self.strategy, self.method)

    def _check_method(self) -> None:
        if self.method not in ("under", "over", "smote"):
            raise OptionError.of("method", self.method, "'under', 'over' or 'smote'")

    def _without_draw(self, model: Any, X: Any) -> bool:
        """Whether moments take the place of draws."""
        if self.expected is not None and not self.expected:
            return False
        able = made_from_moments(model)
        if able:  # the mean of third and fourth powers over draws is not worked out
            able = model.detail_for(*X.shape) in ("diagonal", "pooled", "class")
            able = able and (self.method != "smote" or self.nominal is None)
        if self.expected and not able:
            allowed = f"None or False: {type(model).__name__} needs rows for method={self.method!r}"
            raise OptionError.of("expected", True, allowed)
        return able

    def _draw(self, X: Any, codes: Codes, labels: Labels, target: Target) -> tuple[Any, Codes]:
        random = check_random_state(self.random_state)
        if self.method == "smote":
            made = Synthesis.of(X, self.nominal)
            return made.extended(codes, labels, target, int(self.neighbours), random)
        draw: Callable[..., Any] = under_sample if self.method == "under" else over_sample
        rows = draw(codes, target, random)
        return _safe_indexing(X, rows), codes[rows]

    def _fit_expected(self, model: Any, X: Any, y: Any, target: Target) -> bool:
        """Fit to the moments of draws in the mean, unless these have too few digits."""
        table = open_table(X, y, name=type(model).__name__)
        detail = model.detail_for(len(table), table.width)
        found = (self._with_synthetic if self.method == "smote" else self._kept)(
            table, detail, target
        )
        if self.expected is None and model.needs_rows_for(found):
            return False
        model.fit_moments(found)
        model._remember(table.schema.features, table.schema.named)
        return True

    def _kept(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Mean moments of rows dropped or repeated at random."""
        share = scatter_shares(np.bincount(table.codes), target, self.method)
        if detail != "pooled" or not share.all():  # a class brought to one row keeps its mean
            found = read_moments(table, detail="class" if detail == "pooled" else detail)
            return drawn_in_the_mean(found, target, self.method).reduce(detail)
        weighed = replace(table, weight=share[table.codes])  # one scatter for all classes
        return with_rows(read_moments(weighed, detail=detail), target)

    def _with_synthetic(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Moments of the rows, with those that synthetic rows have in the mean."""
        found = read_moments(table, detail=detail)
        whole, count = found, np.bincount(table.codes)
        for k in np.flatnonzero(target.wanted > count):
            rows = dense(table.features[np.flatnonzero(table.codes == k)])
            with one_blas_thread():
                near = neighbours_of(
                    rows,
                    int(self.neighbours),
                    table.schema.labels[k],
                    threads=available_threads(),
                )
            more = int(target.wanted[k] - count[k])
            offsets = found.anchor.offsets(rows)
            whole = whole + expected_moments(found, int(k), offsets, near, more)
        return whole


def _moment_clone(estimator: Any) -> Any:
    """A clone of a classifier made from moments."""
    if not made_from_moments(estimator):
        allowed = "a classifier made from moments, such as LDA; for rows there is fit(X, y)"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)
    return clone(estimator)
