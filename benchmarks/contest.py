"""A contest: several programs do one task, timed in turn in one process.

Every contender has the same warm-up and the same number of timed calls, in an order that rotates
from round to round; each turn begins with a call that is not timed. The best time of each counts,
since other work on the machine can only add time. A call of more than five seconds is timed twice
and not warmed up. Identical contenders come within a few per cent of each other: `make bench`
checks that first (`identical_contenders`) and prints the ratio.

In a worker, every contender is announced on standard output, as lines of JSON, so that `run.py` can
report the times so far if a case exceeds its time limit.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

OURS = "discriminant"
_SECONDS = 4.0  # timed seconds of a contest, unless its calls are longer
_MIN_ROUNDS, _MAX_ROUNDS = 3, 12
_MAX_CALLS = 40  # in one turn
_HOPELESS, _SLOW = 8.0, 1.5  # times the fastest variant: dropped after one call, after three
_LONG = 1.0  # seconds: a longer call is warmed up once
_VERY_LONG = 5.0  # seconds: a longer call is timed twice, the first call included


@dataclass(frozen=True)
class Goal:
    """The ratio to aim for against the peers whose name begins with `peer`."""

    peer: str
    at_least: float | None = None  # the peer's time divided by ours
    at_most: float | None = None  # our time divided by the peer's
    beyond: float | None = None  # seconds that ours may take more than the peer's
    or_unreached: bool = False  # whether a peer that does not converge meets the goal

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}×"
        if self.beyond is not None:
            return f"≤ its time + {self.beyond:g} s"
        return "" if self.at_most is None else f"≤ {self.at_most:g}× its time"

    def reached(self, ours: float, theirs: float) -> bool | None:
        """Whether two times meet the goal; None if there is none."""
        if self.at_least is not None:
            return theirs >= self.at_least * ours
        if self.beyond is not None:
            return ours <= theirs + self.beyond
        return None if self.at_most is None else ours <= self.at_most * theirs


@dataclass(frozen=True)
class Contest:
    """The contenders of a task, ready to run."""

    contenders: dict[str, Callable[[], Any]]  # ours first
    answer: Callable[[Any], Any]  # result to compare between contenders; empty if none
    bytes: int  # of the input
    run: Callable[[], dict[str, Any]] | None = None  # a contest with rules of its own


@dataclass(frozen=True)
class Case:
    """One task at one size."""

    name: str
    task: str
    size: str
    prepare: Callable[[float], Contest]  # from the share of the rows: 1, or less to be quick
    goals: tuple[Goal, ...] = ()
    memory_goal: float | None = None  # MB beyond the input
    time_goal: float | None = None  # seconds
    pass_goal: int | None = None  # passes over the rows
    memory: bool = True
    peers: tuple[str, ...] = field(default=("scikit-learn",))  # whose peak memory is measured
    long: bool = False  # only in `make bench-full`
    limit: float = 90.0  # seconds for all contenders together, and for each measurement of memory


def race(contest: Contest, seconds: float = _SECONDS) -> tuple[dict[str, float], float | None]:
    """Return the best seconds of each contender, and the largest difference of their answers."""
    cost, answers = {}, {}
    for name, call in contest.contenders.items():
        cost[name], result = announced(name, call)
        if not name.startswith("X"):
            answers[name] = np.asarray(contest.answer(result), dtype=np.float64)
    for _ in range(2):
        for name in fastest_variants(cost, _HOPELESS):
            if cost[name] < _LONG:
                cost[name] = min(cost[name], announced(name, contest.contenders[name])[0])
    names = fastest_variants(cost, _SLOW)
    lap = sum(cost[name] for name in names if cost[name] < _VERY_LONG)
    rounds = int(np.clip(seconds / max(lap, 1e-9), _MIN_ROUNDS, _MAX_ROUNDS))
    calls = int(np.clip(seconds / rounds / max(lap, 1e-9), 1, _MAX_CALLS))
    best = {name: cost[name] if cost[name] >= _VERY_LONG else np.inf for name in names}
    for r in range(rounds):
        for name in names[r % len(names) :] + names[: r % len(names)]:
            if cost[name] >= _VERY_LONG:
                if r == 0:
                    best[name] = min(best[name], announced(name, contest.contenders[name])[0])
                continue
            if cost[name] < _LONG:
                contest.contenders[name]()
            gc.collect()
            for _ in range(calls):
                best[name] = min(best[name], timed(contest.contenders[name])[0])
            announce(name, best[name])
    return best, largest_difference(list(answers.values()))


def announced(name: str, call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of one call, and its result; print its start and its end."""
    announce(name)
    seconds, result = timed(call)
    announce(name, seconds)
    return seconds, result


def announce(name: str, seconds: float | None = None) -> None:
    """Print, in a worker, that a contender starts, or the best seconds of its calls."""
    if Announcements.on:
        print(json.dumps([name, perf_counter(), seconds]), flush=True)


class Announcements:
    """Whether contenders are announced: only in a worker."""

    on = False


def identical_contenders() -> float:
    """Return the larger time divided by the smaller of two identical contenders."""
    rows = np.random.default_rng(0).standard_normal((2000, 20))
    best, _ = race(Contest({name: lambda: rows.T @ rows for name in "AB"}, lambda _: [], 0))
    return max(best.values()) / min(best.values())


def largest_difference(answers: list[np.ndarray]) -> float | None:
    """Return the largest difference between the first answer, ours, and any other."""
    if len(answers) < 2 or not answers[0].size:
        return None
    return max(float(np.abs(answers[0] - other).max()) for other in answers[1:])


def fastest_variants(seconds: dict[str, float], factor: float) -> list[str]:
    """Return the names without variants of a peer ('peer, variant') that a faster one beats."""
    best: dict[str, float] = {}
    for name, value in seconds.items():
        peer = name.split(",")[0]
        best[peer] = min(value, best.get(peer, value))
    return [name for name, value in seconds.items() if value <= factor * best[name.split(",")[0]]]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of one call, and its result."""
    start = perf_counter()
    result = call()
    return perf_counter() - start, result
