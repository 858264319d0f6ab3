"""Which tests `make quick` runs for a changed file."""

from pathlib import Path

from tools.quick_tests import tests_of


def test_module_with_tests_of_its_name_runs_these():
    tests = tests_of(Path("src/discriminant/posterior.py"))
    assert tests == [Path("src/discriminant/posterior.py"), Path("tests/unit/test_posterior.py")]


def test_module_without_tests_of_its_name_runs_its_folder():
    tests = tests_of(Path("src/discriminant/models/gaussian/covariance.py"))
    assert tests[1:] == [Path("tests/unit/models/gaussian")]


def test_changed_test_runs_itself_and_other_files_run_nothing():
    assert tests_of(Path("tests/laws/test_models.py")) == [Path("tests/laws/test_models.py")]
    assert tests_of(Path("README.md")) == tests_of(Path("tools/vocabulary.py")) == []
