"""Inference from single rows: exact cases, brute force, printed results and refusals."""

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant import GLM, Logistic, LogLinear, OrderedLogistic
from discriminant.errors import InferenceError, OptionError, ShapeError


def gaussian_rows(n=60, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + rng.normal(size=n) * (1 + np.abs(X[:, 0]))


def class_rows(n=200, K=2, seed=1):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, K, n)
    return rng.normal(size=(n, 2)) + 0.7 * rng.normal(size=(K, 2))[codes], codes


# --- robust covariances ---------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_white_errors_of_least_squares_are_the_textbook_formula(shift):
    X, y = gaussian_rows()
    model = GLM().fit(X + shift, y)
    found = model.summary(cov="HC0", X=X + shift, y=y).inference
    design = np.column_stack([np.ones(len(X)), X])
    bread = np.linalg.inv(design.T @ design)
    residual = y - design @ np.linalg.solve(design.T @ design, design.T @ y)
    wanted = bread @ (design * residual[:, None] ** 2).T @ design @ bread
    np.testing.assert_allclose(found.std_error[1:], np.sqrt(np.diag(wanted))[1:], rtol=1e-6)


def test_clusters_of_one_row_give_hc0_up_to_the_factor():
    X, y = class_rows()
    model = Logistic().fit(X, y)
    single = model.summary(cov="cluster", X=X, y=y, groups=np.arange(len(y))).inference
    plain = model.summary(cov="HC0", X=X, y=y).inference
    factor = np.sqrt(len(y) / (len(y) - 1))
    np.testing.assert_allclose(single.std_error, factor * plain.std_error, rtol=1e-10)


def test_repeated_rows_do_not_shrink_clustered_errors():
    X, y = class_rows()
    one = Logistic().fit(X, y).summary(cov="cluster", X=X, y=y, groups=np.arange(len(y)))
    XX, yy, groups = np.tile(X, (3, 1)), np.tile(y, 3), np.tile(np.arange(len(y)), 3)
    three = Logistic().fit(XX, yy).summary(cov="cluster", X=XX, y=yy, groups=groups)
    np.testing.assert_allclose(three.inference.std_error, one.inference.std_error, rtol=1e-7)


def test_summary_names_the_robust_errors():
    X, y = class_rows()
    summary = Logistic().fit(X, y).summary(cov="HC1", X=X, y=y)
    assert "Standard errors: sandwich (HC1)" in summary.text
    assert summary.to_dict()["cov"] == "HC1"
    assert Logistic().fit(X, y).summary().to_dict()["cov"] is None


def test_log_linear_has_robust_errors_of_the_logarithm():
    X, y = gaussian_rows()
    logs = 0.1 * y
    found = LogLinear().fit(X, np.exp(logs)).summary(cov="HC3", X=X, y=np.exp(logs))
    wanted = GLM().fit(X, logs).summary(cov="HC3", X=X, y=logs)
    np.testing.assert_allclose(found.inference.std_error, wanted.inference.std_error, rtol=1e-8)


def test_partitioned_rows_that_fit_into_memory_have_robust_errors(tmp_path):
    X, y = class_rows()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows = dd.rows(str(tmp_path / "rows.csv"), target="y")
    found = Logistic().fit(rows).summary(cov="HC0", X=rows).inference.std_error
    wanted = Logistic().fit(X, y).summary(cov="HC0", X=X, y=y).inference.std_error
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"cov": "HC9"}, OptionError, "HC0, HC1"),
        ({"cov": "HC0"}, InferenceError, "stores no rows"),
        ({"cov": "cluster", "X": True}, OptionError, "groups"),
        ({"cov": "cluster", "X": True, "groups": [1, 2]}, ShapeError, "groups"),
        ({"cov": "cluster", "X": True, "groups": 0}, InferenceError, "one cluster"),
        ({"cov": "HC0", "X": True, "groups": 0}, OptionError, "cluster"),
        ({"X": True}, OptionError, "cov"),
    ],
)
def test_invalid_robust_options_are_refused(options, error, match):
    X, y = class_rows()
    model = Logistic().fit(X, y)
    if "X" in options:
        options = options | {"X": X, "y": y}
    if options.get("groups") == 0:
        options = options | {"groups": np.zeros(len(y), int)}
    with pytest.raises(error, match=match):
        model.summary(**options)


