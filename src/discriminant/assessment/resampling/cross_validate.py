"""Cross-validation, leave-one-out and the RDA grid: `cross_validate`, `leave_one_out`, `rda_grid`.

A model based on moments is fitted to the other folds by adding their moments: whatever the number
of folds, the rows are read twice, once for the moments and once for the scores. Leaving one row
out changes the moments by a matrix of rank one, so the score of that row has a closed form
(`resampling.leave_one_out`). Any other classifier is fitted again for every fold. The results are
the same as with refitting.

A partitioned table is read twice: once for the moments of the folds, and once to score all rows.
With the same folds, the results agree with those for a table in memory. The loop over the folds is
`resampling.held_out_folds.score_folds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from sklearn.base import clone

from discriminant.assessment.classifier_outputs import check_classifier
from discriminant.assessment.resampling.folds import (
    MemoryFolds,
    PartitionedFolds,
    class_counts,
    estimator_with_class_order,
    fold_numbers,
    prior_option,
    warn_classes_in_one_fold,
)
from discriminant.assessment.resampling.held_out_folds import (
    FoldModel,
    HeldOutPredictions,
    HeldOutTally,
    can_add_moments,
    check_supports_partitions,
    fold_model,
    needed_moments_detail,
    score_one_model,
)
from discriminant.assessment.resampling.leave_one_out import predict_left_out
from discriminant.assessment.resampling.rda_grid import STEPS, Candidates, Grid, score_grid
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
from discriminant.table.labels import declared_order, encode_labels
from discriminant.table.memory import as_table, check_weight


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
    """Predict every row by a model fitted without its fold.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier. A classifier based on moments (LDA, QDA, RDA, ...) is not
        refitted to rows: the moments of the other folds are added, with the same result.
    X, y, sample_weight
        Rows, labels, and weights for fitting and for the averages of the result.
    folds : int, array of shape (N,), splitter or None
        Number of folds (default 10), stratified by class and shuffled by `seed`; or the fold of
        each row; or a scikit-learn splitter that holds out every row once.
    groups : array of shape (N,), optional
        Rows of one group are held out together. Each group is a fold. If `folds` is a number, the
        groups are distributed over this number of folds.
    seed : int, default=0
        Seed of the shuffle.

    Returns
    -------
    HeldOutPredictions or HeldOutTally
        Log posteriors and decisions for every row; for a partitioned table only sums.

    Notes
    -----
    For a partitioned table (`discriminant.rows`, without y) the result is a `HeldOutTally` with the
    attributes error, log_loss, auc, tally and tallies. Rows are read twice. The rows of a
    partitioned table have no order, so the fold of a row is a hash of its values and `seed`: the
    classes are divided at random, without stratification, and copies of a row are assigned to the
    folds in turn. `folds` may be the name of a column; each of its values is then one fold.
    `groups` may be the name of a column whose equal values stay together. A model that needs more
    than moments (Logistic) reads all rows once for each step of each fold.

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
            detail = needed_moments_detail(estimator)
            partitions = PartitionedFolds.of(X, folds, groups=groups, seed=seed, detail=detail)
            scores = score_one_model(partitions, fold_model(estimator)())
        assert scores.sums is not None
        return HeldOutTally.of(partitions.labels, scores.sums, probabilistic=probabilistic)
    if y is None:
        raise LabelError.absent("cross_validate")
    labels, codes = _classes(X, y)
    estimator = estimator_with_class_order(estimator, declared_order(y))
    weight = check_weight(sample_weight, len(codes))
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    with merge_warnings():
        adds = can_add_moments(estimator, X)
        if adds:
            table = as_table(X, y, weight=weight, name=type(estimator).__name__)
            with blas_context(table.width):
                folded = MemoryFolds.of_table(table, fold, detail=estimator.detail)
        else:
            folded = MemoryFolds.of_rows(X, labels, codes, weight, fold)
        scores = score_one_model(folded, FoldModel(estimator, adds))
    warn_classes_in_one_fold(class_counts(codes, weight, labels, fold), labels)
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
    """Predict every row by a model fitted to all other rows.

    The result is the same as with N fits. LDA, QDA and RDA without shrinkage, diagonal LDA, LDA
    shrunk to a multiple of the identity, and NearestMean have a closed form; other moment-based
    models are fitted to the moments minus the row; any other classifier is fitted N times.

    Parameters
    ----------
    estimator, X, y, sample_weight
        As in `cross_validate`. A row is left out with all its weight.
    prior : {'refit', 'fixed'}
        'refit': estimated priors are the class frequencies of the remaining rows. 'fixed': they
        are the class frequencies of all rows, as in R's MASS with CV=TRUE.

    Returns
    -------
    HeldOutPredictions
        Log posteriors and decisions for every row.

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
    estimator = estimator_with_class_order(estimator, declared_order(y))
    weight = check_weight(sample_weight, len(codes))
    counted = codes if weight is None else codes[weight > 0]
    count = np.bincount(counted, minlength=len(labels))
    for k in np.flatnonzero(count < 2):
        raise TooFewRowsError.of_class(labels[k], int(count[k]), 2, "leaving one row out")
    folded = MemoryFolds.of_rows(X, labels, codes, weight, np.arange(len(codes)))
    with merge_warnings():
        if can_add_moments(estimator, X):
            table = as_table(X, y, weight=weight, name=type(estimator).__name__)
            with blas_context(table.width):
                predictions = predict_left_out(estimator, table, fixed_prior=prior == "fixed")
        else:
            model = _fix_prior(estimator, codes, weight) if prior == "fixed" else estimator
            scores = score_one_model(folded, FoldModel(model, from_moments=False))
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
    """Compute the held-out losses of a grid of RDA models, without fitting them one by one.

    Parameters
    ----------
    X, y, folds, groups, sample_weight, seed
        As in `cross_validate`.
    pooling, shrinkage, prior : sequence
        Values of the hyperparameters; all combinations are candidates. Pooling 1 is LDA, 0 is QDA.
        A prior is an array of shape (K,), or None for the class frequencies of the training rows.
    family : GaussianFamily, optional
        Other options of the covariance (target, denominator, ...).

    Returns
    -------
    Grid

    Examples
    --------
    >>> rows = [[0.0], [1.0], [2.0], [5.0], [6.0], [8.0]]
    >>> grid = rda_grid(rows, list("aaabbb"), pooling=[0.5, 1.0], shrinkage=[0.0], folds=3)
    >>> grid.log_loss.shape, grid.error.max()
    ((2, 1, 1), np.float64(0.0))
    """
    poolings = np.sort(np.asarray(pooling, dtype=np.float64))
    candidates = Candidates(family or GaussianFamily(), poolings, tuple(shrinkage), tuple(prior))
    if isinstance(X, PartitionedTable):
        reject_separate_labels(y, sample_weight)
        return score_grid(X, candidates, folds, groups=groups, seed=seed)
    table = as_table(X, y, weight=sample_weight, name="The RDA grid")
    if len(table.schema.labels) < 2:
        raise LabelError.one_class(table.schema.labels[0])
    fold = fold_numbers(folds, table.codes, groups=groups, seed=seed, X=X)
    return score_grid(table, candidates, fold)


def _classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    labels, codes = encode_labels(y)
    if len(labels) < 2:
        raise LabelError.one_class(labels[0] if len(labels) else "none")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    return labels, codes


def _fix_prior(estimator: Any, codes: Codes, weight: Floats | None) -> Any:
    """Return the estimator with its priors fixed at the class frequencies of all rows."""
    counts = np.bincount(codes, weight)
    option = prior_option(estimator)
    if option is None:
        allowed = f"'refit': {type(estimator).__name__} has no option for its priors"
        raise OptionError.of("prior", "fixed", allowed)
    name, prior = option
    if prior is not None:
        return estimator
    return clone(estimator).set_params(**{name: counts / counts.sum()})
