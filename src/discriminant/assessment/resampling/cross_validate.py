"""Held-out posteriors and decisions: k folds, groups, or one row at a time, mostly without refits.

A model made from moments is fitted to the other folds by adding their moments: rows are read once
to sum them and once to be scored, whatever the number of folds. Leaving one row out changes the
moments by a matrix of rank one, so its score has a closed form: `assessment.leave_one_out`. Any
other classifier is fitted again for every fold: `assessment.refit`. The numbers are the same.

What is measured is what the model does: the class that it predicts, or its decision where it has
`decide`, which need not be the most probable class.

Rows dealt into folds once, summed once, for as many models as one likes.

    part_f    rows of fold f, side by side in memory       moments_f    their moments
    train_f = moments_0 + ... + moments_{F-1} without moments_f        whole = all of them

`cross_validate` reads and sums the rows for one model. Here that is done for all: what is left of a
model made from moments is algebra on `train_f` and one scoring of `part_f`. A model that must see
rows is fitted to the other parts, or to some of their rows where these are very many; held out and
scored are all rows in any case.

Cross-validation and assessment of rows in parts: two passes, whatever the number of models.

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
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.resampling.folds import (
    Dealt,
    FoldNumbers,
    RowNumbers,
    drop_empty_classes,
    fit_rule_without,
    fold_moments,
    fold_numbers,
    is_moment_based,
    least_detail,
    present_classes,
    prior_option,
    refit_folds,
    restrict_prior,
    rows_by_fold,
    sums_without_each,
)
from discriminant.assessment.resampling.leave_one_out import predict_left_out
from discriminant.assessment.resampling.rda_grid import (
    STEPS,
    Candidates,
    Grid,
    grid_losses,
    grid_rows,
    grid_sums,
)
from discriminant.assessment.scorers import (
    ModelScorer,
    PredictionCollector,
    Predictions,
    RuleScorer,
    check_classifier,
    class_scores,
    without_feature_names,
)
from discriminant.engines.engine import anchor_of, read_moments
from discriminant.engines.local import available_threads, blas_context, one_blas_thread
from discriminant.engines.partitioned import PartitionedTable, reject_separate_labels
from discriminant.errors import (
    ClassMissingWarning,
    DiscriminantError,
    LabelError,
    NeedsMemoryError,
    OptionError,
    ShapeError,
    TooFewRowsError,
    WeightError,
    in_thread,
    merge_warnings,
    warn,
)
from discriminant.models.gaussian.covariance import Shrinkage
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.confusion import Actions
from discriminant.moments.held_out import HeldOutReading, HeldOutSums, ModelSums, Scorer
from discriminant.moments.probability_scores import ProbabilityScores
from discriminant.moments.ranking import Ranking
from discriminant.posterior import gives_posterior
from discriminant.table.blocks import Codes, Floats, Labels, Places, dense, is_sparse
from discriminant.table.labels import encode_labels
from discriminant.table.memory import Table, open_table, open_weight

T = TypeVar("T")
_PIECE = 8192  # rows scored at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A table in F parts, with the sums of all but each."""

    table: Table
    fold: FoldNumbers  # (N,)
    rows: tuple[RowNumbers, ...]  # F: numbers of the rows of each part
    parts: tuple[Table, ...]  # F
    trains: tuple[ClassMoments, ...]  # F, or none where models are to be fitted to rows
    whole: ClassMoments | None  # of all rows

    @classmethod
    def of(cls, table: Table, fold: FoldNumbers, *, detail: Detail | None) -> Folded:
        """Deal out the rows, and sum them in a detail; None: do not sum."""
        rows = tuple(rows_by_fold(fold))
        anchor = None if detail is None else anchor_of(table)

        def work(some: RowNumbers) -> tuple[Table, ClassMoments | None]:
            part = _in_rows(table.take(some))
            return part, None if detail is None else read_moments(
                part, detail=detail, anchor=anchor
            )

        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            parts, sums = zip(*pool.map(in_thread(work), rows), strict=True)
        if detail is None:
            return cls(table, fold, rows, parts, (), None)
        trains = tuple(sums_without_each(sums))
        return cls(table, fold, rows, parts, trains, trains[0] + sums[0])

    @classmethod
    def around(
        cls, table: Table, fold: FoldNumbers, trains: Sequence[ClassMoments], whole: ClassMoments
    ) -> Folded:
        """Some rows of a larger table, with the sums over all rows of that."""
        rows = tuple(np.flatnonzero(fold == f) for f in range(len(trains)))
        parts = tuple(_in_rows(table.take(some)) for some in rows)
        return cls(table, fold, rows, parts, tuple(trains), whole)

    def answers(self, estimator: Any) -> tuple[Predictions, tuple[Assessment, ...]]:
        """What models made from the sums of all other parts say of each row, and how each did."""
        return self.answers_by(lambda f: estimator)

    def answers_by(
        self, model_of: Callable[[int], Any]
    ) -> tuple[Predictions, tuple[Assessment, ...]]:
        """The same with a model, not yet fitted, of each part's own."""
        found = Predictions.empty(len(self.table), len(self.table.schema.labels))

        def work(f: int) -> Assessment:
            said = self._scored(f, model_of(f))
            found.fill(
                self.rows[f], np.arange(len(said.log_posterior.T)), said.log_posterior, said.decided
            )
            return self.tally(f, said)

        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            return found, tuple(pool.map(in_thread(work), range(len(self.rows))))

    def _scored(self, f: int, estimator: Any) -> Predictions:
        """What is said of the rows of a part, in their order there."""
        labels, train, part = self.table.schema.labels, self.trains[f], self.parts[f]
        present = train.rows > 0
        model = restrict_prior(estimator, present, labels)
        own = drop_empty_classes(train)
        if model.needs_rows_for(own):
            rule = model.rule_from_table(self.table.take(self._others(f)))
        else:
            rule = model.rule_from(own)
        found, columns = Predictions.empty(len(part), len(labels)), np.flatnonzero(present)
        for lo in range(0, len(part), _PIECE):
            some = slice(lo, lo + _PIECE)
            found.fill(some, columns, *model.predict_with_rule(rule, part.features[some]))
        return found

    def tally(self, f: int, said: Predictions) -> Assessment:
        """How a model did that said so of the rows of a part."""
        part = self.parts[f]
        return Assessment.from_decisions(
            part.codes,
            said.decided,
            labels=part.schema.labels,
            others=said.others,
            log_posterior=said.log_posterior,
            weight=part.weight,
        )

    def tallies(self, said: Predictions) -> tuple[Assessment, ...]:
        """The same of all parts, from what was said of all rows."""
        return tuple(self.tally(f, said.take(rows)) for f, rows in enumerate(self.rows))

    def refitted(
        self, estimator: Any, *, most: int, seed: int, told: Callable[[int], object] = id
    ) -> Refitted:
        """Models fitted to rows of all other parts, to at most so many of them."""
        gathering = PredictionCollector(self.table.schema.labels, len(self.table))
        fit = self.fitting(estimator, most=most, seed=seed, told=told)

        def work(f: int) -> tuple[bool, Floats | None]:
            model, features = fit(f), self.parts[f].features
            able = hasattr(model, "predict_log_proba")
            with nullcontext() if able else merge_warnings():
                gathering.add(model, features, self.rows[f])
            scores = None if able else class_scores(model, features, gathering.labels)
            return bool(getattr(model, "converged_", True)), scores

        done = self._each(estimator, work)
        converged = all(ended for ended, _ in done)
        scores = self._together([scores for _, scores in done])
        return Refitted(gathering.predictions(), scores, self.drawn(most), converged)

    def refits(
        self, estimator: Any, *, most: int, seed: int, told: Callable[[int], object] = id
    ) -> list[Any]:
        """The models themselves, without any asked of rows."""
        return self._each(estimator, self.fitting(estimator, most=most, seed=seed, told=told))

    def fitting(
        self, estimator: Any, *, most: int, seed: int, told: Callable[[int], object]
    ) -> Callable[[int], Any]:
        """What fits the model to at most so many rows of all parts but one."""
        labels = self.table.schema.labels
        if self.table.weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise WeightError.not_supported(type(estimator).__name__)
        draw = np.random.default_rng(seed)
        drawn = [self._some(self._others(f), most, draw) for f in range(len(self.parts))]

        def fit(f: int) -> Any:
            told(f)
            train = _in_rows(self.table.take(drawn[f]))
            present = present_classes(train.codes, train.weight, labels)
            model = restrict_prior(clone(estimator), present, labels)
            more = {} if train.weight is None else {"sample_weight": train.weight}
            return model.fit(dense(train.features), labels[train.codes], **more)

        return fit

    def drawn(self, most: int) -> int:
        """How many rows a model is fitted to, in the largest training part."""
        return min(most, len(self.table) - min(map(len, self.rows)))

    def _each(self, estimator: Any, work: Callable[[int], T]) -> list[T]:
        """Work on all parts, on all cores if that is safe."""
        threads = available_threads() if _our_own(estimator) else 1
        held = one_blas_thread() if threads > 1 else nullcontext()
        with held, ThreadPoolExecutor(threads) as pool:
            return list(pool.map(in_thread(work), range(len(self.parts))))

    def _together(self, scores: Sequence[Floats | None]) -> Floats | None:
        """(N, K) scores of all rows from those of the parts."""
        if scores[0] is None:
            return None
        found = np.empty((scores[0].shape[1], len(self.table))).T
        for rows, some in zip(self.rows, scores, strict=True):
            found[rows] = some
        return found

    def grid(self, candidates: Candidates, *, most: int, seed: int) -> tuple[Grid, list[Grid]]:
        """Losses of RDA models on at most so many held-out rows: of all folds, of all but each."""
        draw = np.random.default_rng(seed)
        share = max(most // len(self.parts), 1)
        jobs = [
            (part, self._some(np.arange(len(part)), share, draw), train)
            for part, train in zip(self.parts, self.trains, strict=True)
        ]
        sums = grid_sums(jobs, candidates)
        others = [[one for g, one in enumerate(sums) if g != f] for f in range(len(sums))]
        every = Grid.of(candidates, sums, self.fold)
        return every, [Grid.of(candidates, some, self.fold) for some in others]

    def _others(self, f: int) -> RowNumbers:
        return np.flatnonzero(self.fold != f)

    @staticmethod
    def _some(rows: RowNumbers, most: int, draw: np.random.Generator) -> RowNumbers:
        if len(rows) <= most:
            return rows
        return np.sort(draw.choice(rows, most, replace=False))


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """What models fitted to rows say."""

    answers: Predictions
    scores: Floats | None  # (N, K), of models without probabilities
    used: int  # rows each was fitted to
    converged: bool


def _in_rows(part: Table) -> Table:
    """Rows side by side, each in one piece, as scoring and the perceptron like them."""
    if is_sparse(part.features):
        return part
    features = np.ascontiguousarray(dense(part.features), dtype=np.float64)
    return Table(part.schema, features, part.codes, part.weight, part.responses)


def _our_own(estimator: Any) -> bool:
    """Whether two of them may be fitted at the same time: others need not allow for that."""
    return type(estimator).__module__.startswith("discriminant.")


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
            none = ProbabilityScores.empty(len(labels))
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
        return auc_of_rankings(self.rankings)


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
    estimator: Any, rows: PartitionedTable, folds: Any = None, *, groups: Any = None, seed: int = 0
) -> HeldOutTally:
    """`cross_validate` of rows in parts."""
    found = compare_rows({"model": estimator}, rows, folds, groups=groups, seed=seed)
    return found.held["model"]