def test_other_rows_than_those_of_the_fit_are_refused():
    X, y = class_rows()
    with pytest.raises(InferenceError, match="not the rows of the fit"):
        Logistic().fit(X, y).influence(X[::-1], y)


def test_robust_errors_with_bias_reduction_are_refused():
    X, y = class_rows()
    model = Logistic(bias_reduction="jeffreys").fit(X, y)
    with pytest.raises(InferenceError, match="bias_reduction"):
        model.summary(cov="HC0", X=X, y=y)


def test_tests_of_penalised_fits_are_refused():
    X, y = class_rows()
    model = Logistic(ridge=0.1).fit(X, y)
    for ask in (lambda: model.goodness_of_fit(X, y), lambda: model.influence(X, y)):
        with pytest.raises(InferenceError, match=r"ridge=0\.1"):
            ask()


def test_hc3_and_influence_of_several_classes_are_refused():
    X, y = class_rows(K=3)
    model = Logistic().fit(X, y)
    for ask in (
        lambda: model.summary(cov="HC3", X=X, y=y),
        lambda: model.influence(X, y),
        lambda: model.goodness_of_fit(X, y),
    ):
        with pytest.raises(InferenceError, match="two classes"):
            ask()


# --- influence ------------------------------------------------------------------------------------


def test_influence_on_least_squares_is_exact():
    X, y = gaussian_rows(n=25)
    model = GLM().fit(X, y)
    found = model.influence(X, y)
    i = int(np.argmax(found.cooks_distance))
    rest = np.arange(len(y)) != i
    other = GLM().fit(X[rest], y[rest])
    change = np.append(model.intercept_, model.coef_) - np.append(other.intercept_, other.coef_)
    design = np.column_stack([np.ones(len(X)), X])
    scale = np.sqrt(other.dispersion_ * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(found.dfbetas[i], change / scale, rtol=1e-6)
    moved = design @ change
    assert found.cooks_distance[i] == pytest.approx(moved @ moved / (3 * model.dispersion_))
    assert found.leverage.sum() == pytest.approx(3.0)


def test_influence_prints_the_rows_with_the_largest_distances():
    X, y = gaussian_rows()
    found = GLM().fit(X, y).influence(X, y)
    lines = found.text.splitlines()
    assert "10 of 60" in lines[0]
    assert int(lines[3].split()[0]) == int(np.argmax(found.cooks_distance))
    assert found.frame().shape == (60, 7)
    assert len(found.to_dict()["leverage"]) == 60


# --- marginal effects -----------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
def test_marginal_effects_are_mean_derivatives_of_the_probability(link):
    X, y = class_rows()
    model = Logistic(link).fit(X, y)
    found, step = model.marginal_effects(X, y), 1e-5
    for j in range(2):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        slope = (model.predict_proba(up) - model.predict_proba(down))[:, 1] / (2 * step)
        assert found.effect[j] == pytest.approx(slope.mean(), rel=1e-6)


@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("gaussian", "identity"),
        ("gaussian", "log"),
        ("gaussian", "inverse"),
        ("poisson", "log"),
        ("poisson", "sqrt"),
        ("gamma", "inverse"),
        ("binomial", "cloglog"),
        ("binomial", "cauchit"),
    ],
)
def test_errors_of_marginal_effects_are_by_the_delta_method(family, link):
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, size=(80, 2))
    mean = 2.0 + X @ [0.5, -0.3]
    y = {"gaussian": mean + 0.1 * rng.normal(size=80), "gamma": rng.gamma(9.0, mean / 9.0)}.get(
        family, rng.poisson(mean).astype(float)
    )
    if family == "binomial":
        y = (rng.random(80) < 0.5 + 0.4 * X[:, 0]).astype(float)
    model = GLM(family, link).fit(X, y)
    inference, found = model.inference(), model.marginal_effects(X, y)
    deviance, step = model._kept.deviance, 1e-5

    def effects(theta):
        score = theta[0] + X @ theta[1:]
        slope = (deviance.mean(score + step) - deviance.mean(score - step)) / (2 * step)
        return slope.mean() * theta[1:]

    theta = inference.estimate
    jacobian = np.column_stack(
        [(effects(theta + 1e-4 * e) - effects(theta - 1e-4 * e)) / 2e-4 for e in np.eye(3)]
    )
    wanted = np.sqrt(np.diag(jacobian @ inference.covariance @ jacobian.T))
    np.testing.assert_allclose(found.effect, effects(theta), rtol=1e-6)
    np.testing.assert_allclose(found.std_error, wanted, rtol=1e-4)


