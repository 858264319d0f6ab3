"""Ordered classes: closed forms, symmetries, the order of the classes, tails and refusals."""

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import approx_fprime, minimize

import discriminant as dd
from discriminant.errors import (
    ClassOrderWarning,
    CollinearWarning,
    InferenceError,
    LabelError,
    NotConvergedWarning,
    OptionError,
    SeparationWarning,
)
from discriminant.models.linear.ordered import (
    OrderedLossReading,
    interval,
    level_log_probabilities,
)
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Block

LINKS = ["logit", "probit", "cloglog"]
every_link = pytest.mark.parametrize("link", LINKS)


def ordered_rows(n=300, d=3, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    latent = X @ np.linspace(1.0, -0.5, d) + rng.logistic(size=n)
    return X, np.searchsorted(np.quantile(latent, np.arange(1, K) / K), latent)


# --- closed forms ---------------------------------------------------------------------------------


def test_two_classes_are_logistic_regression():
    X, y = ordered_rows(K=2)
    ordered, plain = dd.OrderedLogistic().fit(X, y), dd.Logistic().fit(X, y)
    np.testing.assert_allclose(ordered.coef_, plain.coef_[0], rtol=1e-8)
    np.testing.assert_allclose(ordered.thresholds_, -plain.intercept_, rtol=1e-8)
    np.testing.assert_allclose(ordered.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    wanted = plain.inference().std_error[1:]
    np.testing.assert_allclose(ordered.inference().std_error[:-1], wanted, rtol=1e-7)


@every_link
def test_without_effect_thresholds_are_quantiles_of_the_class_shares(link):
    X, y = np.tile([[-1.0], [1.0]], (30, 1)), np.repeat([0, 1, 2], [10, 20, 30])
    model = dd.OrderedLogistic(link).fit(X, y)
    assert abs(model.coef_[0]) < 1e-9
    np.testing.assert_allclose(model.predict_proba([[5.0]]), [[1 / 6, 1 / 3, 1 / 2]], rtol=1e-8)


@every_link
def test_estimates_minimise_the_likelihood_written_out(link):
    from scipy.stats import gumbel_l, logistic, norm

    X, y = ordered_rows(n=120, d=2, K=3)
    cdf = {"logit": logistic.cdf, "probit": norm.cdf, "cloglog": gumbel_l.cdf}[link]

    def loss(theta):
        ends = np.array([-np.inf, theta[0], theta[0] + np.exp(theta[1]), np.inf])
        eta = X @ theta[2:]
        return -np.log(cdf(ends[y + 1] - eta) - cdf(ends[y] - eta)).sum()

    best = minimize(loss, [-0.5, 0.0, 0.0, 0.0], tol=1e-12)
    model = dd.OrderedLogistic(link).fit(X, y)
    likelihood = model.inference().likelihood
    assert likelihood.log_likelihood == pytest.approx(-best.fun, rel=1e-9)
    np.testing.assert_allclose(model.coef_, best.x[2:], atol=1e-4)


@every_link
@pytest.mark.parametrize(("a", "b"), [(-3.0, -40.0), (40.0, 3.0), (5e-9, 0.0), (0.3, -np.inf)])
def test_log_probabilities_are_exact_in_both_tails(link, a, b):
    with mpmath.workdps(50):
        a_, b_ = mpmath.mpf(a), mpmath.mpf(b)
        survival = {
            "logit": lambda t: 1 / (1 + mpmath.exp(t)),
            "probit": lambda t: mpmath.ncdf(-t),
            "cloglog": lambda t: mpmath.exp(-mpmath.exp(t)),
        }[link]
        wanted = mpmath.log(survival(b_) - survival(a_))
    found = interval(link, np.array([a]), np.array([b])).log_p[0]
    tolerance = 1e-7 if a == 5e-9 and link == "probit" else 1e-12
    assert found == pytest.approx(float(wanted), rel=tolerance)


@every_link
def test_gradient_and_curvature_are_derivatives_of_the_loss(link):
    X, y = ordered_rows(n=40, d=2, K=4)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    order = np.array([2, 0, 3, 1])  # position of each code

    def reading(theta, want):
        return OrderedLossReading(
            ("a", "b"), Anchor.zero(2), theta[3:5], theta[5], theta[:3], order, link, want
        )

    def read(theta, want="gradient"):
        return reading(theta, want).read(Block(X, y, weight))

    theta = np.array([-1.0, 0.2, 1.5, 0.4, -0.3, 0.1])
    slope = approx_fprime(theta, lambda t: read(t).loss, 1e-6)
    np.testing.assert_allclose(read(theta).gradient[:, 0], slope, rtol=1e-4, atol=1e-4)
    bend = approx_fprime(theta, lambda t: read(t).gradient[:, 0], 1e-6)
    np.testing.assert_allclose(read(theta, "curvature").curvature, bend, rtol=1e-3, atol=1e-3)


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_reversing_the_order_reverses_the_signs(link):
    X, y = ordered_rows()
    one = dd.OrderedLogistic(link).fit(X, y)
    other = dd.OrderedLogistic(link, order=[3, 2, 1, 0]).fit(X, y)
    np.testing.assert_allclose(other.coef_, -one.coef_, rtol=1e-8)
    np.testing.assert_allclose(other.thresholds_, -one.thresholds_[::-1], rtol=1e-8)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-9)


@every_link
def test_weights_are_repeated_rows(link):
    X, y = ordered_rows(n=100)
    times = np.random.default_rng(2).integers(0, 3, len(y))
    weighted = dd.OrderedLogistic(link).fit(X, y, times)
    repeated = dd.OrderedLogistic(link).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        weighted.inference().std_error, repeated.inference().std_error, rtol=1e-9
    )


