"""Known parameters of Gaussian classes, in place of moments: models without rows.

`ClassParameters` has the fields of class moments that rules need (labels, features, anchor, weight,
mean) and factorised covariances instead of scatters. Access to any other field of class moments
raises an error that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import LabelError, MomentsMismatchError, OptionError
from discriminant.models.gaussian.covariance import Metric, factorise, non_finite_message
from discriminant.models.gaussian.family import linear_rule, quadratic_rule, validate_prior
from discriminant.models.gaussian.mixture import MixtureRule, Structure, component_names
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats, Labels, Places, numbered_names
from discriminant.table.labels import encode_labels


@dataclass(frozen=True, slots=True, eq=False)
class ClassParameters:
    """Means, covariances and priors of K classes in d features."""

    labels: Labels  # (K,) sorted
    features: tuple[str, ...]
    anchor: Anchor
    weight: Floats  # (K,) the priors
    mean: Floats  # (K, d) offsets from the origin
    metrics: tuple[Metric, ...]  # one covariance that all classes share, or K

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of parameters are invalid, or None if they are valid."""
        (K,), d = parts["labels"].shape, len(parts["features"])
        metrics = parts["metrics"]
        if parts["mean"].shape != (K, d) or parts["weight"].shape != (K,):
            return f"mean and weight must be of {K} classes and {d} features"
        if len(metrics) not in (1, K) or any(metric.basis.shape[0] != d for metric in metrics):
            return f"there must be 1 or {K} metrics of {d} features"
        if len(parts["anchor"].origin) != d:
            return f"the anchor must be of {d} features"
        return non_finite_message("mean", parts["mean"])

    def __getattr__(self, name: str) -> Any:
        if name in ClassParameters.__slots__ or not hasattr(ClassMoments, name):
            raise AttributeError(f"'ClassParameters' object has no attribute {name!r}")
        raise MomentsMismatchError.known_parameters("This result")

    @property
    def means(self) -> Floats:
        """(K, d) class means in data units."""
        return self.anchor.values(self.mean)

    def rule(self, prior: Floats) -> LinearRule | QuadraticRule:
        """Return the rule of these classes: linear if they share one covariance."""
        moments: Any = self
        if len(self.metrics) == 1:
            return linear_rule(moments, metric=self.metrics[0], prior=prior)
        return quadratic_rule(moments, metrics=self.metrics, prior=prior)


def class_parameters(
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
    prior: Any,
    *,
    shared: bool,
    classes: npt.ArrayLike | None,
    features: Sequence[str] | None,
) -> ClassParameters:
    """Return known parameters; raise an error unless they are valid.

    Parameters
    ----------
    mean
        (K, d) class means.
    covariance
        (d, d) if `shared`, else (K, d, d); positive definite.
    prior
        (K,) in the order of `classes`, or a mapping from label to prior; by default all are equal.
    shared
        Whether all classes have one covariance.
    classes
        (K,) labels in the order of the means; by default 0 to K - 1.
    features
        d names; by default x0 to x(d-1).
    """
    means = as_numbers("mean", mean, 2, "an array of shape (K, d), one row for each class")
    K, d = means.shape
    labels, order = order_of_labels(classes, K)
    names = feature_names(features, d)
    shape = (d, d) if shared else (K, d, d)
    covariances = as_covariances("covariance", covariance, shape)
    covariances = covariances[None] if shared else covariances[order]
    anchor = anchor_of_classes(means, covariances)
    metrics = tuple(
        known_metric(own, anchor, None if shared else labels.tolist()[k])
        for k, own in enumerate(covariances)
    )
    weight = sorted_prior(prior, labels, order)
    return ClassParameters(labels, names, anchor, weight, anchor.offsets(means[order]), metrics)


