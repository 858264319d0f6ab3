"""ROC, precision and recall: as scikit-learn says, from rows or a ranking of bounded size."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn import metrics
from sklearn.preprocessing import label_binarize

import discriminant
from discriminant import ranking
from discriminant.errors import LabelError, OptionError, ScoreError, WeightError
from discriminant.moments.ranking import RankingReading
from discriminant.table.blocks import Block


def scored(seed, n=60, levels=None, weighted=False, dtype=np.float64):
    """Labels 0 and 1 with scores, tied at some levels; with weights, some of them 0."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])
    scores = rng.standard_normal(n) + y
    if levels is not None:
        scores = np.round(scores * levels) / levels
    weight = rng.integers(0, 4, n) + rng.random(n).round() * 0.5 if weighted else None
    if weighted:
        weight[:2] = 1.0
    return y, scores.astype(dtype), weight


rows = st.builds(
    scored,
    st.integers(0, 9999),
    n=st.integers(2, 80),
    levels=st.sampled_from([None, 1, 3]),
    weighted=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)


@given(rows=rows)
def test_the_roc_curve_is_that_of_scikit_learn(rows):
    y, scores, weight = rows
    found = discriminant.roc(y, scores, sample_weight=weight)
    fpr, tpr, threshold = metrics.roc_curve(
        y, scores, sample_weight=weight, drop_intermediate=False
    )
    np.testing.assert_allclose([found.fpr, found.tpr], [fpr, tpr], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.threshold, threshold)


@given(rows=rows)
def test_the_area_is_that_of_scikit_learn(rows):
    y, scores, weight = rows
    expected = metrics.roc_auc_score(y, scores, sample_weight=weight)
    assert discriminant.roc(y, scores, sample_weight=weight).area == pytest.approx(expected, 1e-12)


@given(rows=rows, most=st.sampled_from([0.05, 0.2, 0.5, 0.99]))
def test_the_standardised_partial_area_is_that_of_scikit_learn(rows, most):
    y, scores, weight = rows
    expected = metrics.roc_auc_score(y, scores, sample_weight=weight, max_fpr=most)
    found = discriminant.roc(y, scores, sample_weight=weight).partial_area(most)
    assert found == pytest.approx(expected, abs=1e-12)


@given(rows=rows)
def test_precision_and_recall_are_those_of_scikit_learn(rows):
    y, scores, weight = rows
    found = discriminant.precision_recall(y, scores, sample_weight=weight)
    precision, recall, threshold = metrics.precision_recall_curve(y, scores, sample_weight=weight)
    expected = [precision[::-1], recall[::-1]]
    np.testing.assert_allclose([found.precision, found.recall], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.threshold[1:], threshold[::-1])


@given(rows=rows)
def test_average_precision_is_that_of_scikit_learn(rows):
    y, scores, weight = rows
    expected = metrics.average_precision_score(y, scores, sample_weight=weight)
    found = discriminant.precision_recall(y, scores, sample_weight=weight).average_precision
    assert found == pytest.approx(expected, abs=1e-12)
    direct = discriminant.average_precision(y, scores, sample_weight=weight)
    assert direct == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("weighted", [False, True])
def test_average_precision_over_classes_is_that_of_scikit_learn(average, weighted):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 200)
    scores = (rng.standard_normal((200, 4)) + 1.5 * (y[:, None] == np.arange(4))).round(1)
    weight = rng.random(200) if weighted else None
    found = discriminant.average_precision(y, scores, average=average, sample_weight=weight)
    truth = label_binarize(y, classes=range(4))
    expected = metrics.average_precision_score(truth, scores, average=average, sample_weight=weight)
    assert found == pytest.approx(expected, abs=1e-12)


@given(rows=rows)
def test_corners_lie_on_the_curve_and_leave_its_area_as_it_is(rows):
    y, scores, weight = rows
    found = discriminant.roc(y, scores, sample_weight=weight)
    few = found.corners()
    np.testing.assert_allclose(np.trapezoid(few.tpr, few.fpr), found.area, rtol=0, atol=1e-12)
    points = set(zip(found.fpr, found.tpr, strict=True))
    assert points.issuperset(zip(few.fpr, few.tpr, strict=True))


