"""The laws that models made from moments keep."""

import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.datasets import load_wine

import discriminant
from discriminant import (
    LDA,
    QDA,
    RDA,
    SDA,
    LaplaceNB,
    NearestMean,
    ShrunkenCentroids,
    SparseLDA,
)
from discriminant.errors import ConstantInClassWarning, MomentsMismatchError, PrecisionLostError
from discriminant.posterior import log_posterior, posterior
from tests.shared.blocks import Rows, random_rows

MEMBERS = [
    LDA(),
    LDA(shrinkage=0.4),
    LDA(shrinkage="auto"),
    LDA(shrinkage="oas", target="scaled_identity"),
    LDA(shrinkage=1.0),
    QDA(),
    QDA(shrinkage=0.3, denominator="ml"),
    QDA(shrinkage="auto"),
    QDA(shrinkage="oas", target="scaled_identity"),
    RDA(pooling=0.3),
    RDA(pooling=0.3, shrinkage=0.2, target="identity"),
    RDA.from_klar(0.2, 0.6),
    RDA.from_friedman(0.4, 0.1),
    LDA(predictive="student"),
    QDA(predictive="student"),
    RDA(pooling=0.3, shrinkage=0.2, predictive="student"),
    RDA(pooling="empirical_bayes"),
    QDA(covariance="diagonal"),
    QDA(covariance="spherical", denominator="ml"),
    QDA(map_prior="default"),
    NearestMean(),
]
INVARIANT = [
    LDA(),
    QDA(),
    RDA(pooling=0.3),
    LDA(denominator="ml"),
    LDA(predictive="student"),
    QDA(predictive="student"),
    QDA(groups=[["ash", "birch"]]),
    QDA(map_prior="default"),
]
SELECTING = [  # without densities
    SDA(),
    SDA(n_features=1, shrinkage=1.0),
    ShrunkenCentroids(threshold=0.02),  # a larger one may remove every feature, with a warning
    SparseLDA(penalty=0.2),
]

every_member = pytest.mark.parametrize("model", [*MEMBERS, *SELECTING], ids=repr)
every_density = pytest.mark.parametrize("model", MEMBERS, ids=repr)


def fitted(model, rows, **options):
    made = type(model)(**model.get_params() | options)
    return made.fit(rows.features, rows.y, sample_weight=rows.weight)


def enough(weighted=None):
    """Hypothesis: tables with rows enough for a covariance of each class."""
    return st.builds(
        random_rows,
        seed=st.integers(0, 10_000),
        n=st.integers(60, 90),
        width=st.integers(1, 4),
        classes=st.integers(2, 3),
        weighted=st.booleans() if weighted is None else st.just(weighted),
        spread=st.just(1.0),
    )


def same(found, wanted, tolerance=1e-9):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


# --- what changes nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("model", INVARIANT, ids=repr)
@given(rows=enough(), seed=st.integers(0, 99))
def test_an_affine_map_of_the_features_changes_no_posterior(model, rows, seed):
    rng = np.random.default_rng(seed)
    d = rows.features.shape[1]
    rotation, _ = np.linalg.qr(rng.standard_normal((d, d)))
    matrix = rotation * 10.0 ** rng.uniform(-3, 3, d)  # columns of very different size
    moved = replace(rows, features=rows.features @ matrix + rng.uniform(-5, 5, d) * 10)
    here, there = fitted(model, rows), fitted(model, moved)
    same(there.predict_proba(moved.features), here.predict_proba(rows.features))


@every_member
@given(data=st.data(), rows=enough(weighted=False))
def test_an_integer_weight_is_a_repeated_row(model, data, rows):
    counts = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 4, len(rows))
    weighted = fitted(model, replace(rows, weight=counts.astype(float)))
    repeated = fitted(model, rows.take(np.repeat(np.arange(len(rows)), counts)))
    same(weighted.predict_log_proba(rows.features), repeated.predict_log_proba(rows.features))


