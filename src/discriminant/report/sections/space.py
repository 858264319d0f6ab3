"""Section 3 of the report, discriminant space: rows projected on Fisher's directions, and tests.

In z = project(x) the pooled covariance of the classes is the identity. In the plane of the first
two directions,

    ellipse_k   centre + radius * half axes of the covariance of class k's projected rows,
                radius^2 = the 95 % point of chi-squared(2)
    region_k    where z . z_k - |z_k|^2 / 2 + log prior_k is largest: a convex polygon, which is
                the frame clipped by one half plane for each other class

Along a single direction (two classes) there are histograms and decision boundaries instead. Tests
that cannot be computed are left out, with the reason in the notes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

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
from discriminant.report.format import p_value, percent, plain_reason
from discriminant.table.blocks import Codes, Floats, dense
from discriminant.table.memory import Table

T = TypeVar("T")

_SHARE = 0.95  # share of a Gaussian class inside its ellipse
_FEATURES = 40  # largest number of features in the table of the structure
_VALUES = 6  # number of features whose values are shown with a point
_BLOCK = 1 << 16  # rows projected at a time
_BINS = 48


def space_section(
    table: Table,
    moments: ClassMoments,
    *,
    comparison: ComparisonFacts | None = None,
    most: int = 2000,
    seed: int = 0,
) -> SpaceFacts | None:
    """Return the projection, the structure of its directions, and the tests; None if undefined.

    Parameters
    ----------
    table, moments
        The rows, and their moments (with detail 'class', for Box's M).
    comparison
        Section 2, the comparison: its held-out errors of LDA and QDA are quoted beside Box's M.
    most, seed
        Largest number of rows shown, and the seed for sampling them.
    """
    notes: list[str] = []
    rule = _try(_fit_fisher, moments, notes)
    if rule is None:
        return None
    equal_means, equal_covariances = _try(manova, moments, notes), _try(box_m, moments, notes)
    parts = [rule.project(block.features)[:, :2] for block in table.blocks(_BLOCK)]
    projections = np.concatenate(parts)  # (N, 1 or 2)
    structure = _structure(moments, rule, equal_means)
    sample = _sample(table.codes, most, seed)
    shown = structure["features"][:_VALUES]
    values = dense(table.take(sample).features)[:, [*map(table.schema.features.index, shown)]]
    section = SpaceFacts(
        labels=[str(label) for label in table.schema.labels.tolist()],
        axes=[f"direction {j + 1}" for j in range(projections.shape[1])],
        points=_points(projections[sample], table.codes[sample]),
        shown=shown,
        values=[[float(f"{value:.4g}") for value in row] for row in values.astype(float).tolist()],
        rows=len(table),
        means=np.round(rule.projected[:, :2], 4).tolist(),
        ellipses=[],
        regions=[],
        borders=[],
        structure=structure,
        canonical=_canonical(rule, equal_means),
        tests=[] if equal_means is None else [_test(test) for test in equal_means.tests],
        calls_for=_recommendation(equal_covariances, comparison),
        notes=notes,
    )
    log_prior = _log_prior(rule)
    if projections.shape[1] == 2:
        section["ellipses"] = _ellipses(projections, table.codes, table.weight)
        section["regions"] = _regions(rule.projected[:, :2], log_prior, _frame(section))
    else:
        K = len(section["labels"])
        section["borders"] = _borders(rule.projected[:, 0], log_prior)
        section["bins"] = _histograms(projections[:, 0], table.codes, table.weight, K)
    if equal_covariances is not None:
        section["box_m"] = {n: getattr(equal_covariances, n) for n in ("chi2", "df", "p", "m")}
    return section


def _try(compute: Callable[[ClassMoments], T], moments: ClassMoments, notes: list[str]) -> T | None:
    """Return the result of `compute`; if it raises, return None and add the reason to the notes."""
    try:
        return compute(moments)
    except DiscriminantError as reason:
        notes.append(plain_reason(reason))
        return None


def _fit_fisher(moments: ClassMoments) -> FisherRule:
    prior = moments.weight / moments.weight.sum()
    return fit_fisher(moments, family=GaussianFamily(), prior=prior, projection=ProjectionOptions())


def _sample(codes: Codes, most: int, seed: int) -> Any:
    """Return the numbers of about `most` sampled rows; every class keeps some rows."""
    if len(codes) <= most:
        return np.arange(len(codes))
    rows = np.bincount(codes)
    size = np.minimum(
        rows, np.maximum(np.floor(most * rows / len(codes)), min(20, most // len(rows)))
    )
    generator = np.random.default_rng(seed)
    parts = [
        generator.choice(np.flatnonzero(codes == k), int(n), replace=False)
        for k, n in enumerate(size)
        if n
    ]
    return np.sort(np.concatenate(parts))[: 2 * most]


def _points(projections: Floats, codes: Codes) -> list[list[float]]:
    second = projections[:, 1] if projections.shape[1] > 1 else np.zeros(len(projections))
    columns = np.round(projections[:, 0], 3).tolist(), np.round(second, 3).tolist(), codes.tolist()
    return [list(point) for point in zip(*columns, strict=True)]


def _ellipses(projections: Floats, codes: Codes, weight: Floats | None) -> list[EllipseFacts]:
    radius = float(np.sqrt(chdtri(2, 1.0 - _SHARE)))
    ellipses = []
    for k in np.unique(codes):
        rows = projections[codes == k]
        if len(rows) < 3:
            continue
        w = None if weight is None else weight[codes == k]
        covariance = np.atleast_2d(np.cov(rows.T, fweights=None, aweights=w))
        variances, directions = np.linalg.eigh(covariance)
        axes = radius * np.sqrt(np.maximum(variances, 0.0))[:, None] * directions.T
        centre = np.average(rows, axis=0, weights=w)
        ellipses.append(
            EllipseFacts(code=int(k), centre=centre.tolist(), axes=axes.tolist(), share=_SHARE)
        )
    return ellipses


def _log_prior(rule: FisherRule) -> Floats:
    """Return the (K,) log priors: the intercepts minus the intercepts of the nearest-mean rule."""
    means = rule.projected
    half = 0.5 * np.einsum("kr,kr->k", means, means)
    return np.asarray(rule.intercept - means @ rule.shift + half)


def _frame(section: SpaceFacts) -> Floats:
    """Return the (2, 2) limits of the plot, with a margin."""
    extremes = [np.asarray(section["points"])[:, :2]]
    for ellipse in section["ellipses"]:
        radii = np.sqrt((np.asarray(ellipse["axes"]) ** 2).sum(axis=0))
        extremes.append(np.asarray(ellipse["centre"]) + np.stack([-radii, radii]))
    points = np.concatenate(extremes)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.04 * np.maximum(high - low, 1e-9)
    return np.stack([low - margin, high + margin])


def _regions(means: Floats, log_prior: Floats, frame: Floats) -> list[RegionFacts]:
    (left, low), (right, high) = frame
    corners = np.array([[left, low], [right, low], [right, high], [left, high]])
    offset = log_prior - 0.5 * np.einsum("kr,kr->k", means, means)
    regions = []
    for k in range(len(means)):
        polygon = corners
        for other in range(len(means)):
            if other != k and len(polygon):
                polygon = _clip(polygon, means[k] - means[other], offset[k] - offset[other])
        if len(polygon) > 2:
            regions.append(RegionFacts(code=k, polygon=np.round(polygon, 4).tolist()))
    return regions


def _clip(polygon: Floats, normal: Floats, offset: float) -> Floats:
    """Clip a convex polygon (m, 2) to `z . normal + offset >= 0` (Sutherland and Hodgman)."""
    above = polygon @ normal + offset
    clipped = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if above[i] >= 0:
            clipped.append(polygon[i])
        if (above[i] >= 0) != (above[j] >= 0):
            step = above[i] / (above[i] - above[j])
            clipped.append(polygon[i] + step * (polygon[j] - polygon[i]))
    return np.array(clipped).reshape(-1, 2)


def _borders(means: Floats, log_prior: Floats) -> list[float]:
    """Return the decision boundaries along one direction.

    The boundaries are the corners of the upper envelope of the class scores, which are lines.
    """
    slope, height = means, log_prior - 0.5 * means**2
    border, k = -np.inf, int(np.lexsort((height, -slope))[-1])
    borders: list[float] = []
    while True:
        steeper = np.flatnonzero(slope > slope[k])
        if not len(steeper):
            return borders
        crossings = (height[k] - height[steeper]) / (slope[steeper] - slope[k])
        ahead = np.maximum(crossings, border)
        first = int(np.lexsort((-slope[steeper], ahead))[0])
        border, k = float(ahead[first]), int(steeper[first])
        borders.append(border)


def _histograms(values: Floats, codes: Codes, weight: Floats | None, K: int) -> dict[str, Any]:
    edges = np.linspace(values.min(), values.max() + 1e-9, _BINS + 1)
    counts = []
    for k in range(K):
        weights = None if weight is None else weight[codes == k]
        counts.append(np.histogram(values[codes == k], edges, weights=weights)[0])
    return {
        "edges": np.round(edges, 4).tolist(),
        "counts": [count.astype(float).tolist() for count in counts],
    }


def _structure(moments: ClassMoments, rule: FisherRule, tests: Manova | None) -> StructureFacts:
    if tests is None:
        names, share, loadings = moments.features, rule.share, _loadings(moments, rule)
    else:
        names, canonical = tests.features, tests.canonical
        share, loadings = canonical.share, canonical.structure
    order = np.argsort(-(np.abs(loadings) @ share), kind="stable")[:_FEATURES]
    return StructureFacts(
        features=[names[j] for j in order],
        loadings=np.round(loadings[order][:, :4], 4).tolist(),
        left_out=len(names) - len(order),
    )


def _loadings(moments: ClassMoments, rule: FisherRule) -> Floats:
    """Return the correlations, within classes, of features and directions, (d, r).

    For a direction `a` the correlations are `W a / sqrt(diag(W) a'Wa)`.
    """
    covariance = moments.pooled @ rule.scalings
    feature_variance = np.diagonal(moments.pooled)[:, None]
    direction_variance = np.einsum("jr,jr->r", rule.scalings, covariance)
    scale = np.sqrt(np.maximum(feature_variance * direction_variance, 0.0))
    return np.asarray(np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0))


def _canonical(rule: FisherRule, tests: Manova | None) -> list[CanonicalFacts]:
    known = () if tests is None else tests.canonical.tests
    p_values = [*(float(test.p) for test in known), *[None] * len(rule.eigenvalues)]
    return [
        CanonicalFacts(
            correlation=float(np.sqrt(value / (1.0 + value))),
            eigenvalue=float(value),
            share=float(share),
            p=p,
        )
        for value, share, p in zip(rule.eigenvalues, rule.share, p_values, strict=False)
    ]


def _test(test: FTest) -> TestFacts:
    return TestFacts(
        name=test.name, value=test.value, f=test.f, df1=test.df1, df2=test.df2, p=test.p
    )


def _recommendation(test: BoxM | None, comparison: ComparisonFacts | None) -> str:
    """Recommend LDA or QDA, by Box's M and by the held-out errors."""
    if test is None:
        return ""
    p = p_value(test.p)
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    by_test = (
        f"The class covariances differ significantly (Box's M, {p}), which favours QDA or RDA "
        "over LDA."
        if test.p < 0.05
        else f"The class covariances do not differ significantly (Box's M, {p}): use LDA."
    )
    models = {} if comparison is None else _models(comparison)
    if not {"lda", "qda"} <= set(models):
        return by_test
    lda, qda = models["lda"]["error"] or 0.0, models["qda"]["error"] or 0.0
    pair = f"{percent(qda)} for QDA against {percent(lda)} for LDA"
    if qda < lda:
        held = f"On held-out rows QDA had the lower error: {pair}."
    elif qda > lda:
        nevertheless = " nevertheless" if test.p < 0.05 else ""
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
