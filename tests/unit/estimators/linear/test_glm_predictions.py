"""What responses generalised linear models take, and how they are scored."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_log_loss_score, mean_poisson_deviance, r2_score
from sklearn.model_selection import cross_val_score

from discriminant import GLM, LogLinear
from discriminant.errors import InferenceError, OffsetError, ResponseError, ShapeError

DOSE = np.array([[0.0], [1], [2], [3], [4]])
DEAD, TRIALS = np.array([1.0, 3, 9, 14, 18]), np.full(5, 20.0)


def counts(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    exposure = rng.uniform(1, 5, n)
    return X, rng.poisson(exposure * np.exp(X @ [0.5, -0.3, 0.0])).astype(float), exposure


# --- successes and failures -----------------------------------------------------------------------


def test_successes_and_failures_are_shares_and_trials():
    pair = GLM("binomial").fit(DOSE, np.column_stack([DEAD, TRIALS - DEAD]))
    share = GLM("binomial").fit(DOSE, DEAD / TRIALS, sample_weight=TRIALS)
    # glm(cbind(dead, 20 - dead) ~ dose, binomial) of R 4.2.2
    np.testing.assert_allclose(pair.coef_, [1.27676619459], rtol=1e-11)
    np.testing.assert_array_equal(pair.coef_, share.coef_)
    assert pair.deviance_ == share.deviance_


def test_successes_and_failures_can_be_weighted_and_rows_without_trials_have_no_effect():
    both = np.column_stack([DEAD, TRIALS - DEAD])
    twice = GLM("binomial").fit(DOSE, both, sample_weight=np.full(5, 2.0))
    more = np.vstack([2 * both, [[0.0, 0.0]]])
    again = GLM("binomial").fit(np.vstack([DOSE, [[9.0]]]), more)
    np.testing.assert_allclose(again.coef_, twice.coef_, rtol=1e-12)


def test_model_of_successes_and_failures_has_intervals_and_a_score():
    both = np.column_stack([DEAD, TRIALS - DEAD])
    model = GLM("binomial").fit(DOSE, both)
    assert model.intervals(0.95, "profile", DOSE, both).shape == (2, 2)
    share = 1 - model.deviance_ / model.null_deviance_
    assert model.score(DOSE, both) == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(
    ("family", "y", "said"),
    [
        ("binomial", [[1, -1], [2, 3]], "y of row 0.*two counts that are 0 or more"),
        ("poisson", [[1, 1], [2, 3]], "Only family='binomial' takes two columns"),
        ("binomial", [[1, 1, 1], [2, 3, 1]], "Only family='binomial' takes two columns"),
        ("binomial", ["yes", "no"], r"y holds names.*Logistic\(\)"),
        ("binomial", np.array(["yes", None], dtype=object), r"y holds names.*Logistic\(\)"),
        ("binomial", None, "GLM requires y to be passed.*pass one number for each row"),
        ("poisson", None, "GLM requires y to be passed.*pass one number for each row"),
        ("binomial", [3, 1], "y of row 0.*share from 0 to 1.*two columns"),
    ],
)
def test_other_responses_are_refused_with_what_to_do(family, y, said):
    with pytest.raises(ResponseError, match=said):
        GLM(family).fit([[0.0], [1.0]], y)


# --- the share of deviance explained --------------------------------------------------------------


def test_the_score_of_counts_and_of_gamma_responses_is_scikit_learns():
    X, y, weight = counts()
    for ours, theirs, given in (
        (GLM("poisson"), PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000), y),
        (GLM("gamma", "log"), GammaRegressor(alpha=0, tol=1e-10, max_iter=1000), y + 1),
    ):
        fits = [model.fit(X, given, sample_weight=weight) for model in (ours, theirs)]
        scores = [fit.score(X[:50], given[:50], sample_weight=weight[:50]) for fit in fits]
        assert scores[0] == pytest.approx(scores[1], abs=1e-7)


def test_the_score_of_a_gaussian_fit_is_r2_and_that_of_two_classes_is_of_log_loss():
    X, y, _ = counts()
    line, kind = GLM().fit(X, y), (y > y.mean()).astype(float)
    assert line.score(X, y) == pytest.approx(r2_score(y, line.predict(X)), rel=1e-12)
    share = GLM("binomial", "probit").fit(X, kind)
    assert share.score(X, kind) == pytest.approx(d2_log_loss_score(kind, share.predict(X)))


def test_with_an_offset_rows_are_compared_with_the_best_constant_rate():
    X, y, exposure = counts()
    model = GLM("poisson").fit(X, y, offset=np.log(exposure))
    part = slice(0, 60)
    rate = y[part].sum() / exposure[part].sum()
    null = mean_poisson_deviance(y[part], rate * exposure[part])
    mean = model.predict(X[part], offset=np.log(exposure[part]))
    found = model.score(X[part], y[part], offset=np.log(exposure[part]))
    assert found == pytest.approx(1 - mean_poisson_deviance(y[part], mean) / null, rel=1e-10)


def test_an_offset_is_routed_to_fit_and_score_by_cross_validation():
    X, y, exposure = counts()
    offset = np.log(exposure)
    model = GLM("poisson")
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(offset=True).set_score_request(offset=True)
        found = cross_val_score(model, X, y, cv=2, params={"offset": offset})
    halves = np.array_split(np.arange(len(y)), 2)
    for score, held, rest in zip(found, halves, halves[::-1], strict=True):
        fit = GLM("poisson").fit(X[rest], y[rest], offset=offset[rest])
        assert score == pytest.approx(fit.score(X[held], y[held], offset=offset[held]))


def test_a_score_without_the_offset_of_the_fit_or_with_too_few_responses_is_refused():
    X, y, exposure = counts()
    model = GLM("poisson").fit(X, y, offset=np.log(exposure))
    with pytest.raises(OffsetError, match="Pass offset="):
        model.score(X, y)
    with pytest.raises(ShapeError):
        model.score(X, y[:-1], offset=np.log(exposure))


def test_responses_of_one_value_explain_nothing():
    X, y, _ = counts()
    assert GLM("poisson").fit(X, y).score(X[:3], [2.0, 2.0, 2.0]) == 0.0


# --- what is said of a fit ------------------------------------------------------------------------


def test_coefficients_of_a_log_link_multiply_the_mean():
    X, y, exposure = counts()
    found = GLM("poisson").fit(X, y, offset=np.log(exposure)).inference()
    ratios = np.exp(np.column_stack([found.estimate, found.wald(0.9)]))
    np.testing.assert_allclose(found.rate_ratios(0.9), ratios, rtol=1e-15)


def test_two_groups_of_counts_have_the_ratio_of_their_means_as_rate_ratio():
    found = GLM("poisson").fit([[0.0], [0.0], [1.0], [1.0]], [1, 3, 3, 9]).inference()
    # rates 2 and 6; the variance of a log ratio of Poisson sums is 1/4 + 1/12
    reach = np.exp(1.959963984540054 * np.sqrt(1 / 4 + 1 / 12))
    np.testing.assert_allclose(found.rate_ratios()[1], [3.0, 3.0 / reach, 3.0 * reach], rtol=1e-9)


def test_ratios_that_a_link_has_not_are_refused_with_the_one_that_it_has():
    X, y, _ = counts()
    with pytest.raises(InferenceError, match=r"rate_ratios\(\)"):
        GLM("poisson").fit(X, y).inference().odds_ratios()
    with pytest.raises(InferenceError, match=r"not logarithms of means.*odds_ratios\(\)"):
        GLM().fit(X, y).inference().rate_ratios()


def test_a_summary_of_ln_y_says_that_it_is_of_ln_y():
    model = LogLinear().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 5.0, 8.0])
    assert "least squares on ln y" in model.summary().text
    assert model.inference().rate_ratios()[1, 0] == pytest.approx(np.exp(model.coef_[0]))


def test_of_a_gaussian_only_the_share_of_deviance_is_a_pseudo_r2():
    X, y, _ = counts()
    model = GLM().fit(X, y)
    found = model.inference().likelihood.pseudo_r2
    assert list(found) == ["deviance"]
    assert found["deviance"] == pytest.approx(r2_score(y, model.predict(X)), rel=1e-12)


def test_progress_is_told_of_every_pass_of_the_iteration_and_the_start_and_moments_are_two_more():
    X, y, _ = counts()
    told = []
    model = GLM("poisson", progress=lambda *facts: told.append(facts[0])).fit(X, y)
    assert told == list(range(1, len(told) + 1))
    assert model.n_passes_ == len(told) + 2 and model.n_iter_ == len(told) - 1


@pytest.mark.parametrize("seed", [13, 14])
def test_no_fit_ends_worse_than_a_constant(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    y = np.exp(2 * rng.normal(size=12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GLM("gaussian", "inverse").fit(X, y)
    assert model.deviance_ <= ((y - y.mean()) ** 2).sum()
