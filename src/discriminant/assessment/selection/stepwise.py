"""Choose features step by step by Wilks' lambda, from the scatters alone (the rules of STEPDISC).

At each step of `stepwise` the chosen feature of least partial F leaves if its p is above `stay`;
otherwise the one outside of largest F enters if its p is at most `enter`. `forward` never removes,
`backward` starts with all and never enters. A feature of which less than `tolerance` is left within
classes, relative to its variance, cannot enter. How F follows from the scatters is in
`assessment.sweeping`.

The p-values are those of single tests: of many features some meet them by chance, so judge what was
chosen on other rows. Selection by held-out error is in `assessment.selection`.

What each feature adds to those chosen: partial F of all features at once, by sweeping.

With S the m chosen features, W the scatter within classes and A the rows sqrt(n_k) (mean_k - mean),
so that A'A = B is the scatter of the means:

    H_S      = I + A_S W_S^-1 A_S'                        lambda_S = 1 / |H_S|, Wilks
    w_j, r_j = what of W_jj and A_j is left when j is regressed on S within classes

    outside  H_(S+j) = H_S + r_j r_j' / w_j,   lambda_S / lambda_(S+j) = 1 + r_j' H_S^-1 r_j / w_j
    chosen   H_(S-j) = H_S - c_j c_j' / o_j,   lambda_S / lambda_(S-j) = 1 - c_j' H_S^-1 c_j / o_j
             with c_j a column of A_S W_S^-1 and o_j on the diagonal of W_S^-1

    ratio_j = lambda with j / lambda without       partial R2 = 1 - ratio_j
    F_j     = (1 / ratio_j - 1)(v - m') / q  on q = K - 1 and v - m', v = n - K, m' chosen besides j

Sweeping W and A on a feature keeps all of these at hand, in d^2 operations a step:

    sweep on k:  W_ij - W_ik W_kj / W_kk,   W_ik / W_kk,   W_kk -> -1 / W_kk;   A as a row of W

The scatter of all rows is not swept: where classes are far apart it hides what is within them. And
since sqrt(n)'A = 0, A is turned to q rows (by a Householder reflection), or H would have an
eigenvalue 1 that the rounding of large ones drowns.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, solve_triangular

from discriminant.assessment.inference.manova import (
    Degrees,
    FTest,
    StandardisedScatter,
    f_p_value,
    moments_of,
    pillai,
    standardise,
    wilks,
)
from discriminant.assessment.inference.summary import (
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
    """One feature entered or removed, and where that leaves the model."""

    number: int
    entered: str | None
    removed: str | None
    size: int  # features in the model after the step
    partial_r2: float
    f: float
    df1: float
    df2: float
    p: float
    wilks: float  # of the model; 1 without features
    wilks_p: float
    ascc: float  # average squared canonical correlation: Pillai's trace / (K - 1)
    ascc_p: float


class Search:
    """Swept scatters, and which features they are swept on."""

    def __init__(self, standard: StandardisedScatter, tolerance: float) -> None:
        self.standard, self.tolerance = standard, tolerance
        self.within = standard.within.copy()  # (d, d)
        self.means = _short(standard)  # (g, d), A
        self.spread = np.eye(len(self.means))  # (g, g), H
        self.chosen: npt.NDArray[np.bool_] = np.zeros(len(self.within), dtype=np.bool_)

    @property
    def q(self) -> int:
        """Degrees of freedom between classes."""
        return len(self.standard.labels) - 1

    def start_full(self) -> None:
        """All features at once: the scatter within classes must have an inverse."""
        self.standard.metric("Backward selection")
        for place in range(len(self.chosen)):
            self.toggle(place)

    def next_to_enter(self, enter: float) -> int | None:
        """The feature outside of largest F, if it may enter."""
        gain = np.where(self.chosen | self.dependent(), -1.0, self.gains())
        place = int(np.argmax(gain))
        if gain[place] < 0 or self.degrees(place) <= 0:
            return None
        return place if self.test(place, gain[place])[1] <= enter else None

    def next_to_remove(self, stay: float) -> int | None:
        """The chosen feature of least F, if it must leave."""
        if not self.chosen.any():
            return None
        gain = np.where(self.chosen, self.gains(), np.inf)
        place = int(np.argmin(gain))
        return place if self.test(place, gain[place])[1] > stay else None

    def step(self, place: int, number: int) -> SelectionStep:
        """Enter or remove a feature."""
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
        """(d,) 1 / ratio_j - 1: what F is made of."""
        low, _ = cho_factor(self.spread, lower=True)
        half = solve_triangular(low, self.means, lower=True)
        own = np.abs(np.diagonal(self.within))
        quotient = np.einsum("gd,gd->d", half, half) / np.where(own > 0, own, 1.0)
        inside = np.minimum(quotient, 1.0 - 1e-16)
        return np.asarray(np.where(self.chosen, inside / (1.0 - inside), quotient))

    def test(self, place: int, gain: float) -> tuple[float, float]:
        """F of one feature, and its p."""
        degrees = self.degrees(place)
        f = float(gain) * degrees / self.q
        return f, float(f_p_value(f, self.q, degrees))

    def degrees(self, place: int) -> float:
        """Of freedom within classes, of the F of one feature."""
        return self.standard.degrees - int(self.chosen.sum()) + int(self.chosen[place])

    def dependent(self) -> npt.NDArray[np.bool_]:
        """(d,) features outside that those chosen explain within classes."""
        return np.asarray(~self.chosen & (np.diagonal(self.within) < self.tolerance))

    def toggle(self, place: int) -> None:
        """Sweep on a feature, which enters, or leaves if it was chosen."""
        pivot, line = self.within[place, place], self.means[:, place].copy()
        slope = self.within[place] / pivot
        back = bool(self.chosen[place])
        self.spread += np.multiply.outer(line, line / pivot)
        self.means -= np.multiply.outer(line, slope)
        self.means[:, place] = line / (-pivot if back else pivot)
        sweep(self.within, place, back=back)
        self.chosen[place] = not back

    def tests(self) -> tuple[FTest, FTest]:
        """Wilks and Pillai of the model; Pillai's trace is that of I - H^-1."""
        m, v = int(self.chosen.sum()), self.standard.degrees
        if not m:
            return FTest("Wilks", 1.0, 0.0, 0.0, v, 1.0), FTest("Pillai", 0.0, 0.0, 0.0, v, 1.0)
        low, _ = cho_factor(self.spread, lower=True)
        half = solve_triangular(low, np.eye(len(low)), lower=True)
        trace = len(low) - float((half**2).sum())
        degrees = Degrees(m, self.q, v)
        return wilks(-2 * float(np.log(np.diagonal(low)).sum()), degrees), pillai(trace, degrees)


