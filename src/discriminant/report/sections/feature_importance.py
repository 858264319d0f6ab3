"""Section of the report on importance: one ranking of the features, by several measures.

All measures but the effects follow from the moments. With W the scatter within classes, T the total
scatter, and L(S) = |W_S| / |T_S| Wilks' lambda of a set S of features:

    explained_j  1 - W_jj / T_jj           what feature j explains without the others
    added_j      1 - L(all) / L(all but j)  what it explains in addition to all others: partial
                 = 1 - T^jj / W^jj         R^2, from the diagonals of the inverses
    importance   (explained_j + added_j) / 2, the two ends of Shapley's average over all orders
    loading_j    largest |correlation| of the feature with a discriminant direction, within classes
    step_j       when a stepwise search enters it
    effect_j     change of the selected model's probability at the mean of all rows, when feature j
                 rises from half a standard deviation below its mean to half above, but not beyond
                 its smallest and largest value (an indicator: from 0 to 1), the others held at
                 their means

Loadings and `explained` ignore the other features; coefficients and `added` hold them fixed; the
stepwise order conditions on the features that entered before. So the three orders can differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from discriminant.errors import DiscriminantError
from discriminant.models.gaussian.covariance import factorise
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import EffectFacts, MattersFacts, RankFacts, RankingFacts
from discriminant.report.format import name_list
from discriminant.table.blocks import Floats, Places

Probabilities = Callable[[Floats], Floats]

_FEATURES = 24  # largest number of features shown
_CORRELATED = 0.7  # least |correlation| within classes of features that share information
_NOTE = (
    "Importance is the mean of what a feature explains alone and what it adds to all others. "
    "Loadings look at each feature alone; coefficients hold the other features fixed; the stepwise "
    "order counts only what the earlier features have not explained. Correlated features therefore "
    "rank differently by each of them."
)


def ranking_section(
    moments: ClassMoments,
    *,
    loadings: Mapping[str, float] | None = None,
    matters: MattersFacts | None = None,
    probabilities: Probabilities | None = None,
    model: str = "",
    limits: tuple[Floats, Floats] | None = None,
) -> RankingFacts | None:
    """Return the features in order of importance; None if no feature varies.

    Parameters
    ----------
    moments
        Moments of all rows, with detail 'pooled' or 'class'.
    loadings
        Largest absolute loading of each feature.
    matters
        The section on features, whose stepwise order is quoted.
    probabilities, model
        Function from rows (n, d) to posteriors (n, K) of the selected model, and its name.
    limits
        Smallest and largest value of each feature, of a sample if there are many rows.
    """
    if moments.pooled.ndim == 1:
        return None
    within, total, single = _scatters(moments)
    varying = np.flatnonzero(np.diagonal(total) > 0)
    if not len(varying):
        return None
    added = _added(within, total, varying)
    known = np.where(np.isnan(added), single, added)
    importance = (single + known) / 2
    order = [int(j) for j in np.argsort(-importance, kind="stable") if j in set(varying.tolist())]
    steps = _steps(matters)
    correlation = _correlation(within)
    names = moments.features
    features = []
    for j in order[:_FEATURES]:
        features.append(
            RankFacts(
                feature=names[j],
                importance=float(importance[j]),
                explained=float(single[j]),
                added=None if np.isnan(added[j]) else float(added[j]),
                loading=None if loadings is None else loadings.get(names[j]),
                step=steps.get(names[j]),
                why=_why(j, single, added, correlation, names),
            )
        )
    section = RankingFacts(
        features=features, left_out=len(order) - len(features), model=model, note=_NOTE
    )
    if probabilities is not None:
        _add_effects(section, moments, probabilities, limits)
    return section


def _scatters(moments: ClassMoments) -> tuple[Floats, Floats, Floats]:
    """Return the scatter within classes, the total scatter, and each feature's share between.

    The scatters W and T are those of the offsets `(x - origin) / unit`. The share of the variance
    of feature j that lies between the classes is 1 - W_jj / T_jj.
    """
    offset = moments.mean - moments.centre
    within = moments.pooled
    total = within + (moments.weight[:, None] * offset).T @ offset
    own, all_ = np.diagonal(within), np.diagonal(total)
    single = 1.0 - np.divide(own, all_, out=np.ones_like(own), where=all_ > 0)
    return within, total, np.clip(single, 0.0, 1.0)


def _added(within: Floats, total: Floats, varying: Places) -> Floats:
    """Return the partial R^2 of each feature given all others, (d,); NaN where undefined."""
    added = np.full(len(within), np.nan)
    inside = np.ix_(varying, varying)
    if not (np.diagonal(within)[varying] > 0).all():
        return added
    inverses = []
    for scatter in (within[inside], total[inside]):
        metric, loss = factorise(scatter)
        if metric is None or loss is not None:
            return added
        inverses.append(np.diagonal(metric.solve(np.eye(len(varying)))))
    added[varying] = np.clip(1.0 - inverses[1] / inverses[0], 0.0, 1.0)
    return added


def _correlation(within: Floats) -> Floats:
    sd = np.sqrt(np.maximum(np.diagonal(within), 0.0))
    product = np.outer(sd, sd)
    return np.asarray(np.divide(within, product, out=np.zeros_like(within), where=product > 0))


def _steps(matters: MattersFacts | None) -> dict[str, int]:
    if matters is None or "stepwise" not in matters:
        return {}
    entered = [step["entered"] for step in matters["stepwise"]["steps"] if step["entered"]]
    return {name: i + 1 for i, name in enumerate(dict.fromkeys(entered))}


def _why(j: int, single: Floats, added: Floats, correlation: Floats, names: tuple[str, ...]) -> str:
    """Return a sentence on why the measures of a feature differ, or an empty text."""
    if np.isnan(added[j]):
        return "Redundant columns: what it adds cannot be computed."
    related = np.abs(correlation[j])
    related[j] = 0.0
    partner = int(np.argmax(related))
    shared = (
        f", in particular with {name_list([names[partner]])} (r = {correlation[j, partner]:.2f})"
        if related[partner] >= _CORRELATED
        else ""
    ).replace("-", "−")
    if single[j] >= 0.1 and added[j] < 0.2 * single[j]:
        return f"Strong alone, but it adds little: it shares its information{shared}."
    if added[j] >= 0.02 and single[j] < 0.2 * added[j]:
        return (
            f"Weak alone, but it corrects for other features{shared}: its weight matters although "
            "its loading is small."
        )
    return ""


def _add_effects(
    section: RankingFacts,
    moments: ClassMoments,
    probabilities: Probabilities,
    limits: tuple[Floats, Floats] | None,
) -> None:
    """Add the change of the probability at the mean for each feature of the section."""
    _, total, _ = _scatters(moments)
    sd = np.sqrt(np.diagonal(total) / max(float(moments.weight.sum()) - 1.0, 1.0))
    sd = sd * moments.anchor.unit
    mean = moments.anchor.values(moments.centre[None, :])[0]
    places = [moments.features.index(row["feature"]) for row in section["features"]]
    rows = np.tile(mean, (2 * len(places), 1))
    for i, j in enumerate(places):
        indicator = _is_indicator(float(mean[j]), float(sd[j]), float(moments.weight.sum()))
        low, high = (0.0, 1.0) if indicator else (mean[j] - sd[j] / 2, mean[j] + sd[j] / 2)
        # a skewed feature may have no values that far below its mean
        if limits is not None and not indicator:
            low, high = max(low, limits[0][j]), min(high, limits[1][j])
        rows[2 * i, j], rows[2 * i + 1, j] = low, high
    try:
        p = probabilities(rows)
    except DiscriminantError:  # a model may reject rows between the levels of a category
        return
    labels = [str(label) for label in moments.labels.tolist()]
    for i, (row, j) in enumerate(zip(section["features"], places, strict=True)):
        before, after = p[2 * i], p[2 * i + 1]
        k = 1 if len(labels) == 2 else int(np.argmax(np.abs(after - before)))
        row["effect"] = EffectFacts(
            of=labels[k],
            low=float(rows[2 * i, j]),
            high=float(rows[2 * i + 1, j]),
            before=float(before[k]),
            after=float(after[k]),
        )


def _is_indicator(mean: float, sd: float, n: float) -> bool:
    """Return whether mean and standard deviation are those of a column of zeros and ones."""
    variance = mean * (1.0 - mean) * n / max(n - 1.0, 1.0)
    return 0.0 < mean < 1.0 and abs(sd**2 - variance) <= 1e-9 * variance
