"""Expressions: fitted models as formulas in the features of one row, for export.

For each row, an expression has a vector of `width` numbers as its value, computed from the values
of other expressions. Formulas are written as in NumPy, for a single row:

    u = (x - origin) / unit;   score = u.affine(coef, intercept);   top = score.max()

There are no booleans: `where_greater(a, b, x, y)` is x where a > b and y elsewhere, and a decision
is the index of the chosen class. An expression of width one broadcasts, as in NumPy. Rules return
their scores as expressions (`Rule.expression`); `export` writes them in SQL and other languages.

Links of two classes, which map a score s to log probabilities:

    logit    log p0, log p1 = 0, s                     (up to a common constant)
    probit   log Phi(-t) = -t^2/2 + log(erfcx(t / sqrt 2) / 2),  t = |s|
    cloglog  log p0 = -r, log p1 = log(1 - e^-r),  r = e^s; a series in r for log p1 if r is small
    cauchit  the smaller probability is arctan(1 / t) / pi,  t = |s|

For probit and cauchit the formula gives the smaller probability, and the log of the larger one is
log(1 - smaller). Not every export target has erf and arctan in double precision, so both are
written out: erfcx by the rational approximations of Cody (1969, Math. Comp. 23, 631-637), arctan by
the approximation of the Cephes library. Both functions are accurate to a few units in the last
place; the tests of links compare them with mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discriminant.moments.anchor import Anchor
from discriminant.table.basis import JoinedBasis, KernelBasis, PolynomialBasis, RandomBasis
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
    "cos",
    "where_greater",
]
Op = (
    Literal[
        "features",  # the encoded features of a row
        "constant",
        "affine",  # constants: (m, d) slopes and (m,) intercepts
        "squares",  # sum of squares
        "sum",
        "max",
        "first_max",  # index of the largest number; of equal numbers the first
        "stack",  # concatenated operands
        "pick",  # constants: indices of the selected numbers
    ]
    | Elementwise
)
ELEMENTWISE: frozenset[str] = frozenset(get_args(Elementwise))
FLOOR = -700.0  # exp of smaller numbers may be subnormal, which some databases reject


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """Vector of `width` numbers for each row, computed from `operands` by `op`."""

    op: Op
    operands: tuple[Expression, ...]
    width: int
    constants: tuple[npt.NDArray[Any], ...] = ()
    name: str = ""  # if empty, the expression is written inside the one that uses it, if possible
    components: tuple[str, ...] = ()  # `width` names, one for each number; or empty

    def with_name(self, name: str, parts: Sequence[str] = ()) -> Expression:
        """Return the expression with the name `name`; `parts` are the names of its components.

        The expression of the features is returned unchanged, since the columns already have names.
        """
        if self.op == "features":
            return self
        return replace(self, name=name, components=tuple(parts))

    # --- elementwise operations -------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        return _binary("add", self, other)

    def __sub__(self, other: Any) -> Expression:
        return _binary("sub", self, other)

    def __mul__(self, other: Any) -> Expression:
        return _binary("mul", self, other)

    def __truediv__(self, other: Any) -> Expression:
        return _binary("div", self, other)

    def larger(self, other: Any) -> Expression:
        """Return the elementwise maximum."""
        return _binary("larger", self, other)

    def smaller(self, other: Any) -> Expression:
        """Return the elementwise minimum."""
        return _binary("smaller", self, other)

    def exp(self) -> Expression:
        """Return the exponential. Numbers below -700 are replaced by -700 first."""
        return Expression("exp", (self.larger(FLOOR),), self.width)

    def log(self) -> Expression:
        """Return the natural logarithm."""
        return Expression("log", (self,), self.width)

    def abs(self) -> Expression:
        """Return the absolute value."""
        return Expression("abs", (self,), self.width)

    def sqrt(self) -> Expression:
        """Return the square root."""
        return Expression("sqrt", (self,), self.width)

    def cos(self) -> Expression:
        """Return the cosine."""
        return Expression("cos", (self,), self.width)

    def sign(self) -> Expression:
        """Return the sign of each number: -1, 0 or 1."""
        return Expression("sign", (self,), self.width)

    # --- operations on all numbers of a row -------------------------------------------------------

    def affine(self, coef: Floats, intercept: Floats) -> Expression:
        """Return the affine map of this expression x: coef times x, plus intercept (width m)."""
        return Expression("affine", (self,), len(coef), (np.asarray(coef), np.asarray(intercept)))

    def squares(self) -> Expression:
        """Return the sum of squares of the components."""
        return Expression("squares", (self,), 1)

    def sum(self) -> Expression:
        """Return the sum of the components."""
        return Expression("sum", (self,), 1)

    def max(self) -> Expression:
        """Return the largest component."""
        return Expression("max", (self,), 1)

    def first_max(self) -> Expression:
        """Return the index of the largest component; if several are equal, the first index."""
        return Expression("first_max", (self,), 1)

    def pick(self, indices: Any) -> Expression:
        """Return the components at these indices."""
        indices = np.asarray(indices, dtype=np.intp)
        if np.array_equal(indices, np.arange(self.width)):
            return self
        components = tuple(self.components[i] for i in indices) if self.components else ()
        return Expression("pick", (self,), len(indices), (indices,), components=components)

    def __getitem__(self, index: int) -> Expression:
        return self.pick([index])


def constant(values: Any) -> Expression:
    """Return an expression whose value is `values` for every row."""
    numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return Expression("constant", (), len(numbers), (numbers,))


def stack(parts: Sequence[Expression]) -> Expression:
    """Concatenate the values of several expressions."""
    if len(parts) == 1:
        return parts[0]
    return Expression("stack", tuple(parts), sum(part.width for part in parts))


def where_greater(a: Any, b: Any, x: Any, y: Any) -> Expression:
    """Return x where a > b, else y."""
    operands = tuple(map(_as_expression, (a, b, x, y)))
    return Expression("where_greater", operands, max(operand.width for operand in operands))


def evaluate_polynomial(x: Expression, coefs: Sequence[float]) -> Expression:
    """Return coefs[0] x^n + coefs[1] x^(n-1) + ... by Horner's rule."""
    total = x * coefs[0] + coefs[1]
    for coef in coefs[2:]:
        total = total * x + coef
    return total


