"""Log posteriors: normalised scores, other priors, estimated priors, fusion and typicality.

    log posterior_k = score_k - log sum_l exp(score_l)

Logarithms are computed first, so the tails stay exact. Everything here needs posteriors but no
rows: other priors, the priors of a new population, the fusion of several sources. Decisions are
made in `decision`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc

from discriminant.errors import NotConvergedWarning, PosteriorError, PriorError, warn
from discriminant.models.gaussian.family import validate_prior
from discriminant.table.blocks import Floats, check_weight
from discriminant.table.labels import classes_of_columns

_CLOSE = 1e-4  # tolerance of sums of probabilities, wide enough for float32


@np.errstate(over="ignore", under="ignore")
def log_posterior(scores: Floats) -> Floats:
    """Return (n, K) normalised logs; a far tail keeps its digits instead of becoming log 0.

    >>> log_posterior(np.array([[0.0, -800.0]]))
    array([[   0., -800.]])
    """
    apart = scores.T - scores.max(axis=1)  # (K, n): every step goes along the rows
    top = apart == 0.0
    others = np.exp(apart)
    others *= ~top
    rest = others.sum(axis=0) + (
        top.sum(axis=0) - 1
    )  # ties at the maximum count as others, except one
    apart -= np.log1p(rest)
    return np.asarray(apart.T)


@np.errstate(over="ignore", under="ignore")
def posterior(scores: Floats) -> Floats:
    """Return (n, K) probabilities, without their logs.

    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    shares = scores.T - scores.max(axis=1)  # (K, n), as above
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=0)
    return np.asarray(shares.T)


# --- which classifiers give posteriors ------------------------------------------------------------


def gives_posterior(model: Any) -> bool:
    """Whether a classifier has `predict_proba` or `predict_log_proba`, and it gives probabilities.

    Everything that uses costs, rejects, changes priors, fuses or computes a log loss checks this.
    """
    has_any = hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
    return has_any and not_probabilistic(model) is None


def not_probabilistic(model: Any) -> str | None:
    """Return the name of the classifier, or wrapped one, whose outputs are not probabilities.

    A class of this package declares it by `probabilistic = False`, as `LeastSquares` does: its
    `predict_proba` clips fitted values. A wrapper (a pipeline, a search,
    one-vs-rest, a soft vote) gives probabilities if the wrapped classifiers do; one that calibrates
    always does. `predict_proba` of other libraries is trusted, except that of scikit-learn's
    SGDClassifier(loss='modified_huber'), which clips as well.
    """
    declared = getattr(model, "probabilistic", None)
    if declared is not None:
        return None if declared else _name_of(model)
    if type(model).__name__ == "CalibratedClassifierCV":
        return None
    if getattr(model, "loss", None) == "modified_huber":
        return f"{type(model).__name__}(loss='modified_huber')"
    return next(filter(None, map(not_probabilistic, _wrapped(model))), None)


def _name_of(model: Any) -> str:
    """Return the name of the class; for a wrapper, the name of the wrapped class."""
    inside = next(filter(None, map(not_probabilistic, _wrapped(model))), None)
    return inside or type(model).__name__


def _wrapped(model: Any) -> list[Any]:
    """Return the classifiers that a wrapper combines; empty for any other model."""
    for name in ("best_estimator_", "final_estimator_", "final_estimator", "estimator_"):
        inner = getattr(model, name, None)
        if inner is not None and not isinstance(inner, str):
            return [inner]
    if hasattr(model, "final_estimator"):
        return []  # None: scikit-learn's default, a logistic regression
    if hasattr(model, "steps"):
        return [model.steps[-1][1]]
    several = getattr(model, "estimators", None)
    if isinstance(several, list):
        return [entry[1] for entry in several if isinstance(entry, tuple) and len(entry) > 1]
    inner = getattr(model, "estimator", None)
    return [] if inner is None or isinstance(inner, str) else [inner]


# --- other priors --------------------------------------------------------------------------------


def reweighed(log_posterior: Floats, old: Floats, new: Floats) -> Floats:
    """Return (n, K) log posteriors under other priors: P'(k|x) ~ P(k|x) new_k / old_k.

    Exact if p(x|k) is unchanged; nothing else about the model is needed.

    >>> half, rare = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    >>> np.exp(reweighed(np.log([[0.5, 0.5]]), half, rare)).round(12)
    array([[0.9, 0.1]])
    """
    return _normalised(log_posterior + (np.log(new) - np.log(old)))


def fused(log_posteriors: Sequence[Floats], prior: Floats) -> Floats:
    """Return the (n, K) log posterior of m sources that are independent within each class.

        P(k|x_1..x_m) ~ prod_i P(k|x_i) / prior_k^(m-1)

    All of them have the same `prior`. Where the sources contradict one another, so that every class
    has posterior 0, the row is NaN.

    >>> agree = np.log([[0.8, 0.2]])
    >>> np.exp(fused([agree, agree], np.array([0.5, 0.5]))).round(4)  # 16 to 1
    array([[0.9412, 0.0588]])
    """
    total = np.sum(log_posteriors, axis=0) - (len(log_posteriors) - 1) * np.log(prior)
    return _normalised(total)


