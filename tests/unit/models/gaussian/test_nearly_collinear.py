"""Columns that nearly depend on one another are not taken for columns that do.

Reference numbers: R 4, `glm(y ~ a + b + c + d, binomial, control = list(epsilon = 1e-14))` for the
noisy copy, and `glm(. ~ poly(x, 4), ...)`, whose orthogonal powers span what raw ones span, for the
years; the data are drawn by NumPy's PCG64 as below and written with 17 digits.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from discriminant import GLM, Logistic, LogLinear
from discriminant.errors import CollinearWarning


def drawn():
    rng = np.random.default_rng(0)
    n = 2000
    X = rng.normal(size=(n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-(X @ [1, -1, 0.5])))).astype(int)
    noise = rng.normal(size=n)
    years = np.linspace(1950, 2020, n)
    chance = rng.random(n)
    wave = np.sin((years - 1950) / 12)
    bits = (chance < 1 / (1 + np.exp(-2 * wave))).astype(int)
    return X, y, noise, years, bits, np.floor(4 * chance * np.exp(wave))


X, Y, NOISE, YEARS, BITS, COUNTS = drawn()
POWERS = YEARS[:, None] ** np.arange(1, 5)
ESTIMATE = [4.31479816910e-02, -7.47747625017e05, -1.04899361932, 0.561446657758, 7.47748600996e05]
ERROR = [
    5.38382643668e-02,
    5.41410531375e05,
    6.55243751231e-02,
    5.66811487660e-02,
    5.41410533087e05,
]


@pytest.mark.parametrize("model", [Logistic(), GLM("binomial")])
def test_a_copy_with_noise_of_one_in_ten_million_has_the_estimates_and_errors_of_r(model):
    with pytest.warns(CollinearWarning, match="rank 4 of 4.*2.0e\\+07, about 9 correct digits"):
        found = model.fit(np.column_stack([X, X[:, 0] + 1e-7 * NOISE]), Y).inference()
    assert found.likelihood.deviance == pytest.approx(2076.85327675, abs=1e-7)
    np.testing.assert_allclose(found.estimate, ESTIMATE, rtol=1e-6)
    np.testing.assert_allclose(found.std_error, ERROR, rtol=1e-6)


@pytest.mark.parametrize("small", [1e-5, 1e-6, 1e-7, 1e-8])
def test_a_noisy_copy_is_fitted_as_the_noise_itself(small):
    copy = X[:, 0] + small * NOISE
    apart = (copy - X[:, 0]) / small  # the difference is exact, and so are powers of ten nearly
    plain = Logistic().fit(np.column_stack([X, apart]), Y).inference()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearWarning)
        found = Logistic().fit(np.column_stack([X, copy]), Y).inference()
    assert found.std_error[4] * small == pytest.approx(plain.std_error[4], rel=1e-7)
    assert found.likelihood.deviance == pytest.approx(plain.likelihood.deviance, rel=1e-10)


@pytest.mark.parametrize(
    ("model", "response", "deviance"),
    [
        (Logistic(), BITS, 1975.26480156),
        (GLM("binomial"), BITS, 1975.26480156),
        (GLM("poisson"), COUNTS, 2767.27918594),
    ],
)
def test_raw_powers_of_years_fit_as_well_as_orthogonal_ones(model, response, deviance):
    with pytest.warns(CollinearWarning, match="rank 4 of 4"):
        found = model.fit(POWERS, response)
    assert found.inference().likelihood.deviance == pytest.approx(deviance, abs=1e-6)
    assert found.converged_


def test_a_log_linear_model_of_raw_powers_has_the_residuals_of_centred_ones():
    centred = np.polynomial.legendre.legvander((YEARS - 1985) / 35, 4)
    logs = np.log1p(COUNTS)
    least = np.linalg.lstsq(centred, logs, rcond=None)[1][0]
    with pytest.warns(CollinearWarning):
        found = LogLinear().fit(POWERS, 1 + COUNTS)
    assert found.deviance_ == pytest.approx(least, rel=1e-9)


def test_likelihood_ratios_of_raw_powers_are_those_of_nested_fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearWarning)
        fit = Logistic().fit(POWERS, BITS)
        dropped = fit.drop_each(POWERS, BITS)[-1]
        without = Logistic().fit(POWERS[:, :3], BITS).inference().likelihood.deviance
    assert dropped.deviance == pytest.approx(without, abs=1e-5)


@pytest.mark.parametrize("model", [Logistic(), GLM("binomial")])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_a_sum_of_columns_is_still_named_wherever_columns_are_counted_from(model, offset):
    far = X + offset
    with pytest.warns(CollinearWarning, match="'x0', 'x1', 'x3'.*rank 3 of 4"):
        found = model.fit(np.column_stack([far, far[:, 0] + far[:, 1]]), Y)
    three = Logistic().fit(X, Y).inference().likelihood.deviance
    assert found.inference().likelihood.deviance == pytest.approx(three, rel=1e-7)
