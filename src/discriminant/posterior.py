"""Posteriors from scores; changes of priors, fusion and pooling of posteriors, typicality.

    log posterior_k = score_k - log sum_l exp(score_l)

Logarithms are computed first, so that very small posteriors are accurate. All functions take
scores, posteriors or distances, never rows. There are functions that change the priors of
posteriors, estimate the priors of a new population, and fuse the posteriors from several sources.
Decisions are made in `decision`.
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
from discriminant.table.labels import classes_of_score_columns

_CLOSE = 1e-4  # tolerance of sums of probabilities, sufficient for float32


@np.errstate(over="ignore", under="ignore")
def log_posterior(scores: Floats) -> Floats:
    """Return the (n, K) log posteriors of scores, which are accurate for tiny posteriors too.

    >>> log_posterior(np.array([[0.0, -800.0]]))
    array([[   0., -800.]])
    """
    logs = scores.T - scores.max(axis=1)  # (K, n), so that every operation runs over all rows
    largest = logs == 0.0
    others = np.exp(logs)
    others *= ~largest
    # If several classes have the maximum, all but one of them belong to `others_sum`.
    others_sum = others.sum(axis=0) + (largest.sum(axis=0) - 1)
    logs -= np.log1p(others_sum)
    return np.asarray(logs.T)


@np.errstate(over="ignore", under="ignore")
def posterior(scores: Floats) -> Floats:
    """Return the (n, K) posteriors of scores, computed without their logarithms.

    Scores have shape (n, K). For two classes, scores may have shape (n, 1): second minus first
    score.

    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    >>> posterior(np.array([[0.0]]))
    array([[0.5, 0.5]])
    """
    if scores.shape[1] <= 2:
        margins = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        odds = np.empty((len(margins), 2))
        odds[:, 0] = margins
        np.negative(margins, out=odds[:, 1])
        np.exp(odds, out=odds)
        odds += 1.0
        return np.divide(1.0, odds, out=odds)
    probabilities = scores.T - scores.max(axis=1)  # (K, n), as in `log_posterior`
    np.exp(probabilities, out=probabilities)
    probabilities /= probabilities.sum(axis=0)
    return np.asarray(probabilities.T)


# --- which classifiers give posteriors ------------------------------------------------------------


def gives_posterior(model: Any) -> bool:
    """Return whether `predict_proba` or `predict_log_proba` of the model gives true probabilities.

    Costs, the reject option, other priors, fusion and the log loss need true probabilities.
    """
    has_method = hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
    return has_method and not_probabilistic(model) is None


def not_probabilistic(model: Any) -> str | None:
    """Return the name of the classifier whose outputs are not probabilities, or None.

    A class of this package whose outputs are not probabilities declares `probabilistic = False`.
    An example is `LeastSquares`, whose `predict_proba` clips fitted values. A wrapper (a pipeline,
    a search, one-vs-rest, a soft vote) gives probabilities if all wrapped classifiers do; a
    calibrating wrapper always does. The `predict_proba` of other libraries is trusted, with one
    exception: scikit-learn's SGDClassifier(loss='modified_huber') clips as well.
    """
    declared = getattr(model, "probabilistic", None)
    if declared is not None:
        return None if declared else _first_wrapped_name(model) or type(model).__name__
    if type(model).__name__ == "CalibratedClassifierCV":
        return None
    if getattr(model, "loss", None) == "modified_huber":
        return f"{type(model).__name__}(loss='modified_huber')"
    return _first_wrapped_name(model)


def _first_wrapped_name(model: Any) -> str | None:
    return next(filter(None, map(not_probabilistic, _wrapped_classifiers(model))), None)


def _wrapped_classifiers(model: Any) -> list[Any]:
    """Return the classifiers that a wrapper contains, or an empty list if it is not a wrapper."""
    for name in ("best_estimator_", "final_estimator_", "final_estimator", "estimator_"):
        inner = getattr(model, name, None)
        if inner is not None and not isinstance(inner, str):
            return [inner]
    if hasattr(model, "final_estimator"):
        return []  # None: scikit-learn's default, a logistic regression
    if hasattr(model, "steps"):
        return [model.steps[-1][1]]
    pairs = getattr(model, "estimators", None)  # (name, classifier)
    if isinstance(pairs, list):
        return [pair[1] for pair in pairs if isinstance(pair, tuple) and len(pair) > 1]
    inner = getattr(model, "estimator", None)
    return [] if inner is None or isinstance(inner, str) else [inner]


# --- other priors --------------------------------------------------------------------------------


def change_prior(log_posterior: Floats, old: Floats, new: Floats) -> Floats:
    """Return the (n, K) log posteriors under other priors: P'(k|x) ~ P(k|x) new_k / old_k.

    The result is exact if the class densities p(x|k) are unchanged.

    >>> half, rare = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    >>> np.exp(change_prior(np.log([[0.5, 0.5]]), half, rare)).round(12)
    array([[0.9, 0.1]])
    """
    return _normalise(log_posterior + (np.log(new) - np.log(old)))


def fuse_posteriors(log_posteriors: Sequence[Floats], prior: Floats) -> Floats:
    """Return the (n, K) log posteriors given m sources that are independent within each class.

        P(k|x_1..x_m) ~ prod_i P(k|x_i) / prior_k^(m-1)

    All sources must have the same `prior`. If the sources contradict one another, so that every
    class has posterior 0, the row is NaN.

    >>> agree = np.log([[0.8, 0.2]])
    >>> np.exp(fuse_posteriors([agree, agree], np.array([0.5, 0.5]))).round(4)  # 16 to 1
    array([[0.9412, 0.0588]])
    """
    total = np.sum(log_posteriors, axis=0) - (len(log_posteriors) - 1) * np.log(prior)
    return _normalise(total)


def _normalise(scores: Floats) -> Floats:
    """Return the log posteriors of scores. Rows in which every score is -inf become NaN."""
    impossible = scores.max(axis=1) == -np.inf
    logs = log_posterior(np.where(impossible[:, np.newaxis], 0.0, scores))
    logs[impossible] = np.nan
    return logs


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedPrior:
    """Class proportions of a population, estimated from posteriors only."""

    prior: Floats  # (K,) maximum-likelihood proportions
    iterations: int
    converged: bool
    statistic: float  # likelihood-ratio statistic of the test that the old priors hold
    degrees: int  # degrees of freedom of its chi-squared distribution: K - 1
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

    Each step increases the mean log likelihood L, which is concave in the priors:

        L(new) = mean over rows of log sum_k new_k P(k|x) / old_k

    With g_k the derivative of L with respect to new_k, max L - L(new) <= max_k g_k - 1. The
    iteration stops when this bound is at most `tolerance`.

    Parameters
    ----------
    log_posterior
        (n, K) logs of calibrated posteriors under the priors `old`.
    old
        (K,) priors of the training rows, positive and with sum one, or a mapping {label: prior}.
    classes
        (K,) label of each column, needed if `old` is a mapping. The default is the column names if
        `log_posterior` is a data frame.
    sample_weight
        (n,) weights of the rows.
    tolerance
        The iteration stops if the mean log likelihood is at most this far below its maximum.
    max_iter
        Maximum number of steps. A warning is issued if the tolerance is not reached.

    Returns
    -------
    EstimatedPrior
        The estimated priors, with a likelihood-ratio test against `old`.
    """
    logs = validate_log_posterior(log_posterior)
    before = _old_prior(old, log_posterior, classes, logs.shape[1])
    weight = check_weight(sample_weight, len(logs))
    weight = np.full(len(logs), 1.0) if weight is None else weight
    log_ratio = logs - np.log(before)
    largest = log_ratio.max(axis=1)
    ratio = np.exp(log_ratio - largest[:, None])  # likelihoods relative to the largest of a row
    prior, gap, step = before, np.inf, 0
    while True:
        mixture = ratio @ prior
        slope = (weight / weight.sum() / mixture) @ ratio
        gap = float(slope[prior > 0].max() - 1.0)
        if gap <= tolerance or step >= max_iter:
            break
        prior, step = prior * slope / (prior @ slope), step + 1
    if gap > tolerance:
        warn(NotConvergedWarning.of_priors(step, gap, tolerance))
    statistic = max(2.0 * float(weight @ (largest + np.log(mixture))), 0.0)
    degrees = len(prior) - 1
    p_value = float(chdtrc(degrees, statistic))
    return EstimatedPrior(prior, step, gap <= tolerance, statistic, degrees, p_value)


