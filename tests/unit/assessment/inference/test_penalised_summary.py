"""summary() of a logistic regression with a ridge: coefficients without standard errors."""

import numpy as np
import pytest

from discriminant import Logistic
from discriminant.errors import InferenceError

RNG = np.random.default_rng(4)
X = RNG.standard_normal((90, 2))


@pytest.mark.parametrize("ridge", [0.1, 1e-4])
def test_summary_of_two_classes_lists_the_coefficients(ridge):
    y = np.where(X[:, 0] + RNG.standard_normal(90) > 0, "yes", "no")
    model = Logistic(ridge=ridge).fit(X, y)
    summary = model.summary()
    frame = summary.frame()
    assert frame.index.tolist() == ["(Intercept)", "x0", "x1"]
    np.testing.assert_array_equal(frame["estimate"], [model.intercept_[0], *model.coef_[0]])
    assert "std_error" not in frame
    assert "log odds of 'yes' against 'no'" in str(summary)
    assert f"No standard errors or tests: ridge={ridge:g} biases the estimates." in str(summary)


def test_summary_of_three_classes_compares_with_the_first():
    y = np.array(list("abc") * 30)
    model, tiny = Logistic(ridge=0.1).fit(X, y), Logistic(ridge=1e-12).fit(X, y)
    rows = model.summary().to_dict()["coefficients"]
    assert [row["class"] for row in rows] == ["b"] * 3 + ["c"] * 3
    np.testing.assert_allclose(rows[1]["estimate"], model.coef_[1, 0] - model.coef_[0, 0])
    unpenalised = Logistic().fit(X, y).summary().frame()
    small = tiny.summary().frame()
    assert small.index.equals(unpenalised.index)
    np.testing.assert_allclose(small["estimate"], unpenalised["estimate"], atol=1e-6)


def test_summary_without_intercept_has_no_intercept():
    y = np.where(X[:, 0] + RNG.standard_normal(90) > 0, 1, 0)
    model = Logistic(ridge=0.1, intercept=False).fit(X, y)
    assert model.summary().frame().index.tolist() == ["x0", "x1"]


def test_intervals_of_a_penalised_fit_still_raise():
    model = Logistic(ridge=0.1).fit(X, list("ab") * 45)
    with pytest.raises(InferenceError, match=r"ridge=0\.1 biases"):
        model.intervals()


def test_summary_of_separated_classes_still_raises():
    with pytest.warns(match="separated"):
        model = Logistic().fit(X, X[:, 0] > 0)
    with pytest.raises(InferenceError, match="separated"):
        model.summary()
