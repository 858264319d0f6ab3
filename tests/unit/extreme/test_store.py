"""Label trees in files: the same to the last bit, left where they lie, and never believed."""

import mmap
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.errors import StateError, StoredFileError
from discriminant.extreme.model.fitted_tree import Forest, Layer, Tree
from discriminant.store import kinds

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 40), density=0.2, format="csr", rng=rng)
    Y = sparse.random_array((200, 30), density=0.08, format="csr", rng=rng)
    return X, (Y > 0).astype(np.int8)


@pytest.fixture(scope="module")
def model(rows):
    return dd.LabelTree(trees=2, arity=4, leaf=4).fit(*rows)


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
@pytest.mark.parametrize("mapped", [None, True, False])
def test_a_saved_tree_answers_to_the_last_bit(rows, tmp_path, precision, mapped):
    model = dd.LabelTree(trees=2, arity=4, leaf=4, precision=precision).fit(*rows)
    model.save(tmp_path / "tree.dd")
    again = dd.load(tmp_path / "tree.dd", mmap=mapped)
    for found, wanted in zip(again.predict_topk(rows[0]), model.predict_topk(rows[0]), strict=True):
        assert np.array_equal(found, wanted)


def test_a_label_tree_is_left_in_its_file_unless_told_otherwise(model, tmp_path):
    model.save(tmp_path / "tree.dd")

    def base_of(found):
        held = found.forest_.trees[0].layers[-1].weight
        while isinstance(held, np.ndarray):
            held = held.base
        return held

    assert isinstance(base_of(dd.load(tmp_path / "tree.dd")), mmap.mmap)
    assert not isinstance(base_of(dd.load(tmp_path / "tree.dd", mmap=False)), mmap.mmap)


@pytest.mark.parametrize("mapped", [True, False])
def test_a_file_with_one_bit_changed_is_refused(model, tmp_path, mapped):
    model.save(tmp_path / "tree.dd")
    held = bytearray((tmp_path / "tree.dd").read_bytes())
    held[-3] ^= 4
    (tmp_path / "tree.dd").write_bytes(held)
    with pytest.raises(StoredFileError, match="was changed after it was saved"):
        dd.load(tmp_path / "tree.dd", mmap=mapped)


def test_sets_names_and_a_folder_of_the_fit_are_no_hindrance(rows, tmp_path):
    X, Y = rows
    sets = [[f"label {c}" for c in Y[[i]].indices] for i in range(200)]
    model = dd.LabelTree(trees=1, checkpoint=tmp_path / "parts", progress=print)
    model.fit(X, sets).save(tmp_path / "tree.dd")
    said = model.predict(X)
    del model
    shutil.rmtree(tmp_path / "parts")  # of no more use once it is saved
    again = dd.load(tmp_path / "tree.dd")
    assert again.predict(X) == said and again.checkpoint is None


# Every way in which a loop could be led beyond the end of an array.
LAYER_FAULTS = {
    "children": lambda of: {"children": np.append(of.children[:-1], of.children[-1] + 1)},
    "children that fall": lambda of: {"children": of.children[::-1].copy()},
    "chunks": lambda of: {"chunks": np.append(of.chunks[:-1], of.chunks[-1] + 1)},
    "negative chunks": lambda of: {"chunks": of.chunks - 1},
    "a parent more": lambda of: {"chunks": np.append(of.chunks, of.chunks[-1])},
    "entries": lambda of: {"begins": np.append(of.begins[:-1], 10**12)},
    "negative entries": lambda of: {"begins": of.begins - 1},
    "too few entries": lambda of: {"begins": of.begins[:-1]},
    "entries that fall": lambda of: {"beyond": of.beyond[::-1].copy()},
    "an entry too few": lambda of: {"beyond": of.beyond[:-1]},
    "a weight too few": lambda of: {"weight": of.weight[:-1]},
    "children beyond": lambda of: {"places": np.full_like(of.places, 255)},
    "a place too few": lambda of: {"places": of.places[:-1]},
    "places of another kind": lambda of: {"places": of.places.view(np.int8)},
    "marks astray": lambda of: {"marks": of.marks + 1 if len(of.marks) else np.zeros(1, np.int64)},
    "negative features": lambda of: {"feature": of.feature.astype(np.int32) - 100},
    "features that fall": lambda of: {"feature": of.feature[::-1].copy()},
    "another type": lambda of: {"feature": of.feature.astype(np.int64)},
    "no vector": lambda of: {"bias": of.bias[None]},
    "not a number": lambda of: {"weight": np.full_like(of.weight, np.nan)},
    "infinite": lambda of: {"weight": np.full_like(of.weight, np.inf)},
    "no bias": lambda of: {"bias": np.full_like(of.bias, np.nan)},
}