def _old_prior(old: Any, log_posterior: Any, classes: Any, columns: int) -> Floats:
    """Return the (K,) validated old priors, in the order of the columns of the posteriors."""
    known = list(old) if isinstance(old, Mapping) else []
    names = classes_of_score_columns(
        log_posterior, labels=known, classes=classes, what="log_posterior"
    )
    if isinstance(old, Mapping) and names is None:
        raise PriorError.without_classes(known)
    labels = np.arange(columns) if names is None else np.asarray(names)
    if len(labels) != columns:
        raise PosteriorError.of_columns(columns, labels.tolist())
    return validate_prior(old, labels)


def validate_log_posterior(log_posterior: npt.ArrayLike, classes: int | None = None) -> Floats:
    """Return the (n, K) log posteriors as floats; the posteriors of each row must sum to 1.

    `classes`, if given, is the required number of columns.

    >>> validate_log_posterior([[0.0, -np.inf]])
    array([[  0., -inf]])
    """
    try:
        logs = np.asarray(log_posterior, dtype=np.float64)
    except (TypeError, ValueError):
        raise PosteriorError.not_a_table() from None
    if logs.ndim != 2 or not len(logs) or logs.shape[1] != (classes or logs.shape[1]):
        raise PosteriorError.of_shape(logs.shape, classes)
    for row, total in invalid_probability_rows(np.exp(np.minimum(logs, 1.0))):
        raise PosteriorError.not_logs(row, total)
    return logs


