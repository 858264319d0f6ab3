"""The same as R's DiscriMiner: discriminant functions, powers of features, canonical directions."""

import numpy as np
import pytest

from discriminant import LDA, QDA, box_m, manova, moments
from tests.parity.golden import NAMES, answers, rows_of

GOLDEN = answers("discriminer")
PRIORS = {3: [0.1, 0.2, 0.7], 2: [0.3, 0.7]}


def confusion_of(model, features, codes):
    """Rows by true class, columns by class said."""
    K = codes.max() + 1
    return np.bincount(codes * K + model.predict(features), minlength=K * K).reshape(K, K)


@pytest.mark.parametrize("way", ["lin", "lin_prior", "geo"])
@pytest.mark.parametrize("name", NAMES)
def test_discriminant_functions_are_those_of_linda_and_geoda(name, way):
    features, codes = rows_of(name)
    K = codes.max() + 1
    prior = {"lin": None, "lin_prior": PRIORS[K], "geo": np.full(K, 1 / K)}[way]
    golden, model = GOLDEN[name][way], LDA(prior=prior).fit(features, codes)
    theirs = np.array(golden["scores"])  # up to what all classes share
    ours = model.predict_log_proba(features[GOLDEN[name]["rows"]])
    apart = [scores - scores.mean(axis=1, keepdims=True) for scores in (ours, theirs)]
    np.testing.assert_allclose(*apart, rtol=1e-10, atol=1e-10)
    assert confusion_of(model, features, codes).tolist() == golden["confusion"]


@pytest.mark.parametrize("name", NAMES)
def test_quadratic_classes_and_log_determinants_are_those_of_quada(name):
    features, codes = rows_of(name)
    golden = GOLDEN[name]["qua"]
    logdet = box_m(moments(features, codes)).logdet
    np.testing.assert_allclose(logdet, golden["ldet"], rtol=1e-10)
    assert confusion_of(QDA().fit(features, codes), features, codes).tolist() == golden["confusion"]


@pytest.mark.parametrize("name", NAMES)
def test_correlation_ratio_wilks_f_and_p_of_each_feature_are_those_of_discpower(name):
    alone = manova(moments(*rows_of(name))).univariate
    ours = np.column_stack([alone.r2, alone.wilks, alone.f])
    np.testing.assert_allclose(ours, GOLDEN[name]["power"], rtol=1e-10)
    np.testing.assert_allclose(alone.p, GOLDEN[name]["p"], rtol=1e-9)


@pytest.mark.parametrize("kind", ["within", "between", "total"])
@pytest.mark.parametrize("name", NAMES)
def test_sums_of_squares_are_those_of_discriminer(name, kind):
    ours = getattr(moments(*rows_of(name)), kind)()
    np.testing.assert_allclose(ours, GOLDEN[name][kind], rtol=1e-9, atol=1e-9 * ours.max())


def test_canonical_directions_are_those_of_desda():
    features, codes = rows_of("iris")
    n, K = len(codes), codes.max() + 1
    golden = {key: np.array(value) for key, value in GOLDEN["iris"]["described"].items()}
    found = manova(moments(features, codes)).canonical
    sign = np.sign(golden["discor"][0] * found.structure_total[0])
    values = found.eigenvalues * (n - K) / n  # theirs are of B over n and W over n - K
    shares = np.column_stack([values, 100 * found.share])
    np.testing.assert_allclose(shares, golden["values"][:, :2], rtol=1e-10)
    raw = np.vstack([found.constant, found.raw]) * sign
    np.testing.assert_allclose(raw, golden["discrivar"], rtol=1e-10)
    np.testing.assert_allclose(found.structure_total * sign, golden["discor"], atol=1e-10)
