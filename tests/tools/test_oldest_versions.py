"""The oldest versions are the lower bounds of pyproject.toml."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tools.oldest_versions import constraints

ROOT = Path(__file__).resolve().parents[2]


def test_lower_bounds_become_equalities_without_extras():
    assert constraints(["numpy>=2.0", "Psycopg[binary]>=3.2,<4", "ruff"]) == (
        "numpy==2.0\npsycopg==3.2\n"
    )


def test_highest_lower_bound_of_a_name_that_is_listed_twice():
    assert constraints(["onnx", "onnx>=1.17", "ONNX>=1.9"]) == "onnx==1.17\n"


def test_every_dependency_of_the_package_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = constraints(project["dependencies"]).splitlines()
    pinned = {Requirement(line).name for line in lines}
    assert pinned == {Requirement(text).name for text in project["dependencies"]}
