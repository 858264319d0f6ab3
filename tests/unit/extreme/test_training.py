"""The classifiers in the nodes of a label tree: what they minimise, on which rows, bit for bit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, sparse

from discriminant.errors import CheckpointError
from discriminant.extreme.model.fitted_tree import LabelPartition, Layer, Tree
from discriminant.extreme.model.train import (
    TrainingSettings,
    bundle_tasks,
    estimate_tree,
    train_tree,
)
from discriminant.extreme.model.training_checkpoint import ChunkPart, DiskStore
from discriminant.extreme.model.training_tasks import Task
from discriminant.extreme.model.tree_construction import (
    balanced_partition,
    label_means,
    one_vs_rest_partition,
)

EXACT = {"precision": "float64", "tolerance": 1e-11, "threshold": 0.0, "max_sweeps": 100_000}


@pytest.fixture
def one_by_one(monkeypatch):
    """Small nodes are handed to threads one by one, as large ones are."""
    monkeypatch.setattr("discriminant.extreme.model.train._MIN_WORK", 1)


def rows_of(*, n_labels: int, n_rows: int = 300, seed: int = 0, n_features: int = 40):
    rng = np.random.default_rng(seed)
    X = sparse.random(n_rows, n_features, 0.2, "csr", np.float64, rng)
    Y = sparse.random(n_rows, n_labels, min(2 / n_labels, 1), "csr", np.float64, rng)
    Y.data[:] = 1
    return X, Y


def dense(layer: Layer, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """(C, d) weights of all children, and (C,) biases."""
    weight = np.zeros((len(layer.bias), n_features))
    for parent, start in enumerate(layer.children[:-1]):
        for row in range(layer.chunks[parent], layer.chunks[parent + 1]):
            entries = slice(layer.entries[row], layer.entries[row + 1])
            weight[start + layer.child[entries].astype(int), layer.feature[row]] = layer.weight[
                entries
            ]
    return weight, np.asarray(layer.bias)


def the_same(one: Tree, two: Tree) -> bool:
    """Whether two trees have the same bits."""
    pairs = zip(one.layers, two.layers, strict=True)
    return all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes()
        for a, b in pairs
        for name in a.__slots__
    )


def least(X, sign, cost, loss: str) -> np.ndarray:
    """(d + 1,) the optimum, found by SciPy on the objective as it is written in the docstring."""
    U = np.column_stack([X.toarray(), np.ones(X.shape[0])])

    def value(w):
        margin = sign * (U @ w)
        if loss == "logistic":
            rows, slope = np.logaddexp(0, -margin), -1 / (1 + np.exp(margin))
        else:
            short = np.maximum(0, 1 - margin)
            rows, slope = short**2, -2 * short
        return w @ w / 2 + (cost * rows).sum(), w + U.T @ (cost * sign * slope)

    start = np.zeros(U.shape[1])
    tight = {"gtol": 1e-13, "ftol": 0, "maxiter": 10_000, "maxcor": 50}
    return optimize.minimize(value, start, jac=True, method="L-BFGS-B", options=tight).x


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("n_labels", [2, 11])
def test_one_layer_is_the_optimum_of_each_label_against_the_rest(loss, n_labels):
    X, Y = rows_of(n_labels=n_labels)
    seen = np.diff(Y.indptr) > 0  # rows without a label reach no node
    tree = train_tree(
        one_vs_rest_partition(n_labels),
        X,
        Y,
        settings=TrainingSettings(loss=loss, cost=3.0, **EXACT),
    )
    weight, bias = dense(tree.layers[0], X.shape[1])
    for label in range(n_labels):
        sign = 2 * Y[seen, label].toarray().ravel() - 1
        expected = least(X[seen], sign, 3.0, loss)
        np.testing.assert_allclose([*weight[label], bias[label]], expected, atol=2e-6)


@pytest.mark.parametrize("n_features", [40, 3000], ids=["few features", "more than a cache holds"])
@pytest.mark.parametrize(
    ("precision", "tolerance", "atol"), [("float64", 1e-11, 1e-6), ("float32", 1e-4, 1e-3)]
)
def test_a_label_against_the_rest_is_liblinear_with_its_bias(
    n_features, precision, tolerance, atol
):
    from sklearn.preprocessing import normalize
    from sklearn.svm import LinearSVC

    X, Y = rows_of(n_labels=5, n_features=n_features)
    X = normalize(X)  # or liblinear would sweep for minutes
    seen = np.diff(Y.indptr) > 0
    asked = EXACT | {"precision": precision, "tolerance": tolerance}
    tree = train_tree(one_vs_rest_partition(5), X, Y, settings=TrainingSettings(cost=2.0, **asked))
    weight, bias = dense(tree.layers[0], X.shape[1])
    peer = LinearSVC(C=2.0, tol=1e-8, max_iter=100_000, intercept_scaling=1.0, random_state=0)
    peer.fit(X[seen], Y[seen, 3].toarray().ravel())
    wanted = [*peer.coef_[0], *peer.intercept_]
    np.testing.assert_allclose([*weight[3], bias[3]], wanted, atol=atol)


@pytest.mark.parametrize("sweeps", [3, 40])
def test_sweeps_are_counted_in_rows_that_are_seen(sweeps):
    """Rows at rest are not: a sweep over few is a small part of one over all."""
    from discriminant.extreme.model.compiled_train import BLOCK, coordinate_descent

    X, Y = rows_of(n_labels=8, n_features=2000)
    n, sign = X.shape[0], (2 * Y.toarray() - 1).astype(np.int8)
    W, alpha = np.zeros((X.shape[1] + 1, BLOCK)), np.zeros((n, BLOCK))
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    square = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    rest = W, alpha, np.empty(n, np.int32), np.uint64(1), np.zeros(1, np.int8)
    seen = coordinate_descent(*rows, square, sign, np.array([0.5]), 1e-13, sweeps, *rest)
    assert sweeps * n <= seen < (sweeps + 1) * n


def test_as_many_sweeps_as_there_are_numbers_are_no_fewer():
    X, Y = rows_of(n_labels=3)
    found = [
        train_tree(
            one_vs_rest_partition(3),
            X,
            Y,
            settings=TrainingSettings(max_sweeps=sweeps, tolerance=1e-3),
        )
        for sweeps in (1_000_000, sys.maxsize)
    ]
    assert the_same(*found)


def test_one_layer_equals_our_svm_on_rows_with_a_column_of_ones():
    from discriminant import SVM

    X, Y = rows_of(n_labels=4, n_rows=150)
    X, Y = X[np.diff(Y.indptr) > 0], Y[np.diff(Y.indptr) > 0]
    tree = train_tree(one_vs_rest_partition(4), X, Y, settings=TrainingSettings(cost=1.0, **EXACT))
    weight, bias = dense(tree.layers[0], X.shape[1])
    ones = sparse.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    plain = {"ridge": 1 / X.shape[0], "standardize": False, "intercept": False}
    peer = SVM(loss="squared_hinge", tolerance=1e-13, **plain).fit(ones, Y[:, 1].toarray().ravel())
    np.testing.assert_allclose([*weight[1], bias[1]], np.ravel(peer.coef_), atol=1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_row_of_weight_two_is_two_rows(loss):
    X, Y = rows_of(n_labels=9)
    weight = np.random.default_rng(1).integers(0, 3, X.shape[0])
    twice = np.repeat(np.arange(X.shape[0]), weight)
    settings = TrainingSettings(loss=loss, **EXACT)
    one = train_tree(one_vs_rest_partition(9), X, Y, settings=settings, weight=weight.astype(float))
    two = train_tree(one_vs_rest_partition(9), X[twice], Y[twice], settings=settings)
    found, expected = (dense(tree.layers[0], X.shape[1])[0] for tree in (one, two))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_weight_of_an_entry_is_the_cost_of_that_positive(loss):
    X, Y = rows_of(n_labels=3)
    Y.data = np.random.default_rng(2).uniform(0.5, 4, Y.nnz)
    seen = np.diff(Y.indptr) > 0
    tree = train_tree(one_vs_rest_partition(3), X, Y, settings=TrainingSettings(loss=loss, **EXACT))
    weight, bias = dense(tree.layers[0], X.shape[1])
    given = Y[seen, 1].toarray().ravel()
    sign, cost = np.where(given > 0, 1.0, -1.0), np.where(given > 0, given, 1.0)
    expected = least(X[seen], sign, cost, loss)
    np.testing.assert_allclose([*weight[1], bias[1]], expected, atol=2e-6)


def test_a_node_is_trained_on_the_rows_that_reach_it_alone():
    X, Y = rows_of(n_labels=6)
    halves = LabelPartition(np.arange(6), (np.array([0, 6]), np.array([0, 3, 6]), np.arange(7)))
    whole = train_tree(halves, X, Y, settings=TrainingSettings(**EXACT))
    reach = np.asarray(Y[:, 3:].sum(axis=1)).ravel() > 0
    alone = train_tree(
        one_vs_rest_partition(3), X[reach], Y[reach, 3:], settings=TrainingSettings(**EXACT)
    )
    found = dense(whole.layers[1], X.shape[1])[0][3:]
    np.testing.assert_allclose(found, dense(alone.layers[0], X.shape[1])[0], atol=1e-9)


def test_weights_kept_are_those_above_the_threshold():
    X, Y = rows_of(n_labels=30)
    whole, pruned = (
        train_tree(one_vs_rest_partition(30), X, Y, settings=TrainingSettings(threshold=t)).layers[
            0
        ]
        for t in (0.0, 0.3)
    )
    every = dense(whole, X.shape[1])[0]
    np.testing.assert_array_equal(
        dense(pruned, X.shape[1])[0], np.where(np.abs(every) > np.float32(0.3), every, 0)
    )


def test_features_rise_within_a_chunk_and_children_within_a_feature():
    X, Y = rows_of(n_labels=60)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    for layer in train_tree(partition, X, Y, settings=TrainingSettings()).layers:
        parent = np.repeat(np.arange(len(layer.chunks) - 1), np.diff(layer.chunks))
        row = np.repeat(np.arange(len(layer.feature)), np.diff(layer.entries))
        key = (parent[row] * X.shape[1] + layer.feature[row]) * 1000 + layer.child
        assert (np.diff(key) > 0).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.usefixtures("one_by_one")
def test_any_number_of_threads_gives_the_same_bits(loss):
    X, Y = rows_of(n_labels=300, n_rows=1000)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    one, three = (
        train_tree(partition, X, Y, settings=TrainingSettings(loss=loss), threads=threads)
        for threads in (1, 3)
    )
    assert the_same(one, three)


def test_bundles_have_every_task_once_and_the_largest_first():
    work = [7, 0, 300_000, *[0] * 5000, 90_000, 150_000]
    tasks = [Task(0, node, 0, 2, 0, size) for node, size in enumerate(work)]
    bundles = list(bundle_tasks(tasks))
    assert sorted(task.node for some in bundles for task in some) == list(range(len(work)))
    assert [[task.work for task in some] for some in bundles[:2]] == [[300_000], [150_000, 90_000]]
    assert max(map(len, bundles)) <= 1000  # tasks without work too


@pytest.mark.usefixtures("one_by_one")
def test_a_large_node_done_in_several_tasks_has_the_same_bits(monkeypatch):
    X, Y = rows_of(n_labels=100)
    whole = train_tree(one_vs_rest_partition(100), X, Y, settings=TrainingSettings())
    monkeypatch.setattr("discriminant.extreme.model.training_tasks._MAX_WORK", 1)
    assert the_same(
        whole, train_tree(one_vs_rest_partition(100), X, Y, settings=TrainingSettings())
    )


def test_permuted_labels_have_permuted_classifiers():
    X, Y = rows_of(n_labels=80)
    to = np.random.default_rng(3).permutation(80)
    trees = [
        train_tree(
            balanced_partition(label_means(X, some), leaf=10), X, some, settings=TrainingSettings()
        )
        for some in (Y, Y[:, to])
    ]
    assert the_same(*trees)


@pytest.mark.parametrize("kind", [np.int32, np.int64], ids=["int32", "int64"])
def test_rows_of_either_kind_of_number_give_the_same_tree(kind):
    X, Y = rows_of(n_labels=20)
    single = X.astype(np.float32)
    double = sparse.csr_matrix(single.astype(np.float64))
    double.indptr, double.indices = double.indptr.astype(kind), double.indices.astype(kind)
    one, two = (
        train_tree(one_vs_rest_partition(20), some, Y, settings=TrainingSettings())
        for some in (single, double)
    )
    assert the_same(one, two)


def test_a_child_without_siblings_is_certain():
    X, Y = rows_of(n_labels=3)
    uneven = LabelPartition(np.arange(3), (np.array([0, 3]), np.array([0, 1, 3]), np.arange(4)))
    layer = train_tree(uneven, X, Y, settings=TrainingSettings()).layers[1]
    assert (layer.bias[0], layer.chunks[1] - layer.chunks[0]) == (np.inf, 0)


def test_one_label_alone_is_certain():
    X, Y = rows_of(n_labels=1)
    assert train_tree(one_vs_rest_partition(1), X, Y, settings=TrainingSettings()).layers[
        0
    ].bias.tolist() == [np.inf]


def test_labels_that_no_row_has_are_said_no_to():
    X, Y = rows_of(n_labels=4)
    none = sparse.csr_matrix((X.shape[0], 4))
    halves = LabelPartition(np.arange(8), (np.array([0, 8]), np.array([0, 4, 8]), np.arange(9)))
    tree = train_tree(halves, X, sparse.hstack([Y, none]).tocsr(), settings=TrainingSettings())
    assert (tree.layers[0].bias[1] < 0, tree.layers[1].bias[4:].max()) == (True, -1)


def test_a_row_without_features_is_learnt_by_the_bias():
    X = sparse.csr_matrix(np.zeros((4, 3)))
    Y = sparse.csr_matrix(np.array([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=float))
    tree = train_tree(one_vs_rest_partition(2), X, Y, settings=TrainingSettings(**EXACT))
    # minimise b^2 / 2 + 3 (1 - b)^2 + (1 + b)^2: b + 6 (b - 1) + 2 (b + 1) = 0
    assert tree.layers[0].bias[0] == pytest.approx(4 / 9, abs=1e-9)


def test_progress_ends_with_all_of_the_work_done():
    X, Y = rows_of(n_labels=100)
    told: list[tuple[int, int]] = []
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    train_tree(
        partition,
        X,
        Y,
        settings=TrainingSettings(),
        progress=lambda done, of: told.append((done, of)),
    )
    assert told[-1][0] == told[-1][1] == max(done for done, _ in told)


# --- the spool ----------------------------------------------------------------------------


def test_a_tree_by_way_of_a_spool_has_the_same_bits(tmp_path):
    X, Y = rows_of(n_labels=100)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    plain = train_tree(partition, X, Y, settings=TrainingSettings())
    assert the_same(
        plain, train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint=tmp_path / "s")
    )


@pytest.mark.usefixtures("one_by_one")
def test_training_stopped_at_any_part_goes_on_to_the_same_bits(tmp_path):
    X, Y = rows_of(n_labels=100)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    plain, stops = train_tree(partition, X, Y, settings=TrainingSettings()), 0

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    for _ in range(1000):
        try:
            done = train_tree(
                partition,
                X,
                Y,
                settings=TrainingSettings(),
                checkpoint=tmp_path / "s",
                progress=stop,
            )
            break
        except KeyboardInterrupt:
            stops += 1
            if stops > 5:
                stop = None  # type: ignore[assignment]
    assert (stops > 2, the_same(plain, done)) == (True, True)


@pytest.mark.parametrize("cut", [1, 30, 100])
def test_a_part_not_written_to_its_end_is_done_again(tmp_path, cut):
    X, Y = rows_of(n_labels=100)
    settings, place = TrainingSettings(), tmp_path / "s"
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)

    def stop(done: int, of: int) -> None:
        if done > of / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_tree(partition, X, Y, settings=settings, checkpoint=place, progress=stop, threads=1)
    (parts,) = place.glob("level-*.parts")
    parts.write_bytes(parts.read_bytes()[:-cut])
    again = train_tree(partition, X, Y, settings=settings, checkpoint=place)
    assert the_same(train_tree(partition, X, Y, settings=settings), again)


def stopped(place):
    """A partition and rows, and a spool of them whose first levels are done."""
    X, Y = rows_of(n_labels=100)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)

    def stop(done: int, of: int) -> None:
        if (place / "level-1").is_dir():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_tree(
            partition, X, Y, settings=TrainingSettings(), checkpoint=place, progress=stop, threads=1
        )
    return partition, X, Y


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 // 8 * 8])


def with_another_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [halved, with_another_byte, Path.unlink])
@pytest.mark.parametrize("name", ["weight", "entries", "bias", "kinds.json"])
def test_a_level_that_was_harmed_is_told_and_done_again_once_removed(tmp_path, harm, name):
    place = tmp_path / "s"
    partition, X, Y = stopped(place)
    harm(place / "level-1" / name)
    with pytest.raises(CheckpointError, match=r"level-1 is damaged .*Remove it"):
        train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint=place)
    shutil.rmtree(place / "level-1")
    again = train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint=place)
    assert the_same(train_tree(partition, X, Y, settings=TrainingSettings()), again)


def test_a_spool_killed_before_its_first_file_was_whole_is_begun_anew(tmp_path):
    X, Y = rows_of(n_labels=20)
    place = tmp_path / "s"
    place.mkdir()
    (place / "lock").write_text("process 1 on there")
    (place / ".training.json.0a1b2c3d").write_text('{"for')
    found = train_tree(
        one_vs_rest_partition(20), X, Y, settings=TrainingSettings(), checkpoint=place
    )
    assert the_same(train_tree(one_vs_rest_partition(20), X, Y, settings=TrainingSettings()), found)


@pytest.mark.parametrize("content", ["[]", "5", "null", "[" * 100_000], ids=lambda text: text[:9])
@pytest.mark.parametrize("name", ["training.json", "level-1/kinds.json"])
def test_spool_of_other_content_is_damaged(tmp_path, name, content):
    place = tmp_path / "s"
    partition, X, Y = stopped(place)
    (place / name).write_text(content)
    with pytest.raises(CheckpointError, match=r"is damaged .*Remove it"):
        train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint=place)


KILLED = """
import numpy as np, sys, time
from scipy import sparse
sys.path.insert(0, {tests!r})
from test_training import rows_of, TrainingSettings, balanced_partition, label_means, train_tree
from discriminant.extreme.model import train
train._MIN_WORK = 1
X, Y = rows_of(n_labels=100)
progress = lambda done, total: (print(done, flush=True), time.sleep(0.02))
partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint={checkpoint!r},
           progress=progress)
