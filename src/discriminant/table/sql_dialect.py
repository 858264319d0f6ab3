"""SQL dialects: how each database writes names, literals and functions.

Names and texts are always quoted, and a quote character inside them is doubled. In standard SQL no
other character has a special meaning between quotes. Doubles are written with an exponent, such as
1.0E0, because databases read a literal without exponent as a decimal of few digits.

Differences between databases that must be handled:

    case     DuckDB and SQLite treat "a" and "A" as the same column
    length   PostgreSQL silently truncates names to 63 bytes
    text     SQLite casts even 'abc' to a number. A text is a number if it equals its own CAST AS
             NUMERIC, because SQLite converts texts that are numbers before it compares them
    atof     SQLite may misread the 17th digit of a literal; a number that is subtracted from a
             large one is therefore written in two parts: 15 digits, which are exact, and the rest
    words    SQLite reads "true" as the number 1 in the columns of a subquery, even in quotes
    inline   PostgreSQL and SQLite would inline the expressions of each step into the next step; a
             clause at the end of the step (a fence) prevents that
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from discriminant.errors import ExportError
from discriminant.table.files.csv_dialect import FALSE, TRUE
from discriminant.table.text_values import ISO_DATE, date_pattern

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
        """Return SQL that converts a cell to a double.

        Other types are an error (in SQLite NULL).
        """
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
        if self.name == "sqlite" and decimal == "." and not unit:
            return self._unless_missing(
                term,
                missing,
                f"WHEN CAST({term} AS NUMERIC) = {term} THEN CAST({term} AS REAL) ELSE 9E999",
            )
        text = f"TRIM({self.as_text(term)})"
        listed = ", ".join(map(self.text, missing)) or "NULL"
        missing_text = f"{text} IS NULL OR {text} IN ({listed})"
        plain = text
        for sign in (*group, *((unit,) if unit else ())):
            plain = f"REPLACE({plain}, {self.text(sign)}, '')"
        if decimal != ".":
            plain = f"REPLACE({plain}, {self.text(decimal)}, '.')"
        number = f"CAST(TRIM({plain}) AS {self.double})"
        infinite = self._infinite()
        fits = self._matches_format(text, group, decimal, unit)
        parsed = f"CASE WHEN {missing_text} THEN NULL WHEN {fits} THEN {number} ELSE {infinite} END"
        # This cast is not evaluated for texts.
        duckdb = self.name == "duckdb"
        cast = f"TRY_CAST({term} AS {self.double})" if duckdb else self.as_double(term)
        return f"CASE WHEN {self._is_text(term)} THEN {parsed} ELSE {cast} END"

    def parse_boolean(self, term: str, *, missing: Sequence[str]) -> str:
        """Return SQL that converts a truth value, or a text such as 'true', to 0 or 1, in SQLite.

        Texts in `missing` become NULL; any other text becomes infinity, as in `parse_number`.
        """
        true, false = (", ".join(map(self.text, words)) for words in (TRUE, FALSE))
        return self._unless_missing(
            term,
            missing,
            f"WHEN {term} IN ({true}) THEN 1.0E0 WHEN {term} IN ({false}) THEN 0.0E0 "
            f"WHEN CAST({term} AS NUMERIC) = {term} THEN CAST({term} AS REAL) ELSE 9E999",
        )

    def parse_date(self, term: str, format: str, *, missing: Sequence[str]) -> str:
        """Return SQL that converts a date, or a text in a format, to days since 1970-01-01.

        ISO dates are accepted in addition to the format. Texts in `missing` become NULL; any other
        text becomes infinity, as in `parse_number`.
        """
        formats = tuple(dict.fromkeys((format, ISO_DATE)))
        if self.name == "sqlite":
            whens = " ".join(self._sqlite_date_whens(f"TRIM({term})", formats))
            return self._unless_missing(term, missing, f"{whens} ELSE 9E999")
        text = f"TRIM({self.as_text(term)})"
        listed = ", ".join(map(self.text, missing)) or "NULL"
        missing_text = f"{text} IS NULL OR {text} IN ({listed})"
        whens = " ".join(self._date_when(text, one) for one in formats)
        parsed = f"CASE WHEN {missing_text} THEN NULL {whens} ELSE {self._infinite()} END"
        # This cast is not evaluated for texts.
        days = self.days(f"{'TRY_CAST' if self.name == 'duckdb' else 'CAST'}({term} AS TIMESTAMP)")
        return (
            f"CASE WHEN {self._is_text(term)} THEN {parsed} WHEN {term} IS NOT NULL THEN {days} END"
        )

    def _date_when(self, text: str, format: str) -> str:
        """Return a WHEN clause for texts in a date format; an invalid date becomes infinity."""
        date, places = date_pattern(format)
        clock = "([ T]([0-9]{2}):([0-9]{2})(:([0-9]{2}([.][0-9]{1,6})?))?)?"
        pattern = self.text(f"^{date}{clock}$")

        def group(index: int) -> str:
            if self.name == "postgres":
                return f"(REGEXP_MATCH({text}, {pattern}))[{index}]"
            return f"REGEXP_EXTRACT({text}, {pattern}, {index})"

        year, month, day = (f"CAST({group(place + 1)} AS INTEGER)" for place in places)
        hour, minute, second = (
            f"CAST(COALESCE(NULLIF({group(index)}, ''), '0') AS {self.double})"
            for index in (5, 6, 8)
        )
        first = f"MAKE_DATE({year}, {month}, 1)"
        valid = (
            f"{month} BETWEEN 1 AND 12 AND {year} >= 1 AND {day} >= 1 "
            f"AND {hour} < 24 AND {minute} < 60 AND {second} < 60"
        )
        fits = f"{first} + ({day} - 1)"
        days = self.days(f"CAST({first} AS TIMESTAMP)")
        seconds = f"(({hour} * 60 + {minute}) * 60 + {second})"
        return (
            f"WHEN {self._matches(text, pattern)} THEN "
            f"CASE WHEN NOT ({valid}) THEN {self._infinite()} "
            f"WHEN EXTRACT(MONTH FROM {fits}) <> {month} THEN {self._infinite()} "
            f"ELSE {days} + ({day} - 1) + {seconds} / 8.64E4 END"
        )

    def _sqlite_date_whens(self, text: str, formats: Sequence[str]) -> Iterator[str]:
        """Yield WHEN clauses that convert a text in given date formats, by number of digits.

        The text is rearranged to an ISO date. The date is invalid if SQLite, after parsing it,
        writes it differently.
        """
        for format in formats:
            sign = next(letter for letter in format if letter not in "YMD")
            names = format.split(sign)
            short = (1, 2) if format != ISO_DATE else (2,)
            for lengths in product(*((4,) if name == "YYYY" else short for name in names)):
                glob = sign.join("[0-9]" * length for length in lengths)
                starts = [1 + sum(lengths[:k]) + k for k in range(3)]
                parts = {
                    name: "'0' || " * (length == 1) + f"SUBSTR({text}, {start}, {length})"
                    for name, start, length in zip(names, starts, lengths, strict=True)
                }
                date = " || '-' || ".join(parts[name] for name in ("YYYY", "MM", "DD"))
                clock = f"SUBSTR({text}, {starts[2] + lengths[2]})"
                yield (
                    f"WHEN {text} GLOB '{glob}*' AND NOT {clock} GLOB '[0-9]*' THEN "
                    f"CASE WHEN DATE(JULIANDAY({date})) = {date} THEN "
                    f"COALESCE(JULIANDAY({date} || {clock}) - 2440587.5E0, 9E999) ELSE 9E999 END"
                )

    def _unless_missing(self, term: str, missing: Sequence[str], whens: str) -> str:
        """Return SQL for SQLite:

        NULL for a missing cell, otherwise the result of the WHEN clauses.
        """
        listed = ", ".join(map(self.text, missing)) or "NULL"
        return (
            f"CASE WHEN {term} IS NULL OR (TYPEOF({term}) = 'text' AND TRIM({term}) IN ({listed})) "
            f"THEN NULL {whens} END"
        )

    def _infinite(self) -> str:
        return "9E999" if self.name == "sqlite" else f"CAST('Infinity' AS {self.double})"

    def _is_text(self, term: str) -> str:
        if self.name == "postgres":
            return f"CAST(PG_TYPEOF({term}) AS TEXT) IN ('text', 'character varying', 'character')"
        return f"TYPEOF({term}) = '{'text' if self.name == 'sqlite' else 'VARCHAR'}'"

    def _matches_format(self, text: str, group: str, decimal: str, unit: str) -> str:
        """Return SQL for the condition that a text is a number with the given signs."""
        if self.name == "sqlite":
            bare = f"REPLACE({text}, {self.text(unit)}, '')" if unit else text
            once = f"LENGTH({bare}) - LENGTH(REPLACE({bare}, {self.text(decimal)}, '')) <= 1"
            return (
                f"{bare} GLOB '*[0-9]*' AND NOT {bare} GLOB '*[^0-9{decimal}+-]*' AND {once} "
                f"AND NOT SUBSTR({bare}, 2) GLOB '*[+-]*'"
            )
        if not group and not unit and decimal == ".":
            pattern = self.text(r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$")
            return self._matches(text, pattern)
        digits = f"[0-9]{{1,3}}([{group}][0-9]{{3}})+|[0-9]+" if group else "[0-9]+"
        power = "" if group or unit else "([eE][+-]?[0-9]+)?"
        sign, after = "[+-]?", ""
        if unit:
            mark = f"({re.escape(unit)})?"
            sign = f"([+-]?[[:space:]]*{mark}|{mark}[[:space:]]*[+-]?)[[:space:]]*"
            after = f"[[:space:]]*{mark}"
        pattern = self.text(f"^{sign}({digits})([{decimal}][0-9]+)?{power}{after}$")
        return self._matches(text, pattern)

    def _matches(self, text: str, pattern: str) -> str:
        """Return SQL for the condition that a text matches a quoted regular expression."""
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