def as_numbers(name: str, values: Any, dimensions: int, allowed: str) -> Floats:
    """Return the values as an array with `dimensions` axes; raise an error if one is not finite."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError.of(name, type(values).__name__, allowed) from None
    if array.ndim != dimensions or not array.size:
        raise OptionError.of(name, f"array of shape {array.shape}", allowed)
    if not np.isfinite(array).all():
        raise OptionError.of(name, "array with NaN or infinite values", "finite")
    return array


def order_of_labels(classes: npt.ArrayLike | None, K: int) -> tuple[Labels, Places]:
    """Return the sorted labels of K classes, and the index of each label in the given order."""
    given = np.arange(K) if classes is None else classes
    labels, codes = encode_labels(given)
    if len(codes) != K or len(labels) != K:
        count = f"{len(codes)} labels, {len(labels)} different"
        raise OptionError.of("classes", count, f"{K} different labels, one for each class")
    if K < 2:
        raise LabelError.one_class(labels[0])
    return labels, np.argsort(codes)


def feature_names(features: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """Return the validated names of d features."""
    if features is None:
        return numbered_names(d)
    names = tuple(map(str, features))
    if isinstance(features, str) or len(names) != d or len(set(names)) != d:
        raise OptionError.of("features", list(names), f"{d} different names, one for each column")
    return names


def sorted_prior(prior: Any, labels: Labels, order: Places) -> Floats:
    """Return the priors (K,) in the order of the sorted labels; the default is equal priors."""
    if prior is None:
        return np.full(len(labels), 1.0 / len(labels))
    if not isinstance(prior, Mapping) and np.shape(prior) == labels.shape:
        prior = np.asarray(prior)[order]
    return validate_prior(prior, labels)


def as_covariances(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return covariance matrices; reject a wrong shape and matrices that are not symmetric."""
    allowed = f"an array of shape {shape}"
    array = as_numbers(name, values, len(shape), allowed)
    if array.shape != shape:
        raise OptionError.of(name, f"array of shape {array.shape}", allowed)
    transposed = np.swapaxes(array, -1, -2)
    if not np.allclose(array, transposed, rtol=1e-8, atol=1e-8 * np.abs(array).max()):
        raise OptionError.of(name, "matrix that is not symmetric", "symmetric")
    if (np.diagonal(array, axis1=-2, axis2=-1) <= 0).any():
        raise OptionError.of(name, "matrix with a variance of 0 or less", "positive definite")
    return np.asarray(0.5 * (array + transposed))


def anchor_of_classes(means: Floats, covariances: Floats) -> Anchor:
    """Return the anchor for classes with these means and covariances (m, d, d)."""
    sd = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1).max(axis=0))
    return Anchor.from_sample(np.vstack([means - sd, means, means + sd]))


def known_metric(covariance: Floats, anchor: Anchor, label: Any) -> Metric:
    """Return the metric of a covariance in data units, which must be positive definite.

    `label` is the class that has this covariance, or None.
    """
    metric, _ = factorise(covariance / anchor.unit[:, None] / anchor.unit)
    if metric is None:
        whose = "singular matrix" if label is None else f"singular matrix for class '{label}'"
        raise OptionError.of("covariance", whose, "positive definite")
    return metric


# --- mixtures -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ComponentParameters:
    """Known parameters of K classes, each of which is a mixture of Gaussian components."""

    labels: Labels  # (K,) sorted
    features: tuple[str, ...]
    anchor: Anchor
    prior: Floats  # (K,)
    means: tuple[Floats, ...]  # K arrays (R_k, d) of offsets
    shares: tuple[Floats, ...]  # K arrays (R_k,)
    structure: Structure
    metrics: tuple[Metric, ...]  # one for all components, or in the order of the classes

    @property
    def numbers(self) -> list[int]:
        """Number of components of each class (K,)."""
        return [len(own) for own in self.means]

    def rules(self) -> tuple[MixtureRule, QuadraticRule]:
        """Return the rule of the classes, and the densities of all components."""
        classes = np.repeat(np.arange(len(self.labels)), self.numbers)
        names = [
            component_names(label, number)
            for label, number in zip(self.labels.tolist(), self.numbers, strict=True)
        ]
        joined: Any = SimpleNamespace(
            labels=np.concatenate(names), anchor=self.anchor, mean=np.concatenate(self.means)
        )
        shares = self.prior[classes] * np.concatenate(self.shares)
        densities = quadratic_rule(joined, metrics=self.metrics, prior=shares)
        components: LinearRule | QuadraticRule = densities
        if self.structure == "shared":
            components = linear_rule(joined, metric=self.metrics[0], prior=shares)
        return MixtureRule(self.labels, components, classes), densities


