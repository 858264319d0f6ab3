"""Multiclass classification by two-class estimators: one-vs-rest, one-vs-one and output codes.

An output code is a matrix (K, M) of -1, 0 and 1. Each column is a two-class problem: classes with 1
against classes with -1, without the classes with 0. The predicted class is the one whose row of the
code matches the M scores best (`models.multiclass`). If the two-class estimator is fitted from
moments, the rows are read only once, and every two-class rule is computed from merged class
moments. Any other estimator is cloned and fitted once per column, in parallel: a classifier to the
classes 0 and 1, a regressor to the numbers 0 and 1. The score of a classifier is its decision
function or its log odds. The score of a regressor with output f is 2 f - 1, as if it had been
fitted to -1 and 1.
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
    available_if,
    check_choice,
    check_moments,
    fit_with_weight,
    is_regressor,
    partitioned_or_none,
    require_classifier,
    second_minus_first,
    to_memory,
)
from discriminant.estimators.gaussian.lda_qda import LinearGaussianClassifier
from discriminant.estimators.meta.resampling import Reweighted
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
    DECODINGS,
    FIXED,
    RANDOM,
    Ambiguity,
    OutputCode,
    Signs,
    design_code,
    euclidean_scores,
    hamming_scores,
    is_rest,
    loss_scores,
    measure_ambiguity,
    one_vs_one_code,
    one_vs_rest_code,
    optimal_code,
)
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Codes, Features, Floats, Labels, canonical_rows, is_sparse
from discriminant.table.labels import encode_labels
from discriminant.table.memory import Table, as_table, check_weight

Odds = Callable[[], Floats]  # returns the log odds (n, M) of the positive sides
Progress = Callable[[int, int], object]

_MAX_LOG_ODDS = 745.0  # log odds of the smallest positive probability


@dataclass(frozen=True, slots=True, eq=False)
class FittedBinaryEstimators:
    """M fitted two-class estimators: classifiers of the classes 0 and 1, or regressors.

    The name of the field must not change: it is part of the file format.
    """

    fitted: tuple[Any, ...]

    def scores(self, X: Any) -> Floats:
        """Return scores (n, M) of rows; a positive score is for the classes with 1 in the code."""
        scores = np.column_stack([_binary_score(model, X) for model in self.fitted])
        if len(self.fitted) > 1:  # infinite scores cannot be compared
            for row in np.flatnonzero(np.isinf(scores).any(axis=1)):
                raise InfiniteValueError.of_row(int(row), type(self.fitted[0]).__name__)
        return scores

    def log_odds(self, X: Any) -> Floats:
        """Return log odds (n, M) of the classes with 1 in the code."""
        return np.column_stack([_log_odds(model, X) for model in self.fitted])


def encode_binary_labels(X: Any, y: Any, name: str) -> tuple[Labels, Codes]:
    """Return the class labels (K,) and the class code of each row (n,)."""
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
    progress: Progress | None,
) -> FittedBinaryEstimators:
    """Fit a clone of the estimator for each column of the code, in parallel.

    The rows of classes with 0 in the column are left out.
    """
    weight = check_weight(sample_weight, len(codes))
    if weight is not None and not has_fit_parameter(base, "sample_weight"):
        raise WeightError.not_supported(type(base).__name__)
    if weight is not None:
        for k in np.flatnonzero(np.bincount(codes, weight, minlength=len(signs)) == 0):
            raise WeightError.zero_class(labels[k])
    if is_sparse(X):
        X = canonical_rows(X)
    M = signs.shape[1]
    fits = (delayed(_fit_column)(clone(base), X, codes, signs[:, m], weight) for m in range(M))
    fitted = []
    for model in Parallel(n_jobs=n_jobs, return_as="generator")(fits):
        fitted.append(model)
        if progress is not None:
            progress(len(fitted), M)
    return FittedBinaryEstimators(tuple(fitted))


def binary_table(table: Table, column: npt.NDArray[np.int8]) -> Table:
    """Return a table for one column of the code: classes 0 and 1 for the signs -1 and 1.

    The rows of classes with 0 in the column are left out.
    """
    side = column[table.codes]
    if not column.all():
        table, side = table.take(np.flatnonzero(side)), side[side != 0]
    schema = replace(table.schema, labels=SIDES)
    return replace(table, schema=schema, codes=(side > 0).astype(np.uint8))


def _fit_column(
    model: Any, X: Any, codes: Codes, column: npt.NDArray[np.int8], weight: Floats | None
) -> Any:
    side = column[codes]
    if not column.all():
        rows = np.flatnonzero(side)
        X, side = _safe_indexing(X, rows), side[rows]
        weight = None if weight is None else weight[rows]
    truth = SIDES[(side > 0).astype(np.intp)]
    try:
        return fit_with_weight(model, X, truth, weight)
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
        allowed = "declared as a classifier or a regressor (ClassifierMixin, RegressorMixin)"
        raise OptionError.of("estimator", type(model).__name__, f"{allowed}: it predicts numbers")
    return np.where(predicted == 1, 1.0, -1.0)


def _log_odds(model: Any, X: Any) -> Floats:
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            logs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        else:
            logs = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
    return np.clip(logs[:, 1] - logs[:, 0], -_MAX_LOG_ODDS, _MAX_LOG_ODDS)


def _accepts_moments(model: Any) -> bool:
    if model.needs_rows:
        reads = getattr(model, "balanced", False)
        name = "OneVsRest(balanced=True)" if reads else type(model.estimator).__name__
        raise AttributeError(f"{name} is not fitted from moments")
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


class Decomposition(ClassifierMixin, MetaEstimatorMixin, RowEstimator):
    """Base class: reduces K classes to two-class problems, one per column of an output code.

    Parameters
    ----------
    estimator : classifier or regressor
        Two-class estimator. If the estimator is fitted from moments (LDA, QDA, RDA, LeastSquares,
        Fisher ...), the rows are read only once; any other estimator is cloned and fitted once per
        two-class problem.
    n_jobs : int or None, default None
        Number of parallel fits, as in joblib. Not used for an estimator that is fitted from
        moments.
    progress : callable or None, default None
        Called after each of these fits with the number of fits done and their total number.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    code_ : array of shape (K, M)
        Sign of each class in each two-class problem: -1, 1, or 0 if the class is left out.
    estimators_ : list of length M
        The fitted two-class estimators. Estimators that are fitted from moments are created on
        first access.
    distance_ : float
        Smallest distance between the code words of two classes.
    corrects_ : int
        Largest number of wrong two-class predictions that cannot change the predicted class.
    moments_ : ClassMoments or None
        Moments of the fit, if `estimator` is fitted from moments.
    """

    _fitted_attribute = "_code"
    _fit_methods = "fit, or fit_moments with a classifier made from moments"
    moments_: Any  # None unless the estimator is fitted from moments
    _code: OutputCode
    _members: BinaryRules | FittedBinaryEstimators
    _base: Any  # copy of the estimator at the time of the fit

    def __init__(
        self, estimator: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.progress = progress

    # --- defined by subclasses --------------------------------------------------------------------

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        """Return the output code of these classes; a designed code gets moments from `read()`."""
        raise NotImplementedError

    def _omits_classes(self) -> bool:
        """Return whether a column of the code may contain 0, so that a class is left out."""
        raise NotImplementedError

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        """Return class scores (n, K) from two-class scores (n, M), or from log odds if given."""
        raise NotImplementedError

    def _binary_estimator(self) -> Any:
        """Return the unfitted estimator of a two-class problem."""
        return self.estimator

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the two-class estimators: all from one pass for moments, or each to its rows.

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
        if self.needs_rows:
            who = f"{name} of {type(self.estimator).__name__}"
            return self._fit_rows(*to_memory(X, y, sample_weight, who))
        table = partitioned_or_none(X, y, sample_weight) or as_table(
            X, y, weight=sample_weight, name=name
        )
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(name, 4)
        stores_rows = self.estimator.detail_for(len(table), table.width) == "rows"
        return self._fit_from(read_classes(table, "rows" if stores_rows else self.detail), table)

    @available_if(_accepts_moments)
    def fit_moments(self, moments: Any) -> Self:
        """Fit from class moments, which may be merged, weighted or regrouped, without the rows."""
        check_moments(moments)
        return self._fit_from(moments, None)

    # --- for cross-validation without refitting ---------------------------------------------------

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs.

        If a class may be left out, one scatter per class is needed instead of a pooled scatter.
        """
        needed: Detail = self.estimator.detail
        return "class" if needed == "pooled" and self._omits_classes() else needed

    @property
    def needs_rows(self) -> bool:
        """Whether a fit needs rows, because the two-class estimator is not fitted from moments."""
        return not (
            isinstance(self.estimator, MomentClassifier) and is_moment_based(self.estimator)
        )

    @available_if(_accepts_moments)
    def rule_from(self, moments: Any) -> OutputCodeRule:
        """Return the rule fitted to moments, without changing the model."""
        code = self._code_for(moments.labels, lambda: moments)
        return OutputCodeRule(code, self._rules_from_moments(moments, code))

    @available_if(_accepts_moments)
    def rule_from_table(self, table: AnyTable) -> OutputCodeRule:
        """Return the rule fitted to the rows of a table, without changing the model."""
        moments = read_classes(table, self.detail)
        code = self._code_for(table.schema.labels, lambda: moments)
        return OutputCodeRule(code, self._rules_from_table(table, code, moments))

    def needs_rows_for(self, moments: Any) -> bool:
        """Return whether moments are not accurate enough for a fit, so that it needs the rows."""
        base = self.estimator
        if type(base).needs_rows_for is MomentClassifier.needs_rows_for:
            return False
        code = self._code_for(moments.labels, lambda: moments)
        columns = range(code.signs.shape[1])
        return any(base.needs_rows_for(group_sides(moments, code, m)) for m in columns)

    def predict_with_rule(
        self, rule: OutputCodeRule, features: Features
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return log posteriors (n, K) and predicted class codes (n,) of rows, by a given rule."""
        scores = self._class_scores(features, rule.members, rule.code, probabilistic=True)
        return log_posterior(rule.scores(features)), scores.argmax(axis=1)

    def leave_one_out_scores(self, moments: Any, table: Table) -> None:
        """Return None: leave-one-out scores have no closed form."""
        return None

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class whose code word is nearest to the two-class scores."""
        return np.asarray(self.classes_[self._all_scores(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """Return class scores (n, K); with two classes, the scores (n,) of the two-class
        classifier.
        """
        return second_minus_first(self._all_scores(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logs of the probabilities (n, K) of `predict_proba`."""
        return self._over_rows(
            lambda rows: log_coupled_probabilities(self._members.log_odds(rows), self._code), X
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities (n, K), combined from the probabilities of the two-class
        problems.

        The coupling is described in `models.multiclass.binary_rules`.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def binary_scores(self, X: Any) -> Floats:
        """Return two-class scores (n, M), positive for the classes with 1 in the code."""
        return self._over_rows(lambda rows: self._members.scores(rows), X)

    def ambiguous(self, X: Any) -> Ambiguity:
        """Count the classes that claim each row, and the rows claimed by no class or by several.

        With one-vs-rest, a class claims a row if its score is positive. With other codes, a class
        claims a row if the signs of the two-class scores agree with its code word.
        """
        return measure_ambiguity(
            self.binary_scores(X), self._code.signs, rest=is_rest(self._code.signs)
        )

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels (K,), sorted."""
        self._check_is_fitted()
        return np.asarray(self._code.labels)

    @property
    def code_(self) -> Signs:
        """Output code (K, M): sign of each class in each two-class problem, 0 if it is left out."""
        self._check_is_fitted()
        return self._code.signs

    @property
    def binary_rules_(self) -> BinaryRules | FittedBinaryEstimators:
        """Fitted two-class rules, for export."""
        self._check_is_fitted()
        return self._members

    @property
    def base_(self) -> Any:
        """The unfitted two-class estimator, with the options that it had at the fit."""
        self._check_is_fitted()
        return self._base

    @property
    def distance_(self) -> float:
        """Smallest distance between the code words of two classes."""
        self._check_is_fitted()
        return self._code.distance

    @property
    def corrects_(self) -> int:
        """Largest number of wrong two-class predictions that cannot change the predicted class."""
        self._check_is_fitted()
        return self._code.corrects

    @property
    def estimators_(self) -> list[Any]:
        """The M fitted two-class estimators; from moments, they are created on first access."""
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
        """Return the tags of the two-class estimator."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _code_for(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        """Return the output code of the classes; fewer than two classes are an error."""
        if len(labels) < 2:
            raise LabelError.one_class(labels[0] if len(labels) else "none")
        return self._make_code(labels, read)

    def _fit_from(self, moments: Any, table: AnyTable | None) -> Self:
        """Fit from moments, or from the rows of the table if moments are too inexact."""
        if not moments.has(self.detail):
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
        table = table_in_memory(table, f"{type(self).__name__} of nearly collinear columns")
        rules = [
            self.estimator.rule_from_table(binary_table(table, column)) for column in code.signs.T
        ]
        return BinaryRules.from_rules(rules, moments.anchor.shift(moments.centre)[0])

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        name = type(self).__name__
        if not is_regressor(self.estimator):
            why = "fits it to two classes at a time; a regressor is also allowed"
            require_classifier(self.estimator, name, why)
        labels, codes = encode_binary_labels(X, y, name)

        def read() -> ClassMoments:
            return read_moments(as_table(X, y, weight=sample_weight, name=name), detail="pooled")

        code = self._code_for(labels, read)
        fitted = fit_binary_estimators(
            self._binary_estimator(),
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

    def _over_rows(self, score: Callable[[Any], Floats], X: Any) -> Floats:
        """Score rows: rules score them block by block; other estimators get all rows at once."""
        self._check_is_fitted()
        if isinstance(self._members, FittedBinaryEstimators):
            return score(X)
        return self._score_rows(score, X)

    def _all_scores(self, X: Any) -> Floats:
        """Return class scores (n, K).

        With two classes the class scores are -1/2 and 1/2 times the score of the only two-class
        classifier.
        """

        def score(rows: Features) -> Floats:
            able = hasattr(self._base, "predict_proba") and not is_regressor(self._base)
            return self._class_scores(rows, self._members, self._code, probabilistic=able)

        return self._over_rows(score, X)

    def _class_scores(
        self,
        rows: Any,
        members: BinaryRules | FittedBinaryEstimators,
        code: OutputCode,
        *,
        probabilistic: bool,
    ) -> Floats:
        """Return class scores (n, K).

        `probabilistic` is True if the two-class rules have probabilities.
        """
        scores = members.scores(rows)
        if scores.shape[1] == 1:
            return np.asarray(0.5 * scores * code.signs[:, 0])
        odds = (lambda: members.log_odds(rows)) if probabilistic else None
        return self._decode(scores, code, odds)


def _is_plain_lda(base: Any, moments: Any) -> bool:
    """Return whether all two-class rules can be fitted together.

    This requires LDA with plug-in densities and a shrinkage that is a number.
    """
    if not isinstance(base, LinearGaussianClassifier) or not isinstance(moments, ClassMoments):
        return False
    if base.predictive != "plug-in":
        return False
    return base.detail == "pooled" and not isinstance(base.family.shrinkage, str)


class OneVsRest(Decomposition):
    """One-vs-rest: one two-class classifier per class separates it from all other classes.

    The class with the highest score is predicted. Probabilities of the two-class problems are
    combined by the generalised Bradley-Terry model, so that they sum to one.

    Parameters
    ----------
    balanced : bool, default False
        Whether each two-class problem is reweighted so that the class and all other classes have
        the same total weight. Probabilities are corrected to the class shares of the rows. The
        two-class estimator must be a classifier that supports sample weights; it is fitted once per
        class, even if it could be fitted from moments.

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
        self,
        estimator: Any,
        *,
        balanced: Any = False,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.estimator = estimator
        self.balanced = balanced
        self.n_jobs = n_jobs
        self.progress = progress

    @property
    def needs_rows(self) -> bool:
        """Whether a fit needs rows, because it reweights them or cannot be fitted from moments."""
        return bool(self.balanced) or super().needs_rows

    def _binary_estimator(self) -> Any:
        if not isinstance(self.balanced, bool | np.bool_):
            raise OptionError.of("balanced", self.balanced, "True or False")
        return Reweighted(self.estimator) if self.balanced else self.estimator

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        return OutputCode(labels, one_vs_rest_code(len(labels)))

    def _omits_classes(self) -> bool:
        return False

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        return scores


class OneVsOne(Decomposition):
    """One-vs-one: one two-class classifier per pair of classes; the class with the most votes is
    predicted, and ties are broken.

    There are K (K - 1) / 2 pairs; the later class of a pair is the positive class. Ties are broken
    by the confidence of the classifiers: `decision_function` returns the votes, up to a constant,
    plus a term below 1/6 in absolute value for the confidence. Probabilities of the pairs are
    combined by the method of Wu, Lin and Weng (2004).

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

    def _make_code(self, labels: Labels, read: Callable[[], Any]) -> OutputCode:
        return OutputCode(labels, one_vs_one_code(len(labels)))

    def _omits_classes(self) -> bool:
        return True

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        return hamming_scores(scores, code.signs)


class OutputCodes(Decomposition):
    """Error-correcting output codes for many classes.

    Each two-class classifier separates two groups of classes. The code word of a class lists the
    group (-1 or 1) that it belongs to for each classifier. The class whose code word is nearest to
    the scores is predicted, so that a few wrong classifiers may not change the prediction.
    Two-class probabilities are combined by the generalised Bradley-Terry model, or, if the code has
    zeros, by least squares as in `OneVsOne`.

    Parameters
    ----------
    code : str or array of shape (K, M), default 'dense'
        'one-vs-rest'; 'reference': each class but the last against the others, so that a row for
        which no classifier is positive is assigned to the last class; 'one-vs-one'; 'exhaustive':
        every division of the classes into two groups; 'dense' or 'sparse': random divisions (those
        of 'sparse' leave some classes out); 'designed': divisions that a linear rule can separate,
        computed from moments; 'optimal': the code of this length with the largest distance between
        code words, for at most 8 classes; or a matrix of -1, 0 (left out) and 1, with the classes
        in sorted order.
    columns : int or None, default None
        Number of classifiers for 'dense', 'sparse', 'designed' and 'optimal'. None means 10 log2 K
        classifiers (15 log2 K for 'sparse', K for 'optimal'), but at most the number of different
        divisions.
    decoding : {'loss', 'hamming', 'euclidean'}, default 'loss'
        Distance between code words and scores (`models.multiclass.codes`). This option can be
        changed after the fit.
    random_state : int or RandomState, default 0
        Seed of the random codes.

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
        if not isinstance(self.code, str):
            return OutputCode.from_matrix(self.code, labels)
        if self.code in FIXED:
            return OutputCode(labels, FIXED[self.code](len(labels)))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        if self.code in RANDOM:
            return OutputCode(labels, RANDOM[self.code](len(labels), self.columns, rng))
        if self.code == "optimal":
            return OutputCode(labels, optimal_code(len(labels), self.columns))
        moments = read()
        moments = moments.reduce("diagonal") if isinstance(moments, ClassRows) else moments
        return OutputCode(labels, design_code(moments, self.columns, rng))

    def _check_options(self) -> None:
        if isinstance(self.code, str) and self.code not in CODES:
            allowed = f"one of {', '.join(CODES)}, or a matrix of -1, 0 and 1"
            raise OptionError.of("code", self.code, allowed)
        check_choice("decoding", self.decoding, DECODINGS)
        if self.columns is None:
            return
        if not isinstance(self.columns, Integral) or self.columns < 1:
            raise OptionError.of("columns", self.columns, "a whole number, 1 or more, or None")
        if not isinstance(self.code, str) or self.code in FIXED:
            allowed = "None: the number of columns of this code is fixed"
            raise OptionError.of("columns", self.columns, allowed)

    def _omits_classes(self) -> bool:
        if isinstance(self.code, str):
            return self.code in ("one-vs-one", "sparse")
        return not np.asarray(self.code).all()

    def _decode(self, scores: Floats, code: OutputCode, odds: Odds | None) -> Floats:
        check_choice("decoding", self.decoding, DECODINGS)  # the option may change after the fit
        if self.decoding == "hamming":
            return hamming_scores(scores, code.signs)
        if self.decoding == "loss":
            return loss_scores(scores, code.signs, logistic=odds is not None)
        word = np.clip(scores, -1.0, 1.0) if odds is None else np.tanh(odds() / 2)
        return euclidean_scores(word, code.signs)
