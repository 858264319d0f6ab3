"""Logistic: logistic regression by maximum likelihood, honest about where it stands.

Rows are read once for their moments and then once for each step. What comes out does not depend
on the way taken, on the units of the columns or on where they are counted from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from discriminant.assessment.class_inference import ClassFit
from discriminant.assessment.inference import Inference
from discriminant.assessment.kept import kept_for_inference
from discriminant.assessment.profile import Peak
from discriminant.engines.engine import anchor_of, fold, read_moments
from discriminant.engines.local import one_blas_thread
from discriminant.errors import (
    InferenceError,
    NotConvergedWarning,
    OptionError,
    SeparationWarning,
    gathered,
    tell,
)
from discriminant.estimators.inferring import Inferring
from discriminant.estimators.linear import LinearClassifier
from discriminant.estimators.spanned import Spanned
from discriminant.models.descent import GRADIENT, PenalisedLoss
from discriminant.models.elastic import Columns, fit_net
from discriminant.models.gaussian import checked_prior
from discriminant.models.logistic import SOLVERS, Fit, Solver, Wish, fit_logistic, fit_scaled
from discriminant.models.rules import LinearRule
from discriminant.models.separation import Separation, separation
from discriminant.models.wide import is_wide
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.columns import ColumnReading
from discriminant.moments.losses import TWO_SIDED, Binary, LinkName, Softmax
from discriminant.moments.slope import Pass
from discriminant.posterior import log_posterior, posterior
from discriminant.table.schema import Block, Floats, is_sparse
from discriminant.table.source import Table, open_table

_LONG = 5_000_000  # numbers of a table that is not read again for digits beyond the tests
_LARGE = 1500  # features of sparse rows; the products of more are not kept
_SAMPLE = 1 << 21  # numbers in the rows that the curvature is sketched from


class Logistic(Inferring, LinearClassifier):
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
        (K,) priors to predict with, in place of the shares of the classes in the rows.
    bias_reduction
        'jeffreys': Firth's penalty, finite for separated classes and less biased for few rows.
    solver
        'auto', 'newton', 'lbfgs' or 'gradient': the answer is the same.
    max_iter
        Passes over the rows at most.
    progress
        Called after every pass with its number, the loss and the largest entry of the gradient.
    """

    link_: LinkName

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Read the rows until the most likely coefficients are found."""
        wish = self._wish()
        table = self._open(X, y, sample_weight)
        wish = replace(wish, foresee=len(table) * table.width > _LONG)
        labels = table.schema.labels
        if len(labels) > 2 and wish.link != "logit":
            raise OptionError.of("link", wish.link, f"'logit' for {len(labels)} classes")
        with gathered(), one_blas_thread():
            self._fit(table, wish)
        return self

    def _fit(self, table: Table, wish: Wish) -> None:
        costs = self._class_costs(table)
        heavy = table if costs is None else _weighted(table, costs)
        self.separation_: str | None = None
        self.separation_found_: Separation | None = None
        self._kept: ClassFit | None = None
        if wish.ridge and wish.l1_ratio:
            found, rule = self._fit_net(heavy, wish)
        elif is_sparse(table.features) and table.width > _LARGE:
            found, rule = self._fit_scaled(heavy, wish)
        elif is_wide(len(table), table.width):
            found, rule = self._fit_wide(heavy, wish)
        else:
            found, rule = self._fit_tall(heavy, wish)
        self.link_ = wish.link
        self.converged_ = found.descent.converged and not self.separation_found_
        self.n_passes_ = self.n_iter_ = found.descent.passes
        self.loss_path_ = np.array(found.descent.path)
        self._tell_of_end(found)
        costs = costs if wish.intercept else None  # with no intercept, none can be put back
        self._tilt = self._tilt_of(table, costs)
        self._log_cost = np.zeros(len(self._tilt)) if costs is None else np.log(costs)
        self._keep(table, self._tilted(rule))

    def _fit_tall(
        self, table: Table, wish: Wish, *, names: tuple[str, ...] | None = None
    ) -> tuple[Fit, LinearRule]:
        read = partial(fold, table)
        moments = read_moments(table, detail="pooled")
        found = fit_logistic(read, moments, _sample(table), wish)
        if not (wish.ridge or wish.jeffreys):
            self._look_for_separation(found, read, moments, names)
        if not (wish.ridge or self.separation_found_ or self.class_weight is not None):
            self._kept = kept_for_inference(found, read, moments, wish.link)
        return found, found.rule(table.schema.labels)

    def _fit_wide(self, table: Table, wish: Wish) -> tuple[Fit, LinearRule]:
        """In the directions that rows span, where columns are standardised already."""
        anchor = anchor_of(table)
        if not wish.intercept:
            anchor = Anchor(np.zeros_like(anchor.origin), anchor.unit)
        spanned = Spanned.of(table, anchor, centred=wish.intercept, standardize=wish.standardize)
        wish = replace(wish, standardize=False)
        found, rule = self._fit_tall(spanned.table, wish, names=table.schema.features)
        self._kept = None
        return found, spanned.widened(rule)

    def _fit_scaled(self, table: Table, wish: Wish) -> tuple[Fit, LinearRule]:
        if not wish.ridge or wish.jeffreys:
            raise OptionError.of(
                "ridge",
                self.ridge,
                f"more than 0 for sparse rows of {table.width} features (1/{len(table)}, one over "
                "the rows, is what liblinear calls C=1), without bias_reduction",
            )
        read = partial(fold, table)
        features = table.schema.features
        sums = read(ColumnReading(features))
        weight = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
        found = fit_scaled(
            read, sums, np.asarray(weight, np.float64), _sample(table), features=features, wish=wish
        )
        return found, found.rule(table.schema.labels)

    def _fit_net(self, table: Table, wish: Wish) -> tuple[Fit, LinearRule]:
        """With absolute values in the penalty: no direction but the columns will do."""
        read = partial(fold, table)
        labels, features = table.schema.labels, table.schema.features
        if is_sparse(table.features) and table.width > _LARGE:
            weight = np.bincount(table.codes, table.weight, minlength=len(labels))
            sums = read(ColumnReading(features))
            heavy = np.asarray(weight, np.float64)
            columns = Columns.of_sums(sums, features=features, weight=heavy)
        else:
            moments = read_moments(table, detail="diagonal")
            columns = Columns.of_moments(moments, intercept=wish.intercept)
        found = fit_net(read, columns, wish)
        return found, found.rule(labels)

    def _tilt_of(self, table: Table, costs: Floats | None) -> Floats:
        """(K,) what is added to log posteriors: weights taken back, and other priors."""
        self.prior_ = share = _shares(table)
        tilt = np.zeros(len(share)) if costs is None else -np.log(costs)
        if self.prior is None:
            return tilt
        self.prior_ = checked_prior(self.prior, table.schema.labels)
        return np.asarray(tilt + np.log(self.prior_) - np.log(share))

    def _tilted(self, rule: Any) -> Any:
        """With the logit, priors are intercepts."""
        if self.link_ != "logit" or not self._tilt.any():
            return rule
        tilt = self._tilt if len(rule.intercept) > 1 else self._tilt[1:] - self._tilt[:1]
        return replace(rule, intercept=rule.intercept + tilt)

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
        """Scores (n, K), as `predict` compares them; with two classes the difference, (n,)."""
        scores = self._log_scores(X, None) + self._log_cost
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def _log_scores(self, X: Any, prior: npt.ArrayLike | None) -> Floats:
        """(n, K) log posteriors up to what is common to all classes."""
        scores = self._scores(X)
        if self.link_ != "logit":
            found = TWO_SIDED[self.link_](scores[:, 0])
            scores = np.column_stack([found.log_zero, found.log_one]) + self._tilt
        elif scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
        if prior is None:
            return scores
        return np.asarray(
            scores + np.log(checked_prior(prior, self.classes_)) - np.log(self.prior_)
        )

    # --- inference ----------------------------------------------------------------------------

    def inference(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        self._need_fit()
        if self._kept is None:
            raise InferenceError.of_logistic(self._why_no_inference())
        title = "Logistic" if self.link_ == "logit" else f"Logistic, link {self.link_}"
        return self._kept.infer(
            title, passes=self.n_passes_, steps=self.n_iter_, converged=self.converged_
        )

    def _peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        assert self._kept is not None
        kept = self._kept
        names = self._schema if self._schema.named else None
        table = open_table(X, y, weight=weight, labels=self.classes_, name="Logistic", match=names)
        K = len(self.classes_)
        loss = Softmax(K) if K > 2 else Binary(self.link_)
        read = partial(fold, table)
        objective = PenalisedLoss(read, kept.features, kept.anchor, loss, kept.coordinates, None)
        return Peak(objective, kept.theta)

    def _why_no_inference(self) -> str:
        if self.separation_found_:
            return f"the classes are separated ({self.separation_})"
        if self.class_weight is not None:
            return "class_weight counts rows of some classes more than once"
        if self.ridge:
            return f"ridge={self.ridge:g} biases the estimates"
        return "there are so many coefficients that their curvature was not read"

    # --- inside -----------------------------------------------------------------------------------

    def _wish(self) -> Wish:
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
        return Wish(
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

    def _class_costs(self, table: Table) -> Floats | None:
        """(K,) what rows of each class count more."""
        labels = table.schema.labels
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return np.asarray(1.0 / (len(labels) * _shares(table)))
        if not isinstance(self.class_weight, Mapping):
            allowed = "None, 'balanced' or a weight for each label"
            raise OptionError.of("class_weight", self.class_weight, allowed)
        known = set(labels.tolist())
        for label, value in self.class_weight.items():
            if label not in known or not (isinstance(value, Real) and 0 < float(value) < np.inf):
                allowed = f"positive and finite, for labels {labels.tolist()}"
                raise OptionError.of("class_weight", self.class_weight, allowed)
        return np.array([float(self.class_weight.get(label, 1.0)) for label in labels.tolist()])

    def _look_for_separation(
        self,
        found: Fit,
        read: Pass,
        moments: ClassMoments,
        names: tuple[str, ...] | None,
    ) -> None:
        """Where overlap is not proved; `names` of the features, if the columns are directions."""
        self.separation_ = "none"
        if found.overlap:
            return
        coef, intercept = found.coordinates.coefficients(found.descent.theta)
        if coef.shape[1] == 1:
            coef, intercept = np.hstack([-coef, coef]), np.hstack([-intercept, intercept])
        apart = separation(
            read,
            anchor=found.anchor,
            features=moments.features,
            labels=moments.labels,
            spread=_spread(moments) / found.anchor.unit,
            start=np.vstack([coef, intercept]),
        )
        self.separation_ = apart.kind
        if apart:
            apart = apart if names is None else replace(apart, columns=names, direction=None)
            self.separation_found_ = apart
            tell(SeparationWarning.of(apart.kind, apart.columns, apart.classes))

    def _tell_of_end(self, found: Fit) -> None:
        end = found.descent
        if end.converged or self.separation_found_:
            return
        tell(NotConvergedWarning.of_gradient("The fit", end.passes, end.point.steepness, GRADIENT))


def _shares(table: Table) -> Floats:
    count = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(count / count.sum())


def _weighted(table: Table, costs: Floats) -> Table:
    weight = costs[table.codes]
    return replace(table, weight=weight if table.weight is None else weight * table.weight)


def _sample(table: Table) -> Block:
    """Rows spread over the table, in no step with whatever it repeats."""
    count = min(len(table), int(np.clip(_SAMPLE // table.held, 2048, 65536)))
    if count == len(table):
        return table.block(0, count)
    places = np.arange(count) + np.random.default_rng(0).random(count)
    rows = (places * (len(table) / count)).astype(np.intp)
    some = table.take(rows)
    return some.block(0, len(some))


def _spread(moments: ClassMoments) -> Floats:
    return np.asarray(np.sqrt(np.diagonal(moments.total()) / moments.weight.sum()))
