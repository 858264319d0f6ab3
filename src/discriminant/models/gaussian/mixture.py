"""Gaussian mixtures: every class is a mixture of Gaussian components, fitted by EM.

    p(x | k) = sum over the components c of class k of  share_c N(x; m_c, S_c)

There is one covariance for all components ('shared'), one for each class ('class') or one for each
component ('component'); it is shrunk as in `models.gaussian.family`. One step of EM reads the rows
once:

    E   r_ic = share_c N(x_i; m_c, S_c) / p(x_i | k)      for the components c of the class of row i
    M   n_c = sum_i w_i r_ic,   m_c = sum_i w_i r_ic x_i / n_c,   share_c = n_c / n_k

If the components of a class share one covariance, its scatter is computed from the scatter T_k of
the class about its mean M_k, and no products of rows are needed:

    sum_c sum_i w_i r_ic (x_i - m_c)(x_i - m_c)'  =  T_k - sum_c n_c (m_c - M_k)(m_c - M_k)'

The steps need only sums over rows (`MixtureReading`), so they also work on partitioned tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from discriminant.errors import capture_warnings
from discriminant.models.expressions import Expression, stack
from discriminant.models.gaussian.covariance import (
    Metric,
    embed_columns,
    factorise,
    subspace_metric,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    class_metrics,
    linear_rule,
    pooled_metric,
    quadratic_rule,
)
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Features, Floats, Labels, Places, dense

Structure = Literal["shared", "class", "component"]
STRUCTURES: tuple[Structure, ...] = ("shared", "class", "component")
ComponentRule = LinearRule | QuadraticRule

_LOG_2PI = float(np.log(2 * np.pi))
_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # relative deviation of a constant column
_LLOYD_STEPS = 10  # steps of k-means before EM
_MIN_ROWS = 1.5  # a component of less weight has collapsed


@dataclass(frozen=True, slots=True, eq=False)
class MixtureRule:
    """Rule of K classes, each of which is a mixture of Gaussian components."""

    labels: Labels  # (K,)
    components: ComponentRule  # scores of the C components, which include the class priors
    classes: Places  # (C,) class of each component, in ascending order

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) scores of the classes."""
        return self.class_scores(self.components.scores(features))

    def class_scores(self, scores: Floats) -> Floats:
        """Return the (n, K) scores of the classes, given the (n, C) scores of the components."""
        starts = np.searchsorted(self.classes, np.arange(len(self.labels)))
        by_component = scores.T
        top = np.maximum.reduceat(by_component, starts, axis=0)
        floor = np.where(np.isfinite(top), top, 0.0)
        total = np.add.reduceat(np.exp(by_component - floor[self.classes]), starts, axis=0)
        with np.errstate(divide="ignore"):
            return np.asarray((floor + np.log(total)).T)

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) scores as an expression of the features of one row."""
        numbers = [int(np.sum(self.classes[:c] == k)) + 1 for c, k in enumerate(self.classes)]
        components = [
            f"{names[k]}_{number}" for k, number in zip(self.classes, numbers, strict=True)
        ]
        scores = self.components.expression(x, components).with_name("component", components)
        parts = []
        for k, name in enumerate(names):
            own = scores.pick(np.flatnonzero(self.classes == k))
            if own.width == 1:
                parts.append(own)
                continue
            top = own.max().with_name(f"top_{name}")
            parts.append((own - top).exp().sum().log() + top)
        return stack(parts).with_name("score", names)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        classes, components = parts["classes"], parts["components"]
        (K,) = parts["labels"].shape
        if classes.ndim != 1 or len(components.labels) != len(classes):
            return f"classes {classes.shape} must have one number per component"
        if not np.array_equal(np.unique(classes), np.arange(K)) or (np.diff(classes) < 0).any():
            return f"classes must be numbers from 0 to {K - 1} in ascending order"
        return None


@dataclass(frozen=True, slots=True, eq=False)
class MixtureSums(Summable):
    """Sums that one step of EM needs: weight and mean of each component, and the likelihood.

    A row of weight 2 counts as two equal rows.
    """

    rows: npt.NDArray[np.int64]  # (C,) rows of which this is the most probable component
    weight: Floats  # (C,)
    sums: Floats  # (C, d) weighted sums of offsets from the current mean of the component
    log_sum: Floats  # (K,) sums of the logs of the class scores of the rows of each class
    scatter: Floats | None  # (C, d, d) weighted products of these offsets

    def __add__(self, other: MixtureSums) -> MixtureSums:
        scatter = None
        if self.scatter is not None and other.scatter is not None:
            scatter = self.scatter + other.scatter
        return MixtureSums(
            self.rows + other.rows,
            self.weight + other.weight,
            self.sums + other.sums,
            self.log_sum + other.log_sum,
            scatter,
        )


@dataclass(frozen=True, slots=True, eq=False)
class MixtureReading:
    """Compute the sums of one step of EM, given the components after the previous step."""

    rules: tuple[ComponentRule, ...]  # K, each with the scores of the components of one class
    starts: Places  # (K + 1,) number of the first component of each class
    mean: Floats  # (C, d) offsets of the component means
    anchor: Anchor
    with_scatter: bool

    @property
    def summary_size(self) -> int:
        C, d = self.mean.shape
        return int(C * d * (d if self.with_scatter else 1))

    def read(self, block: Block) -> MixtureSums:
        C, d = self.mean.shape
        scatter = np.zeros((C, d, d)) if self.with_scatter else None
        rows, weight, sums = np.zeros(C, dtype=np.int64), np.zeros(C), np.zeros((C, d))
        log_sum = np.zeros(len(self.rules))
        for k in np.unique(block.codes).tolist():
            own = block.take(np.flatnonzero(block.codes == k))
            features = dense(own.features)
            shares, log_sum[k], most_probable = _responsibilities(
                self.rules[k].scores(features), own.weight
            )
            offsets = self.anchor.offsets(features)
            part = slice(int(self.starts[k]), int(self.starts[k + 1]))
            rows[part] = np.bincount(most_probable, minlength=len(shares))
            weight[part] = shares.sum(axis=1)
            if scatter is None:
                sums[part] = shares @ offsets - weight[part, None] * self.mean[part]
                continue
            for c, share in enumerate(shares, part.start):
                centred = offsets - self.mean[c]
                sums[c] = share @ centred
                scatter[c] = (centred * share[:, None]).T @ centred
        return MixtureSums(rows, weight, sums, log_sum, scatter)


def _responsibilities(
    scores: Floats, weight: Floats | None
) -> tuple[Floats, float, npt.NDArray[np.intp]]:
    """Return row weights in each component (R, n), the log likelihood, and class codes."""
    logs = np.ascontiguousarray(scores.T)
    most_probable = logs.argmax(axis=0)
    top = logs.max(axis=0)
    logs -= top
    shares = np.exp(logs, out=logs)
    total = shares.sum(axis=0)
    likelihood = top + np.log(total)
    shares /= total
    if weight is not None:
        shares *= weight
        most_probable = most_probable[weight > 0]
        likelihood = likelihood * weight
    return shares, float(likelihood.sum()), most_probable


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Components of all classes after some steps of EM."""

    moments: tuple[ClassMoments, ...]  # K; the 'classes' of each are the components of one class
    rules: tuple[ComponentRule, ...]  # K
    metrics: tuple[Metric, ...]  # C
    log_likelihood: float = -np.inf  # of the rows given their classes, before the last step
    steps: int = 0
    change: float = np.inf  # change of the mean log likelihood in the last step

    @property
    def classes(self) -> Places:
        """Class of each component (C,)."""
        return np.repeat(np.arange(len(self.moments)), [len(m.labels) for m in self.moments])

    @property
    def mean(self) -> Floats:
        """Offsets of the component means (C, d)."""
        return np.concatenate([moments.mean for moments in self.moments])

    @property
    def shares(self) -> Floats:
        """Share of each component in its class (C,)."""
        return np.concatenate([m.weight / m.weight.sum() for m in self.moments])

    @property
    def collapsed(self) -> int | None:
        """Class that has a component with almost no weight or a singular covariance, or None."""
        singular = np.array([metric.shrunk > 0 for metric in self.metrics])
        for k, moments in enumerate(self.moments):
            several = len(moments.labels) > 1
            if several and (moments.weight.min() < _MIN_ROWS or singular[self.classes == k].any()):
                return k
        return None


