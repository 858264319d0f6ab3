"""The bar that `make peers` sets: what counts as passed, expected, wrong and stale."""

from pathlib import Path

import pytest

from tests.peers.classification import Entry, Outcome, classify, read_entries
from tests.peers.imports import rewrite_imports
from tests.peers.suites import SUITES

TABLE = Path(__file__).parent / "expected.toml"
ENTRY = Entry("svm", ("test_a[*-l1]", "test_b"), "Lacks: l1", "lacks", "There is no l1 penalty.")


def outcome(test, result="failed", message="Lacks: l1", suite="svm", **others):
    return Outcome(suite, test, result, message=message, **{"calls": 1} | others)


def counts(*outcomes):
    found = classify([*outcomes], [ENTRY])
    columns = ("passed", "convention", "lacks", "wrong", "untouched")
    return {column: len(getattr(found, column)) for column in columns if getattr(found, column)}


def test_expected_failure_has_the_verdict_of_its_entry():
    assert counts(outcome("test_a[42-l1]"), outcome("test_b")) == {"lacks": 2}


def test_failure_without_an_entry_is_wrong():
    assert counts(outcome("test_a[42-l2]")) == {"wrong": 1}


def test_failure_in_another_suite_is_wrong():
    assert counts(outcome("test_b", suite="logistic")) == {"wrong": 1}


def test_failure_with_another_message_is_wrong():
    assert counts(outcome("test_b", message="AssertionError: 1 != 2")) == {"wrong": 1}


def test_entry_does_not_cover_a_crash_of_the_adapter():
    assert counts(outcome("test_b", adapter_crashed=True)) == {"wrong": 1}


def test_pass_counts_only_if_this_package_was_called():
    called = outcome("test_c", "passed", "")
    assert counts(called, outcome("test_d", "passed", "", calls=0)) == {"passed": 1, "untouched": 1}


def test_skipped_test_is_untouched():
    assert counts(outcome("test_c", "skipped", "")) == {"untouched": 1}


@pytest.mark.parametrize(
    ("outcomes", "stale"),
    [
        ([outcome("test_a[42-l1]"), outcome("test_b")], []),
        ([outcome("test_a[42-l1]"), outcome("test_b", "passed", "")], ["test_b"]),
        ([outcome("test_a[7-l1]", "passed", ""), outcome("test_b")], ["test_a[7-l1]"]),
        ([outcome("test_c", "passed", "")], ["test_a[*-l1]", "test_b"]),
        ([outcome("test_c", "passed", "", suite="glm")], []),  # the entry's suite was not run
    ],
)
def test_entry_is_stale_where_its_tests_pass_or_do_not_exist(outcomes, stale):
    assert [one.test for one in classify(outcomes, [ENTRY]).stale] == stale


def test_stale_entry_and_wrong_test_are_not_clean():
    assert classify([outcome("test_a[42-l1]"), outcome("test_b")], [ENTRY]).clean
    assert not classify([outcome("test_b", "passed", "")], [ENTRY]).clean
    assert not classify([outcome("test_x", suite="glm")], [ENTRY]).clean


def test_brackets_of_parameters_are_literal_in_patterns():
    assert not ENTRY.names(outcome("test_a4-l1"))


def test_table_of_expected_failures_is_valid():
    entries = read_entries(TABLE)
    assert {entry.suite for entry in entries} <= {suite.name for suite in SUITES}
    tests = [(entry.suite, pattern) for entry in entries for pattern in entry.tests]
    assert len(tests) == len(set(tests))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"verdict": "wrong"}, "none of"),
        ({"shows": ""}, "message to show"),
        ({"reason": ""}, "reason"),
        ({"tests": ["*"]}, "must name its test"),
        ({"tests": ["*[a]"]}, "must name its test"),
    ],
)
def test_table_rejects_entries_that_could_hide_a_defect(tmp_path, change, fault):
    entry = {"suite": "svm", "tests": ["test_b"], "shows": "l1", "verdict": "lacks", "reason": "X."}
    lines = [f"{key} = {value!r}" for key, value in (entry | change).items()]
    path = tmp_path / "expected.toml"
    path.write_text("[[expected]]\n" + "\n".join(lines))
    with pytest.raises(ValueError, match=fault):
        read_entries(path)


def test_imports_of_tested_names_are_rewritten():
    source = (
        "from sklearn import datasets, svm\n"
        "from sklearn.svm import SVC, LinearSVC\n"
        "from .local import LinearSVC as other\n"
        "models = [svm.LinearSVC, svm.SVC, datasets.LinearSVC2]\n"
    )
    found = rewrite_imports(source, package="sklearn", names=("LinearSVC",), adapter="ours")
    assert found == (
        "from sklearn import datasets, svm\n"
        "from ours import LinearSVC\n"
        "from sklearn.svm import SVC\n"
        "from .local import LinearSVC as other\n"
        "models = [__import__('ours').LinearSVC, svm.SVC, datasets.LinearSVC2]"
    )
