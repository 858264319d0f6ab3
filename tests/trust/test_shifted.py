"""A large common mean costs no digit of a score (trust.md, 1.3 and N4).

Standard deviation 1, four features, three classes, 1500 rows to fit and 2000 to score. The truth is
worked out on the same float64 rows: means and scatters in fractions, the rest with 200 bits. A
score matters up to what all classes have in common, so the error is that of the log odds
score_k - score_0, absolute, the largest over rows and classes.
"""

from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from discriminant import LDA, QDA

LIMITS = [(1e8, 1e-12), (1e12, 1e-10)]
CENTRES = np.array([[0.0, 0.0, 0.0, 0.0], [1.5, 0.5, 0.0, -1.0], [0.0, 1.5, -1.0, 1.0]])


@pytest.mark.parametrize(("mean", "limit"), LIMITS)
@pytest.mark.parametrize("model", [LDA, QDA])
def test_log_odds_are_those_of_exact_arithmetic(model, mean, limit):
    X, y, new = shifted(mean)
    found = model().fit(X, y).decision_function(new)
    wrong = np.abs((found - found[:, :1]) - exact_log_odds(mean, quadratic=model is QDA))
    assert wrong.max() <= limit


@pytest.mark.parametrize("mean", [mean for mean, _ in LIMITS])
@pytest.mark.parametrize("model", [LDA, QDA])
def test_no_label_flips(model, mean):
    X, y, new = shifted(mean)
    best = exact_log_odds(mean, quadratic=model is QDA).argmax(axis=1)
    assert (model().fit(X, y).predict(new) != best).sum() == 0


def shifted(mean):
    rng = np.random.default_rng(4)
    mix = np.linalg.qr(rng.standard_normal((4, 4)))[0] * [1.0, 0.8, 1.2, 1.0]

    def draw(count):
        y = np.arange(count) % 3
        return rng.standard_normal((count, 4)) @ mix + CENTRES[y] + mean, y

    X, y = draw(1500)
    return X, y, draw(2000)[0]


@cache
def exact_log_odds(mean, *, quadratic):
    """(n, 3) log odds against class 0, rounded once at the end; priors are 1/3 each."""
    X, y, new = shifted(mean)
    with mpmath.workprec(200):
        means, scatters = zip(*(exact_moments(X[y == k]) for k in range(3)), strict=True)
        if quadratic:
            degrees = int((y == 0).sum()) - 1
            forms = [real(scatter / degrees) for scatter in scatters]
        else:
            forms = [real(sum(scatters) / (len(y) - 3))] * 3
        inverses = [form**-1 for form in forms]
        logdets = [mpmath.log(mpmath.det(form)) for form in forms]
        centres = [list(real([mean])) for mean in means]
        return np.array([log_odds(row, centres, inverses, logdets) for row in new.tolist()])


def exact_moments(rows):
    """Mean and scatter as arrays of fractions."""
    table = np.array([[Fraction(value) for value in row] for row in rows.tolist()])
    mean = table.sum(axis=0) / len(table)
    return mean, (table - mean).T @ (table - mean)


def real(cells):
    return mpmath.matrix([[mpmath.mpf(v.numerator) / v.denominator for v in row] for row in cells])


def log_odds(row, centres, inverses, logdets):
    scores = []
    for centre, inverse, logdet in zip(centres, inverses, logdets, strict=True):
        u = [mpmath.mpf(x) - m for x, m in zip(row, centre, strict=True)]
        distance = sum(u[i] * inverse[i, j] * u[j] for i in range(4) for j in range(4))
        scores.append(-(distance + logdet) / 2)
    return [float(score - scores[0]) for score in scores]
