"""Which tests `make quick` runs for a changed file."""

from pathlib import Path

from tools.quick_tests import select_tests


def test_module_with_select_tests_its_name_runs_these():
    tests = select_tests(Path("src/discriminant/posterior.py"))
    assert tests == [Path("src/discriminant/posterior.py"), Path("tests/unit/test_posterior.py")]


def test_module_without_select_tests_its_name_runs_its_folder():
    tests = select_tests(Path("src/discriminant/models/gaussian/covariance.py"))
    assert tests[1:] == [Path("tests/unit/models/gaussian")]


def test_changed_test_runs_itself_and_other_files_run_nothing():
    assert select_tests(Path("tests/laws/test_models.py")) == [Path("tests/laws/test_models.py")]
    assert select_tests(Path("README.md")) == select_tests(Path("tools/vocabulary.py")) == []
