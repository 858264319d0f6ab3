"""Many classes from two: what one-vs-rest, one-vs-one and output codes share.

A classifier made from moments is not fitted row by row: the rows are read once, and every member is
a function of merged moments. Any other classifier, or a regressor, is cloned and fitted once for
each column of the code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags

from discriminant.assessment.refit import made_from_moments
from discriminant.engines.engine import read_classes, read_moments
from discriminant.engines.local import blas_for
from discriminant.engines.parted import AnyTable, in_memory
from discriminant.errors import (
    LabelError,
    MomentsMismatchError,
    OptionError,
    TooFewRowsError,
    WeightError,
    gathered,
)
from discriminant.estimators.available import is_regressor, only_if, require_classifier
from discriminant.estimators.base import MomentClassifier, Rows
from discriminant.estimators.gaussian import LinearGaussianClassifier
from discriminant.estimators.in_parts import at_hand, parted
from discriminant.estimators.members import FittedMembers, classes_of, fit_each, two_sided
from discriminant.models.codes import Code, Signs
from discriminant.models.coupling import is_rest
from discriminant.models.decoding import Ambiguity, ambiguity
from discriminant.models.decomposition import (
    SIDES,
    DecomposedRule,
    Members,
    fit_members,
    log_coupled,
    sided,
)
from discriminant.models.linear_members import linear_members
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.posterior import log_posterior
from discriminant.table.schema import Features, Floats, Labels
from discriminant.table.source import Table, open_table

Odds = Callable[[], Floats]  # (n, M) log odds of the positive sides, worked out when asked


def _by_moments(model: Any) -> bool:
    """Whether the two-class classifier is a function of moments."""
    base = model.estimator
    return isinstance(base, MomentClassifier) and made_from_moments(base)


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


class Decomposition(ClassifierMixin, MetaEstimatorMixin, Rows):
    """K classes by two-class classifiers, one for each column of a code."""

    _mark = "_code"
    _ways_to_fit = "fit, or fit_moments with a classifier made from moments"
    estimator: Any
    n_jobs: int | None
    progress: Callable[[int, int], object] | None
    moments_: Any  # of the fit, where the classifier is made from moments; else None
    _code: Code
    _members: Members | FittedMembers
    _base: Any  # the classifier as it was at the fit

    # --- what a class adds ------------------------------------------------------------------------

    def _made(self, labels: Labels, read: Callable[[], Any]) -> Code:
        """The code of these classes."""
        raise NotImplementedError

    def _leaves_out(self) -> bool:
        """Whether some column may leave a class out."""
        raise NotImplementedError

    def _decoded(self, said: Floats, code: Code, odds: Odds | None) -> Floats:
        """(n, K) scores of the classes, the largest of which wins; log odds, if there are any."""
        raise NotImplementedError

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the two-class classifiers: from moments read once, or one by one.

        Rows in parts (`discriminant.rows`) come without y, and are many only of a classifier that
        is made from moments.
        """
        name = type(self).__name__
        if not _by_moments(self):
            who = f"{name} of {type(self.estimator).__name__}"
            return self._fit_rows(*at_hand(X, y, sample_weight, who))
        table = parted(X, y, sample_weight) or open_table(X, y, weight=sample_weight, name=name)
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(name, 4)
        moments = read_classes(table, self._detail_for(len(table), table.width))
        return self._fit_from(moments, table)

    @only_if(_needs_moments)
    def fit_moments(self, moments: Any) -> Self:
        """Fit from moments: read earlier, merged, weighted or regrouped; no rows are needed."""
        if not isinstance(moments, ClassMoments | ClassRows):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(moments).__name__, allowed)
        return self._fit_from(moments, None)

    # --- for cross-validation without refitting ---------------------------------------------------

    @property
    def detail(self) -> Detail:
        """What moments must hold: pooled ones cannot leave a class out."""
        needed: Detail = self.estimator.detail
        return "class" if needed == "pooled" and self._leaves_out() else needed

    @property
    def needs_rows(self) -> bool:
        """Whether moments are not enough."""
        return not _by_moments(self)

    @only_if(_needs_moments)
    def rule_from(self, moments: Any) -> DecomposedRule:
        """The fitted rule, from moments alone; nothing is stored."""
        code = self._code_for(moments.labels, lambda: moments)
        return DecomposedRule(code, self._members_from(moments, code))

    @only_if(_needs_moments)
    def rule_of(self, table: AnyTable) -> DecomposedRule:
        """The fitted rule, from rows: where moments hold too few digits."""
        moments = read_classes(table, self.detail)
        code = self._code_for(table.schema.labels, lambda: moments)
        return DecomposedRule(code, self._members_of(table, code, moments))

    def needs_rows_for(self, moments: Any) -> bool:
        """Whether moments hold too few digits to stand in for their rows."""
        base = self.estimator
        if type(base).needs_rows_for is MomentClassifier.needs_rows_for:
            return False
        code = self._code_for(moments.labels, lambda: moments)
        columns = range(code.signs.shape[1])
        return any(base.needs_rows_for(sided(moments, code, m)) for m in columns)

    def answers_by(
        self, rule: DecomposedRule, features: Features
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        """(n, K) log posteriors, and (n,) codes of the classes that `predict` says, by a rule."""
        scores = self._class_scores(features, rule.members, rule.code, sure=True)
        return log_posterior(rule.scores(features)), scores.argmax(axis=1)

    def scores_without_each(self, moments: Any, table: Table) -> None:
        """No closed form: a row left out is taken from the moments."""
        return None

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class whose code word is nearest to what the classifiers say."""
        return np.asarray(self.classes_[self._all_scores(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores of the classes; with two classes what the one classifier says, (n,)."""
        scores = self._all_scores(X)
        if scores.shape[1] > 2:
            return scores
        return np.asarray(scores[:, 1] - scores[:, 0])

    @only_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) logs of the coupled probabilities."""
        return self._over_rows(
            lambda rows: log_coupled(self._members.log_odds(rows), self._code), X
        )

    @only_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) coupled probabilities: see `models.coupling`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def said(self, X: Any) -> Floats:
        """(n, M) what each two-class classifier says: positive for the classes of sign +1."""
        return self._over_rows(lambda rows: self._members.said(rows), X)

    def ambiguous(self, X: Any) -> Ambiguity:
        """How many classes claim each row, and the shares of rows that none or several claim."""
        return ambiguity(self.said(X), self._code.signs, rest=is_rest(self._code.signs))

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """(K,) labels, sorted."""
        self._need_fit()
        return np.asarray(self._code.labels)

    @property
    def code_(self) -> Signs:
        """(K, M) the side of each class in each two-class problem; 0: left out."""
        self._need_fit()
        return self._code.signs

    @property
    def members_(self) -> Members | FittedMembers:
        """The two-class rules as they were fitted: what an export writes down."""
        self._need_fit()
        return self._members

    @property
    def base_(self) -> Any:
        """The classifier of two classes, not fitted, as it was at the fit."""
        self._need_fit()
        return self._base

    @property
    def distance_(self) -> float:
        """Least distance between the code words of two classes."""
        self._need_fit()
        return self._code.distance

    @property
    def corrects_(self) -> int:
        """How many classifiers may err about a row without changing its class, whichever do."""
        self._need_fit()
        return self._code.corrects

    @property
    def estimators_(self) -> list[Any]:
        """M fitted estimators of the classes, or numbers, 0 and 1; from moments when asked."""
        self._need_fit()
        if isinstance(self._members, FittedMembers):
            return list(self._members.fitted)
        columns = range(self._code.signs.shape[1])
        with gathered():
            return [
                clone(self._base).fit_moments(sided(self.moments_, self._code, m)) for m in columns
            ]

    def __sklearn_tags__(self) -> Any:
        """Whatever rows the two-class classifier takes."""
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

    def _code_for(self, labels: Labels, read: Callable[[], Any]) -> Code:
        """The code; `read` gives moments of the rows to a code that is designed from them."""
        if len(labels) < 2:
            raise LabelError.one_class(labels[0] if len(labels) else "none")
        return self._made(labels, read)

    def _fit_from(self, moments: Any, table: AnyTable | None) -> Self:
        """Members from moments, or from the table where these leave too few digits."""
        if not moments.holds(self.detail):
            name = type(self).__name__
            raise MomentsMismatchError.needs_detail(name, self.detail, moments.detail)
        code = self._code_for(moments.labels, lambda: moments)
        for k in np.flatnonzero(moments.weight <= 0):
            raise WeightError.class_without(moments.labels[k])
        with gathered(), blas_for(len(moments.features)):
            if table is not None and self.needs_rows_for(moments):
                self._members = self._members_of(table, code, moments)
            else:
                self._members = self._members_from(moments, code)
        self._hold(code, moments)
        self._remember(moments.features, None if table is None else table.schema.named)
        return self

    def _members_from(self, moments: Any, code: Code) -> Members:
        base, anchor = self.estimator, moments.anchor.moved(moments.centre)[0]
        if not _plain_line(base, moments):
            return Members.of(fit_members(moments, code, rule_from=base.rule_from), anchor)
        return linear_members(
            moments,
            code,
            family=base.family,
            prior=lambda weight: base.prior_from(SimpleNamespace(labels=SIDES, weight=weight)),
            rule_from=base.rule_from,
        )

    def _members_of(self, table: AnyTable, code: Code, moments: Any) -> Members:
        table = in_memory(table, f"{type(self).__name__} of columns that nearly depend")
        rules = [self.estimator.rule_of(two_sided(table, column)) for column in code.signs.T]
        return Members.of(rules, moments.anchor.moved(moments.centre)[0])

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        name = type(self).__name__
        if not is_regressor(self.estimator):
            require_classifier(
                self.estimator, name, "fits it to two classes at a time; a regressor is taken too"
            )
        labels, codes = classes_of(X, y, name)

        def read() -> ClassMoments:
            return read_moments(open_table(X, y, weight=sample_weight, name=name), detail="pooled")

        code = self._code_for(labels, read)
        fitted = fit_each(
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
        self._hold(code, None)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(fitted.fitted[0], name):
                setattr(self, name, getattr(fitted.fitted[0], name))
        return self

    def _hold(self, code: Code, moments: Any) -> None:
        self._code = code
        self.moments_ = moments
        self._base = clone(self.estimator)

    def _over_rows(self, scoring: Callable[[Any], Floats], X: Any) -> Floats:
        """By blocks of rows where members are rules; others take rows as they are given."""
        self._need_fit()
        if isinstance(self._members, FittedMembers):
            return scoring(X)
        return self._finite(scoring, X if self._plain(X) else self._features(X))

    def _all_scores(self, X: Any) -> Floats:
        """(n, K) scores, also of two classes: what the classifier says, halved to each side."""

        def scoring(rows: Features) -> Floats:
            sure = _has_posterior(self._base)
            return self._class_scores(rows, self._members, self._code, sure=sure)

        return self._over_rows(scoring, X)

    def _class_scores(
        self, rows: Any, members: Members | FittedMembers, code: Code, *, sure: bool
    ) -> Floats:
        """(n, K) scores of the classes by these members; `sure` ones have probabilities."""
        said = members.said(rows)
        if said.shape[1] == 1:
            return np.asarray(0.5 * said * code.signs[:, 0])
        return self._decoded(said, code, (lambda: members.log_odds(rows)) if sure else None)


def _plain_line(base: Any, moments: Any) -> bool:
    """Whether members are LDA by products, of a shrinkage that is known beforehand."""
    if not isinstance(base, LinearGaussianClassifier) or not isinstance(moments, ClassMoments):
        return False
    return base.detail == "pooled" and not isinstance(base.family.shrinkage, str)
