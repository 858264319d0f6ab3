"""Cross-validation and assessment of rows in parts: two passes, whatever the number of models.

    pass 1    moments of each fold (`assessment.dealt`)
    algebra   the rule of every model for every training part
    pass 2    every row is scored by all models that have not seen its fold, and counted

What comes out are sums: tallies of each fold, rankings, who is right together with whom. No row is
kept, so nothing grows with the rows. A model that needs more than moments (Logistic) is fitted to
each training part, which reads all rows once for each of its steps: F times as many passes as one
fit takes.

A row goes to the fold that its own values say, copies of a row are dealt round (`table.dealing`).
With the same folds the numbers are those of `cross_validate` in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.base import clone

from discriminant.assessment.auc import AUC, auc
from discriminant.assessment.dealt import Dealt, least_detail
from discriminant.assessment.folds import only_present
from discriminant.assessment.measures import Assessment
from discriminant.assessment.refit import for_classes, made_from_moments
from discriminant.assessment.scorers import ByModel, ByRule, unnamed
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.parted import Parted
from discriminant.errors import DiscriminantError, NeedsMemoryError, OptionError, carried, gathered
from discriminant.moments.class_moments import Detail
from discriminant.moments.held_out import HeldOutReading, HeldOutSums, ModelSums, Scorer
from discriminant.moments.ranking import Ranking
from discriminant.moments.scored import Scored
from discriminant.posterior import gives_posterior
from discriminant.table.schema import Floats, Labels


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutTally:
    """What models say of rows that they have not seen, as sums over the rows."""

    labels: Labels  # (K,)
    tallies: tuple[
        Assessment, ...
    ]  # F: of each fold, some may have no rows; they add up to `tally`
    rankings: tuple[Ranking, ...]  # of the second of two classes, or of each of more

    @classmethod
    def of(cls, labels: Labels, sums: ModelSums, *, probabilistic: bool = True) -> HeldOutTally:
        """Of one model; one that gives no probabilities has no log loss."""
        tallies = [Assessment.of_tally(tally) for tally in sums.tallies]
        if not probabilistic:
            none = Scored.empty(len(labels))
            tallies = [replace(tally, scored=none) for tally in tallies]
        return cls(labels, tuple(tallies), sums.rankings)

    def __repr__(self) -> str:
        """One line: what was held out, and how it went."""
        tally = self.tally
        folds = sum(bool(one.rows.any()) for one in self.tallies)
        return (
            f"HeldOutTally({int(tally.rows.sum())} rows, {len(self.labels)} classes, "
            f"{folds} folds, error={tally.error:.4g}, log_loss={tally.log_loss:.4g})"
        )

    @property
    def tally(self) -> Assessment:
        """Truth by decision, held out: all measures follow from it."""
        return reduce(add, self.tallies)

    @property
    def error(self) -> float:
        """Share of the decided rows, by weight, that are given to a wrong class."""
        return self.tally.error

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN if the model gives no probabilities."""
        return self.tally.log_loss

    @property
    def auc(self) -> AUC | None:
        """Area under the ROC curve: of the second of two classes, or the mean over classes.

        Rows are ranked in bounded memory: `auc.error` says how far it can be off. None where a
        class has no rows, or there are more than 20.
        """
        return auc_of(self.rankings)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Several models on the same held-out rows."""

    held: Mapping[str, HeldOutTally]
    right: Floats  # (M, M) weight of the rows that both of two models have right
    weight: float  # of all rows
    converged: Mapping[str, bool]

    def only(self, first: str, second: str) -> tuple[float, float]:
        """Weight of the rows that only the first has right, and only the second: McNemar's b, c."""
        names = list(self.held)
        i, j = names.index(first), names.index(second)
        both = self.right[i, j]
        return float(self.right[i, i] - both), float(self.right[j, j] - both)


def cross_validate_rows(
    estimator: Any, rows: Parted, folds: Any = None, *, groups: Any = None, seed: int = 0
) -> HeldOutTally:
    """`cross_validate` of rows in parts."""
    found = compare_rows({"model": estimator}, rows, folds, groups=groups, seed=seed)
    return found.held["model"]


def compare_rows(
    models: Mapping[str, Any],
    rows: Parted,
    folds: Any = None,
    *,
    groups: Any = None,
    seed: int = 0,
    ranked: bool = True,
) -> Compared:
    """Several models on the same folds: one pass for all moments, one that scores all models."""
    for model in models.values():
        check_streams(model, rows)
    wanted = least_detail(_detail_of(model) for model in models.values())
    with gathered():
        dealt = Dealt.of(rows, folds, groups=groups, seed=seed, detail=wanted)
        fitted = [fold_scorers(model, dealt) for model in models.values()]
        scorers = tuple(tuple(each) for each in fitted)
        sums = dealt.rows.fold(HeldOutReading(rows.schema.labels, scorers, ranked))
    return compared(models, rows.schema.labels, sums, fitted)