def fields(held):
    return {name: getattr(held, name) for name in held.__slots__}


@pytest.fixture(scope="module", params=["bits", "a list"])
def layer(request, model):
    """Children as bits, as they are where rows have many; and listed."""
    bits = model.forest_.trees[0].layers[-1]
    if request.param == "bits":
        return bits
    listed = {"marks": bits.marks[:0], "places": bits.child.astype(np.uint8)}
    return replace(bits, **listed)


@pytest.mark.parametrize("change", LAYER_FAULTS.values(), ids=LAYER_FAULTS)
def test_a_layer_that_leads_astray_is_refused(layer, change):
    assert kinds.invalid_reason(type(layer), fields(layer)) is None
    assert kinds.invalid_reason(type(layer), fields(layer) | change(layer)) is not None


TREE_FAULTS = {
    "a label twice": lambda of: {"label_of": np.zeros_like(of.label_of)},
    "a label too many": lambda of: {"label_of": np.append(of.label_of, np.int32(30))},
    "a label beyond": lambda of: {"label_of": of.label_of + np.int32(1)},
    "no layers": lambda of: {"layers": ()},
    "layers astray": lambda of: {"layers": of.layers[::-1]},
}


@pytest.mark.parametrize("change", TREE_FAULTS.values(), ids=TREE_FAULTS)
def test_a_tree_whose_parts_do_not_fit_is_refused(model, change):
    tree = model.forest_.trees[0]
    assert kinds.invalid_reason(Tree, fields(tree)) is None
    assert kinds.invalid_reason(Tree, fields(tree) | change(tree)) is not None


def test_a_forest_with_features_beyond_its_rows_is_refused(model):
    held = fields(model.forest_)
    assert kinds.invalid_reason(Forest, held) is None
    assert "feature" in kinds.invalid_reason(Forest, held | {"n_features": 3})


def test_more_children_than_their_type_can_number_are_refused():
    none = np.zeros(1, np.int64)
    layer = Layer.of(
        np.array([0, 300]), np.array([0, 0]), none[:0], none, none[:0].astype(np.uint8),
        np.zeros(0, np.float32), np.zeros(300, np.float32),
    )  # fmt: skip
    assert "uint8" in kinds.invalid_reason(type(layer), fields(layer))


def test_a_bit_moved_to_another_row_is_refused(model):
    layer = model.forest_.trees[0].layers[-1]
    rows = np.unpackbits(layer.places[:, None], axis=1, bitorder="little")[:, :4].sum(axis=1)
    more, fewer = np.flatnonzero(rows < 4)[0], np.flatnonzero(rows > 0)[-1]
    places = layer.places.copy()
    places[more] |= places[more] + 1  # the lowest bit that is not set
    places[fewer] &= places[fewer] - 1
    found = kinds.invalid_reason(type(layer), fields(layer) | {"places": places})
    assert found == "the number of bits of a row differs from that of its weights"


def test_a_tree_that_could_not_be_loaded_is_not_saved(model, rows, tmp_path):
    spoilt = dd.LabelTree(trees=2, arity=4, leaf=4).fit(*rows)
    spoilt.forest_ = replace(model.forest_, n_features=3)
    with pytest.raises(StateError, match="feature"):
        spoilt.save(tmp_path / "tree.dd")