def component_parameters(
    means: Sequence[npt.ArrayLike],
    covariances: npt.ArrayLike | Sequence[npt.ArrayLike],
    shares: Sequence[npt.ArrayLike] | None,
    prior: Any,
    *,
    classes: npt.ArrayLike | None,
    features: Sequence[str] | None,
) -> ComponentParameters:
    """Return known parameters of mixtures; raise an error unless they are valid.

    Parameters
    ----------
    means
        K arrays of shape (R_k, d): the means of the components of each class.
    covariances
        One (d, d) array for all components, K arrays (d, d) for the classes, or K arrays (R_k, d,
        d) for the components.
    shares
        K arrays (R_k,), each with sum one; by default the components of a class have equal shares.
    prior, classes, features
        As in `class_parameters`.
    """
    allowed = "a sequence of arrays of shape (components, d), one for each class"
    by_class = [as_numbers("means", own, 2, allowed) for own in means]
    K, d = len(by_class), by_class[0].shape[1] if by_class else 0
    if any(own.shape[1] != d for own in by_class):
        raise OptionError.of("means", [own.shape for own in by_class], "arrays of equal width")
    labels, order = order_of_labels(classes, K)
    numbers = [len(own) for own in by_class]
    structure, matrices = _component_covariances(covariances, numbers, d)
    stacked = np.concatenate(matrices)
    anchor = anchor_of_classes(np.concatenate(by_class), stacked)
    metrics: list[Metric] = []
    if structure == "shared":
        metrics = [known_metric(stacked[0], anchor, None)] * sum(numbers)
    else:
        for label, k in zip(labels.tolist(), order, strict=True):
            own = [known_metric(matrix, anchor, label) for matrix in matrices[k]]
            metrics += own * numbers[k] if structure == "class" else own
    return ComponentParameters(
        labels,
        feature_names(features, d),
        anchor,
        sorted_prior(prior, labels, order),
        tuple(anchor.offsets(by_class[k]) for k in order),
        tuple(_component_shares(shares, numbers, k) for k in order),
        structure,
        tuple(metrics),
    )


def _component_covariances(
    covariances: Any, numbers: list[int], d: int
) -> tuple[Structure, list[Floats]]:
    """Return which components share a covariance, and the list of covariance arrays."""
    if np.ndim(covariances[0]) == 1:
        return "shared", [as_covariances("covariances", covariances, (d, d))[None]]
    K = len(numbers)
    if len(covariances) != K:
        allowed = f"one (d, d) matrix, or a sequence with one array for each of the {K} classes"
        raise OptionError.of("covariances", f"{len(covariances)} arrays", allowed)
    by_class = [np.ndim(own) == 2 for own in covariances]
    if all(by_class):
        return "class", [as_covariances("covariances", own, (d, d))[None] for own in covariances]
    pairs = zip(covariances, numbers, strict=True)
    return "component", [as_covariances("covariances", own, (R, d, d)) for own, R in pairs]


def _component_shares(shares: Sequence[npt.ArrayLike] | None, numbers: list[int], k: int) -> Floats:
    """Return the shares (R_k,) of the components of class k."""
    if shares is None:
        return np.full(numbers[k], 1.0 / numbers[k])
    allowed = f"positive numbers with sum 1, as many as components: {numbers}"
    if len(shares) != len(numbers):
        raise OptionError.of("shares", f"{len(shares)} arrays", allowed)
    own = as_numbers("shares", shares[k], 1, allowed)
    if len(own) != numbers[k] or (own <= 0).any() or abs(own.sum() - 1.0) > 1e-6:
        raise OptionError.of("shares", f"{len(own)} numbers with sum {own.sum():.6g}", allowed)
    return np.asarray(own / own.sum())