"""


def test_training_that_was_killed_goes_on_to_the_same_bits(tmp_path):
    place = tmp_path / "s"
    script = KILLED.format(tests=str(Path(__file__).parent), checkpoint=str(place))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    X, Y = rows_of(n_labels=100)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    begun = place.exists() and not (place / "level-3").exists()
    again = train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint=place)
    assert (begun, the_same(train_tree(partition, X, Y, settings=TrainingSettings()), again)) == (
        True,
        True,
    )


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    place = tmp_path / "s"
    script = KILLED.format(tests=str(Path(__file__).parent), checkpoint=str(place))
    X, Y = rows_of(n_labels=100)
    partition = balanced_partition(label_means(X, Y), arity=4, leaf=10)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(CheckpointError, match=rf"process {process.pid} on .* is using now"):
            train_tree(partition, X, Y, settings=TrainingSettings(), checkpoint=place)
        process.send_signal(signal.SIGKILL)
    again = train_tree(
        partition, X, Y, settings=TrainingSettings(), checkpoint=place
    )  # the lock died with its owner
    assert the_same(train_tree(partition, X, Y, settings=TrainingSettings()), again)


def test_two_threads_cannot_train_in_one_folder_either(tmp_path):
    X, Y = rows_of(n_labels=20)

    def told(done: int, of: int) -> None:
        train_tree(
            one_vs_rest_partition(20), X, Y, settings=TrainingSettings(), checkpoint=tmp_path / "s"
        )

    with pytest.raises(CheckpointError, match=f"process {os.getpid()} on"):
        train_tree(
            one_vs_rest_partition(20),
            X,
            Y,
            settings=TrainingSettings(),
            checkpoint=tmp_path / "s",
            progress=told,
        )


def test_a_process_killed_before_it_wrote_anything_is_no_hindrance(tmp_path):
    (tmp_path / "lock").write_text("process 1 on a machine long gone")
    X, Y = rows_of(n_labels=20)
    tree = train_tree(
        one_vs_rest_partition(20), X, Y, settings=TrainingSettings(), checkpoint=tmp_path
    )
    assert the_same(train_tree(one_vs_rest_partition(20), X, Y, settings=TrainingSettings()), tree)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"cost": 2.0}, "settings"),
        ({"rows": 1.5}, "rows"),
        ({"labels": 3.0}, "labels"),
        ({"seed": 1}, "settings"),
    ],
)
def test_a_spool_of_other_work_is_refused(tmp_path, change, word):
    X, Y = rows_of(n_labels=20)
    train_tree(
        one_vs_rest_partition(20), X, Y, settings=TrainingSettings(), checkpoint=tmp_path / "s"
    )
    X, Y = X * change.pop("rows", 1.0), Y * change.pop("labels", 1.0)
    with pytest.raises(CheckpointError, match=word):
        train_tree(
            one_vs_rest_partition(20),
            X,
            Y,
            settings=TrainingSettings(**change),
            checkpoint=tmp_path / "s",
        )


def test_a_folder_of_other_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    X, Y = rows_of(n_labels=20)
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        train_tree(
            one_vs_rest_partition(20), X, Y, settings=TrainingSettings(), checkpoint=tmp_path
        )
    assert os.listdir(tmp_path) == ["letter.txt"]


def refused(place: Path) -> str:
    """What is said of a folder that training cannot keep its parts in."""
    X, Y = rows_of(n_labels=20)
    with pytest.raises(CheckpointError) as caught:
        train_tree(one_vs_rest_partition(20), X, Y, settings=TrainingSettings(), checkpoint=place)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"), [("letter.txt/s", "Not a directory"), ("s" * 300, "name too long")]
)
def test_a_folder_that_cannot_be_is_told_by_its_name_and_the_way_out(tmp_path, name, reason):
    (tmp_path / "letter.txt").write_text("dear")
    said = refused(tmp_path / name)
    wanted = (str(tmp_path / name), reason, "Name another folder")
    assert [word for word in wanted if word not in said] == []


@pytest.mark.parametrize("step", [(Path, "mkdir"), (os, "open")], ids=["to make", "to write in"])
def test_a_folder_that_one_may_not_write_to_is_told_too(tmp_path, monkeypatch, step):
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(*step, denied)
        said = refused(tmp_path / "s")
    assert said.startswith(f"The checkpoint folder {tmp_path / 's'} cannot be used: Permission")


def test_a_disk_that_is_full_is_told_and_what_was_kept_stays(tmp_path):
    place, kind = tmp_path / "s", np.dtype(np.float32)
    none, child = np.zeros(0, np.int32), np.zeros(0, np.uint16)
    part = ChunkPart(none, none, child, np.zeros(0, np.float32), np.zeros(2, np.float32))
    told = pytest.raises(
        CheckpointError, match=f"{place} .*: No space left.* stay in the folder, and the same"
    )
    with told, closing(DiskStore(place, kind, {})) as spool:
        spool.finished_parts(1)
        spool.add_part(Task(1, 0, 0, 2, 0, 5), part)
        spool.file = Path("/dev/full").open("r+b")  # noqa: SIM115 -- its close fails as well
        spool.add_part(Task(1, 1, 2, 4, 0, 5), part)
    with closing(DiskStore(place, kind, {})) as again:  # the lock was let go
        assert again.finished_parts(1) == {(0, 0)}


@pytest.fixture
def heeding():
    """SIGINT interrupts, also where the tests were started so that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding")
