"""The public names, signatures and stored kinds are those in public.json; the stub has them all."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import discriminant
from discriminant import catalog
from tests.fence.compare import compare, distance
from tests.fence.public import surface
from tests.fence.stub import stub

COMMITTED = Path(__file__).with_name("public.json")


def test_public_surface_equals_the_committed_one():
    committed, current = json.loads(COMMITTED.read_text()), surface()
    assert current["kinds"] == committed["kinds"]
    assert current["names"].keys() == committed["names"].keys()
    changed = [
        name for name, entry in committed["names"].items() if current["names"][name] != entry
    ]
    assert not changed, (
        f"{changed} changed. If that is meant, run "
        "python tests/fence/public.py > tests/fence/public.json and commit the difference."
    )


def test_the_type_stub_is_up_to_date():
    committed = Path(discriminant.__file__).with_suffix(".pyi").read_text()
    assert committed == stub(), "run python -m tests.fence.stub > src/discriminant/__init__.pyi"


def test_every_public_estimator_is_in_the_catalogue():
    classes = {name: getattr(discriminant, name) for name in discriminant.__all__}
    estimators = [
        n for n, c in classes.items() if isinstance(c, type) and issubclass(c, BaseEstimator)
    ]
    assert sorted(estimators) == sorted(catalog.HOMES)


def test_candidates_have_unique_names_and_titles():
    names = [candidate.name for _, candidate in catalog.CANDIDATES]
    titles = [candidate.title for _, candidate in catalog.CANDIDATES]
    assert len(set(names)) == len(set(titles)) == len(names)


@pytest.mark.parametrize(
    ("one", "other", "ulps"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0),
        ([1.0], [np.nextafter(1.0, 2.0)], 1),
        ([1.0], [np.nan], np.inf),
        ([1.0], [1], np.inf),
        (["a"], ["b"], np.inf),
        ([1.0, 2.0], [1.0], np.inf),
    ],
)
def test_distance_counts_units_in_the_last_place(one, other, ulps):
    assert distance(np.array(one), np.array(other)) == ulps


def test_compare_reports_a_value_that_is_gone():
    assert compare({"a": np.ones(2)}, {"b": np.ones(2)}) == {"a": np.inf}
