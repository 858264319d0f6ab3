"""Assess a fitted model on labelled rows (`evaluate`), or given predictions (`assess`).

Labels are encoded and checked here. Errors are raised for a class that the model does not know,
for a decision that is not an action, and for posteriors that are not probabilities. On a
partitioned table a model is evaluated in one pass, which returns only sums.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.classifier_outputs import (
    check_classifier,
    decisions_of,
    log_posterior_or_none,
    without_feature_names,
)
from discriminant.assessment.ranking.auc import AUC
from discriminant.assessment.resampling.held_out_folds import auc_of_rankings
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
    merge_warnings,
)
from discriminant.moments.confusion import Tally, sort_actions
from discriminant.moments.ranking import Ranking
from discriminant.posterior import invalid_probability_rows
from discriminant.table.blocks import Block, Codes, Floats, Labels, Places, check_weight, dense
from discriminant.table.column_cells import Frame, encode_label_cells
from discriminant.table.column_types import ReadOptions
from discriminant.table.labels import (
    as_vector,
    check_same_label_type,
    classes_of_score_columns,
    encode_labels,
    other_spellings,
    union_labels,
)
from discriminant.table.partitioned_source import PartialSum, PartitionedSource, TablePart

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
    """Assess decisions, posteriors or both against the true labels.

    Parameters
    ----------
    truth : array of shape (N,)
        True labels.
    decided : array of shape (N,), optional
        Decisions: labels, REJECT, OUTLIER or one of `actions`. None means the most probable class,
        or the decision that `cost` and `reject` imply for the posteriors.
    log_posterior, posterior : array or data frame of shape (N, K), optional
        Log probabilities or probabilities, for losses and calibration. The columns of a data frame
        are named by the classes; the columns of an array are in the order of `classes`.
    classes : array of shape (K,), optional
        Labels of the classes that the model knows. None means the column names of the data frame,
        or the labels in `truth` and `decided`.
    actions : iterable
        Names of the actions in `decided` that are not classes.
    cost, reject : optional
        As in `Decision`: how to decide from posteriors if `decided` is None.
    sample_weight : array of shape (N,), optional
        Weight of each row.
    unseen : {'error', 'count'}
        How to treat rows of a class that is not among `classes`: 'error' raises an error that lists
        these classes, 'count' includes the rows, which are then never correct.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> assessment = assess(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> assessment.error, assessment.recall.tolist(), assessment.confusion().tolist()
    (0.25, [0.5, 1.0], [[1.0, 0.0], [1.0, 2.0]])
    """
    own, codes = encode_labels(truth)
    n = len(codes)
    for name, value in (("cost", cost), ("reject", reject)):
        if decided is not None and value is not None:
            allowed = "omitted if decisions are given: it defines how to decide from posteriors"
            raise OptionError.of(name, "given", allowed)
    columns_of = classes
    for name, value in (("log_posterior", log_posterior), ("posterior", posterior)):
        columns_of = classes_of_score_columns(
            value, labels=own.tolist(), classes=columns_of, what=name
        )
    known, order = _sorted_classes(columns_of, own)
    logs = _check_posterior(log_posterior, posterior, n, known, order)
    cost_order = known if classes is None else known[_sorted_classes(classes, own)[1]]
    costs = None if cost is None else Costs.of(Costs.of(cost, cost_order), known)
    if decided is None:
        decisions, names = _decide(logs, known, costs, reject)
    else:
        decisions, names = _encode_decisions(decided, n)
    other_actions = {*actions, *(costs.actions if costs else ())}
    if classes is None and decided is not None and logs is None:
        new = [a for a in names if not isinstance(a, Verdict) and a not in other_actions]
        known = union_labels(known, encode_labels(new)[0]) if new else known
    _check_decisions(decisions, names, known, other_actions)
    all_labels = _with_unseen(own, codes, known, unseen)
    others = sort_actions({*names, *other_actions} - set(all_labels.tolist()))
    place = {name: a for a, name in enumerate([*all_labels.tolist(), *others])}
    columns = np.array([place[label] for label in known.tolist()], dtype=np.intp)
    return Assessment.from_decisions(
        np.array([place[label] for label in own.tolist()], dtype=np.intp)[codes],
        np.array([place[name] for name in names], dtype=np.intp)[decisions],
        labels=all_labels,
        others=others,
        log_posterior=_add_unknown_classes(logs, columns, len(all_labels)),
        weight=check_weight(sample_weight, n),
    )


@np.errstate(under="ignore")
def evaluate(
    model: Any, X: Any, y: Any = None, *, sample_weight: Any = None, unseen: Unseen = "error"
) -> Assessment:
    """Assess a fitted classifier on rows whose labels are known.

    If the model has a method `decide`, as `Decision` has, its decisions are assessed, so that
    rejected rows are counted; otherwise its predictions are assessed. Posteriors are assessed too
    if the model has them.

    Parameters
    ----------
    model : classifier
        Fitted; any scikit-learn classifier.
    X, y, sample_weight
        Rows, labels and weights. A partitioned table (`discriminant.rows`) has labels of its own,
        is passed without `y`, and is read once; the result then has the attribute `auc`. A model
        that accepts tables (`Encoded`) encodes the columns itself; any other model is passed the
        encoded features.
    unseen : {'error', 'count'}
        How to treat rows of a class that the model does not know, as in `assess`.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> from discriminant import LDA
    >>> model = LDA().fit([[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], list("aaabbb"))
    >>> evaluate(model, [[0.5], [4.5], [6.0]], list("aab")).recall.tolist()
    [0.5, 1.0]
    """
    if not hasattr(model, "predict"):
        allowed = "a fitted classifier; for labels and predictions, use assess(y_true, y_pred)"
        raise OptionError.of("model", type(model).__name__, allowed)
    check_classifier(model)
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        return evaluate_rows(model, X, unseen=unseen)
    if y is None:
        raise LabelError.absent("evaluate")
    with merge_warnings():  # each prediction of an Encoded encodes the rows again
        decisions, others = decisions_of(model, X)
        log_posterior = log_posterior_or_none(model, X)
    labels = as_vector(y)
    if len(labels) != len(decisions):
        raise ShapeError.of_truth(len(labels), len(decisions))
    return assess(
        y,
        decisions,
        log_posterior=log_posterior,
        classes=np.asarray(model.classes_),
        actions=others,
        sample_weight=sample_weight,
        unseen=unseen,
    )


# --- posteriors ----------------------------------------------------------------------------------


def _sorted_classes(classes: Any, own: Labels) -> tuple[Labels, npt.NDArray[np.intp]]:
    """Return the classes in sorted order, and the index of each given class in that order."""
    if classes is None:
        return own, np.arange(len(own))
    known, order = encode_labels(classes)
    if len(known) < len(order):
        raise LabelError.duplicate_classes(np.asarray(classes).tolist())
    check_same_label_type(own, known)
    return known, order.astype(np.intp)


def _check_posterior(
    log_posterior: Any, posterior: Any, n: int, known: Labels, order: npt.NDArray[np.intp]
) -> Floats | None:
    """Return the log posteriors (n, K) with columns in the order of `known`."""
    if log_posterior is None and posterior is None:
        return None
    if log_posterior is not None and posterior is not None:
        raise OptionError.of("posterior", "given", "omitted if log_posterior is given")
    name = "log_posterior" if posterior is None else "posterior"
    values = np.asarray(log_posterior if posterior is None else posterior, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(known):
        columns = values.shape[1] if values.ndim == 2 else 1
        raise PosteriorError.of_columns(columns, known.tolist())
    if len(values) != n:
        raise ShapeError.of_lengths(name, len(values), n)
    probabilities = values if log_posterior is None else np.exp(np.minimum(values, 1.0))
    for row, row_sum in invalid_probability_rows(probabilities):
        raise PosteriorError.not_normalised(row, row_sum, name)
    with np.errstate(divide="ignore"):
        logs = values if posterior is None else np.log(values)
    return logs if (order == np.arange(len(order))).all() else logs[:, np.argsort(order)]


def _add_unknown_classes(
    logs: Floats | None, columns: npt.NDArray[np.intp], classes: int
) -> Floats | None:
    """Return the log posteriors of all `classes`, (n, classes).

    A class that the model does not know has posterior 0.
    """
    if logs is None or logs.shape[1] == classes:
        return logs
    all_logs = np.full((len(logs), classes), -np.inf)
    all_logs[:, columns] = logs
    return all_logs


# --- decisions -----------------------------------------------------------------------------------


def _decide(
    logs: Floats | None, known: Labels, costs: Costs | None, reject: Any
) -> tuple[Codes, list[Any]]:
    if logs is None:
        raise OptionError.of("decided", None, "given, unless log_posterior= or posterior= is")
    if reject is None:
        names = list(known.tolist() if costs is None else costs.actions)
        return least_cost(logs, costs)[0], names
    return _encode_decisions(
        decided_by(logs, labels=known, costs=costs, reject=Reject.of(reject)), len(logs)
    )


def _encode_decisions(decided: Any, n: int) -> tuple[Codes, list[Any]]:
    """Return the index of each decision in the list of distinct decisions, and that list."""
    decisions = as_vector(decided)
    if len(decisions) != n:
        raise ShapeError.of_lengths("decided", len(decisions), n)
    if decisions.dtype.kind != "O":
        names, codes = encode_labels(decisions)
        return codes, names.tolist()
    missing = [row for row, value in enumerate(decisions) if value is None or value != value]
    if missing:
        raise LabelError.undecided(missing)
    index: dict[Any, int] = {}
    codes = np.fromiter((index.setdefault(d, len(index)) for d in decisions), np.intp, count=n)
    return codes, list(index)


def _check_decisions(
    decisions: Codes, names: list[Any], known: Labels, other_actions: set[Hashable]
) -> None:
    """Raise an error unless every decision is a class, REJECT, OUTLIER or a named action."""
    allowed = {*known.tolist(), *other_actions}
    count = np.bincount(decisions, minlength=len(names))
    unknown = {
        name: int(rows)
        for name, rows in zip(names, count, strict=True)
        if name not in allowed and not isinstance(name, Verdict)
    }
    if unknown:
        raise LabelError.unknown_decisions(unknown, known.tolist())


def _with_unseen(own: Labels, codes: Codes, known: Labels, unseen: Unseen) -> Labels:
    """Return the classes of the model; with unseen='count', the unknown classes follow."""
    if unseen not in ("error", "count"):
        raise OptionError.of("unseen", unseen, "'error' or 'count'")
    classes = set(known.tolist())
    count = np.bincount(codes, minlength=len(own))
    new = {label: int(c) for label, c in zip(own.tolist(), count, strict=True)}
    new = {label: c for label, c in new.items() if label not in classes}
    if new and unseen == "error":
        raise LabelError.unseen(new, known.tolist())
    return union_labels(known, own)


# --- partitioned tables --------------------------------------------------------------------------

_MAX_RANKED_CLASSES = 20  # with more classes, no rankings (and so no AUC) are computed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankedAssessment(Assessment):
    """Assessment that also ranks the rows by their scores, for the AUC."""

    # one ranking for the second of two classes; for more classes, one for each
    rankings: tuple[Ranking, ...] = ()

    def __add__(self, other: Tally) -> RankedAssessment:
        both = Assessment.__add__(self, other)
        theirs = other.rankings if isinstance(other, RankedAssessment) else ()
        if not self.rankings or not theirs:
            return replace(both, rankings=self.rankings or theirs)
        pairs = zip(self.rankings, theirs, strict=True)
        return replace(both, rankings=tuple(a + b for a, b in pairs))

    @property
    def auc(self) -> AUC | None:
        """Area under the ROC curve of the second of two classes; for more classes, the mean AUC.

        Rows are ranked in bounded memory, so the area is approximate; `auc.error` bounds its error.
        """
        return auc_of_rankings(self.rankings)


def evaluate_rows(
    model: Any, rows: PartitionedTable, *, unseen: Unseen = "error"
) -> RankedAssessment:
    """Assess a fitted classifier on a partitioned table."""
    if encoding_of(model) is None:
        places = _feature_places(model, rows.schema.features)
        reading = EvaluationReading(
            without_feature_names(model), rows.schema.labels, places, unseen
        )
        return rows.fold(reading)
    target, weight = rows.plan.target, rows.plan.weight
    return evaluate_source(
        model, rows.source, target=target, weight=weight, unseen=unseen, rows=rows.rows_read
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
    """Assess, on a partitioned source, a classifier that accepts tables.

    `rows` is the expected number of rows, if known. If the source has a different number of rows,
    an error is raised.
    """
    used = [column.name for column in encoding_of(model).used]
    work = EvaluationWork(model, tuple(used), target, weight, unseen)
    ReadOptions(target, weight, columns=tuple(used)).check_names(source.names)
    result = source.map_reduce(work).check()
    if rows is not None and result.rows != rows:
        raise SourceChangedError.of_rows(source.name, rows, result.rows)
    if result.total is None:
        raise ShapeError.no_rows(0)
    return result.total


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationReading:
    """Assess a model on each block of encoded rows, as a `Reading` for one pass over a table."""

    model: Any
    labels: Labels  # (K,) classes of the rows
    places: Places | None  # indices, in a row, of the features of the model
    unseen: Unseen

    @property
    def summary_size(self) -> int:
        """Size of the assessment that `read` returns."""
        return 10 * len(self.labels) ** 2

    def read(self, block: Block) -> RankedAssessment:
        """Return the assessment of one block."""
        features = np.asarray(dense(block.features), dtype=np.float64)
        if self.places is not None:
            features = features[:, self.places]
        truth = self.labels[block.codes]
        return _assess_ranked(self.model, features, truth, block.weight, self.unseen)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationWork:
    """Task that assesses, on one part of a source, a model that accepts tables."""

    model: Any
    used: tuple[str, ...]
    target: str
    weight: str | None
    unseen: Unseen

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read: the columns of the model, the labels and the weights."""
        weight = [] if self.weight is None else [self.weight]
        return tuple(dict.fromkeys([*self.used, self.target, *weight]))

    def __call__(self, part: TablePart) -> PartialSum[RankedAssessment]:
        """Return the assessment of one part of the source."""
        rows = 0
        sums: list[tuple[int, RankedAssessment]] = []
        try:
            with one_blas_thread():
                for frame in part.frames(self.columns):
                    if len(frame):
                        tree_push(sums, self._assess(replace(frame, start=part.start + rows)))
                        rows += len(frame)
        except DiscriminantError as error:
            return PartialSum.from_error(error, part, rows)
        return PartialSum(tree_total(sums) if sums else None, rows)

    def _assess(self, frame: Frame) -> RankedAssessment:
        labels, codes = encode_label_cells(frame[self.target], start=frame.start)
        labels = match_spelling(labels, self.model.classes_)
        weight = None
        if self.weight is not None:
            values, start = frame[self.weight].values, frame.start
            weight = check_weight(values, len(frame), some=False, start=start)
        X = replace(frame, columns=tuple(frame[name] for name in self.used))
        return _assess_ranked(self.model, X, labels[codes], weight, self.unseen)


def _assess_ranked(
    model: Any, X: Any, truth: Labels, weight: Floats | None, unseen: Unseen
) -> RankedAssessment:
    if weight is not None and not weight.any():
        return RankedAssessment.empty(np.asarray(model.classes_))
    decisions, others = decisions_of(model, X)
    logs = log_posterior_or_none(model, X)
    classes = np.asarray(model.classes_)
    tally = assess(
        truth,
        decisions,
        log_posterior=logs,
        classes=classes,
        actions=others,
        sample_weight=weight,
        unseen=unseen,
    )
    sums = tally.rows, tally.weight, tally.weight2, tally.scored
    rankings = () if logs is None else _rankings(logs, classes, truth, weight)
    return RankedAssessment(tally.labels, tally.actions, *sums, rankings)


def _rankings(
    logs: Floats, classes: Labels, truth: Labels, weight: Floats | None
) -> tuple[Ranking, ...]:
    names = classes.tolist()
    if len(names) > _MAX_RANKED_CLASSES:
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


def match_spelling(labels: Labels, classes: Labels) -> Labels:
    """Return labels in the spelling of the model's classes: a file may store numbers as text.

    >>> match_spelling(np.array([1.0, 2.0, 7.0]), np.array(["1", "2"])).tolist()
    ['1', '2', '7.0']
    """
    known = {str(label): label for label in np.asarray(classes).tolist()}
    known |= {other: known[text] for other, text in other_spellings(list(known)).items()}
    return np.array([known.get(str(label), label) for label in labels.tolist()])


def encoding_of(model: Any) -> Any:
    """Return the column encoding of a model or of a model nested in it; None without encoding."""
    while model is not None:
        if hasattr(model, "encoding_"):
            return model.encoding_
        model = getattr(model, "estimator_", None)
    return None


def _feature_places(model: Any, features: Sequence[str]) -> Places | None:
    """Return the index in `features` of each feature of a model.

    Return None if the model's features are exactly `features`.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or list(names) == list(features):
        return None
    missing = [name for name in names if name not in features]
    if missing:
        raise ColumnNamesError.of_missing(missing, [n for n in features if n not in set(names)])
    return np.array([list(features).index(name) for name in names], dtype=np.intp)
