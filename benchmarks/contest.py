"""A contest: several ways to do one job, timed in turn in one run, and what we aim for.

Contenders run one after the other, round after round (ours, peer, ours, peer ...), and the best of
each counts: other work on the machine can only add time. A short run is spoilt by it more often
than a long one, so what takes less than half a second has several tries in its turn, ours or not.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

OURS = "discriminant"
_SECONDS = 5.0  # how long quick rounds go on
_LEAST, _MOST = 3, 40  # rounds
_TURN = 0.5  # seconds: what is quicker has several tries in its turn
_HOPELESS, _SLOW = 8.0, 1.5  # times the fastest: too slow a variant after one try, after two


@dataclass(frozen=True)
class Goal:
    """How we want to stand against the peers whose name begins with `peer`."""

    peer: str
    at_least: float | None = None  # times as fast as the peer
    at_most: float | None = None  # times the time of the peer
    or_unreached: bool = False  # whether a peer that never gets there meets the goal

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}×"
        return "" if self.at_most is None else f"≤ {self.at_most:g}× its time"

    def reached(self, ours: float, theirs: float) -> bool | None:
        """Whether two times meet the goal; None if there is none."""
        if self.at_least is not None:
            return theirs >= self.at_least * ours
        return None if self.at_most is None else ours <= self.at_most * theirs


@dataclass(frozen=True)
class Contest:
    """The ways to do a job, ready to run."""

    contenders: dict[str, Callable[[], Any]]  # ours first
    answer: Callable[[Any], Any]  # what must agree, worked out from a result; empty if nothing
    bytes: int  # of the input
    run: Callable[[], dict[str, Any]] | None = None  # a race by rules of its own


@dataclass(frozen=True)
class Case:
    """One job at one size."""

    name: str
    job: str
    size: str
    prepare: Callable[[float], Contest]  # the share of the rows to take: 1, or less to be quick
    goals: tuple[Goal, ...] = ()
    calls: int = 1  # calls in one timing
    memory_goal: float | None = None  # MB beyond the input
    pass_goal: int | None = None  # passes over the rows
    memory: bool = True
    peers: tuple[str, ...] = field(default=("scikit-learn",))  # who is asked for peak memory


def race(contest: Contest, *, calls: int) -> tuple[dict[str, float], float | None]:
    """Best seconds of one call of each contender, in turn; and how far their answers differ."""
    first, answers = {}, {}
    for name, run in contest.contenders.items():
        first[name], result = _timed(run, calls)
        if not name.startswith("X"):
            answers[name] = np.asarray(contest.answer(result), dtype=np.float64)
    for name in _fastest(first, _HOPELESS):
        first[name] = min(first[name], _timed(contest.contenders[name], calls)[0])
    kept = _fastest(first, _SLOW)
    tries = {name: int(np.clip(_TURN / first[name], 1, 10)) for name in kept}
    lap = sum(tries[name] * first[name] for name in kept)
    rounds = int(np.clip(_SECONDS / lap, _LEAST, _MOST))
    best = {name: first[name] for name in kept}
    for name in _turns(kept, rounds):
        for _ in range(tries[name]):
            best[name] = min(best[name], _timed(contest.contenders[name], calls)[0])
    return {name: seconds / calls for name, seconds in best.items()}, _apart(list(answers.values()))


def _apart(answers: list[np.ndarray]) -> float | None:
    """Largest difference between the first answer, ours, and any other."""
    if len(answers) < 2 or not answers[0].size:
        return None
    return max(float(np.abs(answers[0] - other).max()) for other in answers[1:])


def _turns(names: list[str], rounds: int) -> Iterator[str]:
    for _ in range(rounds):
        yield from names


def _fastest(seconds: dict[str, float], most: float) -> list[str]:
    """Names without those variants of a peer ('peer, variant') that others of it beat clearly."""
    best: dict[str, float] = {}
    for name, value in seconds.items():
        family = name.split(",")[0]
        best[family] = min(value, best.get(family, value))
    return [name for name, value in seconds.items() if value <= most * best[name.split(",")[0]]]


def _timed(run: Callable[[], Any], calls: int) -> tuple[float, Any]:
    gc.collect()
    result = None
    start = perf_counter()
    for _ in range(calls):
        result = run()
    return perf_counter() - start, result
