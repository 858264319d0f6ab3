"""Multivariate tests of class means: as R says them, and the laws they obey."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from discriminant import manova, moments
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    InferenceError,
    LabelError,
    MomentsMismatchError,
    OptionError,
)
from tests.parity.golden import NAMES, answers, rows_of
from tests.shared.blocks import random_rows

TESTS = {
    "Wilks": "wilks",
    "Pillai": "pillai",
    "Hotelling-Lawley": "hotelling_lawley",
    "Roy": "roy",
}
COEFFICIENTS = ["raw", "standardised", "total", "structure", "structure_total"]
every_set = pytest.mark.parametrize("name", NAMES)


def of_set(name):
    return manova(moments(*rows_of(name), detail="pooled"))


@every_set
@pytest.mark.parametrize("test", TESTS)
def test_the_four_statistics_are_those_of_summary_manova(name, test):
    found, golden = getattr(of_set(name), TESTS[test]), answers("manova")[name]["tests"][test]
    for fact in ("value", "f", "df1", "df2"):
        assert getattr(found, fact) == pytest.approx(golden[fact], rel=1e-9), fact
    assert found.p == pytest.approx(golden["p"], rel=1e-7, abs=1e-300)


@every_set
def test_each_feature_alone_has_the_f_of_an_analysis_of_variance(name):
    found, golden = of_set(name).univariate, answers("manova")[name]["univariate"]
    np.testing.assert_allclose(found.f, golden["f"], rtol=1e-10)
    np.testing.assert_allclose(found.p, golden["p"], rtol=1e-8)


@every_set
@pytest.mark.parametrize("part", COEFFICIENTS)
def test_coefficients_and_loadings_are_those_of_scores_in_r_up_to_sign(name, part):
    found = getattr(of_set(name).canonical, part)
    golden = np.array(answers("manova")[name]["canonical"][part])
    sign = np.sign((found * golden).sum(axis=0))
    np.testing.assert_allclose(found * sign, golden, rtol=1e-8, atol=1e-10)


@every_set
def test_canonical_correlations_are_those_of_rows_with_class_indicators(name):
    golden = answers("manova")[name]["canonical"]["correlation"]
    np.testing.assert_allclose(of_set(name).canonical.correlation, golden, rtol=1e-11)


def test_iris_is_as_sas_prints_it():
    """PROC CANDISC's example of the iris: likelihood ratios, and F of the second direction."""
    found = of_set("iris")
    text = found.text
    assert "0.023439  199.1453       8     288  <.0001" in text
    assert "0.777973   13.7939       3     145  <.0001" in text


def test_spss_tests_directions_by_bartletts_chi_square():
    found = of_set("iris").canonical
    ratio = 1 / (1 + found.eigenvalues)
    expected = [-(150 - 1 - 3.5) * np.log(ratio.prod()), -(150 - 1 - 3.5) * np.log(ratio[1])]
    np.testing.assert_allclose(found.chi2, expected, rtol=1e-12)
    assert found.chi2_df.tolist() == [8, 3]


SHARED = [
    ("iris", "iris_fisher.csv", "Species"),
    ("wine", "wine.csv", "class"),
    ("esl_vowel", "vowel_train.csv", "y"),
    ("statlog_vehicle", "vehicle.csv", "Class"),
]


@pytest.mark.parametrize(("folder", "file", "label"), SHARED)
def test_real_data_have_the_statistics_of_their_references(shared_data, folder, file, label):
    golden = json.loads((shared_data / folder / "reference.json").read_text())["manova"]
    rows = pd.read_csv(shared_data / folder / file)
    features = rows.drop(columns=label).select_dtypes("number")
    features = features[[name for name in features if name not in ("row.names", "index")]]
    found = manova(moments(features, rows[label].astype(str)))
    for key in ("Wilks", "Pillai", "Hotelling_Lawley", "Roy"):
        test = getattr(found, key.lower())
        assert test.value == pytest.approx(golden[key]["statistic"], rel=1e-8), key
        assert test.f == pytest.approx(golden[key]["approx_F"], rel=1e-8), key


@pytest.mark.parametrize(
    ("folder", "file", "label"),
    [SHARED[0], SHARED[2], ("pima", "pima_tr.csv", "type")],
)
def test_wilks_and_eigenvalues_are_those_of_fifty_digits(shared_data, folder, file, label):
    golden = json.loads((shared_data / folder / "gold_highprec.json").read_text())["lda"]
    rows = pd.read_csv(shared_data / folder / file)
    found = manova(moments(rows[golden["variables"]], rows[label].astype(str)))
    assert found.wilks.value == pytest.approx(float(golden["wilks_lambda"]), rel=1e-12)
    expected = [float(value) for value in golden["eigenvalues_WinvB"]]
    r = min(len(expected), len(found.canonical.eigenvalues))
    np.testing.assert_allclose(found.canonical.eigenvalues[:r], expected[:r], rtol=1e-10)


# --- laws -------------------------------------------------------------------------------------


def facts(found):
    """What no change of units may change."""
    tests = [[test.value, test.f, test.p] for test in found.tests]
    return np.concatenate([np.ravel(tests), found.canonical.eigenvalues, found.canonical.chi2])


@given(seed=st.integers(0, 999))
def test_an_affine_map_of_the_features_changes_no_statistic(seed):
    rows = random_rows(seed, n=60)
    rng = np.random.default_rng(seed)
    turned = rows.features @ (rng.normal(size=(3, 3)) + 3 * np.eye(3)) + rng.normal(size=3) * 100
    plain, other = (manova(moments(x, rows.y)) for x in (rows.features, turned))
    np.testing.assert_allclose(facts(other), facts(plain), rtol=1e-7, atol=1e-12)


