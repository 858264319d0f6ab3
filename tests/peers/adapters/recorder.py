"""pytest plugin: write how each test ended as a line of JSON.

Wording is each library's own: `match=` of `pytest.raises` and `pytest.warns` is left out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from calls import Lacks, calls_so_far

_HERE = str(Path(__file__).parent)
_FILE = Path(os.environ["PEERS_OUTCOMES"])
_SUITE = os.environ["PEERS_SUITE"]
_LENGTH = 2000  # of a message
_by_class: dict[type, int] = {}  # calls while the fixtures of a class were set up


def pytest_configure(config):
    raises, warns = pytest.raises, pytest.warns

    def raises_any_wording(expected, *args, match=None, **kwargs):
        return raises(expected, *args, **kwargs)

    def warns_any_wording(expected=Warning, *args, match=None, **kwargs):
        return warns(expected, *args, **kwargs)

    pytest.raises, pytest.warns = raises_any_wording, warns_any_wording


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    item.stash[_BEFORE] = calls_so_far()
    try:
        return (yield)
    finally:
        made = calls_so_far() - item.stash[_BEFORE]
        if item.cls is not None:
            _by_class[item.cls] = _by_class.get(item.cls, 0) + made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" or report.failed or (call.when == "setup" and report.skipped):
        calls = calls_so_far() - item.stash.get(_BEFORE, 0) + _by_class.get(item.cls, 0)
        _write(item.nodeid, report.outcome, calls, call.excinfo if report.failed else None)
    return report


def pytest_collectreport(report):
    if report.failed:
        _append(
            suite=_SUITE,
            test=f"collection of {report.nodeid}",
            result="failed",
            message=str(report.longrepr)[-_LENGTH:],
            adapter_crashed=True,
        )


def _write(nodeid, result, calls, excinfo):
    message, crashed = "", False
    if excinfo is not None:
        message = _describe(excinfo.value)
        inside = str(excinfo.traceback[-1].path).startswith(_HERE)
        # A warning of ours that the test has turned into an error is passed on by the adapter.
        crashed = inside and not excinfo.errisinstance((Lacks, Warning))
    _append(
        suite=_SUITE,
        test=nodeid.split("::", 1)[1],
        result=result,
        calls=calls,
        message=" ".join(message.split())[:_LENGTH],
        adapter_crashed=crashed,
    )


def _describe(error):
    """The error, and the one during which it was raised: a test may wait for a warning in vain."""
    described = f"{type(error).__name__}: {error}"[: _LENGTH // 2]
    cause = error.__cause__ or error.__context__
    return described if cause is None else f"{described} [after {_describe(cause)}]"


def _append(**outcome):
    with _FILE.open("a") as file:
        file.write(json.dumps(outcome) + "\n")


_BEFORE = pytest.StashKey[int]()
