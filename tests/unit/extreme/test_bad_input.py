"""What is wrong is named; what is only odd gets the right answer."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from discriminant import LabelTree
from discriminant.errors import (
    HierarchyError,
    InfiniteValueError,
    LabelError,
    LabelSetError,
    LabelTreeError,
    MissingValueError,
    OptionError,
    ShapeError,
    UnlabelledRowsWarning,
    UnseenLabelsWarning,
)
from discriminant.extreme.label_tree import to_half

X = sparse.csr_array(np.eye(6)[[0, 1, 2, 3, 4, 5, 0, 1]])
Y = [["a"], ["a", "b"], ["b"], ["c"], ["c", "d"], ["d"], ["a"], ["b"]]


def spoilt(value):
    rows = X.copy()
    rows.data[3] = value
    return rows


def matrix(rows, columns, shape, values=None):
    values = np.ones(len(rows)) if values is None else values
    return sparse.csr_array((values, (rows, columns)), shape=shape)


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "labels", "error", "said"),
    [
        (spoilt(np.nan), Y, MissingValueError, "Row 3 .* column 'x3'"),
        (spoilt(np.inf), Y, InfiniteValueError, "Row 3 .* column 'x3'"),
        (spoilt(np.nan).toarray(), Y, MissingValueError, "Row 3 .* column 'x3'"),
        (spoilt(1e60), Y, LabelTreeError, "Row 3 .* 'x3' is too large for float32"),
        (spoilt(1e60).toarray(), Y, LabelTreeError, "Row 3 .* 'x3' is too large for float32"),
        (X, None, LabelError, "LabelTree requires y"),
        (X, Y[:5], ShapeError, "y has 5 entries for 8 rows"),
        (X, np.ones((5, 3)), ShapeError, "y has 5 entries for 8 rows"),
        (X[:0], Y[:0], ShapeError, "0 sample"),
        (X[:, :0], Y, ShapeError, "0 feature"),
        (X, ["a"] * 8, LabelError, "Only one class is present"),
        (X, [["a"]] * 8, LabelSetError, r"only one label \('a'\)"),
        (X, matrix([0], [0], (8, 1)), LabelSetError, "only one label"),
        (X, [[]] * 8, LabelSetError, "None of the 8 rows has a label"),
        (X, sparse.csr_array((8, 3)), LabelSetError, "None of the 8 rows has a label"),
        (X, [*Y[:7], "b"], LabelSetError, r"y\[7\] is a str"),
        (X, matrix([0, 2], [1, 2], (8, 3), [1, -1]), LabelSetError, r"y\[2, 2\] is -1"),
        (X, matrix([0, 2], [1, 2], (8, 3), [1, np.nan]), LabelSetError, r"y\[2, 2\] is nan"),
        (X, [["a", 1], *Y[1:]], LabelError, "mixed types"),
    ],
)
@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
def test_rows_and_labels_that_cannot_be_used_are_named(rows, labels, error, said):
    with pytest.raises(error, match=said):
        LabelTree().fit(rows, labels)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"arity": 1}, "arity=1 .* 2 or more"),
        ({"arity": 2.5}, "arity=2.5 .* 2 or more"),
        ({"leaf": 1}, "leaf=1 .* 2 or more"),
        ({"trees": 0}, "trees=0 .* 1 or more"),
        ({"beam": True}, "beam=True .* 1 or more"),
        ({"threads": 0}, "threads=0 .* 1 or more, or None"),
        ({"cost": -1}, "cost=-1 .* positive"),
        ({"tolerance": 0}, "tolerance=0 .* positive"),
        ({"threshold": np.nan}, "threshold=nan .* from 0 on"),
        ({"loss": "hinge"}, "loss='hinge' .* 'squared_hinge' or 'logistic'"),
        ({"path": "sum"}, "path='sum' .* 'hinge' or 'logistic'"),
        ({"precision": "int8"}, "precision='int8' .* 'float16'"),
        ({"weighting": "idf"}, "weighting='idf' .* 'propensity'"),
        ({"tree": "oak"}, "tree='oak' .* 'balanced'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_option_that_cannot_be_is_named(options, said):
    with pytest.raises(OptionError, match=said):
        LabelTree(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("hierarchy", "said"),
    [
        ([("a", "p"), ("b", "p"), ("c", "q"), ("d", "q"), ("p", "q"), ("q", "p")], "cycle.*'p'"),
        ([["a", "b"], ["c"]], "1 label.* not in the hierarchy: 'd'"),
        ([["a", "b", "c"], ["c", "d"]], "Label 'c' occurs 2 times"),
        ([["a", "b"], ["c", "d", "e"]], "are not labels: 'e'"),
        (7, "from a int"),
    ],
    ids=["cycle", "orphan", "duplicate", "unknown", "no hierarchy"],
)
def test_a_hierarchy_that_is_no_tree_over_the_labels_is_named(hierarchy, said):
    with pytest.raises(HierarchyError, match=said):
        LabelTree(tree=hierarchy).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [
        (X[:, :4], ShapeError, "X has 4 features, but LabelTree is expecting 6"),
        (X[:0], ShapeError, "0 sample"),
        (spoilt(np.nan), MissingValueError, "Row 3"),
        (spoilt(1e39), LabelTreeError, "Row 3"),
    ],
)
def test_rows_to_predict_that_cannot_be_used_are_named(rows, error, said):
    model = LabelTree().fit(X, Y)
    with pytest.raises(error, match=said):
        model.predict_topk(rows)


def astray(change):
    rows = X.copy()
    change(rows)
    return rows


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.indices.__setitem__(2, 600_000_000),
        lambda rows: rows.indices.__setitem__(2, -1),
        lambda rows: rows.indptr.__setitem__(3, 1_000_000),
        lambda rows: rows.indptr.__setitem__(8, 1_000_000),
        lambda rows: rows.indptr.__setitem__(0, -5),
    ],
    ids=["a column beyond", "a column before", "a row astray", "an end astray", "a start astray"],
)
def test_a_sparse_matrix_that_is_not_sound_cannot_lead_a_loop_astray(change):
    model = LabelTree().fit(X, Y)
    with pytest.raises(LabelTreeError, match="not valid"):
        model.predict_topk(astray(change))


def test_probabilities_too_many_to_be_made_are_refused_with_the_way_out():
    model = LabelTree().fit(X, Y)
    many = sparse.csr_array((1 << 27, 6))
    with pytest.raises(LabelTreeError, match="Pass k for a sparse matrix"):
        model.predict_proba(many)


def test_weights_beyond_half_precision_are_told():
    tree = LabelTree().fit(X, Y).forest_.trees[0]
    large = replace(tree.layers[0], weight=tree.layers[0].weight * np.float32(1e6))
    with pytest.raises(
        LabelTreeError, match="too large for float16, whose largest number is 65504"
    ):
        to_half(replace(tree, layers=(large,)))


# --- told, and answered ---------------------------------------------------------------------------


def test_labels_never_seen_are_told_and_named():
    labels = matrix(np.arange(8), [1, 1, 4, 4, 1, 1, 4, 4], (8, 7))
    with pytest.warns(UnseenLabelsWarning, match=r"5 of 7 labels have no row.*'0', '2', '3'"):
        model = LabelTree().fit(X, labels)
    codes, _ = model.predict_topk(X, k=1)
    assert set(codes.ravel().tolist()) <= {1, 4}


def test_rows_without_labels_are_told_and_change_nothing():
    more = sparse.vstack([X, X[:3]], format="csr")
    with pytest.warns(UnlabelledRowsWarning, match="3 of 11 rows have no label"):
        model = LabelTree().fit(more, [*Y, [], [], []])
    wanted = LabelTree().fit(X, Y).predict_topk(X)
    assert np.array_equal(model.predict_topk(X)[1], wanted[1])


def test_rows_without_features_are_answered_by_what_is_frequent():
    rows = sparse.vstack([X, sparse.csr_array((4, 6))], format="csr")
    model = LabelTree().fit(rows, [*Y, ["d"], ["d"], ["d"], ["d"]])
    codes, _ = model.predict_topk(sparse.csr_array((2, 6)), k=1)
    assert model.classes_[codes].tolist() == [["d"], ["d"]]


def test_two_classes_are_told_apart():
    model = LabelTree().fit([[0.0], [0.2], [0.8], [1.0]], ["n", "n", "y", "y"])
    assert model.predict([[0.0], [1.0]]).tolist() == ["n", "y"]


def test_more_labels_than_rows_are_no_hindrance():
    labels = [[f"{i}-{j}" for j in range(5)] for i in range(8)]
    distinct = sparse.csr_array(np.eye(8))
    model = LabelTree(leaf=4, arity=2, cost=100.0).fit(distinct, labels)
    codes, _ = model.predict_topk(distinct, k=5)
    assert [sorted(model.classes_[row].tolist()) for row in codes] == labels


def test_more_labels_than_there_are_is_asked_for_nothing_beyond():
    codes, scores = LabelTree().fit(X, Y).predict_topk(X, k=9)
    assert (codes[:, 4:] == -1).all() and np.isneginf(scores[:, 4:]).all()


def test_columns_without_an_entry_mean_nothing():
    wide = sparse.csr_array((X.data, X.indices, X.indptr), shape=(8, 1_000_000))
    wanted = LabelTree().fit(X, Y).predict_topk(X)
    assert np.array_equal(LabelTree().fit(wide, Y).predict_topk(wide)[0], wanted[0])