def compared(
    models: Mapping[str, Any],
    labels: Labels,
    sums: HeldOutSums,
    fitted: Sequence[Sequence[Scorer | None]],
) -> Compared:
    """Sums by the names of the models."""
    each = zip(models, sums.models, strict=True)
    held = {
        name: HeldOutTally.of(labels, one, probabilistic=gives_posterior(models[name]))
        for name, one in each
    }
    ended = {name: _converged(some) for name, some in zip(models, fitted, strict=True)}
    return Compared(held, sums.right, sums.weight, ended)


def fold_scorers(model: Any, dealt: Dealt) -> list[Scorer | None]:
    """The model without each fold, ready to score the rows of that fold; None of no rows."""
    if made_from_moments(model):
        return ruled(lambda f: model, dealt)
    found: list[Scorer | None] = [None] * dealt.folds
    for f in dealt.some:
        found[f] = _refitted(model, dealt, f)
    return found


def ruled(model_of: Callable[[int], Any], dealt: Dealt) -> list[Scorer | None]:
    """The same of models made from moments, one for each fold, not yet fitted."""
    found: list[Scorer | None] = [None] * dealt.folds
    with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        rules = pool.map(carried(partial(_ruled, model_of, dealt)), dealt.some)
        for f, scorer in zip(dealt.some, rules, strict=True):
            found[f] = scorer
    return found


def _ruled(model_of: Callable[[int], Any], dealt: Dealt, f: int) -> ByRule:
    model, train = model_of(f), dealt.trains[f]
    present = train.rows > 0
    model = for_classes(model, present, dealt.rows.schema.labels)
    own = only_present(train).reduce(model.detail)
    few = model.needs_rows_for(own)
    rule = model.rule_of(dealt.training(f)) if few else model.rule_from(own)
    return ByRule(model, rule, np.flatnonzero(present), len(present))


def _refitted(model: Any, dealt: Dealt, f: int) -> ByModel:
    labels = dealt.rows.schema.labels
    fitted = for_classes(clone(model), dealt.trains[f].rows > 0, labels).fit(dealt.training(f))
    return ByModel(unnamed(fitted), labels)


def _converged(scorers: Sequence[Scorer | None]) -> bool:
    models = [scorer.model for scorer in scorers if isinstance(scorer, ByModel)]
    return all(bool(getattr(model, "converged_", True)) for model in models)


def _detail_of(model: Any) -> Detail:
    """What moments a model is made from; of one that reads rows, what its start takes."""
    if not made_from_moments(model):
        return "pooled"
    found: Detail = model.detail
    return found


def check_streams(model: Any, rows: Parted) -> None:
    """Refuse what cannot be fitted to rows in parts, before there is any work."""
    name = type(model).__name__
    if hasattr(model, "encode"):
        allowed = f"the classifier inside of {name}: rows in parts are encoded already"
        raise OptionError.of("estimator", name, allowed)
    if not streams(model, rows):
        raise NeedsMemoryError.of(name, rows.source.name, len(rows), len(rows.drawn))


def streams(model: Any, rows: Parted) -> bool:
    """Whether a model can be fitted to rows in parts, as far as its class tells."""
    return rows.whole or (_ours(model) and not _detail_of_rows(model))


def _ours(model: Any) -> bool:
    """Whether a classifier, and what it is made of, knows rows in parts."""
    inner = getattr(model, "estimator", None)
    here = type(model).__module__.split(".")[0] == __name__.split(".")[0]
    return here and (inner is None or _ours(inner))


def _detail_of_rows(model: Any) -> bool:
    """Whether its moments are the rows."""
    return made_from_moments(model) and getattr(model, "detail", None) == "rows"


def auc_of(rankings: Sequence[Ranking], interval: float | None = None) -> AUC | None:
    """Of one class against the other, with an interval; or the mean of each against the rest."""
    if not rankings:
        return None
    level = interval if len(rankings) == 1 else None
    try:
        each = [auc(ranking, interval=level) for ranking in rankings]
    except DiscriminantError:  # a class without rows
        return None
    if len(each) == 1:
        return each[0]
    nan = float("nan")
    return AUC(
        float(np.mean([one.value for one in each])),
        nan,
        nan,
        nan,
        None,
        each[0].weight,
        None,
        {ranking.positive: one.value for ranking, one in zip(rankings, each, strict=True)},
        float(np.mean([one.error for one in each])),
    )
