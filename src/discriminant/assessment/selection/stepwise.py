"""Stepwise feature selection by Wilks' lambda from the scatter matrices (the rules of STEPDISC).

At each step of `stepwise` the selected feature with the least partial F is removed if its p is
above `stay`; otherwise the unselected feature with the largest F enters if its p is at most
`enter`. 'forward' never removes; 'backward' starts with all features and never adds. A feature
cannot enter if the selected features leave less than `tolerance` of its within-class variance
unexplained.

The p-values refer to single tests. Among many features, some p-values are below the limits by
chance, so validate the selection on other rows. Selection by held-out error is in
`selection.greedy_feature_selection`.

Sweeping gives the partial F of all features at once. S are the m selected features, W is the
scatter within classes, and A has the rows sqrt(n_k) (mean_k - mean), so that A'A = B is the scatter
of the means:

    H_S      = I + A_S W_S^-1 A_S'                        lambda_S = 1 / |H_S|, Wilks
    w_j, r_j = residuals of W_jj and A_j when j is regressed on S within classes

    others   H_(S+j) = H_S + r_j r_j' / w_j,   lambda_S / lambda_(S+j) = 1 + r_j' H_S^-1 r_j / w_j
    selected H_(S-j) = H_S - c_j c_j' / o_j,   lambda_S / lambda_(S-j) = 1 - c_j' H_S^-1 c_j / o_j
             with c_j a column of A_S W_S^-1 and o_j on the diagonal of W_S^-1

    ratio_j = lambda with j / lambda without       partial R2 = 1 - ratio_j
    F_j = (1 / ratio_j - 1)(v - m') / q on q = K - 1 and v - m', v = n - K, m' selected features
    other than j

Sweeping W and A on a feature updates all of these, in d^2 operations a step:

    sweep on k:  W_ij - W_ik W_kj / W_kk,   W_ik / W_kk,   W_kk -> -1 / W_kk;   A as a row of W

The total scatter is not swept: if classes are far apart, its rounding error exceeds the scatter
within classes. Since sqrt(n)'A = 0, A is reduced to q rows by a Householder reflection; otherwise H
would have an eigenvalue 1 that is lost in the rounding of the large ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, solve_triangular

from discriminant.assessment.inference.manova import (
    DegreesOfFreedom,
    FTest,
    StandardisedScatter,
    f_p_value,
    moments_with_detail,
    pillai,
    standardise,
    wilks,
)
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_number,
    format_p,
    steps_frame,
    text_table,
)
from discriminant.engines.local import blas_context
from discriminant.errors import OptionError
from discriminant.table.blocks import Floats


@dataclass(frozen=True, slots=True)
class SelectionStep:
    """A step of the search: the feature that entered or was removed, and the model after it."""

    number: int
    entered: str | None
    removed: str | None
    size: int  # number of features in the model after the step
    partial_r2: float
    f: float
    df1: float
    df2: float
    p: float
    wilks: float  # Wilks' lambda of the model; 1 without features
    wilks_p: float
    ascc: float  # average squared canonical correlation: Pillai's trace / (K - 1)
    ascc_p: float


class Search:
    """State of a stepwise search: the scatter matrices, swept on the selected features."""

    def __init__(self, standard: StandardisedScatter, tolerance: float) -> None:
        self.standard, self.tolerance = standard, tolerance
        self.within = standard.within.copy()  # (d, d) swept scatter within classes, `W`
        self.means = _reduced_means(standard)  # (g, d) swept class means, `A`
        self.H = np.eye(len(self.means))  # (g, g) `H`
        self.chosen: npt.NDArray[np.bool_] = np.zeros(len(self.within), dtype=np.bool_)

    @property
    def q(self) -> int:
        """Degrees of freedom between classes, K - 1."""
        return len(self.standard.labels) - 1

    def start_full(self) -> None:
        """Add all features; a singular scatter within classes is an error."""
        self.standard.metric("Backward selection")
        for place in range(len(self.chosen)):
            self.toggle(place)

    def next_to_enter(self, enter: float) -> int | None:
        """Return the unselected feature with the largest F, or None if its p is above `enter`."""
        gain = np.where(self.chosen | self.dependent(), -1.0, self.gains())
        place = int(np.argmax(gain))
        if gain[place] < 0 or self.degrees(place) <= 0:
            return None
        return place if self.test(place, gain[place])[1] <= enter else None

    def next_to_remove(self, stay: float) -> int | None:
        """Return the selected feature with the least F, or None if its p is at most `stay`."""
        if not self.chosen.any():
            return None
        gain = np.where(self.chosen, self.gains(), np.inf)
        place = int(np.argmin(gain))
        return place if self.test(place, gain[place])[1] > stay else None

    def step(self, place: int, number: int) -> SelectionStep:
        """Add a feature, or remove it if it is selected, and return a description of the model."""
        name, degrees = self.standard.features[place], self.degrees(place)
        gain = float(self.gains()[place])
        f, p = self.test(place, gain)
        self.toggle(place)
        entered = bool(self.chosen[place])
        lam, average = self.tests()
        return SelectionStep(
            number,
            name if entered else None,
            None if entered else name,
            int(self.chosen.sum()),
            gain / (1.0 + gain),
            f,
            float(self.q),
            degrees,
            p,
            lam.value,
            lam.p,
            average.value / self.q,
            average.p,
        )

    def gains(self) -> Floats:
        """Return `1 / ratio_j - 1` for all features j, (d,)."""
        low, _ = cho_factor(self.H, lower=True)
        half = solve_triangular(low, self.means, lower=True)
        own = np.abs(np.diagonal(self.within))
        quotient = np.einsum("gd,gd->d", half, half) / np.where(own > 0, own, 1.0)
        inside = np.minimum(quotient, 1.0 - 1e-16)
        return np.asarray(np.where(self.chosen, inside / (1.0 - inside), quotient))

    def test(self, place: int, gain: float) -> tuple[float, float]:
        """Return the F statistic and the p-value of one feature."""
        degrees = self.degrees(place)
        f = float(gain) * degrees / self.q
        return f, float(f_p_value(f, self.q, degrees))

    def degrees(self, place: int) -> float:
        """Return the degrees of freedom within classes for the F of one feature."""
        return self.standard.degrees - int(self.chosen.sum()) + int(self.chosen[place])

    def dependent(self) -> npt.NDArray[np.bool_]:
        """Return a mask (d,) of unselected features that are collinear with the selected."""
        return np.asarray(~self.chosen & (np.diagonal(self.within) < self.tolerance))

    def toggle(self, place: int) -> None:
        """Sweep on a feature: it enters the model, or leaves it if it was selected."""
        pivot, line = self.within[place, place], self.means[:, place].copy()
        slope = self.within[place] / pivot
        back = bool(self.chosen[place])
        self.H += np.multiply.outer(line, line / pivot)
        self.means -= np.multiply.outer(line, slope)
        self.means[:, place] = line / (-pivot if back else pivot)
        sweep(self.within, place, back=back)
        self.chosen[place] = not back

    def tests(self) -> tuple[FTest, FTest]:
        """Return Wilks' and Pillai's tests of the model.

        Pillai's trace is the trace of `I - H^-1`.
        """
        m, v = int(self.chosen.sum()), self.standard.degrees
        if not m:
            return FTest("Wilks", 1.0, 0.0, 0.0, v, 1.0), FTest("Pillai", 0.0, 0.0, 0.0, v, 1.0)
        low, _ = cho_factor(self.H, lower=True)
        half = solve_triangular(low, np.eye(len(low)), lower=True)
        trace = len(low) - float((half**2).sum())
        degrees = DegreesOfFreedom(m, self.q, v)
        return wilks(-2 * float(np.log(np.diagonal(low)).sum()), degrees), pillai(trace, degrees)


def sweep(scatter: Floats, place: int, *, back: bool = False) -> None:
    """Sweep a symmetric matrix on one row and column, in place; `back=True` reverses a sweep.

    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> sweep(A, 0)
    >>> A.tolist()  # -1/2, the slope 1/2, and the residual 3 - 1/2
    [[-0.5, 0.5], [0.5, 2.5]]
    """
    pivot, line = scatter[place, place], scatter[place].copy()
    scatter -= np.multiply.outer(line, line / pivot)
    scatter[place] = scatter[:, place] = line / (-pivot if back else pivot)
    scatter[place, place] = -1.0 / pivot


def _reduced_means(standard: StandardisedScatter) -> Floats:
    """Return a matrix A of min(q, d) rows such that A'A is the standardised scatter of the means.

    q is the number of classes minus one, and d the number of features.
    """
    rows = np.sqrt(standard.weight / standard.degrees)[:, None] * standard.deviations
    axis = np.sqrt(standard.weight / standard.rows)
    axis[0] += 1.0
    # since `|axis|^2 / 2 = axis_0`
    rotated = rows[1:] - np.multiply.outer(axis[1:], axis @ rows) / axis[0]
    q, d = rotated.shape
    return np.asarray(rotated if q <= d else np.linalg.qr(rotated, mode="r"))


_NAME = "Stepwise selection"
Method = Literal["stepwise", "forward", "backward"]
METHODS = ("stepwise", "forward", "backward")


@dataclass(frozen=True, slots=True, eq=False)
class Stepwise(PrintedResult):
    """Result of `stepwise`: the selected features and the steps of the search."""

    features: tuple[str, ...]  # names of the candidate features
    # selected features, in the order of the columns, for `moments.select`
    selected: tuple[str, ...]
    # could not enter: collinear, within classes, with the selected features
    dependent: tuple[str, ...]
    steps: tuple[SelectionStep, ...]
    method: Method
    enter: float
    stay: float
    reason: str  # why the search ended

    @property
    def text(self) -> str:
        """Table of the steps, as in the summary of SAS's STEPDISC."""
        head = ["Step", "In", "Entered", "Removed", "Partial R2", "F Value", "Pr > F"]
        head += ["Wilks' Lambda", "Pr < Lambda", "ASCC", "Pr > ASCC"]
        lines = text_table(
            f"{self.method.capitalize()} selection by Wilks' lambda: significance to enter "
            f"{self.enter:g}, to stay {self.stay:g}",
            head,
            [_cells(step) for step in self.steps],
        )
        lines += ["", self.reason, f"Selected: {', '.join(self.selected) or 'none'}"]
        if self.dependent:
            lines.append(
                f"Excluded, since they are collinear with the selected "
                f"features: {', '.join(self.dependent)}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain numbers, lists and texts."""
        return {
            "features": list(self.features),
            "selected": list(self.selected),
            "dependent": list(self.dependent),
            "method": self.method,
            "enter": self.enter,
            "stay": self.stay,
            "reason": self.reason,
            "steps": [asdict(step) for step in self.steps],
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each step."""
        return steps_frame(SelectionStep, self.steps)


@np.errstate(under="ignore")
def stepwise(
    moments: Any,
    y: Any = None,
    *,
    enter: float = 0.15,
    stay: float = 0.15,
    method: Method = "stepwise",
    tolerance: float = 1e-8,
) -> Stepwise:
    """Select features that separate the classes by partial F tests, without reading rows again.

    Parameters
    ----------
    moments : ClassMoments or rows
        Moments of detail 'pooled' or finer; or rows X, with their labels as `y`.
    y : array of shape (N,), optional
        Labels of the rows; omit with moments.
    enter, stay : float, default=0.15
        Largest p-value of the partial F test at which a feature enters the model, and at which it
        stays.
    method : {'stepwise', 'forward', 'backward'}
    tolerance : float
        A feature can enter only if the selected features leave at least this share of its
        within-class variance unexplained.

    Returns
    -------
    Stepwise

    Examples
    --------
    >>> from discriminant import moments
    >>> rows = [[0.0, 1.0], [2.0, 0.0], [1.0, 0.5], [9.0, 0.4], [7.0, 0.0], [8.0, 1.0]]
    >>> stepwise(moments(rows, ["a", "a", "a", "b", "b", "b"])).selected
    ('x0',)
    """
    _check_options(enter, stay, method, tolerance)
    search = Search(standardise(moments_with_detail(moments, y, _NAME), _NAME), tolerance)
    # one thread: several would wait for each other at every step
    with blas_context(len(search.chosen)):
        if method == "backward":
            search.start_full()
        steps, reason = _run(search, enter=enter, stay=stay, method=method)
    names = np.array(search.standard.features, dtype=object)
    return Stepwise(
        search.standard.features,
        tuple(names[search.chosen]),
        tuple(names[search.dependent()]),
        tuple(steps),
        method,
        float(enter),
        float(stay),
        reason,
    )


def _run(
    search: Search, *, enter: float, stay: float, method: Method
) -> tuple[list[SelectionStep], str]:
    """Take steps as long as possible; return the steps and the reason for stopping."""
    steps: list[SelectionStep] = []
    max_steps = 2 * len(search.chosen)
    while len(steps) < max_steps:
        place = search.next_to_remove(stay) if method != "forward" else None
        if place is None and method != "backward":
            place = search.next_to_enter(enter)
        if place is None:
            return steps, _end_reason(search, method)
        if steps and steps[-1].removed == search.standard.features[place]:
            again = (
                f"'{steps[-1].removed}' was removed and would enter again, because enter > stay."
            )
            return steps, again
        steps.append(search.step(place, len(steps) + 1))
    return steps, f"Stopped after {max_steps} steps, twice as many as there are features."


def _end_reason(search: Search, method: Method) -> str:
    if method == "backward":
        return "Every feature in the model meets the significance to stay."
    if search.chosen.all():
        return "All features are in the model."
    if search.standard.degrees - int(search.chosen.sum()) <= 0:
        return f"{search.standard.rows:g} rows allow for no more features."
    return "No other feature meets the significance to enter."


def _check_options(enter: float, stay: float, method: str, tolerance: float) -> None:
    for name, value in (("enter", enter), ("stay", stay)):
        if not 0 <= value <= 1:
            raise OptionError.of(name, value, "a significance level, from 0 to 1")
    if method not in METHODS:
        raise OptionError.of("method", method, f"one of {', '.join(METHODS)}")
    if not 1e-12 <= tolerance < 1:  # a smaller tolerance would admit rounding error
        raise OptionError.of("tolerance", tolerance, "from 1e-12 to less than 1")


def _cells(step: SelectionStep) -> list[str]:
    return [
        str(step.number),
        str(step.size),
        step.entered or "",
        step.removed or "",
        format_number(step.partial_r2, 4),
        format_number(step.f, 2),
        format_p(step.p),
        format_number(step.wilks, 8),
        format_p(step.wilks_p),
        format_number(step.ascc, 8),
        format_p(step.ascc_p),
    ]
