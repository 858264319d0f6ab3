"""How each database spells a name, a text, a double and a function.

Names and texts are always quoted, by sqlglot; a name is never taken from a user without. Doubles
are written with an exponent, 1.0E0, because without one they are decimals of few digits.

What differs, and matters:

    case     DuckDB and SQLite take "a" and "A" for one column
    length   PostgreSQL cuts names after 63 bytes, silently
    text     SQLite takes '12' and even 'abc' for a number when it is cast: only numbers are let in
    atof     SQLite may read the 17th digit of a literal wrong, so that what is subtracted from a
             large number is written in two parts: 15 digits, which are exact, and the rest
    words    SQLite takes "true" in the columns of a subquery for the number 1, quoted or not
    inline   PostgreSQL and SQLite would write the expressions of a step into the next, over and
             over; a fence stops that
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from discriminant.errors import ExportError

LARGEST_DOUBLE = "1.7976931348623157E308"


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """How a database spells things."""

    name: str  # as sqlglot calls it
    title: str
    double: str  # the type
    greatest: str  # the function
    least: str
    max_name_bytes: int | None  # bytes of a name
    folds_case: bool
    materialised: str  # what a step is declared as
    fence: str  # what it ends with
    reserved: tuple[str, ...] = ()  # names that no column of a step can have

    def identifier(self, name: str) -> str:
        """A name, quoted."""
        return _identifier(name, self.name)

    def text(self, value: str) -> str:
        """A text, quoted."""
        from sqlglot import exp

        _refuse_nul("text", value)
        return exp.Literal.string(value).sql(dialect=self.name)

    def literal(self, value: object) -> str:
        """A label: text, truth value, integer or float."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return str(int(value)) if self.name == "sqlite" else str(value).upper()
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return self.number(value)
        raise ExportError.of_label(value)

    def number(self, value: float) -> str:
        """A double, to the last bit; negative ones in parentheses.

        >>> SQL_DIALECTS["duckdb"].number(0.1), SQL_DIALECTS["duckdb"].number(-2e-30)
        ('1.0E-1', '(-2.0E-30)')
        """
        mantissa, _, exponent = f"{float(value)!r}".partition("e")
        if not exponent:
            mantissa, exponent = _scientific(float(value))
        found = f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
        return f"({found})" if found.startswith("-") else found

    def subtract(self, term: str, value: float) -> str:
        """A term less a number, exact where the two are near each other."""
        if self.name != "sqlite":
            return f"({term} - {self.number(value)})"
        short = float(f"{value:.15g}")
        rest = value - short
        found = f"({term} - {self.number(short)})"
        return f"({found} - {self.number(rest)})" if rest else found

    def typed_number(self, value: float) -> str:
        """A double that stands alone; to PostgreSQL a literal is a decimal until it is used."""
        found = self.number(value)
        return f"CAST({found} AS {self.double})" if self.name == "postgres" else found

    def is_missing(self, term: str) -> str:
        """Whether a number is NULL or NaN."""
        if self.name == "sqlite":
            return f"{term} IS NULL"
        return f"({term} IS NULL OR {term} = CAST('NaN' AS {self.double}))"

    def as_double(self, term: str) -> str:
        """A cell as a double; what is no number is an error, or NULL where there are no errors."""
        cast = f"CAST({term} AS {self.double})"
        if self.name != "sqlite":
            return cast
        return f"CASE WHEN TYPEOF({term}) IN ('integer', 'real') THEN {cast} END"

    def parse_number(
        self, term: str, group: str, decimal: str, unit: str, *, missing: Sequence[str]
    ) -> str:
        """A cell as a double, be it a number or a text such as 7.039,00 or $1,234.

        A text in `missing` is NULL; any other that is not written so is infinity, which a row with
        an answer may not hold.
        """
        if group and self.name == "sqlite":
            raise ExportError.of_part(
                f"a number with groups of digits ({term})",
                "SQLite cannot check how a text is written",
                "Store the column as numbers and fit again, or export for DuckDB or PostgreSQL.",
            )
        text = f"TRIM({self.as_text(term)})"
        gone = ", ".join(self.text(one) for one in missing) or "NULL"
        plain = text
        for sign in (*group, *((unit,) if unit else ())):
            plain = f"REPLACE({plain}, {self.text(sign)}, '')"
        if decimal != ".":
            plain = f"REPLACE({plain}, {self.text(decimal)}, '.')"
        number = f"CAST(TRIM({plain}) AS {self.double})"
        infinite = "9E999" if self.name == "sqlite" else f"CAST('Infinity' AS {self.double})"
        fits = self._is_written(text, group, decimal, unit)
        read = (
            f"CASE WHEN {text} IN ({gone}) THEN NULL WHEN {fits} THEN {number} ELSE {infinite} END"
        )
        return f"CASE WHEN {self._is_text(term)} THEN {read} ELSE {self._cast(term)} END"

    def _is_text(self, term: str) -> str:
        """Whether a cell is a text."""
        if self.name == "postgres":
            return f"CAST(PG_TYPEOF({term}) AS TEXT) IN ('text', 'character varying', 'character')"
        return f"TYPEOF({term}) = '{'text' if self.name == 'sqlite' else 'VARCHAR'}'"

    def _cast(self, term: str) -> str:
        """Cast a numeric cell to double; never evaluated for text."""
        return (
            f"TRY_CAST({term} AS {self.double})" if self.name == "duckdb" else self.as_double(term)
        )

    def _is_written(self, text: str, group: str, decimal: str, unit: str) -> str:
        """Whether a text is a number with these signs."""
        if self.name == "sqlite":
            bare = f"REPLACE({text}, {self.text(unit)}, '')" if unit else text
            one = f"LENGTH({bare}) - LENGTH(REPLACE({bare}, {self.text(decimal)}, '')) <= 1"
            return (
                f"{bare} GLOB '*[0-9]*' AND NOT {bare} GLOB '*[^0-9{decimal}+-]*' AND {one} "
                f"AND NOT SUBSTR({bare}, 2) GLOB '*[+-]*'"
            )
        digits = f"[0-9]{{1,3}}([{group}][0-9]{{3}})+|[0-9]+" if group else "[0-9]+"
        power = "" if group or unit else "([eE][+-]?[0-9]+)?"
        sign, after = "[+-]?", ""
        if unit:
            mark = f"({re.escape(unit)})?"
            sign = f"([+-]?[[:space:]]*{mark}|{mark}[[:space:]]*[+-]?)[[:space:]]*"
            after = f"[[:space:]]*{mark}"
        pattern = self.text(f"^{sign}({digits})([{decimal}][0-9]+)?{power}{after}$")
        if self.name == "postgres":
            return f"{text} ~ {pattern}"
        return f"REGEXP_MATCHES({text}, {pattern})"

    def as_boolean(self, term: str) -> str:
        """A truth value as 0 or 1; PostgreSQL casts it to integers only."""
        return self.as_double(f"CAST({term} AS INTEGER)" if self.name == "postgres" else term)

    def as_text(self, term: str) -> str:
        """A cell as text."""
        return f"CAST({term} AS {'TEXT' if self.name != 'duckdb' else 'VARCHAR'})"

    def days(self, term: str) -> str:
        """A date or a time as days since 1970-01-01."""
        if self.name == "sqlite":
            return f"(JULIANDAY({term}) - 2440587.5E0)"
        if self.name == "postgres":
            return f"(CAST(EXTRACT(EPOCH FROM {term}) AS DOUBLE PRECISION) / 8.64E4)"
        return f"(EPOCH_US({term}) / 8.64E10)"


