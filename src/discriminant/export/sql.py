"""SQL export: one SELECT in which every expression is a named column, computed once.

    WITH "features" AS (SELECT CAST(s."age" AS DOUBLE) AS "age" FROM "loans" AS s),
         "step_1"   AS (SELECT (s."age" - 4.1E1) AS "u_age", ... FROM "features" AS s),
         ...
    SELECT ..., p_no, p_yes, label FROM "step_5" AS s

Each step comes after the steps that it uses and passes on only the columns that are still needed.
Names and texts are quoted (`table.sql_dialect`). Long sums are written as balanced trees, since
parsers limit the depth.

If a cell is missing or not a number, and the model has no replacement for it, every output of the
row is NULL. (In Python this is an error, but a database cannot raise an error for a single row.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discriminant.errors import ExportError
from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Number, Output, make_plan, number_at
from discriminant.models.expressions import Expression, ids_of_variables
from discriminant.table.sql_dialect import LARGEST_DOUBLE, SqlDialect, sql_dialect
from discriminant.table.text_values import ISO_DATE

_MAX_ARGUMENTS = 50  # largest number of arguments of one function; SQLite allows 127
_MAX_COLUMNS = 500  # largest number of columns of a step; wider steps are divided into several
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_FUNCTIONS = {"exp": "EXP", "log": "LN", "abs": "ABS", "sqrt": "SQRT", "sign": "SIGN", "cos": "COS"}

Key = tuple[int, int]  # id of an expression, and the index of one of its numbers
_COMPLETE: Key = (-1, 0)
_CHECKS = -2


def to_sql(
    model: Any,
    *,
    table: str | Sequence[str],
    dialect: str = "duckdb",
    keep: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> str:
    """Return one SELECT that computes the outputs of the model for every row of a table.

    Parameters
    ----------
    model : estimator
        A fitted model.
    table : str or (schema, name)
        Name of a table or view that has the columns of the training rows.
    dialect : {'duckdb', 'postgres', 'sqlite'}, default 'duckdb'
        The database.
    keep : sequence of str, default ()
        Columns of the table that the result also contains, such as a key; the order of the rows is
        undefined.
    outputs : sequence of str, optional
        Any of 'score', 'log_odds', 'log_p', 'p', 'label', 'cost', 'action', 'value' (default: all
        that the model has). 'score' and 'label' of linear models need neither EXP nor LN, which
        some builds of SQLite lack.

    Returns
    -------
    str
        The statement.
    """
    plan, db = make_plan(model, outputs), sql_dialect(dialect)
    parts = (table,) if isinstance(table, str) else tuple(table)
    return _SQLWriter(plan, db, tuple(dict.fromkeys(keep))).select(parts)


def cell_sql(db: SqlDialect, source: FeatureSource) -> str:
    """Return the SQL formula that computes a feature from cells of the table."""
    column = f"s.{db.identifier(source.column)}"
    if source.kind == "text":
        return _category_sql(db, source, db.as_text(column))
    if source.kind == "missing" and source.cells == "text":
        return _indicator_sql(db, column)
    value = _value_sql(db, source, column)
    if source.kind == "missing":
        return _indicator_sql(db, value if _reads_text(db, source) else column)
    if source.fill is None:
        return value
    return f"CASE WHEN {db.is_missing(value)} THEN {db.typed_number(source.fill)} ELSE {value} END"


def _indicator_sql(db: SqlDialect, term: str) -> str:
    one, zero = db.typed_number(1.0), db.typed_number(0.0)
    return f"CASE WHEN {term} IS NULL THEN {one} ELSE {zero} END"


def _reads_text(db: SqlDialect, source: FeatureSource) -> bool:
    """Whether the cells of a column of numbers or dates may be texts.

    In SQLite a column of any type may contain texts.
    Other databases raise an error for a text that is not a number or an ISO date.
    """
    if source.signs is not None or source.written or source.more_missing:
        return source.cells != "boolean" or db.name == "sqlite"
    return source.encoded and db.name == "sqlite"


def _value_sql(db: SqlDialect, source: FeatureSource, column: str) -> str:
    """Return the SQL formula that converts a cell to a number, truth value or date."""
    kind = source.cells if source.kind == "missing" else source.kind
    if not _reads_text(db, source):
        return {"boolean": db.as_boolean, "date": db.days}.get(kind, db.as_double)(column)
    if kind == "boolean":
        return db.parse_boolean(column, missing=source.missing)
    if kind == "date":
        return db.parse_date(column, source.written or ISO_DATE, missing=source.missing)
    return db.parse_number(column, *(source.signs or ("", ".", "")), missing=source.missing)


def _category_sql(db: SqlDialect, source: FeatureSource, column: str) -> str:
    whens = [
        f"WHEN {column} IN ({', '.join(db.text(level) for level in levels)})"
        f" THEN {db.typed_number(value)}"
        for value, levels in source.groups()
    ]
    missing = "NULL" if source.fill is None else db.typed_number(source.fill)
    other = "NULL" if source.other is None else db.typed_number(source.other)
    return f"CASE WHEN {column} IS NULL THEN {missing} {' '.join(whens)} ELSE {other} END"


def balanced_join(terms: Sequence[str], sign: str) -> str:
    """Join terms pair by pair, so that the formula's depth is the logarithm of their number."""
    terms = list(terms)
    while len(terms) > 1:
        pairs = [sign.join(terms[k : k + 2]) for k in range(0, len(terms), 2)]
        terms = [f"({pair})" if sign in pair else pair for pair in pairs]
    return terms[0]


