"""Design of a formula: which products of factors are the features, with learnt parameters.

A factor is an expression of columns. The value of a factor is one or several columns of numbers, or
a category. A category of k levels enters a feature by an indicator of one level (k columns), or by
a contrast (k - 1 columns):

    treatment   1 for one level, 0 for all others; the reference level has no column
    sum         1 for one level, -1 for the last level, 0 for all others
    helmert     j for level j + 1, -1 for the levels before it, 0 for those after it
    poly        orthonormal polynomials of 1, ..., k, for ordered levels

A term is a product of factors. The features of a term must span the space of the term, and no
feature may be redundant. So the earlier terms determine which categories need all indicators. A
term such as a:b spans the subterms 1, a-, b- and a-:b-, where a- stands for the contrasts of a.
Subterms that an earlier term spans are left out. The remaining subterms are joined: for instance, 1
and a- are joined to all indicators of a. The libraries patsy and formulaic use the same algorithm.

Features are named as in R: the level is appended to the factor, and factors are joined by a colon.
A `Design` is plain data: texts and numbers. The design is stored with the model and computes the
features of new rows; see `table.formula.expressions` for what an expression may contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import DiscriminantError, EmptyLevelWarning, FormulaError, warn
from discriminant.table.blocks import Floats
from discriminant.table.formula.expressions import (
    CODINGS,
    Categories,
    Columns,
    Evaluation,
    State,
    column_names,
    parse_expression,
    to_text,
)
from discriminant.table.formula.transforms import (
    TRANSFORMS,
    orthogonal_columns,
    orthogonal_recurrence,
)

_MAX_FEATURES = 100_000
_MAX_LEVELS = 10_000
_MAX_CODED = 1_000  # largest number of levels of a category whose contrasts need a matrix
_NAMES_OF_DEGREES = (".L", ".Q", ".C")

FactorKind = Literal["number", "category"]


@dataclass(frozen=True, slots=True)
class TermFactor:
    """One factor of a formula."""

    expression: str
    kind: FactorKind
    width: int = 1  # columns of numbers
    levels: tuple[str, ...] = ()  # levels of a category
    coding: str = "treatment"
    reference: str | None = None  # reference level of treatment contrasts

    def other_levels(self) -> list[int]:
        """Return the positions of the levels other than the reference level."""
        base = self.levels.index(self.reference) if self.reference is not None else 0
        return [j for j in range(len(self.levels)) if j != base]

    def contrast_names(self) -> list[str]:
        """Return the suffixes that distinguish the names of the contrasts."""
        k = len(self.levels)
        if self.coding == "treatment":
            return [self.levels[j] for j in self.other_levels()]
        if self.coding == "poly":
            return [*_NAMES_OF_DEGREES, *(f"^{degree}" for degree in range(4, k))][: k - 1]
        return [str(j) for j in range(1, k)]

    def contrast_matrix(self) -> Floats:
        """Return the matrix (levels, columns) of contrasts other than treatment."""
        k = len(self.levels)
        if self.coding == "sum":
            return np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])
        if self.coding == "helmert":
            rows, columns = np.indices((k, k - 1))
            return np.asarray(
                np.where(rows <= columns, -1.0, (rows == columns + 1) * (columns + 1.0))
            )
        places = np.arange(1.0, k + 1.0)
        return orthogonal_columns(places, *orthogonal_recurrence(places, k - 1))


@dataclass(frozen=True, slots=True, eq=False)
class _FactorColumns:
    """Columns of one factor for some rows; the columns of a category are computed when needed."""

    numbers: Floats | None  # (n, width)
    codes: npt.NDArray[Any] | None  # (n,) position among the levels; -1 if unknown
    others: tuple[int, ...]  # levels with a treatment contrast
    matrix: Floats | None  # (levels + 1, columns) other contrasts; zeros for unknown levels

    @classmethod
    def of(cls, factor: TermFactor, value: npt.NDArray[Any]) -> _FactorColumns:
        if factor.kind == "number":
            return cls(value, None, (), None)
        if factor.coding == "treatment":
            return cls(None, value, tuple(factor.other_levels()), None)
        matrix = factor.contrast_matrix()
        return cls(None, value, (), np.vstack([matrix, np.zeros((1, matrix.shape[1]))]))

    def column(self, c: int, *, contrast: bool) -> Floats:
        """Return a column of numbers, an indicator, or a contrast (n,)."""
        if self.numbers is not None:
            return np.asarray(self.numbers[:, c])
        assert self.codes is not None
        if contrast and self.matrix is not None:
            return np.asarray(self.matrix[self.codes, c])
        level = self.others[c] if contrast else c
        return np.asarray(self.codes == level, dtype=np.float64)


# factor, column, and whether the column is a contrast rather than an indicator
Part = tuple[int, int, bool]


@dataclass(frozen=True, slots=True)
class Design:
    """Features of a formula, with the parameters of its factors that were learnt in a fit."""

    formula: str  # text of the formula
    response: str | None  # expression of the response
    intercept: bool
    factors: tuple[TermFactor, ...]
    products: tuple[tuple[Part, ...], ...]  # d features, each a product
    features: tuple[str, ...]  # d names
    states: tuple[tuple[str, State], ...] = ()  # by the text of the call

    # --- learning -------------------------------------------------------------------------------

    @classmethod
    def learn(
        cls,
        formula: str,
        response: str | None,
        terms: Sequence[tuple[str, ...]],
        columns: Columns,
        *,
        rows: int,
        intercept: bool,
        max_levels: int = _MAX_LEVELS,
    ) -> Design:
        """Determine the design from the training rows.

        Parameters
        ----------
        formula, response
            Text of the formula, and text of its response.
        terms
            Factors of each term, without the intercept. The terms are sorted by number of factors.
        columns
            Numbers or categories (n,) of each column.
        rows
            Number of rows n.
        intercept
            Whether the model has an intercept.
        max_levels
            Largest number of levels of a column of texts that the formula does not enclose in C().
        """
        expressions = list(dict.fromkeys(text for term in terms for text in term))
        evaluation = Evaluation(columns, rows, learning=True)
        factors = [_learn_factor(text, evaluation, max_levels) for text in expressions]
        place = {text: j for j, text in enumerate(expressions)}
        ordered = [[place[text] for text in term] for term in terms]
        products: list[tuple[Part, ...]] = []
        names: dict[str, None] = {}
        for parts, name in _features(factors, ordered, intercept):
            products.append(parts)
            while name in names:
                name += "'"
            names[name] = None
            if len(products) > _MAX_FEATURES:
                raise FormulaError.too_wide(_MAX_FEATURES)
        if not products:
            raise FormulaError.no_terms(formula)
        states = tuple(evaluation.states.items())
        return cls(
            formula, response, intercept, tuple(factors), tuple(products), tuple(names), states
        )

    # --- applying -------------------------------------------------------------------------------

    @property
    def column_names(self) -> tuple[str, ...]:
        """Columns of the table that the features use."""
        trees = [parse_expression(factor.expression) for factor in self.factors]
        return tuple(dict.fromkeys(name for tree in trees for name in column_names(tree)))

    def encode(
        self, columns: Columns, rows: int
    ) -> tuple[list[Floats], dict[str, npt.NDArray[np.bool_]]]:
        """Return the features of rows, and for each factor the rows with an unseen level.

        A row with an unseen level has zeros in the indicators and contrasts of the factor.
        """
        evaluation = Evaluation(columns, rows, dict(self.states))
        unseen: dict[str, npt.NDArray[np.bool_]] = {}
        values: list[_FactorColumns] = []
        for factor in self.factors:
            value = evaluation.factor(parse_expression(factor.expression))
            category = isinstance(value, Categories)
            if category != (factor.kind == "category"):
                raise FormulaError.changed_kind(factor.expression, factor.kind)
            if isinstance(value, Categories):
                place = {level: j for j, level in enumerate(factor.levels)}
                codes = np.array([*(place.get(level, -1) for level in value.levels), -1])
                value = codes[np.maximum(value.codes, -1)]
                if (value < 0).any():
                    unseen[factor.expression] = value < 0
            elif value.shape[1] != factor.width:
                raise FormulaError.changed_kind(factor.expression, factor.kind)
            values.append(_FactorColumns.of(factor, value))
        features = []
        for parts in self.products:
            column = np.ones(rows)
            for j, c, contrast in parts:
                column = column * values[j].column(c, contrast=contrast)
            features.append(column)
        return features, unseen

    # --- as plain data --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the design as plain data."""
        return {
            "formula": self.formula,
            "response": self.response,
            "intercept": self.intercept,
            "factors": tuple(
                {
                    "expression": factor.expression,
                    "kind": factor.kind,
                    "width": factor.width,
                    "levels": factor.levels,
                    "coding": factor.coding,
                    "reference": factor.reference,
                }
                for factor in self.factors
            ),
            "products": self.products,
            "features": self.features,
            "states": self.states,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Design:
        """Return the design from the plain data that `to_dict` returned."""
        factors = tuple(
            TermFactor(**{**factor, "levels": tuple(factor["levels"])})
            for factor in state["factors"]
        )
        products = tuple(
            tuple((int(j), int(c), bool(contrast)) for j, c, contrast in parts)
            for parts in state["products"]
        )
        states = tuple((text, tuple(map(float, values))) for text, values in state["states"])
        return cls(
            state["formula"],
            state["response"],
            state["intercept"],
            factors,
            products,
            tuple(state["features"]),
            states,
        )

    def unusable_reason(self, columns: Sequence[str]) -> str | None:
        """Return the reason why the design cannot be applied to these columns, or None if it can.

        A design from a file is checked before it is used: only the allowed parts of expressions
        are accepted.
        """
        texts = [self.formula, *self.features, *(text for text, _ in self.states)]
        texts += [] if self.response is None else [self.response]
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.intercept, bool):
            return "a part of its formula is no text"
        if len(self.features) != len(self.products) or len(set(self.features)) < len(self.features):
            return "the features of its formula do not fit together"
        states = dict(self.states)
        for text, values in states.items():
            if not np.isfinite(values).all() if values else True:
                return f"the state of '{text[:100]}' is not finite"
        widths = []
        for factor in self.factors:
            reason = _invalid_factor(factor, states, columns)
            if reason is not None:
                return reason
            k = len(factor.levels)
            number = factor.kind == "number"
            widths.append((factor.width,) * 2 if number else (k, max(k - 1, 0)))
        for parts in self.products:
            for j, c, contrast in parts:
                if not (0 <= j < len(widths) and 0 <= c < widths[j][contrast]):
                    return "a feature of its formula refers to a column that does not exist"
        return None


