"""The engines, one after the other."""

import pytest

from tests.shared.engine_kinds import ENGINES

# Engines that take long to start are started in one test process, not in each.
_EACH = [pytest.param(e, id=e.name, marks=pytest.mark.xdist_group(e.name)) for e in ENGINES]


@pytest.fixture(params=_EACH)
def engine(request):
    """Who does the summing."""
    for module in request.param.needs:
        pytest.importorskip(module, reason=f"{module} is not installed")
    why_not = request.param.ready()
    if why_not:
        pytest.skip(why_not)
    return request.param


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Files and tables are cut as if they were large, and some rows are not all of them."""
    from discriminant.engines import dispatch as opening
    from discriminant.engines.sql import connection
    from discriminant.table.files import splits

    monkeypatch.setattr(splits, "SMALL", 1)
    monkeypatch.setattr(splits, "BATCH", 64)
    monkeypatch.setattr(splits, "BATCH", 64)
    monkeypatch.setattr(splits, "RANGE", 4000)
    monkeypatch.setattr(connection, "_BATCH", 64)
    monkeypatch.setattr(opening, "_SAMPLE_ROWS", 100)


# What asks Spark for dozens of sums; the quick run asks the same of twelve other engines.
_LONG = {
    "test_sums_that_are_kept_are_not_worked_out_again[spark]",
    "test_a_study_says_the_same_wherever_its_rows_are[spark]",
    "test_every_engine_holds_out_the_same_rows[spark-Logistic()]",
    "test_sums_of_many_partitions_are_the_same_whether_added_by_executors_or_here[1000000]",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Spark takes seconds for each sum: it is asked each question once, not for every number."""
    for item in items:
        if item.name in _LONG:
            item.add_marker(pytest.mark.slow)
    again = [item for item in items if _asked_again(item)]
    if again:
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if item not in set(again)]


def _asked_again(item):
    asked = getattr(getattr(item, "callspec", None), "params", {})
    if getattr(asked.get("engine"), "name", "") != "spark":
        return False
    return asked.get("parts", 7) not in (3, 7)