def largest_sql(terms: list[str], db: SqlDialect) -> str:
    """Return SQL for the largest of the terms, at most `_MAX_ARGUMENTS` in a function call."""
    while len(terms) > 1:
        groups = [terms[k : k + _MAX_ARGUMENTS] for k in range(0, len(terms), _MAX_ARGUMENTS)]
        terms = [g[0] if len(g) == 1 else f"{db.greatest}({', '.join(g)})" for g in groups]
    return terms[0]


@dataclass(frozen=True, slots=True)
class _Column:
    """One number of an expression, stored as a column."""

    name: str
    text: str  # its formula
    level: int  # step that computes the column


class _Names:
    """Unique names, by the rules of a database."""

    def __init__(self, db: SqlDialect, used: Sequence[str] = ()) -> None:
        self.db = db
        self.used = {self._folded(name) for name in (*used, *db.reserved)}

    def unique(self, name: str) -> str:
        """Return a unique name, truncated to the allowed length, and numbered if already in use."""
        number, suffix = 1, ""
        while True:
            candidate = self._cut(name, suffix) + suffix
            if self._folded(candidate) not in self.used:
                self.used.add(self._folded(candidate))
                return candidate
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
    """Builder of one SELECT.

    `terms` holds the SQL text of every number written so far: the name of its column or, if the
    number is used only once, its formula. `refs` holds the columns on which a number depends
    directly.
    """

    plan: ExportPlan
    db: SqlDialect
    keep: tuple[str, ...]
    columns: dict[Key, _Column] = field(default_factory=dict)
    terms: dict[Key, str] = field(default_factory=dict)
    refs: dict[Key, frozenset[Key]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_columns()
        steps = self.plan.steps()
        self.stored = ids_of_variables(steps)
        self.names = _Names(self.db)
        self.passed_on = {name: self.names.unique(name) for name in self.keep}
        self.maxima = {id(s.operands[0]): s for s in steps if s.op == "max"}

    def _check_columns(self) -> None:
        """Raise an error if the database does not distinguish the names of two columns."""
        known: dict[str, str] = {}
        for name in (*self.keep, *(source.column for source in self.plan.sources)):
            other = known.setdefault(name.casefold() if self.db.folds_case else name, name)
            if other != name:
                raise ExportError.of_case(other, name, self.db.title)

    # --- statement --------------------------------------------------------------------------------

    def select(self, table: tuple[str, ...]) -> str:
        """Return the statement."""
        # raises an error for an invalid name
        source = ".".join(self.db.identifier(part) for part in table)
        output_names = _Names(self.db, self.keep)
        final: list[tuple[str, str]] = []
        needed: set[Key] = set()
        complete = ""
        for output in self.plan.outputs:
            numbers = [number_at(output.expression, i) for i in range(len(output.components) or 1)]
            for number in numbers:
                self._write(number)
                needed |= self._references([number])
            complete = complete or self.names.unique("complete")
            for text, name in self._output_columns(output, [self._term(n) for n in numbers]):
                guarded = f"CASE WHEN {self._s(complete)} THEN {text} END"
                final.append((guarded, output_names.unique(name)))
        self._define_complete(complete)
        steps = self._levels(needed | {_COMPLETE})
        step_names = _Names(self.db, table)
        blocks = []
        for k, columns in enumerate(steps):
            passed = [(self._s(n if not k else new), new) for n, new in self.passed_on.items()]
            body = self._block(passed + columns, source)
            source = self.db.identifier(step_names.unique(f"step_{k}" if k else "features"))
            blocks.append(f"{source} {self.db.materialised} (\n{body}{self.db.fence}\n)")
        keys = [(self._s(inside), name) for name, inside in self.passed_on.items()]
        return f"WITH {', '.join(blocks)}\n{self._block(keys + final, source)}"

    def _block(self, columns: list[tuple[str, str]], source: str) -> str:
        listed = ",\n".join(f"  {text} AS {self.db.identifier(name)}" for text, name in columns)
        return f"SELECT\n{listed}\nFROM {source} AS s"

    def _s(self, name: str) -> str:
        return f"s.{self.db.identifier(name)}"

    def _output_columns(self, output: Output, terms: list[str]) -> list[tuple[str, str]]:
        """Return the SQL text and the name of each column of an output."""
        if output.components:
            names = [f"{output.name}_{component}" for component in output.components]
            return list(zip(terms, names, strict=True))
        if not output.choices:
            return [(terms[0], output.name)]
        same = all(type(choice) is type(output.choices[0]) for choice in output.choices)
        choices = [self._literal(choice if same else str(choice)) for choice in output.choices]
        if len(choices) == 1:
            return [(choices[0], output.name)]
        whens = " ".join(f"WHEN {k} THEN {choice}" for k, choice in enumerate(choices))
        return [(f"CASE {terms[0]} {whens} END", output.name)]

    def _literal(self, choice: Any) -> str:
        return (
            self.db.typed_number(choice) if isinstance(choice, float) else self.db.literal(choice)
        )

    def _define_complete(self, name: str) -> None:
        """Define a column that is true if all features that are used are finite numbers."""
        used = [key for key in self.columns if key[0] == id(self.plan.x)]
        checked = [key for key in used if self.plan.sources[key[1]].kind != "missing"]
        used_columns = {self.plan.sources[index].column for _, index in used}
        for index, source in enumerate(self.plan.checks):  # categories that must be known
            if source.column in used_columns:
                key = _CHECKS, index
                self._add_feature(key, source)
                checked.append(key)
        tests = [f"ABS({self.terms[key]}) <= {LARGEST_DOUBLE}" for key in checked]
        text = balanced_join(tests, " AND ") if tests else "1 = 1"
        self.columns[_COMPLETE] = _Column(name, f"({text})", 1)
        self.refs[_COMPLETE] = frozenset(checked)

    # --- steps ------------------------------------------------------------------------------------

    def _levels(self, needed: set[Key]) -> list[list[tuple[str, str]]]:
        """Return, for each step, the SQL text and the name of its columns: new and passed on."""
        level = {key: column.level for key, column in self.columns.items()}
        steps = self._steps(level, needed)
        if max(map(len, steps)) > _MAX_COLUMNS:
            current = 0
            for key in self.columns:  # each column comes after the columns that it refers to
                if key[0] not in (id(self.plan.x), _CHECKS) and key != _COMPLETE:
                    below = (level[ref] for ref in self.refs[key])
                    current = level[key] = max(current, 1 + max(below, default=0))
            steps = self._steps(level, needed)
        return steps

    def _steps(self, level: dict[Key, int], needed: set[Key]) -> list[list[tuple[str, str]]]:
        last = max(level.values())
        until = dict.fromkeys(needed, last)
        for key in self.columns:
            for ref in self.refs[key]:
                until[ref] = max(until.get(ref, 0), level[key] - 1)
        steps: list[list[tuple[str, str]]] = [[] for _ in range(last + 1)]
        for key, column in self.columns.items():
            steps[level[key]].append((column.text, column.name))
            for k in range(level[key] + 1, until.get(key, 0) + 1):
                steps[k].append((self._s(column.name), column.name))
        return steps

    # --- numbers ----------------------------------------------------------------------------------

    def _write(self, number: Number) -> None:
        """Write the SQL term of a number, after the terms of all numbers that it depends on."""
        pending = [number]
        while pending:
            step, place = pending[-1]
            missing = [n for n in self._operands(step, place) if not self._is_written(n)]
            if missing:
                pending += reversed(missing)
                continue
            if not self._is_written(pending.pop()):
                self._add(step, place)

    def _is_written(self, number: Number) -> bool:
        step, place = number
        return step.op == "constant" or (id(step), place) in self.terms

    def _operands(self, step: Expression, place: int) -> list[Number]:
        """Return the operands of the formula for a number, in the order of the formula."""
        if step.op in ("features", "constant"):
            return []
        first = step.operands[0]
        if step.op == "affine":
            return [number_at(first, int(j)) for j in np.flatnonzero(step.constants[0][place])]
        if step.op in ("squares", "sum", "max", "first_max"):
            numbers = [number_at(first, i) for i in range(first.width)]
            best = step.op == "first_max" and first.width != 2
            return [*numbers, (self._maximum(first), 0)] if best else numbers
        return [number_at(operand, place) for operand in step.operands]

    def _maximum(self, step: Expression) -> Expression:
        """Return a stored expression for the maximum of `step`; reuse the model's if it exists."""
        best = self.maxima.setdefault(id(step), Expression("max", (step,), 1, name="best"))
        self.stored.add(id(best))
        return best

    def _add(self, step: Expression, place: int) -> None:
        """Add the SQL term of a number after its operands; a stored number becomes a column."""
        key = id(step), place
        if step.op == "features":
            self._add_feature(key, self.plan.sources[place])
            return
        numbers = self._operands(step, place)
        text = self._formula(step, place, numbers)
        self.refs[key] = frozenset(self._references(numbers))
        if id(step) in self.stored:
            level = 1 + max((self.columns[ref].level for ref in self.refs[key]), default=0)
            name = step.name or step.op
            if step.width > 1:
                name += f"_{step.components[place] if step.components else place}"
            self.columns[key] = _Column(self.names.unique(name), text, level)
            text = self._s(self.columns[key].name)
        self.terms[key] = text

    def _add_feature(self, key: Key, source: FeatureSource) -> None:
        name = self.names.unique(source.feature)
        self.columns[key] = _Column(name, cell_sql(self.db, source), 0)
        self.terms[key], self.refs[key] = self._s(name), frozenset()

    def _references(self, numbers: list[Number]) -> set[Key]:
        """Return the columns that the terms of these numbers refer to."""
        keys = [(id(step), place) for step, place in numbers if step.op != "constant"]
        return {ref for key in keys for ref in ([key] if key in self.columns else self.refs[key])}

    def _term(self, number: Number) -> str:
        step, place = number
        if step.op == "constant":
            return self.db.number(float(step.constants[0][place]))
        return self.terms[id(step), place]

    def _formula(self, step: Expression, place: int, numbers: list[Number]) -> str:
        terms = [self._term(number) for number in numbers]
        if step.op == "affine":
            return self._affine(step.constants[0][place], float(step.constants[1][place]), terms)
        if step.op in ("squares", "sum"):
            if step.op == "squares":
                terms = [f"{term} * {term}" for term in terms]
            return balanced_join(terms, " + ") if terms else self.db.typed_number(0.0)
        if step.op == "max":
            return largest_sql(terms, self.db)
        if step.op == "first_max":
            if step.operands[0].width == 2:
                return f"CASE WHEN {terms[0]} >= {terms[1]} THEN 0 ELSE 1 END"
            whens = (f"WHEN {term} >= {terms[-1]} THEN {i}" for i, term in enumerate(terms[:-1]))
            return f"CASE {' '.join(whens)} END"
        if step.op == "sub" and step.operands[1].op == "constant":
            value = _constant(numbers[1])
            return self.db.subtract(terms[0], value) if value else terms[0]
        if step.op in _SIGNS:
            return f"({terms[0]} {_SIGNS[step.op]} {terms[1]})"
        if step.op in ("larger", "smaller"):
            function = self.db.greatest if step.op == "larger" else self.db.least
            return f"{function}({terms[0]}, {terms[1]})"
        if step.op in _FUNCTIONS:
            return f"{_FUNCTIONS[step.op]}({terms[0]})"
        assert step.op == "where_greater"
        x, y = (
            self.db.typed_number(_constant(numbers[k]))
            if step.operands[k].op == "constant"
            else terms[k]
            for k in (2, 3)
        )
        return f"CASE WHEN {terms[0]} > {terms[1]} THEN {x} ELSE {y} END"

    def _affine(self, coef: Any, intercept: float, terms: list[str]) -> str:
        slopes = coef[np.flatnonzero(coef)]
        products = [
            f"{self.db.number(float(slope))} * {term}"
            for slope, term in zip(slopes, terms, strict=True)
        ]
        if not products:
            return self.db.typed_number(intercept)
        return balanced_join(products + [self.db.number(intercept)] * bool(intercept), " + ")


def _constant(number: Number) -> float:
    step, place = number
    return float(step.constants[0][place])
