"""A fitted model as a few steps on the numbers of one row, which every target can spell.

A step is a vector of `width` numbers for each row, made from other steps. Formulas are written as
they are in NumPy, with numbers of one row where NumPy has columns of many:

    u = (x - origin) / unit;   score = u.affine(coef, intercept);   top = score.max()

There are no truth values: `greater(a, b, x, y)` is x where a > b and else y, and a decision is the
number of a choice. A width of one goes with every other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import Floats

Elementwise = Literal[
    "add",
    "sub",
    "mul",
    "div",
    "larger",
    "smaller",
    "exp",
    "log",
    "abs",
    "sqrt",
    "sign",
    "greater",
]
Op = (
    Literal[
        "features",  # the numbers of a row, as encoded
        "constant",
        "affine",  # numbers = (m, d) slopes and (m,) intercepts
        "squares",  # sum of squares
        "sum",
        "max",
        "first_max",  # place of the largest, the first of equal ones
        "stack",  # side by side
        "pick",  # numbers = places
    ]
    | Elementwise
)
ELEMENTWISE: frozenset[str] = frozenset(get_args(Elementwise))
FLOOR = -700.0  # exp of less is no normal number, and some databases refuse it


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """`width` numbers of a row."""

    op: Op
    operands: tuple[Expression, ...]  # what they are made from
    width: int
    constants: tuple[npt.NDArray[Any], ...] = ()
    name: str = ""  # none: it is seen by nobody, and written inside another where that is possible
    components: tuple[str, ...] = ()  # (width,) names of the numbers, or none

    def with_name(self, name: str, parts: Sequence[str] = ()) -> Expression:
        """The same step with a name that a reader can use; features have the names of columns."""
        if self.op == "features":
            return self
        return replace(self, name=name, components=tuple(parts))

    # --- one number with one number ---------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        return _both("add", self, other)

    def __sub__(self, other: Any) -> Expression:
        return _both("sub", self, other)

    def __mul__(self, other: Any) -> Expression:
        return _both("mul", self, other)

    def __truediv__(self, other: Any) -> Expression:
        return _both("div", self, other)

    def larger(self, other: Any) -> Expression:
        """The larger of two."""
        return _both("larger", self, other)

    def smaller(self, other: Any) -> Expression:
        """The smaller of two."""
        return _both("smaller", self, other)

    def exp(self) -> Expression:
        """e to the power; nothing below exp(-700)."""
        return Expression("exp", (self.larger(FLOOR),), self.width)

    def log(self) -> Expression:
        """Natural logarithm."""
        return Expression("log", (self,), self.width)

    def abs(self) -> Expression:
        """Without its sign."""
        return Expression("abs", (self,), self.width)

    def sqrt(self) -> Expression:
        """Square root."""
        return Expression("sqrt", (self,), self.width)

    def sign(self) -> Expression:
        """-1, 0 or 1."""
        return Expression("sign", (self,), self.width)

    # --- all numbers of a row ---------------------------------------------------------------------

    def affine(self, coef: Floats, intercept: Floats) -> Expression:
        """(m,) coef . self + intercept."""
        return Expression("affine", (self,), len(coef), (np.asarray(coef), np.asarray(intercept)))

    def squares(self) -> Expression:
        """The sum of squares."""
        return Expression("squares", (self,), 1)

    def sum(self) -> Expression:
        """The sum."""
        return Expression("sum", (self,), 1)

    def max(self) -> Expression:
        """The largest."""
        return Expression("max", (self,), 1)

    def first_max(self) -> Expression:
        """The place of the largest, the first of equal ones."""
        return Expression("first_max", (self,), 1)

    def pick(self, places: Any) -> Expression:
        """The numbers at these places."""
        chosen = np.asarray(places, dtype=np.intp)
        if np.array_equal(chosen, np.arange(self.width)):
            return self
        components = tuple(self.components[place] for place in chosen) if self.components else ()
        return Expression("pick", (self,), len(chosen), (chosen,), components=components)

    def __getitem__(self, place: int) -> Expression:
        return self.pick([place])


def constant(values: Any) -> Expression:
    """Numbers that are the same for every row."""
    found = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return Expression("constant", (), len(found), (found,))


def stack(parts: Sequence[Expression]) -> Expression:
    """Steps side by side."""
    if len(parts) == 1:
        return parts[0]
    return Expression("stack", tuple(parts), sum(part.width for part in parts))


def greater(a: Any, b: Any, x: Any, y: Any) -> Expression:
    """x where a > b, else y."""
    of = tuple(_lifted(one) for one in (a, b, x, y))
    return Expression("greater", of, max(one.width for one in of))


def polynomial(x: Expression, coefs: Sequence[float]) -> Expression:
    """coefs[0] x^n + coefs[1] x^(n-1) + ..., by Horner."""
    total = x * coefs[0] + coefs[1]
    for coef in coefs[2:]:
        total = total * x + coef
    return total


def share_subexpressions(outputs: Sequence[Expression]) -> list[Expression]:
    """The same outputs, with what is worked out twice worked out once."""
    known: dict[Any, Expression] = {}
    same: dict[int, Expression] = {}
    for step in topological_order(outputs):
        operands = tuple(same[id(below)] for below in step.operands)
        constants = tuple((one.shape, one.tobytes()) for one in step.constants)
        key = step.op, tuple(map(id, operands)), step.width, constants, step.name, step.components
        same[id(step)] = known.setdefault(key, replace(step, operands=operands))
    return [same[id(output)] for output in outputs]


def topological_order(outputs: Sequence[Expression]) -> list[Expression]:
    """All steps that the outputs need, each after what it is made from."""
    found: dict[int, Expression] = {}

    def visit(step: Expression) -> None:
        waiting: list[tuple[Expression, Iterator[Expression]]] = [(step, iter(step.operands))]
        while waiting:
            here, rest = waiting[-1]
            below = next(rest, None)
            if below is None:
                found.setdefault(id(here), here)
                waiting.pop()
            elif id(below) not in found:
                waiting.append((below, iter(below.operands)))

    for output in outputs:
        visit(output)
    return list(found.values())


def stored_ids(steps: Sequence[Expression]) -> set[int]:
    """Ids of the steps to be worked out once and kept; others are written inside their only user.

    That is what has a name, what is used more than once, and what is no formula of one number.
    """
    users: dict[int, list[Expression]] = {}
    for step in steps:
        for below in step.operands:
            users.setdefault(id(below), []).append(step)
    kept = set()
    for step in steps:
        mine = users.get(id(step), [])
        plain = step.op in ELEMENTWISE and len(mine) == 1 and not step.name
        alike = plain and mine[0].op in ELEMENTWISE and mine[0].width == step.width
        if not alike and step.op not in ("constant", "pick", "stack"):
            kept.add(id(step))
    return kept


def _lifted(value: Any) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


def _both(op: Op, a: Expression, b: Any) -> Expression:
    other = _lifted(b)
    if other.op == "constant" and _idle(op, other.constants[0]) and other.width <= a.width:
        return a
    return Expression(op, (a, other), max(a.width, other.width))


def _idle(op: str, values: Floats) -> bool:
    """Whether it changes nothing."""
    if op in ("add", "sub"):
        return not values.any()
    return op in ("mul", "div") and bool((values == 1.0).all())