@every_member
@given(rows=enough(), seed=st.integers(0, 99))
def test_the_order_of_rows_and_columns_does_not_matter(model, rows, seed):
    rng = np.random.default_rng(seed)
    order, columns = rng.permutation(len(rows)), rng.permutation(rows.features.shape[1])
    shuffled = rows.take(order)
    shuffled = replace(shuffled, features=shuffled.features[:, columns])
    found = fitted(model, shuffled).predict_log_proba(rows.features[:, columns])
    same(found, fitted(model, rows).predict_log_proba(rows.features))


@every_member
@given(rows=enough(), seed=st.integers(0, 99))
def test_renaming_classes_permutes_the_posteriors(model, rows, seed):
    place = np.random.default_rng(seed).permutation(len(rows.labels))
    renamed = fitted(model, replace(rows, codes=place[rows.codes]))
    found = renamed.predict_log_proba(rows.features)[:, place]
    same(found, fitted(model, rows).predict_log_proba(rows.features))


# --- other ways to the same model ----------------------------------------------------------------


@every_member
@given(data=st.data(), rows=enough())
def test_fitting_in_any_batches_is_fitting_at_once(model, data, rows):
    ends = sorted(data.draw(st.lists(st.integers(1, len(rows) - 1), max_size=4, unique=True)))
    batches = type(model)(**model.get_params())
    for lo, hi in zip([0, *ends], [*ends, len(rows)], strict=True):
        part = rows.take(slice(lo, hi))
        batches.partial_fit(part.features, part.y, sample_weight=part.weight)
    same(
        batches.predict_log_proba(rows.features),
        fitted(model, rows).predict_log_proba(rows.features),
    )


@pytest.mark.parametrize("scales", [(1e-200, 1.0), (1.0, 1e200), (0.0, 1e-200)], ids=str)
@pytest.mark.parametrize("model", [LDA(), QDA()], ids=repr)
def test_batches_of_very_different_size_are_fitted_as_at_once(model, scales):
    rows = random_rows(3, n=60, classes=2)
    size = np.where(np.arange(60)[:, None] < 30, *scales)
    rows = replace(rows, features=np.hstack([rows.features, rows.features[:, :1] * size]))
    batches = type(model)()
    for part in (rows.take(slice(30)), rows.take(slice(30, None))):
        batches.partial_fit(part.features, part.y)
    same(
        batches.predict_log_proba(rows.features),
        fitted(model, rows).predict_log_proba(rows.features),
    )


@every_member
@given(rows=enough(), gone=st.integers(1, 15))
def test_what_is_forgotten_was_never_seen(model, rows, gone):
    part, rest = rows.take(slice(gone)), rows.take(slice(gone, None))
    found = fitted(model, rows).forget(part.features, part.y, sample_weight=part.weight)
    same(
        found.predict_log_proba(rows.features),
        fitted(model, rest).predict_log_proba(rows.features),
        1e-8,
    )


@every_member
@given(rows=enough())
def test_fitting_from_moments_is_fitting_from_rows(model, rows):
    moments = discriminant.moments(rows.features, rows.y, rows.weight, detail="fourth")
    found = type(model)(**model.get_params()).fit_moments(moments)
    same(
        found.predict_log_proba(rows.features),
        fitted(model, rows).predict_log_proba(rows.features),
    )


@pytest.mark.parametrize("model", [NearestMean(), LDA(shrinkage=1.0)], ids=repr)
@given(rows=enough())
def test_variances_that_classes_share_are_those_of_pooled_moments(model, rows):
    moments = discriminant.moments(rows.features, rows.y, rows.weight, detail="pooled")
    found = type(model)(**model.get_params()).fit_moments(moments)
    same(
        found.predict_log_proba(rows.features),
        fitted(model, rows).predict_log_proba(rows.features),
    )


