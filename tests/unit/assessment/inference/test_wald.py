"""Standard errors, intervals and tests: closed forms, exact arithmetic, and fits made by hand."""

import json
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize

from discriminant import GLM, Logistic, LogLinear
from discriminant.assessment.printed_results import stars
from discriminant.errors import InferenceError, NotConvergedWarning, OptionError
from discriminant.moments.glm_families import LINKS
from tests.unit.estimators.linear.test_glm import every_link, problem_of

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.CollinearWarning")


def classes_of(seed=0, n=150, d=2, K=3):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, K, n)
    return rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((K, d))[codes], codes


# --- closed forms ---------------------------------------------------------------------------------

TABLE = np.array([[12, 5], [7, 16]])  # rows: the column is 0, 1; columns: failures, successes


def table_rows():
    x, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    return x[:, None].astype(float), y.astype(float), TABLE.ravel().astype(float)


def test_the_odds_ratio_of_a_table_and_its_standard_error_are_those_of_woolf():
    X, y, times = table_rows()
    found = GLM("binomial").fit(X, y, times).inference()
    (a, b), (c, d) = TABLE
    assert found.odds_ratios()[1, 0] == pytest.approx(a * d / (b * c), rel=1e-13)
    # as in R, the information is that of the start of the last step, not of its end
    assert found.std_error[1] == pytest.approx(np.sqrt((1 / TABLE).sum()), rel=1e-10)


def test_odds_ratios_in_the_summary_are_exponentials_of_the_estimates():
    X, y, times = table_rows()
    row = GLM("binomial").fit(X, y, times).summary().to_dict()["coefficients"][1]
    wanted = np.exp([row["estimate"], row["low"], row["high"]])
    found = [row["odds_ratio"], row["odds_low"], row["odds_high"]]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_the_log_ratio_of_two_rates_has_the_error_of_their_counts():
    X, y = np.array([[0.0], [0], [1], [1]]), np.array([3.0, 5, 9, 11])
    found = GLM("poisson").fit(X, y).inference()
    assert found.std_error[1] == pytest.approx(np.sqrt(1 / 8 + 1 / 20), rel=1e-13)


@pytest.mark.parametrize("shift", [0, 10**6])
def test_the_error_of_an_intercept_far_from_the_rows_is_that_of_fractions(shift):
    x, y = [shift + k for k in (0, 1, 3, 4)], [1, 3, 2, 5]
    found = GLM().fit(np.array(x, float)[:, None], y).inference()
    mean = Fraction(sum(x), 4)
    spread = sum((v - mean) ** 2 for v in x)
    slope = sum((v - mean) * w for v, w in zip(x, y, strict=True)) / spread
    level = Fraction(sum(y), 4) - slope * mean
    left = sum((w - level - slope * v) ** 2 for v, w in zip(x, y, strict=True)) / 2
    exact = np.sqrt([float(left * (Fraction(1, 4) + mean**2 / spread)), float(left / spread)])
    np.testing.assert_allclose(found.std_error, exact, rtol=1e-13)
    np.testing.assert_allclose(found.estimate, [float(level), float(slope)], rtol=1e-10)


@pytest.mark.parametrize("z", [1.0, 8.0, 30.0])
def test_a_small_p_value_comes_from_the_tail_itself(z):
    # Two counts whose log ratio is z standard errors.
    count = 10_000.0
    high = float(
        mpmath.findroot(
            lambda c: mpmath.log(c / count) - z * mpmath.sqrt(1 / c + 1 / count), 1.5 * count
        )
    )
    found = GLM("poisson").fit([[0.0], [1.0]], [count, high]).inference()
    exact = float(mpmath.erfc(mpmath.mpf(float(found.statistic[1])) / mpmath.sqrt(2)))
    assert found.statistic[1] == pytest.approx(z, rel=1e-9)
    assert found.p[1] == pytest.approx(exact, rel=1e-12) and found.p[1] > 0


# --- laws -----------------------------------------------------------------------------------------


@every_link
def test_the_covariance_is_the_inverse_of_the_information(family, link):
    X, y = problem_of(family, link)
    model = GLM(family, link).fit(X, y)
    ones = np.column_stack([np.ones(len(X)), X])
    step = 1e-5  # mu' by a difference, V by its formula
    score = model.predict_linear(X)
    mean = model.predict(X)
    rate = (_mean(model, score + step) - _mean(model, score - step)) / (2 * step)
    variance = {"gaussian": 1, "binomial": mean * (1 - mean), "poisson": mean, "gamma": mean**2}
    information = (ones * (rate**2 / variance[family])[:, None]).T @ ones
    wanted = model.dispersion_ * np.linalg.inv(information)
    np.testing.assert_allclose(model.inference().covariance, wanted, rtol=1e-6)