def compare_rows(
    models: Mapping[str, Any],
    rows: PartitionedTable,
    folds: Any = None,
    *,
    groups: Any = None,
    seed: int = 0,
    ranked: bool = True,
) -> Compared:
    """Several models on the same folds: one pass for all moments, one that scores all models."""
    for model in models.values():
        check_supports_partitions(model, rows)
    wanted = least_detail(_detail_of(model) for model in models.values())
    with merge_warnings():
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
    if is_moment_based(model):
        return fold_rules(lambda f: model, dealt)
    found: list[Scorer | None] = [None] * dealt.folds
    for f in dealt.some:
        found[f] = _refitted(model, dealt, f)
    return found


def fold_rules(model_of: Callable[[int], Any], dealt: Dealt) -> list[Scorer | None]:
    """The same of models made from moments, one for each fold, not yet fitted."""
    found: list[Scorer | None] = [None] * dealt.folds
    with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        rules = pool.map(in_thread(partial(_ruled, model_of, dealt)), dealt.some)
        for f, scorer in zip(dealt.some, rules, strict=True):
            found[f] = scorer
    return found


def _ruled(model_of: Callable[[int], Any], dealt: Dealt, f: int) -> RuleScorer:
    model, train = model_of(f), dealt.trains[f]
    present = train.rows > 0
    model = restrict_prior(model, present, dealt.rows.schema.labels)
    own = drop_empty_classes(train).reduce(model.detail)
    few = model.needs_rows_for(own)
    rule = model.rule_from_table(dealt.training(f)) if few else model.rule_from(own)
    return RuleScorer(model, rule, np.flatnonzero(present), len(present))


