"""print(model) says whether the model is fitted; repr stays the constructor call."""

import numpy as np
import pytest
from sklearn.base import clone

from discriminant import LDA, RDA, Decision, Encoded, LinearRegression, Logistic

X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize("model", [LDA(), Logistic(ridge=0.1), Encoded(LDA()), Decision(LDA())])
def test_str_of_a_fitted_classifier_gives_classes_and_features(model):
    fitted = clone(model).fit(X, list("abc") * 10)
    assert str(model) == repr(model) == repr(fitted)
    assert str(fitted) == f"{model!r}  # fitted: 3 classes, 2 features"


def test_str_of_a_fitted_regressor_gives_features():
    fitted = LinearRegression().fit(X, X[:, 0])
    assert str(fitted) == "LinearRegression()  # fitted: 2 features"


def test_str_of_a_fitted_model_gives_the_values_that_it_chose():
    labels = list("abc") * 10
    model = RDA(pooling="cv", shrinkage="cv").fit(X, labels)
    chosen = f"pooling {model.pooling_:.4g}, shrinkage {model.shrinkage_:.4g}"
    assert str(model).endswith(f"2 features, {chosen}")
    ridge = Logistic(ridge="cv").fit(X, labels)
    assert str(ridge).endswith(f"2 features, ridge {ridge.ridge_:.4g}")
    assert str(LDA(shrinkage=0.1).fit(X, labels)).endswith("3 classes, 2 features")