def test_an_interrupt_does_not_wait_for_a_large_node_to_end():
    X, Y = rows_of(n_labels=8, n_rows=2000)
    endless = TrainingSettings(precision="float64", tolerance=0.0, max_sweeps=2**40)
    threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        train_tree(one_vs_rest_partition(8), X, Y, settings=endless, threads=1)


def test_a_few_nodes_tell_how_large_the_tree_will_be():
    X, Y = rows_of(n_labels=2000, n_rows=4000)
    partition = balanced_partition(label_means(X, Y), arity=8, leaf=10)
    told = estimate_tree(partition, X, Y, settings=TrainingSettings(), share=0.2)
    tree = train_tree(partition, X, Y, settings=TrainingSettings())
    size = sum(getattr(layer, name).nbytes for layer in tree.layers for name in layer.__slots__)
    assert told.size == pytest.approx(size, rel=0.15)


def test_a_first_row_that_counts_nothing_is_no_fault():
    X, Y = rows_of(n_labels=10)
    weight = np.ones(X.shape[0])
    weight[0] = 0
    with np.errstate(all="raise"):
        left_out = train_tree(
            one_vs_rest_partition(10), X, Y, settings=TrainingSettings(), weight=weight
        )
    without = train_tree(
        one_vs_rest_partition(10), X[1:], Y[1:], settings=TrainingSettings(), weight=weight[1:]
    )
    assert the_same(left_out, without)
