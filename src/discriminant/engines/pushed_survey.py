"""What columns are like, from aggregates: what a plan is made from where no row may leave.

Of a column of numbers its mean, its spread and whether it is constant; of a category its levels and
how many rows have each, unless there are more than could be features: then only how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.inside import Inside, label_term, weight_term
from discriminant.errors import DatabaseError, LabelError
from discriminant.table.cells import Cells, Frame, Kind
from discriminant.table.counting import FEW
from discriminant.table.labels import encode_labels
from discriminant.table.learning import Wishes
from discriminant.table.parts import Partial
from discriminant.table.schema import Labels
from discriminant.table.survey import ColumnSurvey, Survey, SurveyWork

_MOST = 100_000  # levels that are told apart by number


def drawn(inside: Inside, columns: Sequence[str], wishes: Wishes | None) -> Frame:
    """Rows that stand for all: the mean of each class, and means a standard deviation up and down.

    Of a category they have one level. A column that counts the rows has no values here, so that
    it is surveyed.
    """
    assert wishes is not None
    assert wishes.target is not None
    rows, kinds = inside.count(), inside.kinds(columns)
    if not rows:
        raise DatabaseError.no_rows(inside.name)
    labels, means = _class_means(inside, columns, kinds, wishes)
    size = len(labels) + 2
    if size == rows:  # these are not the rows, and are not to be taken for them
        size += 1
    counting = _counting(inside, columns, kinds, wishes, rows)
    found = []
    for name in columns:
        if name == wishes.target:
            found.append(_label_cells(name, kinds[name], np.resize(labels, size)))
        elif kinds[name] == "text" or wishes.by_level(name):
            found.append(_one_level(inside, name, kinds[name], size))
        elif name in counting:
            found.append(Cells(name, "number", np.full(size, np.nan)))
        else:
            values = np.resize(means[name], size)
            found.append(
                Cells(name, kinds[name], values > 0.5 if kinds[name] == "boolean" else values)
            )
    return Frame(tuple(found), size)


def surveyed(inside: Inside, work: SurveyWork) -> Partial[Survey]:
    """The survey of some columns."""
    wishes, kinds, rows = work.wishes, inside.kinds(work.columns), inside.count()
    weight = weight_term(inside, wishes.weight)
    columns = tuple(
        _levels(inside, name, kinds[name], rows, weight, wishes)
        if (kinds[name] == "text" or wishes.by_level(name)) and name != wishes.target
        else _numbers(inside, name, kinds[name], rows, weight)
        for name in work.columns
    )
    assert wishes.target is not None
    labels = _labels(inside, wishes.target, kinds[wishes.target])
    return Partial(Survey(columns, labels), rows)


def label_key(label: Any) -> Any:
    """A label as it is looked up: a decimal is the number that it is."""
    return float(label) if isinstance(label, Decimal) else label


# --- labels ---------------------------------------------------------------------------------------


def _labels(inside: Inside, target: str, kind: Kind) -> Labels:
    if kind == "date":
        raise LabelError.of_dates(target)
    term = label_term(inside, target)
    found = [row[0] for row in inside.ask(f"SELECT DISTINCT {term} FROM {inside.rows}")]
    if any(label is None for label in found):
        count = inside.ask(f"SELECT COUNT(*) FROM {inside.rows} WHERE {term} IS NULL")
        raise DatabaseError.missing(inside.name, target, int(count[0][0]))
    return encode_labels(_as_read(found, kind))[0]


def _as_read(labels: Sequence[Any], kind: Kind) -> npt.NDArray[Any]:
    """Labels of the type that rows would bring: decimals are doubles."""
    if kind == "text":
        return np.array([str(label) for label in labels])
    if kind == "boolean":
        return np.array([bool(label) for label in labels])
    return np.array([label_key(label) for label in labels])


def _label_cells(name: str, kind: Kind, labels: npt.NDArray[Any]) -> Cells:
    if kind != "text":
        return Cells(name, kind, labels)
    levels, codes = np.unique(labels, return_inverse=True)
    return Cells(name, "text", codes.astype(np.int32), tuple(levels.tolist()))


# --- numbers --------------------------------------------------------------------------------------


def _known(inside: Inside, name: str, kind: Kind) -> str:
    """A number, NULL where it is missing."""
    term = inside.value(name, kind)
    if kind != "number" or inside.database.name == "sqlite":
        return term
    return f"CASE WHEN {inside.database.is_missing(term)} THEN NULL ELSE {term} END"


def _class_means(
    inside: Inside, columns: Sequence[str], kinds: dict[str, Kind], wishes: Wishes
) -> tuple[Labels, dict[str, npt.NDArray[np.float64]]]:
    """Labels, and of each number its mean in each class, and a deviation about the whole mean."""
    assert wishes.target is not None
    labels = _labels(inside, wishes.target, kinds[wishes.target])
    names = [
        name
        for name in columns
        if name != wishes.target and kinds[name] != "text" and not wishes.by_level(name)
    ]
    centres = _centres(inside, names, kinds)
    term, found = label_term(inside, wishes.target), {}
    place = {label_key(label): k for k, label in enumerate(labels.tolist())}
    for lo in range(0, len(names), 300):
        some = names[lo : lo + 300]
        asked = ", ".join(f"AVG({_known(inside, name, kinds[name])})" for name in some)
        told = inside.ask(f"SELECT {term}, {asked} FROM {inside.rows} GROUP BY {term}")
        values = np.full((len(labels) + 2, len(some)), np.nan)
        for label, *means in told:
            values[place[label_key(label)]] = [np.nan if m is None else float(m) for m in means]
        for j, name in enumerate(some):
            mean, spread = centres[name]
            own = np.where(np.isfinite(values[:, j]), values[:, j], mean)
            own[-2:] = mean - spread, mean + spread
            found[name] = own
    return labels, found


def _centres(
    inside: Inside, names: Sequence[str], kinds: dict[str, Kind]
) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of the cells that are there."""
    known = [_known(inside, name, kinds[name]) for name in names]
    means = [_finite(m) for m in inside.totals([f"AVG({term})" for term in known])]
    away = [
        inside.database.minus(term, m) if np.isfinite(m) else term
        for term, m in zip((f"({t})" for t in known), means, strict=True)
    ]
    squares = [_finite(s) for s in inside.totals([f"AVG({z} * {z})" for z in away])]
    spreads = [float(np.sqrt(square)) for square in squares]
    return dict(zip(names, zip(means, spreads, strict=True), strict=True))


