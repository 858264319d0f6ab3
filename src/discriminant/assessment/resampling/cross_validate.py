"""Cross-validation, leave-one-out and the RDA grid: `cross_validate`, `leave_one_out`, `rda_grid`.

A model based on moments is fitted to the other folds by adding their moments: rows are read once
to sum them and once to be scored, whatever the number of folds. Leaving one row out changes the
moments by a matrix of rank one, so that its score has a closed form (`resampling.leave_one_out`).
Any other classifier is fitted again for every fold. The numbers are the same.

A partitioned table is read twice: once for the moments of the folds, once to score all rows. With
the same folds its numbers agree with those in memory. The loop over the folds is
`resampling.held_out.score_folds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from sklearn.base import clone

from discriminant.assessment.resampling.folds import (
    MemoryFolds,
    PartitionedFolds,
    class_counts,
    fold_numbers,
    prior_option,
    warn_missing_classes,
)
from discriminant.assessment.resampling.held_out import (
    FoldModel,
    HeldOutPredictions,
    HeldOutTally,
    can_add_moments,
    check_supports_partitions,
    fold_model,
    needed_detail,
    score_model,
)
from discriminant.assessment.resampling.leave_one_out import predict_left_out
from discriminant.assessment.resampling.rda_grid import STEPS, Candidates, Grid, score_grid
from discriminant.assessment.scorers import check_classifier
from discriminant.engines.local import blas_context
from discriminant.engines.partitioned_table import PartitionedTable, reject_separate_labels
from discriminant.errors import (
    LabelError,
    OptionError,
    ShapeError,
    TooFewRowsError,
    merge_warnings,
)
from discriminant.models.gaussian.covariance import Shrinkage
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.posterior import gives_posterior
from discriminant.table.blocks import Codes, Floats, Labels
from discriminant.table.labels import encode_labels
from discriminant.table.memory import Table, as_table, check_weight


@overload
def cross_validate(
    estimator: Any,
    X: PartitionedTable,
    y: None = None,
    folds: Any = None,
    *,
    groups: Any = None,
    sample_weight: None = None,
    seed: Any = 0,
) -> HeldOutTally: ...


@overload
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
) -> HeldOutPredictions: ...


@np.errstate(under="ignore")
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
) -> HeldOutPredictions | HeldOutTally:
    """What a model fitted without its fold says of every row: log posteriors and decisions.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier. One made from moments (LDA, QDA, RDA, ...) is not refitted:
        the moments of the other folds are added, which gives the same numbers.
    X, y, sample_weight
        Rows, labels, and weights for fitting and for the averages of the result.
    folds
        How many (default 10: classes spread evenly, shuffled by `seed`); or (N,) the fold of each
        row; or a scikit-learn splitter that holds out every row once.
    groups
        (N,) rows of one group are held out together: one group at a time, or `folds` of them.
    seed
        Of the shuffling.

    Notes
    -----
    Of rows in parts (`discriminant.rows`, without y) only sums come back, a `HeldOutTally`: error,
    log_loss, auc, tally, tallies. Rows are read twice. The fold of a row is found from its own
    values and `seed`, since such rows have no order: classes are spread by chance, and rows that
    are equal are dealt round. `folds` may be the name of a column, a fold for each of its values;
    `groups` one whose values stay together. A model that needs more than moments (Logistic) reads
    all rows once for each step of each fold.

    Examples
    --------
    >>> from discriminant import LDA
    >>> held = cross_validate(LDA(), [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], list("aaabbb"), 3)
    >>> held.log_posterior.shape, held.error
    ((6, 2), 0.0)
    """
    check_classifier(estimator)
    probabilistic = gives_posterior(estimator)
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        check_supports_partitions(estimator, X)
        with merge_warnings():
            detail = needed_detail(estimator)
            partitions = PartitionedFolds.of(X, folds, groups=groups, seed=seed, detail=detail)
            scores = score_model(partitions, fold_model(estimator)())
        assert scores.sums is not None
        return HeldOutTally.of(partitions.labels, scores.sums, probabilistic=probabilistic)
    if y is None:
        raise LabelError.absent("cross_validate")
    labels, codes = _classes(X, y)
    weight = check_weight(sample_weight, len(codes))
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    with merge_warnings():
        adds = can_add_moments(estimator, X)
        if adds:
            table = _opened(estimator, X, y, weight)
            with blas_context(table.width):
                folded = MemoryFolds.of_table(table, fold, detail=estimator.detail)
        else:
            folded = MemoryFolds.of_rows(X, labels, codes, weight, fold)
        scores = score_model(folded, FoldModel(estimator, adds))
    warn_missing_classes(class_counts(codes, weight, labels, fold), labels)
    assert scores.predictions is not None
    return HeldOutPredictions.of(folded, scores.predictions, probabilistic=probabilistic)


@np.errstate(under="ignore")
def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    prior: Literal["refit", "fixed"] = "refit",
) -> HeldOutPredictions:
    """What a model fitted to all the others says of every row: log posteriors and decisions.

    Exact, and in closed form for LDA, QDA and RDA without shrinkage, diagonal LDA, LDA shrunk to
    a multiple of the identity, and NearestMean; other models made from moments are fitted to the
    moments less the row; any other classifier is fitted N times.

    Parameters
    ----------
    estimator, X, y, sample_weight
        As in `cross_validate`. A row is left out with all its weight.
    prior
        'refit': priors that are shares of the rows are those of the remaining rows. 'fixed': they
        stay those of all rows, as R's MASS does with CV=TRUE.

    Examples
    --------
    >>> from discriminant import LDA
    >>> held = leave_one_out(LDA(), [[0.0], [1.0], [3.0], [5.0], [6.0], [8.0]], list("aaabbb"))
    >>> held.predicted.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """
    if prior not in ("refit", "fixed"):
        raise OptionError.of("prior", prior, "'refit' or 'fixed'")
    check_classifier(estimator)
    labels, codes = _classes(X, y)
    weight = check_weight(sample_weight, len(codes))
    some = codes if weight is None else codes[weight > 0]
    count = np.bincount(some, minlength=len(labels))
    for k in np.flatnonzero(count < 2):
        raise TooFewRowsError.of_class(labels[k], int(count[k]), 2, "leaving one row out")
    folded = MemoryFolds.of_rows(X, labels, codes, weight, np.arange(len(codes)))
    with merge_warnings():
        if can_add_moments(estimator, X):
            table = _opened(estimator, X, y, weight)
            with blas_context(table.width):
                predictions = predict_left_out(estimator, table, fixed_prior=prior == "fixed")
        else:
            model = _with_shares(estimator, codes, weight) if prior == "fixed" else estimator
            scores = score_model(folded, FoldModel(model, from_moments=False))
            assert scores.predictions is not None
            predictions = scores.predictions
    return HeldOutPredictions.of(folded, predictions, probabilistic=gives_posterior(estimator))


@np.errstate(under="ignore")
def rda_grid(
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    pooling: Sequence[float] = STEPS,
    shrinkage: Sequence[Shrinkage] = STEPS,
    prior: Sequence[Any] = (None,),
    family: GaussianFamily | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    seed: Any = 0,
) -> Grid:
    """Held-out losses of a whole grid of RDA models, without fitting them one by one.

    Parameters
    ----------
    X, y, folds, groups, sample_weight, seed
        As in `cross_validate`.
    pooling, shrinkage, prior
        What is tried, each with each; pooling 1 is LDA, 0 is QDA. A prior is (K,), or None for
        the shares of the training rows.
    family
        The other options of the covariance (target, denominator, ...): `GaussianFamily`.

    Examples
    --------
    >>> rows = [[0.0], [1.0], [2.0], [5.0], [6.0], [8.0]]
    >>> tried = rda_grid(rows, list("aaabbb"), pooling=[0.5, 1.0], shrinkage=[0.0], folds=3)
    >>> tried.log_loss.shape, tried.error.max()
    ((2, 1, 1), np.float64(0.0))
    """
    poolings = np.sort(np.asarray(pooling, dtype=np.float64))
    tried = Candidates(family or GaussianFamily(), poolings, tuple(shrinkage), tuple(prior))
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        return score_grid(X, tried, folds, groups=groups, seed=seed)
    table = as_table(X, y, weight=sample_weight, name="The RDA grid")
    if len(table.schema.labels) < 2:
        raise LabelError.one_class(table.schema.labels[0])
    fold = fold_numbers(folds, table.codes, groups=groups, seed=seed, X=X)
    return score_grid(table, tried, fold)


def _classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    labels, codes = encode_labels(y)
    if len(labels) < 2:
        raise LabelError.one_class(labels[0] if len(labels) else "none")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    return labels, codes


def _opened(estimator: Any, X: Any, y: Any, weight: Floats | None) -> Table:
    return as_table(X, y, weight=weight, name=type(estimator).__name__)


def _with_shares(estimator: Any, codes: Codes, weight: Floats | None) -> Any:
    """The estimator with the shares of all rows as its priors."""
    shares = np.bincount(codes, weight)
    shares = shares / shares.sum()
    found = prior_option(estimator)
    if found is None:
        allowed = f"'refit': {type(estimator).__name__} has no option for its priors"
        raise OptionError.of("prior", "fixed", allowed)
    name, prior = found
    return estimator if prior is not None else clone(estimator).set_params(**{name: shares})