@dataclass(frozen=True, slots=True, eq=False)
class MixtureModel:
    """What stays constant during EM: structure of the covariances, and class moments."""

    structure: Structure
    family: GaussianFamily  # of the components that have one covariance, or of single ones
    totals: ClassMoments  # of the K classes, of detail 'class'

    @classmethod
    def of(
        cls, structure: Structure, totals: ClassMoments, *, shrinkage: Any, target: Any
    ) -> MixtureModel:
        """Create a model; the structure of the covariances determines the Gaussian family."""
        if structure == "component":
            family = GaussianFamily(0.0, shrinkage, target, "ml", shrink="mixed")
        else:
            family = GaussianFamily(1.0, shrinkage, target, "ml")
        return cls(structure, family, totals)

    def restrict(self, k: int) -> MixtureModel:
        """Return the model of one class, whose components may share a covariance."""
        totals = self.totals.classes([self.totals.labels[k]])
        structure: Structure = "component" if self.structure == "component" else "class"
        return replace(self, structure=structure, totals=totals)

    def is_scarce(self, mixture: Mixture) -> bool:
        """Whether a component with its own covariance has fewer than two rows per feature.

        The likelihood of such a component grows without bound as its rows approach a plane, so a
        large likelihood says little about new rows. With shrinkage the likelihood is bounded.
        """
        if self.structure != "component" or np.any(self.family.shrinkage):
            return False
        few = 2 * len(self.totals.features)
        return any(len(m.labels) > 1 and m.weight.min() < few for m in mixture.moments)

    def parameters(self, components: Sequence[int]) -> int:
        """Return the number of free parameters, given the number of components of each class."""
        d = len(self.totals.features)
        covariances = {"shared": 1, "class": len(components), "component": sum(components)}
        free = sum(components) * (d + 1) - len(components)
        return free + covariances[self.structure] * d * (d + 1) // 2

    def maximise(self, sums: MixtureSums, mean: Floats, starts: Places) -> Mixture:
        """Return the components computed from the sums of one step (the M-step)."""
        moments = [
            self._component_moments(k, sums, mean, slice(int(starts[k]), int(starts[k + 1])))
            for k in range(len(starts) - 1)
        ]
        return self.from_moments(moments)

    def _component_moments(
        self, k: int, sums: MixtureSums, mean: Floats, part: slice
    ) -> ClassMoments:
        weight = sums.weight[part]
        shift = sums.sums[part] / np.where(weight > 0, weight, 1.0)[:, None]
        means = mean[part] + shift
        totals = self.totals
        if sums.scatter is None:
            apart = means - totals.mean[k]
            scatter = totals.scatter[k] - (apart * weight[:, None]).T @ apart
            detail: Literal["pooled", "class"] = "pooled"
        else:
            scatter = sums.scatter[part] - weight[:, None, None] * (
                shift[:, :, None] * shift[:, None, :]
            )
            noise = weight[:, None] * (_ROUNDING * (1.0 + np.abs(means))) ** 2
            constant = np.diagonal(scatter, axis1=1, axis2=2) <= noise
            scatter[constant[:, :, None] | constant[:, None, :]] = 0.0
            detail = "class"
        d = len(totals.features)
        return ClassMoments(
            component_names(totals.labels[k], len(weight)),
            totals.features,
            totals.anchor,
            detail,
            np.maximum(sums.rows[part], np.rint(weight).astype(np.int64)),
            weight,
            weight,
            means,
            scatter,
            np.zeros(d if detail == "pooled" else (len(weight), d)),
        )

    def from_moments(self, moments: Sequence[ClassMoments]) -> Mixture:
        """Return the components, given the moments of the components of each class."""
        metrics = self._metrics(moments)
        rules: list[ComponentRule] = []
        for own, metric in zip(moments, metrics, strict=True):
            shares = own.weight / own.weight.sum()
            if self.structure == "component":
                rules.append(quadratic_rule(own, metrics=metric, prior=shares))
            else:
                rules.append(linear_rule(own, metric=metric[0], prior=shares))
        return Mixture(tuple(moments), tuple(rules), tuple(m for own in metrics for m in own))

    def _metrics(self, moments: Sequence[ClassMoments]) -> list[tuple[Metric, ...]]:
        """Return, for each class, the distance metrics of its components."""
        if self.structure == "component":
            # Computed together: a feature that is constant in one component needs the other
            # components.
            metrics = iter(class_metrics(join_components(moments), self.family))
            return [tuple(islice(metrics, len(own.labels))) for own in moments]
        if self.structure == "class":
            return [(pooled_metric(own, self.family),) * len(own.labels) for own in moments]
        metric = pooled_metric(join_components(moments), self.family)
        return [(metric,) * len(own.labels) for own in moments]

    def log_likelihood(self, mixture: Mixture, sums: MixtureSums) -> float:
        """Return the log likelihood of the rows given their classes, from the sums of an E-step."""
        totals = self.totals
        d, n = len(totals.features), totals.weight
        likelihood = float(sums.log_sum.sum()) - float(n.sum()) * (
            0.5 * d * _LOG_2PI + float(np.log(totals.anchor.unit).sum())
        )
        if self.structure == "component":
            return likelihood
        starts = np.searchsorted(mixture.classes, np.arange(len(n)))
        for k, start in enumerate(starts):
            # A linear rule leaves out the terms that are common to all components of a class, and
            # takes rows as offsets from the mean of the components.
            metric, own = mixture.metrics[start], mixture.moments[k]
            gap = totals.mean[k] - own.weight @ own.mean / own.weight.sum()
            squares = np.trace(metric.solve(totals.scatter[k]))
            squares += n[k] * metric.squared_distances(gap[None])[0]
            likelihood -= 0.5 * float(squares + n[k] * metric.logdet)
        return likelihood

    def rule(self, mixture: Mixture, prior: Floats) -> tuple[MixtureRule, QuadraticRule]:
        """Return the rule of the classes, and a rule with all components as classes."""
        joined, classes = join_components(mixture.moments), mixture.classes
        shares = prior[classes] * mixture.shares
        densities = quadratic_rule(joined, metrics=mixture.metrics, prior=shares)
        components: ComponentRule = densities
        if self.structure == "shared":
            components = linear_rule(joined, metric=mixture.metrics[0], prior=shares)
        return MixtureRule(self.totals.labels, components, classes), densities

    def bic(self, mixture: Mixture) -> float:
        """Return the Bayesian information criterion; the smaller, the better."""
        numbers = [len(own.labels) for own in mixture.moments]
        rows = float(self.totals.weight.sum())
        return self.parameters(numbers) * float(np.log(rows)) - 2.0 * mixture.log_likelihood