def _mean(model, score):
    return model._kept.deviance.mean(score)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_a_unit_of_a_column_is_a_unit_of_its_estimate_and_of_nothing_else(unit):
    X, y = problem_of("poisson", "log")
    plain = GLM("poisson").fit(X, y).inference()
    found = GLM("poisson").fit(X * [1.0, unit], y).inference()
    np.testing.assert_allclose(found.std_error * [1, 1, unit], plain.std_error, rtol=1e-11)
    np.testing.assert_allclose(found.p, plain.p, rtol=1e-10)


@every_link
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_at_the_end_of_a_profile_interval_the_deviance_has_risen_by_the_quantile(
    family, link, level
):
    X, y = problem_of(family, link)
    model = GLM(family, link).fit(X, y)
    ends = model.intervals(level, "profile", X, y)[1]
    for end in ends:
        held = GLM(family, link).fit(X[:, 1:], y, offset=end * X[:, 0])
        rise = (held.deviance_ - model.deviance_) / model.dispersion_
        assert rise == pytest.approx(stats.chi2.ppf(level, 1), rel=1e-8)
    assert ends[0] < model.coef_[0] < ends[1]


@every_link
def test_dropping_a_column_is_a_fit_without_it(family, link):
    X, y = problem_of(family, link)
    model = GLM(family, link).fit(X, y)
    for j, dropped in enumerate(model.drop_each(X, y)):
        without = GLM(family, link).fit(np.delete(X, j, axis=1), y)
        assert dropped.deviance == pytest.approx(without.deviance_, rel=1e-10)
        assert (dropped.name, dropped.df) == (f"x{j}", 1)


def test_wald_and_profile_intervals_of_a_gaussian_fit_are_one():
    X, y = problem_of("gaussian", "identity")
    model = GLM().fit(X, y)
    np.testing.assert_allclose(
        model.intervals(0.9, "profile", X, y), model.intervals(0.9), rtol=1e-10
    )


@given(seed=st.integers(0, 50))
def test_a_column_that_others_make_up_has_no_error_and_takes_none_from_the_rest(seed):
    rng = np.random.default_rng(seed)
    X, y = problem_of("poisson", "log", seed=seed)
    X = np.column_stack([X, rng.standard_normal(len(X))])
    twice = np.column_stack([X, X[:, 0] + 2 * X[:, 1]])
    found, plain = (GLM("poisson").fit(rows, y).inference() for rows in (twice, X))
    assert np.isnan(found.std_error[[1, 2, 4]]).all()
    np.testing.assert_allclose(found.std_error[[0, 3]], plain.std_error[[0, 3]], rtol=1e-9)
    np.testing.assert_allclose(found.p[[0, 3]], plain.p[[0, 3]], rtol=1e-8)


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS["binomial"][:4])
def test_two_classes_are_told_of_as_shares_are(link):
    X, codes = classes_of(K=2)
    glm, logistic = (
        GLM("binomial", link).fit(X, codes).inference(),
        Logistic(link).fit(X, codes).inference(),
    )
    np.testing.assert_allclose(logistic.estimate, glm.estimate, rtol=1e-7)
    np.testing.assert_allclose(logistic.std_error, glm.std_error, rtol=1e-7)
    for name in ("deviance", "null_deviance", "aic", "bic", "df_residual", "df_null"):
        ours, theirs = getattr(logistic.likelihood, name), getattr(glm.likelihood, name)
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_tjur_is_the_difference_of_mean_probabilities():
    X, codes = classes_of(K=2)
    model = Logistic().fit(X, codes)
    chance = model.predict_proba(X)[:, 1]
    wanted = chance[codes == 1].mean() - chance[codes == 0].mean()
    found = model.summary().to_dict()["pseudo_r2"]["tjur"]
    assert found == pytest.approx(wanted, rel=1e-9)


def test_shares_explained_are_those_of_the_two_likelihoods():
    X, codes = classes_of(K=3)
    model = Logistic().fit(X, codes)
    log = model.predict_log_proba(X)[np.arange(len(X)), codes].sum()
    share = np.bincount(codes) / len(codes)
    null = len(X) * (share * np.log(share)).sum()
    snell = 1 - np.exp(2 * (null - log) / len(X))
    wanted = {
        "deviance": 1 - log / null,
        "mcfadden": 1 - log / null,
        "cox_snell": snell,
        "nagelkerke": snell / (1 - np.exp(2 * null / len(X))),
    }
    assert model.summary().to_dict()["pseudo_r2"] == pytest.approx(wanted, rel=1e-9)