def share_subexpressions(outputs: Sequence[Expression]) -> list[Expression]:
    """Return equivalent outputs in which equal subexpressions are the same object."""
    known: dict[Any, Expression] = {}
    same: dict[int, Expression] = {}
    for step in topological_order(outputs):
        operands = tuple(same[id(below)] for below in step.operands)
        constants = tuple((values.shape, values.tobytes()) for values in step.constants)
        key = step.op, tuple(map(id, operands)), step.width, constants, step.name, step.components
        same[id(step)] = known.setdefault(key, replace(step, operands=operands))
    return [same[id(output)] for output in outputs]


def topological_order(outputs: Sequence[Expression]) -> list[Expression]:
    """Return the outputs and all expressions they depend on, each after its operands."""
    ordered: dict[int, Expression] = {}

    def visit(step: Expression) -> None:
        pending: list[tuple[Expression, Iterator[Expression]]] = [(step, iter(step.operands))]
        while pending:
            current, operands = pending[-1]
            below = next(operands, None)
            if below is None:
                ordered.setdefault(id(current), current)
                pending.pop()
            elif id(below) not in ordered:
                pending.append((below, iter(below.operands)))

    for output in outputs:
        visit(output)
    return list(ordered.values())


def ids_of_variables(steps: Sequence[Expression]) -> set[int]:
    """Return the ids of the expressions whose value is computed once and stored in a variable.

    An expression is stored if it has a name, is used more than once, or is not elementwise. Any
    other expression is written inside the only expression that uses it.
    """
    users: dict[int, list[Expression]] = {}
    for step in steps:
        for below in step.operands:
            users.setdefault(id(below), []).append(step)
    stored = set()
    for step in steps:
        own = users.get(id(step), [])
        single = step.op in ELEMENTWISE and len(own) == 1 and not step.name
        inline = single and own[0].op in ELEMENTWISE and own[0].width == step.width
        if not inline and step.op not in ("constant", "pick", "stack"):
            stored.add(id(step))
    return stored


def _as_expression(value: Any) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


def _binary(op: Op, a: Expression, b: Any) -> Expression:
    other = _as_expression(b)
    if other.op == "constant" and _is_identity(op, other.constants[0]) and other.width <= a.width:
        return a
    return Expression(op, (a, other), max(a.width, other.width))