def _refitted(model: Any, dealt: Dealt, f: int) -> ModelScorer:
    labels = dealt.rows.schema.labels
    fitted = restrict_prior(clone(model), dealt.trains[f].rows > 0, labels).fit(dealt.training(f))
    return ModelScorer(without_feature_names(fitted), labels)


def _converged(scorers: Sequence[Scorer | None]) -> bool:
    models = [scorer.model for scorer in scorers if isinstance(scorer, ModelScorer)]
    return all(bool(getattr(model, "converged_", True)) for model in models)


def _detail_of(model: Any) -> Detail:
    """What moments a model is made from; of one that reads rows, what its start takes."""
    if not is_moment_based(model):
        return "pooled"
    found: Detail = model.detail
    return found


def check_supports_partitions(model: Any, rows: PartitionedTable) -> None:
    """Refuse what cannot be fitted to rows in parts, before there is any work."""
    name = type(model).__name__
    if hasattr(model, "encode"):
        allowed = f"the classifier inside of {name}: rows in parts are encoded already"
        raise OptionError.of("estimator", name, allowed)
    if not supports_partitions(model, rows):
        raise NeedsMemoryError.of(name, rows.source.name, len(rows), len(rows.sample))


def supports_partitions(model: Any, rows: PartitionedTable) -> bool:
    """Whether a model can be fitted to rows in parts, as far as its class tells."""
    return rows.sample_is_complete or (_ours(model) and not _detail_of_rows(model))


