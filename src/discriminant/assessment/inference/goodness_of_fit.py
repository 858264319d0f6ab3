"""Goodness-of-fit tests of two-class logistic models whose rows have different features.

Hosmer and Lemeshow (1980) divide the rows at the quantiles of the fitted probabilities p into g
groups. With O and E the observed and expected numbers of both classes in each group,

    X2 = sum (O - E)^2 / E        chi-squared with g - 2 degrees of freedom

le Cessie and van Houwelingen (1991), in the form of Hosmer et al. (1997) for the logit link,
compare the sum of squared residuals with its expectation:

    z = (sum (y - p)^2 - sum v) / s        v = p (1 - p)

where s^2 is the residual sum of squares of a regression of 1 - 2 p on the features, with weights v.
This test needs no groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from discriminant.assessment.inference.row_terms import RowTerms
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_number,
    format_p,
    text_table,
)
from discriminant.errors import InferenceError
from discriminant.moments.softmax_loss import LINK_TAILS
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

TESTS = ("hosmer_lemeshow", "le_cessie")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GoodnessOfFit(PrintedResult):
    """Test of whether the fitted probabilities agree with the classes of the rows."""

    title: str
    statistic: float
    df: int | None  # None for a normal statistic
    p: float
    groups: tuple[dict[str, float], ...] = ()  # rows, observed and expected numbers

    @property
    def text(self) -> str:
        """The test, and the groups if there are any."""
        name = "z" if self.df is None else "X-squared"
        degrees = "" if self.df is None else f", df {self.df}"
        line = f"{name} {format_number(self.statistic, 4)}{degrees}, p {format_p(self.p)}"
        lines = [self.title, "", line]
        if self.groups:
            head = ["up to", "rows", "observed", "expected"]
            rows = [
                [
                    format_number(group["up_to"], 4),
                    *(f"{group[key]:g}" for key in ("rows", "observed")),
                    format_number(group["expected"], 2),
                ]
                for group in self.groups
            ]
            lines += ["", *text_table("", head, rows)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the test as a dictionary of plain numbers, lists and texts."""
        return {
            "test": self.title,
            "statistic": self.statistic,
            "df": self.df,
            "p": self.p,
            "groups": [dict(group) for group in self.groups],
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each group."""
        columns = ["up_to", "rows", "observed", "expected"]
        return import_pandas().DataFrame(list(self.groups), columns=columns)


def hosmer_lemeshow(terms: RowTerms, *, link: str, groups: int) -> GoodnessOfFit:
    """Return the test of Hosmer and Lemeshow with groups at the quantiles of p.

    Quantiles are those of R's `quantile`, and a group includes its upper end. Groups with equal
    ends are merged.
    """
    assert terms.score is not None and terms.response is not None
    positive = terms.weight > 0
    p = _probability(terms.score[positive], link)
    weight, response = terms.weight[positive], terms.response[positive]
    ends = np.unique(np.quantile(p, np.linspace(0.0, 1.0, groups + 1)))
    n_groups = len(ends) - 1
    if n_groups < 3:
        raise InferenceError.few_groups(n_groups)
    code = np.clip(np.searchsorted(ends, p, side="left") - 1, 0, n_groups - 1)
    rows = np.bincount(code, weight, n_groups)
    observed = np.bincount(code, weight * response, n_groups)
    expected = np.bincount(code, weight * p, n_groups)
    square = (observed - expected) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = float((square / expected + square / (rows - expected)).sum())
    df = n_groups - 2
    table = tuple(
        {"up_to": float(u), "rows": float(r), "observed": float(o), "expected": float(e)}
        for u, r, o, e in zip(ends[1:], rows, observed, expected, strict=True)
    )
    title = "Hosmer and Lemeshow test of goodness of fit"
    return GoodnessOfFit(title, statistic, df, float(chi2.sf(statistic, df)), table)


def le_cessie(terms: RowTerms) -> GoodnessOfFit:
    """Return the unweighted sum of squares test, for the logit link."""
    assert terms.score is not None and terms.response is not None
    p = _probability(terms.score, "logit")
    variance = p * (1.0 - p)
    root = np.sqrt(terms.weight * variance)
    target = root * (1.0 - 2.0 * p)
    basis, _ = np.linalg.qr(root[:, None] * terms.z)
    residual = target - basis @ (basis.T @ target)
    squares = float(terms.weight @ (terms.response - p) ** 2)
    excess = squares - float(terms.weight @ variance)
    z = excess / float(np.linalg.norm(residual))
    title = "Unweighted sum of squares test of goodness of fit (le Cessie and van Houwelingen)"
    return GoodnessOfFit(title, z, None, float(2.0 * norm.sf(abs(z))))


def _probability(score: Floats, link: str) -> Floats:
    return np.exp(LINK_TAILS[link](score).log_one)