@given(seed=st.integers(0, 999), cut=st.integers(1, 59))
def test_merged_moments_are_tested_as_the_whole(seed, cut):
    rows = random_rows(seed, n=60)
    parts = [moments(rows.features[s], rows.y[s]) for s in (slice(cut), slice(cut, None))]
    whole = manova(moments(rows.features, rows.y))
    np.testing.assert_allclose(facts(manova(sum(parts))), facts(whole), rtol=1e-8, atol=1e-12)


@given(seed=st.integers(0, 999))
def test_wilks_is_the_ratio_of_determinants_and_the_product_over_eigenvalues(seed):
    rows = random_rows(seed, n=60)
    sums = moments(rows.features, rows.y)
    found = manova(sums)
    ratio = np.linalg.det(sums.within()) / np.linalg.det(sums.total())
    assert found.wilks.value == pytest.approx(ratio, rel=1e-9)
    product = np.prod(1 / (1 + found.canonical.eigenvalues))
    assert found.wilks.value == pytest.approx(product, rel=1e-12)


def test_whole_weights_count_as_repeated_rows():
    rows = random_rows(3, n=40)
    times = np.random.default_rng(3).integers(1, 4, 40)
    repeated = moments(np.repeat(rows.features, times, axis=0), np.repeat(rows.y, times))
    weighted = moments(rows.features, rows.y, times)
    np.testing.assert_allclose(facts(manova(weighted)), facts(manova(repeated)), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e150, 1e300])
def test_extreme_units_change_no_statistic(scale):
    rows = random_rows(5, n=60)
    scaled = rows.features * np.array([scale, 1.0, 1.0])
    plain, other = (manova(moments(x, rows.y)) for x in (rows.features, scaled))
    np.testing.assert_allclose(facts(other), facts(plain), rtol=1e-9)


def test_scores_by_raw_coefficients_have_variance_one_within_classes():
    rows = random_rows(8, n=60)
    found = manova(moments(rows.features, rows.y)).canonical
    scores = rows.features @ found.raw + found.constant
    means = np.array([scores[rows.codes == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(means, found.means, atol=1e-10)
    apart = scores - means[rows.codes]
    np.testing.assert_allclose(apart.T @ apart / 57, np.eye(2), atol=1e-10)


def test_classes_of_no_rows_change_nothing():
    rows = random_rows(8, n=60)
    sums = moments(rows.features, rows.y)
    wider = sums.over(np.array([*sums.labels, "zelkova"], dtype=object))
    assert facts(manova(wider)).tolist() == facts(manova(sums)).tolist()


# --- shapes and what is said ------------------------------------------------------------------


@pytest.mark.parametrize("part", ["tests", "univariate", "canonical", "means", *COEFFICIENTS])
def test_every_table_is_a_frame(part):
    found = of_set("iris")
    frame = found.frame(part)
    rows = {"tests": 4, "univariate": 4, "canonical": 2, "means": 3}.get(part, 4)
    assert len(frame) == rows


def test_the_dictionary_goes_through_json():
    said = of_set("iris").to_dict()
    assert json.loads(json.dumps(said)) == said


def test_an_unknown_table_is_refused():
    with pytest.raises(OptionError, match="structure_total"):
        of_set("iris").frame("loadings")


def test_a_constant_column_is_left_out_and_named():
    rows = random_rows(2, n=60)
    wide = np.column_stack([rows.features, np.full(60, 7.0)])
    with pytest.warns(ConstantColumnWarning, match="x3"):
        found = manova(moments(wide, rows.y))
    plain = manova(moments(rows.features, rows.y))
    np.testing.assert_allclose(facts(found), facts(plain), rtol=1e-12)


def bad_moments():
    rows = random_rows(2, n=60)
    x, y = rows.features, rows.y
    few = np.random.default_rng(0).normal(size=(6, 5))
    return {
        "collinear": (moments(np.column_stack([x, x @ [1.0, 2, 3]]), y), "rank 3 of 4"),
        "label": (moments(np.column_stack([x, rows.codes]), y), "x3.*F is infinite"),
        "wide": (moments(few, y[:6]), "5 features needs"),
        "constant": (moments(np.ones((60, 2)), y), "none of the 2"),
    }


@pytest.mark.parametrize("case", ["collinear", "label", "wide", "constant"])
def test_what_cannot_be_tested_is_said_with_names_and_numbers(case):
    sums, words = bad_moments()[case]
    with pytest.raises(InferenceError, match=words):
        manova(sums)


def test_nearly_collinear_columns_are_told():
    rows = random_rows(2, n=60)
    near = rows.features[:, 0] + 1e-6 * np.random.default_rng(2).normal(size=60)
    with pytest.warns(CollinearWarning, match="digits of the statistics"):
        manova(moments(np.column_stack([rows.features, near]), rows.y))


def test_one_class_is_refused():
    with pytest.raises(LabelError, match="Only one class"):
        manova(moments([[0.0], [1.0]], ["a", "a"]))


@pytest.mark.parametrize("detail", ["diagonal", "rows"])
def test_moments_without_products_are_refused(detail):
    rows = random_rows(2, n=60)
    with pytest.raises(MomentsMismatchError, match=f"'{detail}'"):
        manova(moments(rows.features, rows.y, detail=detail))
