"""NIST's certified regressions: at least the digits of R's lm, less a half, and never silently few.

Powers of x are rounded to float64 before the fit, as R's lm has them; of Filip's 15 digits that
leaves 7.6 (`attainable` in linear.json, worked out in fractions).
"""

import json
import math
import warnings

import numpy as np
import pytest

from discriminant import LinearRegression
from discriminant.engines import local
from tests.shared.paths import NIST

SETS = json.loads((NIST / "linear.json").read_text())
R_LM = json.loads((NIST / "r_lm.json").read_text())["sets"]
FILIP = 6.5  # R's lm gives up on Filip
ROUNDING = 0.05  # R_LM and attainable digits are printed to two places


def rows_of(name):
    x = np.array(SETS[name]["x"], dtype=np.float64).reshape(len(SETS[name]["y"]), -1)
    if SETS[name]["degree"] > 1:
        x = np.hstack([x**power for power in range(1, SETS[name]["degree"] + 1)])
    return x, np.array(SETS[name]["y"])


def correct_digits(found, certified):
    """Of the worst coefficient, between 0 and 15."""
    errors = [abs(f - c) / (abs(c) or 1.0) for f, c in zip(found, certified, strict=True)]
    return min(15.0 if e == 0 else min(15.0, max(0.0, -math.log10(e))) for e in errors)


def coefficients(model):
    return [*([model.intercept_] if model.fit_intercept else []), *model.coef_]


def digits_of(name, model):
    return correct_digits(coefficients(model), SETS[name]["certified"]["coef"])


def model_for(name, **options):
    return LinearRegression(fit_intercept=SETS[name]["intercept"], **options)


def wanted(name):
    return FILIP if name == "Filip" else R_LM[name]["default"]["coef_lre"] - 0.5


@pytest.mark.parametrize("size", [None, 1, 5, 7])
@pytest.mark.parametrize("name", SETS)
def test_the_default_has_the_digits_of_lm_however_the_rows_are_cut(name, size, monkeypatch):
    if size is not None:
        monkeypatch.setattr(local, "block_rows", lambda *_: size)
    assert digits_of(name, model_for(name).fit(*rows_of(name))) >= wanted(name)


@pytest.mark.parametrize("size", [None, 5])
@pytest.mark.parametrize("name", SETS)
def test_high_precision_has_all_the_digits_that_float64_rows_allow(name, size, monkeypatch):
    if size is not None:
        monkeypatch.setattr(local, "block_rows", lambda *_: size)
    model = model_for(name, precision="high").fit(*rows_of(name))
    attainable = SETS[name]["attainable"]["coef_lre_rounded_powers"]
    assert digits_of(name, model) >= attainable - ROUNDING


@pytest.mark.parametrize("name", SETS)
def test_a_factor_merged_from_five_rows_at_a_time_has_the_digits_of_lm_less_one(name):
    """Each row is seen once, so no residual can correct the fit: the factor alone answers."""
    x, y = rows_of(name)
    model = model_for(name, precision="high")
    for lo in range(0, len(x), 5):
        model.partial_fit(x[lo : lo + 5], y[lo : lo + 5])
    assert digits_of(name, model) >= min(wanted(name), R_LM[name]["tol_1e-20"]["coef_lre"] - 1.0)


@pytest.mark.parametrize("precision", ["auto", "standard", "high"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", SETS)
def test_fewer_than_four_digits_are_never_silent(name, precision, streamed):
    x, y = rows_of(name)
    model = model_for(name, precision=precision)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if streamed:
            for lo in range(0, len(x), 5):
                model.partial_fit(x[lo : lo + 5], y[lo : lo + 5])
        else:
            model.fit(x, y)
        digits = digits_of(name, model)
    assert digits >= 4.0 or told