def test_estimates_of_classes_are_differences_to_the_first_with_the_inverse_information():
    X, codes = classes_of(K=3)
    model = Logistic().fit(X, codes)
    found = model.inference()
    ones = np.column_stack([np.ones(len(X)), X])
    chance = model.predict_proba(X)[:, 1:]
    spread = np.einsum("nk,kl->nkl", chance, np.eye(2)) - np.einsum("nk,nl->nkl", chance, chance)
    information = np.einsum("nkl,ni,nj->kilj", spread, ones, ones).reshape(6, 6)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(information), rtol=1e-7, atol=1e-12)
    both = np.column_stack([model.intercept_, model.coef_])
    np.testing.assert_allclose(found.estimate, (both[1:] - both[0]).ravel(), rtol=1e-10)
    assert found.classes == (1, 1, 1, 2, 2, 2)


def test_dropping_a_column_of_classes_drops_it_for_all_of_them():
    X, codes = classes_of(K=3)
    model = Logistic().fit(X, codes)
    for j, dropped in enumerate(model.drop_each(X, codes)):
        without = Logistic().fit(np.delete(X, j, axis=1), codes).inference().likelihood
        assert dropped.chi2 == pytest.approx(
            without.deviance - model.inference().likelihood.deviance, rel=1e-8
        )
        assert dropped.df == 2
        assert dropped.p == pytest.approx(stats.chi2.sf(dropped.chi2, 2))


def test_a_profile_of_classes_ends_where_the_deviance_has_risen_by_the_quantile():
    from scipy.optimize import minimize

    X, codes = classes_of(K=3, n=60)
    model = Logistic().fit(X, codes)
    end = model.intervals(0.95, "profile", X, codes)[4, 1]  # second class, first feature
    ones = np.column_stack([np.ones(len(X)), X])

    def deviance(rest):
        both = np.insert(rest, 4, end).reshape(2, 3)
        scores = np.column_stack([np.zeros(len(X)), ones @ both.T])
        total = np.log(np.exp(scores).sum(axis=1))
        return 2 * (total - scores[np.arange(len(X)), codes]).sum()

    start = np.delete(model.inference().estimate, 4)
    least = minimize(deviance, start, method="BFGS", options={"gtol": 1e-8}).fun
    rise = least - model.inference().likelihood.deviance
    assert rise == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-6)


# --- the summary ----------------------------------------------------------------------------------


def test_the_text_is_laid_out_as_r_does():
    X, y, times = table_rows()
    lines = str(GLM("binomial").fit(X, y, times).summary()).splitlines()
    head = next(line for line in lines if "Estimate" in line)
    assert head.split() == ["Estimate", "Std.", "Error", "z", "value", "Pr(>|z|)"]
    rows = lines[lines.index(head) + 1 : lines.index("---")]
    assert [row.split()[0] for row in rows] == ["(Intercept)", "x0"]
    # 12 to 5 and 7 to 16: log(5/12), and by Woolf z = log(12 * 16 / 5 / 7) / sqrt(...) = 2.445
    assert [float(value) for value in rows[0].split()[1:4]] == pytest.approx(
        [np.log(5 / 12), np.sqrt(1 / 12 + 1 / 5), -1.645], rel=1e-3
    )
    assert rows[1].split()[-1] == "*"
    assert "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1" in lines
    assert any(line.strip().startswith("Null deviance:") for line in lines)
    assert any("on 2 degrees of freedom" in line for line in lines if "Residual" in line)
    assert any(line.startswith("AIC:") for line in lines)
    assert "Number of Fisher Scoring iterations" in lines[-1]


@pytest.mark.parametrize(
    ("p", "mark"), [(0.0005, "***"), (0.005, "**"), (0.03, "*"), (0.07, "."), (0.5, "")]
)
def test_stars_are_those_of_r(p, mark):
    assert stars(p) == mark


def test_frame_and_dictionary_say_the_same_and_json_takes_them():
    X, codes = classes_of(K=3)
    summary = Logistic().fit(X, codes).summary(level=0.9)
    told = json.loads(json.dumps(summary.to_dict()))
    frame = summary.frame()
    assert frame.index.names == ["class", "name"]
    assert frame["estimate"].tolist() == [row["estimate"] for row in told["coefficients"]]
    assert frame.loc[(2, "x1"), "high"] == told["coefficients"][5]["high"]


