"""What each action costs where each class is true, by names.

    cost[action, class] >= 0, and 0 where the action is to say the class that is true

Actions are the classes themselves, in the order of their labels, and after them any others, such as
'call a doctor'. With two classes two errors are all there is to weigh, and everything that is said
of thresholds is a cost matrix:

    say + where p > t                  cost[-, +] : cost[+, -] = 1 - t : t
    say + where y/(1-y) m-/m+ > 1      cost[-, +] : cost[+, -] = m- : m+       (rescaling)

With K classes, the largest p_k / t_k is the least expected cost of cost[., k] = 1 / t_k.

Costs in a data frame of any make: a column for each true class, a row for each action.

Columns are matched by name. Rows are named by the index of a pandas frame, or by one column of
texts, which any frame may have. Rows without names, as those of an index that only counts, are the
classes in the order of the columns; their diagonal must be 0, or they are refused.
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
from discriminant.table.labels import as_labels


def is_frame(given: Any) -> bool:
    """Whether columns can be asked for by name: pandas, Polars, Arrow and their like."""
    return hasattr(given, "column_names") or hasattr(given, "columns")


def cost_rows(given: Any, labels: list[Any]) -> dict[Hashable, dict[Any, Any]]:
    """Costs of each action by the labels of the classes.

    >>> import pandas as pd
    >>> cost_rows(pd.DataFrame({"b": [5, 0], "a": [0, 1]}, index=["a", "b"]), ["a", "b"])
    {'a': {'b': 5, 'a': 0}, 'b': {'b': 0, 'a': 1}}
    """
    columns = {name: np.asarray(given[name]).tolist() for name in _names(given)}
    actions = _taken_actions(given, columns, labels)
    classes = as_labels(list(columns), labels)
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


def _names(given: Any) -> list[Any]:
    return list(given.column_names if hasattr(given, "column_names") else given.columns)


def _taken_actions(
    given: Any, columns: dict[Any, list[Any]], labels: list[Any]
) -> list[Any] | None:
    """Names of the rows, taken out of the columns if they are there; None: they have none."""
    called = {*labels, *map(str, labels)}
    for name, cells in columns.items():
        if name not in called and cells and all(isinstance(cell, str) for cell in cells):
            del columns[name]
            return _as_known(cells, labels)
    index = getattr(given, "index", None)
    if index is None or callable(index):
        return None
    found = _as_known(list(index), labels)
    return None if found == list(range(len(found))) and found != labels else found


def _as_known(names: list[Any], labels: list[Any]) -> list[Any]:
    """Labels that are no texts may be told by their texts."""
    text = {str(label): label for label in labels}
    return [name if name in labels else text.get(name, name) for name in names]


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Costs of A actions where K classes may be true."""

    labels: Labels  # (K,)
    actions: tuple[Hashable, ...]  # A names: of classes, as in `labels`, and others
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
        """From a mapping, a square array or a data frame.

        Parameters
        ----------
        given
            {action: {class: cost}}: where nothing is said, a right decision costs 0 and a wrong one
            1; an action that is no class says its cost for every class, and a mapping without any
            class has no other actions than its own. Or a (K, K) array, both sides in the order of
            `labels`. Or a data frame with classes as columns and actions as rows, in any order:
            see `decision.frames`.
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
            found = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise CostError.not_costs(type(given).__name__) from None
        if found.shape != (len(labels), len(labels)):
            raise CostError.of_shape(found.shape, labels.tolist())
        return cls(labels, tuple(labels.tolist()), found)

    @classmethod
    def zero_one(cls, labels: Labels) -> Costs:
        """Every error costs 1."""
        return cls(labels, tuple(labels.tolist()), 1.0 - np.eye(len(labels)))

    @classmethod
    def of_threshold(cls, given: Any, labels: Labels) -> Costs:
        """From thresholds: the class with the largest posterior for its threshold is decided.

        A number is that of the second of two classes; else one for each class, as a mapping or in
        the order of the labels. In a mapping of two classes, one may be left to follow.
        """
        limits = _limits(given, labels)
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
        """The actions at these places alone."""
        actions = tuple(self.actions[place] for place in places)
        return Costs(self.labels, actions, self.cost[places])

    def classes_only(self) -> Costs | None:
        """The actions that are classes, all of them; None where they are not, so 0 and 1 hold."""
        if self.actions[: len(self.labels)] != tuple(self.labels.tolist()):
            return None
        return self.over(np.arange(len(self.labels)))

    def ever_exceeds(self, bound: float) -> bool:
        """Whether some posterior makes every action cost more than `bound`."""
        at_equal_shares = float(self.cost.mean(axis=1).min())  # mostly enough to know
        return at_equal_shares > bound or self.dearest() > bound * (1 + TIE)

    def dearest(self) -> float:
        """Upper bound of the least expected cost: the most that any posterior makes one pay.

        It is the value of a game, max over p of min over actions; with 0 and 1 it is 1 - 1/K.
        """
        from scipy.optimize import linprog

        if self.cost.size > _LARGE:
            return float(self.cost.max(axis=1).min())
        A, K = self.cost.shape
        found = linprog(
            np.append(np.zeros(K), -1.0),
            A_ub=np.column_stack([-self.cost, np.ones(A)]),
            b_ub=np.zeros(A),
            A_eq=np.append(np.ones(K), 0.0)[None],
            b_eq=[1.0],
        )
        return -float(found.fun or 0.0)

    def _by_name(self) -> dict[Hashable, dict[Any, float]]:
        names = self.labels.tolist()
        rows = zip(self.actions, self.cost.tolist(), strict=True)
        return {action: dict(zip(names, row, strict=True)) for action, row in rows}


_LARGE = 1 << 16  # cells; beyond, a bound that is easier to find will do


def cost_threshold(positive: float, negative: float) -> float:
    """The threshold t for the positive class that two costs of errors make.

    `positive` is what a positive called negative costs, `negative` the other way round; say + where
    p positive > (1 - p) negative, so t = negative / (positive + negative).

    >>> cost_threshold(9, 1)
    0.1
    """
    return negative / (positive + negative)


def rescaled_odds(log_odds: Floats, *, positive: float, negative: float) -> Floats:
    """(n,) log of y/(1-y) m-/m+: the odds that balanced classes would have (rescaling).

    >>> rescaled_odds(np.log([0.25]), positive=1.0, negative=4.0).round(12)
    array([0.])
    """
    return np.asarray(log_odds + np.log(negative) - np.log(positive))


def _diagonal(actions: Sequence[Hashable], labels: list[Any]) -> list[tuple[int, int]]:
    place = {label: k for k, label in enumerate(labels)}
    return [(a, place[action]) for a, action in enumerate(actions) if action in place]


def _fill(row: Floats, action: Hashable, given: Any, place: dict[Any, int]) -> None:
    """Costs of one action over the usual ones, (K,); one that is no class says them all."""
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


def _limits(given: Any, labels: Labels) -> Floats:
    """(K,) threshold of each class, in [0, 1]; with two classes they add up to 1 if one is told."""
    names = labels.tolist()
    if isinstance(given, Mapping):
        known = all(label in names for label in given)
        if known and len(names) == 2 and len(given) == 1:
            ((label, value),) = given.items()
            limit = unit(value, f"The threshold of '{label}'")
            return np.array([limit, 1 - limit] if label == names[0] else [1 - limit, limit])
        if not known or len(given) < len(names):
            raise ThresholdError.of_labels(given, names)
        given = [given[name] for name in names]
    if np.ndim(given) == 0:
        limit = unit(given, "threshold")
        if len(names) != 2:
            raise ThresholdError.of_labels(given, names)
        return np.array([1.0 - limit, limit])
    if len(given) != len(names):
        raise ThresholdError.of_labels(given, names)
    for name, value in zip(names, given, strict=True):
        if unit(value, f"The threshold of '{name}'") == 0.0:
            raise ThresholdError.of_class(name, value)
    return np.array(given, dtype=np.float64)


def unit(value: Any, name: str) -> float:
    """A number in [0, 1], or the error that says what it is."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ThresholdError.of_value(name, repr(value)) from None
    if not 0.0 <= found <= 1.0:
        raise ThresholdError.of_value(name, f"{found:g}")
    return found
