"""What the outcome of a peer's test says about this package.

    passed       the test passed and called this package
    convention   it failed because both sides define something differently, on purpose
    lacks        it failed because it needs a feature that this package does not have
    wrong        it failed for any other reason: a defect, here or in the adapter
    stale        an entry of the table of expected failures that no longer describes a failure
    untouched    it never called this package, or the peer skips it

Expected failures are listed in `expected.toml`. An entry names its tests and a part of the message
that each must show, so that a test which begins to fail in another way counts as wrong. An entry
never covers an exception raised inside an adapter, except `Lacks`, which adapters raise on purpose.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VERDICTS = ("convention", "lacks")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test ended."""

    suite: str
    test: str  # its id without the file: Class::name[parameters]
    result: str  # passed, failed, skipped
    calls: int = 0  # how often it called this package
    message: str = ""  # of the failure
    adapter_crashed: bool = False  # an adapter raised something other than `Lacks`

    @classmethod
    def from_json(cls, line: str) -> Outcome:
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Entry:
    """Tests of one suite that are expected to fail for one reason."""

    suite: str
    tests: tuple[str, ...]  # ids; `*` stands for any characters
    shows: str  # part of the message of each
    verdict: str
    reason: str

    def names(self, outcome: Outcome) -> bool:
        """Whether the entry is about this test."""
        return self.suite == outcome.suite and any(
            _matches(pattern, outcome.test) for pattern in self.tests
        )

    def explains(self, outcome: Outcome) -> bool:
        """Whether the test failed as the entry says."""
        return (
            outcome.result == "failed"
            and not outcome.adapter_crashed
            and self.names(outcome)
            and self.shows in outcome.message
        )


@dataclass(frozen=True, slots=True)
class Stale:
    """A part of an entry that no longer describes a failure."""

    suite: str
    test: str
    why: str


@dataclass(slots=True)
class Classification:
    """The tests of one suite or of several, by what they say."""

    passed: list[Outcome] = field(default_factory=list)
    convention: list[tuple[Outcome, Entry]] = field(default_factory=list)
    lacks: list[tuple[Outcome, Entry]] = field(default_factory=list)
    wrong: list[Outcome] = field(default_factory=list)
    stale: list[Stale] = field(default_factory=list)
    untouched: list[Outcome] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.wrong and not self.stale


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The table of expected failures, checked."""
    found = []
    for one in tomllib.loads(path.read_text())["expected"]:
        entry = Entry(
            one["suite"], tuple(one["tests"]), one["shows"], one["verdict"], one["reason"]
        )
        if entry.verdict not in VERDICTS:
            raise ValueError(f"{entry.tests}: verdict {entry.verdict!r} is none of {VERDICTS}")
        if not entry.shows or not entry.reason.endswith("."):
            raise ValueError(f"{entry.tests}: needs a message to show and a reason of one sentence")
        if any(pattern.split("[")[0].strip("*") == "" for pattern in entry.tests):
            raise ValueError(f"{entry.tests}: a pattern must name its test")
        found.append(entry)
    return tuple(found)


def classify(outcomes: Sequence[Outcome], entries: Iterable[Entry]) -> Classification:
    """Sort outcomes; entries of other suites are left aside."""
    entries = tuple(entries)
    result = Classification()
    for outcome in outcomes:
        if outcome.result == "failed":
            entry = next((one for one in entries if one.explains(outcome)), None)
            if entry is None:
                result.wrong.append(outcome)
            else:
                getattr(result, entry.verdict).append((outcome, entry))
        elif outcome.result == "passed" and outcome.calls:
            result.passed.append(outcome)
        else:
            result.untouched.append(outcome)
    ran = {outcome.suite for outcome in outcomes}
    for entry in entries:
        if entry.suite in ran:
            result.stale += _stale_parts(entry, outcomes)
    return result


def _stale_parts(entry: Entry, outcomes: Sequence[Outcome]) -> list[Stale]:
    """Patterns without a test, and tests that no longer fail."""
    stale = []
    for pattern in entry.tests:
        named = [o for o in outcomes if o.suite == entry.suite and _matches(pattern, o.test)]
        if not named:
            stale.append(Stale(entry.suite, pattern, "there is no such test"))
        stale += [
            Stale(entry.suite, outcome.test, f"the test is {outcome.result}, not failed")
            for outcome in named
            if outcome.result != "failed"
        ]
    return stale


def _matches(pattern: str, test: str) -> bool:
    """Whether a test id fits a pattern in which only `*` is special."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), test, re.DOTALL) is not None
