"""Linear rules for values instead of offsets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discriminant import LDA
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor


def rule_at(origin, seed=0):
    rng = np.random.default_rng(seed)
    d = len(origin)
    anchor = Anchor(np.asarray(origin, dtype=np.float64), np.ones(d))
    return LinearRule(np.array([0, 1]), anchor, rng.standard_normal((1, d)), np.array([0.25]))


def exact_value(rule, row):
    """Return the predictor of a row in exact arithmetic."""
    terms = zip(row.tolist(), rule.anchor.origin.tolist(), rule.coef[0].tolist(), strict=True)
    value = sum((Fraction(x) - Fraction(o)) * Fraction(w) for x, o, w in terms)
    return value + Fraction(rule.intercept[0].item())


def test_rule_for_values_scores_as_in_exact_arithmetic():
    rule = rule_at(np.random.default_rng(1).standard_normal(20))
    values = rule.for_values()
    assert values.anchor.idle
    rows = np.random.default_rng(2).standard_normal((200, 20))
    errors = [
        abs(Fraction(score) - exact_value(rule, row))
        for score, row in zip(values.scores(rows)[:, 0].tolist(), rows, strict=True)
    ]
    assert max(errors) <= 2e-13


@pytest.mark.parametrize("origin", [[1e8, 0.0], [1e5, 1e5]])
def test_rule_far_from_zero_scores_offsets(origin):
    rule = rule_at(origin)
    assert rule.for_values() is rule


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e7])
def test_large_and_small_blocks_have_the_same_predictions(shift):
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 1500)
    X = rng.standard_normal((3000, 6)) + 0.5 * y[:, None] + shift
    model = LDA().fit(X, y)
    pieces = [X[lo : lo + 100] for lo in range(0, 3000, 100)]
    labels = np.concatenate([model.predict(piece) for piece in pieces])
    posteriors = np.concatenate([model.predict_proba(piece) for piece in pieces])
    assert (model.predict(X) == labels).all()
    np.testing.assert_allclose(model.predict_proba(X), posteriors, rtol=1e-12)
