"""Cost matrices: the cost of each action for each true class.

    cost[action, class] >= 0, and 0 where the action is to predict the true class

The first K actions predict the K classes, in the order of the labels. Other actions may follow,
such as 'call a doctor'. With two classes there are two kinds of errors, and every threshold is
equivalent to a ratio of costs:

    predict + if p > t                     cost[-, +] : cost[+, -] = 1 - t : t
    predict + if y/(1-y) m-/m+ > 1         cost[-, +] : cost[+, -] = m- : m+       (rescaling)

With K classes and thresholds t_k, predicting the class with the largest p_k / t_k has the least
expected cost if every error on a row of class k costs 1 / t_k.

A data frame of costs has a column for each true class, matched by name, and a row for each action.
The names of the actions are the index of a pandas frame, or a text column of any frame. If there
are no names (a default index), the actions are the classes in the order of the columns, and the
diagonal must be 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import CostError, ThresholdError
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import Floats, Labels
from discriminant.table.labels import labels_of_column_names


def is_frame(given: Any) -> bool:
    """Return whether `given` has named columns, as data frames of pandas, Polars and Arrow have."""
    return hasattr(given, "column_names") or hasattr(given, "columns")


def cost_rows(given: Any, labels: list[Any]) -> dict[Hashable, dict[Any, Any]]:
    """Return {action: {label: cost}} from a data frame.

    >>> import pandas as pd
    >>> cost_rows(pd.DataFrame({"b": [5, 0], "a": [0, 1]}, index=["a", "b"]), ["a", "b"])
    {'a': {'b': 5, 'a': 0}, 'b': {'b': 0, 'a': 1}}
    """
    names = given.column_names if hasattr(given, "column_names") else given.columns
    columns = {name: np.asarray(given[name]).tolist() for name in names}
    actions = _pop_action_names(given, columns, labels)
    classes = labels_of_column_names(list(columns), labels)
    classes = list(columns) if classes is None else classes
    if len(classes) != len(labels) or set(classes) != set(labels):
        raise CostError.of_columns(classes, labels)
    cells = list(zip(*columns.values(), strict=True))
    if actions is None:
        if len(cells) != len(classes) or any(cells[k][k] != 0 for k in range(len(cells))):
            raise CostError.of_unnamed(len(cells), classes)
        actions = classes
    for place, action in enumerate(actions):
        if action in actions[:place]:
            raise CostError.duplicate_action(action)
    return {a: dict(zip(classes, row, strict=True)) for a, row in zip(actions, cells, strict=True)}


def _pop_action_names(
    given: Any, columns: dict[Any, list[Any]], labels: list[Any]
) -> list[Any] | None:
    """Return the names of the actions, or None if the frame has no names.

    If the names are a column of the frame, this column is removed from `columns`.
    """
    class_names = {*labels, *map(str, labels)}
    for name, cells in columns.items():
        if name not in class_names and cells and all(isinstance(cell, str) for cell in cells):
            del columns[name]
            return _replace_label_text(cells, labels)
    index = getattr(given, "index", None)
    if index is None or callable(index):
        return None
    names = _replace_label_text(list(index), labels)
    return None if names == list(range(len(names))) and names != labels else names


def _replace_label_text(names: list[Any], labels: list[Any]) -> list[Any]:
    """Replace each name that is the text of a label, `str(label)`, by the label."""
    text = {str(label): label for label in labels}
    return [name if name in labels else text.get(name, name) for name in names]


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Costs of A actions for K true classes."""

    labels: Labels  # (K,)
    actions: tuple[Hashable, ...]  # A names: those of the classes (`labels`), and of other actions
    cost: Floats  # (A, K)

    def __post_init__(self) -> None:
        labels = self.labels.tolist()
        for a, k in np.argwhere(~(np.isfinite(self.cost) & (self.cost >= 0))):
            raise CostError.of_cell(self.actions[a], labels[k], float(self.cost[a, k]))
        for a, k in _diagonal(self.actions, labels):
            if self.cost[a, k]:
                raise CostError.of_diagonal(labels[k], float(self.cost[a, k]))

    @classmethod
    def of(cls, given: Any, labels: Labels) -> Costs:
        """Create from a mapping, a square array or a data frame.

        Parameters
        ----------
        given
            One of three forms. The first form is a mapping {action: {class: cost}}, where costs
            that are not given are 0 for predicting the true class and 1 for predicting another. An
            action that is not a class needs a cost for every class; if no key is a class, the keys
            are the only actions. The second form is a (K, K) array with both axes in the order of
            `labels`. The third form is a data frame with classes as columns and actions as rows, in
            any order.
        labels
            (K,) the classes.

        Examples
        --------
        >>> Costs.of({"ill": {"well": 5}}, np.array(["ill", "well"])).cost
        array([[0., 5.],
               [1., 0.]])
        """
        if isinstance(given, Costs):
            given = given._by_name()
        elif is_frame(given):
            given = cost_rows(given, labels.tolist())
        if isinstance(given, Mapping):
            return cls._of_mapping(given, labels)
        try:
            cost = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise CostError.not_costs(type(given).__name__) from None
        if cost.shape != (len(labels), len(labels)):
            raise CostError.of_shape(cost.shape, labels.tolist())
        return cls(labels, tuple(labels.tolist()), cost)

    @classmethod
    def zero_one(cls, labels: Labels) -> Costs:
        """Return the costs in which every error costs 1."""
        return cls(labels, tuple(labels.tolist()), 1.0 - np.eye(len(labels)))

    @classmethod
    def of_threshold(cls, given: Any, labels: Labels) -> Costs:
        """Create costs for which the decision is the class with the largest posterior / threshold.

        If there are two classes, a single number is the threshold of the second class, and a
        mapping may give the threshold of only one class. Otherwise pass a threshold for each class,
        as a mapping or in the order of the labels.
        """
        limits = _thresholds(given, labels)
        if len(labels) == 2:
            cost = np.array([[0.0, limits[0]], [limits[1], 0.0]]) / limits.sum()
        else:
            cost = (1.0 - np.eye(len(labels))) / limits
        return cls(labels, tuple(labels.tolist()), cost)

    @classmethod
    def _of_mapping(cls, given: Mapping[Any, Any], labels: Labels) -> Costs:
        place = {label: k for k, label in enumerate(labels.tolist())}
        others = [action for action in given if action not in place]
        actions = others if others and len(others) == len(given) else [*place, *others]
        cost = np.ones((len(actions), len(place)))
        for a, action in enumerate(actions):
            if action in place:
                cost[a, place[action]] = 0.0
            if action in given:
                _fill(cost[a], action, given[action], place)
        return cls(labels, tuple(actions), cost)

    def over(self, places: npt.NDArray[np.intp]) -> Costs:
        """Return the costs restricted to the actions at these positions."""
        actions = tuple(self.actions[place] for place in places)
        return Costs(self.labels, actions, self.cost[places])

    def classes_only(self) -> Costs | None:
        """Return the costs restricted to predicting a class.

        Return None if the actions do not include predicting every class.
        """
        if self.actions[: len(self.labels)] != tuple(self.labels.tolist()):
            return None
        return self.over(np.arange(len(self.labels)))

    def ever_exceeds(self, bound: float) -> bool:
        """Return whether a posterior exists for which every action costs more than `bound`."""
        cost_of_equal_posteriors = float(self.cost.mean(axis=1).min())  # usually enough
        return cost_of_equal_posteriors > bound or self.max_least_cost() > bound * (1 + TIE)

    def max_least_cost(self) -> float:
        """Return the expected cost of the best action for the least favourable posterior.

        The result is the maximum over posteriors p of the least expected cost of an action. If
        every error costs 1, the maximum is 1 - 1/K. For a large cost matrix an upper bound is
        returned.
        """
        from scipy.optimize import linprog

        if self.cost.size > _LARGE:
            return float(self.cost.max(axis=1).min())
        A, K = self.cost.shape
        solution = linprog(
            np.append(np.zeros(K), -1.0),
            A_ub=np.column_stack([-self.cost, np.ones(A)]),
            b_ub=np.zeros(A),
            A_eq=np.append(np.ones(K), 0.0)[None],
            b_eq=[1.0],
        )
        return -float(solution.fun or 0.0)

    def _by_name(self) -> dict[Hashable, dict[Any, float]]:
        names = self.labels.tolist()
        rows = zip(self.actions, self.cost.tolist(), strict=True)
        return {action: dict(zip(names, row, strict=True)) for action, row in rows}


