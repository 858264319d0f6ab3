"""Box's M: published numbers, exact arithmetic, laws."""

import json

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from discriminant import box_m, moments
from discriminant.errors import InferenceError, MomentsMismatchError
from tests.parity.golden import rows_of
from tests.shared.blocks import random_rows

SHARED = [("iris", "iris_fisher.csv", "Species"), ("wine", "wine.csv", "class")]


def exact_m(features, codes):
    """M from the rows in 50 digits."""
    with mpmath.workdps(50):
        pooled, total, found = None, 0, mpmath.mpf(0)
        for k in np.unique(codes):
            part = mpmath.matrix(features[codes == k].tolist())
            n = part.rows
            mean = mpmath.ones(1, n) * part / n
            apart = part - mpmath.ones(n, 1) * mean
            scatter = apart.T * apart
            pooled = scatter if pooled is None else pooled + scatter
            total += n - 1
            found -= (n - 1) * mpmath.log(mpmath.det(scatter / (n - 1)))
        return float(found + total * mpmath.log(mpmath.det(pooled / total)))


def test_iris_has_the_chi_square_that_sas_prints_and_the_f_of_spss():
    found = box_m(moments(*rows_of("iris")))
    assert (round(found.chi2, 6), found.df) == (140.943050, 20)  # PROC DISCRIM, iris example
    assert (round(found.m, 3), round(found.f.f, 3), round(found.f.df2, 2)) == (
        146.663,
        7.045,
        77566.75,
    )


@pytest.mark.parametrize(("folder", "file", "label"), SHARED)
def test_real_data_have_the_m_of_their_references(shared_data, folder, file, label):
    golden = json.loads((shared_data / folder / "reference.json").read_text())["box_M"]
    rows = pd.read_csv(shared_data / folder / file)
    found = box_m(moments(rows.drop(columns=label), rows[label].astype(str)))
    assert found.m == pytest.approx(golden["M"], rel=1e-9)
    assert found.p == pytest.approx(golden["p_value"], rel=1e-8)
    np.testing.assert_allclose(found.logdet, golden["logdet_groups"], rtol=1e-9)
    assert found.logdet_pooled == pytest.approx(golden["logdet_pooled"], rel=1e-9)


@given(seed=st.integers(0, 99), shift=st.sampled_from([0.0, 1e6]))
def test_m_is_that_of_fifty_digits(seed, shift):
    rows = random_rows(seed, n=45)
    features = rows.features + shift
    found = box_m(moments(features, rows.y))
    assert found.m == pytest.approx(exact_m(features, rows.codes), rel=1e-7)


@given(seed=st.integers(0, 999))
def test_an_affine_map_of_the_features_changes_nothing(seed):
    rows = random_rows(seed, n=60)
    rng = np.random.default_rng(seed)
    turned = rows.features @ (rng.normal(size=(3, 3)) + 3 * np.eye(3)) + 50
    plain, other = (box_m(moments(x, rows.y)) for x in (rows.features, turned))
    assert other.m == pytest.approx(plain.m, rel=1e-7)


def test_of_one_feature_it_is_bartletts_test_up_to_how_the_correction_is_made():
    """Bartlett divides M by 1 + c where Box multiplies by 1 - c."""
    rows = random_rows(4, n=60, width=1)
    found = box_m(moments(rows.features, rows.y))
    parts = [rows.features[rows.codes == k, 0] for k in range(3)]
    v = np.array([len(part) - 1 for part in parts])
    c = ((1 / v).sum() - 1 / v.sum()) / 6
    bartlett = stats.bartlett(*parts).statistic
    assert (found.m, found.chi2) == pytest.approx(
        (bartlett * (1 + c), bartlett * (1 - c**2)), rel=1e-9
    )


def test_f_and_chi_square_agree_where_rows_are_many():
    rows = random_rows(6, n=20000)
    found = box_m(moments(rows.features, rows.y))
    assert found.f.p == pytest.approx(found.p, rel=1e-3)


def test_merged_moments_are_tested_as_the_whole():
    rows = random_rows(9, n=60)
    parts = [moments(rows.features[s], rows.y[s]) for s in (slice(25), slice(25, None))]
    whole = box_m(moments(rows.features, rows.y))
    assert box_m(parts[0] + parts[1]).m == pytest.approx(whole.m, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_units_change_nothing(scale):
    rows = random_rows(9, n=60)
    plain = box_m(moments(rows.features, rows.y))
    scaled = box_m(moments(rows.features * [scale, 1.0, 1.0], rows.y))
    assert scaled.m == pytest.approx(plain.m, rel=1e-9)
    units = 2 * np.log(scale)
    np.testing.assert_allclose(scaled.logdet - units, plain.logdet, rtol=1e-9)


def test_it_is_told_as_text_frame_and_dictionary():
    found = box_m(moments(*rows_of("iris")))
    assert "140.943050" in found.text and "Pooled" in found.text
    assert found.frame().loc[1, "rows"] == 50
    assert json.loads(json.dumps(found.to_dict()))["m"] == found.m


def test_classes_with_too_few_rows_are_named():
    rows = random_rows(1, n=60)
    few = np.concatenate([np.flatnonzero(rows.codes < 2), np.flatnonzero(rows.codes == 2)[:3]])
    with pytest.raises(InferenceError, match=r"3 features needs 4 or more.*'cedar': 3"):
        box_m(moments(rows.features[few], rows.y[few]))


def test_a_column_constant_in_one_class_is_named():
    rows = random_rows(1, n=60)
    features = rows.features.copy()
    features[rows.codes == 1, 2] = 4.0
    with pytest.raises(InferenceError, match="'x2' are constant in class 'birch'"):
        box_m(moments(features, rows.y))


def test_a_class_in_which_columns_depend_on_one_another_is_named():
    rows = random_rows(1, n=60)
    features = rows.features.copy()
    features[rows.codes == 1, 2] = features[rows.codes == 1] @ [1.0, 2.0, 0.0]
    with pytest.raises(InferenceError, match=r"class 'birch'.*rank 2 of 3"):
        box_m(moments(features, rows.y))


def test_pooled_moments_are_refused():
    rows = random_rows(1, n=60)
    with pytest.raises(MomentsMismatchError, match="'class', but these have detail 'pooled'"):
        box_m(moments(rows.features, rows.y, detail="pooled"))