def _invalid_factor(
    factor: TermFactor, states: Mapping[str, State], columns: Sequence[str]
) -> str | None:
    """Return the reason why a factor of a file is invalid, or None if it is valid."""
    import ast

    shown = str(factor.expression)[:100]
    if not isinstance(factor.expression, str) or factor.kind not in ("number", "category"):
        return "a factor of its formula is not valid"
    levels = factor.levels
    texts = all(isinstance(level, str) for level in levels)
    if not texts or len(set(levels)) < len(levels) or len(levels) > _MAX_LEVELS:
        return f"the levels of '{shown}' are not valid"
    if factor.kind == "category" and not levels:
        return f"'{shown}' has no levels"
    if factor.coding not in CODINGS or (factor.coding != "treatment" and len(levels) > _MAX_CODED):
        return f"the contrasts of '{shown}' are not valid"
    if factor.reference is not None and factor.reference not in levels:
        return f"the reference level of '{shown}' is none of its levels"
    whole = isinstance(factor.width, int) and not isinstance(factor.width, bool)
    if not whole or not 1 <= factor.width <= _MAX_FEATURES:
        return f"the width of '{shown}' is not valid"
    try:
        tree = parse_expression(factor.expression)
    except DiscriminantError as error:
        return f"the expression '{shown}' is not allowed ({error})"
    for name in column_names(tree):
        if name not in columns:
            return f"'{shown}' uses the column '{name[:100]}', which the model does not have"
    for node in ast.walk(tree):
        function = str(getattr(getattr(node, "func", None), "id", ""))
        if function in TRANSFORMS and isinstance(node, ast.expr):
            state = states.get(to_text(node))
            reason = "it is absent" if state is None else TRANSFORMS[function].invalid_reason(state)
            if reason is not None:
                return f"the state of '{shown}' is not valid: {reason}"
    return None