_LARGE = 1 << 16  # cells of a cost matrix, above which a cheaper upper bound is used


def cost_threshold(positive: float, negative: float) -> float:
    """Return the threshold of the positive class, given the costs of the two kinds of errors.

    `positive` is the cost of an error on a positive row (a false negative), `negative` the cost of
    an error on a negative row (a false positive). The positive class is predicted if `p * positive
    > (1 - p) * negative`, so the threshold is `negative / (positive + negative)`.

    >>> cost_threshold(9, 1)
    0.1
    """
    return negative / (positive + negative)


def rescaled_odds(log_odds: Floats, *, positive: float, negative: float) -> Floats:
    """Return the (n,) log odds as they would be with balanced classes (rescaling).

    They are log(y/(1-y) m-/m+), where y is the posterior of the positive class, and `positive` = m+
    and `negative` = m- are the numbers of training rows of the two classes.

    >>> rescaled_odds(np.log([0.25]), positive=1.0, negative=4.0).round(12)
    array([0.])
    """
    return np.asarray(log_odds + np.log(negative) - np.log(positive))


def _diagonal(actions: Sequence[Hashable], labels: list[Any]) -> list[tuple[int, int]]:
    place = {label: k for k, label in enumerate(labels)}
    return [(a, place[action]) for a, action in enumerate(actions) if action in place]