def component_names(label: Any, number: int) -> Labels:
    """Return the names of the components of one class, for messages."""
    return np.array([f"{label}, component {c}" for c in range(1, number + 1)])


def join_components(moments: Sequence[ClassMoments]) -> ClassMoments:
    """Join the moments of the components of each class into moments of all components."""
    detail = moments[0].detail
    scatters = [own.scatter for own in moments]
    scatter = np.sum(scatters, axis=0) if detail == "pooled" else np.concatenate(scatters)
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(own, name) for own in moments])
        for name in ("rows", "weight", "weight2", "mean")
    }
    C, d = parts["mean"].shape
    lost = np.zeros(d if detail == "pooled" else (C, d))
    labels = np.concatenate([own.labels for own in moments])
    return replace(moments[0], labels=labels, scatter=scatter, lost=lost, **parts)


def run_em(
    model: MixtureModel,
    start: Mixture,
    fold: Callable[[MixtureReading], MixtureSums],
    *,
    tolerance: float,
    max_steps: int,
    progress: Callable[[int, float], object] | None = None,
) -> Mixture:
    """Run EM until a step changes the mean log likelihood by at most `tolerance`.

    `fold` computes the sum of a reading over all rows. EM stops early if a component collapses: its
    weight is almost zero or its covariance singular.
    """
    mixture, before = start, start.log_likelihood
    total = float(model.totals.weight.sum())
    for step in range(1, max_steps + 1):
        starts = np.searchsorted(mixture.classes, np.arange(len(mixture.moments) + 1))
        by_component = model.structure == "component"
        reading = MixtureReading(
            mixture.rules, starts, mixture.mean, model.totals.anchor, by_component
        )
        sums = fold(reading)
        likelihood = model.log_likelihood(mixture, sums)
        change = abs(likelihood - before) / total
        with capture_warnings():
            mixture = model.maximise(sums, mixture.mean, starts)
        mixture = replace(mixture, log_likelihood=likelihood, steps=step, change=change)
        if progress is not None:
            progress(step, likelihood)
        if change <= tolerance or mixture.collapsed is not None:
            break
        before = likelihood
    return mixture


