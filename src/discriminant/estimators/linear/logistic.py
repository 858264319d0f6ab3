"""Logistic: logistic regression by maximum likelihood, honest about where it stands.

Rows are read once for their moments and then once for each step. What comes out does not depend
on the way taken, on the units of the columns or on where they are counted from.

What models fitted by likelihood share: standard errors, intervals, tests and a summary.

A class adds `inference()`, made from what the fit has kept, and `_peak(X, y, ...)`, which opens
rows again for what cannot be had without them.

The way to the most likely coefficients that suits a table.

tall      white coordinates from the products of the features
wide      the directions that the rows span, if there are more features than rows
sparse    scaled columns alone, if there are too many features for their products
net       the columns themselves, if the penalty has absolute values
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from discriminant.assessment.inference.profile import DroppedFeature, Peak, drop_each, profile
from discriminant.assessment.inference.summary import CoefficientSummary
from discriminant.assessment.inference.wald import ClassFit, Inference, inference_state
from discriminant.engines.engine import anchor_of, fold, read_moments
from discriminant.engines.local import one_blas_thread
from discriminant.engines.partitioned import AnyTable, Parted, in_memory
from discriminant.errors import (
    InferenceError,
    NoPenaltyWarning,
    NotConvergedWarning,
    OptionError,
    SeparationWarning,
    ShapeError,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import as_partitioned
from discriminant.estimators.linear.iterative_linear import (
    LinearClassifier,
    RowSpaceTable,
    class_shares,
    class_weight_factors,
)
from discriminant.models.gaussian.family import validate_prior
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.elastic_net import ColumnScales, fit_elastic_net
from discriminant.models.linear.logistic import (
    SOLVERS,
    JeffreysLoss,
    LogisticFit,
    LogisticOptions,
    Solver,
    fit_logistic,
    fit_logistic_scaled,
    penalty_scale,
)
from discriminant.models.linear.optimise import GRADIENT, PenalisedLoss
from discriminant.models.linear.separation import Separation, detect_separation
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss import Pass
from discriminant.moments.scatter_factor import ColumnReading, ColumnSums
from discriminant.moments.softmax_loss import TWO_SIDED, Binary, LinkName, Softmax
from discriminant.posterior import log_posterior, posterior
from discriminant.table.blocks import Block, Floats, Labels, is_sparse
from discriminant.table.memory import Table, open_table

METHODS = ("wald", "profile")
_SAME = 1e-6  # deviances of the same rows agree by more than this
_LEVEL = 1e-5  # a steeper gradient is not one of the largest likelihood


class LikelihoodInference:
    """A model that can say how sure it is of its coefficients."""

    def inference(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        raise NotImplementedError

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        """The likelihood of rows that are given again, and where it is largest."""
        raise NotImplementedError

    def summary(self, level: float = 0.95) -> CoefficientSummary:
        """Coefficients with standard errors, tests and Wald intervals; `print` it."""
        return CoefficientSummary(self.inference(), _checked(level))

    def intervals(
        self,
        level: float = 0.95,
        method: str = "wald",
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Floats:
        """(p, 2) intervals of the estimates, in the order of `summary()`, the intercept first.

        `method`: 'wald' for estimate -+ quantile times standard error; 'profile' for where the
        likelihood, all else fitted anew, has fallen as far as chance allows. That fits many times,
        to X and y (and sample_weight, offset) as they were at fit: a model keeps no rows.
        `progress` is called after each end of a profile interval with how many are done, and of
        how many.
        """
        _checked(level)
        if method not in METHODS:
            raise OptionError.of("method", method, f"one of {', '.join(METHODS)}")
        if method == "wald":
            return self.inference().wald(level)
        found = self.inference()
        peak = self._reopen_likelihood("A profile interval", X, y, sample_weight, offset)
        return profile(peak, found, level=level, progress=progress)

    def drop_each(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> list[DroppedFeature]:
        """Likelihood-ratio test of each feature, by a fit without it to X and y as at fit."""
        found = self.inference()
        return drop_each(
            self._reopen_likelihood("A fit without a column", X, y, sample_weight, offset), found
        )

    def _reopen_likelihood(self, what: str, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        if X is None or y is None:
            raise InferenceError.needs_rows(what)
        peak = self._likelihood_peak(X, y, weight, offset)
        found, fitted = 2.0 * peak.point.slope.loss, self.inference().likelihood.deviance
        if not abs(found - fitted) <= _SAME * max(abs(fitted), 1e-6):
            raise InferenceError.other_rows(found, fitted)
        if peak.point.max_gradient > _LEVEL and self.inference().converged:
            raise InferenceError.other_values(peak.point.max_gradient)
        if peak.point.max_gradient > _LEVEL:
            raise InferenceError.not_at_peak(what, peak.point.max_gradient)
        return peak


def _checked(level: Any) -> float:
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        allowed = "between 0 and 1, say 0.95; the method and the rows come after it"
        raise OptionError.of("level", level, allowed)
    return float(level)


_LARGE = 1500  # features of sparse rows; the products of more are not kept
_LONG = 5_000_000  # numbers of a table that is not read again for digits beyond the tests
_SAMPLE = 1 << 21  # numbers in the rows that the curvature is sketched from


@dataclass(frozen=True, slots=True, eq=False)
class TableFit:
    """What a table says of its coefficients."""

    fit: LogisticFit
    rule: LinearRule  # K scores, or one for two classes
    separation: Separation | None = None  # None where it was not looked for
    inference: ClassFit | None = None  # for inference, where that is meaningful
    wide: bool = False  # whether there are more features than rows


def fit_table(table: AnyTable, wish: LogisticOptions) -> TableFit:
    """Fit in the way that suits the table."""
    wish = replace(
        wish, skip_confirmation=len(table) * table.width > _LONG, min_row_weight=_lightest(table)
    )
    if wish.ridge and wish.l1_ratio:
        return _net(table, wish)
    if is_large_sparse(table):
        return _sparse(in_memory(table, "A fit to sparse rows"), wish)
    if is_wide(len(table), table.width):
        return _wide(in_memory(table, "A fit to fewer rows than features"), wish)
    return _tall(table, wish)


def _tall(table: AnyTable, wish: LogisticOptions) -> TableFit:
    read = partial(fold, table)
    moments = read_moments(table, detail="pooled")
    found = fit_logistic(read, moments, sample_rows(table), wish)
    rule = found.rule(table.schema.labels)
    if wish.ridge:
        return TableFit(found, rule)
    apart = None if wish.jeffreys else _apart(found, read, moments, intercept=wish.intercept)
    kept = None if apart else inference_state(found, read, moments, wish.link)
    return TableFit(found, rule, apart, kept)


def _wide(table: Table, wish: LogisticOptions) -> TableFit:
    """In directions, in which columns are standardised already."""
    anchor = anchor_of(table)
    if not wish.intercept:
        anchor = Anchor(np.zeros_like(anchor.origin), anchor.unit)
    spanned = RowSpaceTable.of(table, anchor, centred=wish.intercept, standardize=wish.standardize)
    found = _tall(spanned.table, replace(wish, standardize=False))
    apart = found.separation
    if apart:
        apart = replace(apart, columns=table.schema.features, direction=None)
    return TableFit(found.fit, spanned.to_features(found.rule), apart, wide=True)


def _sparse(table: Table, wish: LogisticOptions) -> TableFit:
    if not wish.ridge or wish.jeffreys:
        raise OptionError.of(
            "ridge",
            wish.ridge,
            f"more than 0 for sparse rows of {table.width} features (1/{len(table)}, one over "
            "the rows, is what liblinear calls C=1), without bias_reduction",
        )
    if wish.solver not in ("auto", "lbfgs"):
        allowed = f"'auto' or 'lbfgs' for sparse rows of {table.width} features"
        raise OptionError.of("solver", wish.solver, allowed)
    found = fit_logistic_scaled(
        partial(fold, table),
        read_column_sums(table),
        _class_weight(table),
        sample_rows(table),
        features=table.schema.features,
        options=wish,
    )
    return TableFit(found, found.rule(table.schema.labels))


def _net(table: AnyTable, wish: LogisticOptions) -> TableFit:
    if isinstance(table, Table) and is_large_sparse(table):
        weight, features = _class_weight(table), table.schema.features
        columns = ColumnScales.of_sums(read_column_sums(table), features=features, weight=weight)
    else:
        moments = read_moments(table, detail="diagonal")
        columns = ColumnScales.of_moments(moments, intercept=wish.intercept)
    found = fit_elastic_net(partial(fold, table), columns, wish)
    return TableFit(found, found.rule(table.schema.labels))


def is_large_sparse(table: AnyTable) -> bool:
    """Whether rows are sparse and their columns too many for products."""
    if isinstance(table, Parted):
        return False
    return is_sparse(table.features) and table.width > _LARGE


def _apart(found: LogisticFit, read: Pass, moments: ClassMoments, *, intercept: bool) -> Separation:
    """Whether classes are separated: no if overlap is proved, else as a linear programme says."""
    if found.overlap:
        return Separation("none", None, (), (), 0)
    coef, level = found.coordinates.coefficients(found.descent.theta)
    if coef.shape[1] == 1:
        coef, level = np.hstack([-coef, coef]), np.hstack([-level, level])
    spread = penalty_scale(moments.at(found.anchor), standardize=True, intercept=intercept)
    return detect_separation(
        read,
        anchor=found.anchor,
        features=moments.features,
        labels=moments.labels,
        spread=spread,
        start=np.vstack([coef, level]),
        intercept=intercept,
    )


def read_column_sums(table: Table) -> ColumnSums:
    """Read twice: for the means, and about them."""
    features = table.schema.features
    first: ColumnSums = fold(table, ColumnReading(features, np.zeros(table.width)))
    return fold(table, ColumnReading(features, first.mean))


def _lightest(table: AnyTable) -> float:
    """The least weight of a row that counts."""
    if isinstance(table, Parted):
        return table.lightest
    if table.weight is None:
        return 1.0
    return float(np.min(table.weight, where=table.weight > 0, initial=np.inf))


def _class_weight(table: Table) -> Floats:
    found = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(found, dtype=np.float64)


def sample_rows(table: AnyTable) -> Block:
    """Rows that count, spread over the table, in no step with whatever it repeats; none twice."""
    if isinstance(table, Parted):
        table = table.drawn
    some = None if table.weight is None else np.flatnonzero(table.weight > 0)
    rows = len(table) if some is None else len(some)
    count = min(rows, int(np.clip(_SAMPLE // table.held, 2048, 32768)))
    if count == len(table):
        return table.block(0, count)
    places = np.arange(count) + np.random.default_rng(0).random(count)
    chosen = np.unique((places * (rows / count)).astype(np.intp))
    taken = table.take(chosen if some is None else some[chosen])
    return taken.block(0, len(taken))


class Logistic(LikelihoodInference, LinearClassifier):
    """Logistic regression of two classes or more.

    Parameters
    ----------
    link
        'logit'; with two classes also 'probit', 'cloglog' or 'cauchit'.
    ridge
        Mean loss + ridge/2 |w|^2 is minimised; 0 is maximum likelihood. The intercept is free.
    l1_ratio
        Share of the penalty that is on |w| and not on w^2/2: the elastic net, ridge
        (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2). Coefficients that do not pay are zero.
    standardize
        Whether the penalty is on coefficients of columns with variance one.
    intercept
        False: scores are zero where all features are.
    class_weight
        None, 'balanced', or a weight for each label: what it costs to miss a row of that class.
        Rows are fitted with these weights and `predict` minds them. The intercepts are put back
        afterwards (King & Zeng 2001), so that probabilities are those of the population that was
        sampled: `predict` then need not be the most probable class. With intercept=False there is
        nothing to put back, and probabilities are those of the weighted rows.
    prior
        (K,) priors to predict with, in the order of the labels or as a dict by label, in place of
        the shares of the classes in the rows.
    bias_reduction
        'jeffreys': Firth's penalty, finite for separated classes and less biased for few rows.
    solver
        'auto', 'newton', 'lbfgs' or 'gradient': the answer is the same.
    max_iter
        Passes over the rows at most.
    progress
        Called after every pass with its number, the loss and the largest entry of the gradient.

    Attributes
    ----------
    classes_
        (K,) labels, sorted.
    coef_, intercept_
        In the user's numbers. Of two classes one row, (1, d) and (1,): the score of the second
        class, `classes_[1]`. Of more, (K, d) and (K,), known up to a common row: they sum to zero.
    prior_
        (K,) priors of the posteriors: the shares of the rows, or `prior`.
    separation_
        'none', 'quasi' or 'complete'; None where a penalty makes it no matter.
    separation_found_
        By which columns which classes are separated, if they are.
    converged_
        Whether the gradient is at most 1e-8 in columns of standard deviation one, the Newton
        decrement at most 1e-10, and no class separated.
    n_passes_, n_iter_
        How often the rows were read on the way down.
    loss_path_
        (passes,) mean loss and penalty at each of them.
    link_, feature_names_in_, n_features_in_
        The link, the names of the features if they have any, and how many there are.
    """

    link_: LinkName
    separation_: str | None  # 'none', 'quasi' or 'complete'; None if a penalty makes it no matter
    separation_found_: Separation | None  # by what, if they are
    _kept: ClassFit | None

    def __init__(
        self,
        link: LinkName = "logit",
        *,
        ridge: float = 0.0,
        l1_ratio: float = 0.0,
        standardize: bool = True,
        intercept: bool = True,
        class_weight: Any = None,
        prior: npt.ArrayLike | None = None,
        bias_reduction: Literal["jeffreys"] | None = None,
        solver: Solver = "auto",
        max_iter: int = 1000,
        progress: Callable[[int, float, float], object] | None = None,
    ) -> None:
        self.link = link
        self.ridge = ridge
        self.l1_ratio = l1_ratio
        self.standardize = standardize
        self.intercept = intercept
        self.class_weight = class_weight
        self.prior = prior
        self.bias_reduction = bias_reduction
        self.solver = solver
        self.max_iter = max_iter
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        """A border through zero cannot be where rows want it."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.intercept
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Read the rows until the most likely coefficients are found.

        Rows in parts (`discriminant.rows`, without y) are read once for every step.
        """
        wish = self._wish()
        table = self._open_table(X, y, sample_weight)
        labels = table.schema.labels
        if len(labels) > 2 and wish.link != "logit":
            raise OptionError.of("link", wish.link, f"'logit' for {len(labels)} classes")
        with merge_warnings(), one_blas_thread():
            if wish.l1_ratio and not wish.ridge:
                warn(NoPenaltyWarning.of("l1_ratio", wish.l1_ratio))
            self._fit(table, wish)
        return self

    def _fit(self, table: AnyTable, wish: LogisticOptions) -> None:
        costs = class_weight_factors(self.class_weight, table)
        found = fit_table(table if costs is None else _weighted(table, costs), wish)
        end, apart = found.fit.descent, found.separation
        self.link_ = wish.link
        self.separation_ = None if apart is None else apart.kind
        self.separation_found_ = apart or None
        self.converged_ = end.converged and not apart
        self.n_passes_ = self.n_iter_ = end.passes
        self.loss_path_ = np.array(end.path)
        whole = costs is None and (end.converged or not wish.jeffreys)
        self._kept = found.inference if whole else None
        self._why_not = _why_no_inference(found, wish, weighted=costs is not None)
        self._tell_of_end(found)
        back = costs if wish.intercept else None  # with no intercept, none can be put back
        self._log_cost = np.zeros(len(table.schema.labels)) if back is None else np.log(back)
        share = class_shares(table if costs is None or wish.intercept else _weighted(table, costs))
        self._tilt = self._tilt_of(share, table.schema.labels)
        self._set_rule(table, self._tilted(found.rule))

    def _tilt_of(self, share: Floats, labels: Labels) -> Floats:
        """(K,) what is added to log posteriors: weights taken back, and other priors."""
        self.prior_ = share
        if self.prior is None:
            return -self._log_cost
        self.prior_ = validate_prior(self.prior, labels)
        return np.asarray(np.log(self.prior_) - np.log(share) - self._log_cost)

    def _tilted(self, rule: Any) -> Any:
        """With the logit, priors are intercepts."""
        if self.link_ != "logit" or not self._tilt.any():
            return rule
        tilt = self._tilt if len(rule.intercept) > 1 else self._tilt[1:] - self._tilt[:1]
        return replace(rule, intercept=rule.intercept + tilt)

    # --- its parts: posteriors are those of `rule_` and these two --------------------------------

    @property
    def cost_lift_(self) -> Floats:
        """(K,) log of what an error costs, added to log posteriors by the decision alone."""
        self._check_is_fitted()
        return self._log_cost

    @property
    def prior_lift_(self) -> Floats:
        """(K,) added to log posteriors by other priors and weights; with the logit, in `rule_`."""
        self._check_is_fitted()
        return self._tilt

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any, prior: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """The most probable class of each row, or the least costly by `class_weight`."""
        scores = self._log_scores(X, prior) + self._log_cost
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_log_proba(self, X: Any, prior: npt.ArrayLike | None = None) -> Floats:
        """(n, K) log posterior, exact in the tails."""
        return log_posterior(self._log_scores(X, prior))

    def predict_proba(self, X: Any, prior: npt.ArrayLike | None = None) -> Floats:
        """(n, K) posterior of each class; `prior` in place of the fitted one."""
        return posterior(self._log_scores(X, prior))

    def decision_function(self, X: Any) -> Floats:
        """Scores (n, K), as `predict` compares them; with two classes the difference, (n,).

        These mind `class_weight`: there they are not the logs of `predict_proba`, which are taken
        back to the population, but these plus the log of the weights.
        """
        scores = self._log_scores(X, None) + self._log_cost
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def _log_scores(self, X: Any, prior: npt.ArrayLike | None) -> Floats:
        """(n, K) log posteriors up to what is common to all classes."""
        scores = self._scores(X)
        if self.link_ != "logit":
            with np.errstate(over="ignore", invalid="ignore"):  # tails beyond float64 are -inf
                found = TWO_SIDED[self.link_](scores[:, 0])
            scores = np.column_stack([found.log_zero, found.log_one]) + self._tilt
        elif scores.shape[1] == 1:
            odds = scores[:, 0]
            beyond = odds == np.inf  # counted from the larger one, which is to be finite
            first, second = np.where(beyond, -np.inf, 0.0), np.where(beyond, 0.0, odds)
            scores = np.column_stack([first, second])
        if prior is None:
            return scores
        return np.asarray(
            scores + np.log(validate_prior(prior, self.classes_)) - np.log(self.prior_)
        )

    # --- inference ----------------------------------------------------------------------------

    def inference(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        self._check_is_fitted()
        if self._kept is None:
            raise InferenceError.of_logistic(self._why_not)
        title = "Logistic" if self.link_ == "logit" else f"Logistic, link {self.link_}"
        return self._kept.infer(
            title, passes=self.n_passes_, steps=self.n_iter_, converged=self.converged_
        )

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        assert self._kept is not None
        kept = self._kept
        names = self._schema if self._schema.named else None
        table: AnyTable = as_partitioned(X, y, weight) or open_table(
            X, y, weight=weight, labels=self.classes_, name="Logistic", match=names
        )
        if table.width != self.n_features_in_:
            raise ShapeError.of_width(table.width, self.n_features_in_, "Logistic")
        K = len(self.classes_)
        loss = Softmax(K) if K > 2 else Binary(self.link_)
        read = partial(fold, table)
        objective = PenalisedLoss(read, kept.features, kept.anchor, loss, kept.coordinates, None)
        if self.bias_reduction is None:
            return Peak(objective, kept.theta)
        return Peak(JeffreysLoss(objective, kept.coordinates), kept.theta)

    # --- inside -----------------------------------------------------------------------------------

    def _wish(self) -> LogisticOptions:
        if self.link not in TWO_SIDED:
            raise OptionError.of("link", self.link, f"one of {', '.join(TWO_SIDED)}")
        ridge: Any = self.ridge
        if not (isinstance(ridge, Real) and 0.0 <= float(ridge) < np.inf):
            raise OptionError.of("ridge", ridge, "a number, 0 or more")
        share: Any = self.l1_ratio
        if not (isinstance(share, Real) and 0.0 <= float(share) <= 1.0):
            raise OptionError.of("l1_ratio", share, "a number from 0 to 1")
        if self.solver not in SOLVERS:
            raise OptionError.of("solver", self.solver, f"one of {', '.join(SOLVERS)}")
        if self.bias_reduction not in (None, "jeffreys"):
            raise OptionError.of("bias_reduction", self.bias_reduction, "None or 'jeffreys'")
        if self.bias_reduction and self.solver != "auto":
            raise OptionError.of("solver", self.solver, "'auto' with bias_reduction='jeffreys'")
        if self.bias_reduction and (self.link != "logit" or self.ridge):
            raise OptionError.of(
                "bias_reduction", self.bias_reduction, "None, unless link='logit' and ridge=0"
            )
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise OptionError.of("max_iter", self.max_iter, "a whole number, 1 or more")
        for name in ("standardize", "intercept"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionError.of(name, getattr(self, name), "True or False")
        if not (self.progress is None or callable(self.progress)):
            raise OptionError.of("progress", self.progress, "None or a function")
        return LogisticOptions(
            self.link,
            float(ridge),
            bool(self.standardize),
            bool(self.intercept),
            self.bias_reduction is not None,
            self.solver,
            int(self.max_iter),
            self.progress,
            float(share),
        )

    def _tell_of_end(self, found: TableFit) -> None:
        end, apart = found.fit.descent, found.separation
        if apart:
            warn(SeparationWarning.of(apart.kind, apart.columns, apart.classes))
        elif not end.converged:
            facts = "The fit", end.passes, end.point.max_gradient, GRADIENT
            if self.bias_reduction:
                drop = "drop columns that nearly depend on others"
                warn(NotConvergedWarning.of_gradient(*facts, drop))
            else:
                warn(NotConvergedWarning.of_gradient(*facts))


def _why_no_inference(found: TableFit, wish: LogisticOptions, *, weighted: bool) -> str:
    """Why, and the way out of that."""
    if wish.ridge:
        return f"ridge={wish.ridge:g} biases the estimates. Fit with ridge=0."
    if found.separation:
        return (
            f"the classes are separated ({found.separation.kind}), so that no estimate is finite. "
            'Estimates with bias_reduction="jeffreys" are.'
        )
    if weighted:
        return (
            "class_weight counts rows of some classes more than once. Fit without it, and give "
            "costs to the decision instead (Decision)."
        )
    if wish.jeffreys and not found.fit.descent.converged:
        steep = found.fit.descent.point.max_gradient
        return (
            f"the fit has not converged (the scaled gradient is {steep:.1e}). Raise max_iter, or "
            "drop columns that nearly depend on others."
        )
    if found.wide:
        return "there are more columns than rows. Keep fewer columns."
    return (
        "there are so many coefficients that their curvature was not read. "
        'solver="newton" always reads it.'
    )


def _weighted(table: AnyTable, costs: Floats) -> AnyTable:
    if isinstance(table, Parted):
        return table.weighed(costs)
    weight = costs[table.codes]
    return replace(table, weight=weight if table.weight is None else weight * table.weight)
