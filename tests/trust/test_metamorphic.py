"""What must not change a label: order, names and units (trust.md, section 8 and C2).

200 random problems, 300 rows to label in each, for each relation. No label may change. A tie would
be no fault, but none is excused: rows come from a continuous distribution, so that two classes
tie to the last digit in one of 120,000 rows about never.

Logistic regression has problems of its own, with labels drawn by chance: those of the Gaussian
rules are mostly separated, and then there is no answer that could stay the same.
"""

from functools import cache

import numpy as np
import pytest
from scipy.special import softmax

from discriminant import LDA, QDA, Logistic

PROBLEMS = 200

# A map of condition 1e4 makes covariances of condition 1e8 and more, which is rightly told.
pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.CollinearWarning")


def problem(seed):
    """Rows to fit, their labels, rows to label: 2 to 5 classes in 2 to 8 features."""
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    centres = rng.standard_normal((K, d)) * 1.5
    spread = rng.standard_normal((K, d, d)) / np.sqrt(d) + np.eye(d)
    y = rng.permutation(np.arange(40 * K) % K)
    new = rng.integers(0, K, size=300)

    def rows(codes):
        noise = rng.standard_normal((len(codes), d))
        return np.einsum("ni,nij->nj", noise, spread[codes]) + centres[codes]

    return rows(y), y, rows(new)


def rows_in_another_order(X, y, new, rng):
    order = rng.permutation(len(y))
    return X[order], y[order], new, None


def columns_in_another_order(X, y, new, rng):
    order = rng.permutation(X.shape[1])
    return X[:, order], y, new[:, order], None


def classes_by_other_names(X, y, new, rng):
    names = rng.permutation(y.max() + 1)
    return X, names[y], new, names


def affine_map(condition, shift):
    def relation(X, y, new, rng):
        d = X.shape[1]
        left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
        A = left * np.geomspace(1.0, 1.0 / condition, d) @ right
        b = shift * rng.standard_normal(d)
        return X @ A + b, y, new @ A + b, None

    return relation


def other_units(X, y, new, rng):
    unit = 10.0 ** rng.uniform(-6, 6, size=X.shape[1])
    return X * unit, y, new * unit, None


def every_row_twice(X, y, new, rng):
    return np.repeat(X, 2, axis=0), np.repeat(y, 2), new, None


RELATIONS = {
    "rows in another order": rows_in_another_order,
    "columns in another order": columns_in_another_order,
    "classes by other names": classes_by_other_names,
    "affine map, condition 1e2, shift 1e2": affine_map(1e2, 1e2),
    "affine map, condition 1e4, shift 1e6": affine_map(1e4, 1e6),
    "units 1e-6 to 1e6": other_units,
    "every row twice": every_row_twice,
}


def twice_as_many(model, relation):
    """Every row twice leaves a covariance alone only if it is divided by the number of rows."""
    return model(denominator="ml") if relation == "every row twice" else model()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("model", [LDA, QDA])
def test_no_label_changes(model, relation):
    changed = 0
    for seed in range(PROBLEMS):
        X, y, new = problem(seed)
        before = twice_as_many(model, relation).fit(X, y).predict(new)
        rng = np.random.default_rng(seed + 10_000)
        *rows, after, names = RELATIONS[relation](X, y, new, rng)
        found = twice_as_many(model, relation).fit(*rows).predict(after)
        changed += int((found != (before if names is None else names[before])).sum())
    assert changed == 0


# --- logistic regression --------------------------------------------------------------------------


def drawn(seed):
    """Rows to fit, labels drawn by softmax scores, rows to label; multiples of 2**-20."""
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    mixing = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.geomspace(1.0, 0.1, d)
    slope = rng.standard_normal((d, K)) / np.sqrt(d)
    rows = np.round(rng.standard_normal((80 * K + 300, d)) @ mixing * 2**20) / 2**20
    X, new = rows[:-300], rows[-300:]
    chance = softmax(2 * X @ slope, axis=1).cumsum(axis=1)[:, :-1]
    return X, (rng.random((len(X), 1)) > chance).sum(axis=1), new


def far_away(X, y, new, rng):
    """Exact: multiples of 2**-20 have room for 2**30, which is 1e9."""
    shift = 2.0**30 * rng.choice([-1, 1], size=X.shape[1])
    return X + shift, y, new + shift, None


# How far probabilities may be apart. The maps round the rows themselves, by 1e-14 and by 1e-10, and
# that is 1e-12 and 1e-6 of the narrowest direction.
WITHIN = {
    **dict.fromkeys([*RELATIONS, "far away"], 1e-12),
    "affine map, condition 1e2, shift 1e2": 1e-10,
    "affine map, condition 1e4, shift 1e6": 1e-5,
}


@cache
def fitted(seed):
    X, y, _ = drawn(seed)
    return Logistic().fit(X, y)


@pytest.mark.parametrize("relation", WITHIN)
def test_no_label_of_logistic_regression_changes_and_no_probability(relation):
    violations = []
    for seed in range(PROBLEMS):
        X, y, new = drawn(seed)
        before = fitted(seed)
        rng = np.random.default_rng(seed + 10_000)
        change = {**RELATIONS, "far away": far_away}[relation]
        *rows, there, names = change(X, y, new, rng)
        after = Logistic().fit(*rows)
        names = before.classes_ if names is None else names
        found = after.predict_proba(there)[:, names]
        apart = np.abs(found - before.predict_proba(new)).max()
        labels = after.predict(there) == names[before.predict(new)]
        if not (labels.all() and apart <= WITHIN[relation] and after.converged_):
            violations.append((seed, int((~labels).sum()), apart))
    assert violations == []


def test_whole_weights_are_repeated_rows_to_logistic_regression():
    violations = []
    for seed in range(PROBLEMS):
        X, y, new = drawn(seed)
        times = np.random.default_rng(seed + 10_000).integers(0, 4, size=len(y))
        repeated = Logistic().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        weighted = Logistic().fit(X, y, sample_weight=times)
        apart = np.abs(weighted.predict_proba(new) - repeated.predict_proba(new)).max()
        if (weighted.predict(new) != repeated.predict(new)).any() or apart > 1e-12:
            violations.append((seed, apart))
    assert violations == []