def test_effects_on_the_probabilities_of_all_classes_sum_to_zero():
    X, y = class_rows(K=3)
    names = np.array(["a", "b", "c"])
    found = Logistic().fit(X, names[y]).marginal_effects(X, names[y])
    np.testing.assert_allclose(found.effect.reshape(3, 2).sum(axis=0), 0.0, atol=1e-12)
    assert found.frame().index.tolist()[:2] == [("a", "x0"), ("a", "x1")]
    assert "a: x0" in found.text and len(found.to_dict()["effects"]) == 6


# --- contrasts and nested fits --------------------------------------------------------------------


def test_a_single_contrast_is_the_square_of_its_z():
    X, y = class_rows()
    model = Logistic().fit(X, y)
    found, row = model.wald_test({"x0": 1}), model.inference()
    assert found.statistic == pytest.approx(row.statistic[1] ** 2)
    assert found.p == pytest.approx(row.p[1])
    assert found.p_each[0] == pytest.approx(row.p[1])


def test_the_joint_f_of_a_gaussian_fit_is_that_of_the_overall_test():
    X, y = gaussian_rows()
    found = GLM().fit(X, y).wald_test([{"x0": 1}, {"x1": 1}])
    model = GLM().fit(X, y)
    wanted = (model.null_deviance_ - model.deviance_) / 2 / model.dispersion_
    assert found.statistic == pytest.approx(wanted, rel=1e-9)
    assert (found.df, found.df_residual) == (2, 57)
    assert "F with 2 and 57 degrees of freedom" in found.text


def test_contrasts_of_several_classes_name_class_and_column():
    X, y = class_rows(K=3)
    model = Logistic().fit(X, y)
    found = model.wald_test([{(1, "x0"): 1, (2, "x0"): -1}])
    row = model.inference()
    assert found.estimate[0] == pytest.approx(row.estimate[1] - row.estimate[4])
    assert found.names == ("1: x0 - 2: x0",)
    assert found.frame().shape == (1, 5) and found.to_dict()["df"] == 1


@pytest.mark.parametrize(
    ("contrasts", "error", "match"),
    [
        ({"z": 1}, InferenceError, "'z' is not an estimate"),
        ([[1, 2]], OptionError, "3 columns"),
        ("x0", OptionError, "dict"),
        ([[0, 0, 0]], OptionError, "zero"),
        ([[0, 1, 0], [0, 2, 0]], InferenceError, "rank 1"),
    ],
)
def test_invalid_contrasts_are_refused(contrasts, error, match):
    X, y = class_rows()
    with pytest.raises(error, match=match):
        Logistic().fit(X, y).wald_test(contrasts)


def test_robust_contrasts_use_the_robust_covariance():
    X, y = class_rows()
    model = Logistic().fit(X, y)
    found = model.wald_test({"x0": 1}, cov="HC1", X=X, y=y)
    row = model.summary(cov="HC1", X=X, y=y).inference
    assert found.std_error[0] == pytest.approx(row.std_error[1])