def _normalised(scores: Floats) -> Floats:
    """As `log_posterior`; rows in which all classes are impossible become NaN."""
    lost = scores.max(axis=1) == -np.inf
    logs = log_posterior(np.where(lost[:, np.newaxis], 0.0, scores))
    logs[lost] = np.nan
    return logs


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedPrior:
    """Class proportions of a population, estimated from posteriors only."""

    prior: Floats  # (K,) maximum-likelihood proportions
    iterations: int
    converged: bool
    statistic: float  # 2 log likelihood ratio against the old priors
    degrees: int  # K - 1, of the chi-squared distribution of `statistic` under the old priors
    p_value: float


@np.errstate(under="ignore")
def estimated_prior(
    log_posterior: npt.ArrayLike,
    old: npt.ArrayLike | Mapping[Any, float],
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    tolerance: float = 1e-12,
    max_iter: int = 10_000,
) -> EstimatedPrior:
    """Estimate the priors of unlabelled rows by EM (Saerens, Latinne and Decaestecker 2002).

        new_k <- mean over rows of P(k|x) under the current priors

    It increases the concave mean log likelihood L(new) = mean log sum_k new_k P(k|x) / old_k, and
    with g_k the slope of L, max L - L(new) <= max_k g_k - 1: that bound is the `tolerance`.

    Parameters
    ----------
    log_posterior
        (n, K) of calibrated posteriors under the priors `old`.
    old
        (K,) priors of the training rows, positive and with sum one; or {label: prior}.
    classes
        (K,) label of each column, for priors by label; default: the column names of a frame.
    sample_weight
        (n,) weights of the rows.
    """
    logs = checked_logs(log_posterior)
    before = _old_prior(old, log_posterior, classes, logs.shape[1])
    weight = check_weight(sample_weight, len(logs))
    share = np.full(len(logs), 1.0) if weight is None else weight
    ratio = logs - np.log(before)
    top = ratio.max(axis=1)
    ratio = np.exp(ratio - top[:, None])  # likelihood of each class, the largest one
    prior, gap, step = before, np.inf, 0
    while True:
        mixed = ratio @ prior
        slope = (share / share.sum() / mixed) @ ratio
        gap = float(slope[prior > 0].max() - 1.0)
        if gap <= tolerance or step >= max_iter:
            break
        prior, step = prior * slope / (prior @ slope), step + 1
    if gap > tolerance:
        warn(NotConvergedWarning.of_priors(step, gap, tolerance))
    statistic = max(2.0 * float(share @ (top + np.log(mixed))), 0.0)
    degrees = len(prior) - 1
    p_value = float(chdtrc(degrees, statistic))
    return EstimatedPrior(prior, step, gap <= tolerance, statistic, degrees, p_value)


def _old_prior(old: Any, log_posterior: Any, classes: Any, columns: int) -> Floats:
    """Return the (K,) priors in the order of the columns."""
    known = list(old) if isinstance(old, Mapping) else []
    named = classes_of_columns(log_posterior, found=known, classes=classes, what="log_posterior")
    if isinstance(old, Mapping) and named is None:
        raise PriorError.without_classes(known)
    labels = np.arange(columns) if named is None else np.asarray(named)
    if len(labels) != columns:
        raise PosteriorError.of_columns(columns, labels.tolist())
    return validate_prior(old, labels)


def checked_logs(log_posterior: npt.ArrayLike, classes: int | None = None) -> Floats:
    """Validate (n, K) logs of probabilities that sum to one in each row; K = `classes`, if given.

    >>> checked_logs([[0.0, -np.inf]])
    array([[  0., -inf]])
    """
    try:
        logs = np.asarray(log_posterior, dtype=np.float64)
    except (TypeError, ValueError):
        raise PosteriorError.not_a_table() from None
    if logs.ndim != 2 or not len(logs) or logs.shape[1] != (classes or logs.shape[1]):
        raise PosteriorError.of_shape(logs.shape, classes)
    for row, total in off_one(np.exp(np.minimum(logs, 1.0))):
        raise PosteriorError.not_logs(row, total)
    return logs


def off_one(probabilities: Floats) -> Iterator[tuple[int, float]]:
    """Yield the rows of (n, K) numbers that are not probabilities with sum one, and their sums."""
    total = probabilities.sum(axis=1)
    good = (np.abs(total - 1.0) <= _CLOSE) & (probabilities.min(axis=1, initial=0.0) >= 0)
    for row in np.flatnonzero(~good):
        yield int(row), float(total[row])


# --- outlyingness --------------------------------------------------------------------------------


def typicality(
    distances: Floats, *, width: int, weight: Floats | None = None, degrees: float = np.inf
) -> Floats:
    """Return (n, K) p-values of the squared Mahalanobis distances of new rows from each class mean.

    Mean m_k of weight_k rows and covariance S of `degrees` = n - K are estimates, so for a new x

        d^2 weight_k / (weight_k + 1) * (degrees - width + 1) / (width degrees)
                                                        ~ F(width, degrees - width + 1)

    With one class this is d^2 n (n - width) / (width (n^2 - 1)) ~ F(width, n - width). Without
    `weight` they are treated as known: d^2 ~ chi-squared(width).

    >>> typicality(np.array([[3.8414588206941205]]), width=1).round(12)
    array([[0.05]])
    """
    if weight is None or np.isinf(degrees):
        return np.asarray(chdtrc(width, distances))
    below = degrees - width + 1
    scale = weight / (weight + 1.0) * below / (width * degrees)
    return np.asarray(fdtrc(width, below, distances * scale))
