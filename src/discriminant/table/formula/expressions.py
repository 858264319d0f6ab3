"""Expressions of columns in a formula: checked, printed as R prints them, and computed.

Expressions such as `log(dose)` or `C(race, sum)` have the syntax that Python and R have in common.
An expression is parsed to a syntax tree, and this module evaluates the tree itself: no text is ever
executed. Only these parts are allowed; anything else is an error that names it:

    columns                x, birth.weight, `birth weight`, Q("birth weight")
    arithmetic             + - * / ** (or ^) and comparisons
    functions of numbers   log log2 log10 log1p exp expm1 sqrt abs sin cos tan floor ceiling I
    with learnt parameters center scale standardize poly bs
    categories             C factor as.factor, coded by treatment, sum, helmert or poly

The functions "with learnt parameters" learn numbers from the training rows, such as the mean of a
column. The learnt numbers are the state of the function call: plain floats, stored under the text
of the call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import FormulaError
from discriminant.table.blocks import Floats
from discriminant.table.formula.transforms import TRANSFORMS

_MAX_LENGTH = 2_000  # largest number of characters of an expression
_MAX_NODES = 2_000
_MAX_DEPTH = 100

NUMERIC: Mapping[str, Callable[[Any], Any]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "floor": np.floor,
    "ceiling": np.ceil,
}
CATEGORICAL = ("C", "factor", "as.factor")
CODINGS = ("treatment", "sum", "helmert", "poly")
FUNCTIONS = (*NUMERIC, "I", "Q", *TRANSFORMS, *CATEGORICAL)
_ADVICE = {
    "offset": "pass offset= to GLM.fit instead",
    "cbind": "pass the share of successes as the response, and the number of trials as weights",
    "ns": "use bs, or add the columns to the table",
    "cr": "use bs, or add the columns to the table",
    "cs": "use bs, or add the columns to the table",
    "s": "use bs or poly",
    "lag": "add the lagged column to the table",
    "hashed": "use C",
}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_OPERATORS: Mapping[type[ast.operator], tuple[Callable[..., Any], str, int]] = {
    ast.Add: (np.add, " + ", 2),
    ast.Sub: (np.subtract, " - ", 2),
    ast.Mult: (np.multiply, " * ", 3),
    ast.Div: (np.true_divide, "/", 3),
    ast.Mod: (np.mod, "%%", 4),
    ast.FloorDiv: (np.floor_divide, "%/%", 4),
    ast.Pow: (np.power, "^", 6),
}
_COMPARISONS: Mapping[type[ast.cmpop], tuple[Callable[..., Any], str]] = {
    ast.Lt: (np.less, " < "),
    ast.LtE: (np.less_equal, " <= "),
    ast.Gt: (np.greater, " > "),
    ast.GtE: (np.greater_equal, " >= "),
    ast.Eq: (np.equal, " == "),
    ast.NotEq: (np.not_equal, " != "),
}
_PLAIN_NAME = re.compile(r"(?:[^\W\d_]|\.(?!\d))[\w.]*")
_BACKTICKS = re.compile(r"`([^`]+)`")
BOOLEANS = ("FALSE", "TRUE")


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """A column of categories."""

    codes: npt.NDArray[Any]  # (n,) position among the levels; negative if unknown
    levels: tuple[str, ...]
    coding: str = "treatment"
    reference: str | None = None  # level that treatment contrasts compare with; None: the first


State = tuple[float, ...]
Columns = Mapping[str, "Floats | Categories"]


def parse_expression(text: str, *, places: Sequence[int] = ()) -> ast.expr:
    """Parse an expression to a syntax tree, and reject everything that is not allowed.

    Names with dots or in backticks become names of columns. `places` holds the position of each
    character of the expression within the formula, for messages.
    """
    if len(text) > _MAX_LENGTH:
        raise FormulaError.too_long(len(text), _MAX_LENGTH)
    names: list[str] = []

    def quoted(match: re.Match[str]) -> str:
        names.append(match[1])
        return f"_quoted_{len(names) - 1}_".ljust(len(match[0]), "_")

    try:
        tree = ast.parse(_BACKTICKS.sub(quoted, text), mode="eval").body
    except SyntaxError as error:
        column = _character(places, (error.offset or 1) - 1)
        raise FormulaError.of_syntax(text, column, error.msg) from None
    except (ValueError, RecursionError, MemoryError):
        raise FormulaError.of_syntax(text, _character(places, 0), "it cannot be parsed") from None
    if sum(1 for _ in ast.walk(tree)) > _MAX_NODES or _depth(tree) > _MAX_DEPTH:
        raise FormulaError.of_syntax(text, _character(places, 0), "it is too deeply nested")
    return _checked(tree, names, places)


def _character(places: Sequence[int], offset: int) -> int:
    """Return the number of a character in its formula, counted from 1."""
    return (places[min(max(offset, 0), len(places) - 1)] if len(places) else offset) + 1


def _depth(tree: ast.AST) -> int:
    depth, layer = 0, [tree]
    while layer and depth <= _MAX_DEPTH:
        depth, layer = depth + 1, [each for node in layer for each in ast.iter_child_nodes(node)]
    return depth


def _checked(node: ast.expr, names: Sequence[str], places: Sequence[int]) -> ast.expr:
    """Replace dotted names in the tree by single names; reject parts that are not allowed."""

    def check(part: ast.expr) -> ast.expr:
        return _checked(part, names, places)

    column = _character(places, node.col_offset)
    dotted = _dotted(node)
    if dotted is not None:
        match = re.fullmatch(r"_quoted_(\d+)_+", dotted)
        quoted = match is not None and int(match[1]) < len(names)
        name = names[int(match[1])] if match is not None and quoted else dotted
        if not quoted and dotted in _CONSTANTS:
            return ast.Constant(_CONSTANTS[dotted])
        return ast.Name(name)
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, bool | int | float | str | None):
            raise FormulaError.of_part(type(node.value).__name__, column)
        is_integer = isinstance(node.value, int) and not isinstance(node.value, bool)
        if is_integer and abs(node.value) > 1 << 53:  # type: ignore[arg-type]
            raise FormulaError.of_part("a number of more than 15 digits", column)
        return node
    if isinstance(node, ast.Call):
        function = _dotted(node.func)
        if function is None:
            raise FormulaError.of_part("a call of a call", column)
        function = function.removeprefix("np.").removeprefix("numpy.")
        short = function.removeprefix("contr.").lower()
        keywords = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise FormulaError.of_part("**", column)
            keywords.append(ast.keyword(keyword.arg, check(keyword.value)))
        arguments = [check(part) for part in node.args]
        if function == "Q":
            if len(arguments) != 1 or not _is_text(arguments[0]):
                raise FormulaError.of_arguments("Q", 'the name of a column, as in Q("dose")')
            return ast.Name(arguments[0].value)  # type: ignore[attr-defined]
        if function not in (*FUNCTIONS, "c") and short not in CODINGS:
            raise FormulaError.of_function(
                function, column, FUNCTIONS, advice=_ADVICE.get(function, "")
            )
        if function in (*NUMERIC, "I") and (len(arguments) != 1 or keywords):
            raise FormulaError.of_arguments(function, "one expression and no options")
        return ast.Call(ast.Name(function), arguments, keywords)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return ast.BinOp(check(node.left), node.op, check(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return ast.UnaryOp(node.op, check(node.operand))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return ast.Compare(check(node.left), node.ops, [check(node.comparators[0])])
    if isinstance(node, ast.List | ast.Tuple):
        return ast.List([check(part) for part in node.elts])
    raise FormulaError.of_part(f"'{ast.unparse(node)[:60]}' ({type(node).__name__})", column)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _dotted(node: ast.expr) -> str | None:
    """Return the name of a node, which may contain dots as in R, or None if it is not a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def column_names(node: ast.expr) -> tuple[str, ...]:
    """Return the columns that an expression uses, in the order of their first use."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Call):
        function = _function(node)
        parts = node.args[:1] if function in CATEGORICAL else node.args
        coding = function.removeprefix("contr.").lower() in CODINGS and function not in TRANSFORMS
        return () if coding else tuple(dict.fromkeys(n for p in parts for n in column_names(p)))
    children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
    return tuple(dict.fromkeys(name for child in children for name in column_names(child)))


def _function(node: ast.Call) -> str:
    return str(getattr(node.func, "id", ""))


# --- as text --------------------------------------------------------------------------------------


def to_text(node: ast.expr, precedence: int = 0) -> str:
    """Return an expression as R prints it.

    >>> to_text(parse_expression("I(age**2)")), to_text(parse_expression('C(x,Treatment("b"))'))
    ('I(age^2)', 'C(x, Treatment("b"))')
    """
    if isinstance(node, ast.Name):
        return node.id if _PLAIN_NAME.fullmatch(node.id) else f"`{node.id}`"
    if isinstance(node, ast.Constant):
        return _constant_text(node.value)
    if isinstance(node, ast.List):
        return f"c({', '.join(map(to_text, node.elts))})"
    if isinstance(node, ast.Call):
        keywords = [f"{each.arg} = {to_text(each.value)}" for each in node.keywords]
        return f"{_function(node)}({', '.join([*map(to_text, node.args), *keywords])})"
    if isinstance(node, ast.UnaryOp):
        text, own = ("-" if isinstance(node.op, ast.USub) else "+") + to_text(node.operand, 5), 5
    elif isinstance(node, ast.Compare):
        sign = _COMPARISONS[type(node.ops[0])][1]
        text, own = f"{to_text(node.left, 2)}{sign}{to_text(node.comparators[0], 2)}", 1
    else:
        assert isinstance(node, ast.BinOp)
        _, sign, own = _OPERATORS[type(node.op)]
        right_first = isinstance(node.op, ast.Pow)
        left = to_text(node.left, own + right_first)
        text = f"{left}{sign}{to_text(node.right, own + (not right_first))}"
    return f"({text})" if own < precedence else text


def _constant_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return BOOLEANS[value]
    return '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else f"{value:.15g}"


# --- values ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Evaluation:
    """Computes the values of expressions for some rows.

    If `learning`, calls such as poly learn their state from these rows; otherwise they use the
    state in `states`.
    """

    columns: Columns
    rows: int
    states: dict[str, State] = field(default_factory=dict)
    learning: bool = False

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression: numbers (n,) or (n, k), categories, or a constant."""
        if isinstance(node, ast.Name):
            if node.id not in self.columns:
                raise FormulaError.no_column(node.id, list(self.columns))
            return self.columns[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List):
            return [self.value(part) for part in node.elts]
        with np.errstate(all="ignore"):
            if isinstance(node, ast.UnaryOp):
                number = self._number(node.operand)
                return -number if isinstance(node.op, ast.USub) else number
            if isinstance(node, ast.BinOp):
                function = _OPERATORS[type(node.op)][0]
                return function(self._number(node.left), self._number(node.right))
            if isinstance(node, ast.Compare):
                return self._compare(node)
            assert isinstance(node, ast.Call)
            return self._call(node)

    def factor(self, node: ast.expr) -> Floats | Categories:
        """Return the value of a factor of a term: numbers (n, k), or categories (n,)."""
        value = self.value(node)
        if isinstance(value, Categories):
            return value
        if not isinstance(value, np.ndarray):
            raise FormulaError.constant(to_text(node))
        values = value.reshape(self.rows, -1).astype(np.float64)
        for row in np.flatnonzero(~np.isfinite(values).all(axis=1))[:1].tolist():
            raise FormulaError.not_finite(to_text(node), row)
        return values

    def _number(self, node: ast.expr) -> Any:
        value = self.value(node)
        if isinstance(value, Categories):
            if value.levels == BOOLEANS:
                return value.codes.astype(np.float64)
            raise FormulaError.not_numbers(to_text(node))
        if isinstance(value, str | list) or value is None:
            raise FormulaError.not_numbers(to_text(node))
        return value if isinstance(value, np.ndarray) else np.float64(value)

    def _compare(self, node: ast.Compare) -> Categories:
        function = _COMPARISONS[type(node.ops[0])][0]
        left, right = self.value(node.left), self.value(node.comparators[0])
        if isinstance(left, Categories) and isinstance(right, str):
            if type(node.ops[0]) not in (ast.Eq, ast.NotEq):
                raise FormulaError.not_numbers(to_text(node.left))
            result = function(left.codes, (*left.levels, right).index(right))
        else:
            result = function(self._number(node.left), self._number(node.comparators[0]))
        if not isinstance(result, np.ndarray):
            raise FormulaError.constant(to_text(node))
        return Categories(result.astype(np.int32), BOOLEANS)

    def _call(self, node: ast.Call) -> Any:
        function = _function(node)
        if function in CATEGORICAL:
            return self._categories(node)
        if function == "c":
            return [self.value(part) for part in node.args]
        if not node.args:
            raise FormulaError.of_arguments(function, "a column first")
        if function == "I":
            return self.value(node.args[0])
        if function in NUMERIC:
            return NUMERIC[function](self._number(node.args[0]))
        if function not in TRANSFORMS:
            raise FormulaError.of_arguments(function, "a place within C(column, ...)")
        return self._transform(node, function)

    def _transform(self, node: ast.Call, function: str) -> Floats:
        """Return the columns that a function with learnt parameters computes."""
        x = self._number(node.args[0])
        text = to_text(node)
        if not isinstance(x, np.ndarray) or x.ndim != 1:
            raise FormulaError.of_arguments(function, "one column of numbers first")
        transform = TRANSFORMS[function]
        if self.learning:
            for row in np.flatnonzero(~np.isfinite(x))[:1].tolist():
                raise FormulaError.not_finite(to_text(node.args[0]), row)
            positional = dict(zip(transform.options, map(self.value, node.args[1:]), strict=False))
            named = {str(each.arg): self.value(each.value) for each in node.keywords}
            unknown = [
                name for name in named if name not in transform.options or name in positional
            ]
            if unknown or len(node.args) > len(transform.options) + 1:
                allowed = ", ".join(transform.options) or "none"
                raise FormulaError.of_arguments(function, f"a column, and of the options {allowed}")
            self.states[text] = transform.learn(x, text, **positional, **named)
        return np.asarray(transform.apply(x, self.states[text], text))

    def _categories(self, node: ast.Call) -> Categories:
        function = _function(node)
        if not 1 <= len(node.args) <= 2:
            raise FormulaError.of_arguments(function, "a column, and its contrasts")
        value = self.value(node.args[0])
        if not isinstance(value, Categories):
            value = _number_categories(np.asarray(self._number(node.args[0])), self.rows)
        options = {str(each.arg): each.value for each in node.keywords}
        if len(node.args) == 2:
            options["contrasts"] = node.args[1]
        contrasts = options.pop("contrasts", options.pop("contr", None))
        levels = options.pop("levels", None)
        if options:
            raise FormulaError.of_arguments(function, "a column, contrasts and levels")
        if levels is not None:
            value = _with_levels(value, self.value(levels), to_text(node), learning=self.learning)
        if contrasts is None:
            return value
        coding, reference = self._coding(contrasts)
        return Categories(value.codes, value.levels, coding, reference)

    def _coding(self, node: ast.expr) -> tuple[str, str | None]:
        """Return the name of contrasts, and the reference level of treatment contrasts."""
        plain = str(getattr(node, "id", getattr(node, "value", "")))
        name = _function(node) if isinstance(node, ast.Call) else plain
        coding, reference = name.removeprefix("contr.").lower(), None
        if coding not in CODINGS:
            raise FormulaError.of_coding(to_text(node), CODINGS)
        if isinstance(node, ast.Call):
            keywords = {str(each.arg) for each in node.keywords} - {"reference"}
            parts = [*node.args, *(each.value for each in node.keywords)]
            if keywords or len(parts) > (coding == "treatment"):
                raise FormulaError.of_arguments(name, "at most a reference level (treatment)")
            for part in parts:
                value = self.value(part)
                if isinstance(value, bool) or not isinstance(value, str | int | float):
                    raise FormulaError.of_arguments(name, "the name of a level")
                reference = value if isinstance(value, str) else f"{value:.15g}"
        return coding, reference


def _number_categories(values: Floats, rows: int) -> Categories:
    """Return numbers as categories, in increasing order; 1 and 1.0 are the category '1'."""
    if values.shape != (rows,):
        raise FormulaError.of_arguments("C", "one column")
    distinct, codes = np.unique(values, return_inverse=True)
    return Categories(codes, tuple(f"{value:.15g}" for value in distinct.tolist()))


def _with_levels(value: Categories, levels: Any, text: str, *, learning: bool) -> Categories:
    """Reorder the levels of categories; unknown levels get a negative code."""
    if not isinstance(levels, list) or not levels:
        raise FormulaError.of_arguments("C", 'levels as a list, such as levels=["low", "high"]')
    order = tuple(each if isinstance(each, str) else f"{each:.15g}" for each in levels)
    places = {level: code for code, level in enumerate(order)}
    codes = np.array([*(places.get(level, -2) for level in value.levels), -2])[value.codes]
    absent = [level for level in value.levels if level not in places]
    if learning and absent and (codes < 0).any():
        raise FormulaError.unlisted_level(text, absent[0], order)
    return Categories(codes, order, value.coding, value.reference)
