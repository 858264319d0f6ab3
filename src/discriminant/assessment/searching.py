"""Which feature comes or goes next: greedy searches, whatever the judge.

    forward     from none: the best one enters, until there are `most`
    backward    from all: the one that is missed least leaves, until there are `least`
    both        forward, and after each entry the least missed leave for as long as that gives a
                better model of its size than any before (Pudil et al. 1994, floating search)

Errors of many models are often the same. Of equal ones that of less log loss is taken, and of those
(up to 1e-12) the first in the order of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discriminant.assessment.judging import Criterion, Judge, Mask, Places

Direction = Literal["forward", "backward", "both"]
_SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Stand:
    """A model of the path."""

    place: int | None  # of the feature that came or went; None at the start
    chosen: Mask  # (d,)
    error: float
    error_se: float
    log_loss: float
    log_loss_se: float

    @property
    def size(self) -> int:
        """How many features."""
        return int(self.chosen.sum())

    def value(self, criterion: Criterion) -> float:
        """Of the criterion."""
        return self.error if criterion == "error" else self.log_loss

    def se(self, criterion: Criterion) -> float:
        """Of the criterion."""
        return self.error_se if criterion == "error" else self.log_loss_se


def path(
    judge: Judge, criterion: Criterion, direction: Direction, *, most: int, least: int
) -> list[Stand]:
    """Every model on the way."""
    if direction == "backward":
        judge.fill()
        return list(_down(judge, criterion, least))
    return list(_up(judge, criterion, most, floating=direction == "both"))


def _down(judge: Judge, criterion: Criterion, least: int) -> Iterator[Stand]:
    yield _stand(judge, None)
    while judge.chosen.sum() > least:
        place, _ = best(judge, np.flatnonzero(judge.chosen), criterion)
        judge.turn(place)
        yield _stand(judge, place)


def _up(judge: Judge, criterion: Criterion, most: int, *, floating: bool) -> Iterator[Stand]:
    stand = _stand(judge, None)
    yield stand
    record = {0: stand.value(criterion)}
    while judge.chosen.sum() < most:
        outside = np.flatnonzero(~judge.chosen & ~judge.barred())
        if not len(outside):
            return
        entered, _ = best(judge, outside, criterion)
        judge.turn(entered)
        stand = _stand(judge, entered)
        record[stand.size] = min(record.get(stand.size, np.inf), stand.value(criterion))
        yield stand
        while floating and stand.size > 2:
            place, value = best(judge, np.flatnonzero(judge.chosen), criterion)
            if place == stand.place or value >= record[stand.size - 1] - _SAME:
                break
            judge.turn(place)
            stand = _stand(judge, place)
            record[stand.size] = value
            yield stand


def best(judge: Judge, places: Places, criterion: Criterion) -> tuple[int, float]:
    """The feature whose change gives the best model, and the criterion of that."""
    found = judge.judged(places, criterion).mean
    least = found.min()
    near = np.flatnonzero(found <= least + _SAME * (1.0 + abs(least)))
    if criterion == "error" and len(near) > 1:
        losses = judge.judged(places[near], "log_loss").mean
        near = near[losses <= losses.min() + _SAME * (1.0 + abs(losses.min()))]
    return int(places[near[0]]), float(found[near[0]])


def _stand(judge: Judge, place: int | None) -> Stand:
    error, loss = judge.standing("error"), judge.standing("log_loss")
    numbers = (error.mean, error.se, loss.mean, loss.se)
    return Stand(place, judge.chosen.copy(), *(float(one[0]) for one in numbers))
