"""Pieces of SQL: cells of a table as numbers, long sums, the largest of many."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.export.features import Source
from discriminant.table.database import Database

_ARGUMENTS = 50  # of one function: SQLite takes 127


def cell(db: Database, source: Source) -> str:
    """A feature from the cells of the table."""
    column = f"s.{db.identifier(source.column)}"
    if source.kind == "text":
        return _category(db, source, db.as_text(column))
    if source.kind == "missing":
        if source.signs is not None:
            column = db.written_number(column, *source.signs, missing=source.missing)
        return f"CASE WHEN {column} IS NULL THEN {db.typed(1.0)} ELSE {db.typed(0.0)} END"
    ways = {"boolean": db.as_truth, "date": db.days}
    found = ways.get(source.kind, db.as_double)(column)
    if source.signs is not None:
        found = db.written_number(column, *source.signs, missing=source.missing)
    if source.fill is None:
        return found
    return f"CASE WHEN {db.is_missing(found)} THEN {db.typed(source.fill)} ELSE {found} END"


def _category(db: Database, source: Source, column: str) -> str:
    """A number for each category."""
    whens = [
        f"WHEN {column} IN ({', '.join(db.text(level) for level in levels)}) THEN {db.typed(value)}"
        for value, levels in source.groups()
    ]
    missing = "NULL" if source.fill is None else db.typed(source.fill)
    other = "NULL" if source.other is None else db.typed(source.other)
    return f"CASE WHEN {column} IS NULL THEN {missing} {' '.join(whens)} ELSE {other} END"


def tree(terms: Sequence[str], sign: str) -> str:
    """Terms joined pair by pair, so that the depth is the logarithm of their number."""
    found = list(terms)
    while len(found) > 1:
        pairs = [sign.join(found[k : k + 2]) for k in range(0, len(found), 2)]
        found = [f"({one})" if sign in one else one for one in pairs]
    return found[0]


def largest(terms: list[str], db: Database) -> str:
    """The largest of terms, in groups that a function takes."""
    while len(terms) > 1:
        groups = [terms[k : k + _ARGUMENTS] for k in range(0, len(terms), _ARGUMENTS)]
        terms = [g[0] if len(g) == 1 else f"{db.larger}({', '.join(g)})" for g in groups]
    return terms[0]
