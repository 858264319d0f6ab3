"""OneVsRest, OneVsOne and OutputCodes: many classes by any two-class classifier or regressor.

Each column of a code (K, M) of -1, 0 and 1 is a two-class problem; a class is predicted by matching
its row of the code with the M scores (`models.multiclass`). A classifier from moments is not fitted
row by row: the rows are read once, and every two-class rule is a function of merged moments. Any
other estimator is cloned and fitted once per column, in parallel: a classifier to the classes 0 and
1, a regressor to the numbers 0 and 1. The score of a classifier is its decision function or log
odds; that of a regressor with output f is 2 f - 1, as if it had been fitted to -1 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, has_fit_parameter

from discriminant.assessment.resampling.folds import is_moment_based
from discriminant.engines.dispatch import read_classes, read_moments
from discriminant.engines.local import blas_context
from discriminant.engines.partitioned_table import AnyTable, table_in_memory
from discriminant.errors import (
    InfiniteValueError,
    LabelError,
    MomentsMismatchError,
    OptionError,
    ResponseError,
    ShapeError,
    TooFewRowsError,
    WeightError,
    merge_warnings,
)
from discriminant.estimators.base import (
    MomentClassifier,
    RowEstimator,
    as_partitioned,
    available_if,
    is_regressor,
    require_classifier,
    to_memory,
)
from discriminant.estimators.gaussian.lda_qda import LinearGaussianClassifier
from discriminant.models.multiclass.binary_rules import (
    SIDES,
    BinaryRules,
    OutputCodeRule,
    fit_binary_rules,
    fit_linear_rules,
    group_sides,
    log_coupled_probabilities,
)
from discriminant.models.multiclass.codes import (
    CODES,
    FIXED,
    RANDOM,
    OutputCode,
    Signs,
    design_code,
    one_vs_one_code,
    one_vs_rest_code,
)
from discriminant.models.multiclass.decode import (
    DECODINGS,
    Ambiguity,
    euclidean_scores,
    hamming_scores,
    is_rest,
    loss_scores,
    measure_ambiguity,
)
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Codes, Features, Floats, Labels, canonical_rows, is_sparse
from discriminant.table.labels import encode_labels
from discriminant.table.memory import Table, as_table, check_weight

_FURTHEST = 745.0  # log odds of the least probability that is not zero


@dataclass(frozen=True, slots=True, eq=False)
class FittedBinaryEstimators:
    """M fitted classifiers of the classes 0 and 1, or M regressors on the numbers 0 and 1.

    The name of the field is part of the file format.
    """

    fitted: tuple[Any, ...]

    def scores(self, X: Any) -> Floats:
        """(n, M) scores of rows, positive for the positive side."""
        found = np.column_stack([_binary_score(model, X) for model in self.fitted])
        if len(self.fitted) > 1:  # infinite scores cannot be compared
            for row in np.flatnonzero(np.isinf(found).any(axis=1)):
                raise InfiniteValueError.of_row(int(row), type(self.fitted[0]).__name__)
        return found

    def log_odds(self, X: Any) -> Floats:
        """(n, M) log odds of the positive side."""
        return np.column_stack([_log_odds(model, X) for model in self.fitted])


def encode_binary_labels(X: Any, y: Any, name: str) -> tuple[Labels, Codes]:
    """Class labels, and the class code of each row."""
    if y is None:
        raise LabelError.absent(name)
    labels, codes = encode_labels(y)
    if _num_samples(X) != len(codes):
        raise ShapeError.of_lengths("y", len(codes), _num_samples(X))
    return labels, codes


def fit_binary_estimators(
    base: Any,
    X: Any,
    codes: Codes,
    signs: Signs,
    *,
    labels: Labels,
    sample_weight: Any,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> FittedBinaryEstimators:
    """Fit a clone of the estimator for each column to the rows of its two sides."""
    weight = check_weight(sample_weight, len(codes))
    if weight is not None and not has_fit_parameter(base, "sample_weight"):
        raise WeightError.not_supported(type(base).__name__)
    if weight is not None:
        for k in np.flatnonzero(np.bincount(codes, weight, minlength=len(signs)) == 0):
            raise WeightError.zero_class(labels[k])
    if is_sparse(X):
        X = canonical_rows(X)
    M = signs.shape[1]
    fits = (delayed(_fit_one)(clone(base), X, codes, signs[:, m], weight) for m in range(M))
    fitted = []
    for model in Parallel(n_jobs=n_jobs, return_as="generator")(fits):
        fitted.append(model)
        if progress is not None:
            progress(len(fitted), M)
    return FittedBinaryEstimators(tuple(fitted))


def binary_table(table: Table, column: npt.NDArray[np.int8]) -> Table:
    """Rows of the two sides of a column, with the classes 0 and 1."""
    side = column[table.codes]
    if not column.all():
        table, side = table.take(np.flatnonzero(side)), side[side != 0]
    schema = replace(table.schema, labels=SIDES)
    return replace(table, schema=schema, codes=(side > 0).astype(np.uint8))


def _fit_one(
    model: Any, X: Any, codes: Codes, column: npt.NDArray[np.int8], weight: Floats | None
) -> Any:
    side = column[codes]
    if not column.all():
        rows = np.flatnonzero(side)
        X, side = _safe_indexing(X, rows), side[rows]
        weight = None if weight is None else weight[rows]
    truth = SIDES[(side > 0).astype(np.intp)]
    try:
        return model.fit(X, truth) if weight is None else model.fit(X, truth, sample_weight=weight)
    except ResponseError as fault:
        allowed = "a regressor that can be fitted to 0 and 1, the codes of two classes"
        raise OptionError.of("estimator", type(model).__name__, allowed) from fault


def _binary_score(model: Any, X: Any) -> Floats:
    if is_regressor(model):
        return 2.0 * np.ravel(np.asarray(model.predict(X), dtype=np.float64)) - 1.0
    if hasattr(model, "decision_function"):
        return np.ravel(np.asarray(model.decision_function(X), dtype=np.float64))
    if hasattr(model, "predict_proba"):
        return _log_odds(model, X)
    predicted = np.asarray(model.predict(X))
    if not np.isin(predicted, SIDES).all():
        allowed = "a classifier or a regressor that says so (ClassifierMixin, RegressorMixin)"
        raise OptionError.of("estimator", type(model).__name__, f"{allowed}: it predicts numbers")
    return np.where(predicted == 1, 1.0, -1.0)


def _log_odds(model: Any, X: Any) -> Floats:
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            logs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        else:
            logs = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
    return np.clip(logs[:, 1] - logs[:, 0], -_FURTHEST, _FURTHEST)


Odds = Callable[[], Floats]  # (n, M) log odds of the positive sides, computed when called


def _by_moments(model: Any) -> bool:
    """Whether the two-class estimator is fitted from moments."""
    base = model.estimator
    return isinstance(base, MomentClassifier) and is_moment_based(base)


def _needs_moments(model: Any) -> bool:
    if not _by_moments(model):
        raise AttributeError(f"{type(model.estimator).__name__} is not fitted from moments")
    return True


def _has_probabilities(model: Any) -> bool:
    base, wrapper = model.estimator, type(model).__name__
    name = f"{wrapper}({type(base).__name__}()) has no probabilities"
    if is_regressor(base):
        raise AttributeError(
            f"{name}: the output of a regressor is a score, and may be negative or above one. "
            f"Use predict or decision_function, or a classifier with probabilities: "
            f"{wrapper}(Logistic())."
        )
    if not hasattr(base, "predict_proba"):
        raise AttributeError(f"{name}: {type(base).__name__} has no predict_proba.")
    return True


def _has_posterior(estimator: Any) -> bool:
    """Whether the two-class estimator has probabilities."""
    return hasattr(estimator, "predict_proba") and not is_regressor(estimator)


class Decomposition(ClassifierMixin, MetaEstimatorMixin, RowEstimator):
    """Classification of K classes by two-class estimators, one for each column of a code."""

    _fitted_attribute = "_code"
    _fit_methods = "fit, or fit_moments with a classifier made from moments"
    estimator: Any
    n_jobs: int | None
    progress: Callable[[int, int], object] | None
    moments_: Any  # of the fit, where the classifier is made from moments; else None
    _code: OutputCode
    _members: BinaryRules | FittedBinaryEstimators
    _base: Any  # the classifier as it was at the fit

    # --- defined by subclasses --------------------------------------------------------------------

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        """Code of these classes; `read` returns moments for a code that needs them."""
        raise NotImplementedError

    def _leaves_out(self) -> bool:
        """Whether some column may leave a class out."""
        raise NotImplementedError

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        """(n, K) scores of the classes from the (n, M) two-class scores, or log odds."""
        raise NotImplementedError

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the two-class estimators: from moments read once, or one by one.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) must fit into memory unless the
            estimator is fitted from moments.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default None
            Weight of each row.

        Returns
        -------
        self
        """
        name = type(self).__name__
        if not _by_moments(self):
            who = f"{name} of {type(self.estimator).__name__}"
            return self._fit_rows(*to_memory(X, y, sample_weight, who))
        table = as_partitioned(X, y, sample_weight) or as_table(
            X, y, weight=sample_weight, name=name
        )
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(name, 4)
        moments = read_classes(table, self._detail_for(len(table), table.width))
        return self._fit_from(moments, table)

    @available_if(_needs_moments)
    def fit_moments(self, moments: Any) -> Self:
        """Fit from class moments, perhaps merged, weighted or regrouped; no rows are needed."""
        if not isinstance(moments, ClassMoments | ClassRows):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(moments).__name__, allowed)
        return self._fit_from(moments, None)

    # --- for cross-validation without refitting ---------------------------------------------------

    @property
    def detail(self) -> Detail:
        """Sums that the moments must contain: pooled ones cannot leave a class out."""
        needed: Detail = self.estimator.detail
        return "class" if needed == "pooled" and self._leaves_out() else needed

    @property
    def needs_rows(self) -> bool:
        """Whether moments are not enough."""
        return not _by_moments(self)

    @available_if(_needs_moments)
    def rule_from(self, moments: Any) -> OutputCodeRule:
        """Return the rule fitted to moments; nothing is stored."""
        code = self._code_for(moments.labels, lambda: moments)
        return OutputCodeRule(code, self._rules_from_moments(moments, code))

    @available_if(_needs_moments)
    def rule_from_table(self, table: AnyTable) -> OutputCodeRule:
        """Return the rule fitted to the rows of a table; nothing is stored."""
        moments = read_classes(table, self.detail)
        code = self._code_for(table.schema.labels, lambda: moments)
        return OutputCodeRule(code, self._rules_from_table(table, code, moments))

    def needs_rows_for(self, moments: Any) -> bool:
        """Whether moments are too inexact to replace their rows."""
        base = self.estimator
        if type(base).needs_rows_for is MomentClassifier.needs_rows_for:
            return False
        code = self._code_for(moments.labels, lambda: moments)
        columns = range(code.signs.shape[1])
        return any(base.needs_rows_for(group_sides(moments, code, m)) for m in columns)

    def predict_with_rule(
        self, rule: OutputCodeRule, features: Features
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        """(n, K) log posteriors and (n,) codes of the predicted classes, by any fitted rule."""
        scores = self._class_scores(features, rule.members, rule.code, sure=True)
        return log_posterior(rule.scores(features)), scores.argmax(axis=1)

    def leave_one_out_scores(self, moments: Any, table: Table) -> None:
        """None: there is no closed form."""
        return None

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class whose code word is nearest to the two-class scores."""
        return np.asarray(self.classes_[self._all_scores(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores of the classes; with two classes (n,) scores of the one classifier."""
        scores = self._all_scores(X)
        if scores.shape[1] > 2:
            return scores
        return np.asarray(scores[:, 1] - scores[:, 0])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) logs of the coupled probabilities."""
        return self._over_rows(
            lambda rows: log_coupled_probabilities(self._members.log_odds(rows), self._code), X
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) coupled probabilities: see `models.coupling`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def binary_scores(self, X: Any) -> Floats:
        """(n, M) scores of the two-class classifiers, positive for the classes of sign +1."""
        return self._over_rows(lambda rows: self._members.scores(rows), X)

    def ambiguous(self, X: Any) -> Ambiguity:
        """Number of classes that claim each row, and shares of rows claimed by none or several."""
        return measure_ambiguity(
            self.binary_scores(X), self._code.signs, rest=is_rest(self._code.signs)
        )

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """(K,) labels, sorted."""
        self._check_is_fitted()
        return np.asarray(self._code.labels)

    @property
    def code_(self) -> Signs:
        """(K, M) side of each class in each two-class problem: -1, 1, or 0 if left out."""
        self._check_is_fitted()
        return self._code.signs

    @property
    def binary_rules_(self) -> BinaryRules | FittedBinaryEstimators:
        """Fitted two-class rules, for export."""
        self._check_is_fitted()
        return self._members

    @property
    def base_(self) -> Any:
        """The unfitted two-class estimator, as it was at the fit."""
        self._check_is_fitted()
        return self._base

    @property
    def distance_(self) -> float:
        """Smallest distance between the code words of two classes."""
        self._check_is_fitted()
        return self._code.distance

    @property
    def corrects_(self) -> int:
        """Number of wrong two-class predictions that never change the predicted class."""
        self._check_is_fitted()
        return self._code.corrects

    @property
    def estimators_(self) -> list[Any]:
        """M fitted two-class estimators; from moments they are made when first used."""
        self._check_is_fitted()
        if isinstance(self._members, FittedBinaryEstimators):
            return list(self._members.fitted)
        columns = range(self._code.signs.shape[1])
        with merge_warnings():
            return [
                clone(self._base).fit_moments(group_sides(self.moments_, self._code, m))
                for m in columns
            ]

    def __sklearn_tags__(self) -> Any:
        """Tags of the two-class estimator."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _detail_for(self, rows: int, width: int) -> Detail:
        kept: Detail = self.estimator.detail_for(rows, width)
        return "rows" if kept == "rows" else self.detail

    def _code_for(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        """Code of the classes; raise if there are fewer than two."""
        if len(labels) < 2:
            raise LabelError.one_class(labels[0] if len(labels) else "none")
        return self._make_code(labels, read)

    def _fit_from(self, moments: Any, table: AnyTable | None) -> Self:
        """Fit from moments, or from the table if these are too inexact."""
        if not moments.holds(self.detail):
            name = type(self).__name__
            raise MomentsMismatchError.needs_detail(name, self.detail, moments.detail)
        code = self._code_for(moments.labels, lambda: moments)
        for k in np.flatnonzero(moments.weight <= 0):
            raise WeightError.zero_class(moments.labels[k])
        with merge_warnings(), blas_context(len(moments.features)):
            if table is not None and self.needs_rows_for(moments):
                self._members = self._rules_from_table(table, code, moments)
            else:
                self._members = self._rules_from_moments(moments, code)
        self._set_state(code, moments)
        self._set_features(moments.features, None if table is None else table.schema.named)
        return self

    def _rules_from_moments(self, moments: Any, code: OutputCode) -> BinaryRules:
        base, anchor = self.estimator, moments.anchor.shift(moments.centre)[0]
        if not _is_plain_lda(base, moments):
            return BinaryRules.from_rules(
                fit_binary_rules(moments, code, rule_from=base.rule_from), anchor
            )
        return fit_linear_rules(
            moments,
            code,
            family=base.family,
            prior=lambda weight: base.prior_from(SimpleNamespace(labels=SIDES, weight=weight)),
            rule_from=base.rule_from,
        )

    def _rules_from_table(self, table: AnyTable, code: OutputCode, moments: Any) -> BinaryRules:
        table = table_in_memory(table, f"{type(self).__name__} of columns that nearly depend")
        rules = [
            self.estimator.rule_from_table(binary_table(table, column)) for column in code.signs.T
        ]
        return BinaryRules.from_rules(rules, moments.anchor.shift(moments.centre)[0])

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        name = type(self).__name__
        if not is_regressor(self.estimator):
            require_classifier(
                self.estimator, name, "fits it to two classes at a time; a regressor is taken too"
            )
        labels, codes = encode_binary_labels(X, y, name)

        def read() -> ClassMoments:
            return read_moments(as_table(X, y, weight=sample_weight, name=name), detail="pooled")

        code = self._code_for(labels, read)
        fitted = fit_binary_estimators(
            self.estimator,
            X,
            codes,
            code.signs,
            labels=labels,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self._members = fitted
        self._set_state(code, None)
        self._copy_input_names(fitted.fitted[0])
        return self

    def _set_state(self, code: OutputCode, moments: Any) -> None:
        self._code = code
        self.moments_ = moments
        self._base = clone(self.estimator)

    def _over_rows(self, scoring: Callable[[Any], Floats], X: Any) -> Floats:
        """Score rows in blocks by rules; fitted estimators get the rows unchanged."""
        self._check_is_fitted()
        if isinstance(self._members, FittedBinaryEstimators):
            return scoring(X)
        return self._score_rows(scoring, X)

    def _all_scores(self, X: Any) -> Floats:
        """(n, K) scores; with two classes half the score of the classifier for each side."""

        def scoring(rows: Features) -> Floats:
            sure = _has_posterior(self._base)
            return self._class_scores(rows, self._members, self._code, sure=sure)

        return self._over_rows(scoring, X)

    def _class_scores(
        self,
        rows: Any,
        members: BinaryRules | FittedBinaryEstimators,
        code: OutputCode,
        *,
        sure: bool,
    ) -> Floats:
        """(n, K) scores of the classes; `sure` if the two-class rules have probabilities."""
        scores = members.scores(rows)
        if scores.shape[1] == 1:
            return np.asarray(0.5 * scores * code.signs[:, 0])
        return self._decode(scores, code, (lambda: members.log_odds(rows)) if sure else None)


def _is_plain_lda(base: Any, moments: Any) -> bool:
    """Whether all two-class rules are LDA with a given shrinkage, to be fitted together."""
    if not isinstance(base, LinearGaussianClassifier) or not isinstance(moments, ClassMoments):
        return False
    return base.detail == "pooled" and not isinstance(base.family.shrinkage, str)


Progress = Callable[[int, int], object]


class OneVsRest(Decomposition):
    """Many classes by one two-class classifier per class, against all others.

    The class with the highest score is predicted. Probabilities are coupled by the generalised
    Bradley-Terry model, so that they sum to one.

    Parameters
    ----------
    estimator : classifier or regressor
        Two-class estimator. One from moments (LDA, QDA, RDA, LeastSquares, Fisher ...) is fitted
        from moments that are read once; any other is cloned and fitted once per problem.
    n_jobs : int or None, default None
        Number of parallel fits of an estimator that is not fitted from moments; as in joblib.
    progress : callable or None, default None
        Called after each such fit with the number done and the total.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    code_ : array of shape (K, M)
        Side of each class in each two-class problem: -1, 1, or 0 if it is left out.
    estimators_ : list of length M
        The fitted two-class estimators; from moments they are made when first used.
    distance_ : float
        Smallest distance between the code words of two classes.
    corrects_ : int
        Number of wrong two-class predictions that never change the predicted class.
    moments_ : ClassMoments or None
        Moments of the fit, if `estimator` is fitted from moments.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    OneVsOne, OutputCodes : Other decompositions.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, labels = [[0.0], [1.0], [4.0], [5.0], [9.0], [10.0]], list("aabbcc")
    >>> model = OneVsRest(LDA()).fit(rows, labels)
    >>> model.predict([[0.2], [9.8]]).tolist()
    ['a', 'c']
    >>> model.ambiguous([[0.2], [4.5], [9.8]]).claims.tolist()  # no line cuts out the middle
    [1, 0, 1]
    """

    def __init__(
        self, estimator: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.progress = progress

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        return OutputCode(labels, one_vs_rest_code(len(labels)))

    def _leaves_out(self) -> bool:
        return False

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        return scores


class OneVsOne(Decomposition):
    """Many classes by one two-class classifier per pair of classes; ties are broken by confidence.

    Probabilities are coupled by the method of Wu, Lin and Weng (2004). `decision_function` returns
    the votes up to a constant, with a fraction below 1/6 for confidence.

    Parameters
    ----------
    estimator : classifier or regressor
        Two-class estimator. One from moments (LDA, QDA, RDA, LeastSquares, Fisher ...) is fitted
        from moments that are read once; any other is cloned and fitted once per problem.
        There are K (K - 1) / 2 of them; the later class of a pair is 1.
    n_jobs : int or None, default None
        Number of parallel fits of an estimator that is not fitted from moments; as in joblib.
    progress : callable or None, default None
        Called after each such fit with the number done and the total.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    code_ : array of shape (K, M)
        Side of each class in each two-class problem: -1, 1, or 0 if it is left out.
    estimators_ : list of length M
        The fitted two-class estimators; from moments they are made when first used.
    distance_ : float
        Smallest distance between the code words of two classes.
    corrects_ : int
        Number of wrong two-class predictions that never change the predicted class.
    moments_ : ClassMoments or None
        Moments of the fit, if `estimator` is fitted from moments.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    OneVsRest, OutputCodes : Other decompositions.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, labels = [[0.0], [1.0], [4.0], [5.0], [9.0], [10.0]], list("aabbcc")
    >>> model = OneVsOne(LDA()).fit(rows, labels)
    >>> model.predict([[0.2], [4.5], [9.8]]).tolist(), model.code_.T.tolist()
    (['a', 'b', 'c'], [[-1, 1, 0], [-1, 0, 1], [0, -1, 1]])
    """

    def __init__(
        self, estimator: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.progress = progress

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        return OutputCode(labels, one_vs_one_code(len(labels)))

    def _leaves_out(self) -> bool:
        return True

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        return hamming_scores(scores, code.signs)


class OutputCodes(Decomposition):
    """Many classes by error-correcting output codes.

    Each two-class classifier separates two groups of classes; a class is a word of sides, and the
    class with the word nearest to the scores is predicted, so that a few classifiers may err.
    Probabilities are coupled by the generalised Bradley-Terry model, or, if the code has zeros, by
    least squares as for pairs.

    Parameters
    ----------
    estimator : classifier or regressor
        Two-class estimator. One from moments (LDA, QDA, RDA, LeastSquares, Fisher ...) is fitted
        from moments that are read once; any other is cloned and fitted once per problem.
    code : str or array of shape (K, M), default 'dense'
        'one-vs-rest', 'one-vs-one', 'exhaustive' (every division of the classes), 'dense' or
        'sparse' (random; sparse leaves classes out), 'designed' (divisions that a linear rule can
        separate, from moments), or a matrix of -1, 0 (left out) and 1, classes in sorted order.
    columns : int or None, default None
        Number of classifiers for 'dense', 'sparse' and 'designed'. None: 10 log2 K, for 'sparse'
        15 log2 K, or as many as exist.
    decoding : {'loss', 'hamming', 'euclidean'}, default 'loss'
        Distance between words and scores (`models.multiclass.decode`); read when it is used, so
        that it can be changed after the fit.
    random_state : int or RandomState, default 0
        Seed of the random codes.
    n_jobs : int or None, default None
        Number of parallel fits of an estimator that is not fitted from moments; as in joblib.
    progress : callable or None, default None
        Called after each such fit with the number done and the total.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    code_ : array of shape (K, M)
        Side of each class in each two-class problem: -1, 1, or 0 if it is left out.
    estimators_ : list of length M
        The fitted two-class estimators; from moments they are made when first used.
    distance_ : float
        Smallest distance between the code words of two classes.
    corrects_ : int
        Number of wrong two-class predictions that never change the predicted class.
    moments_ : ClassMoments or None
        Moments of the fit, if `estimator` is fitted from moments.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    OneVsRest, OneVsOne : Fixed codes.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows = [[0.0, 0.0], [1.0, 0.5], [0.0, 5.0], [1.0, 6.0], [5.0, 0.0], [6.0, 0.5]]
    >>> model = OutputCodes(LDA(), code="exhaustive").fit(rows, list("aabbcc"))
    >>> model.code_.shape, model.distance_, model.predict([[0.5, 0.5]]).tolist()
    ((3, 3), 2.0, ['a'])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        code: Any = "dense",
        columns: Any = None,
        decoding: Any = "loss",
        random_state: Any = 0,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.columns = columns
        self.decoding = decoding
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        self._check_options()
        K, many = len(labels), self.columns
        if not isinstance(self.code, str):
            return OutputCode.from_matrix(self.code, labels)
        if self.code in FIXED:
            return OutputCode(labels, FIXED[self.code](K))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        if self.code in RANDOM:
            return OutputCode(labels, RANDOM[self.code](K, many, rng))
        found = read()
        found = found.reduce("diagonal") if isinstance(found, ClassRows) else found
        return OutputCode(labels, design_code(found, many, rng))

    def _check_options(self) -> None:
        if isinstance(self.code, str) and self.code not in CODES:
            allowed = f"one of {', '.join(CODES)}, or a matrix of -1, 0 and 1"
            raise OptionError.of("code", self.code, allowed)
        _check_decoding(self.decoding)
        many = self.columns
        if many is None:
            return
        if not isinstance(many, Integral) or many < 1:
            raise OptionError.of("columns", many, "a whole number from 1 on, or None")
        if not isinstance(self.code, str) or self.code in FIXED:
            allowed = "None: this code has columns of its own"
            raise OptionError.of("columns", many, allowed)

    def _leaves_out(self) -> bool:
        if isinstance(self.code, str):
            return self.code in ("one-vs-one", "sparse")
        return not np.asarray(self.code).all()

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        signs = code.signs
        decoding = _check_decoding(self.decoding)
        if decoding == "hamming":
            return hamming_scores(scores, signs)
        if decoding == "loss":
            return loss_scores(scores, signs, logistic=odds is not None)
        word = np.clip(scores, -1.0, 1.0) if odds is None else np.tanh(odds() / 2)
        return euclidean_scores(word, signs)


def _check_decoding(decoding: Any) -> Any:
    if decoding not in DECODINGS:
        raise OptionError.of("decoding", decoding, f"one of {', '.join(DECODINGS)}")
    return decoding
