"""Logistic regression: separation is never missed nor imagined (trust.md, L2), and room.

The kind of a set is known from how it is made, and so are the columns without a finite estimate:

    none      labels by a border, and d + 1 rows that span all, each with every label
    dummy     every row with every label, and a column that only rows of one class have: that one
    tie       labels by a border, and a row on it with both labels: all columns
    complete  labels by a border: all columns
"""

import sys
import warnings

import numpy as np
import pytest

from discriminant import Logistic
from discriminant.errors import SeparationWarning
from tests.trust.test_many_rows import MB, measured
from tests.unit.models.linear.test_separation import WANTED, made

SETS = {2: 190, 3: 40, 4: 15, 5: 5}  # of each kind, by number of classes: 1000 in all
KINDS = ("none", "dummy", "tie", "complete")


def rows_of(kind, classes, seed):
    if kind != "none":
        return made(kind, classes, seed)
    X, y = made("complete", classes, seed)
    d = X.shape[1]
    every = np.repeat(np.random.default_rng(seed).standard_normal((d + 1, d)), classes, axis=0)
    return np.vstack([X, every]), np.append(y, np.tile(np.arange(classes), d + 1))


def fitted(X, y):
    """The model, and what was said of separation."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = Logistic().fit(X, y)
    return model, [str(w.message) for w in found if w.category is SeparationWarning]


def columns_of(kind, d):
    first = {"none": d, "dummy": d - 1}.get(kind, 0)
    return tuple(f"x{j}" for j in range(first, d))


def fault(kind, X, y):
    """What is wrong with what is said of a set."""
    model, told = fitted(X, y)
    columns = columns_of(kind, X.shape[1])
    found = model.separation_found_.columns if model.separation_found_ else ()
    if model.separation_ != WANTED[kind]:
        return f"{model.separation_} for {WANTED[kind]}"
    if model.converged_ != (kind == "none"):
        return f"converged_ is {model.converged_}"
    if found != columns:
        return f"columns {found} for {columns}"
    if len(told) != (kind != "none") or any(f"'{name}'" not in told[0] for name in columns):
        return f"said {told}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("classes", SETS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_thousand_sets_are_told_by_kind_and_columns(kind, classes):
    faults = {}
    for seed in range(SETS[classes]):
        wrong = fault(kind, *rows_of(kind, classes, seed))
        if wrong:
            faults[seed] = wrong
    assert faults == {}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_sets_by_other_units_and_far_away_are_told_by_kind_and_columns(kind, classes):
    faults = {}
    for seed in range(1000, 1010):
        X, y = rows_of(kind, classes, seed)
        X = np.round(X * 2**20) / 2**20  # so that moving it takes no digit
        wrong = fault(kind, (X + 2.0**20) * 10.0 ** (np.arange(X.shape[1]) % 7 - 3), y)
        if wrong:
            faults[seed] = wrong
    assert faults == {}


def test_the_warning_names_the_classes_it_pulls_apart_and_no_others():
    X, y = made("dummy", 4, 0)  # rows of class 1 alone have the column
    _, told = fitted(X, np.array(["ash", "beech", "cedar", "date"])[y])
    pairs = "'ash' and 'beech', 'beech' and 'cedar', 'beech' and 'date'"
    assert told[0].startswith(f"Class(es) {pairs} are quasi-completely separated")


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "kind", "ridge"), [("C", "float64", "0"), ("F", "float32", "0.01")]
)
def test_400_mb_take_at_most_200_mb_beside_themselves(order, kind, ridge):
    assert measured("logistic", order, kind, ridge)["grown"] <= 200 * MB
