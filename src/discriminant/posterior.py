"""Convert scores to log posteriors; logarithms come first, so the tails stay exact.

    log posterior_k = score_k - log sum_l exp(score_l)

And what follows from posteriors without the rows: other priors, priors of a new population, fusion
of several sources. What is done about a posterior is not decided here: see `decision`.
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
from discriminant.table.blocks import Floats, open_weight
from discriminant.table.labels import classes_of_columns

_CLOSE = 1e-4  # that probabilities sum to one: float32 is good enough


@np.errstate(over="ignore", under="ignore")
def log_posterior(scores: Floats) -> Floats:
    """(n, K) normalised logs; a far tail keeps its digits instead of becoming log 0.

    >>> log_posterior(np.array([[0.0, -800.0]]))
    array([[   0., -800.]])
    """
    apart = scores.T - scores.max(axis=1)  # (K, n): every step goes along the rows
    top = apart == 0.0
    others = np.exp(apart)
    others *= ~top
    rest = others.sum(axis=0) + (top.sum(axis=0) - 1)  # of several on top, one is no other
    apart -= np.log1p(rest)
    return np.asarray(apart.T)


@np.errstate(over="ignore", under="ignore")
def posterior(scores: Floats) -> Floats:
    """(n, K) probabilities, for those who need no logs.

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

    The one place where that is decided: everything that weighs costs, rejects, changes priors,
    fuses, or takes a log loss asks here.
    """
    has_any = hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
    return has_any and not_probabilistic(model) is None


def not_probabilistic(model: Any) -> str | None:
    """Name of the classifier, the given one or one it wraps, whose outputs are no probabilities.

    A class of ours declares it by `probabilistic = False`, as `LeastSquares` does: its
    `predict_proba` clips fitted values. A wrapper is as good as what it wraps, ours and
    scikit-learn's alike (a pipeline, a search, one-vs-rest, a soft vote); one that calibrates gives
    probabilities whatever is inside. Other libraries' `predict_proba` is taken at its word, except
    that of scikit-learn's SGDClassifier(loss='modified_huber'), which clips as well.
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
    """Name of a class; of a wrapper that declares for another, the name of that."""
    inside = next(filter(None, map(not_probabilistic, _wrapped(model))), None)
    return inside or type(model).__name__


def _wrapped(model: Any) -> list[Any]:
    """The classifiers that the outputs of a wrapper are made of; none of any other."""
    for name in ("best_estimator_", "final_estimator_", "final_estimator", "estimator_"):
        found = getattr(model, name, None)
        if found is not None and not isinstance(found, str):
            return [found]
    if hasattr(model, "final_estimator"):
        return []  # None: scikit-learn's default, a logistic regression
    if hasattr(model, "steps"):
        return [model.steps[-1][1]]
    several = getattr(model, "estimators", None)
    if isinstance(several, list):
        return [entry[1] for entry in several if isinstance(entry, tuple) and len(entry) > 1]
    found = getattr(model, "estimator", None)
    return [] if found is None or isinstance(found, str) else [found]


# --- other priors --------------------------------------------------------------------------------


def reweighed(log_posterior: Floats, old: Floats, new: Floats) -> Floats:
    """(n, K) log posteriors under other priors: P'(k|x) ~ P(k|x) new_k / old_k.

    Exact wherever p(x|k) stays as it was; nothing else of the model need be known.

    >>> half, rare = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    >>> np.exp(reweighed(np.log([[0.5, 0.5]]), half, rare)).round(12)
    array([[0.9, 0.1]])
    """
    return _normalised(log_posterior + (np.log(new) - np.log(old)))


def fused(log_posteriors: Sequence[Floats], prior: Floats) -> Floats:
    """(n, K) log posterior from m sources that are independent within each class.

        P(k|x_1..x_m) ~ prod_i P(k|x_i) / prior_k^(m-1)

    All of them are under the same `prior`. Of a row that sources contradict one another about, so
    that no class is left, every entry is NaN.

    >>> agree = np.log([[0.8, 0.2]])
    >>> np.exp(fused([agree, agree], np.array([0.5, 0.5]))).round(4)  # 16 to 1
    array([[0.9412, 0.0588]])
    """
    total = np.sum(log_posteriors, axis=0) - (len(log_posteriors) - 1) * np.log(prior)
    return _normalised(total)


