"""Held-out posteriors and decisions: k folds, groups, or one row at a time, mostly without refits.

A model made from moments is fitted to the other folds by adding their moments: rows are read once
to sum them and once to be scored, whatever the number of folds. Leaving one row out changes the
moments by a matrix of rank one, so its score has a closed form: `assessment.leave_one_out`. Any
other classifier is fitted again for every fold: `assessment.refit`. The numbers are the same.

What is measured is what the model does: the class that it predicts, or its decision where it has
`decide`, which need not be the most probable class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.answers import Answers, check_classifier
from discriminant.assessment.folds import (
    FoldNumbers,
    all_but_one,
    fold_moments,
    fold_numbers,
    only_present,
    rows_by_fold,
)
from discriminant.assessment.grid import STEPS, Candidates, Grid, grid_losses
from discriminant.assessment.leave_one_out import leave_each_out
from discriminant.assessment.measures import Assessment
from discriminant.assessment.refit import (
    for_classes,
    given_prior,
    made_from_moments,
    refit_folds,
    rule_without,
)
from discriminant.assessment.streamed import HeldOutTally, cross_validate_rows
from discriminant.assessment.streamed_grid import grid_rows
from discriminant.engines.local import blas_for
from discriminant.engines.parted import Parted, alone
from discriminant.errors import (
    ClassMissingWarning,
    LabelError,
    OptionError,
    ShapeError,
    TooFewRowsError,
    gathered,
    tell,
)
from discriminant.models.covariance import Shrinkage
from discriminant.models.gaussian import Family
from discriminant.moments.tally import Actions
from discriminant.posterior import gives_posterior
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Codes, Floats, Labels, Places
from discriminant.table.source import Table, open_table, open_weight


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """What models say of rows that they have not seen."""

    labels: Labels  # (K,)
    codes: Codes  # (N,) the true class of each row
    fold: FoldNumbers  # (N,) the fold that held it out
    log_posterior: Floats  # (N, K), -inf for a class that the training rows lacked
    decided: Places  # (N,) what the model does: a place among the labels, then the others
    others: Actions = ()  # decisions that are no classes: REJECT, OUTLIER, actions with a cost
    weight: Floats | None = None  # (N,)
    probabilistic: bool = True  # False: the model gives no probabilities, so there is no log loss

    @classmethod
    def of(
        cls,
        labels: Labels,
        codes: Codes,
        fold: FoldNumbers,
        found: Answers,
        weight: Floats | None,
        *,
        probabilistic: bool = True,
    ) -> HeldOut:
        """What was said of rows of known classes."""
        said = found.log_posterior, found.decided, found.others
        return cls(labels, codes, fold, *said, weight, probabilistic)

    def __repr__(self) -> str:
        """One line: what was held out, and how it went."""
        return (
            f"HeldOut({len(self.codes)} rows, {len(self.labels)} classes, "
            f"{int(self.fold.max()) + 1} folds, error={self.error:.4g}, "
            f"log_loss={self.log_loss:.4g})"
        )

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """(N,) what the model says of each row: the label, or what else it decides."""
        if not self.others:
            return np.asarray(self.labels[self.decided])
        names = np.empty(len(self.labels) + len(self.others), dtype=object)
        names[:] = [*self.labels.tolist(), *self.others]
        return np.asarray(names[self.decided])

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """(N,) whether a row is given to a wrong class; a row that is refused is not."""
        return np.asarray((self.decided != self.codes) & (self.decided < len(self.labels)))

    @property
    def error(self) -> float:
        """Share of the decided rows, by weight, that are given to a wrong class."""
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        decided = weight * (self.decided < len(self.labels))
        return float(decided @ self.wrong / decided.sum()) if decided.any() else float("nan")

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN if the model gives no probabilities."""
        if not self.probabilistic:
            return float("nan")
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        some = np.flatnonzero(weight)  # a row of no weight does not count, however improbable
        own = self.log_posterior[some, self.codes[some]]
        return float(-np.average(own, weights=weight[some]))

    @property
    def tally(self) -> Assessment:
        """Truth by decision, held out: all measures follow from it."""
        return self._tally(slice(None))

    @property
    def tallies(self) -> list[Assessment]:
        """The tally of each fold; they add up to `tally`."""
        return [self._tally(rows) for rows in rows_by_fold(self.fold)]

    def _tally(self, rows: Any) -> Assessment:
        return Assessment.of(
            self.codes[rows],
            self.decided[rows],
            labels=self.labels,
            others=self.others,
            log_posterior=self.log_posterior[rows] if self.probabilistic else None,
            weight=None if self.weight is None else self.weight[rows],
        )


@overload
def cross_validate(
    estimator: Any,
    X: Parted,
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
) -> HeldOut: ...


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
) -> HeldOut | HeldOutTally:
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
    if isinstance(X, Parted):
        alone(y, sample_weight)
        return cross_validate_rows(estimator, X, folds, groups=groups, seed=seed)
    if y is None:
        raise LabelError.absent("cross_validate")
    labels, codes = _classes(X, y)
    weight = open_weight(sample_weight, len(codes))
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    with gathered():
        if from_moments(estimator, X):
            table = _opened(estimator, X, y, weight)
            with blas_for(table.width):
                found = _score_folds(estimator, table, fold)
        else:
            found = refit_folds(estimator, X, labels=labels, codes=codes, weight=weight, fold=fold)
    warn_of_missing(codes, weight, labels, fold)
    probable = gives_posterior(estimator)
    return HeldOut.of(labels, codes, fold, found, weight, probabilistic=probable)


