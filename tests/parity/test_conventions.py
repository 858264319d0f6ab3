"""Each `RDA.from_*` means what its source means: its covariances written out from the formula."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from discriminant import RDA
from tests.shared.blocks import random_rows

ROWS = random_rows(12, n=45, width=3, classes=3)
COUNT = np.bincount(ROWS.codes)
SCATTER = np.array(
    [(COUNT[k] - 1) * np.cov(ROWS.features[ROWS.codes == k], rowvar=False) for k in range(3)]
)
OWN = SCATTER / (COUNT - 1)[:, None, None]  # S_k
POOLED = SCATTER.sum(axis=0) / (COUNT.sum() - 3)  # S


def diagonal(covariance):
    return np.diag(np.diag(covariance))


def round_(covariance):
    """tr(S) / d times the identity."""
    return np.trace(covariance) / 3 * np.eye(3)


def posterior(covariances):
    means = np.array([ROWS.features[ROWS.codes == k].mean(axis=0) for k in range(3)])
    density = [
        multivariate_normal(means[k], covariances[k]).logpdf(ROWS.features) for k in range(3)
    ]
    joint = np.exp(np.array(density).T + np.log(COUNT / COUNT.sum()))
    return joint / joint.sum(axis=1, keepdims=True)


def friedman(gamma, lambda_):
    """Friedman (1989), eq. 16 to 18, with scatters and their degrees of freedom mixed."""
    below = (1 - lambda_) * (COUNT - 1) + lambda_ * (COUNT.sum() - 3)
    mixed = ((1 - lambda_) * SCATTER + lambda_ * SCATTER.sum(axis=0)) / below[:, None, None]
    return [(1 - gamma) * one + gamma * round_(one) for one in mixed]


def klar(gamma, lambda_):
    mixed = [(1 - lambda_) * one + lambda_ * POOLED for one in OWN]
    return [(1 - gamma) * one + gamma * round_(one) for one in mixed]


CONVENTIONS = {
    # Lecture 3's table: alpha, gamma = (1, any) QDA, (0, 1) LDA, (0, 0) diagonal, and between.
    "lecture QDA": (RDA.from_lecture(1.0, 1.0), OWN),
    "lecture without gamma": (
        RDA.from_lecture(0.3),
        [0.3 * one + 0.7 * POOLED for one in OWN],
    ),
    "lecture LDA": (RDA.from_lecture(0.0, 1.0), [POOLED] * 3),
    "lecture diagonal": (RDA.from_lecture(0.0, 0.0), [diagonal(POOLED)] * 3),
    "lecture between": (
        RDA.from_lecture(0.3, 0.6),
        [0.3 * one + 0.7 * (0.6 * POOLED + 0.4 * diagonal(POOLED)) for one in OWN],
    ),
    "ESL 4.13": (RDA.from_esl(0.9), [0.9 * one + 0.1 * POOLED for one in OWN]),
    "ESL 4.14": (
        RDA.from_esl(0.2, 0.7),
        [0.2 * one + 0.8 * (0.7 * POOLED + 0.3 * round_(POOLED)) for one in OWN],
    ),
    "MATLAB": (RDA.from_matlab(0.4), [0.6 * POOLED + 0.4 * diagonal(POOLED)] * 3),
    "klaR": (RDA.from_klar(0.2, 0.4), klar(0.2, 0.4)),
    "Friedman": (RDA.from_friedman(lambda_=0.4, gamma=0.2), friedman(0.2, 0.4)),
    "scikit-learn": (
        RDA.from_sklearn(0.3),
        [0.7 * one / n + 0.3 * np.eye(3) for one, n in zip(SCATTER, COUNT, strict=True)],
    ),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_convention_is_its_formula(name):
    model, covariances = CONVENTIONS[name]
    found = model.fit(ROWS.features, ROWS.y).predict_proba(ROWS.features)
    np.testing.assert_allclose(found, posterior(covariances), rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def vowel(shared_data):
    folder = shared_data / "esl_vowel"
    train, test = (pd.read_csv(folder / f"vowel_{part}.csv") for part in ("train", "test"))
    return train, test, json.loads((folder / "reference.json").read_text())


def error(model, table):
    return float((model.predict(table.drop(columns="y")) != table["y"]).mean())


def test_from_klar_gives_the_numbers_of_klar(vowel):
    train, test, reference = vowel
    for fit in reference["klaR_rda"]["fits"]:
        model = RDA.from_klar(fit["gamma"], fit["lambda"])
        model.fit(train.drop(columns="y"), train["y"])
        first = np.array(fit["test_posterior_first"])
        found = model.predict_proba(test.drop(columns="y")[: len(first)])
        np.testing.assert_allclose(found, first, rtol=0, atol=1e-10)
        assert error(model, train) == pytest.approx(fit["train_error"], abs=1e-12)
        assert error(model, test) == pytest.approx(fit["test_error"], abs=1e-12)


def test_from_esl_gives_the_whole_path_of_the_vowel_figure(vowel):
    train, test, reference = vowel
    for alpha, at_train, at_test in reference["rda_alpha_path"]["rows"][::5]:
        model = RDA.from_esl(alpha).fit(train.drop(columns="y"), train["y"])
        assert error(model, train) == pytest.approx(at_train, abs=1e-12)
        assert error(model, test) == pytest.approx(at_test, abs=1e-12)
