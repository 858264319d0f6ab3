"""Rows beyond 1e154 spreads, up to 1.7e308: labels and log posteriors by exact arithmetic.

A rule is a few floats; the exact scores of a row by these floats are worked out with fractions. A
log posterior below -1.8e308 is -inf, as that is how float64 rounds it.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from discriminant import (
    GLM,
    LDA,
    QDA,
    RDA,
    SVM,
    Basis,
    Decision,
    EasyEnsemble,
    Encoded,
    Fisher,
    Fusion,
    LaplaceNB,
    LeastSquares,
    LinearRegression,
    Logistic,
    LogLinear,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OutputCodes,
    Perceptron,
    Resampled,
    Reweighted,
)
from discriminant.errors import BasisError, InfiniteValueError
from discriminant.models.laplace_naive_bayes import LaplaceRule
from discriminant.models.rules import LinearRule, QuadraticRule

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")

RANDOM = np.random.default_rng(4)
Y = np.repeat([1, 2, 3], 40)
X = RANDOM.normal(size=(120, 3)) * np.array([1.0, 3.0, 0.7])[Y - 1, None]
X += 2.0 * (Y == 3)[:, None]
FAR = np.array(
    [
        [1e150, 0.0, 0.0],
        [1e154, 0.0, -1e153],
        [1e160, 0.0, 0.0],
        [0.0, -1e200, 1e190],
        [3e303, 1e305, -7e304],
        [1.7e308, 0.0, 0.0],
        [1.7e308, -1.7e308, 1.7e308],
        [-1.7e308, -1.7e308, -1.7e308],
    ]
)


def exact_scores(rule, row):
    """Scores as fractions; logarithms are as their floats."""
    u = [
        (Fraction(x) - Fraction(o)) / Fraction(s)
        for x, o, s in zip(row, rule.anchor.origin, rule.anchor.unit, strict=True)
    ]
    if isinstance(rule, LinearRule):
        return [_dot(w, u) + Fraction(b) for w, b in zip(rule.coef, rule.intercept, strict=True)]
    if isinstance(rule, LaplaceRule):
        height = np.log(2.0 * rule.scale).sum(axis=1)
        return [
            Fraction(p) - Fraction(h) - sum(abs(a - Fraction(m)) / Fraction(b)
                                            for a, m, b in zip(u, median, scale, strict=True))
            for p, h, median, scale in zip(
                rule.log_prior, height, rule.median, rule.scale, strict=True)
        ]  # fmt: skip
    assert isinstance(rule, QuadraticRule)
    each = zip(rule.constant, rule.mean, rule.metrics, strict=True)
    return [
        Fraction(c) - _squared([a - Fraction(m) for a, m in zip(u, mean, strict=True)], metric) / 2
        for c, mean, metric in each
    ]


def _dot(weights, values):
    return sum(Fraction(w) * v for w, v in zip(weights, values, strict=True))


def _squared(apart, metric):
    if not metric.rest:
        return sum(_dot(column, apart) ** 2 for column in metric.basis.T)
    assert not metric.basis.size
    return sum((Fraction(r) * a) ** 2 for r, a in zip(metric.root, apart, strict=True))


def rounded(value):
    try:
        return float(value)
    except OverflowError:
        return -np.inf if value < 0 else np.inf


EXACT = [
    LDA(),
    LDA(shrinkage=1.0),
    QDA(),
    QDA(shrinkage=0.5),
    RDA(),
    RDA(pooling=0.3, shrinkage=0.5),
    NearestMean(),
    Fisher(),
    LaplaceNB(),
    Logistic(ridge=0.1),
]


def quietly(work):
    """What NumPy complains of is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return work()


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e100])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", EXACT, ids=repr)
def test_labels_and_log_posteriors_of_far_rows_are_those_of_exact_arithmetic(model, classes, scale):
    some = classes >= Y
    model = clone(model).fit(X[some] * scale, Y[some])
    rule, far = model.rule_, FAR[:4] if scale > 1 else FAR
    logs = quietly(lambda: model.predict_log_proba(far))
    labels = quietly(lambda: model.predict(far))
    shares = quietly(lambda: model.predict_proba(far))
    decided = quietly(lambda: model.decision_function(far))
    for i, row in enumerate(far):
        scores = exact_scores(rule, row)
        scores = [Fraction(0), *scores] if len(scores) == 1 else scores
        best = max(range(classes), key=lambda k: scores[k])
        wanted = [rounded(score - scores[best]) for score in scores]
        assert labels[i] == model.classes_[best]
        np.testing.assert_allclose(logs[i], wanted, rtol=1e-12, atol=1e-12)
        assert shares[i].tolist() == np.eye(classes)[best].tolist()
        if classes == 2:
            np.testing.assert_allclose(decided[i], rounded(scores[1] - scores[0]), rtol=1e-12)