def _normalised(scores: Floats) -> Floats:
    """`log_posterior` where some classes, or of a row all, are impossible."""
    lost = scores.max(axis=1) == -np.inf
    found = log_posterior(np.where(lost[:, np.newaxis], 0.0, scores))
    found[lost] = np.nan
    return found


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedPrior:
    """Class shares of a population of which only posteriors are known."""

    prior: Floats  # (K,) most likely shares
    iterations: int
    converged: bool
    statistic: float  # 2 log likelihood ratio against the old priors
    degrees: int  # K - 1, of the chi-squared law of `statistic` if the priors are the old ones
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
    """Priors of new rows without labels, by EM (Saerens, Latinne and Decaestecker 2002).

        new_k <- mean over rows of P(k|x) under the priors so far

    It climbs the concave mean log likelihood L(new) = mean log sum_k new_k P(k|x) / old_k, and
    with g_k the slope of L, max L - L(new) <= max_k g_k - 1: that bound is the `tolerance`.

    Parameters
    ----------
    log_posterior
        (n, K) of calibrated posteriors under the priors `old`.
    old
        (K,) priors of the rows that were fitted, positive and of sum one; or {label: prior}.
    classes
        (K,) label of each column, for priors by label; a data frame may name its columns so.
    sample_weight
        (n,) how often each row counts.
    """
    logs = checked_logs(log_posterior)
    before = _old_prior(old, log_posterior, classes, logs.shape[1])
    weight = open_weight(sample_weight, len(logs))
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
    """(K,) priors in the order of the columns."""
    known = list(old) if isinstance(old, Mapping) else []
    named = classes_of_columns(log_posterior, found=known, classes=classes, what="log_posterior")
    if isinstance(old, Mapping) and named is None:
        raise PriorError.without_classes(known)
    labels = np.arange(columns) if named is None else np.asarray(named)
    if len(labels) != columns:
        raise PosteriorError.of_columns(columns, labels.tolist())
    return validate_prior(old, labels)


def checked_logs(log_posterior: npt.ArrayLike, classes: int | None = None) -> Floats:
    """(n, K) logs of probabilities that sum to one in each row; `classes` of them, if it is said.

    >>> checked_logs([[0.0, -np.inf]])
    array([[  0., -inf]])
    """
    try:
        found = np.asarray(log_posterior, dtype=np.float64)
    except (TypeError, ValueError):
        raise PosteriorError.not_a_table() from None
    if found.ndim != 2 or not len(found) or found.shape[1] != (classes or found.shape[1]):
        raise PosteriorError.of_shape(found.shape, classes)
    for row, total in off_one(np.exp(np.minimum(found, 1.0))):
        raise PosteriorError.not_logs(row, total)
    return found


def off_one(probabilities: Floats) -> Iterator[tuple[int, float]]:
    """The rows of (n, K) numbers that are no probabilities of sum one, and their sums."""
    total = probabilities.sum(axis=1)
    good = (np.abs(total - 1.0) <= _CLOSE) & (probabilities.min(axis=1, initial=0.0) >= 0)
    for row in np.flatnonzero(~good):
        yield int(row), float(total[row])


# --- outlyingness --------------------------------------------------------------------------------


def typicality(
    distances: Floats, *, width: int, weight: Floats | None = None, degrees: float = np.inf
) -> Floats:
    """(n, K) p-value of squared Mahalanobis distances of new rows from each class mean.

    Mean m_k of weight_k rows and covariance S of `degrees` = n - K are estimates, so for a new x

        d^2 weight_k / (weight_k + 1) * (degrees - width + 1) / (width degrees)
                                                        ~ F(width, degrees - width + 1)

    With one class this is d^2 n (n - width) / (width (n^2 - 1)) ~ F(width, n - width). Without
    `weight` they count as known: d^2 ~ chi-squared(width).

    >>> typicality(np.array([[3.8414588206941205]]), width=1).round(12)
    array([[0.05]])
    """
    if weight is None or np.isinf(degrees):
        return np.asarray(chdtrc(width, distances))
    below = degrees - width + 1
    scale = weight / (weight + 1.0) * below / (width * degrees)
    return np.asarray(fdtrc(width, below, distances * scale))
