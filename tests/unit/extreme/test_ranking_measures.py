"""Measures of ranked labels: by hand, by brute force, by napkinXC and scikit-learn."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.metrics import ndcg_score

from discriminant.errors import InputError, RankedLabelsError
from discriminant.extreme.model.propensity import inverse_propensity, propensity
from discriminant.extreme.ranking_measures import TopK
from tests.shared.paths import GOLDEN

FROZEN = json.loads((GOLDEN / "top_k.json").read_text())
MEASURES = ("precision", "recall", "ndcg", "ps_precision", "ps_ndcg")


def indicator(sets, labels):
    found = np.zeros((len(sets), labels))
    for row, own in enumerate(sets):
        found[row, list(own)] = 1
    return sparse.csr_matrix(found)


def drawn(seed, n=30, labels=12, k=5):
    """Lists of labels, some of them short, and sets of labels, some of them empty."""
    rng = np.random.default_rng(seed)
    truth = sparse.csr_matrix((rng.random((n, labels)) < 0.25).astype(float))
    lists = np.array([rng.permutation(labels)[:k] for _ in range(n)])
    lists[rng.random(n) < 0.2, k - 2 :] = -1
    return lists, truth, 1 + 4 * rng.random(labels)


def by_hand(lists, truth, value):
    """The five measures row by row, as the formulas of the module say."""
    k, sets = lists.shape[1], [set(row.indices) for row in truth]
    told = {name: np.zeros(k) for name in MEASURES}
    for at in range(1, k + 1):
        discount = [1 / np.log2(r + 2) for r in range(at)]
        hits = [[label in own for label in row[:at]] for row, own in zip(lists, sets, strict=True)]
        best = [sorted((value[label] for label in own), reverse=True)[:at] for own in sets]
        worth = value[lists[:, :at]] * (lists[:, :at] >= 0)
        won = [hit * one for hit, one in zip(np.array(hits), worth, strict=True)]
        some = [i for i, own in enumerate(sets) if own]
        ideal = [sum(discount[: len(own)]) for own in sets]
        told["precision"][at - 1] = np.mean([sum(hit) / at for hit in hits])
        told["recall"][at - 1] = np.mean([sum(hits[i]) / len(sets[i]) for i in some])
        told["ndcg"][at - 1] = np.mean([np.dot(hits[i], discount) / ideal[i] for i in some])
        told["ps_precision"][at - 1] = sum(map(sum, won)) / sum(map(sum, best))
        told["ps_ndcg"][at - 1] = sum(np.dot(won[i], discount) / ideal[i] for i in some) / sum(
            np.dot(best[i], discount[: len(best[i])]) / ideal[i] for i in some
        )
    return told


# --- what they are --------------------------------------------------------------------------------


def test_two_rows_worked_out_with_pencil_and_paper():
    # Row 0 has labels 0, 1, 2 and the list 0, 3, 1; row 1 has label 2 and the list 0, 2, 1.
    found = TopK.of([[0, 3, 1], [0, 2, 1]], indicator([{0, 1, 2}, {2}], 4))
    third = 1 / np.log2(4)
    told = (found.precision, found.recall, found.ndcg)
    wanted = (
        [1 / 2, (1 / 2 + 1 / 2) / 2, (2 / 3 + 1 / 3) / 2],
        [(1 / 3 + 0) / 2, (1 / 3 + 1) / 2, (2 / 3 + 1) / 2],
        [
            1 / 2,
            (1 / (1 + 1 / np.log2(3)) + 1 / np.log2(3)) / 2,
            ((1 + third) / (1 + 1 / np.log2(3) + third) + 1 / np.log2(3)) / 2,
        ],
    )
    np.testing.assert_allclose(told, wanted, rtol=1e-15)


@pytest.mark.parametrize("name", MEASURES)
@given(seed=st.integers(0, 999))
def test_every_measure_is_what_its_formula_says_row_by_row(name, seed):
    lists, truth, value = drawn(seed)
    found = TopK.of(lists, truth, inverse_propensity=value)
    np.testing.assert_allclose(getattr(found, name), by_hand(lists, truth, value)[name], rtol=1e-12)


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda _: "case")
@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_is_that_of_napkinxc(case, name):
    truth = indicator(case["truth"], FROZEN["labels"])
    found = TopK.of(case["lists"], truth, inverse_propensity=case["inverse_propensity"])
    np.testing.assert_allclose(getattr(found, name), case["measures"][name], rtol=1e-12)


@given(seed=st.integers(0, 999), k=st.integers(1, 6))
def test_ndcg_is_that_of_scikit_learn(seed, k):
    rng = np.random.default_rng(seed)
    truth = (rng.random((20, 9)) < 0.4).astype(float)
    truth[:, 0] = 1  # every row has a label
    scores = rng.permuted(np.tile(np.arange(9.0), (20, 1)), axis=1)
    found = TopK.of(np.argsort(-scores, axis=1)[:, :k], truth)
    assert found.ndcg[-1] == pytest.approx(ndcg_score(truth, scores, k=k), rel=1e-12)


def test_one_label_a_row_makes_precision_at_one_the_accuracy():
    found = TopK.of([[1], [0], [2], [2]], np.array([1, 1, 2, 0]), labels=3)
    assert found.precision.tolist() == found.recall.tolist() == found.ndcg.tolist() == [0.5]


def test_the_best_list_has_propensity_scores_of_one():
    truth = indicator([{0, 1}, {2}], 3)
    found = TopK.of([[1, 0], [2, -1]], truth, inverse_propensity=[1.0, 3.0, 2.0])
    assert [*found.ps_precision, *found.ps_ndcg] == [1.0] * 4


def test_a_row_without_labels_counts_in_precision_only():
    found = TopK.of([[0], [0]], indicator([{0}, set()], 2))
    assert (found.precision[0], found.recall[0], found.ndcg[0]) == (0.5, 1.0, 1.0)


def test_without_propensities_their_measures_are_not_a_number():
    known = TopK.of([[0]], indicator([{0}], 2), inverse_propensity=[1.0, 2.0])
    both = known + TopK.of([[0]], indicator([{0}], 2))
    assert np.isnan(both.ps_precision).all() and not np.isnan(known.ps_precision).any()


def test_rare_and_frequent_labels_are_told_apart():
    # Label 0 (100 training rows) is found always, label 1 (1 row) never, label 2 has no test row.
    found = TopK.of([[0], [0], [0]], np.array([0, 0, 1]), labels=3)
    rare, often = found.by_frequency([100, 1, 50], edges=(1, 10))
    assert (rare.labels, rare.recall, rare.precision, rare.f1) == (1, 0.0, 0.0, 0.0)
    assert (often.labels, often.recall, often.precision) == (1, 1.0, 2 / 3)


# --- labels by name -------------------------------------------------------------------------------

NAMES = ["zinc", "iron", "gold", "tin"]  # in the order of their codes, which is no other
LISTS = [[0, 3, 1], [0, 2, 1], [3, 1, 2]]


@pytest.mark.parametrize(
    "truth",
    [
        [{"zinc", "iron", "gold"}, {"gold"}, set()],
        [["zinc", "gold", "iron", "zinc"], ("gold",), []],
        np.array([{"zinc", "iron", "gold"}, {"gold"}, set()], dtype=object),
        pd.Series([["zinc", "iron", "gold"], ["gold"], []]),
        np.array([[1, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]),
        sparse.csr_array([[1, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]),
    ],
    ids=["sets", "lists", "array of sets", "series of lists", "matrix", "sparse matrix"],
)
def test_sets_of_names_are_assessed_as_their_codes_are(truth):
    found = TopK.of(LISTS, truth, classes=np.array(NAMES))
    coded = TopK.of(LISTS, indicator([{0, 1, 2}, {2}, set()], 4))
    assert (str(found), found.label_rows.tolist()) == (str(coded), [1.0, 1.0, 2.0, 0.0])


def test_one_name_a_row_is_assessed_as_its_code_is():
    found = TopK.of(LISTS, ["zinc", "gold", "zinc"], classes=NAMES)
    assert str(found) == str(TopK.of(LISTS, [0, 2, 0], labels=4))


def test_names_that_the_classes_do_not_have_are_missed_where_they_are_added_to_them():
    found = TopK.of([[0], [0]], [{"zinc"}, {"lead"}], classes=[*NAMES, "lead"])
    assert (found.precision.tolist(), found.recall.tolist()) == ([0.5], [0.5])


@pytest.mark.parametrize(
    ("truth", "options", "words"),
    [
        ([{"zinc"}, {"gold"}], {}, r"by name.*classes=model.classes_"),
        ([["zinc"], ["gold", "iron"]], {}, r"by name.*classes=model.classes_"),
        (["zinc", "gold"], {"labels": 4}, r"by name.*classes=model.classes_"),
        ([{"lead"}, {"zinc", "salt"}], {"classes": NAMES}, r"2 label.*4 classes: 'lead', 'salt'"),
        ([[1, 0], [0, 1]], {"classes": NAMES}, r"mixed types \(int, str\)"),
        (
            [{"zinc"}, "gold"],
            {"classes": NAMES},
            r"row 1 is 'gold', but the truth of row 0 is of anoth",
        ),
        (
            [["zinc", "tin"], None],
            {"classes": NAMES},
            r"row 1 is None.*empty if a row has no label",
        ),
        ([[0, 1, 0], [0, 1, 1]], {"classes": [0, 1, 2]}, r"lists of 3 zeros and ones, .* np.array"),
        ([{"zinc"}, {"tin"}], {"classes": ["zinc", "tin", "tin"]}, r"names a class twice"),
        ([{"zinc"}, {"tin"}], {"classes": NAMES, "labels": 3}, r"classes has shape \(4,\) .* 3"),
        (np.eye(2), {"classes": NAMES}, r"truth has shape \(2, 2\) for 4 labels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_names_that_cannot_be_codes_are_refused_with_the_way_out(truth, options, words):
    with pytest.raises(InputError, match=words):
        TopK.of([[0], [1]], truth, **options)


# --- sums -----------------------------------------------------------------------------------------


@given(seed=st.integers(0, 999), cut=st.integers(0, 30))
def test_two_parts_add_to_the_whole(seed, cut):
    lists, truth, value = drawn(seed)
    whole = TopK.of(lists, truth, inverse_propensity=value)
    parts = [
        TopK.of(lists[some], truth[some], inverse_propensity=value)
        for some in (slice(cut), slice(cut, None))
    ]
    for name in MEASURES:
        np.testing.assert_allclose(getattr(sum(parts), name), getattr(whole, name), rtol=1e-12)


def test_parts_of_different_lists_refuse_to_add_and_say_the_sizes():
    with pytest.raises(RankedLabelsError, match=r"Lists of 5 out of 9 .* of 3 out of 9"):
        TopK.empty(labels=9, k=5) + TopK.empty(labels=9, k=3)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "truth", "options", "words"),
    [
        ([[0, 0]], [[1, 0]], {}, r"list of row 0 has label 0 twice"),
        ([[0, 2]], [[1, 0]], {}, r"from 0 to 2, but there are 2 labels"),
        ([[0], [1]], [[1, 0]], {}, r"lists for 2 rows but the truth of 1"),
        ([[0.5]], [[1, 0]], {}, r"type float64: pass an integer array \(rows, k\)"),
        ([0], [[1, 0]], {}, r"shape \(1,\)"),
        ([[0]], np.array([1]), {}, "Pass labels="),
        ([[0]], np.array([3]), {"labels": 3}, r"from 3 to 3, but there are 3 labels"),
        ([[0]], [[1, 0]], {"inverse_propensity": [1.0]}, r"shape \(1,\) for 2 labels"),
        ([[0]], [[1, 0]], {"inverse_propensity": [1.0, np.nan]}, r"of label 1 is not a positive"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_assessed_is_said(lists, truth, options, words):
    with pytest.raises(RankedLabelsError, match=words):
        TopK.of(np.array(lists), np.array(truth), **options)


# --- propensities ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda _: "case")
def test_propensities_are_those_of_napkinxc(case):
    frequency = np.bincount(np.concatenate(case["train"]), minlength=FROZEN["labels"])
    found = inverse_propensity(frequency, rows=len(case["train"]))
    np.testing.assert_allclose(found, case["inverse_propensity"], rtol=1e-14)


def test_the_formula_of_jain_and_others_by_hand():
    # C = (log 1000 - 1) 2.5^0.55, and p = 1 / (1 + C exp(-0.55 log(8 + 1.5)))
    c = (np.log(1000) - 1) * 2.5**0.55
    assert propensity([8], rows=1000)[0] == pytest.approx(1 / (1 + c / 9.5**0.55), rel=1e-14)


@given(rows=st.integers(0, 10**7))
def test_a_more_frequent_label_is_noted_more_often(rows):
    found = propensity(np.arange(min(rows, 49) + 1), rows=rows)
    assert (np.diff(found) >= 0).all() and (found > 0).all() and (found <= 1).all()


@pytest.mark.parametrize("labels", [2, 3])
def test_lists_of_ones_are_not_taken_for_names(labels):
    truth = np.eye(labels, dtype=int).tolist()
    with pytest.raises(RankedLabelsError, match=f"lists of {labels} zeros and ones"):
        TopK.of([[0]] * labels, truth, classes=list(range(labels)))


def test_a_table_of_names_has_those_of_each_row():
    named = TopK.of([[0], [2]], np.array([["a", "b"], ["b", "c"]]), classes=["a", "b", "c"])
    assert named.precision.tolist() == [1.0]
    assert named.recall.tolist() == [0.5]


def test_a_table_of_numbers_that_is_no_indicator_is_refused():
    table = np.array([[10, 20, 30], [20, 30, 10]])
    with pytest.raises(RankedLabelsError, match=r"shape \(2, 3\)"):
        TopK.of([[0], [1]], table, classes=[10, 20, 30])


def test_a_sparse_truth_does_not_hide_that_labels_and_classes_differ():
    with pytest.raises(RankedLabelsError, match=r"classes has shape \(2,\) for 7 labels"):
        TopK.of([[0]], sparse.csr_matrix([[1, 0]]), labels=7, classes=["a", "b"])


def test_a_truth_that_is_one_word_is_refused():
    with pytest.raises(RankedLabelsError, match=r"shape \(\)"):
        TopK.of([[0]], "a", classes=["a", "b"])


@pytest.mark.parametrize("count", [-1, 6, np.nan])
def test_frequencies_that_cannot_be_are_refused(count):
    with pytest.raises(RankedLabelsError, match=r"frequency of label 1 is \S+, but there are 5"):
        inverse_propensity([2, count], rows=5)


def test_edges_that_do_not_rise_are_refused():
    found = TopK.of([[0]], indicator([{0}], 2))
    with pytest.raises(InputError, match="rising"):
        found.by_frequency([3, 1], edges=(5, 1))
