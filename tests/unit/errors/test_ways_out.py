"""Messages that tell a new user what to pass instead."""

import numpy as np
import pytest

import discriminant as dd
from discriminant.errors import ComparisonError, MissingValueError
from discriminant.errors.fitting import InferenceError, ScarceRowsWarning

X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.array(list("ab") * 15)


@pytest.mark.parametrize("arguments", [(X,), (X, Y), ({}, X, Y)])
def test_compare_models_of_rows_says_what_to_pass(arguments):
    with pytest.raises(ComparisonError, match=r"\{'LDA': cross_validate\(LDA\(\), X, y, fold\)"):
        dd.compare_models(*arguments)


def test_error_for_nan_names_the_options_of_encoded_and_they_work():
    rows = X.copy()
    rows[3, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"Encoded\(model, missing='mean'\)"):
        dd.LDA().fit(rows, Y)
    for missing in ("mean", "indicator", "marginal", "drop"):
        dd.Encoded(dd.LDA(), missing=missing).fit(rows, Y)


def test_one_feature_is_singular():
    warning = ScarceRowsWarning.of("The covariance", rows=4, degrees=2, features=3)
    assert "at most 1 feature." in str(warning)
    error = InferenceError.too_wide("MANOVA", rows=3, classes=2, features=4)
    assert "at most 1 feature:" in str(error)
