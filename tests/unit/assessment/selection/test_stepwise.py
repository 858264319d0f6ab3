"""Stepwise selection: every step as by refitting from the rows, and as SAS prints it."""

import json

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from discriminant import manova, moments, stepwise
from discriminant.assessment.selection.stepwise import sweep
from discriminant.errors import ConstantColumnWarning, InferenceError, OptionError
from tests.parity.golden import rows_of
from tests.shared.blocks import random_rows


def brute_wilks(features, codes, columns):
    """Wilks' lambda of some columns, from the rows: residuals of two least-squares fits."""
    if not columns:
        return 1.0
    x = features[:, sorted(columns)]
    within = x - np.array([x[codes == k].mean(axis=0) for k in range(codes.max() + 1)])[codes]
    total = x - x.mean(axis=0)
    dets = [np.linalg.slogdet(part.T @ part)[1] for part in (within, total)]
    return np.exp(dets[0] - dets[1])


def brute_p(features, codes, smaller, larger):
    """p of the partial F of the one column by which two models differ."""
    q, v = codes.max(), len(codes) - codes.max() - 1
    ratio = brute_wilks(features, codes, larger) / brute_wilks(features, codes, smaller)
    degrees = v - len(smaller)
    return stats.f.sf((1 / ratio - 1) * degrees / q, q, degrees)


def brute_path(features, codes, enter, stay, start=(), may_enter=True, may_leave=True):
    """Names and lambda of every step by the rules of STEPDISC, each candidate fitted anew."""
    model, path = set(start), []
    while len(path) < 2 * features.shape[1]:
        leave = {j: brute_p(features, codes, model - {j}, model) for j in model if may_leave}
        outside = set(range(features.shape[1])) - model if may_enter else set()
        come = {j: brute_p(features, codes, model, model | {j}) for j in outside}
        if leave and max(leave.values()) > stay:
            j = max(leave, key=leave.get)
        elif come and min(come.values()) <= enter:
            j = min(come, key=come.get)
            if path and path[-1][:2] == (j, -1):
                break
        else:
            break
        model ^= {j}
        path.append((j, 1 if j in model else -1, brute_wilks(features, codes, model)))
    return path


def path_of(found):
    places = {name: j for j, name in enumerate(found.features)}
    return [
        (places[step.entered or step.removed], 1 if step.entered else -1, step.wilks)
        for step in found.steps
    ]


def mixed_rows(seed, n=70, width=6):
    """Rows whose columns are mixtures, so that some enter and later leave."""
    rows = random_rows(seed, n=n, width=width, spread=0.5)
    mix = np.random.default_rng(seed).normal(size=(width, width))
    return rows.features @ mix, rows.codes


@given(seed=st.integers(0, 999), enter=st.sampled_from([0.05, 0.15, 0.5]))
def test_every_step_is_that_of_fits_to_the_rows(seed, enter):
    features, codes = mixed_rows(seed)
    found = path_of(stepwise(moments(features, codes), enter=enter, stay=0.15))
    expected = brute_path(features, codes, enter, 0.15)
    assert [step[:2] for step in found] == [step[:2] for step in expected]
    np.testing.assert_allclose([s[2] for s in found], [s[2] for s in expected], rtol=1e-8)


def test_some_features_leave_after_others_have_entered():
    """So that the law above is not one of forward selection alone."""
    paths = [path_of(stepwise(moments(*mixed_rows(seed)))) for seed in range(40)]
    assert any(step[1] == -1 for path in paths for step in path)


@given(seed=st.integers(0, 999))
def test_forward_and_backward_are_those_of_fits_to_the_rows(seed):
    features, codes = mixed_rows(seed)
    sums = moments(features, codes)
    forward = brute_path(features, codes, 0.15, 0.15, may_leave=False)
    backward = brute_path(features, codes, 0.15, 0.15, start=range(6), may_enter=False)
    for method, expected in (("forward", forward), ("backward", backward)):
        found = path_of(stepwise(sums, method=method))
        assert [step[:2] for step in found] == [step[:2] for step in expected], method


def test_iris_is_as_sas_prints_it():
    """PROC STEPDISC on the iris: F, Wilks' lambda, average squared canonical correlation."""
    found = stepwise(moments(*rows_of("iris")))
    printed = [  # petal length, sepal width, petal width, sepal length
        ("x2", 1180.16, 0.05862828, 0.47068586),
        ("x1", 43.04, 0.03688411, 0.55995394),
        ("x3", 34.57, 0.02497554, 0.59495691),
        ("x0", 4.72, 0.02343863, 0.59594941),
    ]
    said = [(s.entered, round(s.f, 2), round(s.wilks, 8), round(s.ascc, 8)) for s in found.steps]
    assert said == printed


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_the_model_after_each_step_is_that_of_a_manova_of_its_features(name):
    sums = moments(*rows_of(name))
    model = []
    for step in stepwise(sums, tolerance=1e-12).steps:
        model = [f for f in [*model, step.entered] if f not in (None, step.removed)]
        whole = manova(sums.select(model))
        assert step.wilks == pytest.approx(whole.wilks.value, rel=1e-8)
        assert step.wilks_p == pytest.approx(whole.wilks.p, rel=1e-6, abs=1e-300)
        assert step.ascc == pytest.approx(whole.pillai.value / (len(sums.labels) - 1), rel=1e-8)
        assert step.ascc_p == pytest.approx(whole.pillai.p, rel=1e-6, abs=1e-300)