@every_link
def test_probabilities_do_not_depend_on_units_and_origin(link):
    X, y = ordered_rows()
    plain = dd.OrderedLogistic(link).fit(X, y)
    moved = dd.OrderedLogistic(link).fit(1e3 * X + 1e8, y)
    np.testing.assert_allclose(
        moved.predict_proba(1e3 * X + 1e8), plain.predict_proba(X), atol=1e-6
    )


def test_a_sample_for_the_start_does_not_change_the_fit():
    X, y = ordered_rows(n=40_000)
    model = dd.OrderedLogistic().fit(X, y)
    single = dd.OrderedLogistic().fit(X[:8000], y[:8000])  # fitted without a sample
    again = dd.OrderedLogistic().fit(np.tile(X[:8000], (5, 1)), np.tile(y[:8000], 5))
    np.testing.assert_allclose(again.coef_, single.coef_, rtol=1e-8)
    assert model.n_passes_ <= 5


def test_partitioned_rows_give_the_fit_of_memory(tmp_path):
    X, y = ordered_rows(n=2000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    parts = [tmp_path / f"part{i}.csv" for i in range(3)]
    for i, path in enumerate(parts):
        frame.iloc[i::3].to_csv(path, index=False)
    whole = dd.OrderedLogistic().fit(frame[["a", "b", "c"]], y)
    split = dd.OrderedLogistic().fit(dd.rows([str(path) for path in parts], target="y"))
    assert split.order_.tolist() == ["0", "1", "2", "3"]  # labels of files are texts
    np.testing.assert_allclose(split.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(split.thresholds_, whole.thresholds_, rtol=1e-9)
    np.testing.assert_allclose(split.inference().std_error, whole.inference().std_error, rtol=1e-7)


# --- order of the classes -------------------------------------------------------------------------

NAMES = np.array(["low", "mid", "high"])


def named_rows():
    X, y = ordered_rows(K=3)
    return X, NAMES[y]


@pytest.mark.parametrize(
    "kind",
    [
        lambda y: pd.Categorical(y, categories=NAMES, ordered=True),
        lambda y: pd.Series(pd.Categorical(y, categories=NAMES, ordered=True)),
        lambda y: pl.Series(y, dtype=pl.Enum(NAMES.tolist())),
    ],
)
def test_the_order_of_a_categorical_is_used(kind):
    X, y = named_rows()
    model = dd.OrderedLogistic().fit(X, kind(y))
    wanted = dd.OrderedLogistic(order=NAMES).fit(X, y)
    assert model.order_.tolist() == NAMES.tolist()
    assert model.classes_.tolist() == sorted(NAMES)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)


WRAPPERS = {
    "encoded": dd.Encoded,
    "calibrated": lambda model: dd.Calibrated(model, folds=3),
    "calibrated-encoded": lambda model: dd.Calibrated(dd.Encoded(model), folds=3),
    "decision-calibrated": lambda model: dd.Decision(model, calibrate="platt"),
    "cross": lambda model: dd.PredictionSets(model, folds=3),
    "split": lambda model: dd.PredictionSets(model, method="split"),
    "pool": lambda model: dd.Pool([("ordered", model), ("lda", dd.LDA())], folds=3),
    "resampled": dd.Resampled,
    "ensemble": lambda model: dd.EasyEnsemble(model, 2),
    "adjusted": lambda model: dd.LogitAdjusted(model, "auto"),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("names", [NAMES, np.array([3, 1, 2])], ids=["texts", "numbers"])
def test_wrappers_use_the_order_of_a_categorical(wrap, names):
    X, y = ordered_rows(n=120, d=2, K=3)
    given = pd.Series(pd.Categorical(names[y], categories=names, ordered=True))
    model = wrap(dd.OrderedLogistic()).fit(X, given)
    wanted = wrap(dd.OrderedLogistic(order=names)).fit(X, names[y])
    np.testing.assert_array_equal(model.predict_proba(X), wanted.predict_proba(X))


@pytest.mark.parametrize("names", [NAMES, np.array([3, 1, 2])], ids=["texts", "numbers"])
def test_cross_validation_uses_the_order_of_a_categorical(names):
    X, y = ordered_rows(n=60, d=2, K=3)
    given = pd.Categorical(names[y], categories=names, ordered=True)
    ordered = dd.OrderedLogistic(order=names)
    for evaluate in (dd.leave_one_out, lambda *args: dd.cross_validate(*args, 3)):
        held, wanted = evaluate(dd.OrderedLogistic(), X, given), evaluate(ordered, X, names[y])
        np.testing.assert_array_equal(held.log_posterior, wanted.log_posterior)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_formula_uses_the_order_of_its_response(frame):
    X, y = named_rows()
    response = (
        pd.Categorical(y, categories=NAMES, ordered=True)
        if frame is pd.DataFrame
        else pl.Series(y, dtype=pl.Enum(NAMES.tolist()))
    )
    rows = frame({"a": X[:, 0], "b": X[:, 1], "level": response})
    model = dd.OrderedLogistic.from_formula("level ~ a + b", rows)
    assert model.estimator_.order_.tolist() == NAMES.tolist()


def test_columns_of_probabilities_are_in_the_order_of_the_sorted_classes():
    X, y = named_rows()
    model = dd.OrderedLogistic(order=NAMES).fit(X, y)
    codes = dd.OrderedLogistic().fit(X, _levels(y))
    by_level = codes.predict_proba(X)
    for k, name in enumerate(model.classes_):
        column = NAMES.tolist().index(name)
        np.testing.assert_allclose(model.predict_proba(X)[:, k], by_level[:, column], rtol=1e-9)


def _levels(y):
    return np.array([NAMES.tolist().index(label) for label in y])


def test_texts_without_an_order_are_refused_with_the_way_out():
    X, y = named_rows()
    with pytest.raises(LabelError, match=r"'high', 'low', 'mid'.*order=\[\.\.\.\]"):
        dd.OrderedLogistic().fit(X, y)


def test_an_unordered_categorical_of_texts_is_refused():
    X, y = named_rows()
    with pytest.raises(LabelError, match="ordered categorical"):
        dd.OrderedLogistic().fit(X, pd.Categorical(y))


def test_an_order_without_a_class_is_refused():
    X, y = named_rows()
    with pytest.raises(LabelError, match="'mid' are not in the order"):
        dd.OrderedLogistic(order=["low", "high"]).fit(X, y)


def test_an_order_may_name_classes_without_rows():
    X, y = named_rows()
    model = dd.OrderedLogistic(order=["none", "low", "mid", "high"]).fit(X, y)
    assert model.order_.tolist() == NAMES.tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"order": "descending"},
        {"order": ["low", "low", "high"]},
        {"order": [["low"]]},
        {"link": "cauchit"},
        {"ridge": -1.0},
        {"standardize": "no"},
        {"max_iter": 0},
        {"progress": 3},
    ],
)
def test_invalid_options_are_refused(options):
    X, y = named_rows()
    with pytest.raises(OptionError, match=next(iter(options))):
        dd.OrderedLogistic(**options).fit(X, y)


