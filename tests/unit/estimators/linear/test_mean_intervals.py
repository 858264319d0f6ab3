"""Confidence intervals of predicted means and probabilities."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_wine

import discriminant as dd
from discriminant import GLM, LDA, Encoded, Logistic
from discriminant.errors import (
    BoundaryWarning,
    ConstantColumnWarning,
    InferenceError,
    NoEstimateError,
    OptionError,
    SeparationWarning,
)

LINKS = ("logit", "probit", "cloglog", "cauchit")


def two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, [0, 1, 4]], y


def three_classes():
    X, y = load_wine(return_X_y=True)
    return X[:, [0, 2, 4]], y


def counts(n=80):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 2))
    return X, rng.poisson(np.exp(0.4 + X @ [0.5, -0.3])).astype(float)


# --- probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_estimates_are_the_probabilities_without_intervals(link):
    X, y = two_classes()
    model = Logistic(link).fit(X, y)
    estimate, low, high = model.predict_proba(X, interval=0.95)
    np.testing.assert_array_equal(estimate, model.predict_proba(X))
    assert ((low >= 0) & (low <= estimate) & (estimate <= high) & (high <= 1)).all()
    np.testing.assert_allclose(low[:, 0], 1 - high[:, 1], rtol=0, atol=1e-15)


def numerical_log_odds_errors(model, X, shift):
    """Errors from a numerical Jacobian by the estimates, and the covariance of the estimates."""
    inference = model.inference()
    design = np.column_stack([np.ones(len(X)), X])

    def log_odds(estimate):
        scores = design @ estimate.reshape(-1, design.shape[1]).T
        scores = np.column_stack([np.zeros(len(X)), scores]) + shift
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return logit(p / p.sum(axis=1, keepdims=True))

    errors = np.empty((len(X), len(model.classes_)))
    steps = 1e-4 * inference.std_error
    jacobian = np.empty((*errors.shape, len(steps)))
    for j, step in enumerate(steps):
        move = np.where(np.arange(len(steps)) == j, step, 0.0)
        up, down = log_odds(inference.estimate + move), log_odds(inference.estimate - move)
        jacobian[:, :, j] = (up - down) / (2 * step)
    variance = np.einsum("nkp,pq,nkq->nk", jacobian, inference.covariance, jacobian)
    return log_odds(inference.estimate), np.sqrt(variance)


@pytest.mark.parametrize("prior", [None, [0.2, 0.5, 0.3]])
def test_several_classes_agree_with_a_numerical_jacobian(prior):
    X, y = three_classes()
    model = Logistic().fit(X, y)
    shift = 0.0 if prior is None else np.log(prior) - np.log(model.prior_)
    middle, errors = numerical_log_odds_errors(model, X[::5], shift)
    intervals = model.predict_proba(X[::5], prior, interval=0.8)
    reach = norm.ppf(0.9) * errors
    np.testing.assert_allclose(intervals.estimate, expit(middle), rtol=1e-9)
    np.testing.assert_allclose(logit(intervals.low), middle - reach, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(logit(intervals.high), middle + reach, rtol=1e-6, atol=1e-8)


def test_chunks_of_rows_have_no_effect_with_several_classes(monkeypatch):
    X, y = three_classes()
    model = Logistic().fit(X, y)
    whole = model.predict_proba(X, interval=0.95)
    monkeypatch.setattr("discriminant.assessment.inference.mean_intervals._CHUNK", 100)
    chunks = model.predict_proba(X, interval=0.95)
    np.testing.assert_allclose(chunks.low, whole.low, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X[7:8], interval=0.95).high[0], whole.high[7])


@pytest.mark.parametrize("rows", [two_classes, three_classes])
def test_sparse_and_partitioned_rows_have_the_intervals_of_dense_rows(rows, tmp_path):
    X, y = rows()
    X = np.where(np.median(X, axis=0) < X, X, 0.0)
    dense, sparse = Logistic().fit(X, y), scipy.sparse.csr_matrix(X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    partitioned = Logistic().fit(dd.rows(tmp_path / "rows.csv", target="y"))
    expected = dense.predict_proba(X, interval=0.95)
    for intervals in (
        dense.predict_proba(sparse, interval=0.95),
        Logistic().fit(sparse, y).predict_proba(sparse, interval=0.95),
        partitioned.predict_proba(frame, interval=0.95),
    ):
        for ours, theirs in zip(intervals, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("rows", [two_classes, three_classes])
def test_weights_are_repeats(rows):
    X, y = rows()
    times = np.arange(len(y)) % 3
    weighted = Logistic().fit(X, y, sample_weight=times).predict_proba(X, interval=0.95)
    repeated = Logistic().fit(X.repeat(times, axis=0), y.repeat(times))
    for ours, theirs in zip(weighted, repeated.predict_proba(X, interval=0.95), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("rows", [two_classes, three_classes])
def test_units_and_origins_of_columns_have_no_effect(rows):
    X, y = rows()
    X = np.round(X * 2.0**10)  # whole numbers, so that the shift below is exact
    plain = Logistic().fit(X, y).predict_proba(X, interval=0.95)
    moved = X * [1.0, 2.0**-20, 2.0**20] + [2.0**40, 0.0, 0.0]
    again = Logistic().fit(moved, y).predict_proba(moved, interval=0.95)
    for ours, theirs in zip(again, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


def test_prior_shifts_the_interval_on_the_scale_of_log_odds():
    X, y = two_classes()
    model = Logistic().fit(X, y)
    prior = [0.9, 0.1]
    shift = np.diff(np.log(prior) - np.log(model.prior_))
    plain, moved = (model.predict_proba(X[:9], p, interval=0.95) for p in (None, prior))
    fitted = Logistic(prior=prior).fit(X, y).predict_proba(X[:9], interval=0.95)
    for a, b, c in zip(plain, moved, fitted, strict=True):
        np.testing.assert_allclose(logit(b[:, 1]), logit(a[:, 1]) + shift, rtol=1e-9)
        np.testing.assert_allclose(c, b, rtol=1e-9)


def test_intervals_cover_the_probability_as_often_as_their_level():
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((150, 2)), np.array([[0.5, -0.5]])
    beta = np.array([[0.0, 0.0], [0.8, -0.4], [-0.5, 0.6]])
    true = np.exp(new @ beta.T) / np.exp(new @ beta.T).sum()
    p = np.exp(X @ beta.T)
    cumulative = (p / p.sum(axis=1, keepdims=True)).cumsum(axis=1)
    covered = []
    for _ in range(400):
        y = (rng.random((150, 1)) > cumulative[:, :2]).sum(axis=1)
        _, low, high = Logistic().fit(X, y).predict_proba(new, interval=0.9)
        covered.append((low <= true) & (true <= high))
    # four standard errors of a share of 400 are 0.06
    assert (np.abs(np.mean(covered, axis=0) - 0.9) < 0.06).all()


def test_jeffreys_fit_of_separated_classes_has_intervals():
    X, y = np.arange(8.0)[:, None], np.arange(8) > 3
    model = Logistic(bias_reduction="jeffreys").fit(X, y)
    _, low, high = model.predict_proba(X, interval=0.95)
    scores = np.column_stack([np.ones(8), X])
    error = np.sqrt(np.einsum("np,pq,nq->n", scores, model.inference().covariance, scores))
    middle = model.decision_function(X)
    np.testing.assert_allclose(logit(low[:, 1]), middle - norm.ppf(0.975) * error, rtol=1e-9)
    np.testing.assert_allclose(logit(high[:, 1]), middle + norm.ppf(0.975) * error, rtol=1e-9)


# --- means ----------------------------------------------------------------------------------------


def test_estimates_are_the_means_without_intervals():
    X, y = counts()
    model = GLM("poisson").fit(X, y, offset=0.1)
    estimate, low, high = model.predict(X, 0.3, interval=0.95)
    np.testing.assert_array_equal(estimate, model.predict(X, 0.3))
    assert ((low > 0) & (low < estimate) & (estimate < high)).all()
    np.testing.assert_allclose(model.predict(X, 1.3, interval=0.95).high, np.e * high, rtol=1e-12)


@pytest.mark.parametrize("link", ["identity", "sqrt"])
def test_means_of_counts_have_no_negative_ends(link):
    X = np.arange(1.0, 9.0)[:, None]
    model = GLM("poisson", link).fit(X, [1, 1, 3, 4, 4, 7, 6, 9])
    estimate, low, high = model.predict([[0.3], [5.0]], interval=0.99)
    assert low[0] == 0.0 < estimate[0] < high[0]
    assert 0.0 < low[1] < estimate[1] < high[1]


def test_means_of_shares_with_a_log_link_do_not_exceed_one():
    X = np.arange(6.0)[:, None]
    model = GLM("binomial", "log").fit(X, [0.1, 0.15, 0.2, 0.35, 0.5, 0.7], sample_weight=[20] * 6)
    estimate, low, high = model.predict([[0.0], [5.2]], interval=0.95)
    assert high[1] == 1.0 > estimate[1] > low[1]
    assert 0.0 < low[0] < estimate[0] < high[0] < 1.0


def test_mean_with_inverse_link_is_unbounded_if_its_score_may_be_zero():
    X = np.array([[0.0], [1], [2], [3], [4]])
    model = GLM("gamma").fit(X, [1.0, 4.0, 2.2, 3.0, 9.0])
    new = [[0.0], [4.2], [8.0]]
    estimate, low, high = model.predict(new, interval=0.95)
    assert (model.predict_linear(new) > 0).tolist() == [True, True, False]
    assert 0.0 < low[0] < estimate[0] < high[0] < np.inf
    assert 0.0 < low[1] < estimate[1] < high[1] == np.inf
    assert (low[2], high[2]) == (-np.inf, np.inf)  # the link gives no valid mean for this row


# --- stored and encoded ---------------------------------------------------------------------------


def test_loaded_models_give_the_same_intervals(tmp_path):
    X, y = three_classes()
    for model, predict in (
        (Logistic().fit(X, y), "predict_proba"),
        (GLM("gamma", "log").fit(X, y + 1.0), "predict"),
    ):
        dd.save(model, tmp_path / "model.dd")
        loaded = dd.load(tmp_path / "model.dd")
        ours, theirs = (getattr(m, predict)(X, interval=0.95) for m in (loaded, model))
        np.testing.assert_array_equal(ours, theirs)


def test_encoded_table_gives_the_intervals_of_its_estimator():
    X, y = counts()
    frame = pd.DataFrame({"dose": X[:, 0], "site": np.where(X[:, 1] > 0, "north", "south")})

    def features(model):
        return pd.DataFrame(model.encode(frame), columns=model.encoding_.features)

    model = Encoded(GLM("poisson")).fit(frame, y)
    expected = model.estimator_.predict(features(model), interval=0.9)
    np.testing.assert_array_equal(model.predict(frame, interval=0.9), expected)
    classes = Encoded(Logistic()).fit(frame, y > 1)
    expected = classes.estimator_.predict_proba(features(classes), interval=0.9)
    np.testing.assert_array_equal(classes.predict_proba(frame, interval=0.9), expected)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.0, 1.0, 95, True, "0.95", np.nan])
def test_levels_outside_zero_and_one_are_rejected(level):
    X, y = counts()
    with pytest.raises(OptionError, match=r"interval.*0\.95"):
        GLM("poisson").fit(X, y).predict(X, interval=level)
    with pytest.raises(OptionError, match=r"interval.*0\.95"):
        Logistic().fit(X, y > 1).predict_proba(X, interval=level)


@pytest.mark.parametrize(
    ("model", "reason"),
    [(Logistic(ridge=0.1), r"ridge=0\.1"), (Logistic(class_weight="balanced"), "class_weight")],
)
def test_fits_without_standard_errors_have_no_intervals(model, reason):
    X, y = two_classes()
    model.fit(X, y)
    with pytest.raises(InferenceError, match=reason):
        model.predict_proba(X, interval=0.95)
    with pytest.raises(InferenceError, match=r"ridge=0\.1"):
        GLM("binomial", ridge=0.1).fit(X, y).predict(X, interval=0.95)


# --- ordered classes ------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [None, {"low": 0.5, "mid": 0.2, "high": 0.3}])
def test_intervals_of_ordered_classes_agree_with_a_numerical_jacobian(prior):
    rng = np.random.default_rng(5)
    X, order = rng.normal(size=(200, 2)), ["low", "mid", "high"]
    latent = X @ [1.0, -0.5] + rng.logistic(size=200)
    y = np.array(order)[np.searchsorted([-0.6, 0.9], latent)]
    model = dd.OrderedLogistic(order=order).fit(X, y)
    inference, places = model.inference(), np.argsort(order)  # `classes_` are sorted
    change = (
        0.0
        if prior is None
        else np.log([prior[k] for k in order]) - np.log(model.prior_[np.argsort(places)])
    )

    def log_odds(estimate):
        below = expit(estimate[2:] - (X[:20] @ estimate[:2])[:, None])
        p = np.diff(below, prepend=0.0, append=1.0) * np.exp(change)
        return logit(p / p.sum(axis=1, keepdims=True))

    steps = 1e-4 * np.diag(inference.std_error)
    jacobian = np.stack(
        [
            (log_odds(inference.estimate + step) - log_odds(inference.estimate - step))
            / (2 * step.sum())
            for step in steps
        ],
        axis=2,
    )
    error = np.sqrt(np.einsum("nkp,pq,nkq->nk", jacobian, inference.covariance, jacobian))
    reach = norm.isf(0.05) * error
    estimate, low, high = model.predict_proba(X[:20], prior, interval=0.9)
    centre = log_odds(inference.estimate)
    np.testing.assert_allclose(estimate, expit(centre)[:, places], rtol=1e-9)
    np.testing.assert_allclose(low, expit(centre - reach)[:, places], rtol=1e-6)
    np.testing.assert_allclose(high, expit(centre + reach)[:, places], rtol=1e-6)


def test_ordered_classes_without_inference_have_no_intervals():
    X, y = two_classes()
    with pytest.raises(InferenceError, match="ridge=0"):
        dd.OrderedLogistic(ridge=0.1).fit(X, y).predict_proba(X, interval=0.95)


# --- log-linear regression ------------------------------------------------------------------------


@pytest.mark.parametrize("predicted", ["median", "mean", "smearing"])
def test_intervals_of_log_linear_regression_are_those_of_least_squares(predicted):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2)) + 5.0
    y = np.exp(X @ [0.3, -0.2] + rng.normal(size=40))
    design = np.column_stack([np.ones(40), X])
    beta, rss, *_ = np.linalg.lstsq(design, np.log(y))
    leverage = np.einsum("ij,jk,ik->i", design, np.linalg.inv(design.T @ design), design)
    reach = norm.isf(0.025) * np.sqrt(rss[0] / 37 * leverage)
    model = dd.LogLinear(predicted=predicted).fit(X, y)
    estimate, low, high = model.predict(X, interval=0.95)
    np.testing.assert_array_equal(estimate, model.predict(X))
    np.testing.assert_allclose(
        np.exp(design @ beta - reach), low * (np.exp(design @ beta) / estimate)
    )
    np.testing.assert_allclose(high * low, estimate**2)


def test_models_without_intervals_name_those_that_have_them():
    X, y = two_classes()
    for model in (LDA(), dd.QDA(), dd.Calibrated(LDA()), dd.BayesianLogistic()):
        with pytest.raises(TypeError, match=r"no option 'interval'.*Logistic and OrderedLogistic"):
            model.fit(X, y).predict_proba(X, interval=0.95)


def test_separated_classes_have_no_intervals():
    X, y = np.arange(8.0)[:, None], np.arange(8) > 3
    with pytest.warns(SeparationWarning):
        model = Logistic().fit(X, y)
    with pytest.raises(InferenceError, match="separated"):
        model.predict_proba(X, interval=0.95)
    with pytest.warns(BoundaryWarning):
        regression = GLM("binomial").fit(X, y.astype(float))
    with pytest.raises(NoEstimateError):
        regression.predict(X, interval=0.95)


def test_dependent_columns_are_named():
    X, y = counts()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    with pytest.warns(UserWarning, match="x0"):
        model = GLM("poisson").fit(X, y)
    with pytest.raises(InferenceError, match=r"'x0', 'x1', 'x2'.*Drop the columns"):
        model.predict(X, interval=0.95)
    constant = np.column_stack([X[:, :2], np.ones(len(X))])
    with pytest.warns(ConstantColumnWarning):
        classes = Logistic().fit(constant, y > 1)
    with pytest.raises(InferenceError, match="x2"):
        classes.predict_proba(constant, interval=0.95)


def test_encoded_estimators_without_intervals_are_rejected():
    X, y = two_classes()
    with pytest.raises(OptionError, match=r"interval.*Logistic"):
        Encoded(LDA()).fit(X, y).predict_proba(X, interval=0.95)
