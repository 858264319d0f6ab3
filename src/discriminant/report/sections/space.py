"""Section 3 of the report: rows projected on Fisher's discriminant directions, and tests.

In z = project(x) the pooled covariance of the classes is the identity. In the plane of the first
two directions,

    ellipse_k   centre + radius * half axes of the covariance of class k's projected rows,
                radius^2 = the 95 % point of chi-squared(2)
    region_k    where z . z_k - |z_k|^2 / 2 + log prior_k is largest: a convex polygon, the frame
                cut by one half plane for each other class

Along a single direction (two classes) there are histograms and decision boundaries instead. Tests
that cannot be computed are left out, with the reason in the notes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtri

from discriminant.assessment.inference.group_tests import BoxM, box_m
from discriminant.assessment.inference.manova import FTest, Manova, manova
from discriminant.errors import DiscriminantError
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions, fit_fisher
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import (
    CanonicalFacts,
    ComparisonFacts,
    EllipseFacts,
    ModelFacts,
    RegionFacts,
    SpaceFacts,
    StructureFacts,
    TestFacts,
)
from discriminant.report.format import p_value as chance_text, percent, plain_reason
from discriminant.table.blocks import Codes, Floats, dense
from discriminant.table.memory import Table

_SHARE = 0.95  # of a Gaussian class inside its ellipse
_FEATURES = 40  # of the structure that are kept
_BESIDE = 6  # features whose values are beside a point
_BLOCK = 1 << 16
_BINS = 48


def space_section(
    table: Table,
    moments: ClassMoments,
    *,
    rule: FisherRule | None = None,
    found: Manova | None = None,
    spread: BoxM | None = None,
    comparison: ComparisonFacts | None = None,
    most: int = 2000,
    seed: int = 0,
) -> SpaceFacts | None:
    """Return the projection, the structure of its directions and the tests; None if undefined.

    Parameters
    ----------
    table, moments
        The rows, and their moments (with detail 'class', for Box's M).
    rule, found, spread
        Results of Fisher (`rule_`), `manova` and `box_m`, if already computed.
    comparison
        Section 2: the held-out errors of LDA and QDA are quoted beside Box's M.
    most, seed
        Largest number of rows shown, and the seed for sampling them.
    """
    notes: list[str] = []
    rule = _fisher(moments, notes) if rule is None else rule
    if rule is None:
        return None
    found = _asked(manova, moments, notes) if found is None else found
    spread = _asked(box_m, moments, notes) if spread is None else spread
    along = _projected(rule, table)
    structure = _structure(moments, rule, found)
    some = _sample(table.codes, most, seed)
    beside = [table.schema.features.index(name) for name in structure["features"][:_BESIDE]]
    section = SpaceFacts(
        labels=[str(label) for label in table.schema.labels.tolist()],
        axes=[f"direction {j + 1}" for j in range(along.shape[1])],
        points=_points(along[some], table.codes[some]),
        shown=structure["features"][:_BESIDE],
        values=_significant(dense(table.take(some).features)[:, beside].astype(float)),
        rows=len(table),
        means=np.round(rule.projected[:, :2], 4).tolist(),
        ellipses=_ellipses(along, table.codes, table.weight) if along.shape[1] == 2 else [],
        regions=[],
        borders=[],
        structure=structure,
        canonical=_canonical(rule, found),
        tests=[] if found is None else [_test(test) for test in found.tests],
        calls_for=_calls_for(spread, comparison),
        notes=notes,
    )
    lift = _lift(rule)
    if along.shape[1] == 2:
        section["regions"] = _regions(rule.projected[:, :2], lift, _frame(section))
    else:
        section["borders"] = _borders(rule.projected[:, 0], lift)
        section["bins"] = _bins(along[:, 0], table.codes, table.weight, len(section["labels"]))
    if spread is not None:
        section["box_m"] = {"chi2": spread.chi2, "df": spread.df, "p": spread.p, "m": spread.m}
    return section


def _fisher(moments: ClassMoments, notes: list[str]) -> FisherRule | None:
    try:
        prior = moments.weight / moments.weight.sum()
        return fit_fisher(
            moments, family=GaussianFamily(), prior=prior, projection=ProjectionOptions()
        )
    except DiscriminantError as reason:
        notes.append(plain_reason(reason))
        return None


def _asked(test: Any, moments: ClassMoments, notes: list[str]) -> Any:
    try:
        return test(moments)
    except DiscriminantError as reason:
        notes.append(plain_reason(reason))
        return None


def _projected(rule: FisherRule, table: Table) -> Floats:
    """Return the (N, 1 or 2) projections of all rows."""
    parts = [rule.project(block.features)[:, :2] for block in table.blocks(_BLOCK)]
    return np.concatenate(parts)


def _sample(codes: Codes, most: int, seed: int) -> Any:
    """Return the numbers of at most `most` rows, sampled so that no class is lost."""
    if len(codes) <= most:
        return np.arange(len(codes))
    rows = np.bincount(codes)
    size = np.minimum(
        rows, np.maximum(np.floor(most * rows / len(codes)), min(20, most // len(rows)))
    )
    draw = np.random.default_rng(seed)
    parts = [
        draw.choice(np.flatnonzero(codes == k), int(n), replace=False)
        for k, n in enumerate(size)
        if n
    ]
    return np.sort(np.concatenate(parts))[: 2 * most]


def _points(along: Floats, codes: Codes) -> list[list[float]]:
    second = along[:, 1] if along.shape[1] > 1 else np.zeros(len(along))
    columns = np.round(along[:, 0], 3).tolist(), np.round(second, 3).tolist(), codes.tolist()
    return [list(point) for point in zip(*columns, strict=True)]


def _significant(values: Floats) -> list[list[float]]:
    return [[float(f"{value:.4g}") for value in row] for row in values.tolist()]


def _ellipses(along: Floats, codes: Codes, weight: Floats | None) -> list[EllipseFacts]:
    radius = float(np.sqrt(chdtri(2, 1.0 - _SHARE)))
    found = []
    for k in np.unique(codes):
        rows = along[codes == k]
        if len(rows) < 3:
            continue
        w = None if weight is None else weight[codes == k]
        covariance = np.atleast_2d(np.cov(rows.T, fweights=None, aweights=w))
        size, turn = np.linalg.eigh(covariance)
        axes = radius * np.sqrt(np.maximum(size, 0.0))[:, None] * turn.T
        centre = np.average(rows, axis=0, weights=w)
        found.append(
            EllipseFacts(code=int(k), centre=centre.tolist(), axes=axes.tolist(), share=_SHARE)
        )
    return found


def _lift(rule: FisherRule) -> Floats:
    """Return the (K,) log priors: the intercepts beyond those of the nearest mean."""
    means = rule.projected
    half = 0.5 * np.einsum("kr,kr->k", means, means)
    return np.asarray(rule.intercept - means @ rule.shift + half)


def _frame(section: SpaceFacts) -> Floats:
    """Return the (2, 2) limits of the plot, with a margin."""
    ends = [np.asarray(section["points"])[:, :2]]
    for ellipse in section["ellipses"]:
        reach = np.sqrt((np.asarray(ellipse["axes"]) ** 2).sum(axis=0))
        ends.append(np.asarray(ellipse["centre"]) + np.stack([-reach, reach]))
    every = np.concatenate(ends)
    low, high = every.min(axis=0), every.max(axis=0)
    room = 0.04 * np.maximum(high - low, 1e-9)
    return np.stack([low - room, high + room])


def _regions(means: Floats, lift: Floats, frame: Floats) -> list[RegionFacts]:
    (left, low), (right, high) = frame
    whole = np.array([[left, low], [right, low], [right, high], [left, high]])
    offset = lift - 0.5 * np.einsum("kr,kr->k", means, means)
    found = []
    for k in range(len(means)):
        polygon = whole
        for other in range(len(means)):
            if other != k and len(polygon):
                polygon = _cut(polygon, means[k] - means[other], offset[k] - offset[other])
        if len(polygon) > 2:
            found.append(RegionFacts(code=k, polygon=np.round(polygon, 4).tolist()))
    return found


def _cut(polygon: Floats, normal: Floats, offset: float) -> Floats:
    """Clip a convex polygon (m, 2) to z . normal + offset >= 0 (Sutherland and Hodgman)."""
    above = polygon @ normal + offset
    kept = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if above[i] >= 0:
            kept.append(polygon[i])
        if (above[i] >= 0) != (above[j] >= 0):
            step = above[i] / (above[i] - above[j])
            kept.append(polygon[i] + step * (polygon[j] - polygon[i]))
    return np.array(kept).reshape(-1, 2)


def _borders(means: Floats, lift: Floats) -> list[float]:
    """Return the decision boundaries on one direction: corners of the upper envelope of lines."""
    slope, height = means, lift - 0.5 * means**2
    at, k = -np.inf, int(np.lexsort((height, -slope))[-1])
    found: list[float] = []
    while True:
        later = np.flatnonzero(slope > slope[k])
        if not len(later):
            return found
        cross = (height[k] - height[later]) / (slope[later] - slope[k])
        ahead = np.maximum(cross, at)
        first = int(np.lexsort((-slope[later], ahead))[0])
        at, k = float(ahead[first]), int(later[first])
        found.append(at)


def _bins(along: Floats, codes: Codes, weight: Floats | None, K: int) -> dict[str, Any]:
    edges = np.linspace(along.min(), along.max() + 1e-9, _BINS + 1)
    counts = [
        np.histogram(
            along[codes == k], edges, weights=None if weight is None else weight[codes == k]
        )[0]
        for k in range(K)
    ]
    return {
        "edges": np.round(edges, 4).tolist(),
        "counts": [c.astype(float).tolist() for c in counts],
    }


def _structure(moments: ClassMoments, rule: FisherRule, found: Manova | None) -> StructureFacts:
    names, share = moments.features, rule.share
    loadings = _loadings(moments, rule)
    if found is not None:
        names, share = found.features, found.canonical.share
        loadings = found.canonical.structure
    order = np.argsort(-(np.abs(loadings) @ share), kind="stable")[:_FEATURES]
    return StructureFacts(
        features=[names[j] for j in order],
        loadings=np.round(loadings[order][:, :4], 4).tolist(),
        left_out=len(names) - len(order),
    )


def _loadings(moments: ClassMoments, rule: FisherRule) -> Floats:
    """Return the (d, r) correlations within classes, W a / sqrt(diag(W) a'Wa)."""
    covaries = moments.pooled @ rule.scalings
    own = np.diagonal(moments.pooled)[:, None]
    along = np.einsum("jr,jr->r", rule.scalings, covaries)
    size = np.sqrt(np.maximum(own * along, 0.0))
    found: Floats = np.divide(covaries, size, out=np.zeros_like(covaries), where=size > 0)
    return found


def _canonical(rule: FisherRule, found: Manova | None) -> list[CanonicalFacts]:
    tests = () if found is None else found.canonical.tests
    p = [*(float(test.p) for test in tests), *[None] * len(rule.eigenvalues)]
    return [
        CanonicalFacts(
            correlation=float(np.sqrt(value / (1.0 + value))),
            eigenvalue=float(value),
            share=float(share),
            p=chance,
        )
        for value, share, chance in zip(rule.eigenvalues, rule.share, p, strict=False)
    ]


def _test(test: FTest) -> TestFacts:
    return TestFacts(
        name=test.name, value=test.value, f=test.f, df1=test.df1, df2=test.df2, p=test.p
    )


def _calls_for(spread: BoxM | None, comparison: ComparisonFacts | None) -> str:
    """Recommend LDA or QDA, by Box's M and by the held-out errors."""
    if spread is None:
        return ""
    odds = chance_text(spread.p)
    odds = f"p {odds}" if odds.startswith("<") else f"p = {odds}"
    by_test = (
        f"The class covariances differ significantly (Box's M, {odds}), which favours QDA or RDA "
        "over LDA."
        if spread.p < 0.05
        else f"The class covariances do not differ significantly (Box's M, {odds}): use LDA."
    )
    models = {} if comparison is None else _models(comparison)
    if not {"lda", "qda"} <= set(models):
        return by_test
    lda, qda = models["lda"]["error"] or 0.0, models["qda"]["error"] or 0.0
    pair = f"{percent(qda)} for QDA against {percent(lda)} for LDA"
    if qda < lda:
        held = f"On held-out rows QDA had the lower error: {pair}."
    elif qda > lda:
        nevertheless = " nevertheless" if spread.p < 0.05 else ""
        held = f"On held-out rows LDA{nevertheless} had the lower error: {pair}."
    else:
        return f"{by_test} On held-out rows both had an error of {percent(lda)}."
    ends = models["lda"]["error_low"], models["lda"]["error_high"]
    if None not in ends and ends[0] <= qda <= ends[1]:  # type: ignore[operator]
        held = held.removesuffix(".") + ", a difference that is not significant."
    return f"{by_test} {held}"


def _models(comparison: ComparisonFacts) -> dict[str, ModelFacts]:
    return {
        model["name"].lower(): model for model in comparison["models"] if model["error"] is not None
    }
