"""Perceptron: rows that are wrong move the border, rows that are right never do."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from discriminant.engines.engine import fold
from discriminant.engines.partitioned import in_memory
from discriminant.errors import NotConvergedWarning, NotSeparatedWarning, OptionError, warn
from discriminant.estimators.linear.iterative_linear import (
    ColumnUnits,
    LinearClassifier,
    column_units,
)
from discriminant.models.linear.perceptron import Keep, PerceptronFit, train_batch, train_online
from discriminant.models.linear.separation import detect_separation
from discriminant.models.rules import LinearRule
from discriminant.moments.margins import Judgement, JudgeReading, Stand, Weights
from discriminant.table.blocks import Block, Floats, is_sparse
from discriminant.table.memory import Table

KEEPS = {"pocket": "pocket rule", "last": "last rule", "average": "average rule"}
UPDATES = ("row", "batch")
_SPARSE_ROWS = 1 << 14  # judged at a time
_QUICK = 100_000  # numbers in the programme that says whether a border exists


class Perceptron(LinearClassifier):
    """The perceptron of two or more classes.

    Rows are taken one by one; a row that is wrong, or on the border, is added to the weights of
    its class and taken from those of the class that won. That ends if and only if a linear border
    has every row right, after at most R^2 / gamma^2 moves (`bound_`). If it does not end, the best
    rule met (the pocket) is kept, with a warning that says how many rows it has wrong: a
    NotSeparatedWarning if no linear border exists, and a NotConvergedWarning if one does, or if
    that is not known; then more passes may find it.

    Rows that are right by far do not move it: it minds only the wrong side. It knows no
    probabilities, and no weights: a row that counts twice is not a row that comes twice.

    Parameters
    ----------
    update
        'row': row by row. 'batch': a step along all wrong rows at once, down the criterion J_p.
    keep
        'pocket': a rule that has every row right, else the one met with the fewest wrong; 'last':
        the weights as they stand at the end; 'average': the mean of the weights over all rows
        seen, which is often better on new rows. For update='row'; a batch keeps the best.
    max_passes
        Most passes over the rows. None: 1000; for large tables, which take 1000 passes long, those
        that read two million rows, and more while passes get better.
    standardize
        Count columns from their means and in units of their spread (sparse ones from 0, in units
        of their largest entry), so that the units of columns do not matter. False: the numbers as
        they are, as in the books.
    intercept
        Whether the border may lie off the origin; without, columns are counted from 0.
    shuffle
        Take rows in a new order in every pass, drawn by `random_state`; else as they come.
    random_state
        Seed for `shuffle`.
    prove
        Ask a linear programme, of few rows, whether any border has every row right if none was
        found; it may take longer than the walk.

    Attributes
    ----------
    n_updates_
        Moves made.
    n_passes_
        Passes over the rows, the last perhaps in part; also called `n_iter_`.
    converged_
        Whether it ended, and the rule kept has every row right.
    separable_
        Whether a linear border can have every row right: True if one was found or proved to exist,
        False if a linear programme shows that none does, None if that is not known.
    n_wrong_
        Rows that the rule has wrong, or on its border.
    margin_, radius_, bound_
        gamma, the least lead of a row over the length of the weights; R, the longest row; and
        R^2 / gamma^2. All where rows stand, in units of spread and with the intercept's 1; for
        more than two classes of Kesler's long vectors. `bound_` is infinite if a row is wrong.
    path_
        Moves made in each pass; for 'batch' rows wrong before each step.
    classes_, coef_, intercept_
        Labels, slopes and intercepts in the user's numbers.

    Examples
    --------
    >>> model = Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], list("aabb"))
    >>> model.predict([[0.5], [3.5]]).tolist(), model.converged_
    (['a', 'b'], True)
    """

    def __init__(
        self,
        *,
        update: str = "row",
        keep: Keep = "pocket",
        max_passes: int | None = None,
        standardize: bool = True,
        intercept: bool = True,
        shuffle: bool = False,
        random_state: Any = None,
        prove: bool = True,
    ) -> None:
        self.update = update
        self.keep = keep
        self.max_passes = max_passes
        self.standardize = standardize
        self.intercept = intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.prove = prove

    def fit(self, X: Any, y: Any = None) -> Self:
        """Walk over the rows until all are right, or the passes are spent.

        It walks in the order of the rows, so rows in parts must be few.
        """
        self._check_options()
        table = in_memory(self._open_table(X, y), "Perceptron")
        units = column_units(table, at_zero=not (self.intercept and self.standardize))
        gain = (
            units.inverse_spread
            if self.standardize
            else np.where(units.spread > 0, units.anchor.unit, 0)
        )
        stand = Stand(units.anchor.origin, gain / units.anchor.unit, float(self.intercept))
        found = self._search(table, stand)
        self._set_rule(table, _rule(table, units, gain, found.weights))
        self._tell(table, stand, found)
        return self

    @property
    def n_iter_(self) -> int:
        """Passes over the rows, as scikit-learn calls them."""
        return self.n_passes_

    def _search(self, table: Table, stand: Stand) -> PerceptronFit:
        classes = len(table.schema.labels)

        def judge(weights: Weights, fully: bool) -> Judgement:
            return _judge(table, JudgeReading(weights, stand, fully))

        if self.update == "batch":
            return train_batch(
                classes=classes,
                width=table.width,
                judge=judge,
                rows=len(table),
                max_passes=self.max_passes,
            )
        return train_online(
            table.features,
            table.codes,
            classes=classes,
            stand=stand,
            judge=judge,
            keep=self.keep,
            max_passes=self.max_passes,
            rng=_generator(self.random_state) if self.shuffle else None,
        )

    def _tell(self, table: Table, stand: Stand, found: PerceptronFit) -> None:
        """Set what is reported, and warn if rows are wrong."""
        judged, many = found.mistakes, len(table.schema.labels) > 2
        self.n_updates_ = found.updates
        self.n_passes_ = max(len(found.path), 1)
        self.path_: npt.NDArray[np.int64] = np.array(found.path, dtype=np.int64)
        self.n_wrong_ = judged.wrong
        self.converged_ = found.converged and not judged.wrong
        self.margin_ = judged.least / (found.weights.length or 1.0)
        self.radius_ = judged.radius * (np.sqrt(2.0) if many else 1.0)
        self.bound_ = (self.radius_ / self.margin_) ** 2 if self.margin_ > 0 else np.inf
        self.separable_ = found.converged or not judged.wrong or self._separable(table, found)
        if judged.wrong and found.converged:
            warn(NotConvergedWarning.of_average(judged.wrong, len(table)))
        elif judged.wrong:
            counts = judged.wrong, len(table), self.n_passes_
            kept = "best step" if self.update == "batch" else KEEPS[self.keep]
            if self.separable_ is False:
                proof = "A linear programme shows"
                if found.balanced:
                    proof = "The moves of the wrong rows cancel, which proves"
                warn(NotSeparatedWarning.of(*counts, kept=kept, proof=proof))
            else:
                separable = self.separable_
                warn(NotConvergedWarning.of_perceptron(*counts, kept=kept, separable=separable))

    def _separable(self, table: Table, found: PerceptronFit) -> bool | None:
        """Whether a linear border exists, if that is quickly decided."""
        if found.balanced:
            return False
        schema = table.schema
        cells = len(table) * (table.width + 1) * (len(schema.labels) - 1)
        if not self.prove or cells > _QUICK:
            return None
        units = column_units(table, at_zero=not self.intercept)
        scores = detect_separation(
            partial(fold, table),
            anchor=units.anchor,
            features=schema.features,
            labels=schema.labels,
            spread=units.spread,
            intercept=bool(self.intercept),
        )
        return scores.kind == "complete"

    def _check_options(self) -> None:
        if self.update not in UPDATES:
            raise OptionError.of("update", self.update, "'row' or 'batch'")
        if self.keep not in KEEPS:
            raise OptionError.of("keep", self.keep, "'pocket', 'last' or 'average'")
        most: Any = self.max_passes
        if most is not None and not (isinstance(most, Integral) and int(most) >= 1):
            raise OptionError.of("max_passes", most, "a whole number of 1 or more, or None")
        for name in ("standardize", "intercept", "shuffle", "prove"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionError.of(name, getattr(self, name), "True or False")


def _rule(table: Table, units: ColumnUnits, gain: Floats, weights: Weights) -> LinearRule:
    return LinearRule(
        table.schema.labels, units.anchor, weights.slope * gain, weights.intercept.copy()
    )


def _judge(table: Table, reading: JudgeReading) -> Judgement:
    """All rows judged; sparse ones in larger blocks than their width would allow dense ones."""
    if not is_sparse(table.features):
        return fold(table, reading)
    if not reading.fully:
        return reading.read(Block(table.features, table.codes))
    first, *others = table.blocks(_SPARSE_ROWS)
    return sum((reading.read(block) for block in others), start=reading.read(first))


def _generator(seed: Any) -> np.random.Generator:
    """A Generator from whatever scikit-learn takes as a seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_random_state(seed).randint(np.iinfo(np.int32).max))
