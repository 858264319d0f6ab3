"""Rules to steps: what a fitted model is, on the numbers of one row.

    linear      u = (x - origin) / unit,  score = W u + b
    quadratic   score_k = constant_k - |whitened_k(u - mean_k)|^2 / 2
    laplace     score_k = constant_k - sum_j |u_j - median_kj| / scale_kj
    indicator   fitted = W basis(x) + b;  shares are what is positive of it, over their sum

Offsets are taken first, as the rules themselves do: rows far from zero lose no digit.

Where the features of a row come from: columns of a table, by name.

    number, boolean, date   the cell as a number; a date is days since 1970-01-01
    text                    a number for each category: 1 and 0 for an indicator, a place for an
                            ordered one
    missing                 1 where the cell is missing, else 0

What a missing cell, or a category that was not seen, stands for is a number, or nothing: then the
row has no answer. It is `table.encoding`, said cell by cell.

From a score to the log probabilities of two classes, and to a mean, in steps.

    logit    log p0, log p1 = 0, s                     (up to what is common to both)
    probit   log Phi(-t) = -t^2/2 + log(erfcx(t / sqrt 2) / 2),  t = |s|
    cloglog  log p0 = -r, log p1 = log(1 - e^-r),  r = e^s; for small r the series of the latter
    cauchit  the smaller one is arctan(1 / t) / pi

The larger probability follows from the smaller one: log(1 - small). No target has erf or arctan in
double precision everywhere, so both are written out: erfcx by the rational approximations of Cody
(1969, Math. Comp. 23, 631-637), arctan by that of Cephes. Both hold to a few units in the last
place; tests/unit/export/test_links.py says so against mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discriminant.errors import ExportError
from discriminant.models.expressions import Expression, constant, greater, polynomial, stack
from discriminant.models.gaussian.covariance import Metric
from discriminant.models.linear.least_squares import IndicatorRule
from discriminant.models.naive_bayes import LaplaceRule
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.anchor import Anchor
from discriminant.table.basis import JoinedBasis, KernelBasis, PolynomialBasis
from discriminant.table.blocks import Floats
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.csv_dialect import MISSING
from discriminant.table.labels import other_spellings
from discriminant.table.text_values import number_signs

Kind = Literal["number", "boolean", "date", "text", "missing"]


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """What one number of a row is made from."""

    feature: str
    column: str
    kind: Kind = "number"
    fill: float | None = None  # of a missing cell
    values: tuple[tuple[str, float], ...] = ()  # of each category, in all its spellings
    other: float | None = None  # of a category that was not seen
    signs: tuple[str, str, str] | None = None  # group, decimal, unit of a number that may be text
    missing: tuple[str, ...] = ()  # texts that mean missing, of such a number

    def groups(self) -> list[tuple[float, list[str]]]:
        """Categories by their number; those that are as unseen ones are left out."""
        found: dict[float, list[str]] = {}
        for level, value in self.values:
            if value != self.other:
                found.setdefault(value, []).append(level)
        return list(found.items())


@dataclass(frozen=True, slots=True)
class FeatureSources:
    """What all features of a row are made from."""

    features: tuple[FeatureSource, ...]  # d
    named: bool  # whether columns have names of their own
    checks: tuple[FeatureSource, ...] = ()  # that must be known, though no feature
    unseen: tuple[FeatureSource, ...] = ()  # 1 where a row has a category that is to be rejected

    def as_step(self) -> Expression:
        """The features, and after them what says that a row is to be rejected."""
        every = (*self.features, *self.unseen)
        names = tuple(source.feature for source in every)
        return Expression("features", (), len(every), name="x", components=names)


def number_columns(names: Sequence[str], *, named: bool) -> FeatureSources:
    """Columns of numbers, none of them missing."""
    return FeatureSources(tuple(FeatureSource(name, name) for name in names), named)


def encoding_sources(encoding: Encoding) -> FeatureSources:
    """What an encoding does, cell by cell."""
    if encoding.missing == "marginal":
        raise ExportError.of_part(
            "missing='marginal'",
            "a row with missing cells has a covariance of its own",
            "Fit with missing='mean' or 'indicator'.",
        )
    features = [one for column in encoding.used for one in _of_column(column, encoding)]
    texts = [column for column in encoding.used if column.kind in ("ordered", "category")]
    filled = 0.0 if encoding.missing in ("mean", "indicator") else None
    checks, unseen = [], []
    for column in texts:
        levels = tuple((text, 0.0) for texts in _spelled(column).values() for text in texts)
        if encoding.unseen == "error":
            checks.append(
                FeatureSource(f"known {column.name}", column.name, "text", filled, levels)
            )
        if encoding.unseen == "reject":
            name = f"unseen {column.name}"
            unseen.append(FeatureSource(name, column.name, "text", 0.0, levels, 1.0))
    return FeatureSources(tuple(features), encoding.named, tuple(checks), tuple(unseen))


def _of_column(column: Column, encoding: Encoding) -> Iterator[FeatureSource]:
    filled = encoding.missing in ("mean", "indicator")
    fill: tuple[float | None, ...] = column.fill if filled else (None,) * len(column.features)
    signs = _signs(column, encoding)
    absent = MISSING if encoding.missing_texts is None else encoding.missing_texts
    gone = () if signs is None else absent
    if column.kind == "category":
        spelled = _spelled(column)
        for name, level, value in zip(column.features, column.kept, fill, strict=False):
            texts = tuple((text, 1.0) for text in spelled[level])
            yield FeatureSource(name, column.name, "text", value, texts, 0.0)
    elif column.kind == "ordered":
        top = max(len(column.levels) - 1, 1)
        values = tuple(
            (text, place / top)
            for place, texts in enumerate(_spelled(column).values())
            for text in texts
        )
        other = column.fill[0] if column.fill else 0.0
        yield FeatureSource(column.features[0], column.name, "text", fill[0], values, other)
    else:
        kind: Kind = "number"
        if column.kind in ("boolean", "date"):
            kind = "boolean" if column.kind == "boolean" else "date"
        yield FeatureSource(
            column.features[0], column.name, kind, fill[0], signs=signs, missing=gone
        )
    if column.indicator:
        yield FeatureSource(column.features[-1], column.name, "missing", signs=signs, missing=gone)


def _signs(column: Column, encoding: Encoding) -> tuple[str, str, str] | None:
    """How a number is written where a database has the text of the file; None: as SQL writes it."""
    if column.kind != "number":
        return None
    if column.written:
        return number_signs(column.written)
    return ("", ",", "") if encoding.decimal == "," else None


def _spelled(column: Column) -> dict[str, list[str]]:
    """Every level of a column, in every way that it may be written."""
    found = {level: [level] for level in column.levels}
    for text, level in other_spellings(column.levels).items():
        found[level].append(text)
    return found


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

_SMALL = 0.01  # a rate below which log(1 - e^-r) is taken by its series


def logit(score: Expression) -> Expression:
    """(2,) log probabilities up to a constant."""
    return stack([constant(0.0), score])


def probit(score: Expression) -> Expression:
    """(2,) log probabilities."""
    away = score.abs().with_name("away")
    small = (_erfcx((away * np.sqrt(0.5)).with_name("erf_at")) * 0.5).log() - away * away * 0.5
    return _sided(score, small.with_name("log_smaller"))


def cloglog(score: Expression) -> Expression:
    """(2,) log probabilities."""
    rate = score.smaller(700.0).exp().with_name("rate")
    # log((1 - e^-r) / r) = -r/2 + r^2/24 - r^4/2880 + ...
    square = (rate * rate).with_name("rate_squared")
    series = score - rate * 0.5 + square * (1.0 / 24.0) - square * square * (1.0 / 2880.0)
    plain = (constant(1.0) - (constant(0.0) - rate.larger(_SMALL)).exp()).log()
    one = greater(rate, _SMALL, plain, series)
    return stack([constant(0.0) - rate, one])


def cauchit(score: Expression) -> Expression:
    """(2,) log probabilities."""
    away = score.abs().with_name("away")
    turned = greater(away, 1.0, constant(1.0) / away.larger(1.0), away).with_name("turned")
    angle = (_arctan(turned) * (1.0 / np.pi)).with_name("angle")
    small = greater(away, 1.0, angle, constant(0.5) - angle)
    return _sided(score, small.log().with_name("log_smaller"))


LINKS: dict[str, Callable[[Expression], Expression]] = {
    "logit": logit,
    "probit": probit,
    "cloglog": cloglog,
    "cauchit": cauchit,
}


def mean(score: Expression, link: str) -> Expression:
    """(1,) the mean of a generalised linear model."""
    if link == "identity":
        return score
    if link == "log":
        return score.exp()
    if link == "inverse":
        return constant(1.0) / score
    if link == "sqrt":
        return greater(score, 0.0, score * score, -1.0)
    if link == "logit":
        small = (constant(0.0) - score.abs()).exp().with_name("odds")
        return greater(score, 0.0, constant(1.0) / (small + 1.0), small / (small + 1.0))
    return LINKS[link](score)[1].exp()


def _sided(score: Expression, small: Expression) -> Expression:
    """(2,) of the log of the smaller probability: the second is the smaller where s < 0."""
    large = (constant(1.0) - small.exp()).log().with_name("log_larger")
    return stack([greater(score, 0.0, small, large), greater(score, 0.0, large, small)])


def _erfcx(x: Expression) -> Expression:
    """exp(x^2) erfc(x) for x >= 0."""
    near = x.smaller(0.46875).with_name("erf_near")
    square = (near * near).with_name("erf_square")
    erf = near * polynomial(square, _A) / polynomial(square, _B)
    first = (constant(1.0) - erf) * square.exp()
    middle = x.smaller(4.0).larger(0.46875).with_name("erf_middle")
    second = polynomial(middle, _C) / polynomial(middle, _D)
    inverse = (constant(1.0) / x.larger(4.0)).with_name("erf_far")
    far = (inverse * inverse).with_name("erf_far_square")
    tail = far * polynomial(far, _P) / polynomial(far, _Q)
    third = (constant(1.0 / np.sqrt(np.pi)) - tail) * inverse
    return greater(x, 4.0, third, greater(x, 0.46875, second, first))


def _arctan(x: Expression) -> Expression:
    """For 0 <= x <= 1; beyond 0.66 counted from 1, where it is pi/4."""
    z = greater(x, 0.66, (x - 1.0) / (x + 1.0), x).with_name("arctan_at")
    square = (z * z).with_name("arctan_square")
    ratio = polynomial(square, _R) / polynomial(square, _S)
    return greater(x, 0.66, np.pi / 4.0, 0.0) + z + z * square * ratio


def offsets(x: Expression, anchor: Anchor) -> Expression:
    """(d,) u = (x - origin) / unit."""
    found = (x - anchor.origin) / anchor.unit
    return found if found is x else found.with_name("u", x.components)


def linear(
    x: Expression, rule: LinearRule, parts: Sequence[str], name: str = "score"
) -> Expression:
    """(K,) scores, or (1,)."""
    found = offsets(x, rule.anchor).affine(rule.coef, rule.intercept)
    return found.with_name(name, parts if found.width > 1 else ())


def quadratic(x: Expression, rule: QuadraticRule, parts: Sequence[str]) -> Expression:
    """(K,) scores."""
    found = distances(x, rule, parts) * -0.5 + rule.constant
    return found.with_name("score", parts)


def distances(x: Expression, rule: QuadraticRule, parts: Sequence[str]) -> Expression:
    """(K,) squared distances from the class means."""
    u = offsets(x, rule.anchor)
    each = [
        _squared(u, mean, metric, part)
        for mean, metric, part in zip(rule.mean, rule.metrics, parts, strict=True)
    ]
    return stack(each)


def laplace(x: Expression, rule: LaplaceRule, parts: Sequence[str]) -> Expression:
    """(K,) scores."""
    u, counted = offsets(x, rule.anchor), np.isfinite(rule.scale)
    height = np.log(2.0 * np.where(counted, rule.scale, 0.5)).sum(axis=1)
    each = []
    for median, scale, some, part in zip(rule.median, rule.scale, counted, parts, strict=True):
        own = np.flatnonzero(some)
        away = ((u.pick(own) - median[own]).abs() / scale[own]).sum()
        each.append(away.with_name(f"away_{part}"))
    found: Expression = stack(each) * -1.0 + (rule.log_prior - height)
    return found.with_name("score", parts)


def fitted(x: Expression, rule: IndicatorRule, parts: Sequence[str]) -> Expression:
    """(K,) fitted values of least squares."""
    columns = x if rule.basis is None else expanded(x, JoinedBasis((rule.basis,)))
    return linear(columns, rule.line, parts)


def memberships(values: Expression, rule: IndicatorRule) -> Expression:
    """(K,) none negative, of sum one."""
    if rule.coding == "fisher":
        shares: Expression = values * (rule.weight[::-1] / rule.weight.sum()) + 1.0
    else:
        shares = values if rule.coding == "indicator" else (values + 1.0) * 0.5
    kept = shares.larger(0.0).with_name("share", values.components)
    return kept / kept.sum().with_name("shares")


# --- bases ---------------------------------------------------------------------------------------


def expanded(x: Expression, basis: JoinedBasis) -> Expression:
    """Columns of a basis side by side."""
    return stack([_expanded(x, part) for part in basis.parts])


def _expanded(x: Expression, basis: PolynomialBasis | KernelBasis) -> Expression:
    if isinstance(basis, KernelBasis):
        return _kernels(x, basis)
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
        below = {term: place for place, term in enumerate(chosen)}
        columns.append(terms)
    return stack(columns)


def _kernels(x: Expression, basis: KernelBasis) -> Expression:
    """exp(-|x - centre|^2 / (2 width^2))."""
    away = [
        ((x - centre) / basis.spread)
        .with_name(f"from_{m}", x.components)
        .squares()
        .with_name(f"far_{m}")
        for m, centre in enumerate(basis.centres)
    ]
    return (stack(away) * -0.5).exp().with_name("kernel", basis.names)


def _squared(u: Expression, mean: Floats, metric: Metric, part: str) -> Expression:
    """(1,) the squared distance in a metric; see `models.metric` for the formula."""
    apart = u - mean
    if not metric.rest:
        apart = apart.with_name(f"apart_{part}", u.components)
        along = apart.affine((metric.basis * np.sqrt(metric.gain)).T, np.zeros(len(metric.gain)))
        return along.with_name(f"along_{part}").squares().with_name(f"distance_{part}")
    rooted = (apart * metric.root).with_name(f"apart_{part}", u.components)
    if not len(metric.gain):
        return rooted.squares().with_name(f"distance_{part}")
    along = rooted.affine(metric.basis.T, np.zeros(len(metric.gain))).with_name(f"along_{part}")
    back = along.affine(metric.basis, np.zeros(len(metric.root)))
    outside = (rooted - back).with_name(f"outside_{part}", u.components).squares()
    inside = (along * np.sqrt(metric.gain)).with_name(f"inside_{part}").squares()
    return (outside * metric.rest + inside).with_name(f"distance_{part}")