def test_reversed_class_means_raise_a_warning():
    X, y = ordered_rows(n=600, d=1, K=3)
    relabelled = np.array([0, 2, 1])[y]
    with pytest.warns(ClassOrderWarning, match="class 1 is above that of class 2"):
        dd.OrderedLogistic().fit(X, relabelled)


# --- fits without finite estimates, penalties -----------------------------------------------------


def test_complete_separation_raises_a_warning_and_no_standard_errors():
    X, y = np.arange(30.0)[:, None], np.repeat([0, 1, 2], 10)
    with pytest.warns(SeparationWarning, match="separates ordered classes"):
        model = dd.OrderedLogistic().fit(X, y)
    assert not model.converged_
    with pytest.raises(InferenceError, match="separated"):
        model.summary()


def test_quasi_separation_raises_a_warning():
    X, y = np.repeat([[0.0], [1.0]], [20, 10], axis=0), np.repeat([0, 1, 2], [10, 10, 10])
    with pytest.warns(SeparationWarning):
        model = dd.OrderedLogistic().fit(X, y)
    assert not model.converged_


def test_ridge_gives_finite_estimates_for_separated_classes():
    X, y = np.arange(30.0)[:, None], np.repeat([0, 1, 2], 10)
    model = dd.OrderedLogistic(ridge=0.01).fit(X, y)
    assert model.converged_ and (model.predict(X) == y).all()
    with pytest.raises(InferenceError, match=r"ridge=0\.01"):
        model.inference()


