"""A fitted model on rows in parts: one pass, and only sums come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.assessment.answers import log_posterior_or_none, said_by
from discriminant.assessment.auc import AUC
from discriminant.assessment.evaluation import Unseen, assess
from discriminant.assessment.measures import Assessment
from discriminant.assessment.scorers import unnamed
from discriminant.assessment.streamed import auc_of
from discriminant.engines.parted import Parted
from discriminant.engines.summing import one_blas_thread, push, total
from discriminant.errors import ColumnNamesError, DiscriminantError, ShapeError, SourceChangedError
from discriminant.moments.ranking import Ranking
from discriminant.moments.tally import Tally
from discriminant.table.cells import Frame
from discriminant.table.learning import Wishes
from discriminant.table.parts import Part, Partial, Source, label_codes
from discriminant.table.schema import Block, Floats, Labels, Places, dense
from discriminant.table.spelling import other_spellings
from discriminant.table.weights import open_weight

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
        return auc_of(self.rankings)


def evaluate_rows(model: Any, rows: Parted, *, unseen: Unseen = "error") -> RankedAssessment:
    """Measure a fitted classifier on rows in parts."""
    knows = _encoding_of(model)
    if knows is None:
        places = _places(model, rows.schema.features)
        reading = EvaluationReading(unnamed(model), rows.schema.labels, places, unseen)
        return rows.fold(reading)
    plan = rows.plan
    wanted, weight = rows.rows_read, plan.weight
    return evaluate_source(
        model, rows.source, target=plan.target, weight=weight, unseen=unseen, rows=wanted
    )


def evaluate_source(
    model: Any,
    source: Source,
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
    Wishes(target, weight, columns=tuple(used)).check_names(source.names)
    found = source.summed(work).checked()
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
    def numbers(self) -> int:
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

    def __call__(self, part: Part) -> Partial[RankedAssessment]:
        """Of the rows of a part."""
        rows = 0
        found: list[tuple[int, RankedAssessment]] = []
        try:
            with one_blas_thread():
                for frame in part.frames(self.columns):
                    if len(frame):
                        push(found, self._of(replace(frame, start=part.start + rows)))
                        rows += len(frame)
        except DiscriminantError as fault:
            return Partial.of_fault(fault, part, rows)
        return Partial(total(found) if found else None, rows)

    def _of(self, frame: Frame) -> RankedAssessment:
        labels, codes = label_codes(frame[self.target], start=frame.start)
        labels = as_known(labels, self.model.classes_)
        weight = None
        if self.weight is not None:
            values, start = frame[self.weight].values, frame.start
            weight = open_weight(values, len(frame), some=False, start=start)
        used = tuple(frame[name] for name in self.used)
        return _assessed(
            self.model, replace(frame, columns=used), labels[codes], weight, self.unseen
        )


def _assessed(
    model: Any, X: Any, truth: Labels, weight: Floats | None, unseen: Unseen
) -> RankedAssessment:
    if weight is not None and not weight.any():
        return RankedAssessment.empty(np.asarray(model.classes_))
    said, others = said_by(model, X)
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