def scores_with_missing(rows: Floats, rule: MixtureRule, densities: QuadraticRule) -> Floats:
    """Return the (n, K) scores of rows (n, d) that have NaN where a feature is missing.

    The density of a component in the features that are present is again Gaussian, with the
    corresponding block of its covariance. Terms common to all classes are left out.
    """
    missing = np.isnan(rows)
    patterns, groups = np.unique(missing, axis=0, return_inverse=True)
    covariances = np.array([metric.covariance() for metric in densities.metrics])
    offsets = densities.anchor.offsets(rows)
    scores = np.empty((len(rows), len(densities.labels)))
    for group, pattern in enumerate(patterns):
        selected, present = np.flatnonzero(groups.ravel() == group), np.flatnonzero(~pattern)
        lower = np.linalg.cholesky(covariances[:, present[:, None], present])
        for c, factor in enumerate(lower):
            gaps = offsets[np.ix_(selected, present)] - densities.mean[c, present]
            white = solve_triangular(factor, gaps.T, lower=True) if len(present) else gaps.T
            logdet = float(np.log(np.diagonal(factor)).sum())
            scores[selected, c] = densities.log_prior[c] - logdet - 0.5 * (white**2).sum(axis=0)
    return rule.class_scores(scores)


def single_gaussian(densities: QuadraticRule) -> QuadraticRule:
    """Return the Gaussian density with the mean and the covariance of a mixture.

    With shares s_c, means m_c and covariances C_c of the components,

        m = sum_c s_c m_c        C = sum_c s_c [C_c + (m_c - m)(m_c - m)']
    """
    share = np.exp(densities.log_prior)
    share /= share.sum()
    mean = share @ densities.mean
    gaps = densities.mean - mean
    covariance = np.einsum("c,ci,cj->ij", share, gaps, gaps)
    for weight, metric in zip(share, densities.metrics, strict=True):
        covariance += weight * metric.covariance()
    varying = np.diagonal(covariance) > 0
    covariance = covariance[np.ix_(varying, varying)]
    whole, deficiency = factorise(covariance)
    if whole is None and deficiency is not None:  # collinear columns
        whole = subspace_metric(covariance, deficiency, np.zeros(deficiency.null.shape[1]))
    assert whole is not None
    return QuadraticRule(
        densities.labels[:1],
        densities.anchor,
        mean[None, :],
        (embed_columns(whole, varying),),
        np.zeros(1),
    )


