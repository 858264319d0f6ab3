"""Dask: on the default scheduler and on a real cluster of processes, some of which are killed."""

import os
import signal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.engines.dispatch import read_moments, rows
from discriminant.table.memory import as_table

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
    assert seen == ["tuple"] * 4 + ["PartialSum"]  # a length and a table, four times


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


# --- at the door ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["frame", "delayed"])
def test_columns_may_be_called_by_numbers(way):
    frame = frame_of(3).set_axis([0, 1, 2, 3, "y"], axis=1)
    pieces = ddf.from_pandas(frame, npartitions=3)
    found = rows(pieces if way == "frame" else pieces.to_delayed(), target="y").moments
    assert found.features == ("0", "1", "2", "3")
    np.testing.assert_allclose(found.within(), in_memory(frame_of(3)).within(), rtol=1e-13)


def test_two_columns_that_are_one_text_are_refused():
    frame = frame_of(3).set_axis([0, "0", 2, 3, "y"], axis=1)
    with pytest.raises(dd.errors.ColumnNamesError, match="'0' occurs at positions 0, 1"):
        rows(ddf.from_pandas(frame, npartitions=3), target="y")


def test_a_feature_called_as_the_labels_are_is_refused():
    frame = frame_of(3).rename(columns={"y": "class", "x2": "y"})
    pieces = ddf.from_pandas(frame, npartitions=3)
    with pytest.raises(
        dd.errors.EngineError,
        match="The features have a column 'y', which is also the name of the labels",
    ):
        rows(pieces.drop(columns="class"), y=pieces["class"], target="y")


@pytest.mark.parametrize("known", [True, False])
def test_weights_beside_arrays_count_as_they_do_in_memory(known):
    frame = frame_of(3)
    weight = np.random.default_rng(1).integers(0, 4, 600).astype(float)
    X, y = frame.drop(columns="y"), frame["y"]
    pieces = ddf.from_pandas(frame.assign(w=weight), npartitions=3)
    features, w = pieces[list(X.columns)], pieces["w"]
    if known:
        features, w = da.from_array(X.to_numpy(), chunks=(130, 2)), da.from_array(weight, chunks=91)
    found = rows(
        features,
        y=da.from_array(y.to_numpy(), chunks=77) if known else pieces["y"],
        weight=w,
        target="y",
    ).moments
    wanted = read_moments(as_table(X, y, weight=weight), detail="class")
    np.testing.assert_allclose(found.within(), wanted.within(), rtol=1e-12)


def test_a_weight_that_is_no_name_is_refused_elsewhere():
    frame = ddf.from_pandas(frame_of(3), npartitions=2)
    with pytest.raises(dd.errors.OptionError, match=r"weight.*the name of a column"):
        rows(frame, target="y", weight=frame["x0"])


@pytest.mark.parametrize("length", [110, 90])
def test_labels_of_unknown_length_that_are_not_beside_their_rows_are_refused(length):
    """Each of four partitions has 100 rows, and more or fewer labels."""
    frame = frame_of(4, 4 * 110)
    X = ddf.from_delayed([dask.delayed(frame.iloc[k : k + 100, :4]) for k in range(0, 400, 100)])
    y = ddf.from_delayed(
        [dask.delayed(frame["y"].iloc[k * length : (k + 1) * length]) for k in range(4)]
    )
    with pytest.raises(dd.errors.ShapeError, match=rf"y has {length} entries for 100 rows"):
        rows(X, y=y, target="y")


def test_labels_in_another_number_of_unknown_chunks_are_refused():
    frame = ddf.from_pandas(frame_of(4), npartitions=4)
    labels = ddf.from_pandas(frame_of(4), npartitions=5)["y"]
    with pytest.raises(dd.errors.EngineError, match=r"4, 5 chunks.*compute_chunk_sizes\(\)"):
        rows(frame.drop(columns="y"), y=labels, target="y")


@pytest.mark.parametrize("late", [False, True])
def test_a_task_that_fails_is_told_by_its_cause(late):
    def read(piece, number, asked=[]):  # noqa: B006 -- so that it fails only when summed
        asked.append(number)
        if number == 1 and (not late or asked.count(1) > 1):
            raise OSError("the disk is gone\nand so on")
        return piece

    pieces = [dask.delayed(read)(frame_of(k, 50), k) for k in range(3)]
    told = pytest.raises(dd.errors.EngineError, match=r"Dask stopped: OSError: the disk is gone\.")
    with dask.config.set(scheduler="sync"), told:
        rows(pieces, target="y")


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
