"""Choose features by how well a classifier does on rows it has not seen.

Every candidate of every step is judged by the held-out error or log loss of `cross_validate` on its
columns, to the last digits, but without fitting it: the moments of each training part are swept on
the chosen features and so are the held-out rows, and what one feature more or less changes in a
score is a product (`assessment.swept_folds`; leaving one row out, `assessment.swept_alone`). That
is so for LDA, QDA and RDA; other classifiers are fitted (`assessment.judging`).

The least of many noisy numbers is too good to be true: the criterion of what was chosen is no
estimate of its error. Judge that on other rows, or by choosing anew within each fold.

Which feature comes or goes next: greedy searches, whatever the judge.

    forward     from none: the best one enters, until there are `most`
    backward    from all: the one that is missed least leaves, until there are `least`
    both        forward, and after each entry the least missed leave for as long as that gives a
                better model of its size than any before (Pudil et al. 1994, floating search)

Errors of many models are often the same. Of equal ones that of less log loss is taken, and of those
(up to 1e-12) the first in the order of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.inference.summary import (
    PrintedResult,
    format_number,
    steps_frame,
    text_table as laid_out,
)
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    class_counts,
    fold_numbers,
    is_moment_based,
    warn_missing_classes,
)
from discriminant.assessment.scorers import check_classifier
from discriminant.assessment.selection.refit_criterion import (
    Criterion,
    CriterionName,
    Mask,
    Places,
    RefitCriterion,
)
from discriminant.assessment.selection.sweep import FoldSweep, LeaveOneOutSweep, is_block_wise
from discriminant.engines.dispatch import read_moments
from discriminant.errors import (
    LabelError,
    OptionError,
    PosteriorError,
    TooFewRowsError,
    merge_warnings,
)
from discriminant.models.gaussian.covariance import floor_variances, rounding_variance
from discriminant.posterior import gives_posterior, not_probabilistic
from discriminant.table.blocks import dense
from discriminant.table.memory import Table, as_table

Direction = Literal["forward", "backward", "both"]
_SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """A model of the path."""

    place: int | None  # of the feature that came or went; None at the start
    chosen: Mask  # (d,)
    error: float
    error_se: float
    log_loss: float
    log_loss_se: float

    @property
    def size(self) -> int:
        """How many features."""
        return int(self.chosen.sum())

    def value(self, criterion: CriterionName) -> float:
        """Of the criterion."""
        return self.error if criterion == "error" else self.log_loss

    def se(self, criterion: CriterionName) -> float:
        """Of the criterion."""
        return self.error_se if criterion == "error" else self.log_loss_se


def search_path(
    judge: Criterion, criterion: CriterionName, direction: Direction, *, most: int, least: int
) -> list[SearchState]:
    """Every model on the way."""
    if direction == "backward":
        judge.include_all()
        return list(_down(judge, criterion, least))
    return list(_up(judge, criterion, most, floating=direction == "both"))


def _down(judge: Criterion, criterion: CriterionName, least: int) -> Iterator[SearchState]:
    yield _stand(judge, None)
    while judge.chosen.sum() > least:
        place, _ = best_change(judge, np.flatnonzero(judge.chosen), criterion)
        judge.toggle(place)
        yield _stand(judge, place)


def _up(
    judge: Criterion, criterion: CriterionName, most: int, *, floating: bool
) -> Iterator[SearchState]:
    stand = _stand(judge, None)
    yield stand
    record = {0: stand.value(criterion)}
    while judge.chosen.sum() < most:
        outside = np.flatnonzero(~judge.chosen & ~judge.excluded())
        if not len(outside):
            return
        entered, _ = best_change(judge, outside, criterion)
        judge.toggle(entered)
        stand = _stand(judge, entered)
        record[stand.size] = min(record.get(stand.size, np.inf), stand.value(criterion))
        yield stand
        while floating and stand.size > 2:
            place, value = best_change(judge, np.flatnonzero(judge.chosen), criterion)
            if place == stand.place or value >= record[stand.size - 1] - _SAME:
                break
            judge.toggle(place)
            stand = _stand(judge, place)
            record[stand.size] = value
            yield stand


def best_change(judge: Criterion, places: Places, criterion: CriterionName) -> tuple[int, float]:
    """The feature whose change gives the best model, and the criterion of that."""
    found = judge.evaluate_changes(places, criterion).mean
    least = found.min()
    near = np.flatnonzero(found <= least + _SAME * (1.0 + abs(least)))
    if criterion == "error" and len(near) > 1:
        losses = judge.evaluate_changes(places[near], "log_loss").mean
        near = near[losses <= losses.min() + _SAME * (1.0 + abs(losses.min()))]
    return int(places[near[0]]), float(found[near[0]])


def _stand(judge: Criterion, place: int | None) -> SearchState:
    error, loss = judge.current("error"), judge.current("log_loss")
    numbers = (error.mean, error.se, loss.mean, loss.se)
    return SearchState(place, judge.chosen.copy(), *(float(one[0]) for one in numbers))


_WHAT = "A selection of features"
Choice = Literal["best", "one_se"]
DIRECTIONS, CRITERIA, CHOICES = (
    ("forward", "backward", "both"),
    ("error", "log_loss"),
    ("best", "one_se"),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A model of the path, and which feature came or went to make it."""

    number: int
    entered: str | None
    removed: str | None
    size: int
    error: float  # share of held-out weight given to a wrong class
    error_se: float
    log_loss: float  # mean of -log posterior of the true class
    log_loss_se: float


