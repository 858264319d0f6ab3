"""Export to SQL: one SELECT in which every expression is a named column, computed once.

    WITH "features" AS (SELECT CAST(s."age" AS DOUBLE) AS "age" FROM "loans" AS s),
         "step_1"   AS (SELECT (s."age" - 4.1E1) AS "u_age", ... FROM "features" AS s),
         ...
    SELECT ..., p_no, p_yes, label FROM "step_5" AS s

A step follows the steps it uses, and passes on only the columns still needed. Names and texts are
quoted (`table.sql_dialect`); long sums are balanced trees, since parsers limit the depth.

A row with a cell that is missing or not a number, and for which the model has no replacement, has
NULL in every output column: a database cannot raise an error for one row as Python does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discriminant.errors import ExportError
from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan
from discriminant.models.expressions import Expression, stored_ids
from discriminant.table.sql_dialect import LARGEST_DOUBLE, SqlDialect, sql_dialect

_ARGUMENTS = 50  # of one function: SQLite takes 127


def cell_sql(db: SqlDialect, source: FeatureSource) -> str:
    """A feature from the cells of the table."""
    column = f"s.{db.identifier(source.column)}"
    if source.kind == "text":
        return _category(db, source, db.as_text(column))
    if source.kind == "missing":
        if source.signs is not None:
            column = db.parse_number(column, *source.signs, missing=source.missing)
        one, zero = db.typed_number(1.0), db.typed_number(0.0)
        return f"CASE WHEN {column} IS NULL THEN {one} ELSE {zero} END"
    ways = {"boolean": db.as_boolean, "date": db.days}
    found = ways.get(source.kind, db.as_double)(column)
    if source.signs is not None:
        found = db.parse_number(column, *source.signs, missing=source.missing)
    if source.fill is None:
        return found
    return f"CASE WHEN {db.is_missing(found)} THEN {db.typed_number(source.fill)} ELSE {found} END"


def _category(db: SqlDialect, source: FeatureSource, column: str) -> str:
    """A number for each category."""
    whens = [
        f"WHEN {column} IN ({', '.join(db.text(level) for level in levels)})"
        f" THEN {db.typed_number(value)}"
        for value, levels in source.groups()
    ]
    missing = "NULL" if source.fill is None else db.typed_number(source.fill)
    other = "NULL" if source.other is None else db.typed_number(source.other)
    return f"CASE WHEN {column} IS NULL THEN {missing} {' '.join(whens)} ELSE {other} END"


def balanced_join(terms: Sequence[str], sign: str) -> str:
    """Terms joined pair by pair, so that the depth is the logarithm of their number."""
    found = list(terms)
    while len(found) > 1:
        pairs = [sign.join(found[k : k + 2]) for k in range(0, len(found), 2)]
        found = [f"({one})" if sign in one else one for one in pairs]
    return found[0]


def largest_sql(terms: list[str], db: SqlDialect) -> str:
    """The largest of terms, in groups that a function takes."""
    while len(terms) > 1:
        groups = [terms[k : k + _ARGUMENTS] for k in range(0, len(terms), _ARGUMENTS)]
        terms = [g[0] if len(g) == 1 else f"{db.greatest}({', '.join(g)})" for g in groups]
    return terms[0]


_WIDE = 500  # columns of a step; beyond, steps are taken one after the other

Key = tuple[int, int]  # a step and the place of a number in it
COMPLETE: Key = (-1, 0)
CHECKS = -2


def to_sql(
    model: Any,
    *,
    table: str | Sequence[str],
    dialect: str = "duckdb",
    keep: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> str:
    """One SELECT that says of every row of a table what the model says.

    Parameters
    ----------
    model
        A fitted model.
    table
        The name of a table or view with the columns of the fit; (schema, name) for one in a schema.
    dialect
        'duckdb', 'postgres' or 'sqlite'.
    keep
        Columns of the table to pass on, such as its key: rows come in no order.
    outputs
        Some of 'score', 'log_odds', 'log_p', 'p', 'label', 'cost', 'action', 'value'; None: all
        that the model has. 'score' and 'label' of linear models need neither EXP nor LN, which
        some builds of SQLite lack.
    """
    plan, spelled = make_plan(model, outputs), sql_dialect(dialect)
    parts = (table,) if isinstance(table, str) else tuple(table)
    return _SQLWriter(plan, spelled, tuple(dict.fromkeys(keep))).select(parts)


@dataclass(frozen=True, slots=True)
class _Column:
    """One number of a step, as a column."""

    name: str
    text: str
    level: int


class _Names:
    """Names that a database keeps apart."""

    def __init__(self, db: SqlDialect, taken: Sequence[str] = ()) -> None:
        self.db = db
        self.taken = {self._folded(name) for name in (*taken, *db.reserved)}

    def of(self, wanted: str) -> str:
        """The name wanted, or that with a number, cut to what the database keeps."""
        number, suffix = 1, ""
        while True:
            name = self._cut(wanted, suffix) + suffix
            if self._folded(name) not in self.taken:
                self.taken.add(self._folded(name))
                return name
            number += 1
            suffix = f"_{number}"

    def _folded(self, name: str) -> str:
        return name.casefold() if self.db.folds_case else name

    def _cut(self, name: str, suffix: str) -> str:
        if self.db.max_name_bytes is None:
            return name
        raw = name.encode("utf-8", "surrogatepass")[: self.db.max_name_bytes - len(suffix)]
        return raw.decode("utf-8", "ignore")


@dataclass(eq=False)
class _SQLWriter:
    """The text of one SELECT, as it grows."""

    plan: ExportPlan
    db: SqlDialect
    keep: tuple[str, ...]
    columns: dict[Key, _Column] = field(default_factory=dict)
    refs: dict[Key, frozenset[Key]] = field(default_factory=dict)
    _open: list[set[Key]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._check_columns()
        self.kept = stored_ids(self.plan.steps())
        self.names = _Names(self.db)
        self.carried = {name: self.names.of(name) for name in self.keep}
        self.tops = {id(s.operands[0]): s for s in self.plan.steps() if s.op == "max"}

    # --- the whole --------------------------------------------------------------------------------

    def select(self, table: tuple[str, ...]) -> str:
        """The statement."""
        for name in table:
            self.db.identifier(name)  # so that a bad name is told before anything else
        shown = _Names(self.db, self.keep)
        final: list[tuple[str, str]] = []
        self._open.append(set())
        for output in self.plan.outputs:
            final += [(self._guarded(text), shown.of(name)) for text, name in self._shown(output)]
        needed = self._open.pop() | {self._complete()}
        steps = self._levels(needed)
        titles = _Names(self.db, table)
        names = [titles.of("features" if not k else f"step_{k}") for k in range(len(steps))]
        blocks = []
        for k, columns in enumerate(steps):
            source = self._table(table) if k == 0 else self.db.identifier(names[k - 1])
            body = self._block(self._passed(first=k == 0) + columns, source)
            declared = f"{self.db.identifier(names[k])} {self.db.materialised}"
            blocks.append(f"{declared} (\n{body}{self.db.fence}\n)")
        kept = [(self._s(inside), name) for name, inside in self.carried.items()]
        last = self._block(kept + final, self.db.identifier(names[-1]))
        return f"WITH {', '.join(blocks)}\n{last}"

    def _passed(self, *, first: bool) -> list[tuple[str, str]]:
        """Columns of the table that are passed on, under names of their own inside."""
        each = self.carried.items()
        return [(self._s(name if first else inside), inside) for name, inside in each]

    def _table(self, parts: tuple[str, ...]) -> str:
        return ".".join(self.db.identifier(part) for part in parts)

    def _block(self, columns: list[tuple[str, str]], source: str) -> str:
        listed = ",\n".join(f"  {text} AS {self.db.identifier(name)}" for text, name in columns)
        return f"SELECT\n{listed}\nFROM {source} AS s"

    def _s(self, name: str) -> str:
        return f"s.{self.db.identifier(name)}"

    # --- what comes out ---------------------------------------------------------------------------

    def _shown(self, output: Output) -> list[tuple[str, str]]:
        step = output.expression
        if output.choices:
            return [(self._choice(output), output.name)]
        if not output.components:
            return [(self.text(step, 0), output.name)]
        return [
            (self.text(step, i), f"{output.name}_{part}")
            for i, part in enumerate(output.components)
        ]

    def _choice(self, output: Output) -> str:
        code, choices = self.text(output.expression, 0), output.choices
        plain = all(type(choice) is type(choices[0]) for choice in choices)
        listed = [self._literal(choice if plain else str(choice)) for choice in choices]
        if len(listed) == 1:
            return listed[0]
        whens = " ".join(f"WHEN {k} THEN {one}" for k, one in enumerate(listed))
        return f"CASE {code} {whens} END"

    def _literal(self, choice: Any) -> str:
        return (
            self.db.typed_number(choice) if isinstance(choice, float) else self.db.literal(choice)
        )

    def _guarded(self, text: str) -> str:
        return f"CASE WHEN {self._s(self._complete_name())} THEN {text} END"

    def _complete_name(self) -> str:
        if not hasattr(self, "_known"):
            self._known = self.names.of("complete")
        return self._known

    def _complete(self) -> Key:
        """Whether every feature that is used is a finite number."""
        used = [key for key in self.columns if key[0] == id(self.plan.x)]
        checked = [key for key in used if self.plan.sources[key[1]].kind != "missing"]
        checked += self._checks({self.plan.sources[place].column for _, place in used})
        tests = [f"ABS({self._s(self.columns[key].name)}) <= {LARGEST_DOUBLE}" for key in checked]
        text = balanced_join(tests, " AND ") if tests else "1 = 1"
        self.columns[COMPLETE] = _Column(self._complete_name(), f"({text})", 1)
        self.refs[COMPLETE] = frozenset(checked)
        return COMPLETE

    def _checks(self, columns: set[str]) -> list[Key]:
        """Columns of categories that must all be known."""
        found = []
        for place, source in enumerate(self.plan.checks):
            if source.column in columns:
                key = CHECKS, place
                name = self.names.of(source.feature)
                self.columns[key] = _Column(name, cell_sql(self.db, source), 0)
                self.refs[key] = frozenset()
                found.append(key)
        return found

    # --- steps ------------------------------------------------------------------------------------

    def _levels(self, needed: set[Key]) -> list[list[tuple[str, str]]]:
        """The columns of each step, new ones and those that are carried along."""
        level = {key: column.level for key, column in self.columns.items()}
        last = max(level.values())
        found = self._carried(level, last, needed)
        if max(map(len, found)) > _WIDE:
            current = 0
            for key in self.columns:  # each stands after what it is made from
                if key[0] not in (id(self.plan.x), CHECKS) and key != COMPLETE:
                    below = (level[ref] for ref in self.refs[key])
                    current = level[key] = max(current, 1 + max(below, default=0))
            found = self._carried(level, max(current, 1), needed)
        return found

    def _carried(
        self, level: dict[Key, int], last: int, needed: set[Key]
    ) -> list[list[tuple[str, str]]]:
        until = dict.fromkeys(needed, last)
        for key, refs in self.refs.items():
            for ref in refs:
                until[ref] = max(until.get(ref, 0), level[key] - 1)
        steps: list[list[tuple[str, str]]] = [[] for _ in range(last + 1)]
        for key, column in self.columns.items():
            steps[level[key]].append((column.text, column.name))
            for k in range(level[key] + 1, until.get(key, 0) + 1):
                steps[k].append((self._s(column.name), column.name))
        return steps

    # --- one number -------------------------------------------------------------------------------

    def text(self, step: Expression, place: int) -> str:
        """The number of a step at a place: its column, or the formula itself."""
        place = 0 if step.width == 1 else place
        if step.op == "constant":
            return self.db.number(float(step.constants[0][place]))
        if step.op == "pick":
            return self.text(step.operands[0], int(step.constants[0][place]))
        if step.op == "stack":
            return self._stacked(step, place)
        if id(step) not in self.kept and step.op != "features":
            return self._formula(step, place)
        key = id(step), place
        if key not in self.columns:
            self._define(key, step, place)
        if self._open:
            self._open[-1].add(key)
        return self._s(self.columns[key].name)

    def _stacked(self, step: Expression, place: int) -> str:
        for part in step.operands:
            if place < part.width:
                return self.text(part, place)
            place -= part.width
        raise IndexError(place)

    def _define(self, key: Key, step: Expression, place: int) -> None:
        if step.op == "features":
            source = self.plan.sources[place]
            name, text = self.names.of(source.feature), cell_sql(self.db, source)
            self.columns[key], self.refs[key] = _Column(name, text, 0), frozenset()
            return
        self._open.append(set())
        text = self._formula(step, place)
        refs = frozenset(self._open.pop())
        level = 1 + max((self.columns[ref].level for ref in refs), default=0)
        wanted = step.name or step.op
        if step.width > 1:
            wanted += f"_{step.components[place] if step.components else place}"
        self.columns[key] = _Column(self.names.of(wanted), text, level)
        self.refs[key] = refs

    def _formula(self, step: Expression, place: int) -> str:
        many = {"affine": self._affine, "squares": self._squares, "sum": self._sum}
        if step.op in many:
            return many[step.op](step, place)
        if step.op == "max":
            return largest_sql(
                [self.text(step.operands[0], i) for i in range(step.operands[0].width)], self.db
            )
        if step.op == "first_max":
            return self._first_max(step.operands[0])
        if step.op == "sub" and step.operands[1].op == "constant":
            return self._less(step, place)
        return self._alone(step, place)

    def _alone(self, step: Expression, place: int) -> str:
        given = [self.text(one, place) for one in step.operands]
        if step.op in _SIGNS:
            return f"({given[0]} {_SIGNS[step.op]} {given[1]})"
        if step.op in ("larger", "smaller"):
            function = self.db.greatest if step.op == "larger" else self.db.least
            return f"{function}({given[0]}, {given[1]})"
        if step.op in _FUNCTIONS:
            return f"{_FUNCTIONS[step.op]}({given[0]})"
        assert step.op == "greater"
        x, y = (self._typed(one, place) for one in step.operands[2:])
        return f"CASE WHEN {given[0]} > {given[1]} THEN {x} ELSE {y} END"

    def _typed(self, step: Expression, place: int) -> str:
        if step.op != "constant":
            return self.text(step, place)
        return self.db.typed_number(float(step.constants[0][0 if step.width == 1 else place]))

    def _less(self, step: Expression, place: int) -> str:
        term, constant = self.text(step.operands[0], place), step.operands[1]
        value = float(constant.constants[0][0 if constant.width == 1 else place])
        return self.db.subtract(term, value) if value else term

    def _affine(self, step: Expression, place: int) -> str:
        coef, intercept = step.constants[0][place], float(step.constants[1][place])
        terms = [
            f"{self.db.number(float(coef[j]))} * {self.text(step.operands[0], int(j))}"
            for j in np.flatnonzero(coef)
        ]
        if not terms:
            return self.db.typed_number(intercept)
        if intercept:
            terms.append(self.db.number(intercept))
        return balanced_join(terms, " + ")

    def _squares(self, step: Expression, place: int) -> str:
        each = [self.text(step.operands[0], i) for i in range(step.operands[0].width)]
        return (
            balanced_join([f"{one} * {one}" for one in each], " + ")
            if each
            else self.db.typed_number(0.0)
        )

    def _sum(self, step: Expression, place: int) -> str:
        each = [self.text(step.operands[0], i) for i in range(step.operands[0].width)]
        return balanced_join(each, " + ") if each else self.db.typed_number(0.0)

    def _first_max(self, of: Expression) -> str:
        each = [self.text(of, i) for i in range(of.width)]
        if of.width == 2:
            return f"CASE WHEN {each[0]} >= {each[1]} THEN 0 ELSE 1 END"
        best = self.tops.setdefault(id(of), Expression("max", (of,), 1, name="best"))
        self.kept.add(id(best))
        top = self.text(best, 0)
        whens = " ".join(f"WHEN {one} >= {top} THEN {i}" for i, one in enumerate(each))
        return f"CASE {whens} END"

    # --- checks -----------------------------------------------------------------------------------

    def _check_columns(self) -> None:
        """Columns that the database would take for one another."""
        seen: dict[str, str] = {}
        for name in (*self.keep, *(source.column for source in self.plan.sources)):
            other = seen.setdefault(name.casefold() if self.db.folds_case else name, name)
            if other != name:
                raise ExportError.of_case(other, name, self.db.title)


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_FUNCTIONS = {"exp": "EXP", "log": "LN", "abs": "ABS", "sqrt": "SQRT", "sign": "SIGN"}