def _is_identity(op: str, values: Floats) -> bool:
    """Return whether the operation leaves every number unchanged: adding 0, or multiplying by 1."""
    if op in ("add", "sub"):
        return not values.any()
    return op in ("mul", "div") and bool((values == 1.0).all())


# --- features of a rule -------------------------------------------------------------------------


def offset_expression(x: Expression, anchor: Anchor) -> Expression:
    """Return the (d,) offsets u = (x - origin) / unit."""
    offsets = (x - anchor.origin) / anchor.unit
    return offsets if offsets is x else offsets.with_name("u", x.components)


def basis_expression(x: Expression, basis: JoinedBasis) -> Expression:
    """Return the columns of a basis: polynomials, kernels and random features, concatenated."""
    return stack([_part_expression(x, part) for part in basis.parts])


def _part_expression(
    x: Expression, part: PolynomialBasis | KernelBasis | RandomBasis
) -> Expression:
    if isinstance(part, KernelBasis):
        return _kernel_expression(x, part)
    if isinstance(part, RandomBasis):
        return _random_expression(x, part)
    return _polynomial_expression(x, part)


def _polynomial_expression(x: Expression, basis: PolynomialBasis) -> Expression:
    u = ((x - basis.origin) / basis.unit).with_name("factor", x.components)
    columns = [x if basis.plain else u]
    terms = u
    below: dict[tuple[int, ...], int] = {(j,): j for j in range(x.width)}
    for degree in range(2, basis.degree + 1):
        chosen = [term for term in basis.terms if len(term) == degree]
        if not chosen:
            break
        left = u.pick([term[0] for term in chosen])
        right = terms.pick([below[term[1:]] for term in chosen])
        names = [name for name, term in zip(basis.names, basis.terms, strict=True)
                 if len(term) == degree]  # fmt: skip
        terms = (left * right).with_name("product", names)
        below = {term: index for index, term in enumerate(chosen)}
        columns.append(terms)
    return stack(columns)


def _kernel_expression(x: Expression, basis: KernelBasis) -> Expression:
    """Return the kernel exp(-|(x - centre) / spread|^2 / 2) for each centre of the basis."""
    distances = [
        ((x - centre) / basis.spread)
        .with_name(f"from_{m}", x.components)
        .squares()
        .with_name(f"far_{m}")
        for m, centre in enumerate(basis.centres)
    ]
    return (stack(distances) * -0.5).exp().with_name("kernel", basis.names)


def _random_expression(x: Expression, basis: RandomBasis) -> Expression:
    u = ((x - basis.origin) * basis.inverse_unit).with_name("standard", x.components)
    projections = u.affine(basis.weights.T, basis.bias)
    if basis.activation == "relu":
        return projections.larger(0.0).with_name("relu", basis.names)
    return (projections.cos() * float(np.sqrt(2.0 / basis.width))).with_name("fourier", basis.names)


# --- links of two classes -----------------------------------------------------------------------

# erf(x) = x A(x^2) / B(x^2)                                 x <= 0.46875
_A = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2,
      3.77485237685302021e2, 3.20937758913846947e3)  # fmt: skip
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2,
      1.28261652607737228e3, 2.84423683343917062e3)  # fmt: skip
# erfcx(x) = C(x) / D(x)                                     0.46875 < x <= 4
_C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
      2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
      1.23033935479799725e3)  # fmt: skip
_D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
      1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
      1.23033935480374942e3)  # fmt: skip
# erfcx(x) = (1/sqrt(pi) - P(1/x^2) / (x^2 Q(1/x^2))) / x     4 < x
_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
      1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_Q = (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1,
      6.05183413124413191e-2, 2.33520497626869185e-3)  # fmt: skip
# arctan(x) = x + x^3 R(x^2) / S(x^2)                         x <= 0.66
_R = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
      -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
