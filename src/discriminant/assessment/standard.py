"""Scatter within and between classes, in units in which no test depends on the columns' own.

    degrees = n - K            n the sum of weights (they count rows), K the classes that have any
    sd_j    = sqrt(W_jj / degrees)
    within  = W_ij / (degrees sd_i sd_j)      correlations within classes
    apart_k = (mean_k - mean) / sd

A column that is constant in all rows is left out and named. One that is constant within every
class but not between them has no test: its F is infinite, and that is said as an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.engine import read_moments
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    InferenceError,
    LabelError,
    MomentsMismatchError,
    OptionError,
    TooFewRowsError,
    tell,
)
from discriminant.models.metric import Deficiency, Metric, factor
from discriminant.models.support import rounding
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.table.schema import Floats, Labels
from discriminant.table.source import open_table


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """K classes of some weight in d features that vary within them."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    weight: Floats  # (K,)
    apart: Floats  # (K, d) class means from the centre, in sd
    within: Floats  # (d, d) correlations
    sd: Floats  # (d,) within classes, in units of the anchor
    unit: Floats  # (d,) of the anchor
    centre: Floats  # (d,) mean of all rows in the user's numbers

    @property
    def rows(self) -> float:
        """How many rows, counted by weight."""
        return float(self.weight.sum())

    @property
    def degrees(self) -> float:
        """Of freedom within classes."""
        return self.rows - len(self.labels)

    def between(self) -> Floats:
        """(d, d) B_ij / (degrees sd_i sd_j)."""
        root = np.sqrt(self.weight / self.degrees)[:, None] * self.apart
        return np.asarray(root.T @ root)

    def metric(self, what: str) -> Metric:
        """The correlations within classes, factorised; `what` is who asks."""
        d = len(self.features)
        if self.degrees < d:
            raise InferenceError.too_wide(what, self.rows, len(self.labels), d)
        return solid(self.within, self.features, what)


def standardised(moments: ClassMoments, what: str) -> Standard:
    """The scatters of moments; `what` is who asks."""
    check_products(moments, what)
    some = moments.weight > 0
    labels, weight = moments.labels[some], moments.weight[some]
    degrees = _checked_degrees(labels, weight, what)
    apart = (moments.mean - moments.centre)[some]
    variance = np.diagonal(moments.pooled) / degrees
    moving = _moving(moments, variance, weight @ apart**2 / degrees, what)
    sd = np.sqrt(variance[moving])
    centre = moments.anchor.values(moments.centre)
    return Standard(
        labels,
        tuple(np.array(moments.features, dtype=object)[moving]),
        weight,
        apart[:, moving] / sd,
        moments.pooled[np.ix_(moving, moving)] / degrees / sd[:, None] / sd,
        sd,
        moments.anchor.unit[moving],
        centre[moving],
    )


def moments_of(given: Any, y: Any, what: str, *, detail: Detail = "pooled") -> ClassMoments:
    """Moments of this detail or finer: those given, or those of rows and labels; one door."""
    if not isinstance(given, (ClassMoments, ClassRows)):
        if y is None:
            raise MomentsMismatchError.neither(what, type(given).__name__, detail)
        given = read_moments(open_table(given, y, name=what), detail=detail)
    elif y is not None:
        raise OptionError.of("y", "given", "left out beside moments, which have their classes")
    if isinstance(given, ClassMoments) and given.holds(detail):
        return given
    found = given.detail if isinstance(given, ClassMoments) else "rows"
    raise MomentsMismatchError.needs_detail(what, detail, found)


def check_products(moments: ClassMoments, what: str) -> None:
    """Moments that have products of columns."""
    found = moments.detail if isinstance(moments, ClassMoments) else "rows"
    if found in ("diagonal", "rows"):
        raise MomentsMismatchError.needs_detail(what, "pooled", found)


def solid(correlation: Floats, features: tuple[str, ...], what: str) -> Metric:
    """Metric of correlations that must have an inverse; few digits left are told."""
    metric, lost = factor(correlation)
    if lost is None:
        assert metric is not None
        return metric
    if metric is None:
        raise InferenceError.collinear(what, _involved(lost, features), lost.rank, len(features))
    tell(CollinearWarning.of_test(what, _involved(lost, features), lost.condition))
    return metric


def _involved(lost: Deficiency, features: tuple[str, ...]) -> list[str]:
    part = np.abs(lost.weakest).max(axis=1)
    return [name for name, much in zip(features, part, strict=True) if much > 1e-3 * part.max()]


def _checked_degrees(labels: Labels, weight: Floats, what: str) -> float:
    K, n = len(labels), float(weight.sum())
    if K == 1:
        raise LabelError.one_class(labels[0])
    if n <= K:
        raise TooFewRowsError.of_table(int(n), K, what)
    return n - K


def _moving(
    moments: ClassMoments, variance: Floats, between: Floats, what: str
) -> npt.NDArray[np.bool_]:
    """(d,) columns that vary within classes."""
    noise = rounding(moments.mean)
    still = variance <= noise
    names = np.array(moments.features, dtype=object)
    alone = still & (between > 4 * noise * moments.weight.sum())
    if alone.any():
        raise InferenceError.no_spread(what, names[alone].tolist())
    if still.all():
        raise InferenceError.all_constant(what, names.tolist())
    if still.any():
        tell(ConstantColumnWarning.of_columns(names[still].tolist()))
    return np.asarray(~still)