@given(rows=rows)
def test_a_threshold_calls_positive_what_the_curve_says(rows):
    y, scores, weight = rows
    weight = np.ones(len(y)) if weight is None else weight
    found = discriminant.roc(y, scores, sample_weight=weight)
    place = found.best()
    called = scores >= found.threshold[place]
    gap = np.average(called[y == 1], weights=weight[y == 1])
    gap -= np.average(called[y == 0], weights=weight[y == 0])
    assert gap == pytest.approx(found.tpr[place] - found.fpr[place], abs=1e-12)


def test_the_second_label_in_sorted_order_is_positive_unless_another_is_named():
    labels, scores = ["well", "ill", "well", "ill", "well"], [1, 2, 3, 4, 5]
    assert discriminant.roc(labels, scores).positive == "well"
    named = discriminant.roc(labels, scores, positive="ill").area
    assert named == 1.0 - discriminant.roc(labels, scores).area


def test_the_best_f_is_the_largest_of_all_thresholds():
    y, scores, _ = scored(5)
    found = discriminant.precision_recall(y, scores)
    each = [metrics.fbeta_score(y, scores >= t, beta=2.0) for t in found.threshold[1:]]
    assert found.best(2.0) - 1 == int(np.argmax(each))


def test_a_column_is_taken_out_of_the_scores_of_all_classes():
    rng = np.random.default_rng(1)
    y, scores = rng.choice(["ash", "birch", "cedar"], 50), rng.random((50, 3))
    found = discriminant.roc(
        y, scores[:, [2, 0, 1]], positive="birch", classes=["cedar", "ash", "birch"]
    )
    expected = metrics.roc_auc_score(y == "birch", scores[:, 1])
    assert found.area == pytest.approx(expected, 1e-12)


# --- in bounded memory ----------------------------------------------------------------------------

parts_of = st.integers(1, 5)


@given(rows=rows, parts=parts_of)
def test_a_ranking_with_room_enough_gives_the_curve_of_all_rows_without_error(rows, parts):
    y, scores, weight = rows
    found = discriminant.roc(ranked(y, scores, weight, parts, bins=100))
    whole = discriminant.roc(y, scores, sample_weight=weight)
    np.testing.assert_allclose([found.fpr, found.tpr], [whole.fpr, whole.tpr], rtol=0, atol=1e-12)
    assert found.error == 0.0


def ranked(y, scores, weight, parts, bins):
    some = [slice(j, None, parts) for j in range(parts)]
    return sum(
        ranking(
            y[part],
            scores[part],
            positive=1,
            bins=bins,
            sample_weight=None if weight is None else weight[part],
        )
        for part in some
    )


@given(rows=rows, parts=parts_of, bins=st.sampled_from([1, 2, 5, 20]))
def test_the_true_area_is_within_the_error_that_a_full_ranking_states(rows, parts, bins):
    y, scores, weight = rows
    found = discriminant.roc(ranked(y, scores, weight, parts, bins))
    true = metrics.roc_auc_score(y, scores, sample_weight=weight)
    assert abs(found.area - true) <= found.error + 1e-12


@given(rows=rows, parts=parts_of, bins=st.sampled_from([1, 2, 5, 20]))
def test_the_true_average_precision_is_within_the_error_that_is_stated(rows, parts, bins):
    y, scores, weight = rows
    found = discriminant.precision_recall(ranked(y, scores, weight, parts, bins))
    true = metrics.average_precision_score(y, scores, sample_weight=weight)
    assert abs(found.average_precision - true) <= found.error + 1e-12


@given(rows=rows, bins=st.sampled_from([1, 5, 20]))
def test_every_corner_of_a_full_ranking_is_a_true_point(rows, bins):
    y, scores, weight = rows
    weight = np.ones(len(y)) if weight is None else weight
    found = discriminant.roc(ranked(y, scores, weight, 3, bins))
    share = [
        [np.average((scores >= t)[y == k], weights=weight[y == k]) for t in found.threshold]
        for k in (0, 1)
    ]
    np.testing.assert_allclose([found.fpr, found.tpr], share, rtol=0, atol=1e-12)


