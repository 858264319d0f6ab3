"""Feature selection by the held-out error or log loss of a classifier.

The criterion of every candidate equals the result of `cross_validate` on its columns. For LDA, QDA
and RDA no candidate is fitted: the moments of each training set and the held-out rows are swept on
the selected features, so that adding or removing a feature changes a score by a simple product
(`selection.sweep`). Other classifiers are refitted (`selection.refit_criterion`).

The criterion of the selected model is the least of many noisy numbers, so it is too optimistic as
an estimate of the error. Estimate the error on other rows, or repeat the selection in each fold.

Greedy searches, with any criterion:

    forward     start with no features; add the best one until there are `most`
    backward    start with all features; remove the one whose removal is best until there are
                `least`
    both        as forward; after each addition, features are removed as long as the model is better
                than every earlier model of the same size (Pudil et al. 1994, floating search)

Many models have equal errors. Ties are broken by log loss, and then (up to 1e-12) by the order of
the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.classifier_outputs import check_classifier
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_number,
    steps_frame,
    text_table,
)
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    class_counts,
    fold_numbers,
    is_moment_based,
    warn_classes_in_one_fold,
)
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
from discriminant.table.blocks import Floats, dense
from discriminant.table.memory import Table, as_table

Direction = Literal["forward", "backward", "both"]
_TIE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """A model on the path of a search: its features and its criteria."""

    place: int | None  # index of the feature added or removed; None at the start
    chosen: Mask  # (d,) True where the feature is in the model
    error: float
    error_se: float
    log_loss: float
    log_loss_se: float

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.chosen.sum())

    def value(self, criterion: CriterionName) -> float:
        """Return the value of a criterion."""
        return self.error if criterion == "error" else self.log_loss

    def se(self, criterion: CriterionName) -> float:
        """Return the standard error of a criterion."""
        return self.error_se if criterion == "error" else self.log_loss_se


def search_path(
    evaluator: Criterion, criterion: CriterionName, direction: Direction, *, most: int, least: int
) -> list[SearchState]:
    """Return all models on the path of a search, in order."""
    if direction == "backward":
        evaluator.include_all()
        return list(_backward(evaluator, criterion, least))
    return list(_forward(evaluator, criterion, most, floating=direction == "both"))


def _backward(evaluator: Criterion, criterion: CriterionName, least: int) -> Iterator[SearchState]:
    yield _state(evaluator, None)
    while evaluator.chosen.sum() > least:
        place, _ = best_change(evaluator, np.flatnonzero(evaluator.chosen), criterion)
        evaluator.toggle(place)
        yield _state(evaluator, place)


def _forward(
    evaluator: Criterion, criterion: CriterionName, most: int, *, floating: bool
) -> Iterator[SearchState]:
    state = _state(evaluator, None)
    yield state
    best = {0: state.value(criterion)}  # best criterion so far, by number of features
    while evaluator.chosen.sum() < most:
        outside = np.flatnonzero(~evaluator.chosen & ~evaluator.excluded())
        if not len(outside):
            return
        entered, _ = best_change(evaluator, outside, criterion)
        evaluator.toggle(entered)
        state = _state(evaluator, entered)
        best[state.size] = min(best.get(state.size, np.inf), state.value(criterion))
        yield state
        while floating and state.size > 2:
            place, value = best_change(evaluator, np.flatnonzero(evaluator.chosen), criterion)
            if place == state.place or value >= best[state.size - 1] - _TIE:
                break
            evaluator.toggle(place)
            state = _state(evaluator, place)
            best[state.size] = value
            yield state


def best_change(
    evaluator: Criterion, places: Places, criterion: CriterionName
) -> tuple[int, float]:
    """Return the feature whose addition or removal is best, and the criterion of that model."""
    values = evaluator.evaluate_changes(places, criterion).mean
    ties = np.flatnonzero(_ties_with_least(values))
    if criterion == "error" and len(ties) > 1:
        ties = ties[_ties_with_least(evaluator.evaluate_changes(places[ties], "log_loss").mean)]
    return int(places[ties[0]]), float(values[ties[0]])


def _ties_with_least(values: Floats) -> Mask:
    least = values.min()
    return np.asarray(values <= least + _TIE * (1.0 + abs(least)))


def _state(evaluator: Criterion, place: int | None) -> SearchState:
    error, loss = evaluator.current("error"), evaluator.current("log_loss")
    numbers = (error.mean, error.se, loss.mean, loss.se)
    return SearchState(place, evaluator.chosen.copy(), *(float(values[0]) for values in numbers))


Choice = Literal["best", "one_se"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A model on the path of a search, and the feature added or removed to reach it."""

    number: int
    entered: str | None
    removed: str | None
    size: int
    error: float  # weighted share of misclassified held-out rows
    error_se: float
    log_loss: float  # mean of -log posterior of the true class
    log_loss_se: float