# --- corners of the family -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("corner", "name"),
    [
        (RDA(pooling=0.0), QDA()),
        (RDA(pooling=1.0), LDA()),
        (RDA(pooling=1.0, shrinkage=1.0), LDA(shrinkage=1.0)),
        (
            RDA(pooling=1.0, shrinkage=1.0, target="scaled_identity", prior=[0.5, 0.5]),
            NearestMean(),
        ),
        (RDA(pooling=0.0, shrinkage=0.3, shrink="mixed"), QDA(shrinkage=0.3)),
        (RDA.from_friedman(1.0, 0.0), LDA()),
        (RDA.from_friedman(0.0, 0.0), QDA()),
        (RDA.from_klar(0.0, 1.0), LDA()),
        (RDA.from_matlab(1.0), LDA(shrinkage=1.0)),
    ],
    ids=repr,
)
def test_a_corner_of_the_family_is_its_named_member(corner, name):
    rows = random_rows(2, n=60, classes=2)
    same(
        fitted(corner, rows).predict_log_proba(rows.features),
        fitted(name, rows).predict_log_proba(rows.features),
        1e-11,
    )


def test_nearest_mean_gives_the_class_whose_mean_is_nearest():
    rows = random_rows(8, n=90, classes=3)
    means = np.array([rows.features[rows.codes == k].mean(axis=0) for k in range(3)])
    distance = ((rows.features[:, None, :] - means) ** 2).sum(axis=2)
    found = NearestMean().fit(rows.features, rows.y).predict(rows.features)
    assert found.tolist() == rows.labels[distance.argmin(axis=1)].tolist()


@given(seed=st.integers(0, 999), shift=st.floats(0.1, 3))
def test_classes_of_equal_scatter_make_qda_linear(seed, shift):
    one = random_rows(seed, n=30, classes=1)
    features = np.vstack([one.features, one.features + shift])
    rows = Rows(features, np.repeat([0, 1], 30), None, np.array(["ash", "birch"], dtype=object))
    # The pooled covariance has another denominator than each class's, unless it is n and n_k.
    same(
        fitted(QDA(denominator="ml"), rows).predict_log_proba(features),
        fitted(LDA(denominator="ml"), rows).predict_log_proba(features),
        1e-8,
    )


# --- priors --------------------------------------------------------------------------------------


@given(rows=enough(), p=st.floats(0.01, 0.99))
def test_priors_enter_the_intercept_of_lda_alone(rows, p):
    rows = replace(rows, codes=rows.codes % 2, labels=rows.labels[:2])
    one, other = fitted(LDA(prior=[0.5, 0.5]), rows), fitted(LDA(prior=[1 - p, p]), rows)
    same(other.coef_, one.coef_, 1e-10)
    same(other.intercept_ - one.intercept_, np.log(p / (1 - p)), 1e-8)


@every_member
@given(rows=enough(), seed=st.integers(0, 99))
def test_a_prior_at_predict_is_a_prior_at_fit(model, rows, seed):
    prior = np.random.default_rng(seed).dirichlet(np.full(len(rows.labels), 3.0))
    same(
        fitted(model, rows).predict_log_proba(rows.features, prior=prior),
        fitted(model, rows, prior=prior).predict_log_proba(rows.features),
    )


@given(rows=enough(), seed=st.integers(0, 99))
def test_log_posteriors_move_to_another_prior_without_the_model(rows, seed):
    prior = np.random.default_rng(seed).dirichlet(np.full(len(rows.labels), 3.0))
    model = fitted(QDA(), rows)
    moved = model.predict_log_proba(rows.features) + np.log(prior) - np.log(model.prior_)
    same(
        moved - np.log(np.exp(moved).sum(axis=1, keepdims=True)),
        model.predict_log_proba(rows.features, prior=prior),
    )


# --- densities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LDA(), QDA(), RDA(), LDA(shrinkage=1.0)], ids=repr)
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_the_density_of_one_feature_integrates_to_one(model, scale):
    rows = random_rows(4, n=60, width=1, classes=2)
    model.fit(scale * rows.features, rows.y)
    area, _ = quad(
        lambda x: np.exp(model.log_density([[x]])[0]), -30 * scale, 30 * scale, points=[0.0]
    )
    assert area == pytest.approx(1.0, abs=1e-8)


@every_density
@given(rows=enough())
def test_the_log_posterior_is_log_prior_plus_log_density_by_bayes(model, rows):
    model = fitted(model, rows)
    joint = np.log(model.prior_) + model.log_density(rows.features, by_class=True)
    bayes = joint - model.log_density(rows.features)[:, None]
    same(model.predict_log_proba(rows.features), bayes)