def test_ridge_minimises_the_penalised_loss():
    X, y = ordered_rows(n=200)
    ridge, sd = 0.1, X.std(axis=0)

    def objective(coef, thresholds):
        logs = level_log_probabilities("logit", X @ coef, thresholds)
        loss = -logs[np.arange(len(y)), y].mean()
        return loss + 0.5 * ridge * ((sd * coef) ** 2).sum()

    model = dd.OrderedLogistic(ridge=ridge).fit(X, y)
    least = objective(model.coef_, model.thresholds_)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = 1e-3 * rng.normal(size=3)
        assert objective(model.coef_ + step, model.thresholds_) > least


def test_more_columns_than_rows_need_a_ridge():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 200)), np.repeat([0, 1, 2], 10)
    model = dd.OrderedLogistic(ridge=0.1).fit(X, y)
    assert model.converged_ and model.coef_.shape == (200,)
    with pytest.warns(SeparationWarning), pytest.warns(CollinearWarning, match="rank 29 of 200"):
        dd.OrderedLogistic().fit(X, y)


def test_a_fit_that_is_stopped_says_so():
    X, y = ordered_rows()
    with pytest.warns(NotConvergedWarning, match="2 passes"):
        dd.OrderedLogistic(max_iter=2).fit(X, y)


def test_a_collinear_column_has_no_standard_error():
    X, y = ordered_rows(d=2)
    with pytest.warns(UserWarning, match="depend"):
        model = dd.OrderedLogistic().fit(np.column_stack([X, X.sum(axis=1)]), y)
    assert np.isnan(model.inference().std_error[:3]).all()
    assert np.isfinite(model.inference().std_error[3:]).all()


# --- prediction and summary -----------------------------------------------------------------------