SQL_DIALECTS = {
    "duckdb": SqlDialect(
        "duckdb", "DuckDB", "DOUBLE", "GREATEST", "LEAST", None, True, "AS", ""
    ),
    "postgres": SqlDialect(
        "postgres", "PostgreSQL", "DOUBLE PRECISION", "GREATEST", "LEAST", 63, False, "AS",
        " OFFSET 0",
    ),
    "sqlite": SqlDialect(
        "sqlite", "SQLite", "REAL", "MAX", "MIN", None, True, "AS MATERIALIZED", "",
        ("true", "false"),
    ),
}  # fmt: skip


def sql_dialect(name: object) -> SqlDialect:
    """The database of that name, or the error that says which there are."""
    found = SQL_DIALECTS.get({"postgresql": "postgres"}.get(str(name), str(name)))
    if found is None:
        raise ExportError.of_target(name, tuple(SQL_DIALECTS))
    return found


@lru_cache(maxsize=1 << 14)
def _identifier(name: str, dialect: str) -> str:
    """Names come again and again: once is slow enough."""
    from sqlglot import exp

    _refuse_nul("name", name)
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect)


def _scientific(value: float) -> tuple[str, str]:
    """Mantissa and exponent of the shortest digits that are this number."""
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    assert isinstance(exponent, int)
    power = exponent + len(text) - 1 if value else 0
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}", str(power)


def _refuse_nul(what: str, name: str) -> None:
    if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ExportError.of_text(what, name)
