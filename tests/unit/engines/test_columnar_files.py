"""Files of very many rows, whose columns are summed where they lie; small ones read that way."""

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.errors import InfiniteCellError, MissingCellError
from discriminant.moments import accumulate
from discriminant.table.files import splits


@pytest.fixture(autouse=True)
def very_many(monkeypatch):
    monkeypatch.setattr(accumulate, "_LARGE", 0)
    monkeypatch.setattr(splits, "BATCH", 500)


def frame_of(seed=0, rows=4000):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))
    frame["count"] = rng.integers(0, 9, rows)  # no float64: it is turned into that
    return frame.assign(y=rng.choice(["u", "v", "w"], rows), weight=rng.integers(0, 3, rows) / 2)


def read(frame, folder, **options):
    path = folder / "rows.parquet"
    frame.to_parquet(path, row_group_size=1000)
    return dd.rows(path, target="y", **options).moments


def assert_weighted(moments, frame, weight):
    """Means and scatters by NumPy's own weighted covariance."""
    names = list(moments.features)
    for k, label in enumerate(moments.labels):
        own = frame["y"] == label
        X, w = frame.loc[own, names].to_numpy(float), weight[own]
        np.testing.assert_allclose(moments.means[k], np.average(X, axis=0, weights=w), atol=1e-14)
        wanted = np.cov(X.T, aweights=w, ddof=0) * w.sum()
        np.testing.assert_allclose(moments.scatter[k], wanted, rtol=1e-12, atol=1e-10)


def test_moments_are_those_of_numpy(tmp_path):
    frame = frame_of()
    found = read(frame, tmp_path, exclude=["weight"])
    assert_weighted(found, frame, np.ones(len(frame)))


def test_weights_count_how_often_a_row_does(tmp_path):
    frame = frame_of(1)
    found = read(frame, tmp_path, weight="weight")
    assert_weighted(found, frame, frame["weight"].to_numpy())


def test_rows_with_a_missing_cell_are_dropped_if_that_is_wished(tmp_path):
    frame = frame_of(2)
    frame.loc[[700, 701, 2900], "b"] = np.nan
    found = read(frame, tmp_path, exclude=["weight"], missing="drop")
    whole = frame.dropna()
    assert_weighted(found, whole, np.ones(len(whole)))


@pytest.mark.parametrize(
    ("cell", "fault"), [(np.nan, MissingCellError), (np.inf, InfiniteCellError)]
)
def test_a_cell_that_is_no_number_is_told_with_its_place(cell, fault, tmp_path):
    frame = frame_of(3)
    frame.loc[2900, "b"] = cell
    with pytest.raises(fault, match=r"Row 2900 .*column 'b'"):
        read(frame, tmp_path)


def test_a_class_far_from_where_the_others_are_keeps_its_digits(tmp_path):
    frame = frame_of(4)
    frame.loc[::1333, "y"] = "rare"  # so few that no guess is made of where it is
    frame.loc[frame["y"] == "rare", list("abcde")] += 1e8
    found = read(frame, tmp_path, exclude=["weight"])
    own = frame.loc[frame["y"] == "rare", "a"].to_numpy() - 1e8
    place = found.labels.tolist().index("rare")
    assert found.scatter[place, 0, 0] == pytest.approx(((own - own.mean()) ** 2).sum(), rel=1e-12)