@dataclass(frozen=True, slots=True, eq=False)
class Selection(PrintedResult):
    """What `select_features` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    features: tuple[str, ...]  # d, that could be chosen
    selected: tuple[str, ...]  # in the order of the columns
    dependent: tuple[str, ...]  # could not enter: constant, or they follow from the last ones in
    stages: tuple[Stage, ...]
    chosen: int  # the number of the stage that was chosen
    model: str
    direction: Direction
    criterion: CriterionName
    folds: int
    choice: str  # why this stage

    def get_support(self, indices: bool = False) -> npt.NDArray[Any]:
        """(d,) which columns are selected, or their places; as scikit-learn's selectors say it."""
        support = np.isin(np.array(self.features, dtype=object), self.selected)
        return np.flatnonzero(support) if indices else support

    @property
    def text(self) -> str:
        """A line for each model of the path, the chosen one starred."""
        head = ["Step", "In", "Entered", "Removed", "Error", "(se)", "Log loss", "(se)", ""]
        lines = laid_out(
            f"{self.direction.capitalize()} selection for {self.model} by held-out "
            f"{self.criterion.replace('_', ' ')}, {self.folds} folds",
            head,
            [_cells(stage, self.chosen) for stage in self.stages],
        )
        lines += ["", f"Chosen: step {self.chosen}, {self.choice}"]
        lines += [f"Selected: {', '.join(self.selected) or 'none'}"]
        if self.dependent:
            lines.append(f"Could not enter: {', '.join(self.dependent)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        plain = {
            name: list(value) if isinstance(value := getattr(self, name), tuple) else value
            for name in (field.name for field in fields(self))
        }
        return plain | {"stages": [asdict(stage) for stage in self.stages]}

    def frame(self) -> Any:
        """The path as a pandas frame, a model in each row."""
        return steps_frame(Stage, self.stages)


@np.errstate(under="ignore")
def select_features(
    estimator: Any,
    X: Any,
    y: Any,
    folds: Any = None,
    *,
    direction: Direction = "forward",
    criterion: CriterionName = "error",
    n_features: int | Literal["auto"] = "auto",
    choice: Choice = "best",
    most: int | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
    tolerance: float = 1e-8,
) -> Selection:
    """Choose features for a classifier by its error or log loss on held-out rows.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier. Candidates of LDA, QDA and RDA (shrunk by a given amount, not
        toward 'scaled_identity') are not fitted; it is the same numbers in less time.
    X, y, folds, groups, sample_weight, seed
        As in `cross_validate`; folds='loo' leaves out one row at a time.
    direction
        'forward', 'backward', or 'both': forward with steps back where they pay (floating).
    criterion
        'error' (of equal errors the least log loss decides, then the order of the columns) or
        'log_loss'.
    n_features
        How many to choose; 'auto': as many as the `choice` among all models of the path says.
    choice
        Of 'auto'. 'best': least criterion, of equal ones the smallest model; 'one_se': the
        smallest model within a standard error of that.
    most
        Where 'auto' stops looking on the way forward; None: when all features are in.
    tolerance
        Least share of its variance within classes that a feature must have of its own to enter.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows = [[0.0, 1.0], [2.0, 0.0], [1.0, 0.5], [9.0, 0.4], [7.0, 0.0], [8.0, 1.0]]
    >>> select_features(LDA(), rows, list("aaabbb"), 3).selected
    ('x0',)
    """
    _check(direction, criterion, choice, tolerance)
    if criterion == "log_loss" and not gives_posterior(estimator):
        name = not_probabilistic(estimator) or type(estimator).__name__
        raise PosteriorError.not_probabilities(name, "criterion='log_loss'")
    check_classifier(estimator)
    table = as_table(X, y, weight=sample_weight, name=_WHAT)
    table = replace(table, features=dense(table.features[:]))
    most = _checked_sizes(n_features, most, table.width)
    with merge_warnings():
        fold = _folds(folds, table, groups, seed, X)
        judge = _judge(estimator, table, fold, tolerance)
        least = 1 if n_features == "auto" else int(n_features)
        stands = search_path(judge, criterion, direction, most=most, least=least)
    names = np.array(table.schema.features, dtype=object)
    dependent = tuple(names[judge.excluded() & ~judge.chosen])
    if n_features != "auto" and n_features not in [stand.size for stand in stands]:
        raise OptionError.too_many_features(int(n_features), stands[-1].size, dependent)
    place, why = _chosen(stands, criterion, n_features, choice)
    return Selection(
        table.schema.features,
        tuple(names[stands[place].chosen]),
        dependent,
        tuple(_stage(i, stand, names) for i, stand in enumerate(stands)),
        place,
        type(estimator).__name__,
        direction,
        criterion,
        int(fold.max()) + 1,
        why,
    )


