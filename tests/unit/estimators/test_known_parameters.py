"""Models of known parameters, without rows, and the Bayes error of class densities."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, multivariate_t, norm

import discriminant as dd
from discriminant.errors import LabelError, MomentsMismatchError, OptionError, PriorError
from discriminant.export.onnx import to_onnx
from discriminant.export.python import to_python
from discriminant.export.sql import to_sql

MEANS = np.array([[0.0, 1.0], [2.0, -1.0], [-1.0, -2.0]])
COVARIANCES = np.array([[[1.0, 0.3], [0.3, 2.0]], [[0.5, 0.0], [0.0, 1.0]], [[2.0, -1], [-1, 3]]])
PRIOR = np.array([0.5, 0.2, 0.3])
LABELS = ["c", "a", "b"]
NEW = np.random.default_rng(0).normal(scale=3.0, size=(50, 2))


def model_of(kind, **options):
    """LDA, QDA or MDA with the parameters above; LDA has the first covariance for all classes."""
    options = {"prior": PRIOR, "classes": LABELS} | options
    if kind == "LDA":
        return dd.LDA.from_parameters(MEANS, COVARIANCES[0], **options)
    if kind == "QDA":
        return dd.QDA.from_parameters(MEANS, COVARIANCES, **options)
    means = [MEANS[:1], MEANS[1:] + 4.0, MEANS[2:]]
    covariances = [COVARIANCES[:1], COVARIANCES[1:], COVARIANCES[2:]]
    shares = [[1.0], [0.3, 0.7], [1.0]]
    return dd.MDA.from_parameters(means, covariances, shares, **options)


def densities(kind, rows=NEW):
    """Class densities in the order of `LABELS`, by SciPy."""
    if kind == "MDA":
        first, second, third = (
            [multivariate_normal(m, c).pdf(rows) for m, c in zip(means, covariances, strict=True)]
            for means, covariances in (
                (MEANS[:1], COVARIANCES[:1]),
                (MEANS[1:] + 4.0, COVARIANCES[1:]),
                (MEANS[2:], COVARIANCES[2:]),
            )
        )
        return np.column_stack([first[0], 0.3 * second[0] + 0.7 * second[1], third[0]])
    covariances = COVARIANCES[[0, 0, 0]] if kind == "LDA" else COVARIANCES
    return np.column_stack(
        [multivariate_normal(m, c).pdf(rows) for m, c in zip(MEANS, covariances, strict=True)]
    )


every_kind = pytest.mark.parametrize("kind", ["LDA", "QDA", "MDA"])
SORTED = np.argsort(LABELS)


# --- predictions ----------------------------------------------------------------------------------


@every_kind
def test_predictions_follow_from_the_densities(kind):
    model = model_of(kind)
    by_class = densities(kind)
    joint = (by_class * PRIOR)[:, SORTED]
    posterior = joint / joint.sum(axis=1, keepdims=True)
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.prior_, PRIOR[SORTED])
    np.testing.assert_allclose(model.predict_proba(NEW), posterior, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), posterior, atol=1e-12)
    assert model.predict(NEW).tolist() == [sorted(LABELS)[k] for k in posterior.argmax(axis=1)]
    assert model.decision_function(NEW).argmax(axis=1).tolist() == posterior.argmax(axis=1).tolist()
    np.testing.assert_allclose(model.log_density(NEW), np.log(joint.sum(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(
        model.log_density(NEW, by_class=True), np.log(by_class[:, SORTED]), rtol=1e-9
    )
    other = {"a": 0.1, "b": 0.2, "c": 0.7}
    joint = by_class[:, SORTED] * np.array([0.1, 0.2, 0.7])
    wanted = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(NEW, prior=other), wanted, atol=1e-12)


@every_kind
def test_sampled_rows_have_the_parameters(kind):
    rows, labels = model_of(kind).sample(60_000, seed=1)
    for label, share in zip(LABELS, PRIOR, strict=True):
        assert abs(np.mean(labels == label) - share) < 0.01
    first = rows[labels == "c"]
    np.testing.assert_allclose(first.mean(axis=0), MEANS[0], atol=0.05)
    np.testing.assert_allclose(np.cov(first.T), COVARIANCES[0], atol=0.1)


@every_kind
def test_missing_features_are_integrated_out(kind):
    model = model_of(kind)
    rows = NEW[:5].copy()
    rows[:, 0] = np.nan
    scores = model.marginal_scores(rows)
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    grid = np.linspace(-25.0, 25.0, 20_001)
    for row, posterior in zip(rows, found, strict=True):
        full = np.column_stack([grid, np.full_like(grid, row[1])])
        joint = densities(kind, full).sum(axis=0) * PRIOR
        np.testing.assert_allclose(posterior, (joint / joint.sum())[SORTED], atol=1e-9)


def test_parameters_of_a_fit_give_the_fitted_model():
    rng = np.random.default_rng(1)
    X = 1e6 + rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    y = np.repeat([3, 1, 2], 20)
    X[y == 1] += 1.0
    for kind in (dd.LDA, dd.QDA):
        fitted = kind().fit(X, y)
        known = kind.from_parameters(
            fitted.means_, fitted.covariance_, fitted.prior_, classes=fitted.classes_
        )
        np.testing.assert_allclose(known.predict_proba(X), fitted.predict_proba(X), atol=1e-7)
        np.testing.assert_allclose(known.means_, fitted.means_, rtol=1e-12)
        np.testing.assert_allclose(known.covariance_, fitted.covariance_, rtol=1e-8)
        np.testing.assert_allclose(known.mahalanobis(X), fitted.mahalanobis(X), rtol=1e-6)
        assert known.shrinkage_ == 0.0
    mixture = dd.MDA(components=2, covariance="class").fit(X, y)
    known = dd.MDA.from_parameters(
        np.split(mixture.means_, 3),
        mixture.covariances_[::2],
        np.split(mixture.shares_, 3),
        mixture.prior_,
        classes=mixture.classes_,
    )
    assert known.covariance_structure_ == "class"
    np.testing.assert_allclose(known.predict_proba(X), mixture.predict_proba(X), atol=1e-7)


def test_lda_has_coefficients_of_the_parameters():
    model = dd.LDA.from_parameters([[0.0, 0.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]])
    np.testing.assert_allclose(model.intercept_, [-1.0])
    assert model.classes_.tolist() == [0, 1] and model.prior_.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("structure", ["shared", "class", "component"])
def test_structures_of_a_mixture(structure):
    matrix = COVARIANCES[0]
    covariances = {
        "shared": matrix,
        "class": [matrix, matrix],
        "component": [[matrix], [matrix, matrix]],
    }[structure]
    means = [MEANS[:1], MEANS[1:]]
    model = dd.MDA.from_parameters(means, covariances, [[1.0], [0.4, 0.6]])
    assert model.covariance_structure_ == structure
    assert model.components_.tolist() == [1, 2]
    assert model.log_likelihood_ is None and model.bic_ is None
    first = multivariate_normal(MEANS[0], matrix).pdf(NEW)
    second = sum(
        share * multivariate_normal(mean, matrix).pdf(NEW)
        for share, mean in zip((0.4, 0.6), MEANS[1:], strict=True)
    )
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 0], first / (first + second), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(scale):
    small = dd.LDA.from_parameters(MEANS * scale, COVARIANCES[0] * scale**2, PRIOR)
    plain = dd.LDA.from_parameters(MEANS, COVARIANCES[0], PRIOR)
    found = small.predict_proba(NEW * scale)
    np.testing.assert_allclose(found, plain.predict_proba(NEW), atol=1e-12)


# --- files, exports, names ------------------------------------------------------------------------


@every_kind
@pytest.mark.filterwarnings("ignore::discriminant.errors.NamesUncheckedWarning")
def test_model_is_saved_loaded_and_exported(kind, tmp_path):
    model = model_of(kind, features=["height", "width"])
    assert model.feature_names_in_.tolist() == ["height", "width"]
    model.save(tmp_path / "model.dd")
    loaded = dd.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    assert repr(loaded.bayes_error(n=64)) == repr(model.bayes_error(n=64))
    assert "height" in to_sql(model, table="t", dialect="duckdb")
    assert to_python(model) and to_onnx(model)


@every_kind
def test_clone_of_the_model_is_not_fitted(kind):
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        clone(model_of(kind)).predict(NEW)


def test_known_parameters_serve_a_decision():
    model = dd.Decision.of_fitted(model_of("LDA"), reject=0.2)
    assert "a" in model.decide(NEW).tolist()


# --- what needs moments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.partial_fit(NEW, np.repeat("a", 50)),
        lambda model: model.forget(NEW, np.repeat("a", 50)),
        lambda model: model.transform(NEW),
        lambda model: model.scalings_,
        lambda model: model.moments_.scatter,
        lambda model: model.moments_.within(),
    ],
    ids=["partial_fit", "forget", "transform", "scalings_", "scatter", "within"],
)
def test_what_needs_moments_is_refused_by_name(use):
    with pytest.raises(MomentsMismatchError, match="was created from known parameters"):
        use(model_of("LDA"))


def test_fit_replaces_known_parameters():
    model = model_of("LDA").set_params(prior=None)
    model.fit(NEW, np.repeat([0, 1], 25))
    assert model.classes_.tolist() == [0, 1]
    assert model.moments_.rows.tolist() == [25, 25]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((MEANS[0], COVARIANCES[0]), OptionError, r"mean=.*shape \(2,\).*\(K, d\)"),
        ((MEANS[:1], COVARIANCES[0]), LabelError, "class"),
        ((MEANS * np.nan, COVARIANCES[0]), OptionError, "mean=.*finite"),
        (("abc", COVARIANCES[0]), OptionError, "mean='str'"),
        ((MEANS, COVARIANCES), OptionError, r"covariance=.*\(3, 2, 2\).*\(2, 2\)"),
        ((MEANS, [[1.0, 0.5], [0.2, 1.0]]), OptionError, "symmetric"),
        ((MEANS, [[1.0, 1.0], [1.0, 1.0]]), OptionError, "positive definite"),
        ((MEANS, [[1.0, 0.0], [0.0, 0.0]]), OptionError, "positive definite"),
        ((MEANS, COVARIANCES[0], [0.5, 0.5]), PriorError, "2 entries for 3 classes"),
        ((MEANS, COVARIANCES[0], [0.5, 0.5, 0.5]), PriorError, "sum to 1.5"),
    ],
)
def test_invalid_parameters_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        dd.LDA.from_parameters(*arguments)


def test_singular_covariance_of_a_class_is_named():
    singular = COVARIANCES.copy()
    singular[1] = 1.0
    with pytest.raises(OptionError, match="singular matrix for class 'a'"):
        dd.QDA.from_parameters(MEANS, singular, classes=LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["a", "a", "b"]}, "classes='3 labels, 2 different'.*3 different labels"),
        ({"classes": ["a", "b"]}, "classes="),
        ({"features": ["one"]}, "features=.*2 different names"),
        ({"features": ["one", "one"]}, "features=.*2 different names"),
    ],
)
def test_invalid_names_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        dd.LDA.from_parameters(MEANS, COVARIANCES[0], **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shares": [[1.0], [0.5, 0.4], [1.0]]}, "shares=.*sum 0.9"),
        ({"shares": [[1.0], [1.0], [1.0]]}, "shares="),
        ({"shares": [[1.0]]}, "shares='1 arrays'"),
        ({"covariances": COVARIANCES[:2]}, "covariances='2 arrays'.*3 classes"),
        ({"covariances": [COVARIANCES[:1]] * 3}, r"covariances=.*\(2, 2, 2\)"),
        ({"means": [MEANS[0], MEANS[1:], MEANS[2:]]}, "means="),
    ],
)
def test_invalid_parameters_of_a_mixture_are_named(change, message):
    options = {
        "means": [MEANS[:1], MEANS[1:], MEANS[2:]],
        "covariances": COVARIANCES[0],
        "shares": [[1.0], [0.5, 0.5], [1.0]],
    }
    with pytest.raises(OptionError, match=message):
        dd.MDA.from_parameters(**options | change)


# --- Bayes error ----------------------------------------------------------------------------------


def test_bayes_error_of_two_classes_with_one_covariance_is_exact():
    for prior in ([0.5, 0.5], [0.9, 0.1], [0.001, 0.999]):
        model = dd.LDA.from_parameters([[0.0, 0.0], [3.0, 0.0]], np.diag([2.25, 1.0]), prior)
        result = model.bayes_error()
        boundary = 1.0 + np.log(prior[0] / prior[1]) / 2.0  # in units of the sd; means 0 and 2
        by_class = [norm.sf(boundary), norm.cdf(boundary - 2.0)]
        np.testing.assert_allclose(result.by_class, by_class, rtol=1e-12)
        assert float(result) == pytest.approx(np.dot(prior, by_class), rel=1e-12)
        assert result.method == "exact" and result.standard_error == 0.0
        assert float(dd.LDA.from_parameters(
            [[0.0, 0.0], [3.0, 0.0]], np.diag([2.25, 1.0])
        ).bayes_error(prior=prior)) == pytest.approx(float(result), rel=1e-12)  # fmt: skip


def test_bayes_error_of_equal_classes_is_the_smaller_prior():
    model = dd.LDA.from_parameters([[1.0], [1.0]], [[2.0]], [0.7, 0.3])
    assert float(model.bayes_error()) == pytest.approx(0.3)
    assert model.bayes_error().by_class.tolist() == [0.0, 1.0]


def test_integration_agrees_with_the_exact_error():
    """The same two classes as QDA, whose error is estimated."""
    covariances = np.array([COVARIANCES[0]] * 2)
    prior = [0.3, 0.7]
    exact = dd.LDA.from_parameters(MEANS[:2], COVARIANCES[0], prior).bayes_error()
    found = dd.QDA.from_parameters(MEANS[:2], covariances, prior).bayes_error()
    assert found.method == "quasi-Monte Carlo"
    assert 0.0 < found.standard_error < 1e-4
    assert abs(found.error - exact.error) < 4 * found.standard_error
    np.testing.assert_allclose(found.by_class, exact.by_class, atol=1e-3)
    assert found.error == pytest.approx(np.dot(prior, found.by_class), rel=1e-12)


def one_dimensional_error(densities, prior, lo=-60.0, hi=60.0):
    """1 - the integral of the largest joint density, and the errors of the classes."""
    grid = np.linspace(lo, hi, 24_001)

    def joint(x):
        return np.array([p * density(x) for p, density in zip(prior, densities, strict=True)])

    winners = np.argmax(joint(grid), axis=0)
    breaks = 0.5 * (grid[:-1] + grid[1:])[np.diff(winners) != 0]
    edges = np.concatenate([[lo], breaks, [hi]])
    by_class = np.zeros(len(prior))
    for a, b in pairwise(edges):
        winner = int(np.argmax(joint(0.5 * (a + b))))
        for k in range(len(prior)):
            if k != winner:
                by_class[k] += quad(densities[k], a, b, limit=400, epsabs=1e-12)[0]
    return float(np.dot(prior, by_class)), by_class


def test_bayes_error_of_unequal_variances_agrees_with_numerical_integration():
    means, sd, prior = [0.0, 1.0, 4.0], [1.0, 3.0, 0.7], [0.3, 0.5, 0.2]
    exact, by_class = one_dimensional_error(
        [norm(m, s).pdf for m, s in zip(means, sd, strict=True)], prior
    )
    model = dd.QDA.from_parameters(
        np.array(means)[:, None], np.square(sd)[:, None, None], prior, classes=[1, 2, 3]
    )
    found = model.bayes_error()
    assert found.standard_error < 1e-4
    assert abs(found.error - exact) < 4 * found.standard_error + 1e-5
    np.testing.assert_allclose(found.by_class, by_class, atol=1e-3)
    assert found.classes.tolist() == [1, 2, 3]


def test_bayes_error_of_mixtures_agrees_with_numerical_integration():
    near, far = norm(-3, 1).pdf, norm(3, 2).pdf

    def outer(x):
        return 0.4 * near(x) + 0.6 * far(x)

    exact, by_class = one_dimensional_error([norm(0, 1).pdf, outer], [0.5, 0.5])
    model = dd.MDA.from_parameters(
        [[[0.0]], [[-3.0], [3.0]]], [[[[1.0]]], [[[1.0]], [[4.0]]]], [[1.0], [0.4, 0.6]]
    )
    found = model.bayes_error()
    assert abs(found.error - exact) < 4 * found.standard_error + 1e-5
    np.testing.assert_allclose(found.by_class, by_class, atol=1e-3)


def test_bayes_error_of_student_densities_agrees_with_numerical_integration():
    X = np.array([[0.0], [1.0], [3.0], [2.0], [5.0], [4.0], [8.0]])
    model = dd.QDA(predictive="student").fit(X, list("aaabbbb"))
    t = []
    for own in (X[:3, 0], X[3:, 0]):
        n = len(own)
        shape = (1 + 1 / n) * ((own - own.mean()) ** 2).sum() / (n - 1)
        t.append(multivariate_t(own.mean(), shape, df=n - 1).pdf)
    exact, _ = one_dimensional_error(t, model.prior_, -3000.0, 3000.0)
    found = model.bayes_error()
    assert abs(found.error - exact) < 4 * found.standard_error + 2e-4


def test_standard_error_covers_the_error():
    """Over seeds, the deviation divided by the standard error has about unit variance."""
    covariances = np.array([COVARIANCES[0]] * 2)
    exact = dd.LDA.from_parameters(MEANS[:2], COVARIANCES[0]).bayes_error().error
    model = dd.QDA.from_parameters(MEANS[:2], covariances)
    results = [model.bayes_error(n=512, seed=seed) for seed in range(40)]
    z = [(result.error - exact) / result.standard_error for result in results]
    assert 0.5 < np.std(z) < 1.7


def test_bayes_error_of_a_fitted_model_is_that_of_its_parameters():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(90, 3)), np.repeat([0, 1, 2], 30)
    X[y == 1, 0] += 2.0
    for kind in (dd.LDA, dd.QDA):
        fitted = kind().fit(X, y)
        known = kind.from_parameters(fitted.means_, fitted.covariance_, fitted.prior_)
        assert fitted.bayes_error(n=256).error == pytest.approx(
            known.bayes_error(n=256).error, rel=1e-9
        )
    again = dd.QDA().fit(X, y)
    assert again.bayes_error(n=256, seed=1).error == again.bayes_error(n=256, seed=1).error
    mixture = dd.MDA(components=1, covariance="component").fit(X, y)
    plain = dd.QDA(denominator="ml").fit(X, y).bayes_error()
    gap = mixture.bayes_error().error - plain.error
    assert abs(gap) < 5 * plain.standard_error + 1e-4


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_number_of_points_is_checked(n):
    with pytest.raises(OptionError, match="n="):
        model_of("QDA").bayes_error(n=n)


@pytest.mark.parametrize("kind", [dd.RobustLDA, dd.RobustQDA])
def test_robust_models_have_no_known_parameters(kind):
    assert not hasattr(kind, "from_parameters")
    with pytest.raises(AttributeError, match=r"use (LDA|QDA)\.from_parameters"):
        kind.from_parameters(MEANS, COVARIANCES[0])