def test_comparison_does_not_depend_on_the_order_of_the_models():
    X, y = class_rows()
    small, large = Logistic().fit(X[:, :1], y), Logistic().fit(X, y)
    one, other = dd.compare_fits(small, large), dd.compare_fits(large, small)
    assert one.to_dict() == other.to_dict()
    assert one.p == pytest.approx(large.drop_each(X, y)[1].p, rel=1e-6)
    assert "Analysis of deviance" in one.text and one.frame().shape == (2, 5)


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (lambda X, y: Logistic("probit").fit(X, y), "different models"),
        (lambda X, y: Logistic().fit(X[1:], y[1:]), "different rows"),
        (lambda X, y: Logistic().fit(pd.DataFrame(X, columns=["x0", "c"]), y), "not nested"),
    ],
)
def test_fits_that_are_not_nested_are_refused(other, match):
    X, y = class_rows()
    with pytest.raises(InferenceError, match=match):
        dd.compare_fits(Logistic().fit(X, y), other(X, y))


def test_models_without_a_likelihood_are_refused():
    X, y = class_rows()
    with pytest.raises(OptionError, match="Logistic or OrderedLogistic"):
        dd.compare_fits(dd.LDA().fit(X, y), Logistic().fit(X, y))


# --- goodness of fit ------------------------------------------------------------------------------


def test_le_cessie_with_weights_is_that_of_repeated_rows():
    X, y = class_rows()
    times = np.random.default_rng(5).integers(1, 4, len(y))
    weighted = Logistic().fit(X, y, times).goodness_of_fit(X, y, times, test="le_cessie")
    XX, yy = np.repeat(X, times, axis=0), np.repeat(y, times)
    repeated = Logistic().fit(XX, yy).goodness_of_fit(XX, yy, test="le_cessie")
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-6)


def test_tests_detect_a_missing_square():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1))
    y = (rng.random(2000) < 1 / (1 + np.exp(-(x[:, 0] ** 2 - 1)))).astype(int)
    wrong, right = Logistic().fit(x, y), Logistic().fit(np.hstack([x, x**2]), y)
    for test in ("hosmer_lemeshow", "le_cessie"):
        assert wrong.goodness_of_fit(x, y, test=test).p < 1e-3
        assert right.goodness_of_fit(np.hstack([x, x**2]), y, test=test).p > 1e-3


def test_goodness_of_fit_prints_its_groups():
    X, y = class_rows()
    found = Logistic().fit(X, y).goodness_of_fit(X, y)
    assert "X-squared" in found.text and "df 8" in found.text
    assert found.frame()["rows"].sum() == 200
    assert found.frame()["expected"].sum() == pytest.approx(y.sum())


def test_invalid_goodness_of_fit_is_refused():
    X, y = class_rows()
    with pytest.raises(OptionError, match="groups"):
        Logistic().fit(X, y).goodness_of_fit(X, y, groups=2)
    with pytest.raises(InferenceError, match="hosmer_lemeshow"):
        Logistic("probit").fit(X, y).goodness_of_fit(X, y, test="le_cessie")
    few = np.repeat([[0.0], [1.0]], 20, axis=0)
    labels = np.tile([0, 1, 1, 0, 1], 8)
    with pytest.raises(InferenceError, match="le_cessie"):
        Logistic().fit(few, labels).goodness_of_fit(few, labels)


# --- printed results ------------------------------------------------------------------------------


def test_inference_and_dropped_features_are_printed():
    X, y = class_rows()
    model = Logistic().fit(X, y)
    inference, dropped = model.inference(), model.drop_each(X, y)
    assert str(inference) == model.summary().text == repr(inference)
    assert inference.to_dict() == model.summary().to_dict()
    assert inference.frame().index.tolist() == ["(Intercept)", "x0", "x1"]
    assert inference._repr_html_().startswith("<pre>Logistic")
    assert dropped.text.splitlines()[0] == "Single term deletions"
    assert dropped.frame().index.tolist() == ["x0", "x1"]
    assert dropped.to_dict()["dropped"][0]["name"] == "x0"
    assert "&lt;" in dropped._repr_html_() or "x0" in dropped._repr_html_()


def test_ordered_classes_have_no_rows_to_read():
    assert not hasattr(OrderedLogistic(), "influence")