@pytest.mark.parametrize("model", [LDA(), QDA(), RDA(), LDA(shrinkage=1.0)], ids=repr)
def test_rows_drawn_from_a_model_have_its_moments(model):
    rows = random_rows(6, n=200, width=3, classes=2)
    model.fit(rows.features, rows.y)
    n = 200_000
    drawn, labels = model.sample(n, seed=1)
    again = type(model)(**model.get_params()).fit(drawn, labels)
    sd = drawn.std(axis=0)
    shares = (labels == rows.labels[1]).mean()
    assert abs(shares - model.prior_[1]) < 5 * np.sqrt(0.25 / n)
    assert np.abs((again.means_ - model.means_) / sd).max() < 5 / np.sqrt(n / 4)
    # A covariance is off by about its size times sqrt(2 / n), and with it every distance.
    ratio = again.mahalanobis(rows.features) / model.mahalanobis(rows.features)
    assert np.abs(np.median(ratio) - 1) < 5 * np.sqrt(2 / (n / 4))


def test_the_same_seed_draws_the_same_rows():
    rows = random_rows(6, n=60)
    model = LDA().fit(rows.features, rows.y)
    assert np.array_equal(model.sample(9, seed=3)[0], model.sample(9, seed=3)[0])


# --- tails ---------------------------------------------------------------------------------------


@given(seed=st.integers(0, 999), size=st.sampled_from([1.0, 30.0, 1e3, 1e5]))
def test_a_log_posterior_is_exact_in_the_tails(seed, size):
    scores = size * np.random.default_rng(seed).standard_normal((5, 4))
    mpmath.mp.dps = 400  # so that 1 - exp(-700) is not 1
    for found, row in zip(log_posterior(scores), scores, strict=True):
        exact = [mpmath.mpf(s) for s in row]
        total = mpmath.log(mpmath.fsum(mpmath.exp(s) for s in exact))
        truth = np.array([float(s - total) for s in exact])
        # The largest is log(1 - tiny): it keeps its digits relative to tiny, not to one.
        assert np.abs(found - truth).max() <= 1e-15 * max(size, 1.0)
        assert np.abs(posterior(row[None])[0] - np.exp(truth)).max() <= 1e-15 * max(size, 1.0)
        top = truth.argmax()
        assert found[top] == pytest.approx(truth[top], rel=1e-13 * max(size, 1.0), abs=1e-300)


def test_a_row_far_out_keeps_a_finite_log_posterior():
    rows = random_rows(2, n=60, classes=2)
    far = LDA().fit(rows.features, rows.y).predict_log_proba([[1e4, -1e4, 1e4]])
    assert np.isfinite(far).all() and far.min() < -1000 and far.max() == 0.0


@pytest.mark.parametrize(
    "model", [QDA(), QDA(shrinkage=0.01), LaplaceNB(), RDA(pooling=0.1)], ids=repr
)
def test_a_column_constant_in_a_rare_class_does_not_make_it_win(model):
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.05).astype(int)
    rare = (rng.random(2000) < 0.1) & (y == 0)  # nine in ten of class 0 have that value too
    X = np.column_stack([rng.normal(size=2000) + y, rng.normal(size=2000), rare])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInClassWarning)
        error = 1.0 - clone(model).fit(X, y).score(X, y)
    assert error < 0.2  # always saying 0 errs in one of twenty, always saying 1 in nineteen


@pytest.mark.parametrize("model", [LDA(), QDA()], ids=repr)
def test_rows_forgotten_under_a_wrong_label_are_refused(model):
    X, y = load_wine(return_X_y=True)
    with pytest.raises((MomentsMismatchError, PrecisionLostError)):
        clone(model).fit(X, y).forget(X[:5], [2] * 5)


def test_moments_of_the_same_columns_in_another_order_add_by_name():
    X, y = load_wine(return_X_y=True, as_frame=True)
    whole = discriminant.moments(X, y)
    half = discriminant.moments(X[:90], y[:90])
    turned = X[X.columns[::-1]]
    found = half + discriminant.moments(turned[90:], y[90:])
    np.testing.assert_allclose(found.within(), whole.within(), rtol=1e-9)