def test_estimated_dispersion_is_told_by_t_and_known_by_z():
    X, y = problem_of("gamma", "log")
    assert "t" in GLM("gamma", "log").fit(X, y).summary().to_dict()["coefficients"][0]
    assert "z" in GLM("poisson").fit(X, y).summary().to_dict()["coefficients"][0]


def test_log_linear_tells_of_the_logarithm():
    X, y = problem_of("gamma", "log")
    ours, gaussian = LogLinear().fit(X, y), GLM().fit(X, np.log(y))
    np.testing.assert_allclose(ours.inference().p, gaussian.inference().p, rtol=1e-9)
    np.testing.assert_allclose(ours.intervals(0.95, "profile", X, y), ours.intervals(), rtol=1e-9)


# --- refusing -------------------------------------------------------------------------------------

POISSON = problem_of("poisson", "log")


def test_there_are_no_standard_errors_with_a_ridge():
    with pytest.raises(InferenceError, match=r"ridge=0\.1 biases"):
        GLM("poisson", ridge=0.1).fit(*POISSON).summary()


@pytest.mark.parametrize("ask", [lambda m: m.intervals(0.95, "profile"), lambda m: m.drop_each()])
def test_what_fits_again_asks_for_the_rows(ask):
    with pytest.raises(InferenceError, match=r"stores no rows. Pass X and y"):
        ask(GLM("poisson").fit(*POISSON))


def test_other_rows_than_those_of_the_fit_are_refused_with_both_deviances():
    X, y = POISSON
    model = GLM("poisson").fit(X, y)
    with pytest.raises(InferenceError, match=rf"not the rows.*{model.deviance_:.4g}"):
        model.drop_each(X, y + 1)


def firth_value(rows, codes, beta):
    """Minus the log likelihood and half the log determinant of the information, as Firth wrote."""
    signed = np.where(codes == 1, 1.0, -1.0) * (rows @ beta)
    mean = 1 / (1 + np.exp(-rows @ beta))
    information = (rows * (mean * (1 - mean))[:, None]).T @ rows
    return np.logaddexp(0, -signed).sum() - 0.5 * np.linalg.slogdet(information)[1]


def firth_profile(rows, codes, place, value, start):
    """Twice the least of `firth_value` with one coefficient held."""

    def held(rest):
        return firth_value(rows, codes, np.insert(rest, place, value))

    found = minimize(held, np.delete(start, place), method="BFGS", options={"gtol": 1e-9})
    return 2 * found.fun


def test_profiles_after_firth_are_those_of_the_penalised_likelihood():
    X, codes = classes_of(K=2, n=40)
    model = Logistic(bias_reduction="jeffreys").fit(X, codes)
    found, rows = model.inference(), np.column_stack([np.ones(len(X)), X])
    least = 2 * firth_value(rows, codes, found.estimate)
    limit = stats.chi2.ppf(0.95, 1)

    def beyond(away):
        return firth_profile(rows, codes, 1, found.estimate[1] + away, found.estimate) - least

    far = 4 * found.std_error[1]
    wanted = [brentq(lambda t: beyond(t) - limit, *ends) for ends in ((-far, 0), (0, far))]
    ends = model.intervals(0.95, "profile", X, codes)[1] - found.estimate[1]
    np.testing.assert_allclose(ends, wanted, rtol=1e-5)
    assert model.drop_each(X, codes)[0].chi2 == pytest.approx(beyond(-found.estimate[1]), rel=1e-6)


def test_the_penalised_likelihood_of_separated_rows_has_fallen_as_far_at_each_end(shared_data):
    table = pd.read_csv(shared_data / "sep_endometrial" / "endometrial.csv")
    X = table[["NV", "PI", "EH"]] / [1.0, 10.0, 1.0]
    codes, rows = table["HG"].to_numpy(), np.column_stack([np.ones(len(X)), X])
    model = Logistic(bias_reduction="jeffreys").fit(X, codes)
    estimate, ends = model.inference().estimate, model.intervals(0.95, "profile", X, codes)
    least = 2 * firth_value(rows, codes, estimate)
    fallen = [
        [firth_profile(rows, codes, j, end, estimate) - least for end in ends[j]] for j in range(4)
    ]
    np.testing.assert_allclose(fallen, stats.chi2.ppf(0.95, 1), rtol=1e-6)


