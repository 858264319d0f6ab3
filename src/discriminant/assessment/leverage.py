"""Least squares with one row left out, in closed form.

With h_i the leverage of row i, its share in its own fitted value,

    h_i = w_i [1 / n + (u_i - mean)' (S + ridge)^-1 (u_i - mean)]
    fitted without row i = (fitted_i - h_i code_i) / (1 - h_i)

which holds for any penalty that does not depend on the rows, and with a free intercept.
"""

from __future__ import annotations

import numpy as np

from discriminant.models.gaussian import class_prior
from discriminant.models.indicator import SAME, IndicatorRule, class_codes, class_problem
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats
from discriminant.table.source import Table

_ROWS = 4096  # looked at at a time


def without_each(
    rule: IndicatorRule, moments: ClassMoments, table: Table, *, ridge: float
) -> Floats | None:
    """(N, K) log memberships of each row by the fit to all others, NaN where it matters too much.

    None where codes depend on how many rows a class has, or where moments leave too few digits.
    """
    if rule.coding == "fisher" or rule.basis is not None:
        return None
    codes = class_codes(class_prior(moments, None), rule.coding)
    problem = class_problem(moments, codes=codes, ridge=ridge)
    if problem.solver.digits < SAME:
        return None
    least = 10.0 ** (SAME - problem.solver.digits)  # 1 - h, which divides, takes digits away
    found = []
    for block in table.blocks(_ROWS):
        apart = (moments.anchor.offsets(block.features) - problem.mean)[:, problem.moving]
        half = problem.solver.half(apart.T)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        leverage = weight * (1.0 / problem.weight + np.einsum("ri,ri->i", half, half))
        rest = np.where(1.0 - leverage > least, 1.0 - leverage, np.nan)[:, None]
        fitted = (rule.fitted(block.features) - leverage[:, None] * codes[block.codes]) / rest
        found.append(rule.log_memberships(fitted))
    return np.concatenate(found)
