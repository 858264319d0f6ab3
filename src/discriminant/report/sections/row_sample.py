"""Rows that a report shows: all of them, or a sample with rows of every class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import Codes, Floats, Places, dense
from discriminant.table.memory import Table

_CELLS = 4_000_000  # largest number of cells of a sample
_REACH = 4.0  # standard deviations from the mean up to which a histogram has bins


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """Rows as dense numbers, with their classes, weights and row numbers."""

    labels: tuple[str, ...]  # (K,)
    names: tuple[str, ...]  # (d,) features
    features: Floats  # (m, d)
    codes: Codes  # (m,)
    weight: Floats | None  # (m,)
    numbers: Places  # (m,) row numbers in the table

    @classmethod
    def of(cls, table: Table, *, most: int, seed: int = 0) -> RowSample:
        """Sample about `most` rows, or fewer if the table is wide; small tables are complete."""
        numbers: npt.NDArray[np.intp] = sample_rows(
            table.codes, min(most, max(_CELLS // max(table.width, 1), 200)), seed
        )
        part = table if len(numbers) == len(table) else table.take(numbers)
        return cls(
            tuple(str(label) for label in table.schema.labels.tolist()),
            table.schema.features,
            np.asarray(dense(part.features[:]), dtype=np.float64),
            part.codes,
            part.weight,
            numbers,
        )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def limits(self) -> tuple[Floats, Floats]:
        """Smallest and largest value of each feature, (d,) each; infinite if all are missing."""
        missing = np.isnan(self.features)
        low = np.where(missing, np.inf, self.features).min(axis=0, initial=np.inf)
        high = np.where(missing, -np.inf, self.features).max(axis=0, initial=-np.inf)
        return np.where(np.isinf(low), -np.inf, low), np.where(np.isinf(high), np.inf, high)

    def histogram(self, feature: int, edges: Floats, code: int) -> Floats:
        """Return the weight of the rows of a class in each bin; the outer bins are open."""
        rows = (self.codes == code) & ~np.isnan(self.features[:, feature])
        values = self.features[rows, feature]
        weight = None if self.weight is None else self.weight[rows]
        places = bin_numbers(values, edges)
        return np.bincount(places, weight, minlength=len(edges) - 1).astype(np.float64)


def sample_rows(codes: Codes, most: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the numbers of about `most` sampled rows, with some rows of every class."""
    if len(codes) <= most:
        return np.arange(len(codes))
    rows = np.bincount(codes)
    size = np.minimum(
        rows, np.maximum(np.floor(most * rows / len(codes)), min(20, most // len(rows)))
    )
    generator = np.random.default_rng(seed)
    parts = [
        generator.choice(np.flatnonzero(codes == k), int(n), replace=False)
        for k, n in enumerate(size)
        if n
    ]
    return np.asarray(np.sort(np.concatenate(parts))[: 2 * most], dtype=np.intp)


def bin_values(values: Floats, most: int) -> Floats:
    """Return the centres of the bins if there are few, evenly spaced values; else an empty array.

    >>> bin_values(np.array([2007.0, 2009.0, 2008.0]), 12).tolist()
    [2007.0, 2008.0, 2009.0]
    """
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    if not 0 < len(distinct) <= most:
        return np.zeros(0)
    gaps = np.diff(distinct)
    gap = float(gaps.min()) if len(gaps) else 1.0
    bins = round(float(distinct[-1] - distinct[0]) / gap) + 1
    return distinct[0] + gap * np.arange(bins) if bins <= most else np.zeros(0)


def bin_edges(values: Floats, most: int) -> Floats:
    """Return the edges of at most `most` equal bins; each of a few distinct values gets a bin.

    >>> bin_edges(np.array([0.0, 1.0, 1.0]), 12).tolist()
    [-0.5, 0.5, 1.5]
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return np.array([0.0, 1.0])
    centres = bin_values(values, most)
    if len(centres):
        half = (centres[1] - centres[0]) / 2 if len(centres) > 1 else 0.5
        return np.asarray(np.append(centres - half, centres[-1] + half))
    centre, sd = float(known.mean()), float(known.std())
    low = max(float(known.min()), centre - _REACH * sd)
    high = min(float(known.max()), centre + _REACH * sd)
    return np.linspace(low, high if high > low else low + 1.0, most + 1)


def beyond_edges(values: Floats, edges: Floats) -> list[bool]:
    """Return whether there are values below the first edge, and above the last.

    >>> beyond_edges(np.array([1.0, 9.0]), np.array([0.0, 5.0]))
    [False, True]
    """
    known = values[np.isfinite(values)]
    return [bool((known < edges[0]).any()), bool((known > edges[-1]).any())]


def bin_numbers(values: Floats, edges: Floats) -> Places:
    """Return the bin of each value; values beyond the edges are in the outer bins."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