@np.errstate(under="ignore")
def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    prior: Literal["refit", "fixed"] = "refit",
) -> HeldOut:
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
    weight = open_weight(sample_weight, len(codes))
    some = codes if weight is None else codes[weight > 0]
    count = np.bincount(some, minlength=len(labels))
    for k in np.flatnonzero(count < 2):
        raise TooFewRowsError.of_class(labels[k], int(count[k]), 2, "leaving one row out")
    one_each = np.arange(len(codes))
    with gathered():
        if from_moments(estimator, X):
            table = _opened(estimator, X, y, weight)
            with blas_for(table.width):
                found = leave_each_out(estimator, table, fixed_prior=prior == "fixed")
        else:
            model = _with_shares(estimator, codes, weight) if prior == "fixed" else estimator
            found = refit_folds(model, X, labels=labels, codes=codes, weight=weight, fold=one_each)
    probable = gives_posterior(estimator)
    return HeldOut.of(labels, codes, one_each, found, weight, probabilistic=probable)


@np.errstate(under="ignore")
def rda_grid(
    X: Any,
    y: Any = None,
    folds: Any = None,
    *,
    pooling: Sequence[float] = STEPS,
    shrinkage: Sequence[Shrinkage] = STEPS,
    prior: Sequence[Any] = (None,),
    family: Family | None = None,
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
        The other options of the covariance (target, denominator, ...): `models.gaussian.Family`.

    Examples
    --------
    >>> rows = [[0.0], [1.0], [2.0], [5.0], [6.0], [8.0]]
    >>> tried = rda_grid(rows, list("aaabbb"), pooling=[0.5, 1.0], shrinkage=[0.0], folds=3)
    >>> tried.log_loss.shape, tried.error.max()
    ((2, 1, 1), np.float64(0.0))
    """
    poolings = np.sort(np.asarray(pooling, dtype=np.float64))
    tried = Candidates(family or Family(), poolings, tuple(shrinkage), tuple(prior))
    if isinstance(X, Parted):
        alone(y, sample_weight)
        return grid_rows(X, tried, folds, groups=groups, seed=seed)
    table = open_table(X, y, weight=sample_weight, name="The RDA grid")
    if len(table.schema.labels) < 2:
        raise LabelError.one_class(table.schema.labels[0])
    fold = fold_numbers(folds, table.codes, groups=groups, seed=seed, X=X)
    return grid_losses(table, tried, fold)


def from_moments(estimator: Any, X: Any) -> bool:
    """Whether adding moments takes the place of refitting.

    Where features are more than half as many as rows, refitting from rows is the smaller work.
    """
    if not made_from_moments(estimator):
        return False
    rows, width = np.shape(X) if not hasattr(X, "shape") else X.shape[:2]
    return bool(estimator.detail == "diagonal" or 2 * width <= rows)


def _score_folds(estimator: Any, table: Table, fold: FoldNumbers) -> Answers:
    """What is said of each row, with the moments of the other folds added for each."""
    found = Answers.blank(len(table), len(table.schema.labels))
    parts = fold_moments(table, fold, estimator.detail)
    for rows, train in zip(rows_by_fold(fold), all_but_one(parts), strict=True):
        present = train.rows > 0
        model = for_classes(estimator, present, table.schema.labels)
        rule = rule_without(model, only_present(train), table, rows)
        said = model.answers_by(rule, table.features[rows])
        found.put(rows, np.flatnonzero(present), *said)
    return found


def _classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    labels, codes = encode_labels(y)
    if len(labels) < 2:
        raise LabelError.one_class(labels[0] if len(labels) else "none")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    return labels, codes


def _opened(estimator: Any, X: Any, y: Any, weight: Floats | None) -> Table:
    return open_table(X, y, weight=weight, name=type(estimator).__name__)


def _with_shares(estimator: Any, codes: Codes, weight: Floats | None) -> Any:
    """The estimator with the shares of all rows as its priors."""
    shares = np.bincount(codes, weight)
    shares = shares / shares.sum()
    found = given_prior(estimator)
    if found is None:
        allowed = f"'refit': {type(estimator).__name__} has no option for its priors"
        raise OptionError.of("prior", "fixed", allowed)
    name, prior = found
    return estimator if prior is not None else clone(estimator).set_params(**{name: shares})


def warn_of_missing(codes: Codes, weight: Floats | None, labels: Labels, fold: FoldNumbers) -> None:
    """Name every class that some training part lacks: all its rows are in one fold."""
    F, K = int(fold.max()) + 1, len(labels)
    some = None if weight is None else weight > 0
    table = np.bincount(fold * K + codes, some, minlength=F * K).reshape(F, K)
    for k in np.flatnonzero((table > 0).sum(axis=0) == 1):
        f = int(np.flatnonzero(table[:, k])[0])
        found = ClassMissingWarning.of_class(labels[k], f, int(table[f, k]))
        tell(found)
