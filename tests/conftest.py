"""What all tests share: how Hypothesis draws, and where real data lie, if they do."""

import os
import shutil
import sys

# SciPy looks at this once, when it is first imported; without it scikit-learn's check that arrays
# are taken under array_api_dispatch is skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

_ROOT = Path(__file__).parent.parent

# The same examples on every run and machine; with --hypothesis-seed (make soak) new ones.
_EASY = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
_COMMON = {
    "deadline": None,
    "suppress_health_check": _EASY,
    "phases": [phase for phase in Phase if phase is not Phase.explain],  # slow, and says little
}
settings.register_profile("same", derandomize=True, max_examples=20, **_COMMON)
settings.register_profile("new", max_examples=100, print_blob=True, **_COMMON)


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, help="how often tests/trust/test_kills.py kills a writer")


def pytest_configure(config):
    if config.getoption("--hypothesis-profile", None) is None:
        seeded = config.getoption("--hypothesis-seed", None) is not None
        settings.load_profile("new" if seeded else "same")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data sets with reference numbers, `../shared/data` beside the project."""
    folder = _ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not here: no ../shared/data beside the project")
    return folder


@pytest.fixture(scope="session")
def browser():
    """A real browser, one for a process: a second of its driver is refused."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if chromium is None:
        pytest.skip("there is no chromium to open the page in")
    with driver.sync_playwright() as started:
        found = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def postgres():
    """A connection to a server that lives as long as the tests."""
    from tests.shared import databases

    url, why_not = databases.postgres()
    if why_not:
        pytest.skip(why_not)
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def pytest_sessionfinish(session):
    """Stop the servers that tests have started."""
    for name in ("tests.shared.databases", "tests.shared.sparks"):
        if name in sys.modules:
            sys.modules[name].stop()
