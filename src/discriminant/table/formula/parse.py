"""Parsing of a formula such as `y ~ a + log(b) + a:c - 1` into terms.

The library formulaic parses the operators of Wilkinson and Rogers: + - : * / ** ^ %in% and the dot,
which stands for all other columns. The expressions between them are parsed by
`table.formula.expressions`, which allows a list of functions and computes them itself: formulaic
evaluates nothing. A model file contains the parsed terms, so only a fit needs formulaic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from discriminant.errors import FormulaError, LibraryMissingError
from discriminant.table.formula.expressions import column_names, parse_expression

_MAX_TERMS = 10_000
_MAX_POWER = 12
_CONSTANTS = ("TRUE", "FALSE", "NULL")
_ALIAS = "\1"  # prefix of column names that look like numbers
_NUMBER = re.compile(r"[\d.]+")
_PARSER_ERRORS = (
    *(SyntaxError, RecursionError, MemoryError, NotImplementedError, ValueError),
    *(AttributeError, TypeError, LookupError),
)
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\^")


@dataclass(frozen=True, slots=True)
class ParsedFormula:
    """Response and terms of a formula."""

    text: str
    response: str | None  # expression of the response
    intercept: bool
    terms: tuple[tuple[str, ...], ...]  # factors of each term, without the intercept
    columns: tuple[str, ...]  # columns that the terms use
    response_columns: tuple[str, ...]

    @property
    def target(self) -> str | None:
        """Column that is the response, or None if there is no response or it is an expression."""
        if self.response is None or len(self.response_columns) != 1:
            return None
        name = self.response_columns[0]
        return name if self.response == quoted(name) else None


def quoted(name: str) -> str:
    """Write a column name as an expression: in backticks, unless it is a plain name."""
    plain = name.isidentifier() and not iskeyword(name) and name not in _CONSTANTS
    return name if plain else f"`{name}`"


def parse_formula(text: Any, names: Sequence[str]) -> ParsedFormula:
    """Return the terms of a formula; raise an error for a column that is not among `names`."""
    if not isinstance(text, str) or not text.strip():
        raise FormulaError.not_text(type(text).__name__)
    code, positions = _prepare(text)
    parsed, known = _parse(code, positions, text, names), set(names)
    response: str | None = None
    response_columns: tuple[str, ...] = ()
    if (left := getattr(parsed, "lhs", None)) is not None:
        factors = [factor for term in left for factor in term.factors]
        if len(factors) != 1 or len(list(left)) != 1:
            raise FormulaError.one_response(text)
        response = _expression(factors[0])
        response_columns = column_names(parse_expression(response))
    if response_columns and "." in re.sub(r"`[^`]*`", "", code):
        others = [name for name in names if name not in response_columns]
        parsed = _parse(code, positions, text, others)  # the dot does not include the response
    right = list(parsed.rhs if hasattr(parsed, "rhs") else parsed.root)
    if len(right) > _MAX_TERMS:
        raise FormulaError.too_wide(_MAX_TERMS)
    terms, intercept = [], False
    for term in right:
        literals = [f for f in term.factors if f.eval_method.value == "literal"]
        if len(literals) == len(term.factors):
            intercept = True
        elif literals:
            raise FormulaError.of_scaling(literals[0].expr)
        else:
            terms.append(tuple(_expression(factor) for factor in term.factors))
    order = {text: j for j, text in enumerate(dict.fromkeys(f for term in terms for f in term))}
    terms = [tuple(sorted(set(term), key=order.__getitem__)) for term in terms]
    terms.sort(key=len)  # main effects first, as in R
    trees = [parse_expression(factor) for term in terms for factor in term]
    columns = tuple(dict.fromkeys(name for tree in trees for name in column_names(tree)))
    for name in (*response_columns, *columns):
        if name not in known:
            from discriminant.table.labels import closest_name

            place = text.find(name)
            raise FormulaError.unknown_column(
                name, place + 1, list(names), closest_name(name, list(names))
            )
    for name in columns:
        if name in response_columns:
            raise FormulaError.response_inside(name, text)
    if not terms:
        raise FormulaError.no_terms(text)
    for text_of_factor in order:
        if not column_names(parse_expression(text_of_factor)):
            raise FormulaError.constant(text_of_factor)
    return ParsedFormula(text, response, intercept, tuple(terms), columns, tuple(response_columns))


def response_column(text: str) -> str | None:
    """Return the column that is the response of a formula, judging by its text alone."""
    left, separator, _ = text.partition("~")
    if not separator or not left.strip():
        return None
    names = column_names(parse_expression(left.strip()))
    plain = left.strip().strip("`")
    if names != (plain,):
        raise FormulaError.needs_column(left.strip())
    return plain


def _prepare(text: str) -> tuple[str, list[int]]:
    """Rewrite the text for formulaic; return also the original position of each character.

    `^` becomes `**`, because in Python `^` has a lower precedence than `+`: x^2 + 1 would be x^3. A
    column named `1` gets a prefix, because formulaic does not distinguish it from the intercept.
    """
    code, positions, end = "", [], 0
    for match in _QUOTED.finditer(text):
        for start, piece in ((end, text[end : match.start()]), (match.start(), match[0])):
            new = "**" if piece == "^" else piece
            if _NUMBER.fullmatch(piece.strip("`")) and piece.startswith("`"):
                new = f"`{_ALIAS}{piece[1:]}"
            code += new
            positions += [min(start + j, start + len(piece) - 1) for j in range(len(new))]
        end = match.end()
    code += text[end:]
    return code, [*positions, *range(end, len(text) + 1)]


def _parse(code: str, positions: list[int], text: str, names: Sequence[str]) -> Any:
    """Return formulaic's terms; a syntax error is raised with its position in the text."""
    try:
        from formulaic.errors import FormulaicError  # type: ignore[import-untyped, import-not-found, unused-ignore]
        from formulaic.parser import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
            DefaultFormulaParser,
        )
        from formulaic.parser.algos.tokenize import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
            tokenize,
        )
    except ImportError:
        raise LibraryMissingError.of("formulaic", what="A formula", extra="formula") from None
    try:
        for token in tokenize(code):
            start = token.source_start or 0
            if token.kind is not None and token.kind.value == "python":
                parse_expression(token.token, places=positions[start:])
        _check_powers(code, positions)
        parser = DefaultFormulaParser(feature_flags={"TWOSIDED"})
        available = [_ALIAS + name if _NUMBER.fullmatch(name) else name for name in names]
        return parser.get_terms(code, context={"__formulaic_variables_available__": available})
    except FormulaicError as error:
        message, _, context = str(error).partition("\n\n")
        mark = context.find("⧛")
        column = positions[min(mark, len(positions) - 1)] + 1 if mark >= 0 else None
        raise FormulaError.of_syntax(text, column, message.replace("**", "^")) from None
    except FormulaError:
        raise
    except _PARSER_ERRORS as error:  # formulaic itself fails on some texts, such as '(a]'
        reason = (
            str(error) if isinstance(error, SyntaxError) else "brackets or operators do not match"
        )
        raise FormulaError.of_syntax(text, None, reason) from None


def _check_powers(code: str, positions: list[int]) -> None:
    """Raise an error for a power of a sum with too many terms to be expanded."""
    for match in re.finditer(r"\)\s*\*\*\s*(\d+)", code):
        if int(match[1]) > _MAX_POWER:
            column = positions[match.start(1)] + 1
            raise FormulaError.of_syntax(code, column, f"the power is above {_MAX_POWER}")


def _expression(factor: Any) -> str:
    """Convert a factor of formulaic to an expression."""
    if factor.eval_method.value == "lookup":
        return quoted(str(factor.expr).removeprefix(_ALIAS))
    return str(factor.expr).replace(_ALIAS, "")