# --- starts ---------------------------------------------------------------------------------------


def starting_mixtures(
    model: MixtureModel,
    blocks: Sequence[Block],
    components: Sequence[int],
    *,
    starts: int,
    rng: np.random.Generator,
) -> Iterator[Mixture]:
    """Yield starting mixtures for EM, each from k-means with random initial centres in every class.

    `blocks` holds the rows of each class. Distances are Mahalanobis distances for the pooled
    covariance within classes.
    """
    anchor = model.totals.anchor
    pooled = GaussianFamily(1.0, model.family.shrinkage, model.family.target, "ml")
    with capture_warnings():
        metric = pooled_metric(model.totals, pooled)
    offsets = [anchor.offsets(dense(block.features)) for block in blocks]
    white = [metric.whiten(own) for own in offsets]
    for _ in range(starts):
        moments = []
        for k, (block, own) in enumerate(zip(blocks, offsets, strict=True)):
            weight = np.ones(len(own)) if block.weight is None else block.weight
            codes = k_means(white[k], weight, components[k], rng)
            names = component_names(model.totals.labels[k], components[k])
            moments.append(_moments_by_code(model, own, weight, codes, names))
        with capture_warnings():
            mixture = model.from_moments(moments)
        yield mixture


def _moments_by_code(
    model: MixtureModel, offsets: Floats, weight: Floats, codes: Places, names: Labels
) -> ClassMoments:
    d = offsets.shape[1]
    by_component = model.structure == "component"
    moments = ClassMoments.empty(
        names,
        model.totals.features,
        detail="class" if by_component else "pooled",
        anchor=model.totals.anchor,
    )
    for c in range(len(names)):
        own, share = offsets[codes == c], weight[codes == c]
        moments.rows[c], moments.weight[c] = len(own), share.sum()
        moments.weight2[c] = share.sum()
        moments.mean[c] = share @ own / share.sum()
        centred = own - moments.mean[c]
        product = (centred * share[:, None]).T @ centred
        moments.scatter[(c,) if by_component else ...] += product.reshape(d, d)
    return moments