def _fill(row: Floats, action: Hashable, given: Any, place: dict[Any, int]) -> None:
    """Write the costs `given` for one action into `row` (K,), which holds the default costs."""
    names = list(place)
    if not isinstance(given, Mapping):
        raise CostError.of_row(action, given, names)
    for label in given:
        if label not in place:
            raise CostError.of_class(action, label, names)
    missing = [name for name in names if name not in given]
    if missing and action not in place:
        raise CostError.of_action(action, missing, names)
    for label, value in given.items():
        try:
            row[place[label]] = float(value)
        except (TypeError, ValueError):
            raise CostError.of_cell(action, label, value) from None


def _thresholds(given: Any, labels: Labels) -> Floats:
    """Return the (K,) thresholds in [0, 1].

    For two classes a single threshold t is enough: the other class has the threshold 1 - t.
    """
    names = labels.tolist()
    if isinstance(given, Mapping):
        known = all(label in names for label in given)
        if known and len(names) == 2 and len(given) == 1:
            ((label, value),) = given.items()
            limit = check_probability(value, f"The threshold of '{label}'")
            return np.array([limit, 1 - limit] if label == names[0] else [1 - limit, limit])
        if not known or len(given) < len(names):
            raise ThresholdError.of_labels(given, names)
        given = [given[name] for name in names]
    if np.ndim(given) == 0:
        limit = check_probability(given, "threshold")
        if len(names) != 2:
            raise ThresholdError.of_labels(given, names)
        return np.array([1.0 - limit, limit])
    if len(given) != len(names):
        raise ThresholdError.of_labels(given, names)
    for name, value in zip(names, given, strict=True):
        if check_probability(value, f"The threshold of '{name}'") == 0.0:
            raise ThresholdError.of_class(name, value)
    return np.array(given, dtype=np.float64)


def check_probability(value: Any, name: str) -> float:
    """Return `value` as a float; raise ThresholdError unless it is a number in [0, 1]."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ThresholdError.of_value(name, repr(value)) from None
    if not 0.0 <= number <= 1.0:
        raise ThresholdError.of_value(name, f"{number:g}")
    return number