_S = (1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
      4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip

_SMALL = 0.01  # for rates r below this, log(1 - e^-r) is computed by its series


def logit_log_probabilities(score: Expression) -> Expression:
    """Return the (2,) log probabilities of two classes by the logit link, up to a common term."""
    return stack([constant(0.0), score])


def probit_log_probabilities(score: Expression) -> Expression:
    """Return the (2,) log probabilities of two classes by the probit link."""
    away = score.abs().with_name("away")
    small = (_erfcx((away * np.sqrt(0.5)).with_name("erf_at")) * 0.5).log() - away * away * 0.5
    return _both_sides(score, small.with_name("log_smaller"))


def cloglog_log_probabilities(score: Expression) -> Expression:
    """Return the (2,) log probabilities of two classes by the cloglog link."""
    rate = score.smaller(700.0).exp().with_name("rate")
    # log((1 - e^-r) / r) = -r/2 + r^2/24 - r^4/2880 + ...
    square = (rate * rate).with_name("rate_squared")
    series = score - rate * 0.5 + square * (1.0 / 24.0) - square * square * (1.0 / 2880.0)
    plain = (constant(1.0) - (constant(0.0) - rate.larger(_SMALL)).exp()).log()
    return stack([constant(0.0) - rate, where_greater(rate, _SMALL, plain, series)])


def cauchit_log_probabilities(score: Expression) -> Expression:
    """Return the (2,) log probabilities of two classes by the cauchit link."""
    away = score.abs().with_name("away")
    ratio = where_greater(away, 1.0, constant(1.0) / away.larger(1.0), away).with_name("turned")
    angle = (_arctan(ratio) * (1.0 / np.pi)).with_name("angle")
    small = where_greater(away, 1.0, angle, constant(0.5) - angle)
    return _both_sides(score, small.log().with_name("log_smaller"))


LINK_EXPRESSIONS: dict[str, Callable[[Expression], Expression]] = {
    "logit": logit_log_probabilities,
    "probit": probit_log_probabilities,
    "cloglog": cloglog_log_probabilities,
    "cauchit": cauchit_log_probabilities,
}


def inverse_link_expression(score: Expression, link: str) -> Expression:
    """Return the mean (width 1) of a generalised linear model: the inverse link of its score."""
    if link == "identity":
        return score
    if link == "log":
        return score.exp()
    if link == "inverse":
        return constant(1.0) / score
    if link == "sqrt":
        return where_greater(score, 0.0, score * score, -1.0)
    if link == "logit":
        small = (constant(0.0) - score.abs()).exp().with_name("odds")
        return where_greater(score, 0.0, constant(1.0) / (small + 1.0), small / (small + 1.0))
    return LINK_EXPRESSIONS[link](score)[1].exp()


def _both_sides(score: Expression, small: Expression) -> Expression:
    """Return the (2,) log probabilities, given the log of the smaller probability.

    If the score is positive, the smaller probability is that of the first class, otherwise that of
    the second class.
    """
    large = (constant(1.0) - small.exp()).log().with_name("log_larger")
    return stack([where_greater(score, 0.0, small, large), where_greater(score, 0.0, large, small)])


def _erfcx(x: Expression) -> Expression:
    """Return exp(x^2) erfc(x) for x >= 0."""
    near = x.smaller(0.46875).with_name("erf_near")
    square = (near * near).with_name("erf_square")
    erf = near * evaluate_polynomial(square, _A) / evaluate_polynomial(square, _B)
    first = (constant(1.0) - erf) * square.exp()
    middle = x.smaller(4.0).larger(0.46875).with_name("erf_middle")
    second = evaluate_polynomial(middle, _C) / evaluate_polynomial(middle, _D)
    inverse = (constant(1.0) / x.larger(4.0)).with_name("erf_far")
    far = (inverse * inverse).with_name("erf_far_square")
    tail = far * evaluate_polynomial(far, _P) / evaluate_polynomial(far, _Q)
    third = (constant(1.0 / np.sqrt(np.pi)) - tail) * inverse
    return where_greater(x, 4.0, third, where_greater(x, 0.46875, second, first))


def _arctan(x: Expression) -> Expression:
    """Return arctan(x) for 0 <= x <= 1.

    For x > 0.66 the result is pi/4 plus the arctangent of (x - 1) / (x + 1).
    """
    z = where_greater(x, 0.66, (x - 1.0) / (x + 1.0), x).with_name("arctan_at")
    square = (z * z).with_name("arctan_square")
    ratio = evaluate_polynomial(square, _R) / evaluate_polynomial(square, _S)
    return where_greater(x, 0.66, np.pi / 4.0, 0.0) + z + z * square * ratio