def _finite(value: Any) -> float:
    """A number; NaN of none. Infinities are named when all cells are checked."""
    found = float("nan") if value is None else float(value)
    return found if np.isfinite(found) else float("nan")


def _counting(
    inside: Inside, columns: Sequence[str], kinds: dict[str, Kind], wishes: Wishes, rows: int
) -> set[str]:
    """Columns of whole numbers from k to k + rows - 1, all different, which count the rows."""
    kept = wishes.columns or ()
    names = [
        name
        for name in columns
        if kinds[name] == "number" and name not in (wishes.target, wishes.weight, *kept)
    ]
    if rows < FEW:
        return set()
    terms = [inside.value(name, "number") for name in names]
    lengths = inside.totals([f"MAX({term}) - MIN({term})" for term in terms])
    some = [n for n, length in zip(names, lengths, strict=True) if _finite(length) == rows - 1]
    return {n for n in some if _numbers(inside, n, "number", rows, "1").row_numbers}


def _numbers(inside: Inside, name: str, kind: Kind, rows: int, weight: str) -> ColumnSurvey:
    """Mean and spread; the extremes leave the database only where they are the same."""
    made = ColumnSurvey(name, kind, False, rows, 0, whole=False)
    if kind == "text":  # the target, of which labels are all
        return made
    known = _known(inside, name, kind)
    centre, spread = _centres(inside, [name], {name: kind})[name]
    if not np.isfinite(centre):
        centre = 0.0
    mass = f"CASE WHEN {known} IS NULL THEN 0.0E0 ELSE {weight} END"
    away = inside.database.minus(f"({known})", centre)
    count, total, first, same, ends = inside.totals(
        [
            f"COUNT({known})",
            f"SUM({mass})",
            f"SUM({mass} * {away})",
            f"CASE WHEN MIN({known}) = MAX({known}) THEN MIN({known}) END",
            f"CASE WHEN COUNT(DISTINCT {known}) = COUNT(*) AND MAX({known}) - MIN({known}) = "
            f"COUNT(*) - 1 THEN MIN({known}) END",
        ]
    )
    made = replace(made, gaps=rows - int(count))
    if not count:
        return made
    mean = centre + (_finite(first) / float(total) if total else 0.0)
    low, high = (float(same), float(same)) if same is not None else (mean - spread, mean + spread)
    if same is None and low == high:
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    counts = ends is not None and _whole(inside, known, float(ends), rows)
    runs = ((float(ends), float(ends) + rows - 1),) if counts else None
    return replace(made, low=low, high=high, weight=float(total), mean=mean, runs=runs)


def _whole(inside: Inside, known: str, first: float, rows: int) -> bool:
    """Whether numbers that begin there, and are all different, are whole."""
    if not first.is_integer() or max(abs(first), abs(first) + rows) >= 2**53:
        return False  # there doubles are no longer one apart
    broken = f"SUM(CASE WHEN {known} = CAST({known} AS BIGINT) THEN 0 ELSE 1 END)"
    return not inside.totals([broken])[0]


# --- categories -----------------------------------------------------------------------------------


def _level_term(inside: Inside, name: str, kind: Kind) -> str:
    return inside.text(name) if kind == "text" else _known(inside, name, kind)


def _one_level(inside: Inside, name: str, kind: Kind, size: int) -> Cells:
    level = inside.totals([f"MIN({_level_term(inside, name, kind)})"])[0]
    if kind != "text":
        return Cells(name, "number", np.full(size, _finite(level)))
    codes = np.full(size, -1 if level is None else 0, dtype=np.int32)
    return Cells(name, "text", codes, () if level is None else (str(level),))


def _levels(
    inside: Inside, name: str, kind: Kind, rows: int, weight: str, wishes: Wishes
) -> ColumnSurvey:
    """Levels and their rows; of too many, only that they are."""
    term = _level_term(inside, name, kind)
    known, distinct = inside.totals([f"COUNT({term})", f"COUNT(DISTINCT {term})"])
    gaps = rows - int(known)
    kept = name in (wishes.columns or ()) or name in wishes.ordered
    if distinct > wishes.max_levels and not kept:
        some = min(int(distinct), _MOST)
        tally = {f"level {k}": (1, 1.0) for k in range(some)}
        if distinct < known:
            tally["level 0"] = (int(known) - some + 1, 1.0)
        return ColumnSurvey(name, "text", False, rows, gaps, tally=tally, capped=some == _MOST)
    found = inside.ask(f"SELECT {term}, COUNT(*), SUM({weight}) FROM {inside.rows} GROUP BY {term}")
    tally = {
        _written(level, kind): (int(count), float(mass or 0.0))
        for level, count, mass in found
        if level is not None
    }
    return ColumnSurvey(name, "text", False, rows, gaps, tally=tally)


def _written(level: Any, kind: Kind) -> str:
    """A level as it is written of rows: 1.0 and 1 are one."""
    if kind == "text":
        return str(level)
    number = float(level)
    return str(int(number)) if number.is_integer() else str(number)