def k_means(rows: Floats, weight: Floats, number: int, rng: np.random.Generator) -> Places:
    """Return the cluster of each row (n,), by k-means++ and some steps of Lloyd's algorithm."""
    centres = rows[[_choice(weight, rng)]]
    distances = np.vecdot(rows - centres[0], rows - centres[0])
    while len(centres) < number:
        chosen = rows[_choice(weight * distances, rng)]
        centres = np.vstack([centres, chosen])
        distances = np.minimum(distances, np.vecdot(rows - chosen, rows - chosen))
    codes = _nearest(rows, centres)
    for _ in range(_LLOYD_STEPS):
        for c in range(number):
            own = codes == c
            if own.any():
                centres[c] = np.average(rows[own], axis=0, weights=weight[own])
        moved = _nearest(rows, centres)
        for c in np.setdiff1d(np.arange(number), moved):  # an empty cluster gets its nearest row
            gaps = rows - centres[c]
            moved[np.argmin(np.vecdot(gaps, gaps))] = c
        if np.array_equal(moved, codes):
            break
        codes = moved
    return codes


def _choice(weight: Floats, rng: np.random.Generator) -> int:
    return int(np.searchsorted(np.cumsum(weight), rng.random() * weight.sum(), side="right"))


def _nearest(rows: Floats, centres: Floats) -> Places:
    squares = np.vecdot(centres, centres) - 2.0 * rows @ centres.T
    return np.asarray(squares.argmin(axis=1), dtype=np.intp)
