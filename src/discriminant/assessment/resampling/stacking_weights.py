"""Pool of the models of a comparison, with weights from their held-out posteriors.

    P(k|x) = sum_m w_m P_m(k|x)

The weights maximise the likelihood of the held-out labels (`posterior.pool_weights`). Models with a
weight below 0.05 are dropped, and the weights of the others are estimated again. The rows of a fold
are pooled with weights estimated from the other folds, so that no row influences the weights of the
models that predict it. No model is refitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from discriminant.assessment.resampling.folds import FoldNumbers
from discriminant.posterior import pool_log_posteriors, pool_weights
from discriminant.table.blocks import Codes, Floats

LEAST_WEIGHT = 0.05  # models with a smaller weight are dropped
MAX_ROWS = 20_000  # rows from which the weights are estimated
_PRIOR = 0.2  # rows that each model counts in advance: with one, few rows give equal weights
_TOLERANCE = 1e-5
_STEPS = 300
_FEW_CLASSES = 8


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutPool:
    """Weights of the models in a pool: from all folds, and for each fold from the other folds."""

    weights: Floats  # (M,) weights from all folds, with sum 1; 0 for models that are dropped
    by_fold: Floats  # (F, M) weights for each fold, from the other folds

    @classmethod
    def of(
        cls,
        logs: Sequence[Floats],
        codes: Codes,
        fold: FoldNumbers,
        weight: Floats | None = None,
        *,
        seed: int = 0,
    ) -> HeldOutPool:
        """Estimate the weights from the (N, K) held-out log posteriors of M models.

        If there are more than `MAX_ROWS` rows, the weights are estimated from a sample.
        """
        F = int(fold.max()) + 1
        if len(codes) > MAX_ROWS:
            rows = np.random.default_rng(seed).choice(len(codes), MAX_ROWS, replace=False)
            logs, codes, fold = [log[rows] for log in logs], codes[rows], fold[rows]
            weight = None if weight is None else weight[rows]
        true_logs = np.column_stack([true_class_log(log, codes) for log in logs])
        whole = weights_above(true_logs, weight)
        by_fold = np.tile(whole, (F, 1))
        for f in range(F):
            others = fold != f
            own = None if weight is None else weight[others]
            by_fold[f] = weights_above(true_logs[others], own)
        return cls(whole, by_fold)

    def log_posterior(self, logs: Sequence[Floats], fold: FoldNumbers) -> Floats:
        """Return the (N, K) log posteriors of the pool from those of the M models."""
        pooled = np.empty_like(logs[0])
        for f, weights in enumerate(self.by_fold):
            rows, used = np.flatnonzero(fold == f), np.flatnonzero(weights).tolist()
            pooled[rows] = pool_log_posteriors(
                np.array([logs[m][rows] for m in used]), weights[used]
            )
        return pooled


def weights_above(
    true_logs: Floats, weight: Floats | None = None, least: float = LEAST_WEIGHT
) -> Floats:
    """Return the weights (M,) of a pool without the models whose weight would be below `least`.

    `true_logs` (N, M) are the log posteriors that each model gives to the true classes.
    """
    estimate = partial(
        pool_weights, weight=weight, prior=_PRIOR, tolerance=_TOLERANCE, max_iter=_STEPS
    )
    weights = estimate(true_logs)
    used = np.flatnonzero(weights >= least)
    final = np.zeros(len(weights))
    final[used] = estimate(true_logs[:, used])
    return final


def true_class_log(log_posterior: Floats, codes: Codes) -> Floats:
    """Return the (n,) log posteriors of the true classes.

    >>> true_class_log(np.log([[0.5, 0.5], [0.2, 0.8]]), np.array([1, 0])).round(2).tolist()
    [-0.69, -1.61]
    """
    if log_posterior.shape[1] > _FEW_CLASSES:
        return np.asarray(log_posterior[np.arange(len(codes)), codes])
    own = log_posterior[:, 0].copy()
    for k in range(1, log_posterior.shape[1]):  # faster than indices if there are few classes
        np.copyto(own, log_posterior[:, k], where=codes == k)
    return np.asarray(own)