def test_other_priors_reweight_the_posteriors():
    X, y = ordered_rows(K=3)
    model, prior = dd.OrderedLogistic().fit(X, y), np.array([0.6, 0.3, 0.1])
    odds = model.predict_proba(X) * prior / model.prior_
    wanted = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X, prior), wanted, rtol=1e-12)
    fitted = dd.OrderedLogistic(prior=prior).fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X), wanted, rtol=1e-12)
    assert fitted.summary().to_dict() == model.summary().to_dict()


def test_scores_beyond_the_range_of_float64_have_probabilities():
    X, y = ordered_rows(d=1, K=3)
    model = dd.OrderedLogistic().fit(X, y)
    far = model.predict_proba([[1e308], [-1e308]])
    np.testing.assert_array_equal(far, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def test_linear_predictor_is_compared_with_the_thresholds():
    X, y = ordered_rows(K=3)
    model = dd.OrderedLogistic().fit(X, y)
    np.testing.assert_allclose(model.predict_linear(X), X @ model.coef_, atol=1e-12)
    below = 1 / (1 + np.exp(-(model.thresholds_[0] - X @ model.coef_)))
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], below, rtol=1e-10)


def test_summary_has_the_layout_of_polr():
    X, y = named_rows()
    frame = pd.DataFrame(X, columns=["age", "income", "rooms"])
    summary = dd.OrderedLogistic(order=NAMES).fit(frame, y).summary()
    lines = summary.text.splitlines()
    assert lines[0] == "OrderedLogistic, link logit: low < mid < high"
    assert lines[2:4] == ["Coefficients:", lines[3]] and "Std. Error" in lines[3]
    assert [line.split()[0] for line in lines[4:7]] == ["age", "income", "rooms"]
    assert lines[8] == "Intercepts:"
    assert [line.split()[0] for line in lines[10:12]] == ["low|mid", "mid|high"]
    assert lines[13].startswith("Residual Deviance: ") and lines[14].startswith("AIC: ")
    assert summary.to_dict()["levels"] == ["low", "mid", "high"]
    assert summary.frame().index.tolist() == ["age", "income", "rooms", "low|mid", "mid|high"]


def test_dropped_features_are_fits_without_them():
    X, y = ordered_rows(K=3)
    model = dd.OrderedLogistic().fit(X, y)
    tests = model.drop_each(X, y)
    assert [test.name for test in tests] == ["x0", "x1", "x2"]
    without = dd.OrderedLogistic().fit(X[:, 1:], y).inference().likelihood.deviance
    assert tests[0].deviance == pytest.approx(without, rel=1e-9)
    assert "Single term deletions" in tests.text and "x2" in str(tests)


def test_profile_intervals_hold_the_likelihood_ratio():
    X, y = ordered_rows(d=1, K=3)
    model = dd.OrderedLogistic().fit(X, y)
    low, high = model.intervals(0.95, "profile", X, y)[0]

    def deviance(slope):
        def loss(theta):
            ends = theta[0] + np.array([0.0, np.exp(theta[1])])
            logs = level_log_probabilities("logit", slope * X[:, 0], ends)
            return -2 * logs[np.arange(len(y)), y].sum()

        return minimize(loss, [-0.5, 0.5], tol=1e-12).fun

    least = model.inference().likelihood.deviance
    assert deviance(low) - least == pytest.approx(3.841458820694124, abs=1e-5)
    assert deviance(high) - least == pytest.approx(3.841458820694124, abs=1e-5)


def test_wald_test_of_all_coefficients_names_thresholds_too():
    X, y = named_rows()
    model = dd.OrderedLogistic(order=NAMES).fit(X, y)
    found = model.wald_test([{"x0": 1}, {"low|mid": 1, "mid|high": -1}])
    assert found.df == 2 and found.names == ("x0", "low|mid - mid|high")


def test_nested_fits_are_compared():
    X, y = ordered_rows(K=3)
    large, small = dd.OrderedLogistic().fit(X, y), dd.OrderedLogistic().fit(X[:, :2], y)
    found = dd.compare_fits(small, large)
    assert found.df == 1
    assert found.p == pytest.approx(large.drop_each(X, y)[2].p, rel=1e-6)
