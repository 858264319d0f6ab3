"""SQL dialects: how each database writes names, literals and functions.

Names and texts are always quoted, and a quote character inside them is doubled: standard SQL, in
which no other character has a meaning between quotes. Doubles are written with an exponent, such as
1.0E0, because databases read a literal without exponent as a decimal of few digits.

Differences that matter:

    case     DuckDB and SQLite treat "a" and "A" as the same column
    length   PostgreSQL silently truncates names to 63 bytes
    text     SQLite casts '12' and even 'abc' to a number, so only numbers are cast
    atof     SQLite may read the 17th digit of a literal wrong; a number that is subtracted from a
             large one is therefore written in two parts: 15 digits, which are exact, and the rest
    words    SQLite reads "true" in the columns of a subquery as the number 1, quoted or not
    inline   PostgreSQL and SQLite would inline the expressions of a step into the next one, again
             and again; a fence prevents that
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from discriminant.errors import ExportError

LARGEST_DOUBLE = "1.7976931348623157E308"


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """SQL of one database."""

    name: str  # key in `SQL_DIALECTS`
    title: str
    double: str  # type of a double
    greatest: str  # function that returns the largest argument
    least: str
    max_name_bytes: int | None  # longest name, in bytes
    folds_case: bool  # whether names that differ only in case are the same
    materialised: str  # keyword that declares a step (a common table expression)
    fence: str  # clause at the end of a step that prevents inlining
    reserved: tuple[str, ...] = ()  # names that no column of a step can have

    def identifier(self, name: str) -> str:
        """Return a quoted name.

        >>> SQL_DIALECTS["sqlite"].identifier('a"b')
        '"a""b"'
        """
        _refuse_nul("name", name)
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Return a quoted text.

        >>> SQL_DIALECTS["sqlite"].text("it's")
        "'it''s'"
        """
        _refuse_nul("text", value)
        return "'" + value.replace("'", "''") + "'"

    def literal(self, value: object) -> str:
        """Return the literal of a label: text, truth value, integer or float."""
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
        """Return the literal of a double, exact to the last bit, in parentheses if it is negative.

        >>> SQL_DIALECTS["duckdb"].number(0.1), SQL_DIALECTS["duckdb"].number(-2e-30)
        ('1.0E-1', '(-2.0E-30)')
        """
        mantissa, _, exponent = f"{float(value)!r}".partition("e")
        if not exponent:
            mantissa, exponent = _scientific(float(value))
        literal = f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
        return f"({literal})" if literal.startswith("-") else literal

    def subtract(self, term: str, value: float) -> str:
        """Return SQL for a term minus a number.

        The difference is exact if both numbers are nearly equal.
        """
        if self.name != "sqlite":
            return f"({term} - {self.number(value)})"
        short = float(f"{value:.15g}")
        rest = value - short
        difference = f"({term} - {self.number(short)})"
        return f"({difference} - {self.number(rest)})" if rest else difference

    def typed_number(self, value: float) -> str:
        """Return SQL for a number of type double.

        PostgreSQL needs a cast, because a literal alone is a decimal.
        """
        literal = self.number(value)
        return f"CAST({literal} AS {self.double})" if self.name == "postgres" else literal

    def is_missing(self, term: str) -> str:
        """Return SQL for the condition that a number is NULL or NaN."""
        if self.name == "sqlite":
            return f"{term} IS NULL"
        return f"({term} IS NULL OR {term} = CAST('NaN' AS {self.double}))"

    def as_double(self, term: str) -> str:
        """Return SQL that converts a cell to a double. Other types are an error, in SQLite NULL."""
        cast = f"CAST({term} AS {self.double})"
        if self.name != "sqlite":
            return cast
        return f"CASE WHEN TYPEOF({term}) IN ('integer', 'real') THEN {cast} END"

    def parse_number(
        self, term: str, group: str, decimal: str, unit: str, *, missing: Sequence[str]
    ) -> str:
        """Return SQL that converts a number, or a text such as 7.039,00 or $1,234, to a double.

        Texts in `missing` become NULL. Any other text that is not in the expected format becomes
        infinity, so that the row gets no prediction.
        """
        if group and self.name == "sqlite":
            raise ExportError.of_part(
                f"a number with groups of digits ({term})",
                "SQLite cannot check how a text is written",
                "Store the column as numbers and fit again, or export for DuckDB or PostgreSQL.",
            )
        text = f"TRIM({self.as_text(term)})"
        missing_list = ", ".join(map(self.text, missing)) or "NULL"
        plain = text
        for sign in (*group, *((unit,) if unit else ())):
            plain = f"REPLACE({plain}, {self.text(sign)}, '')"
        if decimal != ".":
            plain = f"REPLACE({plain}, {self.text(decimal)}, '.')"
        number = f"CAST(TRIM({plain}) AS {self.double})"
        infinite = "9E999" if self.name == "sqlite" else f"CAST('Infinity' AS {self.double})"
        fits = self._matches_format(text, group, decimal, unit)
        parsed = (
            f"CASE WHEN {text} IN ({missing_list}) THEN NULL WHEN {fits} THEN {number} "
            f"ELSE {infinite} END"
        )
        # This cast is not evaluated for texts.
        duckdb = self.name == "duckdb"
        cast = f"TRY_CAST({term} AS {self.double})" if duckdb else self.as_double(term)
        return f"CASE WHEN {self._is_text(term)} THEN {parsed} ELSE {cast} END"

    def _is_text(self, term: str) -> str:
        if self.name == "postgres":
            return f"CAST(PG_TYPEOF({term}) AS TEXT) IN ('text', 'character varying', 'character')"
        return f"TYPEOF({term}) = '{'text' if self.name == 'sqlite' else 'VARCHAR'}'"

    def _matches_format(self, text: str, group: str, decimal: str, unit: str) -> str:
        """Return SQL for the condition that a text is a number with these signs."""
        if self.name == "sqlite":
            bare = f"REPLACE({text}, {self.text(unit)}, '')" if unit else text
            once = f"LENGTH({bare}) - LENGTH(REPLACE({bare}, {self.text(decimal)}, '')) <= 1"
            return (
                f"{bare} GLOB '*[0-9]*' AND NOT {bare} GLOB '*[^0-9{decimal}+-]*' AND {once} "
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
        """Return SQL that converts a truth value to 0 or 1.

        PostgreSQL can cast a truth value only to an integer.
        """
        return self.as_double(f"CAST({term} AS INTEGER)" if self.name == "postgres" else term)

    def as_text(self, term: str) -> str:
        """Return SQL that converts a cell to text."""
        return f"CAST({term} AS {'TEXT' if self.name != 'duckdb' else 'VARCHAR'})"

    def days(self, term: str) -> str:
        """Return SQL that converts a date or time to days since 1970-01-01."""
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
    """Return the dialect of a database.

    For an unknown name raise an error that lists all dialects.
    """
    dialect = SQL_DIALECTS.get({"postgresql": "postgres"}.get(str(name), str(name)))
    if dialect is None:
        raise ExportError.of_target(name, tuple(SQL_DIALECTS))
    return dialect


def _scientific(value: float) -> tuple[str, str]:
    """Return mantissa and exponent of a number, with the fewest digits that identify it."""
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    assert isinstance(exponent, int)
    power = exponent + len(text) - 1 if value else 0
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}", str(power)


def _refuse_nul(what: str, name: str) -> None:
    if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ExportError.of_text(what, name)
