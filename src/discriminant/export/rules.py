"""Rules to steps: what a fitted model is, on the numbers of one row.

    linear      u = (x - origin) / unit,  score = W u + b
    quadratic   score_k = constant_k - |whitened_k(u - mean_k)|^2 / 2
    laplace     score_k = constant_k - sum_j |u_j - median_kj| / scale_kj
    indicator   fitted = W basis(x) + b;  shares are what is positive of it, over their sum

Offsets are taken first, as the rules themselves do: rows far from zero lose no digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discriminant.export.steps import Step, stack
from discriminant.models.indicator import IndicatorRule
from discriminant.models.laplace import LaplaceRule
from discriminant.models.metric import Metric
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.anchor import Anchor
from discriminant.table.basis import JoinedBasis, KernelBasis, PolynomialBasis
from discriminant.table.schema import Floats


def offsets(x: Step, anchor: Anchor) -> Step:
    """(d,) u = (x - origin) / unit."""
    found = (x - anchor.origin) / anchor.unit
    return found if found is x else found.named("u", x.parts)


def linear(x: Step, rule: LinearRule, parts: Sequence[str], name: str = "score") -> Step:
    """(K,) scores, or (1,)."""
    found = offsets(x, rule.anchor).affine(rule.coef, rule.intercept)
    return found.named(name, parts if found.width > 1 else ())


def quadratic(x: Step, rule: QuadraticRule, parts: Sequence[str]) -> Step:
    """(K,) scores."""
    found = distances(x, rule, parts) * -0.5 + rule.constant
    return found.named("score", parts)


def distances(x: Step, rule: QuadraticRule, parts: Sequence[str]) -> Step:
    """(K,) squared distances from the class means."""
    u = offsets(x, rule.anchor)
    each = [
        _squared(u, mean, metric, part)
        for mean, metric, part in zip(rule.mean, rule.metrics, parts, strict=True)
    ]
    return stack(each)


def laplace(x: Step, rule: LaplaceRule, parts: Sequence[str]) -> Step:
    """(K,) scores."""
    u, counted = offsets(x, rule.anchor), np.isfinite(rule.scale)
    height = np.log(2.0 * np.where(counted, rule.scale, 0.5)).sum(axis=1)
    each = []
    for median, scale, some, part in zip(rule.median, rule.scale, counted, parts, strict=True):
        own = np.flatnonzero(some)
        away = ((u.pick(own) - median[own]).abs() / scale[own]).sum()
        each.append(away.named(f"away_{part}"))
    found: Step = stack(each) * -1.0 + (rule.log_prior - height)
    return found.named("score", parts)


def fitted(x: Step, rule: IndicatorRule, parts: Sequence[str]) -> Step:
    """(K,) fitted values of least squares."""
    columns = x if rule.basis is None else expanded(x, JoinedBasis((rule.basis,)))
    return linear(columns, rule.line, parts)


def memberships(values: Step, rule: IndicatorRule) -> Step:
    """(K,) none negative, of sum one."""
    if rule.coding == "fisher":
        shares: Step = values * (rule.weight[::-1] / rule.weight.sum()) + 1.0
    else:
        shares = values if rule.coding == "indicator" else (values + 1.0) * 0.5
    kept = shares.larger(0.0).named("share", values.parts)
    return kept / kept.sum().named("shares")


# --- bases ---------------------------------------------------------------------------------------


def expanded(x: Step, basis: JoinedBasis) -> Step:
    """Columns of a basis side by side."""
    return stack([_expanded(x, part) for part in basis.parts])


def _expanded(x: Step, basis: PolynomialBasis | KernelBasis) -> Step:
    if isinstance(basis, KernelBasis):
        return _kernels(x, basis)
    u = ((x - basis.origin) / basis.unit).named("factor", x.parts)
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
        terms = (left * right).named("product", names)
        below = {term: place for place, term in enumerate(chosen)}
        columns.append(terms)
    return stack(columns)


def _kernels(x: Step, basis: KernelBasis) -> Step:
    """exp(-|x - centre|^2 / (2 width^2))."""
    away = [
        ((x - centre) / basis.spread).named(f"from_{m}", x.parts).squares().named(f"far_{m}")
        for m, centre in enumerate(basis.centres)
    ]
    return (stack(away) * -0.5).exp().named("kernel", basis.names)


def _squared(u: Step, mean: Floats, metric: Metric, part: str) -> Step:
    """(1,) the squared distance in a metric; see `models.metric` for the formula."""
    apart = u - mean
    if not metric.rest:
        apart = apart.named(f"apart_{part}", u.parts)
        along = apart.affine((metric.basis * np.sqrt(metric.gain)).T, np.zeros(len(metric.gain)))
        return along.named(f"along_{part}").squares().named(f"distance_{part}")
    rooted = (apart * metric.root).named(f"apart_{part}", u.parts)
    if not len(metric.gain):
        return rooted.squares().named(f"distance_{part}")
    along = rooted.affine(metric.basis.T, np.zeros(len(metric.gain))).named(f"along_{part}")
    back = along.affine(metric.basis, np.zeros(len(metric.root)))
    outside = (rooted - back).named(f"outside_{part}", u.parts).squares()
    inside = (along * np.sqrt(metric.gain)).named(f"inside_{part}").squares()
    return (outside * metric.rest + inside).named(f"distance_{part}")
