"""Dask: on the default scheduler and on a real cluster of processes, some of which are killed."""

import os
import signal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.engines.opening import rows

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'discriminant[dask]'")
import dask.array as da  # noqa: E402
import dask.dataframe as ddf  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes with nannies that start them again."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        LocalCluster(dashboard_address=None, host="127.0.0.1", **options) as found,
        Client(found) as client,
    ):
        yield client


def frame_of(seed=0, rows=600, d=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    X = 1e4 + y[:, None] + rng.normal(size=(rows, d))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    return frame.assign(y=np.array(["low", "mid", "top"])[y])


def same_bits(one, other):
    names = ("rows", "weight", "mean", "scatter")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)


def in_memory(frame):
    return dd.moments(frame.drop(columns="y"), frame["y"])


def test_workers_that_are_killed_change_no_bit(cluster, tmp_path):
    frame = frame_of()
    pieces = [frame.iloc[lo : lo + 50] for lo in range(0, 600, 50)]
    quiet = rows([dask.delayed(piece) for piece in pieces], target="y").moments
    killed = rows([deadly(piece, tmp_path / f"{i}") for i, piece in enumerate(pieces)], target="y")
    assert len(list(tmp_path.iterdir())) == 6  # so many workers were killed
    assert same_bits(killed.moments, quiet)


def deadly(piece, mark):
    """A partition; every other one kills the worker that first asks for it."""
    number = int(mark.name)
    return dask.delayed(_first_time_dead)(piece, str(mark) if number % 2 else None)


def _first_time_dead(piece, mark):
    if mark is not None and not os.path.exists(mark):
        with open(mark, "x"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return piece


def test_a_cluster_gives_the_bits_that_threads_give(cluster):
    pieces = ddf.from_pandas(frame_of(1), npartitions=7)
    with dask.config.set(scheduler="threads"):
        alone = rows(pieces, target="y").moments
    assert same_bits(rows(pieces, target="y").moments, alone)


def test_no_row_but_the_sample_comes_to_the_client(cluster, monkeypatch):
    frame = frame_of(2)
    seen = []
    ask = dask.compute

    def watched(*asked):
        found = ask(*asked)
        seen.extend(type(one).__name__ for one in found)
        return found

    monkeypatch.setattr(dask, "compute", watched)
    rows(ddf.from_pandas(frame, npartitions=4), target="y")
    assert seen == ["tuple"] * 4 + ["Partial"]  # a length and a table, four times


def test_arrays_cut_at_other_rows_and_columns_are_brought_together():
    frame = frame_of(3)
    X, y = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
    found = rows(
        da.from_array(X, chunks=(130, 2)), y=da.from_array(y, chunks=77), target="y"
    ).moments
    np.testing.assert_allclose(found.within(), in_memory(frame).within(), rtol=1e-13)


def test_a_partition_without_rows_or_without_a_class_counts_as_it_is():
    frame = frame_of(4).sort_values("y")
    ends = [0, 100, 100, 350, 600]
    pieces = [dask.delayed(frame.iloc[lo:hi]) for lo, hi in pairwise(ends)]
    found = rows(pieces, target="y").moments
    np.testing.assert_allclose(found.within(), in_memory(frame).within(), rtol=1e-13)


def test_a_missing_cell_on_a_worker_is_named_with_its_partition(cluster):
    frame = frame_of(5)
    frame.loc[451, "x2"] = np.nan
    pieces = [dask.delayed(frame.iloc[lo : lo + 300]) for lo in (0, 300)]
    with pytest.raises(dd.errors.MissingCellError, match=r"x2.*partition 1"):
        rows(pieces, target="y")


def test_labels_of_another_length_are_refused_with_both_lengths():
    X, y = da.zeros((30, 2), chunks=10), da.zeros(29, chunks=10)
    with pytest.raises(dd.errors.ShapeError, match=r"29.*30"):
        rows(X, y=y, target="y")


# --- predictions ----------------------------------------------------------------------------------


def test_predictions_on_a_frame_stay_lazy_and_are_those_in_memory():
    frame = frame_of(6)
    model = dd.LDA().fit(frame.drop(columns="y"), frame["y"])
    asked = []
    pieces = [
        dask.delayed(lambda part: asked.append(1) or part)(frame.iloc[i::3]) for i in range(3)
    ]
    lazy = dd.predict_frame(model, ddf.from_delayed(pieces, meta=frame.iloc[:0]))
    assert not asked
    found = lazy.compute().sort_index()
    assert found["predicted"].tolist() == model.predict(frame.drop(columns="y")).tolist()
    assert found[["p(low)", "p(mid)", "p(top)"]].to_numpy() == pytest.approx(
        model.predict_proba(frame.drop(columns="y")), abs=1e-15
    )


def test_predictions_on_an_array_are_an_array():
    frame = frame_of(7)
    X = frame.drop(columns="y").to_numpy()
    model = dd.QDA().fit(X, frame["y"])
    lazy = da.from_array(X, chunks=(130, 3))
    posterior = dd.predict_frame(model, lazy)
    assert posterior.shape == (600, 3)
    np.testing.assert_allclose(posterior.compute(), model.predict_proba(X), rtol=1e-12)
    labels = dd.predict_frame(model, lazy, probabilities=False).compute()
    assert labels.tolist() == model.predict(X).tolist()


def test_a_logistic_model_is_fitted_on_the_cluster(cluster):
    frame = frame_of(8)
    X, y = frame.drop(columns="y"), frame["y"]
    found = dd.Logistic().fit(rows(ddf.from_pandas(frame, npartitions=5), target="y"))
    wanted = dd.Logistic().fit(X, y)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9)
