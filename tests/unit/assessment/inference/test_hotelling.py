"""Hotelling's T2: as R says it, and the laws it obeys."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from discriminant import hotelling, manova, moments
from discriminant.errors import InferenceError, LabelError, MomentsMismatchError
from tests.parity.golden import answers, rows_of
from tests.shared.blocks import random_rows


def test_two_classes_are_as_far_apart_as_r_says():
    golden = answers("manova")["breast_cancer"]["hotelling"]
    found = hotelling(moments(*rows_of("breast_cancer")))
    assert found.d2 == pytest.approx(golden["d2"], rel=1e-9)
    assert found.t2.value == pytest.approx(golden["t2"], rel=1e-9)
    np.testing.assert_allclose(found.t, golden["t"], rtol=1e-9)
    np.testing.assert_allclose(found.p, golden["p"], rtol=1e-7)


def test_its_f_is_that_of_a_manova_of_two_classes():
    golden = answers("manova")["breast_cancer"]["tests"]["Wilks"]
    found = hotelling(moments(*rows_of("breast_cancer"))).t2
    assert (found.f, found.df1, found.df2) == pytest.approx(
        (golden["f"], golden["df1"], golden["df2"]), rel=1e-9
    )


@given(seed=st.integers(0, 999))
def test_two_tables_are_compared_as_two_classes_of_one(seed):
    rows = random_rows(seed, n=60)
    half = np.arange(60) % 2
    tables = [moments(rows.features[half == k], rows.y[half == k]) for k in (0, 1)]
    found = hotelling(*tables)
    whole = manova(moments(rows.features, np.array(["first", "second"])[half])).wilks
    assert (found.t2.f, found.t2.p) == pytest.approx((whole.f, whole.p), rel=1e-8, abs=1e-12)


def test_of_one_feature_it_is_a_t_test_squared():
    rows = random_rows(3, n=50, width=1, classes=2)
    found = hotelling(moments(rows.features, rows.y))
    t, p = stats.ttest_ind(*(rows.features[rows.codes == k, 0] for k in (1, 0)))
    assert (found.t2.value, found.t2.p, found.t[0]) == pytest.approx((t**2, p, t), rel=1e-9)


def test_a_table_has_not_drifted_from_itself():
    sums = moments(*rows_of("iris"))
    assert hotelling(sums, sums).t2.value == pytest.approx(0, abs=1e-12)


def test_columns_go_by_name_and_origins_do_not_matter():
    rows = random_rows(5, n=60)
    first, second = rows.take(np.arange(30)), rows.take(np.arange(30, 60))
    plain = hotelling(moments(first.features, first.y), moments(second.features, second.y))
    moved = moments(second.features, second.y).select([2, 0, 1])
    found = hotelling(moments(first.features, first.y), moved)
    assert found.t2.value == pytest.approx(plain.t2.value, rel=1e-10)


def test_labels_choose_classes_and_say_which_is_second():
    sums = moments(*rows_of("iris"))
    there, back = hotelling(sums, labels=[0, 2]), hotelling(sums, labels=[2, 0])
    features, codes = rows_of("iris")
    expected = features[codes == 2].mean(axis=0) - features[codes == 0].mean(axis=0)
    np.testing.assert_allclose(there.difference, expected, rtol=1e-12)
    np.testing.assert_allclose(back.difference, -expected, rtol=1e-12)
    assert (there.labels, back.labels) == ((0, 2), (2, 0))
    assert hotelling(sums, [0, 2]).t2 == there.t2


def test_labels_keep_a_change_of_class_shares_from_counting_as_drift():
    """The classes are where they were; there are only more of one of them."""
    rows = random_rows(7, n=400, spread=8.0)
    rng = np.random.default_rng(7)
    later = rng.permutation(400)[: 3 * 60]
    later = np.concatenate([later[rows.codes[later] == 0], later[rows.codes[later] != 0][:20]])
    tables = [moments(rows.features, rows.y), moments(rows.features[later], rows.y[later])]
    assert hotelling(*tables).t2.p < 1e-6
    assert hotelling(*tables, labels=["ash"]).t2.p > 0.01


def test_it_is_told_as_text_frame_and_dictionary():
    found = hotelling(moments(*rows_of("iris")), labels=[0, 1])
    assert "'1' (50 rows) less '0' (50 rows)" in found.text
    assert found.frame().loc["x0", "difference"] == pytest.approx(0.93)
    assert json.loads(json.dumps(found.to_dict()))["d2"] == found.d2


def test_three_classes_without_labels_are_refused():
    with pytest.raises(InferenceError, match=r"there are 3 \('0', '1', '2'\)"):
        hotelling(moments(*rows_of("iris")))


def test_an_unknown_label_is_refused():
    with pytest.raises(LabelError, match="'7'"):
        hotelling(moments(*rows_of("iris")), labels=[0, 7])


def test_tables_of_other_columns_are_refused_and_the_difference_shown():
    sums = moments(*rows_of("iris"))
    with pytest.raises(MomentsMismatchError, match="only in the first: 'x3'"):
        hotelling(sums, sums.select([0, 1, 2]))


def test_rows_instead_of_moments_are_refused():
    rows = moments(*rows_of("iris"), detail="rows")
    with pytest.raises(MomentsMismatchError, match="'rows'"):
        hotelling(moments(*rows_of("iris")), rows)
