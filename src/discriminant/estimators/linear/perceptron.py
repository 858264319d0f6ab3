"""Perceptron: a linear classifier that updates its weights only for misclassified rows.

    row by row   w_true += eta x,  w_winner -= eta x   for a row misclassified or on the boundary
    batch        w      += eta mean over these rows    gradient descent on the criterion J_p

Multiplying the starting weights and the learning rate eta by the same number multiplies all weights
by it and changes no boundary. So training runs with eta = 1 from the starting weights divided by
eta, and its weights are then multiplied by eta. The passes are in `models.linear.perceptron`.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from discriminant.engines.dispatch import fold, read_moments
from discriminant.errors import (
    NotConvergedWarning,
    NotSeparatedWarning,
    OptionError,
    capture_warnings,
    warn,
)
from discriminant.estimators.base import check_choice
from discriminant.estimators.linear.iterative import LinearClassifier, column_units
from discriminant.estimators.linear.logistic import sample_rows
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.logistic import FEW_COEFFICIENTS, LogisticOptions, fit_logistic
from discriminant.models.linear.perceptron import (
    Keep,
    PerceptronFit,
    train_full_batch,
    train_online,
)
from discriminant.models.linear.separation import detect_separation
from discriminant.models.rules import LinearRule
from discriminant.moments.margins_and_mistakes import (
    LinearWeights,
    Mistakes,
    MistakesReading,
    RowScaling,
)
from discriminant.table.blocks import Block, Floats, is_sparse
from discriminant.table.memory import Table

KEEPS = {"pocket": "pocket rule", "last": "last rule", "average": "average rule"}
UPDATES = ("row", "batch")
_SPARSE_ROWS = 1 << 14  # number of rows in a block
# largest size, in numbers, of a linear programme that decides whether a boundary exists
_QUICK = 100_000
_PROOF_PASSES = 12  # passes of a logistic fit, which proves that classes overlap


class Perceptron(LinearClassifier):
    """Rosenblatt's perceptron for two or more classes.

    Rows are visited one by one. A row that is misclassified, or on the boundary, is added to the
    weights of its class and subtracted from the weights of the predicted class. If a linear
    boundary classifies every row correctly, the updates end after at most R^2 / gamma^2 of them
    (`bound_`). Otherwise the updates never end, and the model keeps the best rule that occurred
    (the pocket), with a warning that gives the number of misclassified rows. The warning is a
    `NotSeparatedWarning` if no separating boundary exists. The warning is a `NotConvergedWarning`
    if a separating boundary exists or may exist; more passes may then find it.

    The model has no probabilities and accepts no sample weights.

    Parameters
    ----------
    update : {'row', 'batch'}, default 'row'
        'row': update after each misclassified row. 'batch': update by the sum of all misclassified
        rows, which is gradient descent on the perceptron criterion.
    keep : {'pocket', 'last', 'average'}, default 'pocket'
        Rule to keep with update='row'. 'pocket': the rule with the fewest mistakes that occurred.
        'last': the final weights. 'average': the mean of the weights over all rows visited, which
        often predicts new rows better. With update='batch', the weights of the best step are always
        returned.
    max_passes : int or None, default None
        Maximum number of passes over the rows. None means 1000 passes, or for large tables the
        number of passes that read two million rows in total, and more as long as passes improve the
        rule. Training ends earlier if passes no longer improve the rule and `prove` shows that no
        boundary separates the classes.
    standardize : bool, default True
        True: centre and scale the columns, so that units do not matter. Sparse columns are not
        centred, and are divided by their largest absolute value. False: use the values unchanged,
        as in textbooks.
    intercept : bool, default True
        Whether to fit an intercept; without one, the boundary passes through the origin.
    shuffle : bool, default False
        Visit the rows in a new random order in every pass.
    random_state : int, RandomState, Generator or None, default None
        Seed for `shuffle`.
    prove : bool, default True
        Whether to test, for small tables, if a separating boundary exists when training has reached
        none. The test fits a logistic model and, if the fit leaves the question open, solves a
        linear programme, which may take longer than the passes.
    learning_rate : float, default 1.0
        Factor eta of every update. The boundary depends only on `start` divided by eta, so eta has
        no effect on it if training starts at zero.
    start : array of shape (d + 1,) or (K, d + 1), 'random' or None, default None
        Starting weights, with the intercept last: one row for two classes, otherwise one row for
        each class. They refer to the coordinates of the iteration, which are the features
        themselves with standardize=False. Without an intercept there is no last column. 'random':
        standard normal weights, from `random_state`. None means zero.
    record : bool, default False
        Whether to store the weights after every update in `weights_path_`, and the criterion after
        every pass in `criterion_path_`. This reads the rows once more for each pass.

    Attributes
    ----------
    n_updates_ : int
        Number of updates.
    n_passes_, n_iter_ : int
        Number of passes over the rows, including an incomplete last one.
    converged_ : bool
        Whether the updates ended and the rule that was kept classifies every row correctly.
    separable_ : bool or None
        Whether a linear boundary can classify every row correctly; None if that is unknown.
    n_wrong_ : int
        Number of rows that the rule misclassifies or that are on its boundary.
    margin_, radius_, bound_ : float
        `margin_` is gamma, the smallest difference between the score of a row's class and the best
        other score, divided by the norm of the weights. `radius_` is R, the largest norm of a row.
        `bound_` is R^2 / gamma^2, plus 2 |start| / (eta gamma) if training does not start at
        zero; it is infinite if a row is misclassified. These three values refer to the coordinates
        of the iteration, with a constant column of ones for the intercept, and for more than two
        classes to Kesler's construction.
    path_ : array of shape (passes,)
        Number of updates in each pass; with 'batch', number of misclassified rows before each step.
    criterion_path_ : array or None
        Perceptron criterion J_p at the start and after each pass. With update='batch', it is stored
        before each step and after the last one, even without `record`. None if not recorded.
    weights_path_ : array of shape (updates + 1, m, d + 1) or None
        Weights at the start and after each update, with the intercept last, for m = 1 or K scores,
        in the coordinates of the iteration. None without `record`.

    See Also
    --------
    SVM : The boundary with the widest margin.
    Logistic : Linear boundaries with probabilities.

    Examples
    --------
    >>> model = Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], list("aabb"))
    >>> model.predict([[0.5], [3.5]]).tolist(), model.converged_
    (['a', 'b'], True)
    """

    criterion_path_: Floats | None = None
    weights_path_: Floats | None = None

    def __init__(
        self,
        *,
        update: Literal["row", "batch"] = "row",
        keep: Keep = "pocket",
        max_passes: int | None = None,
        standardize: bool = True,
        intercept: bool = True,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        prove: bool = True,
        learning_rate: float = 1.0,
        start: npt.ArrayLike | Literal["random"] | None = None,
        record: bool = False,
    ) -> None:
        self.update = update
        self.keep = keep
        self.max_passes = max_passes
        self.standardize = standardize
        self.intercept = intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.prove = prove
        self.learning_rate = learning_rate
        self.start = start
        self.record = record

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model: pass over the rows until all are correct, or `max_passes` is reached.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) must fit into memory.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        return self._fit_rows(X, y)

    def _fit_table(self, table: Table) -> None:
        units = column_units(table, at_zero=not (self.intercept and self.standardize))
        anchor = units.anchor
        scale = np.where(units.spread > 0, anchor.unit, 0)
        if self.standardize:
            scale = units.inverse_spread
        coordinates = RowScaling(anchor.origin, scale / anchor.unit, float(self.intercept))
        rng = _generator(self.random_state) if self.shuffle or self.start is not None else None
        start = self._starting_weights(table, rng)
        result = self._train(table, coordinates, start, rng)
        weights = result.weights.scale(float(self.learning_rate))
        slope, intercept = weights.slope * scale, weights.intercept.copy()
        self._set_rule(table, LinearRule(table.schema.labels, anchor, slope, intercept))
        self._set_report(table, result, 0.0 if start is None else start.norm)
        self._set_paths(result)

    @property
    def n_iter_(self) -> int:
        """Number of passes over the rows, under scikit-learn's name."""
        return self.n_passes_

    def _train(
        self,
        table: Table,
        scaling: RowScaling,
        start: LinearWeights | None,
        rng: np.random.Generator | None,
    ) -> PerceptronFit:
        classes = len(table.schema.labels)

        def count_mistakes(weights: LinearWeights, fully: bool) -> Mistakes:
            return _read_mistakes(table, MistakesReading(weights, scaling, fully))

        if self.update == "batch":
            return train_full_batch(
                classes=classes,
                width=table.width,
                evaluate=count_mistakes,
                rows=len(table),
                max_passes=self.max_passes,
                start=start,
                record=bool(self.record),
            )
        return train_online(
            table.features,
            table.codes,
            classes=classes,
            scaling=scaling,
            evaluate=count_mistakes,
            keep=self.keep,
            max_passes=self.max_passes,
            rng=rng if self.shuffle else None,
            is_separable=partial(self._separable, table),
            start=start,
            record=bool(self.record),
        )

    def _starting_weights(
        self, table: Table, rng: np.random.Generator | None
    ) -> LinearWeights | None:
        """Return the starting weights divided by the learning rate; None if they are zero."""
        if self.start is None:
            return None
        classes, intercept = len(table.schema.labels), bool(self.intercept)
        shape = (1 if classes == 2 else classes, table.width + intercept)
        if isinstance(self.start, str):
            assert rng is not None
            weights = rng.standard_normal(shape)
        else:
            weights = _given_weights(self._option("start"), shape)
        constant = weights[:, -1] if intercept else np.zeros(len(weights))
        slope = weights[:, : table.width].copy()
        return LinearWeights(slope, constant.copy()).scale(1.0 / float(self.learning_rate))

    def _set_paths(self, result: PerceptronFit) -> None:
        """Set the recorded criterion and weights, multiplied by the learning rate."""
        rate = float(self.learning_rate)
        self.criterion_path_ = None
        if result.criteria:
            self.criterion_path_ = rate * np.array(result.criteria) + 0.0
        self.weights_path_ = None
        if result.history:
            self.weights_path_ = rate * np.stack(
                [
                    np.column_stack([w.slope, w.intercept]) if self.intercept else w.slope
                    for w in result.history
                ]
            )

    def _set_report(self, table: Table, result: PerceptronFit, start_norm: float) -> None:
        """Set the attributes about the iteration, and warn if rows are misclassified.

        `start_norm` is the norm of the starting weights divided by the learning rate.
        """
        mistakes, multiclass = result.mistakes, len(table.schema.labels) > 2
        self.n_updates_ = result.updates
        self.n_passes_ = max(len(result.path), 1)
        self.path_: npt.NDArray[np.int64] = np.array(result.path, dtype=np.int64)
        self.n_wrong_ = mistakes.count
        self.converged_ = result.converged and not mistakes.count
        self.margin_ = mistakes.min_margin / (result.weights.norm or 1.0)
        self.radius_ = mistakes.radius * (np.sqrt(2.0) if multiclass else 1.0)
        self.bound_ = np.inf
        if self.margin_ > 0:
            self.bound_ = (self.radius_ / self.margin_) ** 2 + 2 * start_norm / self.margin_
        self.separable_: bool | None = result.converged or not mistakes.count
        if not self.separable_:
            known = False if result.balanced else result.separable
            self.separable_ = self._separable(table) if known is None else known
        if mistakes.count and result.converged:
            warn(NotConvergedWarning.of_average(mistakes.count, len(table)))
        elif mistakes.count:
            counts = mistakes.count, len(table), self.n_passes_
            rule = "best step" if self.update == "batch" else KEEPS[self.keep]
            if self.separable_ is False:
                proof = "A test of separation shows"
                if result.balanced:
                    proof = "The updates by the misclassified rows cancel each other, which proves"
                warn(NotSeparatedWarning.of(*counts, weights=rule, proof=proof))
            else:
                separable = self.separable_
                warn(NotConvergedWarning.of_perceptron(*counts, weights=rule, separable=separable))

    def _separable(self, table: Table) -> bool | None:
        """Return whether a separating linear boundary exists.

        Return None if `prove` is False, or if the linear programme would take too long.
        """
        schema = table.schema
        cells = len(table) * (table.width + 1) * (len(schema.labels) - 1)
        if not self.prove or cells > _QUICK:
            return None
        if self._overlap(table):
            return False
        units = column_units(table, at_zero=not self.intercept)
        separating = detect_separation(
            partial(fold, table),
            anchor=units.anchor,
            features=schema.features,
            labels=schema.labels,
            spread=units.spread,
            intercept=bool(self.intercept),
        )
        return separating.kind == "complete"

    def _overlap(self, table: Table) -> bool:
        """Return whether a fitted logistic model proves that no boundary separates the classes."""
        coefficients = (table.width + 1) * (len(table.schema.labels) - 1)
        if is_sparse(table.features) or coefficients > FEW_COEFFICIENTS:
            return False
        if is_wide(len(table), table.width):
            return False
        options = LogisticOptions(intercept=bool(self.intercept), max_passes=_PROOF_PASSES)
        with capture_warnings():  # about collinear columns, which do not matter here
            moments = read_moments(table, detail="pooled")
            return fit_logistic(partial(fold, table), moments, sample_rows(table), options).overlap

    def _check_options(self) -> None:
        check_choice("update", self.update, UPDATES)
        check_choice("keep", self.keep, KEEPS)
        limit: Any = self.max_passes
        if limit is not None and not (isinstance(limit, Integral) and int(limit) >= 1):
            raise OptionError.of("max_passes", limit, "a whole number of 1 or more, or None")
        self._require_bool("standardize", "intercept", "shuffle", "prove", "record")
        rate: Any = self.learning_rate
        number = isinstance(rate, Real) and not isinstance(rate, bool)
        if not number or not 0.0 < float(rate) < np.inf:
            raise OptionError.of("learning_rate", rate, "a positive number")
        if isinstance(self.start, str) and self.start != "random":
            raise OptionError.of("start", self.start, "'random', an array of weights or None")


def _given_weights(start: Any, shape: tuple[int, int]) -> Floats:
    """Return the starting weights given by the user; raise an error unless they have this shape."""
    try:
        weights = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.full(1, np.nan)
    if weights.ndim == 1 and shape[0] == 1:
        weights = weights[None, :]
    if weights.shape != shape or not np.isfinite(weights).all():
        wanted = f"({shape[1]},)" if shape[0] == 1 else str(shape)
        allowed = f"finite numbers of shape {wanted} for these rows, the intercept last"
        raise OptionError.of("start", start, allowed)
    return weights


def _read_mistakes(table: Table, reading: MistakesReading) -> Mistakes:
    """Count the misclassified rows; sparse rows are read in larger blocks than dense ones."""
    if not is_sparse(table.features):
        return fold(table, reading)
    if not reading.detailed:
        return reading.read(Block(table.features, table.codes))
    first, *others = table.blocks(_SPARSE_ROWS)
    return sum((reading.read(block) for block in others), start=reading.read(first))


def _generator(seed: Any) -> np.random.Generator:
    """Return a NumPy `Generator` from any seed that scikit-learn accepts."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_random_state(seed).randint(np.iinfo(np.int32).max))
