"""EasyEnsemble: many under-samples, a classifier for each, and their mean.

Liu, Wu and Zhou (2009). One under-sample of m of the n rows of a frequent class throws most of
them away; T of them, each drawn anew, see the share 1 - (1 - m/n)^T in the mean: of n = T m rows
more than a third are never used. Divided into n/m disjoint parts, every row is used once, as
lecture 5 has it ("divides negative samples into several smaller subsets").

Each under-sample has all rows of the rarest class and as many of every other; the posteriors of the
T classifiers are averaged, and where all are linear that is one product (`models.averaged`).

Moments add, so a classifier made from them reads the rows once for all T: what the under-samples
share is summed once, what they do not once for each, in the same pass (`imbalance.subsets`).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from discriminant.assessment.refit import made_from_moments
from discriminant.engines.engine import anchor_of, fold
from discriminant.engines.local import blas_for
from discriminant.errors import OptionError, gathered
from discriminant.estimators.available import only_if, require_classifier
from discriminant.estimators.base import MomentClassifier
from discriminant.estimators.in_parts import at_hand
from discriminant.estimators.posteriors import share_of, stated_prior
from discriminant.estimators.rebalanced import (
    Rebalanced,
    arrayed,
    classes_of,
    has_posterior,
    log_of,
    no_weights,
    posterior_or_vote,
    ranking_of,
    whole_number,
)
from discriminant.imbalance.drawing import Places, divided, target_of, under_samples
from discriminant.imbalance.subsets import SubsetsReading
from discriminant.models.averaged import MeanRule
from discriminant.models.rules import LinearRule
from discriminant.moments.reading import MomentsReading
from discriminant.posterior import not_probabilistic
from discriminant.table.schema import Codes, Floats, Labels
from discriminant.table.source import Table, open_table


def _ranks(self: Any) -> bool:
    """Whether there are no posteriors, but votes or fitted values that rank the rows."""
    return _votes(self) or not_probabilistic(self) is not None


def _votes(self: Any) -> bool:
    """Whether there are no posteriors, but something that says how sure a vote is."""
    model = self.estimators_[0] if hasattr(self, "estimators_") else self.estimator
    likely = hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
    return not likely and hasattr(model, "decision_function")


_SURE = 1e300  # scores beyond it are bounded, so that means of them are finite


class EasyEnsemble(Rebalanced):
    """The mean of classifiers fitted to under-samples; probabilities stay honest.

    Parameters
    ----------
    estimator
        Any classifier; cloned and fitted to each under-sample. One made from moments (LDA, QDA,
        RDA, NearestMean, Fisher, LeastSquares) reads the rows once for all. One without
        probabilities votes, and `decision_function` breaks ties.
    subsets
        How many under-samples, each drawn anew; some rows are then in none of them. Or 'divide':
        the rows of each frequent class are shuffled and divided into disjoint parts of the size
        of the rarest class, so that every row is used. Parts are as equal as can be: where the
        sizes do not divide they differ by one row, and the fitted prior is the mean over parts.
    strategy
        How many rows of each class they have; see `Resampled`.
    keep_probabilities
        As in `Reweighted`.
    random_state
        Seed of the draws.

    Attributes
    ----------
    estimators_
        The fitted classifiers.
    subset_rows_
        The numbers of the rows of each under-sample.
    n_unused_
        How many rows are in no under-sample; 0 if they are divided.
    class_shares_, fitted_prior_
        (K,) priors of the rows as they came, and of the under-samples; see `Reweighted`.

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
    subset_rows_: list[Places]
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
        """Draw the under-samples and fit a classifier to each; rows have no weights."""
        require_classifier(self.estimator, "EasyEnsemble", "draws rows of each class")
        no_weights(self, others)
        X, y, weight = at_hand(X, y, None, "EasyEnsemble")
        if weight is not None:
            no_weights(self, {"sample_weight": weight})
        divide = isinstance(self.subsets, str) and self.subsets == "divide"
        if isinstance(self.subsets, str) and not divide:
            raise OptionError.of("subsets", self.subsets, "a whole number, 1 or more, or 'divide'")
        if not divide:
            whole_number("subsets", self.subsets)
        X = arrayed(X)
        labels, codes = classes_of(X, y)
        count = np.bincount(codes, minlength=len(labels))
        target = target_of(count, labels, self.strategy, "under")
        random = check_random_state(self.random_state)
        if divide:
            drawn = divided(codes, target, random)
        else:
            drawn = under_samples(codes, target, random, int(self.subsets))
        with gathered():
            models = self._from_moments(X, y, drawn, target.drawn)
            if models is None:
                models = self._from_rows(X, codes, labels, drawn)
        self.estimators_, self.subset_rows_ = models, drawn
        self.n_unused_ = len(codes) - len(np.unique(np.concatenate(drawn)))
        fitted = share_of(models[0], labels[codes[drawn[0]]], None, labels)
        self._hold(models[0], count.astype(np.float64), fitted)
        if divide:
            self.fitted_prior_ = np.mean(
                [
                    _prior_of(model, labels[codes[rows]], labels)
                    for model, rows in zip(models, drawn, strict=True)
                ],
                axis=0,
            )
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of the largest mean posterior, as fitted, or of most votes."""
        self._need_fit()
        scores = self._votes(X) if _votes(self) else self._mean_posterior(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @only_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors: of the rows as they came, or with the classes as fitted."""
        self._need_fit()
        found = self._mean_posterior(X)
        if self.keep_probabilities:
            found *= self.class_shares_ / self.fitted_prior_
            found /= found.sum(axis=1, keepdims=True)
        return found

    @only_if(_ranks)
    def decision_function(self, X: Any) -> Floats:
        """Votes, ties broken by how sure they are, or the mean of outputs that are no posteriors.

        (n, K), with two classes (n,), second less first.
        """
        self._need_fit()
        scores = self._votes(X) if _votes(self) else self._mean_posterior(X)
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return log_of(self._mean_posterior(X))

    def _votes(self, X: Any) -> Floats:
        """(n, K) votes, and less than half of one by the mean of what decides them."""
        votes = sum(posterior_or_vote(model, X) for model in self.estimators_)
        each = [np.clip(ranking_of(model, X), -_SURE, _SURE) for model in self.estimators_]
        sure = np.mean(each, axis=0)
        return np.asarray(votes + sure / (3.0 * (np.abs(sure) + 1.0)))

    def _mean_posterior(self, X: Any) -> Floats:
        if (rule := self._one_product()) is not None:
            first = self.estimators_[0]
            rows = X if first._plain(X) else first._features(X)
            return np.asarray(first._finite(rule.posterior, rows))
        total = sum(posterior_or_vote(model, X) for model in self.estimators_)
        return np.asarray(total / len(self.estimators_))

    def _one_product(self) -> MeanRule | None:
        """All members as one, where each is a linear rule and its posterior that of its scores."""
        plain = MomentClassifier.predict_log_proba
        if any(getattr(type(m), "predict_log_proba", None) is not plain for m in self.estimators_):
            return None
        rules = [model.rule_ for model in self.estimators_]
        return MeanRule.of(rules) if all(isinstance(r, LinearRule) for r in rules) else None

    def _from_rows(self, X: Any, codes: Codes, labels: Labels, drawn: list[Places]) -> list[Any]:
        return [
            clone(self.estimator).fit(_safe_indexing(X, rows), labels[codes[rows]])
            for rows in drawn
        ]

    def _from_moments(
        self, X: Any, y: Any, drawn: list[Places], own: npt.NDArray[np.bool_]
    ) -> list[Any] | None:
        """The classifiers from one reading; None where they need the rows themselves."""
        if not made_from_moments(self.estimator):
            return None
        table = open_table(X, y, name=type(self.estimator).__name__)
        detail = self.estimator.detail_for(min(map(len, drawn)), table.width)
        if detail == "rows":
            return None
        anchor = anchor_of(table)
        reading = MomentsReading(table.schema.labels, table.schema.features, anchor, detail)
        common, *parts = fold(table, SubsetsReading(reading, _apart(drawn, own, table))).parts
        wholes = [common + part for part in parts]
        if any(whole.strained().any() for whole in wholes):
            return None  # sums overflow or vanish: each under-sample is read in units of its own
        if any(self.estimator.needs_rows_for(whole) for whole in wholes):
            return None
        with blas_for(table.width):
            models = [clone(self.estimator).fit_moments(whole) for whole in wholes]
        for model in models:
            model._remember(table.schema.features, table.schema.named)
        return models


def _prior_of(model: Any, y: Labels, labels: Labels) -> Floats:
    """(K,) the priors that a member's posteriors are under."""
    stated = stated_prior(model, labels)
    return share_of(model, y, None, labels) if stated is None else stated


def _apart(drawn: list[Places], own: npt.NDArray[np.bool_], table: Table) -> tuple[Places, ...]:
    """The rows that all under-samples share, and then those of each that they do not."""
    differ = own[table.codes]
    return (np.flatnonzero(~differ), *(rows[differ[rows]] for rows in drawn))