def sweep(scatter: Floats, place: int, *, back: bool = False) -> None:
    """Sweep a symmetric matrix on one row and column, in place; `back` undoes it.

    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> sweep(A, 0)
    >>> A.tolist()  # -1/2, the slope 1/2, and what is left: 3 - 1/2
    [[-0.5, 0.5], [0.5, 2.5]]
    """
    pivot, line = scatter[place, place], scatter[place].copy()
    scatter -= np.multiply.outer(line, line / pivot)
    scatter[place] = scatter[:, place] = line / (-pivot if back else pivot)
    scatter[place, place] = -1.0 / pivot


def _short(standard: StandardisedScatter) -> Floats:
    """(g, d) A turned to rows that have the same products: g = q, or d if that is less."""
    rows = np.sqrt(standard.weight / standard.degrees)[:, None] * standard.apart
    axis = np.sqrt(standard.weight / standard.rows)
    axis[0] += 1.0
    turned = rows[1:] - np.multiply.outer(axis[1:], axis @ rows) / axis[0]  # |axis|^2 / 2 = axis_0
    q, d = turned.shape
    return np.asarray(turned if q <= d else np.linalg.qr(turned, mode="r"))


_WHAT = "Stepwise selection"
Method = Literal["stepwise", "forward", "backward"]
METHODS = ("stepwise", "forward", "backward")


@dataclass(frozen=True, slots=True, eq=False)
class Stepwise(PrintedResult):
    """What `stepwise` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    features: tuple[str, ...]  # that could be chosen
    selected: tuple[str, ...]  # in the order of the columns, for `moments.select`
    dependent: tuple[str, ...]  # could not enter: within classes they follow from those selected
    steps: tuple[SelectionStep, ...]
    method: Method
    enter: float
    stay: float
    reason: str  # why there was no further step

    @property
    def text(self) -> str:
        """Laid out as the summary of SAS's STEPDISC."""
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
            lines.append(f"Left out, since they follow from these: {', '.join(self.dependent)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
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
        """The steps as a pandas frame, a row each."""
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
    """Choose features that tell classes apart, without reading a row again.

    Parameters
    ----------
    moments
        Of detail 'pooled' or finer; or rows X, with their labels as `y`.
    y
        (N,) labels of rows; left out beside moments.
    enter, stay
        Largest p of the partial F with which a feature enters, and with which it stays.
    method
        'stepwise', 'forward' or 'backward'.
    tolerance
        Least share of its variance within classes that a feature must have of its own to enter.

    Examples
    --------
    >>> from discriminant import moments
    >>> rows = [[0.0, 1.0], [2.0, 0.0], [1.0, 0.5], [9.0, 0.4], [7.0, 0.0], [8.0, 1.0]]
    >>> stepwise(moments(rows, ["a", "a", "a", "b", "b", "b"])).selected
    ('x0',)
    """
    _check(enter, stay, method, tolerance)
    search = Search(standardise(moments_of(moments, y, _WHAT), _WHAT), tolerance)
    with blas_context(len(search.chosen)):  # its threads would wait for each other at every step
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
    """Step until nothing is left to do; the steps, and why that is so."""
    steps: list[SelectionStep] = []
    most = 2 * len(search.chosen)
    while len(steps) < most:
        place = search.next_to_remove(stay) if method != "forward" else None
        if place is None and method != "backward":
            place = search.next_to_enter(enter)
        if place is None:
            return steps, _why_done(search, method)
        if steps and steps[-1].removed == search.standard.features[place]:
            again = f"'{steps[-1].removed}', just removed, would enter again: enter > stay."
            return steps, again
        steps.append(search.step(place, len(steps) + 1))
    return steps, f"Stopped after {most} steps, twice as many as there are features."


def _why_done(search: Search, method: Method) -> str:
    if method == "backward":
        return "Every feature that is left meets the significance to stay."
    if search.chosen.all():
        return "All features are in."
    if search.standard.degrees - int(search.chosen.sum()) <= 0:
        return f"{search.standard.rows:g} rows allow for no more features."
    return "No other feature meets the significance to enter."


def _check(enter: float, stay: float, method: str, tolerance: float) -> None:
    for name, value in (("enter", enter), ("stay", stay)):
        if not 0 <= value <= 1:
            raise OptionError.of(name, value, "a significance level, from 0 to 1")
    if method not in METHODS:
        raise OptionError.of("method", method, f"one of {', '.join(METHODS)}")
    if not 1e-12 <= tolerance < 1:  # less would let rounding in
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
