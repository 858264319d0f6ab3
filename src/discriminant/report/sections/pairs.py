"""Section of the report on confused classes: which pairs are confused, and why.

For two classes a and b with n rows in total, from their moments alone:

    d_j   = |mean_aj - mean_bj| / s_j       s_j^2 = (scatter_a + scatter_b)_jj / (n - 2)
    D^2   = difference' C^-1 difference     C = (scatter_a + scatter_b) / (n - 2)
    D'^2  = (n - p - 3) / (n - 2) D^2 - n p / (n_a n_b)    for p features, 0 if negative
    overlap = Phi(-D' / 2)

D'^2 is the unbiased estimate of the squared Mahalanobis distance, and the overlap is the error of
the best linear rule for two equally frequent Gaussian classes at that distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from discriminant.assessment.selection.stepwise import stepwise
from discriminant.errors import DiscriminantError
from discriminant.models.gaussian.covariance import factorise
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import DecisionFacts, PairFacts, PairsFacts, StripFacts
from discriminant.report.format import count_with_noun, fixed, name_list, percent, whole
from discriminant.report.sections.row_sample import (
    RowSample,
    beyond_edges,
    bin_edges,
    bin_numbers,
    bin_values,
)
from discriminant.report.sections.space import as_characters
from discriminant.table.blocks import Floats

_PAIRS = 3  # number of pairs shown
_STRIPS = 3  # largest number of features shown for a pair
_BINS = 16
_LARGE, _SMALL = 1.2, 0.5  # effect sizes that count as large and as small
_SEPARABLE = 0.2  # overlap below which the measured features separate two classes well
_MUCH_BETTER = 0.6  # share of the overlap up to which observed errors contradict it
_FEW_ERRORS = 0.01  # overlap below which two classes are well separated
_RARE = 0.15  # share of the rows of a pair below which a class is rare
_STEPWISE = 200  # largest number of features for a stepwise selection


def pairs_section(
    sample: RowSample,
    moments: ClassMoments | None,
    decision: DecisionFacts,
    *,
    points: RowSample | None = None,
    curved: bool = False,
) -> PairsFacts:
    """Return the most confused pairs of classes, with the features that separate them.

    Parameters
    ----------
    sample
        Rows for the distributions.
    moments
        Moments of all rows, with detail 'class'. Without them only counts are given.
    decision
        The section on decisions: its confusion table is the one explained.
    points
        Rows of the discriminant space, whose bins are listed too.
    curved
        Whether boosted trees are clearly better, so that a curved boundary separates the classes
        better than a linear one.
    """
    labels, actions = decision["labels"], decision["actions"]
    K = len(labels)
    counts = np.zeros((K, K))  # predicted by true class
    for a, action in enumerate(actions):
        if action in labels:
            counts[labels.index(action)] = decision["confusion"][a]
    diagonal = np.diagonal(counts).tolist()
    np.fill_diagonal(counts, 0.0)
    both = np.triu(counts + counts.T)
    order = np.argsort(-both, axis=None, kind="stable")[:_PAIRS]
    rows = [float(row["rows"]) for row in decision["by_class"]]
    pairs = []
    for i, j in zip(*np.unravel_index(order, both.shape), strict=True):
        if both[i, j] > 0:
            a, b = (int(i), int(j)) if counts[j, i] >= counts[i, j] else (int(j), int(i))
            errors = [float(counts[b, a]), float(counts[a, b])]
            right = [diagonal[a], diagonal[b]]
            confused = [e / max(e + r, 1.0) for e, r in zip(errors, right, strict=True)]
            pairs.append(
                _pair(
                    sample,
                    points,
                    moments,
                    (a, b),
                    errors,
                    [rows[a], rows[b]],
                    observed=float(np.mean(confused)),
                    curved=curved,
                )
            )
    return PairsFacts(pairs=pairs, errors=float(counts.sum()))


def _pair(
    sample: RowSample,
    points: RowSample | None,
    moments: ClassMoments | None,
    codes: tuple[int, int],
    errors: list[float],
    rows: list[float],
    *,
    observed: float,
    curved: bool,
) -> PairFacts:
    labels = [sample.labels[k] for k in codes]
    a, b = (name_list([label]) for label in labels)
    counts = f"{whole(errors[0])} of the {whole(rows[0])} rows of {a} are predicted as {b}"
    if errors[1]:
        counts += f", and {whole(errors[1])} of the {whole(rows[1])} rows of {b} as {a}"
    pair = PairFacts(
        codes=list(codes),
        errors=errors,
        rows=rows,
        distance=None,
        overlap=None,
        text=f"{counts}.",
        separates="",
        strips=[],
    )
    if moments is None:
        return pair
    two = moments.classes([moments.labels[k] for k in codes])
    two_codes = [two.labels.tolist().index(moments.labels[k]) for k in codes]
    d = effect_sizes(two)
    strips = np.argsort(-d, kind="stable")[:_STRIPS]
    distance = _distance(two)
    overlap = None if distance is None else float(ndtr(-distance / 2))
    pair["distance"], pair["overlap"] = distance, overlap
    rare = min(rows) / sum(rows) if sum(rows) else 0.5
    rarer = int(rows[1] < rows[0])
    if rare < _RARE and errors[rarer] > 0.5 * rows[rarer]:
        name = (a, b)[rarer]
        counts += (
            f". {name} has only {percent(rare)} of the rows of these two classes, so its "
            "probability rarely reaches 50%, even where it is much higher than usual"
        )
    pair["text"] = f"{counts}. {_describe(moments.features, d, (a, b))}"
    shown = strips[d[strips] >= _SMALL]
    pair["separates"] = _separates(
        two, overlap, moments.features, shown, observed=observed, curved=curved
    )
    pair["strips"] = [
        _strip(sample, points, two, two_codes, codes, int(j), float(d[j])) for j in strips
    ]
    return pair


def effect_sizes(two: ClassMoments) -> Floats:
    """Return the distance of the class means in pooled standard deviations, for each feature.

    `two` are the moments of two classes. A feature that varies within neither class has 0 if its
    means are equal, and infinity otherwise.
    """
    pooled = two.pooled if two.pooled.ndim == 1 else np.diagonal(two.pooled)
    sd = np.sqrt(np.maximum(pooled, 0.0) / max(float(two.weight.sum()) - 2.0, 1.0))
    difference = np.abs(two.mean[0] - two.mean[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(difference > 0, difference / sd, 0.0))


def _distance(two: ClassMoments) -> float | None:
    """Return the Mahalanobis distance D', or None if it cannot be estimated."""
    n, (n_a, n_b) = float(two.weight.sum()), two.weight
    pooled = two.pooled
    if pooled.ndim == 1:
        return None
    varying = np.flatnonzero(np.diagonal(pooled) > 0)
    p = len(varying)
    if n - p - 3 <= 0 or not p:
        return None
    metric, loss = factorise(pooled[np.ix_(varying, varying)] / (n - 2))
    if metric is None or loss is not None:
        return None
    difference = (two.mean[0] - two.mean[1])[varying]
    squared = float(difference @ metric.solve(difference))
    return float(np.sqrt(max((n - p - 3) / (n - 2) * squared - n * p / (n_a * n_b), 0.0)))