def _learn_factor(text: str, evaluation: Evaluation, max_levels: int) -> TermFactor:
    """Determine a factor from the training rows."""
    import ast

    tree = parse_expression(text)
    value = evaluation.factor(tree)
    if not isinstance(value, Categories):
        return TermFactor(text, "number", value.shape[1])
    counts = np.bincount(value.codes, minlength=len(value.levels))
    levels = tuple(level for level, n in zip(value.levels, counts, strict=True) if n)
    empty = [level for level in value.levels if level not in levels]
    if empty and value.levels != ("FALSE", "TRUE"):
        warn(EmptyLevelWarning.of(to_text(tree), empty))
    if len(levels) < 2:
        raise FormulaError.one_level(to_text(tree), levels[0])
    if isinstance(tree, ast.Name) and len(levels) > max_levels:
        raise FormulaError.many_column_levels(to_text(tree), len(levels), max_levels)
    most = _MAX_LEVELS if value.coding == "treatment" else _MAX_CODED
    if len(levels) > most:
        raise FormulaError.many_levels(to_text(tree), len(levels), most)
    if value.reference is not None and value.reference not in levels:
        raise FormulaError.no_level(to_text(tree), value.reference, levels)
    return TermFactor(text, "category", 1, levels, value.coding, value.reference)