@given(rows=rows, bins=st.integers(1, 30))
def test_a_ranking_never_has_more_bins_than_it_may(rows, bins):
    assert len(ranked(*rows, 4, bins).keys) <= bins


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_half_a_million_scores_in_65536_bins_are_known_to_a_ten_thousandth(shift):
    y, scores, _ = scored(1, n=500_000)
    found = discriminant.auc(ranked(y, scores + shift, None, 3, 1 << 16))
    assert found.error < 2e-4
    assert found.value == pytest.approx(metrics.roc_auc_score(y, scores), abs=1e-7)


def test_rankings_of_other_classes_or_other_sizes_refuse_to_add():
    one = ranking([0, 1], [0.0, 1.0])
    with pytest.raises(ScoreError, match=r"'1' and '0' cannot be added.*positive="):
        one + ranking([0, 1], [0.0, 1.0], positive=0)
    with pytest.raises(ScoreError, match=r"65536 and 8 bins cannot be added.*bins="):
        one + ranking([0, 1], [0.0, 1.0], bins=8)


# --- refusing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", [discriminant.roc, discriminant.auc, ranking])
def test_a_score_that_is_no_number_is_named_by_its_row(curve):
    with pytest.raises(ScoreError, match=r"row 2 \(and 1 more\), counted from 0, is NaN"):
        curve([0, 1, 0, 1], [1.0, 2.0, np.nan, np.nan])


def test_a_missing_score_of_a_later_block_is_named_by_its_row_in_the_table():
    reading = RankingReading("ill", 1, lambda features: features[:, 0])
    block = Block(np.array([[1.0], [np.nan]]), np.array([0, 1]), start=100)
    with pytest.raises(ScoreError, match="row 101, counted from 0"):
        reading.read(block)


def test_one_class_alone_is_named():
    with pytest.raises(ScoreError, match=r"labels are 'ill', but one score.*positive="):
        discriminant.roc(["ill", "ill"], [1.0, 2.0])
    with pytest.raises(
        ScoreError, match="Every row with positive weight is of the positive class 'ill'"
    ):
        discriminant.roc(["ill", "ill"], [1.0, 2.0], positive="ill")
    with pytest.raises(ScoreError, match="No row has the positive label 'ill' and a positive wei"):
        discriminant.roc(["ill", "well"], [1.0, 2.0], positive="ill", sample_weight=[0, 1])


def test_three_classes_and_one_score_need_to_know_which_is_positive():
    with pytest.raises(ScoreError, match=r"'0', '1', '2', but one score per row.*positive="):
        discriminant.roc([0, 1, 2], [0.1, 0.2, 0.3])


def test_a_positive_label_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(LabelError, match=r"'sick'; the classes are 'ill', 'well'"):
        discriminant.roc(["ill", "well"], [1.0, 2.0], positive="sick")


@pytest.mark.parametrize(
    ("scores", "message"),
    [([1.0], r"shape \(1,\) for 2 rows"), ([[1.0] * 3] * 2, r"\(2, 3\) for 2 rows.*\(2, 2\)")],
)
def test_scores_of_another_shape_are_refused_with_the_shapes_that_fit(scores, message):
    with pytest.raises(ScoreError, match=message):
        discriminant.roc([0, 1], scores)


def test_texts_are_no_scores():
    with pytest.raises(ScoreError, match="not numbers"):
        discriminant.roc([0, 1], ["low", "high"])


def test_a_negative_weight_is_named_by_its_row():
    for curve in (discriminant.roc, ranking):
        with pytest.raises(WeightError, match=r"row 1 .* is -1"):
            curve([0, 1], [1.0, 2.0], sample_weight=[1.0, -1.0])


def test_a_share_of_false_positives_beyond_one_is_refused():
    with pytest.raises(OptionError, match=r"most_fpr=1\.5"):
        discriminant.roc([0, 1], [1.0, 2.0]).partial_area(1.5)
