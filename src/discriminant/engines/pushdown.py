"""Class moments made inside a database: GROUP BY aggregates in two statements, no row leaves.

    1   weight_k, sum w (x - origin)                    per class: where its mean c_k is
    2   sum w z_i z_j, sum w z_i,  z = x - c_k          per class, about its own mean

What rounding left of the mean is corrected as everywhere (`moments.reading`), so nothing is squared
far from its mean. Products of many columns are asked for in blocks, for a statement has room for
some 1,600 columns. How cells become features is said in SQL: `engines.inside`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any, TypeVar, cast

import numpy as np

from discriminant.engines.inside import Base, Inside
from discriminant.engines.pushed_survey import drawn as drawn, label_key, surveyed
from discriminant.engines.summing import PartWork
from discriminant.errors import DatabaseError
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.reach import Reach, ReachReading
from discriminant.moments.reading import MomentsReading
from discriminant.moments.told import Told, ToldReading
from discriminant.table.encoding import Unforeseen
from discriminant.table.parts import Adds, Partial, Plan, Work
from discriminant.table.schema import Floats
from discriminant.table.survey import SurveyWork

A = TypeVar("A", bound=Adds)
_BLOCK = 32  # columns whose products with another 32 are one statement
_DETAILS = ("diagonal", "pooled", "class")
_ROWS, _FOLDS, _MEASURES = "Logistic regression", "Holding out rows", "Measuring a model"
_ASKED = {  # who reads what, for people
    **dict.fromkeys(("SlopeReading", "ResidualReading", "SaturationReading"), _ROWS),
    **dict.fromkeys(("LeverageReading", "MarginReading", "TurnedReading", "FactorReading"), _ROWS),
    **dict.fromkeys(("ByFoldReading", "HeldOutReading", "GridReading", "LevelsWork"), _FOLDS),
    **dict.fromkeys(("EvaluationReading", "EvaluationWork", "TallyReading"), _MEASURES),
}


def summed(inside: Inside, asked: Work[A]) -> A:
    """What the work would have found in the rows, from aggregates."""
    work: Any = asked
    if isinstance(work, SurveyWork):
        return cast(A, surveyed(inside, work))
    if isinstance(work, PartWork) and work.plan.plain:
        try:
            found = _read(inside, work.plan, work.reading)
        except Unforeseen as fault:
            return cast(A, Partial(None, inside.count_every(), fault))
        if found is not None:
            return cast(A, Partial(found, inside.count_every()))
    what = type(work.reading if isinstance(work, PartWork) else work).__name__
    raise DatabaseError.must_stay(inside.name, _ASKED.get(what, f"What is asked for ({what})"))


def _read(inside: Inside, plan: Plan, reading: Any) -> Any:
    """What a reading sums to; None of one that aggregates do not tell."""
    if isinstance(reading, MomentsReading) and reading.detail in _DETAILS:
        return _Sums(inside, plan, reading).read()
    if isinstance(reading, ReachReading) and not len(reading.columns):
        return _lightest(inside, plan)
    if isinstance(reading, ToldReading):
        return _told(inside, plan, reading)
    return None


class _Sums:
    """The two statements."""

    def __init__(self, inside: Inside, plan: Plan, reading: MomentsReading) -> None:
        self.inside, self.reading = inside, reading
        self.database = inside.database
        self.base = Base(inside, plan)
        self.base.check()
        self.target = plan.target
        self.unit, self.origin = reading.anchor.unit, reading.anchor.origin
        self.codes = {label_key(label): k for k, label in enumerate(reading.labels.tolist())}

    def read(self) -> ClassMoments:
        """Moments of all rows."""
        reading = self.reading
        found = ClassMoments.empty(
            reading.labels, reading.features, detail=reading.detail, anchor=reading.anchor
        )
        self._means(found)
        self._products(found)
        return found

    def _means(self, found: ClassMoments) -> None:
        head = ["CASE WHEN w > 0 THEN 1 ELSE 0 END", "w", "w * w"]
        for block in _blocks(len(self.reading.features)):
            terms = [f"w * {self.database.minus(f'f{j}', self.origin[j])}" for j in block]
            told = self.inside.by_class([*head, *terms], self.base(block))
            for label, rows, weight, weight2, *first in told:
                k = self._code(label)
                found.rows[k], found.weight[k], found.weight2[k] = int(rows), weight, weight2
                if found.weight[k] > 0:
                    found.mean[k, block] = np.array(first) / weight / self.unit[block]

    def _products(self, found: ClassMoments) -> None:
        """About the mean of each class, and what that mean was off by."""
        d, weight = len(self.reading.features), np.where(found.weight > 0, found.weight, 1.0)
        place = found.mean * self.unit + self.origin  # rounded to where rows are
        about = (place - self.origin) / self.unit
        rest = np.zeros_like(found.mean)
        products: dict[tuple[int, int], Floats] = {}
        for left, right in combinations_with_replacement(list(_blocks(d)), 2):
            pairs = [(i, j) for i in left for j in right if i <= j]
            if self.reading.detail == "diagonal":
                pairs = [(i, j) for i, j in pairs if i == j]
            for label, *sums in self._centred(left, pairs, sorted({*left, *right}), place):
                k = self._code(label)
                rest[k, left] = np.array(sums[: len(left)], dtype=float) / weight[k]
                for pair, value in zip(pairs, sums[len(left) :], strict=True):
                    products.setdefault(pair, np.zeros(len(weight)))[k] = value
        found.mean[:] = np.where(found.weight[:, None] > 0, about + rest, 0.0)
        for (i, j), value in products.items():
            value = value - weight * rest[:, i] * rest[:, j]
            _put(found, i, j, np.maximum(value, 0.0) if i == j else value)

    def _centred(
        self,
        left: Sequence[int],
        pairs: Sequence[tuple[int, int]],
        columns: Sequence[int],
        place: Floats,
    ) -> list[tuple[Any, ...]]:
        """Sums and products of some columns about the place of each class."""
        if not pairs:
            return []
        terms = [f"w * z{i}" for i in left] + [f"w * z{i} * z{j}" for i, j in pairs]
        away = ", ".join(self._away(j) for j in columns)
        names = ", ".join(f"c{j}, e{j}" for j in columns)
        rows = ", ".join(
            f"({self.database.literal(label)}, "
            + ", ".join(self._place(place[code, j]) for j in columns)
            + ")"
            for code, label in enumerate(self.reading.labels.tolist())
        )
        source = f"SELECT y, w, {away} FROM ({self.base(columns)}) AS b JOIN m ON b.y = m.k"
        return self.inside.by_class(terms, source, having=f"WITH m(k, {names}) AS (VALUES {rows}) ")

    def _away(self, j: int) -> str:
        """z, the difference exact where x is near its class."""
        z = f"(f{j} - c{j} - e{j})"
        if self.unit[j] != 1.0:
            z = f"({z} / {self.database.number(self.unit[j])})"
        return f"{z} AS z{j}"

    def _place(self, place: float) -> str:
        """A centre in two parts: SQLite may read the 17th digit of a number wrong."""
        short = float(f"{place:.15g}") if self.database.name == "sqlite" else place
        return f"{self.database.typed(short)}, {self.database.typed(place - short)}"

    def _code(self, label: Any) -> int:
        found = self.codes.get(label_key(label))
        if found is None:  # a class that was not there when the plan was made
            raise Unforeseen(self.target, label)
        return found


def _put(found: ClassMoments, i: int, j: int, value: Floats) -> None:
    if found.detail == "diagonal":
        found.scatter[:, i] = value
    elif found.detail == "pooled":
        found.scatter[i, j] = found.scatter[j, i] = value.sum()
    else:
        found.scatter[:, i, j] = found.scatter[:, j, i] = value


def _blocks(columns: int) -> Iterator[list[int]]:
    for lo in range(0, columns, _BLOCK):
        yield list(range(lo, min(lo + _BLOCK, columns)))


def _lightest(inside: Inside, plan: Plan) -> Reach:
    base = Base(inside, plan)
    base.check()
    least = inside.ask(f"SELECT MIN(w) FROM ({base([])}) AS b WHERE w > 0")[0][0]
    return Reach(np.zeros(0), np.inf if least is None else float(least))


def _told(inside: Inside, plan: Plan, reading: ToldReading) -> Told:
    """Rows given to each class: those in which its score is above the earlier, below no later."""
    base, database = Base(inside, plan), inside.database
    columns = range(len(reading.features))
    scores = ", ".join(
        database.typed(float(level))
        + "".join(
            f" + {database.number(float(b))} * {database.minus(f'f{j}', reading.anchor.origin[j])}"
            f" / {database.number(reading.anchor.unit[j])}"
            for j, b in enumerate(coef)
        )
        + f" AS s{k}"
        for k, (coef, level) in enumerate(zip(reading.coef, reading.intercept, strict=True))
    )
    K = len(reading.intercept)
    found = Told.empty(reading.features, K)
    best = [
        " AND ".join(f"s{k} {'>' if i < k else '>='} s{i}" for i in range(K) if i != k)
        for k in range(K)
    ]
    source = f"(SELECT {scores} FROM ({base(columns)}) AS b WHERE w > 0) AS s"
    counts = inside.totals([f"SUM(CASE WHEN {term} THEN 1 ELSE 0 END)" for term in best], source)
    found.told[:] = [int(count or 0) for count in counts]
    return found
