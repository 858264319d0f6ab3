"""The summary of Gaussian classifiers: the formulas of PROC DISCRIM, and its tables."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import discriminant as dd

X, codes = load_iris(return_X_y=True)
Y = load_iris().target_names[codes]
MEANS = np.array([X[codes == k].mean(axis=0) for k in range(3)])
WITHIN = np.array([np.cov(X[codes == k].T) for k in range(3)])
POOLED = WITHIN.mean(axis=0)  # classes of equal size


def test_linear_functions_are_the_formula():
    summary = dd.LDA().fit(X, Y).summary()
    inverse = np.linalg.inv(POOLED)
    np.testing.assert_allclose(summary.coefficients, inverse @ MEANS.T, rtol=1e-9)
    constants = -0.5 * np.einsum("kd,de,ke->k", MEANS, inverse, MEANS)
    np.testing.assert_allclose(summary.constants, constants, rtol=1e-9)


def test_linear_functions_are_those_that_sas_prints_for_irises():
    # SAS/STAT User's Guide, in millimetres; priors equal
    summary = dd.LDA().fit(10 * X, Y).summary()
    np.testing.assert_allclose(summary.constants, [-85.20986, -71.75400, -103.26971], atol=6e-6)
    np.testing.assert_allclose(summary.coefficients[0], [2.35442, 1.56982, 1.24458], atol=6e-6)


def test_priors_that_differ_enter_distances_and_constants():
    prior = np.array([0.5, 0.3, 0.2])
    equal, other = (dd.LDA(prior=p).fit(X, Y).summary() for p in (None, prior))
    np.testing.assert_allclose(
        other.distances - equal.distances, np.tile(-2 * np.log(prior), (3, 1))
    )
    np.testing.assert_allclose(other.constants - equal.constants, np.log(prior))
    assert np.diagonal(equal.distances).tolist() == [0.0, 0.0, 0.0]


def test_quadratic_distances_have_log_determinants():
    summary = dd.QDA().fit(X, Y).summary()
    logdet = np.linalg.slogdet(WITHIN)[1]
    np.testing.assert_allclose(summary.logdet, logdet, rtol=1e-10)
    gap = MEANS[0] - MEANS[1]
    wanted = gap @ np.linalg.solve(WITHIN[1], gap) + logdet[1]
    assert summary.distances[0, 1] == pytest.approx(wanted, rel=1e-9)
    assert summary.constants is None and "Linear Discriminant Function" not in summary.text


def test_log_determinants_do_not_depend_on_the_origin():
    summary = dd.LDA().fit(X + 1e6, Y).summary()
    assert summary.logdet[0] == pytest.approx(np.linalg.slogdet(POOLED)[1], abs=1e-6)


def test_tables_of_classification_are_those_of_predictions():
    summary = dd.QDA().fit(X, Y).summary(X, Y)
    assert np.trace(summary.resubstitution) == 147  # error 0.02 (SAS/STAT User's Guide)
    assert np.trace(summary.left_out) == 146  # error 0.0267
    assert summary.resubstitution.sum(axis=1).tolist() == [50.0, 50.0, 50.0]
    lines = summary.text.splitlines()
    assert "Classification Summary: Resubstitution" in lines
    assert lines[-1].split() == ["Total", "50", *lines[-1].split()[2:4], "150", "0.0267"]


def test_cross_validation_can_be_left_out():
    summary = dd.LDA().fit(X, Y).summary(X, Y, cross_validate=False)
    assert summary.left_out is None and "leave-one-out" not in summary.text


def test_tables_have_sections_and_conversions():
    summary = dd.LDA().fit(X, Y).summary()
    for section in (
        "Class Level Information",
        "Pooled Covariance Matrix Information",
        "Generalized Squared Distance",
        "Linear Discriminant Function",
    ):
        assert section in summary.text.splitlines()
    assert summary.frame().index.tolist() == ["Constant", "x0", "x1", "x2", "x3"]
    facts = summary.to_dict()
    assert facts["classes"][0]["rows"] == 50 and facts["rank"] == [4]
    assert "Within Covariance Matrix Information" in dd.QDA().fit(X, Y).summary().text


@pytest.mark.parametrize(
    "model", [dd.RDA(pooling=0.5), dd.NearestMean(), dd.LDA(shrinkage=0.5), dd.LDA(shrinkage=1.0)]
)
def test_other_gaussian_classifiers_have_a_summary(model):
    summary = model.fit(X, Y).summary(X, Y)
    assert summary.resubstitution.sum() == 150 and str(summary) == summary.text


def test_weights_count_in_the_tables():
    weight = np.where(codes == 0, 2.0, 1.0)
    summary = dd.LDA().fit(X, Y, weight).summary(X, Y, weight)
    assert summary.weight.tolist() == [100.0, 50.0, 50.0]
    assert summary.resubstitution.sum(axis=1).tolist() == [100.0, 50.0, 50.0]