@dataclass(frozen=True, slots=True, eq=False)
class Selection(PrintedResult):
    """Result of `select_features`: the selected features and the path of the search."""

    features: tuple[str, ...]  # names of the d candidate features
    selected: tuple[str, ...]  # selected features, in the order of the columns
    # features that could not enter: constant, or collinear with those selected last
    dependent: tuple[str, ...]
    stages: tuple[Stage, ...]
    chosen: int  # number of the selected stage
    model: str
    direction: Direction
    criterion: CriterionName
    folds: int
    choice: str  # why this stage was selected

    def get_support(self, indices: bool = False) -> npt.NDArray[Any]:
        """Return the selected columns as a mask, (d,), or as indices, as scikit-learn does."""
        support = np.isin(np.array(self.features, dtype=object), self.selected)
        return np.flatnonzero(support) if indices else support

    @property
    def text(self) -> str:
        """One line for each model on the path, with a star for the selected one."""
        head = ["Step", "In", "Entered", "Removed", "Error", "(se)", "Log loss", "(se)", ""]
        lines = text_table(
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
        """Return the result as a dictionary of plain numbers, lists and texts."""
        plain = {
            name: list(value) if isinstance(value := getattr(self, name), tuple) else value
            for name in (field.name for field in fields(self))
        }
        return plain | {"stages": [asdict(stage) for stage in self.stages]}

    def frame(self) -> Any:
        """Return the path as a pandas frame, with a row for each model."""
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
    """Select features for a classifier by its error or log loss on held-out rows.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier. For LDA, QDA and RDA (with a given amount of shrinkage, not
        toward 'scaled_identity') candidates are scored without fitting them, which gives the same
        numbers faster.
    X, y, folds, groups, sample_weight, seed
        As in `cross_validate`; folds='loo' leaves out one row at a time.
    direction : {'forward', 'backward', 'both'}
        'both' searches forward, and steps back where that improves the model (floating search).
    criterion : {'error', 'log_loss'}
        Criterion to minimise. Models with equal errors are ranked by log loss, then by the order of
        the columns.
    n_features : int or 'auto'
        Number of features to select. With 'auto', `choice` selects among all models on the path.
    choice : {'best', 'one_se'}
        How 'auto' selects. 'best': the model with the smallest criterion; among ties the one with
        the fewest features. 'one_se': the smallest model within one standard error of the best.
    most : int, optional
        Largest number of features that 'auto' tries in a forward search; None means all.
    tolerance : float
        A feature can enter only if the selected features leave at least this share of its
        within-class variance unexplained.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows = [[0.0, 1.0], [2.0, 0.0], [1.0, 0.5], [9.0, 0.4], [7.0, 0.0], [8.0, 1.0]]
    >>> select_features(LDA(), rows, list("aaabbb"), 3).selected
    ('x0',)
    """
    _check_options(direction, criterion, choice, tolerance)
    if criterion == "log_loss" and not gives_posterior(estimator):
        name = not_probabilistic(estimator) or type(estimator).__name__
        raise PosteriorError.not_probabilities(name, "criterion='log_loss'")
    check_classifier(estimator)
    table = as_table(X, y, weight=sample_weight, name="A selection of features")
    table = replace(table, features=dense(table.features[:]))
    most = _largest_size(n_features, most, table.width)
    with merge_warnings():
        fold = _assign_folds(folds, table, groups, seed, X)
        evaluator = _fastest_criterion(estimator, table, fold, tolerance)
        least = 1 if n_features == "auto" else int(n_features)
        path = search_path(evaluator, criterion, direction, most=most, least=least)
    names = np.array(table.schema.features, dtype=object)
    dependent = tuple(names[evaluator.excluded() & ~evaluator.chosen])
    if n_features != "auto" and n_features not in [state.size for state in path]:
        raise OptionError.too_many_features(int(n_features), path[-1].size, dependent)
    place, why = _choose(path, criterion, n_features, choice)
    return Selection(
        table.schema.features,
        tuple(names[path[place].chosen]),
        dependent,
        tuple(_stage(i, state, names) for i, state in enumerate(path)),
        place,
        type(estimator).__name__,
        direction,
        criterion,
        int(fold.max()) + 1,
        why,
    )


def _fastest_criterion(
    estimator: Any, table: Table, fold: FoldNumbers, tolerance: float
) -> Criterion:
    """Return the fastest criterion that gives the same numbers as fits of all candidates."""
    moments = read_moments(table, detail="diagonal")
    variance = moments.pooled / moments.weight.sum()
    constant = floor_variances(moments, variance) == 0.0
    family = getattr(estimator, "fixed_family", None) if is_moment_based(estimator) else None
    if family is None or not is_block_wise(family):
        return RefitCriterion(estimator, table, fold, constant)
    if int(fold.max()) + 1 < len(table):
        return FoldSweep(estimator, table, fold, constant, tolerance=tolerance)
    # the bound is multiplied by 4, since leaving a row out moves the means
    clear = variance > 4 * rounding_variance(moments.mean)
    if family.linear and family.shrinkage == 0.0 and (clear | constant).all():
        return LeaveOneOutSweep(estimator, table, fold, constant, tolerance=tolerance)
    return RefitCriterion(estimator, table, fold, constant)


def _choose(
    path: list[SearchState], criterion: CriterionName, n_features: int | str, choice: Choice
) -> tuple[int, str]:
    """Return the index of the selected model and the reason."""
    values = np.array([state.value(criterion) for state in path])
    sizes = np.array([state.size for state in path])
    if n_features != "auto":
        places = np.flatnonzero(sizes == n_features)
        reason = f"the requested number of features, {n_features}"
        return int(places[values[places].argmin()]), reason
    losses = np.array([state.log_loss for state in path])
    best = int(np.lexsort((losses, sizes, values))[0])
    if choice == "best":
        return best, f"the least {criterion.replace('_', ' ')} of the path"
    near = np.flatnonzero(values <= values[best] + path[best].se(criterion))
    place = int(near[np.lexsort((values[near], sizes[near]))[0]])
    return place, f"the smallest model within one standard error of step {best}"


def _assign_folds(folds: Any, table: Table, groups: Any, seed: Any, X: Any) -> FoldNumbers:
    """Return the fold of each row; for 'loo' each row has a fold of its own."""
    labels, codes = table.schema.labels, table.codes
    if len(labels) < 2:
        raise LabelError.one_class(labels[0] if len(labels) else "none")
    if isinstance(folds, str):
        if folds != "loo" or groups is not None:
            raise OptionError.of("folds", folds, "'loo' without groups, or as in cross_validate")
        folds = np.arange(len(codes))
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    if int(fold.max()) + 1 == len(codes):
        counted = codes if table.weight is None else codes[table.weight > 0]
        count = np.bincount(counted, minlength=len(labels))
        for k in np.flatnonzero(count < 2):
            raise TooFewRowsError.of_class(labels[k], int(count[k]), 2, "leaving one row out")
    warn_classes_in_one_fold(class_counts(codes, table.weight, labels, fold), labels)
    return fold


def _check_options(direction: str, criterion: str, choice: str, tolerance: float) -> None:
    for name, value, allowed in (
        ("direction", direction, ("forward", "backward", "both")),
        ("criterion", criterion, ("error", "log_loss")),
        ("choice", choice, ("best", "one_se")),
    ):
        if value not in allowed:
            raise OptionError.of(name, value, f"one of {', '.join(allowed)}")
    if not 1e-12 <= tolerance < 1:  # with a smaller tolerance, rounding error could enter
        raise OptionError.of("tolerance", tolerance, "from 1e-12 to less than 1")


def _largest_size(n_features: Any, most: Any, width: int) -> int:
    """Return the largest number of features that the search may reach."""
    for name, value, default in (("n_features", n_features, "auto"), ("most", most, None)):
        if value == default:
            continue
        if not isinstance(value, int | np.integer) or not 1 <= value <= width:
            allowed = f"{default!r} or a number of features, from 1 to {width}"
            raise OptionError.of(name, value, allowed)
    if n_features != "auto":
        return int(n_features)
    return width if most is None else int(most)


def _stage(number: int, state: SearchState, names: npt.NDArray[Any]) -> Stage:
    name = None if state.place is None else str(names[state.place])
    added = state.place is not None and bool(state.chosen[state.place])
    entered, removed = (name, None) if added else (None, name)
    criteria = state.error, state.error_se, state.log_loss, state.log_loss_se
    return Stage(number, entered, removed, state.size, *criteria)


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