def _judge(estimator: Any, table: Table, fold: FoldNumbers, tolerance: float) -> Criterion:
    """The quickest that gives the numbers of a refit."""
    moments = read_moments(table, detail="diagonal")
    variance = moments.pooled / moments.weight.sum()
    constant = floor_variances(moments, variance) == 0.0
    family = None
    if hasattr(estimator, "log_density") and is_moment_based(estimator):
        family = getattr(estimator, "family", None)  # a Gaussian density for each class
    if family is None or not is_block_wise(family):
        return RefitCriterion(estimator, table, fold, constant)
    if int(fold.max()) + 1 < len(table):
        return FoldSweep(estimator, table, fold, constant, tolerance=tolerance)
    moving = variance > 4 * rounding_variance(moments.mean)  # a row less moves the means
    if family.linear and family.shrinkage == 0.0 and (moving | constant).all():
        return LeaveOneOutSweep(estimator, table, fold, constant, tolerance=tolerance)
    return RefitCriterion(estimator, table, fold, constant)


def _chosen(
    stands: list[SearchState], criterion: CriterionName, n_features: int | str, choice: Choice
) -> tuple[int, str]:
    """The place of the model chosen, and why."""
    values = np.array([stand.value(criterion) for stand in stands])
    sizes = np.array([stand.size for stand in stands])
    if n_features != "auto":
        wanted = np.flatnonzero(sizes == n_features)
        return int(wanted[values[wanted].argmin()]), f"as many features as asked: {n_features}"
    losses = np.array([stand.log_loss for stand in stands])
    least = int(np.lexsort((losses, sizes, values))[0])
    if choice == "best":
        return least, f"the least {criterion.replace('_', ' ')} of the path"
    bound = values[least] + stands[least].se(criterion)
    near = np.flatnonzero(values <= bound)
    place = int(near[np.lexsort((values[near], sizes[near]))[0]])
    return place, f"the smallest within a standard error of step {least}"


def _folds(folds: Any, table: Table, groups: Any, seed: Any, X: Any) -> FoldNumbers:
    """The fold of each row; of one row each if that is asked."""
    labels, codes = table.schema.labels, table.codes
    if len(labels) < 2:
        raise LabelError.one_class(labels[0] if len(labels) else "none")
    if isinstance(folds, str):
        if folds != "loo" or groups is not None:
            raise OptionError.of("folds", folds, "'loo' without groups, or as in cross_validate")
        folds = np.arange(len(codes))
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    if int(fold.max()) + 1 == len(codes):
        some = codes if table.weight is None else codes[table.weight > 0]
        count = np.bincount(some, minlength=len(labels))
        for k in np.flatnonzero(count < 2):
            raise TooFewRowsError.of_class(labels[k], int(count[k]), 2, "leaving one row out")
    warn_missing_classes(class_counts(codes, table.weight, labels, fold), labels)
    return fold


def _check(direction: str, criterion: str, choice: str, tolerance: float) -> None:
    for name, value, known in (
        ("direction", direction, DIRECTIONS),
        ("criterion", criterion, CRITERIA),
        ("choice", choice, CHOICES),
    ):
        if value not in known:
            raise OptionError.of(name, value, f"one of {', '.join(known)}")
    if not 1e-12 <= tolerance < 1:  # less would let rounding in
        raise OptionError.of("tolerance", tolerance, "from 1e-12 to less than 1")


def _checked_sizes(n_features: Any, most: Any, width: int) -> int:
    """How many features may be in at the same time."""
    for name, value, none in (("n_features", n_features, "auto"), ("most", most, None)):
        if value == none:
            continue
        if not isinstance(value, int | np.integer) or not 1 <= value <= width:
            allowed = f"{none!r} or a number of features, from 1 to {width}"
            raise OptionError.of(name, value, allowed)
    if n_features != "auto":
        return int(n_features)
    return width if most is None else int(most)


def _stage(place: int, stand: SearchState, names: npt.NDArray[Any]) -> Stage:
    name = None if stand.place is None else str(names[stand.place])
    came = stand.place is not None and bool(stand.chosen[stand.place])
    return Stage(
        place,
        name if came else None,
        None if came else name,
        stand.size,
        stand.error,
        stand.error_se,
        stand.log_loss,
        stand.log_loss_se,
    )


def _cells(stage: Stage, chosen: int) -> list[str]:
    numbers = (stage.error, stage.error_se, stage.log_loss, stage.log_loss_se)
    return [
        str(stage.number),
        str(stage.size),
        stage.entered or "",
        stage.removed or "",
        *(format_number(value, 4) for value in numbers),
        "*" if stage.number == chosen else "",
    ]
