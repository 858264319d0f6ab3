"""Responses at the door of generalised linear models: numbers that their family can have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from discriminant.engines.engine import fold, read_moments
from discriminant.errors import ResponseError
from discriminant.estimators.regression import open_responses
from discriminant.models.glm import Problem, null_fit
from discriminant.moments.families import Deviance, half_deviance
from discriminant.table.labels import one_dimensional
from discriminant.table.schema import Floats, Schema
from discriminant.table.source import Table, open_table, open_weight

_RANGES: dict[str, tuple[str, Callable[[Floats], Any]]] = {
    "binomial": ("a share from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("a number that is 0 or more", lambda y: y >= 0),
    "gamma": ("a number above 0", lambda y: y > 0),
}


class Answers(NamedTuple):
    """A response for each row, and what it weighs."""

    response: Floats  # (n,)
    weight: Floats | None  # (n,)

    def mean(self, values: Floats) -> float:
        """Weighted mean of a value for each row; one of no weight is not looked at."""
        if self.weight is None:
            return float(values.mean())
        some = self.weight > 0
        return float(np.average(values[some], weights=self.weight[some]))


def open_answers(y: Any, weight: Any, *, family: str, name: str) -> Answers:
    """One number a row that the family can have, and the weight.

    Of a binomial family y may be two columns, successes and failures, as in R. Then the response
    is the share of successes, and the weight is multiplied by the number of trials.
    """
    if family == "binomial":
        _not_names(y, name)
        found = open_responses(y, name) if y is not None else None
        if found is not None and found.ndim == 2 and found.shape[1] == 2:
            return _shares(found, weight)
    response = one_a_row(y, name)
    return Answers(_in_range(response, family), open_weight(weight, len(response)))


def one_a_row(y: Any, name: str) -> Floats:
    """One finite number a row."""
    if y is None:
        raise ResponseError.absent(name)
    found = open_responses(y, name)
    if found.ndim == 2 and found.shape[1] > 1:
        raise ResponseError.of_columns(found.shape)
    return one_dimensional(found)


def in_reach(response: Floats, deviance: Deviance) -> None:
    """Responses whose squares, or whose fourth powers for an inverse link, are still numbers."""
    if deviance.family not in ("gaussian", "gamma"):
        return
    kind = deviance.family, deviance.link
    bound = 1e70 if kind == ("gaussian", "inverse") else 1e150
    least = 0.0 if kind == ("gaussian", "identity") else 1.0 / bound
    size = float(np.abs(response).max())
    if size and not least <= size <= bound:
        raise ResponseError.out_of_reach(size, bound)


def null_loss(given: Answers, deviance: Deviance, offset: Any) -> float:
    """Mean of half the deviance from the best constant mean; with an offset, constant beside it."""
    response, weight = given
    if offset is None:
        level = np.full(len(response), given.mean(response))
        return given.mean(half_deviance(response, level, deviance.family))
    beside = np.broadcast_to(np.asarray(offset, dtype=np.float64), response.shape)
    table = open_table(
        np.zeros((len(response), 1)), responses=np.column_stack([response, beside]), weight=weight
    )
    slope = null_fit(problem_alone(table, deviance)).point.slope
    return slope.loss / slope.weight


def problem_alone(table: Table, deviance: Deviance) -> Problem:
    """The problem of the responses of a table, and none of its features."""
    narrow = without_features(table)
    read = partial(fold, narrow)
    moments = read_moments(narrow, detail="pooled")
    return Problem(read, read, moments, 1, deviance, intercept=True, ridge=0.0)


def without_features(table: Table) -> Table:
    """The same rows, with one column of zeros in place of their features."""
    schema = Schema(("none",), table.schema.labels)
    nothing = np.zeros((len(table), 1))
    return Table(schema, nothing, table.codes, table.weight, table.responses)


def _not_names(y: Any, name: str) -> None:
    """Classes by name have a model of their own."""
    found = np.asarray(y)
    if found.dtype.kind not in "OSU" or not found.size or y is None:
        return
    try:
        found.astype(np.float64)
    except (TypeError, ValueError):
        if isinstance(found.flat[0], str):
            raise ResponseError.of_names(name) from None


def _shares(counts: Floats, weight: Any) -> Answers:
    wrong = np.flatnonzero((counts < 0).any(axis=1))
    if len(wrong):
        raise ResponseError.of_range(
            int(wrong[0]),
            len(wrong),
            asking="a column of successes and one of failures",
            allowed="two counts that are 0 or more",
            instead="pass shares",
        )
    trials = counts.sum(axis=1)
    share = np.divide(counts[:, 0], trials, out=np.zeros(len(trials)), where=trials > 0)
    given = open_weight(weight, len(trials))
    return Answers(share, trials if given is None else trials * given)


def _in_range(response: Floats, family: str) -> Floats:
    """Responses that a family can have."""
    if family not in _RANGES:
        return response
    allowed, within = _RANGES[family]
    wrong = np.flatnonzero(~within(response))
    if len(wrong):
        both = "pass two columns, successes and failures"
        raise ResponseError.of_range(
            int(wrong[0]),
            len(wrong),
            asking=f"family='{family}'",
            allowed=allowed,
            instead=both if family == "binomial" else "choose another family",
        )
    return response