@pytest.mark.parametrize("model", [LDA(), QDA(), RDA(), NearestMean()], ids=repr)
def test_distances_and_densities_of_far_rows_are_infinite_and_never_nan(model):
    model = clone(model).fit(X, Y)
    distances = quietly(lambda: model.mahalanobis(FAR))
    assert np.isfinite(distances[0]).all() and (distances[2:] == np.inf).all()
    assert (quietly(lambda: model.log_density(FAR))[2:] == -np.inf).all()
    assert (quietly(lambda: model.log_density(FAR, by_class=True))[2:] == -np.inf).all()


def test_distances_just_within_float64_are_finite():
    model = QDA().fit(X, Y)
    found = model.mahalanobis(np.array([[1e153, 0.0, 0.0]]))
    wanted = [(1e153 * metric.basis[0]) ** 2 for metric in model.rule_.metrics]
    np.testing.assert_allclose(found[0], np.sum(wanted, axis=1), rtol=1e-12)


MODELS = [
    *EXACT,
    LeastSquares(),
    LeastSquares(coding="sign"),
    LinearRegression(),
    GLM(),
    GLM("poisson"),
    LogLinear(),
    Perceptron(),
    SVM(),
    Basis(degree=1, centres=2),
    Decision(QDA(), reject=0.1, outlier=0.05),
    Fusion([("a", LDA(), [0]), ("b", QDA(), [1, 2])]),
    OneVsRest(LDA()),
    OneVsOne(QDA()),
    OneVsOne(LDA()),
    OutputCodes(LDA()),
    OutputCodes(QDA(), decoding="euclidean"),
    Reweighted(QDA()),
    Resampled(LDA()),
    EasyEnsemble(LDA(), 3),
    EasyEnsemble(QDA(), 3),
    EasyEnsemble(LaplaceNB(), 3),
    EasyEnsemble(Logistic(ridge=0.1), 3),
    EasyEnsemble(Perceptron(), 3),
    Encoded(QDA()),
]
TWO = [Logistic("probit"), Logistic("cloglog"), Logistic("cauchit"), LeastSquares(coding="fisher")]
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "mahalanobis",
    "log_density",
    "typicality",
    "transform",
    "decide",
    "expected_cost",
)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [*MODELS, *TWO], ids=repr)
def test_no_answer_about_a_far_row_is_nan(model, classes):
    if classes == 3 and any(model is one for one in TWO):
        pytest.skip("two classes")
    some = classes >= Y
    model = clone(model).fit(X[some], Y[some])
    for name in METHODS:
        if hasattr(model, name):
            found = np.asarray(quietly(lambda name=name: getattr(model, name)(FAR)))
            assert found.dtype.kind != "f" or not np.isnan(found).any(), name
            if name == "predict_proba":
                np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("model", [one for one in MODELS if is_classifier(one)], ids=repr)
def test_a_far_row_is_labelled_as_a_nearer_one_in_its_direction(model):
    """At 1e140 nothing overflows, and constants no longer matter."""
    model = clone(model).fit(X, Y)
    near = FAR[2:] / np.abs(FAR[2:]).max(axis=1, keepdims=True) * 1e140
    assert np.array_equal(model.predict(FAR[2:]), model.predict(near))


def test_infinite_scores_of_several_classifiers_are_refused_by_row():
    model = OneVsOne(Logistic(ridge=0.1)).fit(X, Y)
    with pytest.raises(InfiniteValueError, match=r"Row 2 .*Logistic overflows"):
        model.predict(np.vstack([X[:2], FAR[-1:]]))


def test_products_that_overflow_are_refused_by_row():
    rows = np.vstack([X[:2], FAR[-1:]])
    with pytest.raises(InfiniteValueError, match=r"Row 2 .*LeastSquares overflows"):
        LeastSquares(degree=2).fit(X, Y).predict_proba(rows)
    with pytest.raises(BasisError, match="Row 2"):
        Basis().fit(X).transform(rows)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("model", [LDA(), QDA(), LaplaceNB(), EasyEnsemble(LDA(), 3)], ids=repr)
def test_a_cell_that_is_no_number_is_still_refused_beside_far_rows(model, bad):
    rows = np.vstack([FAR, X[:1]])
    rows[-1, 1] = bad
    with pytest.raises(ValueError, match=rf"Row {len(FAR)} .*column 'x1'"):
        clone(model).fit(X, Y).predict_proba(rows)
