"""Trees made of class moments: held to LDA on grouped classes, of ours and of scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import discriminant as dd
from discriminant import LDA, LabelTree
from discriminant.errors import LabelTreeError, MomentsMismatchError, OptionError, WeightError


def drawn(K, d, n, *, seed=0, offset=0.0, spread=1.0):
    """Classes about means of their own, in correlated columns; the last are rarer."""
    rng = np.random.default_rng(seed)
    mean = spread * rng.normal(size=(K, d))
    mixing = np.eye(d) + rng.normal(size=(d, d)) / 3
    share = 1.0 / np.arange(1, K + 1) ** 0.5
    y = np.concatenate([np.arange(K), rng.choice(K, n - K, p=share / share.sum())])
    return offset + (mean[y] + rng.normal(size=(n, d))) @ mixing, y


def sides(model):
    """The labels on both sides of the root."""
    tree = model.forest_.trees[0]
    right = model.classes_[tree.label_of]
    at = _leaves_of_first_child(tree)
    return right[:at].tolist(), right[at:].tolist()


def _leaves_of_first_child(tree):
    first = np.array([0, 1])  # children of the root that are the first; then all below it
    for layer in tree.layers[1:]:
        first = layer.children[first]
    return int(first[1])


def test_two_classes_are_told_as_by_lda():
    X, y = drawn(2, 5, 300)
    tree = LabelTree(tree="moments").fit(X, y)
    lda = LDA(denominator="ml").fit(X, y)
    np.testing.assert_allclose(tree.predict_proba(X), lda.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(("K", "d"), [(3, 4), (12, 5), (40, 30), (9, 40)])
def test_the_root_is_lda_of_the_grouped_classes(K, d):
    X, y = drawn(K, d, 2000, seed=K)
    model = LabelTree(tree="moments").fit(X, y)
    left, right = sides(model)
    grouped = np.isin(y, right)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(X, grouped)
    ours = LDA(denominator="ml").fit_moments(dd.moments(X, y).group({"l": left, "r": right}))
    root = model.forest_.trees[0].layers[0]
    margin = (X - model.scale_[0]) @ root.weight.reshape(d, 2)[:, 1] + root.bias[1]
    np.testing.assert_allclose(margin, peer.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(margin, ours.decision_function(X), rtol=1e-9, atol=1e-9)


def test_probabilities_of_all_leaves_sum_to_one():
    X, y = drawn(37, 6, 1500)
    model = LabelTree(tree="moments", beam=37).fit(X, y)
    codes, scores = model.predict_topk(X[:50], k=37)
    assert (codes >= 0).all()
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1.0, atol=1e-12)


def test_moments_are_enough_and_add():
    X, y = drawn(25, 8, 1200, seed=3)
    whole = LabelTree(tree="moments").fit(X, y)
    parts = dd.moments(X[:500], y[:500], detail="pooled") + dd.moments(
        X[500:], y[500:], detail="pooled"
    )
    summed = LabelTree(tree="moments").fit_moments(parts)
    for a, b in zip(whole.predict_topk(X, 5), summed.predict_topk(X, 5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_labels_permuted_leaves_renamed():
    X, y = drawn(30, 8, 1200, seed=4)
    new = np.random.default_rng(1).permutation(30)
    one, other = LabelTree(tree="moments").fit(X, y), LabelTree(tree="moments").fit(X, new[y])
    assert (new[one.predict(X)] == other.predict(X)).all()


@pytest.mark.parametrize("offset", [2.0**10, 2.0**20, 2.0**33])
def test_an_offset_changes_nothing(offset):
    X, y = drawn(20, 5, 1000, seed=5)
    X = np.round(64 * X) / 64  # so that no row is rounded by the offset
    near, far = (LabelTree(tree="moments").fit(X + o, y) for o in (0.0, offset))
    got, want = far.predict_proba(X + offset), near.predict_proba(X)
    np.testing.assert_allclose(got, want, atol=1e-11)


def forks(tree, d):
    """Every node with two children: the labels of both, the slopes and the intercept of m."""
    for at, layer in enumerate(tree.layers):
        begins = np.arange(len(layer.bias) + 1)  # where the leaves of each child begin
        for below in tree.layers[at + 1 :]:
            begins = below.children[begins]
        weights = layer.weight.reshape(-1, d, 2)
        inner = np.flatnonzero(np.diff(layer.children) == 2)
        for weight, left in zip(weights, layer.children[inner], strict=True):
            ends = begins[left : left + 3]
            sides = [tree.label_of[lo:hi] for lo, hi in pairwise(ends)]
            assert (weight[:, 0] == -weight[:, 1]).all() and layer.bias[left] == -layer.bias[
                left + 1
            ]
            yield *sides, weight[:, 1], layer.bias[left + 1]


def test_every_node_of_a_thousand_classes_is_lda_of_its_two_sides():
    """K means and one scatter are all it needs; here it is worked out anew, node by node."""
    K, d = 1000, 32
    X, y = drawn(K, d, 30_000, seed=6, spread=3.0)
    moments = dd.moments(X, y, detail="pooled")
    model = LabelTree(tree="moments").fit_moments(moments)
    n, X = np.bincount(y).astype(float), X - model.scale_[0]
    mean = np.array([X[y == k].mean(axis=0) for k in range(K)])
    shared = (X - mean[y]).T @ (X - mean[y]) / len(X)
    found = list(forks(model.forest_.trees[0], d))
    assert len(found) == K - 1
    for left, right, slope, intercept in found:
        a, b = (np.average(mean[side], axis=0, weights=n[side]) for side in (left, right))
        apart = np.concatenate([mean[left] - a, mean[right] - b])
        heavy = np.concatenate([n[left], n[right]])
        within = shared + (apart.T * heavy) @ apart / heavy.sum()
        want = np.linalg.solve(within, b - a)
        level = np.log(n[right].sum() / n[left].sum()) - want @ (a + b) / 2
        np.testing.assert_allclose(slope, want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
        np.testing.assert_allclose(intercept, level, rtol=1e-8, atol=1e-7)


def test_classes_at_one_point_are_told_by_their_shares():
    X = np.tile(np.array([[0.0], [1.0]]), (50, 1))
    y = np.repeat(["a", "b", "c"], [20, 30, 50])
    model = LabelTree(tree="moments").fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0.3]]), [[0.2, 0.3, 0.5]], atol=1e-12)


def test_it_keeps_to_the_file(tmp_path):
    X, y = drawn(25, 8, 1200, seed=7)
    model = LabelTree(tree="moments").fit(X, y)
    model.save(tmp_path / "m")
    again = dd.load(tmp_path / "m")
    for a, b in zip(model.predict_topk(X, 5), again.predict_topk(X, 5), strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_in_parts_do_as_well(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    X, y = drawn(12, 3, 900, seed=8)
    names = ["a", "b", "c"]
    pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), tmp_path / "t.parquet")
    model = LabelTree(tree="moments").fit(dd.rows(str(tmp_path / "t.parquet"), target="y"))
    whole = LabelTree(tree="moments").fit(X, y)
    named = pa.table(dict(zip(names, X.T, strict=True)))
    np.testing.assert_allclose(model.predict_proba(named), whole.predict_proba(X), atol=1e-12)


def test_what_it_cannot_be_made_of():
    X, y = drawn(4, 3, 100)
    with pytest.raises(LabelTreeError, match="one label for each row"):
        LabelTree(tree="moments").fit(X, [{1, 2}] * 100)
    with pytest.raises(LabelTreeError, match="tree='moments'"):
        LabelTree().fit_moments(dd.moments(X, y))
    with pytest.raises(OptionError, match="fit"):
        LabelTree(tree="moments").fit_moments(X)
    with pytest.raises(MomentsMismatchError, match="pooled"):
        LabelTree(tree="moments").fit_moments(dd.moments(X, y, detail="diagonal"))
    none = dd.moments(X, y, weight=(y > 0).astype(float))
    with pytest.raises(WeightError, match="0"):
        LabelTree(tree="moments").fit_moments(none)
