"""Choose features step by step by Wilks' lambda, from the scatters alone (the rules of STEPDISC).

At each step of `stepwise` the chosen feature of least partial F leaves if its p is above `stay`;
otherwise the one outside of largest F enters if its p is at most `enter`. `forward` never removes,
`backward` starts with all and never enters. A feature of which less than `tolerance` is left within
classes, relative to its variance, cannot enter. How F follows from the scatters is in
`assessment.sweeping`.

The p-values are those of single tests: of many features some meet them by chance, so judge what was
chosen on other rows. Selection by held-out error is in `assessment.selection`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from discriminant.assessment.layout import Printed, chance, frame_of_steps, number, table
from discriminant.assessment.standard import moments_of, standardised
from discriminant.assessment.sweeping import Search, Step
from discriminant.engines.local import blas_for
from discriminant.errors import OptionError

_WHAT = "Stepwise selection"
Method = Literal["stepwise", "forward", "backward"]
METHODS = ("stepwise", "forward", "backward")


@dataclass(frozen=True, slots=True, eq=False)
class Stepwise(Printed):
    """What `stepwise` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    features: tuple[str, ...]  # that could be chosen
    selected: tuple[str, ...]  # in the order of the columns, for `moments.select`
    dependent: tuple[str, ...]  # could not enter: within classes they follow from those selected
    steps: tuple[Step, ...]
    method: Method
    enter: float
    stay: float
    reason: str  # why there was no further step

    @property
    def text(self) -> str:
        """Laid out as the summary of SAS's STEPDISC."""
        head = ["Step", "In", "Entered", "Removed", "Partial R2", "F Value", "Pr > F"]
        head += ["Wilks' Lambda", "Pr < Lambda", "ASCC", "Pr > ASCC"]
        lines = table(
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
        return frame_of_steps(Step, self.steps)


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
    search = Search(standardised(moments_of(moments, y, _WHAT), _WHAT), tolerance)
    with blas_for(len(search.chosen)):  # its threads would wait for each other at every step
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


def _run(search: Search, *, enter: float, stay: float, method: Method) -> tuple[list[Step], str]:
    """Step until nothing is left to do; the steps, and why that is so."""
    steps: list[Step] = []
    most = 2 * len(search.chosen)
    while len(steps) < most:
        place = search.leaving(stay) if method != "forward" else None
        if place is None and method != "backward":
            place = search.entering(enter)
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


def _cells(step: Step) -> list[str]:
    return [
        str(step.number),
        str(step.size),
        step.entered or "",
        step.removed or "",
        number(step.partial_r2, 4),
        number(step.f, 2),
        chance(step.p),
        number(step.wilks, 8),
        chance(step.wilks_p),
        number(step.ascc, 8),
        chance(step.ascc_p),
    ]