def invalid_probability_rows(probabilities: Floats) -> Iterator[tuple[int, float]]:
    """Yield (row number, sum of the row) for each row that is not a probability distribution."""
    total = probabilities.sum(axis=1)
    valid = (np.abs(total - 1.0) <= _CLOSE) & (probabilities.min(axis=1, initial=0.0) >= 0)
    for row in np.flatnonzero(~valid):
        yield int(row), float(total[row])


# --- pools ----------------------------------------------------------------------------------------


@np.errstate(under="ignore")
def pool_weights(
    log_posteriors: Floats,
    weight: Floats | None = None,
    *,
    prior: float = 1.0,
    tolerance: float = 1e-8,
    max_iter: int = 2000,
) -> Floats:
    """Estimate the weights (M,) of a mean of the posteriors of M classifiers, by EM.

        maximise  sum_i log sum_m w_m P_m(y_i | x_i)  +  prior sum_m log w_m

    The objective is concave. The second term of the objective has the effect of `prior` additional
    rows for each classifier, so that no weight becomes 0 because of a few rows. Rows to which every
    classifier gives probability 0 are ignored.

    Parameters
    ----------
    log_posteriors
        (N, M) log posteriors of the true class of each held-out row, by each classifier.
    weight
        (N,) weights of the rows.
    prior
        Number of additional rows for each classifier, as explained above.
    tolerance
        The iteration stops when no weight changes by more than this value.
    max_iter
        Maximum number of steps.

    Returns
    -------
    array of shape (M,)
        Positive weights with sum 1.

    Examples
    --------
    >>> good, bad = np.log([0.9, 0.8, 0.9]), np.log([0.5, 0.5, 0.5])
    >>> pool_weights(np.column_stack([good, bad])).round(2)
    array([0.66, 0.34])
    """
    largest = log_posteriors.max(axis=1)
    usable = largest > -np.inf
    likelihood = np.exp(log_posteriors[usable] - largest[usable, None])
    rows = np.ones(len(likelihood)) if weight is None else weight[usable]
    M = likelihood.shape[1]
    total = rows.sum() + prior * M
    weights = np.full(M, 1.0 / M)
    for _ in range(max_iter):
        before = weights
        mixture = likelihood @ weights
        weights = (weights * ((rows / mixture) @ likelihood) + prior) / total
        if np.abs(weights - before).max() <= tolerance:
            break
    return np.asarray(weights)


@np.errstate(under="ignore", divide="ignore")
def pool_log_posteriors(log_posteriors: Floats, weights: Floats) -> Floats:
    """Return the (n, K) logs of the weighted mean of the posteriors of M classifiers.

    `log_posteriors` has shape (M, n, K).

    >>> logs = np.log([[[0.9, 0.1]], [[0.5, 0.5]]])
    >>> np.exp(pool_log_posteriors(logs, np.array([0.5, 0.5]))).round(3)
    array([[0.7, 0.3]])
    """
    largest = log_posteriors.max(axis=0)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    mean = np.einsum("m,mnk->nk", weights, np.exp(log_posteriors - finite))
    return np.asarray(finite + np.log(mean))


# --- outlyingness --------------------------------------------------------------------------------


def typicality(
    distances: Floats, *, width: int, weight: Floats | None = None, degrees: float = np.inf
) -> Floats:
    """Return the (n, K) p-values of the distances of new rows from each class mean.

    `distances` holds squared Mahalanobis distances d^2. The mean of class k was estimated from
    weight_k rows, and the covariance with `degrees` = n - K degrees of freedom. So for a new row of
    class k

        d^2 weight_k / (weight_k + 1) * (degrees - width + 1) / (width degrees)
                                                        ~ F(width, degrees - width + 1)

    where `width` is the number of features. With one class the statistic is d^2 n (n - width) /
    (width (n^2 - 1)) ~ F(width, n - width). Without `weight`, means and covariance are treated as
    known: d^2 ~ chi-squared(width).

    >>> typicality(np.array([[3.8414588206941205]]), width=1).round(12)
    array([[0.05]])
    """
    if weight is None or np.isinf(degrees):
        return np.asarray(chdtrc(width, distances))
    denominator_degrees = degrees - width + 1
    scale = weight / (weight + 1.0) * denominator_degrees / (width * degrees)
    return np.asarray(fdtrc(width, denominator_degrees, distances * scale))