def _describe(features: Sequence[str], d: Floats, names: tuple[str, str]) -> str:
    """Return a sentence on which features the classes differ most, and on how many hardly."""
    order = np.argsort(-d, kind="stable")
    large = [j for j in order if d[j] >= _LARGE][:2]
    small = int((d < _SMALL).sum())
    few = f"; {small} of {count_with_noun(len(d), 'feature')} hardly differ (d below {_SMALL:g})"
    few = few if small else ""
    if not large:
        best = f"the largest is {name_list([features[order[0]]])} with d = {fixed(d[order[0]], 2)}"
        return (
            f"Their means differ by less than {_LARGE:g} standard deviations in every feature "
            f"({best}), so single features overlap widely{few}."
        )
    listed = " and ".join(f"{name_list([features[j]])} (d = {fixed(d[j], 2)})" for j in large)
    return f"They differ most in {listed}{few}."


def _separates(
    two: ClassMoments,
    overlap: float | None,
    features: Sequence[str],
    shown: Any,
    *,
    observed: float,
    curved: bool,
) -> str:
    """Return a sentence on which features would separate the two classes better, or that none do.

    Only measured features are considered. `observed` is the mean over both classes of the share of
    their rows predicted as either that are predicted as the other.
    """
    steps: list[str] = []
    if two.mean.shape[1] <= _STEPWISE:
        try:
            entered = [step.entered for step in stepwise(two, enter=0.05, stay=0.05).steps]
            steps = [name for name in dict.fromkeys(entered) if name]
        except DiscriminantError:  # too few rows, or redundant columns: no search
            steps = []
    known = [features[j] for j in shown]
    following = [name for name in steps if name not in known]
    search = (
        f"After {name_list(known)}, a stepwise search for these two classes adds "
        f"{name_list([following[0]])} next."
        if known and following
        else f"Among the measured features, {name_list([following[0]])} separates them most."
        if following
        else ""
    )
    if overlap is None:
        return search
    best = (
        "With all features, a linear rule for two Gaussian classes of equal size would misclassify "
        f"about {percent(overlap)} of them"
    )
    if overlap >= _SEPARABLE and observed <= _MUCH_BETTER * overlap:
        return (
            f"{best}; the selected model confuses only {percent(observed)}, so the classes are not "
            f"Gaussian or their boundary is not straight. {search}"
        ).strip()
    if overlap >= _SEPARABLE:
        opening = (
            "No straight boundary separates them well"
            if curved
            else "Nothing measured here separates them well"
        )
        advice = (
            "Boosted trees do better with the same columns: the boundary is more complicated than "
            "these models can represent."
            if curved
            else "Another measurement is needed."
        )
        return f"{opening}: {best[0].lower()}{best[1:]}. {advice} {search}".strip()
    if overlap < _FEW_ERRORS:
        best += ", so the mistakes are unusual or mislabelled rows (see “Rows to look at”)"
    return f"{best}. {search}".strip()


def _strip(
    sample: RowSample,
    points: RowSample | None,
    two: ClassMoments,
    two_codes: Sequence[int],
    codes: Sequence[int],
    j: int,
    d: float,
) -> StripFacts:
    rows = np.isin(sample.codes, codes)
    edges = bin_edges(sample.features[rows, j], _BINS)
    bins = ""
    if points is not None:
        known = np.nan_to_num(points.features[:, j], nan=float(edges[0]))
        bins = as_characters(bin_numbers(known, edges))
    return StripFacts(
        feature=two.features[j],
        d=d,
        edges=[float(f"{edge:.5g}") for edge in edges],
        values=bin_values(sample.features[rows, j], _BINS).tolist(),
        beyond=beyond_edges(sample.features[rows, j], edges),
        counts=[sample.histogram(j, edges, code).tolist() for code in codes],
        means=[float(two.means[k, j]) for k in two_codes],
        bins=bins,
    )
