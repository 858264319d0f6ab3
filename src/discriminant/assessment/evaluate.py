"""Two doors to an `Assessment`: truth and what was said of it, or a fitted model and rows.

Here labels become codes, and whatever does not fit is told: a class that the model does not know,
a decision that is no action, posteriors that are none.

A fitted model on rows in parts: one pass, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.ranking.auc import AUC
from discriminant.assessment.resampling.held_out import auc_of_rankings
from discriminant.assessment.scorers import (
    check_classifier,
    decisions_of,
    log_posterior_or_none,
    without_feature_names,
)
from discriminant.decision.actions import Reject, Verdict, decided as decided_by, least_cost
from discriminant.decision.costs import Costs
from discriminant.engines.partitioned_table import PartitionedTable, reject_separate_labels
from discriminant.engines.summation import one_blas_thread, tree_push, tree_total
from discriminant.errors import (
    ColumnNamesError,
    DiscriminantError,
    LabelError,
    OptionError,
    PosteriorError,
    ShapeError,
    SourceChangedError,
)
from discriminant.moments.confusion import Tally, sort_actions
from discriminant.moments.ranking import Ranking
from discriminant.posterior import off_one
from discriminant.table.blocks import Block, Codes, Floats, Labels, Places, check_weight, dense
from discriminant.table.cells import Frame, encode_label_cells
from discriminant.table.column_types import ReadOptions
from discriminant.table.labels import (
    as_vector,
    check_same_kind,
    classes_of_columns,
    encode_labels,
    other_spellings,
    union_labels,
)
from discriminant.table.partitioned import PartialSum, PartitionedSource, TablePart

Unseen = Literal["error", "count"]


@np.errstate(under="ignore")
def assess(
    truth: Any,
    decided: Any = None,
    *,
    log_posterior: Any = None,
    posterior: Any = None,
    classes: Any = None,
    actions: Iterable[Hashable] = (),
    cost: Any = None,
    reject: Any = None,
    sample_weight: Any = None,
    unseen: Unseen = "error",
) -> Assessment:
    """Measure decisions, posteriors or both against the truth.

    Parameters
    ----------
    truth
        (N,) true labels.
    decided
        (N,) what was decided: labels, REJECT, OUTLIER or one of `actions`. None: the most probable
        class, or what `cost` and `reject` make of the posteriors.
    log_posterior, posterior
        (N, K) logarithms or probabilities, for losses and calibration. The columns of a data frame
        are named by the classes; those of an array are as in `classes`.
    classes
        (K,) labels of the classes that the model knows. None: those that the columns are named by,
        or those of the truth, and of the decisions.
    actions
        Names of actions that are no classes, where `decided` has such.
    cost, reject
        As in `Decision`: how to decide from posteriors, where `decided` is None.
    sample_weight
        (N,) how often each row counts.
    unseen
        Rows of a class that is not among `classes`: 'error' lists them, 'count' counts them, never
        right.

    Examples
    --------
    >>> found = assess(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> found.error, found.recall.tolist(), found.confusion().tolist()
    (0.25, [0.5, 1.0], [[1.0, 0.0], [1.0, 2.0]])
    """
    own, codes = encode_labels(truth)
    n = len(codes)
    _check_one_way(decided, cost, reject)
    known, order = _known(_named(log_posterior, posterior, own, classes), own)
    logs = _logs(log_posterior, posterior, n, known, order)
    given = known if classes is None else known[_known(classes, own)[1]]  # as an array of costs is
    costs = None if cost is None else Costs.of(Costs.of(cost, given), known)
    if decided is None:
        said, names = _from_posteriors(logs, known, costs, reject)
    else:
        said, names = _coded(decided, n)
    allowed = {*actions, *(costs.actions if costs else ())}
    if classes is None and decided is not None and logs is None:
        found = [name for name in names if not isinstance(name, Verdict) and name not in allowed]
        known = union_labels(known, encode_labels(found)[0]) if found else known
    _check_decisions(said, names, known, allowed)
    all_labels = _with_unseen(own, codes, known, unseen)
    others = sort_actions({*names, *allowed} - set(all_labels.tolist()))
    place = {name: a for a, name in enumerate([*all_labels.tolist(), *others])}
    columns = np.array([place[label] for label in known.tolist()], dtype=np.intp)
    return Assessment.from_decisions(
        np.array([place[label] for label in own.tolist()], dtype=np.intp)[codes],
        np.array([place[name] for name in names], dtype=np.intp)[said],
        labels=all_labels,
        others=others,
        log_posterior=_spread_out(logs, columns, len(all_labels)),
        weight=check_weight(sample_weight, n),
    )


@np.errstate(under="ignore")
def evaluate(
    model: Any, X: Any, y: Any = None, *, sample_weight: Any = None, unseen: Unseen = "error"
) -> Assessment:
    """Measure a fitted classifier, ours or any, on rows whose labels are known.

    What it decides is measured where it has `decide`, as `Decision` has, so that rejected rows
    show; else what it predicts. Its posteriors are measured if it has any.

    Rows in parts (`discriminant.rows`) come without y and are read once; what is found then has
    `auc` too. A model that takes tables (`Encoded`) encodes their columns itself, another is given
    the features that these rows became.

    >>> from discriminant import LDA
    >>> model = LDA().fit([[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], list("aaabbb"))
    >>> evaluate(model, [[0.5], [4.5], [6.0]], list("aab")).recall.tolist()
    [0.5, 1.0]
    """
    check_classifier(model)
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        return evaluate_rows(model, X, unseen=unseen)
    if y is None:
        raise LabelError.absent("evaluate")
    said, others = decisions_of(model, X)
    labels = as_vector(y)
    if len(labels) != len(said):
        raise ShapeError.of_truth(len(labels), len(said))
    return assess(
        y,
        said,
        log_posterior=log_posterior_or_none(model, X),
        classes=np.asarray(model.classes_),
        actions=others,
        sample_weight=sample_weight,
        unseen=unseen,
    )


def _check_one_way(decided: Any, cost: Any, reject: Any) -> None:
    """Decisions are given, or are to be made, and not both."""
    for name, value in (("cost", cost), ("reject", reject)):
        if decided is not None and value is not None:
            allowed = "left out where decisions are given: it says how to decide from posteriors"
            raise OptionError.of(name, "given", allowed)


# --- posteriors ----------------------------------------------------------------------------------


def _named(log_posterior: Any, posterior: Any, own: Labels, classes: Any) -> Any:
    """The class of each column: as a data frame names it, or else as `classes` says."""
    for name, given in (("log_posterior", log_posterior), ("posterior", posterior)):
        classes = classes_of_columns(given, found=own.tolist(), classes=classes, what=name)
    return classes


def _known(classes: Any, own: Labels) -> tuple[Labels, npt.NDArray[np.intp]]:
    """The classes in order, and the place in that order of each as given."""
    if classes is None:
        return own, np.arange(len(own))
    known, order = encode_labels(classes)
    if len(known) < len(order):
        raise LabelError.duplicate_classes(np.asarray(classes).tolist())
    check_same_kind(own, known)
    return known, order.astype(np.intp)


def _logs(
    log_posterior: Any, posterior: Any, n: int, known: Labels, order: npt.NDArray[np.intp]
) -> Floats | None:
    """(n, K) logarithms, columns in the order of `known`."""
    if log_posterior is None and posterior is None:
        return None
    if log_posterior is not None and posterior is not None:
        raise OptionError.of("posterior", "given", "left out where log_posterior is given")
    name = "log_posterior" if posterior is None else "posterior"
    found = np.asarray(log_posterior if posterior is None else posterior, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != len(known):
        columns = found.shape[1] if found.ndim == 2 else 1
        raise PosteriorError.of_columns(columns, known.tolist())
    if len(found) != n:
        raise ShapeError.of_lengths(name, len(found), n)
    for row, row_sum in off_one(found if log_posterior is None else np.exp(np.minimum(found, 1.0))):
        raise PosteriorError.not_normalised(row, row_sum, name)
    with np.errstate(divide="ignore"):
        logs = found if posterior is None else np.log(found)
    return logs if (order == np.arange(len(order))).all() else logs[:, np.argsort(order)]


def _spread_out(logs: Floats | None, columns: npt.NDArray[np.intp], classes: int) -> Floats | None:
    """(n, classes) with posterior 0 for the classes that the model does not know."""
    if logs is None or logs.shape[1] == classes:
        return logs
    found = np.full((len(logs), classes), -np.inf)
    found[:, columns] = logs
    return found


# --- decisions -----------------------------------------------------------------------------------


def _from_posteriors(
    logs: Floats | None, known: Labels, costs: Costs | None, reject: Any
) -> tuple[Codes, list[Any]]:
    if logs is None:
        raise OptionError.of("decided", None, "given, or log_posterior= or posterior=")
    if reject is None:
        names = list(known.tolist() if costs is None else costs.actions)
        return least_cost(logs, costs)[0], names
    return _coded(decided_by(logs, labels=known, costs=costs, reject=Reject.of(reject)), len(logs))


def _coded(decided: Any, n: int) -> tuple[Codes, list[Any]]:
    """Places in a list of the distinct decisions."""
    said = as_vector(decided)
    if len(said) != n:
        raise ShapeError.of_lengths("decided", len(said), n)
    if said.dtype.kind != "O":
        names, places = encode_labels(said)
        return places, names.tolist()
    missing = [row for row, value in enumerate(said) if value is None or value != value]
    if missing:
        raise LabelError.undecided(missing)
    place: dict[Any, int] = {}
    codes = np.fromiter((place.setdefault(v, len(place)) for v in said), dtype=np.intp, count=n)
    return codes, list(place)


def _check_decisions(said: Codes, names: list[Any], known: Labels, allowed: set[Hashable]) -> None:
    """Every decision is a class, a refusal or an action that was named."""
    classes = {*known.tolist(), *allowed}
    strange = [
        place
        for place, name in enumerate(names)
        if name not in classes and not isinstance(name, Verdict)
    ]
    if strange:
        count = np.bincount(said, minlength=len(names))
        named = {names[place]: int(count[place]) for place in strange}
        raise LabelError.unknown_decisions(named, known.tolist())


def _with_unseen(own: Labels, codes: Codes, known: Labels, unseen: Unseen) -> Labels:
    """The classes of the model and, if they are to be counted, those it does not know."""
    if unseen not in ("error", "count"):
        raise OptionError.of("unseen", unseen, "'error' or 'count'")
    classes = set(known.tolist())
    count = np.bincount(codes, minlength=len(own))
    new = {label: int(c) for label, c in zip(own.tolist(), count, strict=True)}
    new = {label: c for label, c in new.items() if label not in classes}
    if new and unseen == "error":
        raise LabelError.unseen(new, known.tolist())
    return union_labels(known, own)


_RANKED = 20  # classes; of more, no ranking is kept


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankedAssessment(Assessment):
    """An assessment that knows how scores ranked the rows."""

    rankings: tuple[Ranking, ...] = ()  # of the second of two classes, or of each of more

    def __add__(self, other: Tally) -> RankedAssessment:
        """Over the rows of both."""
        both = Assessment.__add__(self, other)
        theirs = other.rankings if isinstance(other, RankedAssessment) else ()
        if not self.rankings or not theirs:
            return replace(both, rankings=self.rankings or theirs)
        pairs = zip(self.rankings, theirs, strict=True)
        return replace(both, rankings=tuple(a + b for a, b in pairs))

    @property
    def auc(self) -> AUC | None:
        """Area under the ROC curve: of the second of two classes, or the mean over classes.

        Rows are ranked in bounded memory: `auc.error` says how far it can be off.
        """
        return auc_of_rankings(self.rankings)


def evaluate_rows(
    model: Any, rows: PartitionedTable, *, unseen: Unseen = "error"
) -> RankedAssessment:
    """Measure a fitted classifier on rows in parts."""
    knows = _encoding_of(model)
    if knows is None:
        places = _places(model, rows.schema.features)
        reading = EvaluationReading(
            without_feature_names(model), rows.schema.labels, places, unseen
        )
        return rows.fold(reading)
    plan = rows.plan
    wanted, weight = rows.rows_read, plan.weight
    return evaluate_source(
        model, rows.source, target=plan.target, weight=weight, unseen=unseen, rows=wanted
    )


def evaluate_source(
    model: Any,
    source: PartitionedSource,
    *,
    target: str,
    weight: str | None = None,
    unseen: Unseen = "error",
    rows: int | None = None,
) -> RankedAssessment:
    """Measure a classifier that takes tables on a source that was not opened: it knows columns.

    `rows` is how many there are to be, where that is known.
    """
    used = [column.name for column in _encoding_of(model).used]
    work = EvaluationWork(model, tuple(used), target, weight, unseen)
    ReadOptions(target, weight, columns=tuple(used)).check_names(source.names)
    found = source.map_reduce(work).check()
    if rows is not None and found.rows != rows:
        raise SourceChangedError.of_rows(source.name, rows, found.rows)
    if found.total is None:
        raise ShapeError.no_rows(0)
    return found.total


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationReading:
    """A model on features."""

    model: Any
    labels: Labels  # (K,) of the rows
    places: Places | None  # where the features of the model are among those of a row
    unseen: Unseen

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        K = len(self.labels)
        return 10 * K * K

    def read(self, block: Block) -> RankedAssessment:
        """Of the rows of one block."""
        features = np.asarray(dense(block.features), dtype=np.float64)
        if self.places is not None:
            features = features[:, self.places]
        truth = self.labels[block.codes]
        return _assessed(self.model, features, truth, block.weight, self.unseen)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationWork:
    """A model that takes tables, on the cells of a part."""

    model: Any
    used: tuple[str, ...]
    target: str
    weight: str | None
    unseen: Unseen

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the model, labels and weights."""
        more = [self.target, *([] if self.weight is None else [self.weight])]
        return tuple(dict.fromkeys([*self.used, *more]))

    def __call__(self, part: TablePart) -> PartialSum[RankedAssessment]:
        """Of the rows of a part."""
        rows = 0
        found: list[tuple[int, RankedAssessment]] = []
        try:
            with one_blas_thread():
                for frame in part.frames(self.columns):
                    if len(frame):
                        tree_push(found, self._of(replace(frame, start=part.start + rows)))
                        rows += len(frame)
        except DiscriminantError as fault:
            return PartialSum.from_error(fault, part, rows)
        return PartialSum(tree_total(found) if found else None, rows)

    def _of(self, frame: Frame) -> RankedAssessment:
        labels, codes = encode_label_cells(frame[self.target], start=frame.start)
        labels = as_known(labels, self.model.classes_)
        weight = None
        if self.weight is not None:
            values, start = frame[self.weight].values, frame.start
            weight = check_weight(values, len(frame), some=False, start=start)
        used = tuple(frame[name] for name in self.used)
        return _assessed(
            self.model, replace(frame, columns=used), labels[codes], weight, self.unseen
        )


def _assessed(
    model: Any, X: Any, truth: Labels, weight: Floats | None, unseen: Unseen
) -> RankedAssessment:
    if weight is not None and not weight.any():
        return RankedAssessment.empty(np.asarray(model.classes_))
    said, others = decisions_of(model, X)
    logs = log_posterior_or_none(model, X)
    classes = np.asarray(model.classes_)
    found = assess(
        truth,
        said,
        log_posterior=logs,
        classes=classes,
        actions=others,
        sample_weight=weight,
        unseen=unseen,
    )
    sums = found.rows, found.weight, found.weight2, found.scored
    rankings = () if logs is None else _rankings(logs, classes, truth, weight)
    return RankedAssessment(found.labels, found.actions, *sums, rankings)


def _rankings(
    logs: Floats, classes: Labels, truth: Labels, weight: Floats | None
) -> tuple[Ranking, ...]:
    names = classes.tolist()
    if len(names) > _RANKED:
        return ()
    if len(names) == 2:
        with np.errstate(invalid="ignore"):
            odds = logs[:, 1] - logs[:, 0]
        scores = [np.where(np.isnan(odds), 0.0, odds)]
        names = names[1:]
    else:
        scores = list(logs.T)
    return tuple(
        Ranking.of(score, np.asarray(truth == name), positive=name, weight=weight)
        for name, score in zip(names, scores, strict=True)
    )


def as_known(labels: Labels, classes: Labels) -> Labels:
    """Labels as the model has them: a file may hold as text what another holds as numbers.

    >>> as_known(np.array([1.0, 2.0, 7.0]), np.array(["1", "2"])).tolist()
    ['1', '2', '7.0']
    """
    known = {str(label): label for label in np.asarray(classes).tolist()}
    known |= {other: known[text] for other, text in other_spellings(list(known)).items()}
    return np.array([known.get(str(label), label) for label in labels.tolist()])


def _encoding_of(model: Any) -> Any:
    """What the model knows of columns, however deep inside; None if nothing."""
    while model is not None:
        if hasattr(model, "encoding_"):
            return model.encoding_
        model = getattr(model, "estimator_", None)
    return None


def _places(model: Any, features: Sequence[str]) -> Places | None:
    """Where the features of a model are among these; None: they are these."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or list(names) == list(features):
        return None
    missing = [name for name in names if name not in features]
    if missing:
        raise ColumnNamesError.of_missing(missing, [n for n in features if n not in set(names)])
    return np.array([list(features).index(name) for name in names], dtype=np.intp)