def test_classes_far_apart_do_not_hide_what_is_within_them():
    """Means 1e7 sd apart in columns that share most of their variance: lambda in 60 digits."""
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 3
    common = rng.normal(size=60)
    features = 0.1 * rng.normal(size=(60, 3)) + common[:, None] + 1e7 * codes[:, None] ** [1, 1, 2]
    last = stepwise(moments(features, codes), enter=1.0, stay=1.0).steps[-1]
    with mpmath.workdps(60):
        dets = []
        for groups in ([codes == k for k in range(3)], [codes >= 0]):
            scatter = mpmath.zeros(3)
            for rows in groups:
                part = mpmath.matrix(features[rows].tolist())
                ones = mpmath.ones(part.rows, 1)
                apart = part - ones * (ones.T * part) / part.rows
                scatter += apart.T * apart
            dets.append(mpmath.det(scatter))
        expected = float(dets[0] / dets[1])
    assert (last.size, last.wilks) == (3, pytest.approx(expected, rel=1e-6))


def test_more_classes_than_features_are_stepped_alike():
    rng = np.random.default_rng(1)
    codes = np.arange(120) % 8
    features = rng.normal(size=(120, 3)) + rng.normal(size=(8, 3))[codes]
    found = path_of(stepwise(moments(features, codes)))
    expected = brute_path(features, codes, 0.15, 0.15)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@given(seed=st.integers(0, 99), cut=st.integers(1, 69))
def test_merged_moments_choose_as_the_whole(seed, cut):
    features, codes = mixed_rows(seed)
    parts = [moments(features[s], codes[s]) for s in (slice(cut), slice(cut, None))]
    whole = path_of(stepwise(moments(features, codes)))
    np.testing.assert_allclose(path_of(stepwise(sum(parts))), whole, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_units_change_no_choice(scale):
    features, codes = mixed_rows(3)
    plain = stepwise(moments(features, codes))
    scaled = stepwise(moments(features * [1, scale, 1, 1, scale, 1], codes))
    assert scaled.selected == plain.selected


def test_sweeping_on_all_columns_is_minus_the_inverse_and_sweeping_back_undoes_it():
    root = np.random.default_rng(0).normal(size=(9, 4))
    start = root.T @ root
    swept = start.copy()
    for place in range(4):
        sweep(swept, place)
    np.testing.assert_allclose(swept, -np.linalg.inv(start), rtol=1e-10)
    for place in range(4):
        sweep(swept, place, back=True)
    np.testing.assert_allclose(swept, start, rtol=1e-10)


def test_a_copy_of_a_feature_cannot_enter_and_is_named():
    features, codes = rows_of("iris")
    found = stepwise(moments(np.column_stack([features, features[:, 2] * 2]), codes))
    assert found.dependent in (("x4",), ("x2",))
    assert len(found.selected) == 4


def test_a_feature_that_would_enter_again_ends_the_search():
    """With enter > stay what enters must leave at once."""
    noise = np.random.default_rng(0).normal(size=(70, 2))
    found = stepwise(moments(noise, np.arange(70) % 3), enter=1.0, stay=0.0)
    assert found.selected == () and "enter > stay" in found.reason


def test_fewer_rows_than_features_stop_the_search_in_time():
    rng = np.random.default_rng(0)
    found = stepwise(moments(rng.normal(size=(12, 30)), np.arange(12) % 2), enter=1.0, stay=1.0)
    assert len(found.selected) == 10 and "12 rows" in found.reason


def test_it_is_told_as_text_frame_and_dictionary():
    found = stepwise(moments(*rows_of("iris")))
    assert "0.05862828" in found.text and "All features are in the model." in found.text
    assert found.frame().loc[1, "entered"] == "x2"
    assert json.loads(json.dumps(found.to_dict()))["selected"] == ["x0", "x1", "x2", "x3"]


def test_nothing_selected_is_told_as_well():
    rng = np.random.default_rng(0)
    found = stepwise(moments(rng.normal(size=(30, 2)), np.arange(30) % 2), enter=0.0)
    assert "Selected: none" in found.text and len(found.frame()) == 0


def test_a_constant_column_is_left_out_and_named():
    features, codes = rows_of("iris")
    with pytest.warns(ConstantColumnWarning, match="x4"):
        found = stepwise(moments(np.column_stack([features, np.ones(150)]), codes))
    assert found.features == ("x0", "x1", "x2", "x3")


def test_backward_selection_of_dependent_columns_is_refused():
    features, codes = rows_of("iris")
    wide = moments(np.column_stack([features, features[:, 0] + features[:, 1]]), codes)
    with pytest.raises(InferenceError, match=r"Backward selection.*rank 4 of 5"):
        stepwise(wide, method="backward")


@pytest.mark.parametrize(
    ("option", "value"),
    [("enter", 1.5), ("stay", -0.1), ("method", "both"), ("tolerance", 0.0)],
)
def test_an_option_out_of_range_is_refused(option, value):
    with pytest.raises(OptionError, match=f"{option}="):
        stepwise(moments(*rows_of("iris")), **{option: value})
