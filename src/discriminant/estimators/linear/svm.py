"""Linear support vector machine (SVM) for two classes, or for each class against the rest.

The solvers are in `models.linear.svm`. Two of the three solvers work on sums of products of the
rows: Newton steps for the squared hinge, and an interior-point method for the hinge. The third is
coordinate descent on the dual problem.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.assessment.resampling.penalty_search import (
    ChoiceRule,
    PenalisedModel,
    PenaltyPath,
    PenaltySearch,
    is_cv,
    svm_penalty_path,
)
from discriminant.engines.dispatch import fold
from discriminant.engines.local import available_threads, map_rows
from discriminant.errors import NotConvergedWarning, OptionError, warn
from discriminant.estimators.base import (
    WeightedIterativeClassifier,
    check_choice,
)
from discriminant.estimators.linear.iterative import (
    ClassWeight,
    ColumnUnits,
    LinearClassifier,
    class_weight_factors,
    column_units,
)
from discriminant.models.linear.perceptron import as_compiled_csr
from discriminant.models.linear.svm import Loss, SVMProblem, fit_dual, fit_hinge, fit_squared_hinge
from discriminant.models.rules import LinearRule
from discriminant.moments.loss_gradient_sums import WeightedProducts, WeightedProductsReading
from discriminant.table.blocks import Floats, Labels, is_sparse
from discriminant.table.memory import Table

LOSSES = ("squared_hinge", "hinge")
SEARCH_CRITERIA = ("error", "squared_hinge")
SOLVERS = ("auto", "primal", "dual")
# with more features than this and fewer rows than features, products need too much memory
_WIDE = 500
_QUICK = 2e9  # sparse rows that need at most this many multiplications use the primal solvers


class _BinaryFit(NamedTuple):
    """Fit of one class against all others."""

    weights: Floats  # (d + 1,) weights, then the intercept
    steps: int
    gap: float


class SVM(WeightedIterativeClassifier, LinearClassifier):
    """Linear support vector machine.

    Minimises  mean of weight x loss  +  ridge / 2 |w|^2,  the intercept not penalised, with

        loss = max(0, 1 - m)^2  or  max(0, 1 - m)        m = +-(x.w + b)

    With more than two classes, each is fitted against all others, and the class with the highest
    score is predicted. The model has no probabilities.

    Parameters
    ----------
    loss : {'squared_hinge', 'hinge'}, default 'squared_hinge'
        Loss of a row.
    ridge : float, 'cv' or None, default None
        Penalty. `ridge` corresponds to C = 1 / (ridge x sum of weights) in scikit-learn and
        liblinear. None means 1 / sum of weights, which is C = 1. 'cv': the penalty with the
        smallest held-out error, for the squared hinge.
    standardize : bool, default False
        True: penalise the coefficients of standardised columns, so that units do not matter. Sparse
        columns are divided by their largest absolute value instead.
    intercept : bool, default True
        Whether to fit an intercept.
    class_weight : None, 'balanced' or dict by label, default None
        Factor by which the row weights of each class are multiplied.
    solver : {'auto', 'primal', 'dual'}, default 'auto'
        'primal': a few passes over the rows; suits tables with more rows than features. 'dual':
        coordinate descent; suits sparse rows, and tables with more features than rows (dense rows
        are copied). All solvers reach the same solution.
    tolerance : float, default 1e-8
        Largest relative distance from the minimum of the objective at which the fit stops.
    max_steps : int, default 1000
        Maximum number of primal steps, or of dual sweeps over the rows.
    random_state : int or None, default None
        Seed of the order of the rows for 'dual'.
    ridges : None, int or array of shape (P,), default None
        Penalties that ridge='cv' compares: an array of penalties, or the number of penalties on a
        geometric sequence. None means 50.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for ridge='cv': their number, stratified by class, or the fold of each row.
    criterion : {'error', 'squared_hinge'}, default 'error'
        Held-out measure for ridge='cv': the share of misclassified rows, or the loss of the fit.
    rule : {'min', 'one_se'}, default 'min'
        Choice for ridge='cv': the penalty with the smallest held-out measure (among ties the
        largest), or the largest penalty within one standard error of it.

    Attributes
    ----------
    ridge_ : float
        Penalty of the fit.
    path_ : PenaltyPath or None
        With ridge='cv': penalties, mean held-out measures and their standard errors.
    converged_ : bool
        Whether the fit of every class is within `tolerance`.
    gap_ : array of shape (K,), or (1,) for two classes
        Upper bound on the relative distance of each fit from its minimum: the duality gap.
    n_iter_ : int
        Number of steps or sweeps; with several classes, the largest number over the classes.

    See Also
    --------
    Logistic : Linear boundaries with probabilities.
    Decision : `Decision(SVM(), calibrate='platt')` adds probabilities, costs and a reject option.

    Examples
    --------
    >>> model = SVM(ridge=1e-6, loss="hinge").fit([[0.0], [1.0], [3.0], [4.0]], list("aabb"))
    >>> model.coef_.round(3).tolist(), model.intercept_.round(3).tolist()  # margins at 1 and 3
    ([[1.0]], [-2.0])
    """

    ridge_: float
    path_: PenaltyPath | None = None

    def __init__(
        self,
        *,
        loss: Loss = "squared_hinge",
        ridge: float | Literal["cv"] | None = None,
        standardize: bool = False,
        intercept: bool = True,
        class_weight: ClassWeight | None = None,
        solver: Literal["auto", "primal", "dual"] = "auto",
        tolerance: float = 1e-8,
        max_steps: int = 1000,
        random_state: int | None = None,
        ridges: int | npt.ArrayLike | None = None,
        folds: Any = 10,
        criterion: Literal["error", "squared_hinge"] = "error",
        rule: ChoiceRule = "min",
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
        self.ridges = ridges
        self.folds = folds
        self.criterion = criterion
        self.rule = rule

    def _fit_table(self, table: Table) -> None:
        units = column_units(table, at_zero=not self.intercept)
        labels = table.schema.labels
        weight = np.ones(len(table)) if table.weight is None else table.weight
        factors = class_weight_factors(self.class_weight, table)
        if factors is not None:
            weight = np.asarray(weight * factors[table.codes])
        self.path_ = None
        if is_cv(self.ridge):
            model = PenalisedModel(0.0, bool(self.standardize), bool(self.intercept))
            weighted = table if factors is None else replace(table, weight=weight)
            self.path_ = svm_penalty_path(weighted, model, self._penalty_search())
            ridge = self.path_.ridge
        else:
            ridge = 1.0 / float(weight.sum()) if self.ridge is None else float(self.ridge)
        self.ridge_ = ridge
        cost = weight / (ridge * weight.sum())
        penalty = units.spread**2 if self.standardize else units.anchor.unit**-2.0
        targets = [1] if len(labels) == 2 else range(len(labels))
        signs = [np.where(table.codes == k, 1.0, -1.0) for k in targets]
        if self._uses_dual(table):
            fits = self._fit_dual(table, units, cost, penalty, signs)
        else:
            fits = [self._fit_primal(table, units, cost, penalty, sign) for sign in signs]
        weights = np.stack([fit.weights for fit in fits])
        rule = LinearRule(labels, units.anchor, weights[:, :-1], weights[:, -1])
        self._set_rule(table, rule)
        self._set_report(fits, labels[list(targets)])

    def _uses_dual(self, table: Table) -> bool:
        if self.solver != "auto":
            return self.solver == "dual"
        rows, width = table.features.shape
        if is_sparse(table.features):
            return bool(width > _WIDE or rows * width**2 > _QUICK)
        return bool(width > max(rows, _WIDE))

    def _fit_primal(
        self, table: Table, units: ColumnUnits, cost: Floats, penalty: Floats, sign: Floats
    ) -> _BinaryFit:
        """Solve the primal problem from sums of products of the rows."""
        anchor, labels = units.anchor, table.schema.labels

        def scores(weights: Floats) -> Floats:
            rule = LinearRule(labels, anchor, weights[None], np.zeros(1))
            return map_rows(rule.scores, table.features)[:, 0]

        def products(pull: Floats, curve: Floats | None) -> WeightedProducts:
            return fold(table, WeightedProductsReading(anchor, pull, curve))

        problem = SVMProblem(sign, cost, penalty, bool(self.intercept), scores, products)
        solve = fit_squared_hinge if self.loss == "squared_hinge" else fit_hinge
        fit = solve(problem, tolerance=self.tolerance, max_steps=self.max_steps)
        return _BinaryFit(fit.weights, fit.steps, fit.gap)

    def _fit_dual(
        self, table: Table, units: ColumnUnits, cost: Floats, penalty: Floats, signs: list[Floats]
    ) -> list[_BinaryFit]:
        """Solve the dual problem by coordinate descent, for several classes in parallel."""
        rows = _sparse_offsets(table, units)

        def fit_one(sign: Floats) -> _BinaryFit:
            fit = fit_dual(
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
            return _BinaryFit(np.append(fit.weights, fit.intercept), fit.sweeps, fit.gap)

        if len(signs) == 1:
            return [fit_one(signs[0])]
        with ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(fit_one, signs))

    def _set_report(self, fits: list[_BinaryFit], labels: Labels) -> None:
        # The minimum is not negative, so the relative gap is at most 1.
        self.gap_: Floats = np.minimum([fit.gap for fit in fits], 1.0)
        self.n_iter_ = max(fit.steps for fit in fits)
        self.converged_ = bool((self.gap_ <= self.tolerance).all())
        for fit, gap, label in zip(fits, self.gap_, labels, strict=True):
            if not gap <= self.tolerance:
                what = f"The search for the support vectors of class '{label}'"
                warn(NotConvergedWarning.of_gap(what, fit.steps, gap, self.tolerance))
                return

    def _check_options(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_choice("solver", self.solver, SOLVERS)
        if is_cv(self.ridge):
            self._check_search()
        for name in ("ridge", "tolerance", "max_steps"):
            value = getattr(self, name)
            if name == "ridge" and (value is None or is_cv(value)):
                continue
            if not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise OptionError.of(name, value, "a positive number")
        self._require_bool("standardize", "intercept")

    def _check_search(self) -> None:
        check_choice("criterion", self.criterion, SEARCH_CRITERIA)
        self._penalty_search().check()
        if self.loss != "squared_hinge":
            raise OptionError.of("loss", self.loss, "'squared_hinge' with ridge='cv'")

    def _penalty_search(self) -> PenaltySearch:
        options = self.options_in_effect()
        return PenaltySearch(options["ridges"], options["folds"], self.criterion, self.rule)


def _sparse_offsets(table: Table, units: ColumnUnits) -> Any:
    """Return the rows `(x - origin) / unit` as a sparse matrix."""
    anchor = units.anchor
    if not is_sparse(table.features):
        return as_compiled_csr(sparse.csr_array(anchor.offsets(table.features[:])))
    rows = as_compiled_csr(table.features)
    if anchor.plain:
        return rows
    rows = rows.astype(np.float64)
    rows.data /= anchor.unit[rows.indices]
    return rows