def test_rows_that_differ_a_little_are_named_as_other_rows():
    X, codes = classes_of(K=2, n=400)
    model = Logistic().fit(X, codes)
    nearly = X * (1 + 1e-3)  # at a maximum the deviance stands still for that, the gradient not
    with pytest.raises(InferenceError, match=r"not the rows of the fit: the fit converged"):
        model.drop_each(nearly, codes)


def test_a_fit_that_has_not_converged_has_no_profile():
    X, codes = classes_of(K=2, n=400)
    with pytest.warns(NotConvergedWarning):
        model = Logistic(solver="gradient", max_iter=2).fit(X, codes)
    with pytest.raises(InferenceError, match=r"this fit has not converged.*Raise max_iter"):
        model.intervals(0.95, "profile", X, codes)


def test_profile_intervals_tell_how_far_they_are():
    X, codes = classes_of(K=2)
    told = []
    Logistic().fit(X, codes).intervals(
        0.95, "profile", X, codes, progress=lambda *at: told.append(at)
    )
    assert told == [(done, 6) for done in range(1, 7)]


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_a_summary_of_two_classes_says_which_one_against_which(link):
    X, codes = classes_of(K=2)
    found = Logistic(link).fit(X, np.array(["none", "affair"])[codes]).summary()
    what = "log odds" if link == "logit" else "scores"
    assert f"Coefficients, {what} of 'none' against 'affair':" in found.text
    assert (found.to_dict()["of"], found.to_dict()["against"]) == ("none", "affair")


def test_a_summary_of_more_classes_says_what_they_are_compared_with():
    found = Logistic().fit(*classes_of(K=3)).summary()
    assert "log odds of each class against '0':" in found.text
    assert (found.to_dict()["of"], found.to_dict()["against"]) == (None, 0)


REFUSALS = [
    ({"ridge": 0.1}, r"ridge=0.1 biases the estimates. Fit with ridge=0.$"),
    ({"class_weight": "balanced"}, r"class_weight counts .* Fit without it.*Decision\)\.$"),
    (
        {"bias_reduction": "jeffreys", "max_iter": 1},
        r"not converged \(the scaled gradient.*Raise max_iter.*drop nearly collinear columns\.$",
    ),
]


@pytest.mark.filterwarnings("ignore::discriminant.errors.NotConvergedWarning")
@pytest.mark.parametrize(("options", "words"), REFUSALS)
def test_what_has_no_errors_says_why_and_only_the_way_out_of_that(options, words):
    model = Logistic(**options).fit(*classes_of(K=2))
    with pytest.raises(InferenceError, match=words):
        model.inference()


@pytest.mark.filterwarnings("ignore::discriminant.errors.SeparationWarning")
def test_separated_classes_are_sent_to_firth_and_nowhere_else():
    model = Logistic().fit(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1])
    reason = r'separated \(complete\).*jeffreys" to get finite estimates\.$'
    with pytest.raises(InferenceError, match=reason):
        model.inference()


def test_more_columns_than_rows_have_no_errors_and_are_told_so():
    X = np.random.default_rng(0).standard_normal((20, 600))
    model = Logistic(bias_reduction="jeffreys").fit(X, np.arange(20) % 2)
    with pytest.raises(InferenceError, match=r"more columns than rows. Keep fewer columns.$"):
        model.inference()


def test_rows_in_the_place_of_a_level_are_not_printed():
    X, codes = classes_of(K=2)
    with pytest.raises(
        OptionError, match=r"level=<ndarray of shape \(150, 2\)>.*rows are later arguments"
    ):
        Logistic().fit(X, codes).intervals(X, codes)


def test_only_a_logit_has_odds():
    with pytest.raises(InferenceError, match=r"GLM: poisson.*link='logit'"):
        GLM("poisson").fit(*POISSON).inference().odds_ratios()


def test_a_summary_of_a_fit_that_has_not_converged_says_so():
    with pytest.warns(NotConvergedWarning):
        summary = GLM("poisson", max_iter=1).fit(*POISSON).summary()
    assert "has not converged" in summary.text and not summary.to_dict()["converged"]


@pytest.mark.parametrize("level", [0.0, 1.0, 95, "high"])
def test_a_level_is_between_zero_and_one(level):
    with pytest.raises(OptionError, match="level="):
        GLM("poisson").fit(*POISSON).intervals(level)


def test_an_unknown_method_is_refused_with_those_there_are():
    with pytest.raises(OptionError, match=r"method='exact'.*wald, profile"):
        GLM("poisson").fit(*POISSON).intervals(0.95, "exact")