def _features(
    factors: Sequence[TermFactor], terms: Sequence[Sequence[int]], intercept: bool
) -> Iterator[tuple[tuple[Part, ...], str]]:
    """Yield components and name of each feature; the first factor of a term varies fastest."""
    spanned: dict[frozenset[int], set[frozenset[int]]] = {}
    if intercept:
        spanned[frozenset()] = {frozenset()}
    names = [to_text(parse_expression(factor.expression)) for factor in factors]
    for term in terms:
        numbers = frozenset(j for j in term if factors[j].kind == "number")
        categories = [j for j in term if j not in numbers]
        for contrasts in _subterms(categories, spanned.setdefault(numbers, set())):
            columns = []  # of each factor: column and suffix
            present = [j for j in term if j in numbers or j in contrasts]
            for j in present:
                factor = factors[j]
                if j in numbers:
                    suffixes = [str(c + 1) for c in range(factor.width)]
                    suffixes = suffixes if factor.width > 1 else [""]
                else:
                    suffixes = factor.contrast_names() if contrasts[j] else list(factor.levels)
                columns.append([*enumerate(suffixes)])
            for chosen in product(*reversed(columns)):
                parts, labels = [], []
                for j, (c, suffix) in zip(present, reversed(chosen), strict=True):
                    parts.append((j, c, bool(contrasts.get(j, False))))
                    labels.append(names[j] + suffix)
                if parts:
                    yield tuple(parts), ":".join(labels)


def _subterms(categories: Sequence[int], spanned: set[frozenset[int]]) -> list[dict[int, bool]]:
    """Return the subterms to add for a term, as dicts {factor: whether it enters by contrasts}.

    `spanned` holds the subterms of earlier terms that have the same numeric factors; the new
    subterms are added to it.
    """
    sizes = range(len(categories) + 1)
    subsets = [frozenset(c) for size in sizes for c in combinations(categories, size)]
    new = [subset for subset in subsets if subset not in spanned]
    spanned.update(new)
    subterms = [dict.fromkeys(sorted(subset), True) for subset in new]
    while _join_one(subterms):
        pass
    return subterms


def _join_one(subterms: list[dict[int, bool]]) -> bool:
    """Join a subterm with one that has one contrast more; return False if there is none."""
    for i, short in enumerate(subterms):
        for long in subterms[i + 1 :]:
            more = [j for j in long if j not in short]
            if len(more) == 1 and long[more[0]] and all(long.get(j) == short[j] for j in short):
                subterms[i] = {**long, more[0]: False}
                subterms.remove(long)
                return True
    return False
