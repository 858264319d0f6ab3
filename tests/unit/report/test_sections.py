"""Facts are the numbers of the API, of other libraries, or of books; never other ones."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import (
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
    zero_one_loss,
)

import discriminant as dd
from discriminant.report.fact_types import to_json
from discriminant.report.sections.comparison import comparison_section
from discriminant.report.sections.data import read_section
from discriminant.report.sections.decision import decision_section, held_facts
from discriminant.report.sections.features import (
    coefficients_from,
    coefficients_of,
    findings_of,
    findings_of_warnings,
    spreads,
)
from discriminant.report.sections.row_sample import RowSample, beyond_edges, bin_edges
from discriminant.report.sections.space import space_section
from discriminant.report.svg import bin_name, draw_space
from discriminant.table.memory import as_table
from tests.unit.report.samples import cancer, iris

IRIS = load_iris()
CANCER = load_breast_cancer()


def held_out(X, y):
    fold = np.arange(len(y)) % 5
    return {m: dd.cross_validate(getattr(dd, m)(), X, y, fold) for m in ("LDA", "QDA")}


def space_of(X, y, **options):
    return space_section(as_table(X, y), dd.moments(X, y), **options)


# --- what was read ---


def test_rows_of_classes_are_counted_by_rows_and_by_weight():
    table = as_table(np.arange(6.0)[:, None], list("aabbbb"), weight=np.arange(6.0))
    found = read_section(table, source="s", missing={"x0": 2})
    counts = [(row["label"], row["rows"], row["weight"]) for row in found["classes"]]
    assert (counts, found["columns"][0]["missing"]) == ([("a", 2, 1.0), ("b", 4, 14.0)], 2)


# --- the comparison ---


def test_measures_of_two_classes_are_those_of_scikit_learn():
    held = held_out(CANCER.data[:, :6], CANCER.target)
    facts = comparison_section(held)["models"][0]
    p = np.exp(held["LDA"].log_posterior)
    expected = [
        zero_one_loss(CANCER.target, p.argmax(axis=1)),
        log_loss(CANCER.target, p),
        roc_auc_score(CANCER.target, p[:, 1]),
        brier_score_loss(CANCER.target, p[:, 1]),
    ]
    found = [facts[name] for name in ("error", "log_loss", "auc", "brier")]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_auc_of_many_classes_is_the_mean_of_each_against_the_rest():
    held = held_out(IRIS.data, IRIS.target)["LDA"]
    expected = roc_auc_score(IRIS.target, np.exp(held.log_posterior), multi_class="ovr")
    assert comparison_section({"LDA": held})["models"][0]["auc"] == pytest.approx(expected)


def test_unless_one_is_named_the_model_of_least_log_loss_is_taken():
    held = held_out(IRIS.data, IRIS.target)
    losses = {name: log_loss(IRIS.target, np.exp(h.log_posterior)) for name, h in held.items()}
    taken = [m["name"] for m in comparison_section(held)["models"] if m["chosen"]]
    assert taken == [min(losses, key=losses.get)]


def test_a_model_that_is_named_is_taken_and_why_says_so():
    held = held_out(IRIS.data, IRIS.target)
    worse = max(held, key=lambda name: log_loss(IRIS.target, np.exp(held[name].log_posterior)))
    assert f"{worse} was selected as requested." in comparison_section(held, chosen=worse)["why"]


def test_two_models_alike_are_not_said_to_differ():
    held = held_out(IRIS.data, IRIS.target)["LDA"]
    assert (
        "does not differ significantly from that of twin (McNemar's test at level 0.05)."
        in comparison_section({"one": held, "twin": held})["why"]
    )


def test_correction_of_several_tests_is_named():
    held = held_out(IRIS.data, IRIS.target)["LDA"]
    why = comparison_section({"one": held, "twin": held, "third": held})["why"]
    assert "(McNemar's test at level 0.05, Bonferroni-corrected for 2 comparisons)." in why


def test_an_infinite_log_loss_is_said_in_words():
    y = np.array(["a"] * 20 + ["b"] * 20 + ["c"] * 5)
    X = np.random.default_rng(0).normal(size=(45, 2))
    with pytest.warns(dd.errors.ClassMissingWarning):
        held = dd.cross_validate(dd.LDA(), X, y, np.repeat([0, 1, 0, 1, 2], [10, 10, 10, 10, 5]))
    assert "infinite" in comparison_section({"LDA": held})["models"][0]["note"]


# --- discriminant space ---


def test_wilks_and_box_are_the_published_ones_of_iris():
    found = space_of(IRIS.data, IRIS.target)
    wilks = found["tests"][0]["value"]
    np.testing.assert_allclose([wilks, found["box_m"]["chi2"]], [0.02343863, 140.943050], rtol=1e-6)


def test_every_row_lies_in_the_region_of_the_class_that_lda_gives_it():
    found = space_of(IRIS.data, IRIS.target)
    said = LinearDiscriminantAnalysis(priors=[1 / 3] * 3).fit(IRIS.data, IRIS.target)
    (region,) = found["regions"]
    left, right, low, high = region["frame"]
    points = np.array(found["points"])
    column = ((points[:, 0] - left) / (right - left) * region["across"]).astype(int)
    line = ((points[:, 1] - low) / (high - low) * region["up"]).astype(int)
    near = [
        {
            region["codes"][(v + i) * region["across"] + u + j]
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
        }
        for u, v in zip(column, line, strict=True)
    ]
    predicted = [chr(65 + code) for code in said.predict(IRIS.data)]
    assert all(code in codes for code, codes in zip(predicted, near, strict=True))
    inner = [
        next(iter(codes)) == code
        for code, codes in zip(predicted, near, strict=True)
        if len(codes) == 1
    ]
    assert len(inner) > 120 and all(inner)


def test_the_border_of_two_classes_is_where_lda_changes_its_mind():
    X, y = CANCER.data[:, :4], CANCER.target
    found, said = space_of(X, y), dd.LDA().fit(X, y).predict(X)
    along = np.array([point[0] for point in found["points"]])
    (border,) = found["borders"]
    assert ((along > border) == (said == 1)).all()


def test_an_ellipse_holds_the_share_of_gaussian_rows_that_it_says():
    draw = np.random.default_rng(3)
    X = draw.normal(size=(30_000, 3)) @ draw.normal(size=(3, 3))
    y = np.arange(30_000) % 3
    found = space_of(X + 3 * y[:, None] ** [1, 2, 0], y, most=30_000)
    ellipse, points = found["ellipses"][1], np.array(found["points"])
    rows = points[np.array(found["codes"]) == 1] - ellipse["centre"]
    squared = np.einsum("ij,ij->i", rows, np.linalg.solve(ellipse["covariance"], rows.T).T)
    within = squared <= ellipse["radius"] ** 2
    assert within.mean() == pytest.approx(ellipse["share"], abs=0.007)


def test_of_many_rows_a_sample_is_shown_and_no_class_is_lost():
    y = np.where(np.arange(9000) % 300 == 0, 2, np.arange(9000) % 2)
    X = np.random.default_rng(0).normal(size=(9000, 3)) + y[:, None]
    found = space_of(X, y, most=500)
    codes = found["codes"]
    assert (len(codes) <= 520, codes.count(2) >= 16, found["rows"]) == (True, True, 9000)


def test_classes_that_box_cannot_compare_are_a_note_not_an_error():
    X = np.random.default_rng(0).normal(size=(12, 3))
    found = space_of(X, [0] * 5 + [1] * 4 + [2] * 3)
    assert "Box's M" in " ".join(found["notes"]) and "box_m" not in found


# --- the decision ---


@pytest.fixture(scope="module")
def default(shared_data):
    rows = pd.read_csv(shared_data / "islr_default" / "Default.csv")
    X = np.column_stack([rows["balance"], rows["student"] == "Yes"])
    model = dd.LDA().fit(X, rows["default"])
    codes = (rows["default"] == "Yes").to_numpy().astype(int)
    return model.classes_, codes, model.predict_log_proba(X)


@pytest.mark.parametrize(
    ("cost", "table"),
    [(None, [[9644, 252], [23, 81]]), ({"No": {"Yes": 4}}, [[9432, 138], [235, 195]])],
    ids=["half", "a fifth"],
)
def test_decisions_are_those_of_the_book_at_a_half_and_at_a_fifth(default, cost, table):
    # James et al., An Introduction to Statistical Learning, tables 4.4 and 4.5.
    found = decision_section(*default, cost=cost)
    roc, start = found["roc"], found["roc"]["start"]
    on_curve = [
        [roc["negatives"] - roc["fp"][start], roc["positives"] - roc["tp"][start]],
        [roc["fp"][start], roc["tp"][start]],
    ]
    assert (found["confusion"], on_curve) == (table, table)


def test_the_curve_of_many_rows_is_thinned_and_keeps_its_area(default):
    found = decision_section(*default)["roc"]
    x, y = np.array(found["fp"]) / found["negatives"], np.array(found["tp"]) / found["positives"]
    exact = roc_auc_score(default[1], default[2][:, 1])
    assert len(x) <= 1000 and np.trapezoid(y, x) == pytest.approx(exact, abs=5e-4)


def test_of_two_classes_the_rarer_is_looked_for_unless_one_is_named(default):
    named = decision_section(*default, positive="No")
    assert (decision_section(*default)["positive"], named["positive"]) == (1, 0)


def test_confusion_of_many_classes_is_that_of_scikit_learn():
    held = held_out(IRIS.data, IRIS.target)["QDA"]
    found = decision_section(held.labels, held.codes, held.log_posterior)
    expected = confusion_matrix(IRIS.target, held.log_posterior.argmax(axis=1)).T
    assert found["confusion"] == expected.tolist()


def test_rows_dearer_to_decide_than_to_pass_on_are_passed_on():
    logs = np.log([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    found = decision_section(np.array(["a", "b"]), np.array([0, 1, 1]), logs, reject=0.3)
    assert (found["confusion"], found["coverage"]) == (
        [[1, 0], [0, 1], [0, 1]],
        pytest.approx(2 / 3),
    )


def test_posteriors_on_a_page_decide_as_the_exact_ones():
    logs = np.log(np.random.default_rng(1).dirichlet(np.ones(5), size=1500))
    found = held_facts(np.arange(1500) % 5, logs, None)
    assert np.array_equal(np.argmin(found["logs"], axis=1), logs.argmax(axis=1))


def test_a_sample_of_held_out_rows_stands_for_all_of_them():
    codes = np.repeat([0, 1, 2], [90_000, 9_000, 30])
    logs = np.log(np.random.default_rng(1).dirichlet(np.ones(3), size=len(codes)))
    found = held_facts(codes, logs, None, most=900)
    total = np.bincount(found["truth"]) * np.array(found["weight"])
    np.testing.assert_allclose(total, [90_000, 9_000, 30])


def test_a_decision_that_is_no_class_has_a_row_of_its_own():
    logs = np.log([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    cost = {"ask": {"a": 0.2, "b": 0.2}, "a": {"b": 1}}
    found = decision_section(np.array(["a", "b"]), np.array([0, 1, 1]), logs, cost=cost)
    assert (found["actions"], found["confusion"][2]) == (["a", "b", "ask"], [0, 1])


# --- what matters ---


def test_coefficients_and_their_intervals_are_those_of_least_squares():
    found = coefficients_from(dd.moments(IRIS.data, IRIS.target))
    Z = (IRIS.data - IRIS.data.mean(axis=0)) / IRIS.data.std(axis=0, ddof=1)
    design, y = np.column_stack([np.ones(150), Z]), (IRIS.target == 1).astype(float)
    b, left, *_ = np.linalg.lstsq(design, y)
    se = np.sqrt(left[0] / 145 * np.diag(np.linalg.inv(design.T @ design)))
    reach = stats.t.ppf(0.975, 145) * se
    expected = {f"x{j - 1}": (b[j], b[j] - reach[j], b[j] + reach[j]) for j in range(1, 5)}
    own = {r["feature"]: (r["value"], r["low"], r["high"]) for r in found["rows"] if r["of"] == "1"}
    np.testing.assert_allclose([own[k] for k in expected], list(expected.values()), rtol=1e-9)


def test_coefficients_of_dependent_columns_are_left_out_rather_than_made_up():
    X = np.column_stack([IRIS.data, IRIS.data.sum(axis=1)])
    assert coefficients_from(dd.moments(X, IRIS.target)) is None


def test_coefficients_of_a_logistic_model_are_its_own_for_a_typical_step():
    X, y = CANCER.data[:, :3], CANCER.target
    fitted = dd.Logistic().fit(X, y)
    found = coefficients_of(fitted.inference(), spreads(dd.moments(X, y)))
    own = {row["feature"]: row["value"] for row in found["rows"]}
    expected = fitted.coef_[0] * X.std(axis=0, ddof=1)
    np.testing.assert_allclose([own[f"x{j}"] for j in range(3)], expected, rtol=1e-8)


def test_a_row_far_from_its_class_is_found():
    X = IRIS.data.copy()
    X[70, 1] = 30.0
    found = findings_of(as_table(X, IRIS.target), dd.moments(X, IRIS.target))
    assert ["row 70 " in finding["text"] for finding in found if finding["kind"] == "outliers"] == [
        True
    ]


def test_a_rare_class_is_named_with_its_share():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.array(["usual"] * 190 + ["rare"] * 10)
    (found,) = findings_of(as_table(X, y), dd.moments(X, y))
    assert (found["kind"], "Class rare is rare: 5.0%" in found["text"]) == ("imbalance", True)


def test_features_that_say_the_same_are_named():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:, 2] = X[:, 0] + 0.01 * X[:, 2]
    y = np.arange(200) % 2
    (found,) = findings_of(as_table(X, y), dd.moments(X, y))
    assert found["kind"] == "collinear" and "x0 and x2" in found["text"].replace(
        "x2 and x0", "x0 and x2"
    )


def test_warnings_of_a_kind_are_one_finding():
    told = [dd.errors.CollinearWarning("a"), dd.errors.CollinearWarning("b"), UserWarning("c")]
    found = findings_of_warnings(told)
    assert [(f["kind"], f.get("details")) for f in found] == [
        ("collinear", ["a", "b"]),
        ("warning", None),
    ]


def test_a_single_warning_of_constant_columns_names_them():
    one = dd.errors.ConstantInClassWarning.of_columns(["a"], "x")
    two = dd.errors.ConstantInClassWarning.of_columns(["b"], "y")
    (finding,) = findings_of_warnings([one])
    assert finding["text"].startswith("Column(s) 'a' are constant in class 'x'")
    (finding,) = findings_of_warnings([one, two])
    assert finding["text"].startswith("Some columns are constant") and len(finding["details"]) == 2


# --- all of it ---


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_facts_are_json_and_come_back_the_same(made):
    assert json.loads(to_json(made())) == made()


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_no_number_in_the_facts_is_anything_but_finite(made):
    assert all(math.isfinite(value) for value in numbers(made()))


def numbers(part):
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        return [value for one in part for value in numbers(one)]
    return [part] if isinstance(part, float) else []


def test_a_model_without_probabilities_is_not_preferred_for_its_log_loss():
    X, y = load_iris(return_X_y=True)
    held = {
        kind.__name__: dd.cross_validate(kind(), X, y, np.arange(150) % 5)
        for kind in (dd.LeastSquares, dd.LDA)
    }
    models = {model["name"]: model for model in comparison_section(held)["models"]}
    assert models["LDA"]["chosen"] and models["LDA"]["log_loss"] is not None
    none = [models["LeastSquares"][name] for name in ("log_loss", "brier", "calibration")]
    assert none == [None] * 3
    assert "no probabilities" in models["LeastSquares"]["note"]


# --- stray points ---------------------------------------------------------------------------------


def _with_strays(strays):
    """Three Gaussian classes in four dimensions; some rows are far away."""
    draw = np.random.default_rng(3)
    y = np.arange(600) % 3
    X = draw.normal(size=(600, 4)) + 3 * np.eye(3, 4)[y]
    X[:strays] *= 400.0
    return space_of(X, y)


def test_frame_of_a_plot_without_stray_points_holds_every_point():
    space = _with_strays(0)
    assert [region["outside"] for region in space["regions"]] == [0]


def test_stray_points_do_not_compress_the_plot_and_are_arrows_at_its_border():
    space = _with_strays(20)
    (region,) = space["regions"]
    points, (left, right, low, high) = np.array(space["points"]), region["frame"]
    inside = (points >= [left, low]).all(axis=1) & (points <= [right, high]).all(axis=1)
    assert 0 < region["outside"] == (~inside).sum() <= 20
    middle = np.ptp(np.quantile(points[inside], [0.01, 0.99], axis=0), axis=0)
    assert (middle > 0.3 * np.array([right - left, high - low])).all()
    drawing = draw_space(space)
    assert drawing.count('href="#out') == region["outside"]
    across = [float(x) for x in re.findall(r'<use href="#out\d" x="([-\d.]+)"', drawing)]
    assert min(across) >= 48.0 and max(across) <= 474.0


def test_outermost_bins_count_the_values_beyond_and_are_named_so():
    values = np.append(np.random.default_rng(0).normal(size=500), [40.0, 50.0])
    table = as_table(values[:, None], np.arange(502) % 2)
    sample = RowSample.of(table, most=1000, seed=0)
    edges = bin_edges(values, 12)
    card = {
        "edges": edges.tolist(),
        "values": [],
        "levels": [],
        "beyond": beyond_edges(values, edges),
    }
    counts = sum(sample.histogram(0, edges, k) for k in range(2))
    assert counts.sum() == 502 and counts[-1] == (values >= edges[-2]).sum() >= 2
    assert card["beyond"] == [False, True]
    assert bin_name(card, len(edges) - 2).startswith("≥ ")
    assert " to " in bin_name(card, 0)


def test_histogram_of_two_classes_counts_stray_rows_in_its_outermost_bins():
    draw = np.random.default_rng(5)
    y = np.arange(400) % 2
    X = draw.normal(size=(400, 3)) + y[:, None]
    X[0] = 900.0
    space = space_of(X, y)
    assert any(space["bins"]["beyond"])
    assert np.sum(space["bins"]["counts"]) == 400
    assert "bin ≥" in draw_space(space) or "bin ≤" in draw_space(space)
