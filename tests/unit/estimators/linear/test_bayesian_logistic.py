"""Bayesian logistic regression against numerical integration over the coefficients."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import expit, log_expit
from sklearn.datasets import load_breast_cancer, load_iris

import discriminant as dd
from discriminant import BayesianLogistic, Logistic
from discriminant.errors import ExportError, OptionError
from discriminant.export import export


def rows_of_one_feature(n=60, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=n)
    x /= np.sqrt(np.mean(x**2))  # root mean square 1, so that no scaling is needed
    y = (generator.random(n) < expit(1.2 * x)).astype(int)
    return x, y


def log_likelihood(x, y, slope, intercept=0.0):
    return log_expit(np.where(y == 1, 1.0, -1.0) * (slope * x + intercept)).sum()


@pytest.mark.parametrize("precision", [0.3, 3.0])
def test_evidence_is_close_to_the_integral_over_the_slope(precision):
    x, y = rows_of_one_feature()
    model = BayesianLogistic(precision=precision, intercept=False).fit(x[:, None], y)
    top = log_likelihood(x, y, model.coef_[0, 0])
    integral, _ = quad(
        lambda w: np.exp(log_likelihood(x, y, w) - top - 0.5 * precision * w * w), -8, 8
    )
    exact = top + np.log(integral) + 0.5 * np.log(precision / (2 * np.pi))
    assert model.log_evidence_ == pytest.approx(exact, abs=0.02)


def test_evidence_with_an_intercept_is_close_to_the_double_integral():
    x, y = rows_of_one_feature(80, 1)
    x = (x - x.mean()) / x.std()
    model = BayesianLogistic(precision=1.0).fit(x[:, None], y)
    mode = model.coef_[0, 0], model.intercept_[0]
    top = log_likelihood(x, y, *mode)
    integral, _ = dblquad(
        lambda b, w: np.exp(log_likelihood(x, y, w, b) - top - 0.5 * w * w),
        mode[0] - 3,
        mode[0] + 3,
        mode[1] - 3,
        mode[1] + 3,
    )
    exact = top + np.log(integral) - 0.5 * np.log(2 * np.pi)
    assert model.log_evidence_ == pytest.approx(exact, abs=0.03)


def test_evidence_is_the_formula_of_laplace():
    x, y = rows_of_one_feature()
    model = BayesianLogistic(precision=0.7, intercept=False).fit(x[:, None], y)
    w = model.coef_[0, 0]
    p = expit(w * x)
    curvature = float((p * (1 - p) * x * x).sum()) + 0.7
    expected = log_likelihood(x, y, w) - 0.35 * w * w + 0.5 * np.log(0.7 / curvature)
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-10)
    assert model.n_effective_ == pytest.approx(1 - 0.7 / curvature, rel=1e-8)


def test_chosen_precision_maximises_the_evidence():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = rows[:, :6]
    model = BayesianLogistic().fit(rows, labels)
    for factor in (0.9, 1.1):
        other = BayesianLogistic(precision=model.precision_ * factor).fit(rows, labels)
        assert other.log_evidence_ < model.log_evidence_


@pytest.mark.parametrize("classes", [2, 3])
def test_mode_is_the_fit_with_the_corresponding_ridge(classes):
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[labels < classes], labels[labels < classes]
    model = BayesianLogistic(precision=2.0, predictive="mode").fit(rows, labels)
    ridge = Logistic(ridge=2.0 / len(rows)).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(rows), ridge.predict_proba(rows), atol=1e-8)


def test_predictive_probability_is_close_to_the_integral():
    x, y = rows_of_one_feature(40, 2)
    model = BayesianLogistic(precision=1.0, intercept=False).fit(x[:, None], y)
    top = log_likelihood(x, y, model.coef_[0, 0])

    def weight(w):
        return np.exp(log_likelihood(x, y, w) - top - 0.5 * w * w)

    total, _ = quad(weight, -8, 8)
    for new in (0.5, 2.0, 6.0):
        exact = quad(lambda w, new=new: expit(w * new) * weight(w), -8, 8)[0] / total
        assert model.predict_proba([[new]])[0, 1] == pytest.approx(exact, abs=0.015)
        mode = expit(model.coef_[0, 0] * new)
        assert model.predict_proba([[new]])[0, 1] < mode


def test_variance_of_the_score_is_that_of_the_posterior():
    x, y = rows_of_one_feature()
    model = BayesianLogistic(precision=0.7, intercept=False).fit(x[:, None], y)
    p = expit(model.coef_[0, 0] * x)
    curvature = float((p * (1 - p) * x * x).sum()) + 0.7
    assert model.score_variance([[3.0]])[0] == pytest.approx(9.0 / curvature, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_integer_weights_equal_repeated_rows(classes):
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[labels < classes], labels[labels < classes]
    times = np.random.default_rng(0).integers(0, 3, len(rows))
    weighted = BayesianLogistic().fit(rows, labels, times)
    repeated = BayesianLogistic().fit(np.repeat(rows, times, axis=0), np.repeat(labels, times))
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-8)
    np.testing.assert_allclose(
        weighted.predict_proba(rows), repeated.predict_proba(rows), atol=1e-5
    )


def test_units_of_columns_do_not_matter():
    rows, labels = load_iris(return_X_y=True)
    plain = BayesianLogistic().fit(rows, labels)
    other = BayesianLogistic().fit(rows * [1e-5, 1e4, 1.0, 7.0] + 100.0, labels)
    expected = plain.predict_proba(rows)
    np.testing.assert_allclose(
        other.predict_proba(rows * [1e-5, 1e4, 1.0, 7.0] + 100.0), expected, atol=1e-5
    )


def test_probabilities_far_from_the_rows_are_less_extreme():
    rows, labels = load_iris(return_X_y=True)
    model = BayesianLogistic().fit(rows, labels)
    far = rows.mean(axis=0) + 20 * (rows[:50].mean(axis=0) - rows.mean(axis=0))
    mode = Logistic(ridge=model.precision_ / len(rows)).fit(rows, labels)
    assert model.predict_proba([far]).max() < mode.predict_proba([far]).max()


def test_held_out_loss_is_close_to_that_of_a_cross_validated_penalty():
    rows, labels = load_breast_cancer(return_X_y=True)
    losses = [
        dd.cross_validate(model, rows, labels, folds=10).log_loss
        for model in (BayesianLogistic(), Logistic(ridge="cv"))
    ]
    assert losses[0] < losses[1] + 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.0}, "a positive number, or 'evidence'"),
        ({"predictive": "mean"}, "one of probit, mode"),
        ({"intercept": 1}, "True or False"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(OptionError, match=message):
        BayesianLogistic(**options).fit([[0.0], [1.0]], [0, 1])


def test_saved_model_predicts_the_same(tmp_path):
    rows, labels = load_iris(return_X_y=True)
    model = BayesianLogistic().fit(rows, labels)
    model.save(tmp_path / "model.dsc")
    loaded = dd.load(tmp_path / "model.dsc")
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))


def test_export_is_refused_with_the_reason():
    rows, labels = load_iris(return_X_y=True)
    model = BayesianLogistic().fit(rows, labels)
    with pytest.raises(ExportError, match="integrate over the coefficients"):
        export(model, "sql", table="rows")


def test_export_of_the_mode_predicts_the_same():
    rows, labels = load_iris(return_X_y=True)
    model = BayesianLogistic(predictive="mode").fit(rows, labels)
    module = {}
    exec(export(model, "python"), module)
    names = [f"x{j}" for j in range(4)]
    for row, p in zip(rows.tolist(), model.predict_proba(rows), strict=True):
        label, chances = module["predict"](dict(zip(names, row, strict=True)))
        assert label == p.argmax()
        assert list(chances.values()) == pytest.approx(p, abs=1e-12)
