"""The table of engines, and the choice of an engine."""

import tomllib
from pathlib import Path

import pandas as pd
import pytest

from discriminant.engines import available_memory
from discriminant.engines.dispatch import ENGINES, MEMORY, choose_engine

ROOT = Path(__file__).parents[3]


def test_import_contract_lists_every_engine():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        contract["layers"]
        for contract in contracts["contracts"]
        if contract["name"] == "Engines do not know one another"
    )
    listed = {name.strip(" ()") for name in layers[0].split("|")}
    assert listed == {engine.module for engine in ENGINES.values()} | {"discriminant.engines.local"}


@pytest.mark.parametrize(("limit", "engine"), [(1 << 20, MEMORY), (10, "files")])
def test_files_beyond_the_limit_are_partitioned(tmp_path, monkeypatch, limit, engine):
    monkeypatch.setattr(available_memory, "SMALL_FILE", limit)
    monkeypatch.setattr(available_memory, "free_memory", lambda: 0)
    file = tmp_path / "rows.csv"
    file.write_text("x,y\n1,a\n2,b\n3,a\n")
    assert choose_engine(file) == engine
    assert choose_engine(file, partitioned=True) == "files"


def test_data_frames_stay_in_memory():
    assert choose_engine(pd.DataFrame({"x": [1.0]}), partitioned=True) == MEMORY
