"""Section of the report on the discriminant space: rows projected on directions, and tests.

In z = project(x) the pooled covariance C of the classes is the identity. Positions of rows are
held-out: the directions A_f of each fold are fitted without its rows and rotated onto the
directions of all rows by R (orthogonal Procrustes, from the class means of both):

    z = A_f'(x - centre_f) R     R = U V'  where  M_f' diag(weight) M = U S V'

Ellipses are those of the class covariances, A' S_k A, at the 95 % point of chi-squared(2).

The shaded regions are the predictions of the selected model on a grid in the plane of two
directions. A point z of the plane represents the row x = centre + C A z; on the directions outside
the plane, x is projected to the same point as the centre. Along a single direction (two classes)
there are histograms, and the boundaries are where the prediction changes. Tests that cannot be
computed are left out, with the reason in the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.special import chdtri

from discriminant.assessment.inference.manova import FTest, Manova, manova
from discriminant.assessment.inference.mean_and_covariance_tests import BoxM, box_m
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.errors import DiscriminantError
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions, fit_fisher
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import (
    CanonicalFacts,
    ComparisonFacts,
    EllipseFacts,
    ModelFacts,
    RegionsFacts,
    SpaceFacts,
    StructureFacts,
    TestFacts,
)
from discriminant.report.format import p_value, percent, plain_reason
from discriminant.report.sections.row_sample import RowSample, beyond_edges
from discriminant.table.blocks import Codes, Floats
from discriminant.table.memory import Table

T = TypeVar("T")

Predict = Callable[[Floats], Codes]

_SHARE = 0.95  # share of a Gaussian class inside its ellipse
_FEATURES = 40  # largest number of features in the table of the structure
_VALUES = 6  # number of features whose values are shown with a point
_DIRECTIONS = 4  # largest number of directions that can be shown
_BINS = 48
_HISTOGRAM_ROWS = 20_000  # largest number of rows of a histogram
_FENCE = 4.0  # interquartile ranges beyond the quartiles of a class that a plot shows
_GRID = (84, 60)  # cells of the grid across and up
_STEPS = 2000  # steps along a single direction
_MOST_FOLDS = 50  # largest number of folds whose directions are fitted
_REGION_CLASSES = 60  # largest number of classes with regions


def space_section(
    table: Table,
    moments: ClassMoments,
    *,
    comparison: ComparisonFacts | None = None,
    held: HeldOutPredictions | None = None,
    trains: Sequence[ClassMoments] = (),
    predict: Predict | None = None,
    model: str = "LDA on the directions shown",
    most: int = 2000,
    seed: int = 0,
) -> SpaceFacts | None:
    """Return the projection, the structure of its directions, and the tests; None if undefined.

    Parameters
    ----------
    table, moments
        The rows, and their moments (with detail 'class', for Box's M).
    comparison
        The section on the comparison: its held-out errors of LDA and QDA are quoted beside Box's M.
    held
        Held-out predictions of the selected model for the rows of the table.
    trains
        Moments without each fold of `held`, for held-out positions.
    predict, model
        Function from rows (n, d) to class codes, for the boundaries, and the name of its model
        (default: LDA on the directions).
    most, seed
        Largest number of rows shown, and the seed for sampling them.
    """
    notes: list[str] = []
    rule = _try(_fit_fisher, moments, notes)
    if rule is None:
        return None
    equal_means, equal_covariances = _try(manova, moments, notes), _try(box_m, moments, notes)
    structure = _structure(moments, rule, equal_means)
    sample = RowSample.of(table, most=most, seed=seed)
    r = min(rule.projected.shape[1], _DIRECTIONS)
    positions, how = _positions(rule, sample, moments, held, trains)
    shown = structure["features"][:_VALUES]
    places = [table.schema.features.index(name) for name in shown]
    values = sample.features[:, places].tolist()
    section = SpaceFacts(
        labels=list(sample.labels),
        axes=[f"direction {j + 1}" for j in range(r)],
        points=np.round(positions[:, :r], 3).tolist(),
        codes=sample.codes.tolist(),
        numbers=sample.numbers.tolist(),
        shown=shown,
        values=[[float(f"{value:.4g}") for value in row] for row in values],
        rows=len(table),
        positions=how,
        boundaries=model,
        means=np.round(rule.projected[:, :r], 4).tolist(),
        ellipses=_ellipses(moments, rule, r) if r > 1 else [],
        regions=[],
        borders=[],
        structure=structure,
        canonical=_canonical(rule, equal_means),
        tests=[] if equal_means is None else [_test(test) for test in equal_means.tests],
        calls_for=_recommendation(equal_covariances, comparison),
        notes=notes,
    )
    if held is not None:
        rows = sample.numbers
        section["decided"] = held.decided[rows].tolist()
        p = decided_probability(held)[rows]
        section["probability"] = np.where(p < 1.0, np.minimum(p.round(6), 0.999999), p).tolist()
    if predict is None:
        predict = _lda_on_directions(rule, r)
    if r > 1:
        section["regions"] = _regions(section, rule, moments, predict)
    else:
        larger = RowSample.of(table, most=_HISTOGRAM_ROWS, seed=seed)
        along = _positions(rule, larger, moments, held, trains)[0][:, 0]
        section["bins"] = _histograms(along, larger, len(section["labels"]))
        section["borders"] = _borders(along, rule, moments, predict)
    if equal_covariances is not None:
        section["box_m"] = {n: getattr(equal_covariances, n) for n in ("chi2", "df", "p", "m")}
    return section


def decided_probability(held: HeldOutPredictions) -> Floats:
    """Return the predicted probability of each row's decision, (N,); NaN if there is none."""
    K = len(held.labels)
    if not held.probabilistic:
        return np.full(len(held.codes), np.nan)
    own = np.minimum(held.decided, K - 1)
    p = np.exp(held.log_posterior[np.arange(len(own)), own])
    return np.asarray(np.where(held.decided < K, p, np.nan))


def _try(compute: Callable[[ClassMoments], T], moments: ClassMoments, notes: list[str]) -> T | None:
    """Return the result of `compute`; on an error, return None and add the reason to the notes."""
    try:
        return compute(moments)
    except DiscriminantError as reason:
        notes.append(plain_reason(reason))
        return None


def _fit_fisher(moments: ClassMoments) -> FisherRule:
    prior = moments.weight / moments.weight.sum()
    return fit_fisher(moments, family=GaussianFamily(), prior=prior, projection=ProjectionOptions())


def _positions(
    rule: FisherRule,
    sample: RowSample,
    moments: ClassMoments,
    held: HeldOutPredictions | None,
    trains: Sequence[ClassMoments],
) -> tuple[Floats, str]:
    """Return the positions (m, r) of the sampled rows, and a sentence on how they were computed."""
    if held is not None and len(trains) == int(held.fold.max()) + 1 <= _MOST_FOLDS:
        positions = _held_out_positions(
            rule, sample, moments, held.fold[sample.numbers], trains=trains
        )
        if positions is not None:
            return positions, (
                "Positions are held-out: each row is projected on directions that were fitted "
                "without its fold, rotated onto those of all rows."
            )
    how = "Positions use directions fitted to all rows, which look slightly too well separated."
    return rule.project(sample.features), how


def _held_out_positions(
    rule: FisherRule,
    sample: RowSample,
    moments: ClassMoments,
    fold: Any,
    *,
    trains: Sequence[ClassMoments],
) -> Floats | None:
    positions = np.empty((len(sample), rule.projected.shape[1]))
    weight = moments.weight[:, None]
    for f, train in enumerate(trains):
        rows = np.flatnonzero(fold == f)
        if not len(rows):
            continue
        try:
            own = _fit_fisher(train)
        except DiscriminantError:  # a training set that lacks a class has no directions
            return None
        if len(own.projected) != len(rule.projected):
            return None
        left, _, right = np.linalg.svd((weight * own.projected).T @ rule.projected, False)
        positions[rows] = own.project(sample.features[rows]) @ left @ right
    return positions


def _ellipses(moments: ClassMoments, rule: FisherRule, r: int) -> list[EllipseFacts]:
    radius = float(np.sqrt(chdtri(2, 1.0 - _SHARE)))
    directions = rule.scalings[:, :r]
    ellipses = []
    for k, weight in enumerate(moments.weight):
        if moments.rows[k] < 3 or weight <= 1:
            continue
        covariance = directions.T @ moments.scatter[k] @ directions / (weight - 1.0)
        ellipses.append(
            EllipseFacts(
                code=k,
                centre=rule.projected[k, :r].round(4).tolist(),
                covariance=covariance.round(5).tolist(),
                radius=radius,
                share=_SHARE,
            )
        )
    return ellipses


def _lda_on_directions(rule: FisherRule, r: int) -> Predict:
    means = rule.projected
    half = 0.5 * np.einsum("kr,kr->k", means, means)
    log_prior = rule.intercept - means @ rule.shift + half
    offset = log_prior - 0.5 * np.einsum("kr,kr->k", means[:, :r], means[:, :r])

    def predict(features: Floats) -> Codes:
        scores = rule.project(features)[:, :r] @ means[:, :r].T + offset
        return np.asarray(scores.argmax(axis=1))

    return predict


def _rows_at(rule: FisherRule, moments: ClassMoments, z: Floats) -> Floats:
    """Return rows (n, d) with the projections z (n, r) on the first directions.

    Their other directions are at the mean of all rows.
    """
    r = z.shape[1]
    spread = moments.pooled @ rule.scalings[:, :r]
    slope = np.linalg.solve(rule.scalings[:, :r].T @ spread, spread.T)  # (r, d)
    offsets = (z - rule.shift[:r]) @ slope
    return rule.anchor.values(offsets)


def _regions(
    section: SpaceFacts, rule: FisherRule, moments: ClassMoments, predict: Predict
) -> list[RegionsFacts]:
    """Return the predicted classes on a grid in the plane of every pair of directions."""
    r, (across, up) = len(section["axes"]), _GRID
    pairs = [(i, j) for i in range(r) for j in range(i + 1, r)]
    frames = [_frame(section, pair) for pair in pairs]
    points = np.asarray(section["points"])
    outside = [_count_outside(points[:, list(p)], f) for p, f in zip(pairs, frames, strict=True)]
    if len(section["labels"]) > _REGION_CLASSES:
        return [
            _region(pair, frame, "", n)
            for pair, frame, n in zip(pairs, frames, outside, strict=True)
        ]
    grids = []
    for (i, j), frame in zip(pairs, frames, strict=True):
        x = frame[0] + (np.arange(across) + 0.5) / across * (frame[1] - frame[0])
        y = frame[2] + (np.arange(up) + 0.5) / up * (frame[3] - frame[2])
        grid = np.zeros((across * up, r))
        grid[:, i], grid[:, j] = np.tile(x, up), np.repeat(y, across)
        grids.append(_rows_at(rule, moments, grid))
    codes = predict(np.concatenate(grids)).reshape(len(pairs), -1)
    return [
        _region(pair, frame, as_characters(line), n)
        for pair, frame, line, n in zip(pairs, frames, codes, outside, strict=True)
    ]


def as_characters(numbers: Any) -> str:
    """Return small whole numbers as one character each: 0 is "A".

    >>> as_characters([0, 1, 25])
    'ABZ'
    """
    return "".join(chr(65 + int(number)) for number in numbers)


def _region(pair: tuple[int, int], frame: list[float], codes: str, outside: int) -> RegionsFacts:
    return RegionsFacts(
        directions=list(pair),
        frame=frame,
        across=_GRID[0],
        up=_GRID[1],
        codes=codes,
        outside=outside,
    )


def _count_outside(points: Floats, frame: list[float]) -> int:
    low, high = np.array(frame[::2]), np.array(frame[1::2])
    return int(((points < low) | (points > high)).any(axis=1).sum())


def _frame(section: SpaceFacts, pair: tuple[int, int]) -> list[float]:
    """Return left, right, low and high end of the plot, with a margin."""
    extremes = [np.asarray(section["points"])[:, list(pair)]]
    for ellipse in section["ellipses"]:
        variances = np.diagonal(np.asarray(ellipse["covariance"]))[list(pair)]
        radii = ellipse["radius"] * np.sqrt(variances)
        extremes.append(np.asarray(ellipse["centre"])[list(pair)] + np.stack([-radii, radii]))
    points = np.concatenate(extremes)
    least, most = _bulk(extremes[0], np.asarray(section["codes"]))
    low = np.maximum(points.min(axis=0), least)
    high = np.minimum(points.max(axis=0), most)
    margin = 0.04 * np.maximum(high - low, 1e-9)
    left, bottom = (low - margin).round(4).tolist()
    right, top = (high + margin).round(4).tolist()
    return [left, right, bottom, top]


def _bulk(points: Floats, codes: Any) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the range (r,) that a plot of points (n, r) shows.

    It reaches `_FENCE` interquartile ranges beyond the quartiles of each class, so that stray
    points do not compress the plot. The range of a class with nearly equal points is at least a
    quarter of the widest range of a class.
    """
    quartiles = [np.quantile(points[codes == k], [0.25, 0.75], axis=0) for k in np.unique(codes)]
    first, third = np.array(quartiles).swapaxes(0, 1)  # (K, r) each
    widest = (third - first).max(axis=0)
    if not (widest > 0).all():  # most points of every class are equal
        return points.min(axis=0), points.max(axis=0)
    reach = _FENCE * np.maximum(third - first, 0.25 * widest)
    return (first - reach).min(axis=0), (third + reach).max(axis=0)


def _borders(
    along: Floats, rule: FisherRule, moments: ClassMoments, predict: Predict
) -> list[float]:
    """Return where the prediction changes along one direction, by a scan and bisection."""
    z = np.linspace(along.min(), along.max(), _STEPS)
    codes = predict(_rows_at(rule, moments, z[:, None]))
    changes = np.flatnonzero(codes[1:] != codes[:-1])
    if not len(changes):
        return []
    low, high, before = z[changes], z[changes + 1], codes[changes]
    for _ in range(40):
        middle = (low + high) / 2
        same = predict(_rows_at(rule, moments, middle[:, None])) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    borders: list[float] = ((low + high) / 2).tolist()
    return borders


def _histograms(values: Floats, sample: RowSample, K: int) -> dict[str, Any]:
    least, most = (float(end[0]) for end in _bulk(values[:, None], sample.codes))
    low, high = max(float(values.min()), least), min(float(values.max()), most)
    edges = np.linspace(low, high + 1e-9, _BINS + 1)
    beyond = beyond_edges(values, edges)
    values = np.clip(values, low, high)
    counts = []
    for k in range(K):
        weights = None if sample.weight is None else sample.weight[sample.codes == k]
        counts.append(np.histogram(values[sample.codes == k], edges, weights=weights)[0])
    return {
        "edges": np.round(edges, 4).tolist(),
        "beyond": beyond,
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
        else f"The class covariances do not differ significantly (Box's M, {p}), which favours LDA."
    )
    models = {} if comparison is None else _models(comparison)
    if not {"lda", "qda"} <= set(models):
        return by_test
    lda, qda = models["lda"]["error"] or 0.0, models["qda"]["error"] or 0.0
    qda_first = f"{percent(qda)} against {percent(lda)} for LDA"
    lda_first = f"{percent(lda)} against {percent(qda)} for QDA"
    if qda < lda:
        held = f"On held-out rows QDA had the lower error: {qda_first}."
    elif qda > lda:
        nevertheless = " nevertheless" if test.p < 0.05 else ""
        held = f"On held-out rows LDA{nevertheless} had the lower error: {lda_first}."
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