def _ours(model: Any) -> bool:
    """Whether a classifier, and what it is made of, knows rows in parts."""
    inner = getattr(model, "estimator", None)
    here = type(model).__module__.split(".")[0] == __name__.split(".")[0]
    return here and (inner is None or _ours(inner))


def _detail_of_rows(model: Any) -> bool:
    """Whether its moments are the rows."""
    return is_moment_based(model) and getattr(model, "detail", None) == "rows"


def auc_of_rankings(rankings: Sequence[Ranking], interval: float | None = None) -> AUC | None:
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


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutPredictions:
    """What models say of rows that they have not seen."""

    labels: Labels  # (K,)
    codes: Codes  # (N,) the true class of each row
    fold: FoldNumbers  # (N,) the fold that held it out
    log_posterior: Floats  # (N, K), -inf for a class that the training rows lacked
    decided: Places  # (N,) what the model does: a place among the labels, then the others
    others: Actions = ()  # decisions that are no classes: REJECT, OUTLIER, actions with a cost
    weight: Floats | None = None  # (N,)
    probabilistic: bool = True  # False: the model gives no probabilities, so there is no log loss

    @classmethod
    def of(
        cls,
        labels: Labels,
        codes: Codes,
        fold: FoldNumbers,
        found: Predictions,
        weight: Floats | None,
        *,
        probabilistic: bool = True,
    ) -> HeldOutPredictions:
        """What was said of rows of known classes."""
        said = found.log_posterior, found.decided, found.others
        return cls(labels, codes, fold, *said, weight, probabilistic)

    def __repr__(self) -> str:
        """One line: what was held out, and how it went."""
        return (
            f"HeldOutPredictions({len(self.codes)} rows, {len(self.labels)} classes, "
            f"{int(self.fold.max()) + 1} folds, error={self.error:.4g}, "
            f"log_loss={self.log_loss:.4g})"
        )

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """(N,) what the model says of each row: the label, or what else it decides."""
        if not self.others:
            return np.asarray(self.labels[self.decided])
        names = np.empty(len(self.labels) + len(self.others), dtype=object)
        names[:] = [*self.labels.tolist(), *self.others]
        return np.asarray(names[self.decided])

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """(N,) whether a row is given to a wrong class; a row that is refused is not."""
        return np.asarray((self.decided != self.codes) & (self.decided < len(self.labels)))

    @property
    def error(self) -> float:
        """Share of the decided rows, by weight, that are given to a wrong class."""
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        decided = weight * (self.decided < len(self.labels))
        return float(decided @ self.wrong / decided.sum()) if decided.any() else float("nan")

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN if the model gives no probabilities."""
        if not self.probabilistic:
            return float("nan")
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        some = np.flatnonzero(weight)  # a row of no weight does not count, however improbable
        own = self.log_posterior[some, self.codes[some]]
        return float(-np.average(own, weights=weight[some]))

    @property
    def tally(self) -> Assessment:
        """Truth by decision, held out: all measures follow from it."""
        return self._tally(slice(None))

    @property
    def tallies(self) -> list[Assessment]:
        """The tally of each fold; they add up to `tally`."""
        return [self._tally(rows) for rows in rows_by_fold(self.fold)]

    def _tally(self, rows: Any) -> Assessment:
        return Assessment.from_decisions(
            self.codes[rows],
            self.decided[rows],
            labels=self.labels,
            others=self.others,
            log_posterior=self.log_posterior[rows] if self.probabilistic else None,
            weight=None if self.weight is None else self.weight[rows],
        )


@overload
def cross_validate(
    estimator: Any,
    X: PartitionedTable,
    y: None = None,
    folds: Any = None,
    *,
    groups: Any = None,
    sample_weight: None = None,
    seed: Any = 0,
) -> HeldOutTally: ...


@overload
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
) -> HeldOutPredictions: ...


@np.errstate(under="ignore")
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
) -> HeldOutPredictions | HeldOutTally:
    """What a model fitted without its fold says of every row: log posteriors and decisions.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier. One made from moments (LDA, QDA, RDA, ...) is not refitted:
        the moments of the other folds are added, which gives the same numbers.
    X, y, sample_weight
        Rows, labels, and weights for fitting and for the averages of the result.
    folds
        How many (default 10: classes spread evenly, shuffled by `seed`); or (N,) the fold of each
        row; or a scikit-learn splitter that holds out every row once.
    groups
        (N,) rows of one group are held out together: one group at a time, or `folds` of them.
    seed
        Of the shuffling.

    Notes
    -----
    Of rows in parts (`discriminant.rows`, without y) only sums come back, a `HeldOutTally`: error,
    log_loss, auc, tally, tallies. Rows are read twice. The fold of a row is found from its own
    values and `seed`, since such rows have no order: classes are spread by chance, and rows that
    are equal are dealt round. `folds` may be the name of a column, a fold for each of its values;
    `groups` one whose values stay together. A model that needs more than moments (Logistic) reads
    all rows once for each step of each fold.

    Examples
    --------
    >>> from discriminant import LDA
    >>> held = cross_validate(LDA(), [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], list("aaabbb"), 3)
    >>> held.log_posterior.shape, held.error
    ((6, 2), 0.0)
    """
    check_classifier(estimator)
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        return cross_validate_rows(estimator, X, folds, groups=groups, seed=seed)
    if y is None:
        raise LabelError.absent("cross_validate")
    labels, codes = _classes(X, y)
    weight = open_weight(sample_weight, len(codes))
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    with merge_warnings():
        if can_add_moments(estimator, X):
            table = _opened(estimator, X, y, weight)
            with blas_context(table.width):
                found = _score_folds(estimator, table, fold)
        else:
            found = refit_folds(estimator, X, labels=labels, codes=codes, weight=weight, fold=fold)
    warn_missing_classes(codes, weight, labels, fold)
    probable = gives_posterior(estimator)
    return HeldOutPredictions.of(labels, codes, fold, found, weight, probabilistic=probable)


@np.errstate(under="ignore")
def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    prior: Literal["refit", "fixed"] = "refit",
) -> HeldOutPredictions:
    """What a model fitted to all the others says of every row: log posteriors and decisions.

    Exact, and in closed form for LDA, QDA and RDA without shrinkage, diagonal LDA, LDA shrunk to
    a multiple of the identity, and NearestMean; other models made from moments are fitted to the
    moments less the row; any other classifier is fitted N times.

    Parameters
    ----------
    estimator, X, y, sample_weight
        As in `cross_validate`. A row is left out with all its weight.
    prior
        'refit': priors that are shares of the rows are those of the remaining rows. 'fixed': they
        stay those of all rows, as R's MASS does with CV=TRUE.

    Examples
    --------
    >>> from discriminant import LDA
    >>> held = leave_one_out(LDA(), [[0.0], [1.0], [3.0], [5.0], [6.0], [8.0]], list("aaabbb"))
    >>> held.predicted.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """
    if prior not in ("refit", "fixed"):
        raise OptionError.of("prior", prior, "'refit' or 'fixed'")
    check_classifier(estimator)
    labels, codes = _classes(X, y)
    weight = open_weight(sample_weight, len(codes))
    some = codes if weight is None else codes[weight > 0]
    count = np.bincount(some, minlength=len(labels))
    for k in np.flatnonzero(count < 2):
        raise TooFewRowsError.of_class(labels[k], int(count[k]), 2, "leaving one row out")
    one_each = np.arange(len(codes))
    with merge_warnings():
        if can_add_moments(estimator, X):
            table = _opened(estimator, X, y, weight)
            with blas_context(table.width):
                found = predict_left_out(estimator, table, fixed_prior=prior == "fixed")
        else:
            model = _with_shares(estimator, codes, weight) if prior == "fixed" else estimator
            found = refit_folds(model, X, labels=labels, codes=codes, weight=weight, fold=one_each)
    probable = gives_posterior(estimator)
    return HeldOutPredictions.of(labels, codes, one_each, found, weight, probabilistic=probable)


@np.errstate(under="ignore")
def rda_grid(
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    pooling: Sequence[float] = STEPS,
    shrinkage: Sequence[Shrinkage] = STEPS,
    prior: Sequence[Any] = (None,),
    family: GaussianFamily | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
) -> Grid:
    """Held-out losses of a whole grid of RDA models, without fitting them one by one.

    Parameters
    ----------
    X, y, folds, groups, sample_weight, seed
        As in `cross_validate`.
    pooling, shrinkage, prior
        What is tried, each with each; pooling 1 is LDA, 0 is QDA. A prior is (K,), or None for
        the shares of the training rows.
    family
        The other options of the covariance (target, denominator, ...): see `GaussianFamily`.

    Examples
    --------
    >>> rows = [[0.0], [1.0], [2.0], [5.0], [6.0], [8.0]]
    >>> tried = rda_grid(rows, list("aaabbb"), pooling=[0.5, 1.0], shrinkage=[0.0], folds=3)
    >>> tried.log_loss.shape, tried.error.max()
    ((2, 1, 1), np.float64(0.0))
    """
    poolings = np.sort(np.asarray(pooling, dtype=np.float64))
    tried = Candidates(family or GaussianFamily(), poolings, tuple(shrinkage), tuple(prior))
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        return grid_rows(X, tried, folds, groups=groups, seed=seed)
    table = open_table(X, y, weight=sample_weight, name="The RDA grid")
    if len(table.schema.labels) < 2:
        raise LabelError.one_class(table.schema.labels[0])
    fold = fold_numbers(folds, table.codes, groups=groups, seed=seed, X=X)
    return grid_losses(table, tried, fold)


def can_add_moments(estimator: Any, X: Any) -> bool:
    """Whether adding moments takes the place of refitting.

    Where features are more than half as many as rows, refitting from rows is the smaller work.
    """
    if not is_moment_based(estimator):
        return False
    rows, width = np.shape(X) if not hasattr(X, "shape") else X.shape[:2]
    return bool(estimator.detail == "diagonal" or 2 * width <= rows)


def _score_folds(estimator: Any, table: Table, fold: FoldNumbers) -> Predictions:
    """What is said of each row, with the moments of the other folds added for each."""
    found = Predictions.empty(len(table), len(table.schema.labels))
    parts = fold_moments(table, fold, estimator.detail)
    for rows, train in zip(rows_by_fold(fold), sums_without_each(parts), strict=True):
        present = train.rows > 0
        model = restrict_prior(estimator, present, table.schema.labels)
        rule = fit_rule_without(model, drop_empty_classes(train), table, rows)
        said = model.predict_with_rule(rule, table.features[rows])
        found.fill(rows, np.flatnonzero(present), *said)
    return found


def _classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    labels, codes = encode_labels(y)
    if len(labels) < 2:
        raise LabelError.one_class(labels[0] if len(labels) else "none")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    return labels, codes


def _opened(estimator: Any, X: Any, y: Any, weight: Floats | None) -> Table:
    return open_table(X, y, weight=weight, name=type(estimator).__name__)


def _with_shares(estimator: Any, codes: Codes, weight: Floats | None) -> Any:
    """The estimator with the shares of all rows as its priors."""
    shares = np.bincount(codes, weight)
    shares = shares / shares.sum()
    found = prior_option(estimator)
    if found is None:
        allowed = f"'refit': {type(estimator).__name__} has no option for its priors"
        raise OptionError.of("prior", "fixed", allowed)
    name, prior = found
    return estimator if prior is not None else clone(estimator).set_params(**{name: shares})


def warn_missing_classes(
    codes: Codes, weight: Floats | None, labels: Labels, fold: FoldNumbers
) -> None:
    """Name every class that some training part lacks: all its rows are in one fold."""
    F, K = int(fold.max()) + 1, len(labels)
    some = None if weight is None else weight > 0
    table = np.bincount(fold * K + codes, some, minlength=F * K).reshape(F, K)
    for k in np.flatnonzero((table > 0).sum(axis=0) == 1):
        f = int(np.flatnonzero(table[:, k])[0])
        found = ClassMissingWarning.of_class(labels[k], f, int(table[f, k]))
        warn(found)
