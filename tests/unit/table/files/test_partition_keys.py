"""Keys of partitioned folders, `year=2024`: whole numbers, texts, and what is missing."""

import numpy as np
import pytest

import discriminant as dd
from tests.unit.engines.test_engine_laws import numbers


def lay(folder, key, values):
    """Rows of each value of a key in a folder of its own; those rows."""
    frames = []
    for k, value in enumerate(values):
        place = folder / f"{key}={value}"
        place.mkdir()
        frames.append(numbers(k, 60))
        frames[-1].to_parquet(place / "rows.parquet")
    return frames


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_key_of_whole_numbers_may_be_missing(order, tmp_path):
    values = np.roll(["2023", "2024", "__HIVE_DEFAULT_PARTITION__"], order).tolist()
    lay(tmp_path, "year", values)
    found = dd.rows(tmp_path, target="y", missing="drop")
    assert found.rows_read == 180
    assert len(found) == 120
    assert found.moments.features[-1] == "year"


@pytest.mark.parametrize("value", ["--5", "-", "5-", "1e3", "9" * 30, "٣"])
def test_a_key_that_is_no_whole_number_is_a_text(value, tmp_path):
    lay(tmp_path, "z", ["7", value])
    found = dd.rows(tmp_path, target="y", reference=None)
    assert set(found.moments.features[-2:]) == {"z=7", f"z={value}"}


def test_keys_of_whole_numbers_may_be_negative(tmp_path):
    lay(tmp_path, "z", ["-5", "7", "11"])
    found = dd.rows(tmp_path, target="y")
    z = np.asarray(found.sample.features[:])[:, found.schema.features.index("z")]
    assert np.unique(z).tolist() == [-5, 7, 11]
