"""SVM: linear support vectors, of two classes or of each against the rest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from discriminant.engines.engine import fold
from discriminant.engines.local import available_threads, map_rows
from discriminant.engines.partitioned import in_memory
from discriminant.errors import NotConvergedWarning, OptionError, warn
from discriminant.estimators.linear.iterative_linear import (
    ColumnUnits,
    LinearClassifier,
    class_weight_factors,
    column_units,
)
from discriminant.models.linear.perceptron import as_compiled_csr
from discriminant.models.linear.svm import Loss, SVMProblem, fit_dual, fit_hinge, fit_squared_hinge
from discriminant.models.rules import LinearRule
from discriminant.moments.loss import Products, ProductsReading
from discriminant.table.blocks import Floats, Labels, is_sparse
from discriminant.table.memory import Table

LOSSES = ("squared_hinge", "hinge")
SOLVERS = ("auto", "primal", "dual")
_WIDE = 500  # features; beyond, and with fewer rows than features, products take too much room
_QUICK = 2e9  # multiplications; up to so many, sparse rows are multiplied as dense ones


class _Line(NamedTuple):
    """One class against the others."""

    weights: Floats  # (d + 1,) the last is the intercept
    steps: int
    gap: float


class SVM(LinearClassifier):
    """Linear support vectors: rows on the right side by less than a margin of 1 pay for it.

    Minimises  mean of weight x loss  +  ridge / 2 |w|^2,  the intercept not penalised, with

        loss = max(0, 1 - m)^2  or  max(0, 1 - m)        m = +-(x.w + b)

    More than two classes are told apart each from all the others, and the highest score decides.

    Parameters
    ----------
    loss
        'squared_hinge' or 'hinge'.
    ridge
        Penalty. None: 1 / sum of weights, which is C = 1 of scikit-learn and liblinear; in general
        C = 1 / (ridge x sum of weights).
    standardize
        Penalise slopes in units of the spread of their columns (sparse columns: of their largest
        entry), so that the units of columns do not matter.
    intercept
        Whether there is one.
    class_weight
        'balanced', or weights by label, by which weights of rows are multiplied.
    solver
        'primal': Newton steps (squared hinge) or an interior path (hinge) on products of rows, a
        few passes; for more rows than features. 'dual': coordinate descent, for sparse and for
        wide rows (dense ones are copied). 'auto' chooses. All come to the same answer.
    tolerance
        On the relative distance to the least objective. What a further step of 'primal' costs is
        little, so it mostly ends with far less.
    max_steps
        Most steps, or sweeps over the rows.
    random_state
        Seed of the order of rows for 'dual'.

    Attributes
    ----------
    converged_
        Whether every class is within `tolerance`.
    gap_
        (K,), or (1,) for two classes: how far the objective is from the least at most, relative,
        as proved by duality.
    n_iter_
        Steps or sweeps, of the class that took most.
    classes_, coef_, intercept_
        Labels, slopes and intercepts in the user's numbers.

    Examples
    --------
    >>> model = SVM(ridge=1e-6, loss="hinge").fit([[0.0], [1.0], [3.0], [4.0]], list("aabb"))
    >>> model.coef_.round(3).tolist(), model.intercept_.round(3).tolist()  # borders at 1 and 3
    ([[1.0]], [-2.0])
    """

    def __init__(
        self,
        *,
        loss: Loss = "squared_hinge",
        ridge: float | None = None,
        standardize: bool = False,
        intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tolerance: float = 1e-8,
        max_steps: int = 1000,
        random_state: int | None = None,
    ) -> None:
        self.loss = loss
        self.ridge = ridge
        self.standardize = standardize
        self.intercept = intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tolerance = tolerance
        self.max_steps = max_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the weights of each class against the others; rows in parts must be few."""
        self._check_options()
        table = in_memory(self._open_table(X, y, sample_weight), "SVM")
        units = column_units(table, at_zero=not self.intercept)
        labels = table.schema.labels
        weight = _class_weighted(table, self.class_weight)
        ridge = 1.0 / weight.sum() if self.ridge is None else self.ridge
        cost = weight / (ridge * weight.sum())
        targets = [1] if len(labels) == 2 else range(len(labels))
        lines = self._search(table, units, cost, [table.codes == k for k in targets])
        weights = np.stack([line.weights for line in lines])
        self._set_rule(table, LinearRule(labels, units.anchor, weights[:, :-1], weights[:, -1]))
        self._tell(lines, labels[list(targets)])
        return self

    def _search(
        self, table: Table, units: ColumnUnits, cost: Floats, ours: list[Any]
    ) -> list[_Line]:
        """Each class against the others; `ours` says which rows are its own."""
        penalty = units.spread**2 if self.standardize else units.anchor.unit**-2.0
        signs = [np.where(own, 1.0, -1.0) for own in ours]
        if self._dual(table):
            return self._descend(table, units, cost, penalty, signs)
        return [self._solve(table, units, cost, penalty, sign) for sign in signs]

    def _dual(self, table: Table) -> bool:
        if self.solver != "auto":
            return self.solver == "dual"
        rows, width = table.features.shape
        if is_sparse(table.features):
            return bool(width > _WIDE or rows * width**2 > _QUICK)
        return bool(width > max(rows, _WIDE))

    def _solve(
        self, table: Table, units: ColumnUnits, cost: Floats, penalty: Floats, sign: Floats
    ) -> _Line:
        """By products of rows, which the engine sums."""
        anchor, labels = units.anchor, table.schema.labels

        def scores(weights: Floats) -> Floats:
            rule = LinearRule(labels, anchor, weights[None], np.zeros(1))
            return map_rows(rule.scores, table.features)[:, 0]

        def products(pull: Floats, curve: Floats | None) -> Products:
            return fold(table, ProductsReading(anchor, pull, curve))

        problem = SVMProblem(sign, cost, penalty, bool(self.intercept), scores, products)
        search = fit_squared_hinge if self.loss == "squared_hinge" else fit_hinge
        found = search(problem, tolerance=self.tolerance, max_steps=self.max_steps)
        return _Line(found.weights, found.steps, found.gap)

    def _descend(
        self, table: Table, units: ColumnUnits, cost: Floats, penalty: Floats, signs: list[Floats]
    ) -> list[_Line]:
        """By coordinates of the dual, several classes at a time."""
        rows = _entries(table, units)

        def one(sign: Floats) -> _Line:
            found = fit_dual(
                rows,
                sign,
                cost=cost,
                loss=self.loss,
                bias=None if self.intercept else 0.0,
                penalty=penalty,
                tolerance=self.tolerance,
                max_sweeps=self.max_steps,
                seed=0 if self.random_state is None else int(self.random_state),
            )
            return _Line(np.append(found.weights, found.intercept), found.sweeps, found.gap)

        if len(signs) == 1:
            return [one(signs[0])]
        with ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(one, signs))

    def _tell(self, lines: list[_Line], labels: Labels) -> None:
        # The least is not negative, which proves a relative gap of 1 where alpha proves no better.
        self.gap_: Floats = np.minimum([line.gap for line in lines], 1.0)
        self.n_iter_ = max(line.steps for line in lines)
        self.converged_ = bool((self.gap_ <= self.tolerance).all())
        for line, gap, label in zip(lines, self.gap_, labels, strict=True):
            if not gap <= self.tolerance:
                what = f"The search for the support vectors of class '{label}'"
                warn(NotConvergedWarning.of_gap(what, line.steps, gap, self.tolerance))
                return

    def _check_options(self) -> None:
        if self.loss not in LOSSES:
            raise OptionError.of("loss", self.loss, "'squared_hinge' or 'hinge'")
        if self.solver not in SOLVERS:
            raise OptionError.of("solver", self.solver, "'auto', 'primal' or 'dual'")
        for name in ("ridge", "tolerance", "max_steps"):
            value = getattr(self, name)
            if value is None and name == "ridge":
                continue
            if not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise OptionError.of(name, value, "a positive number")
        for name in ("standardize", "intercept"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionError.of(name, getattr(self, name), "True or False")


def _entries(table: Table, units: ColumnUnits) -> Any:
    """Rows in units of the anchor, sparse."""
    anchor = units.anchor
    if not is_sparse(table.features):
        return as_compiled_csr(sparse.csr_array(anchor.offsets(table.features[:])))
    rows = as_compiled_csr(table.features)
    if anchor.plain:
        return rows
    rows = rows.astype(np.float64)
    rows.data /= anchor.unit[rows.indices]
    return rows


def _class_weighted(table: Table, class_weight: Any) -> Floats:
    """(N,) weights of rows times those of their classes."""
    weight = np.ones(len(table)) if table.weight is None else table.weight
    factors = class_weight_factors(class_weight, table)
    return weight if factors is None else np.asarray(weight * factors[table.codes])
