"""Separation: sets whose kind is known from how they are made, and a plain linear programme."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.special import expit

from discriminant.engines.dispatch import fold, read_moments
from discriminant.errors import MissingValueError, SeparationWarning
from discriminant.models.linear.separation import detect_separation
from discriminant.moments.anchor import Anchor
from discriminant.moments.margins_and_mistakes import MarginReading
from discriminant.table.blocks import Block
from discriminant.table.memory import as_table

KINDS = ("none", "dummy", "tie", "complete")
WANTED = {"none": "none", "dummy": "quasi", "tie": "quasi", "complete": "complete"}


some_seeds = pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(3), id="3 seeds"),
        pytest.param(range(3, 12), id="others", marks=pytest.mark.slow),
    ],
)


def told(X, y, *, weight=None, start=None, keep=None, intercept=True):
    table = as_table(X, y, weight=weight)
    moments = read_moments(table, detail="diagonal")
    moments = moments if intercept else moments.at(Anchor.zero(table.width))
    centre = moments.centre if intercept else 0.0
    variance = moments.scatter.sum(axis=0) + moments.weight @ (moments.mean - centre) ** 2
    return detect_separation(
        lambda reading: fold(table, reading),
        anchor=moments.anchor,
        features=table.schema.features,
        labels=table.schema.labels,
        spread=np.sqrt(variance / moments.weight.sum()),
        intercept=intercept,
        start=start,
        keep=keep,
    )


def made(kind, classes, seed):
    """Rows of a kind that is known, in 2 to 5 columns."""
    rng = np.random.default_rng([seed, classes, KINDS.index(kind)])
    n, d = int(rng.integers(12, 70)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d))
    if kind in ("none", "dummy"):  # every row with every label: all margins of the cone are zero
        X, y = np.repeat(X, classes, axis=0), np.tile(np.arange(classes), n)
    if kind == "dummy":  # a column that only rows of one class have
        few = int(rng.integers(1, 6))
        X = np.vstack([X, rng.standard_normal((few, d))])
        y = np.append(y, np.full(few, 1))
        X = np.column_stack([X, np.arange(len(X)) >= len(X) - few])
    if kind in ("tie", "complete"):
        slope, level = rng.standard_normal((d, classes)), rng.standard_normal(classes)
        if kind == "tie":  # a row between two classes, with both labels
            first, second = np.argsort(X[0] @ slope + level)[[-1, -2]]
            level[second] += (X[0] @ slope + level)[first] - (X[0] @ slope + level)[second]
        scores = X @ slope + level
        best = np.sort(scores, axis=1)
        clear = best[:, -1] - best[:, -2] > 0.05
        X, y = np.vstack([X[clear], X[[0]]]), np.append(scores.argmax(axis=1)[clear], -1)
        if kind == "tie":
            X, y = np.vstack([X, X[[-1]]]), np.append(y[:-1], [first, second])
        else:
            X, y = X[:-1], y[:-1]
    return (X, y) if len(np.unique(y)) > 1 else made(kind, classes, seed + 1000)


def margins_of(X, y, intercept):
    """(m, q) what every margin is made of, standardised, written out row by row; and its pair."""
    centre = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    spread = np.sqrt(((X - centre) ** 2).mean(axis=0))
    ones = np.full(len(X), float(intercept))
    Z = np.column_stack([(X - centre) / np.where(spread > 0, spread, 1.0), ones])
    labels = np.unique(y)
    rows = []
    for z, own in zip(Z, np.searchsorted(labels, y), strict=True):
        for other in range(len(labels)):
            if other != own:
                place = np.zeros((len(labels), Z.shape[1]))
                place[own], place[other] = z, -z
                rows.append(place[1:].ravel())
    return np.array(rows)


def by_all_rows(X, y, *, intercept=True):
    """The kind, by two programmes over all rows (Konis 2007), and the columns that can move."""
    A = margins_of(X, y, intercept)
    q, box = A.shape[1], {"method": "highs"}
    most = linprog(-A.sum(0), A_ub=-A, b_ub=np.zeros(len(A)), bounds=[(-1, 1)] * q, **box)
    if -most.fun < 1e-6:
        return "none", ()
    widest = linprog(
        np.append(np.zeros(q), -1.0),
        A_ub=np.column_stack([-A, np.ones(len(A))]),
        b_ub=np.zeros(len(A)),
        bounds=[(-1, 1)] * q + [(0, 1)],
        **box,
    )
    reach = [
        max(
            -linprog(s * e, A_ub=-A, b_ub=np.zeros(len(A)), bounds=[(-1, 1)] * q, **box).fun
            for s in (1, -1)
        )
        for e in np.eye(q)
    ]
    moving = np.reshape(reach, (-1, X.shape[1] + 1))[:, :-1].max(axis=0) > 1e-6
    columns = tuple(f"x{j}" for j in np.flatnonzero(moving))
    return ("complete" if -widest.fun > 1e-6 else "quasi"), columns


# --- the kind ------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(12), id="12 seeds"),
        pytest.param(range(12, 50), id="others", marks=pytest.mark.slow),
    ],
)
def test_sets_are_told_to_be_what_they_were_made(kind, classes, seeds):
    found = [told(*made(kind, classes, seed)).kind for seed in seeds]
    assert found == [WANTED[kind]] * len(seeds)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
@some_seeds
def test_kind_and_columns_are_those_of_a_programme_over_all_rows(kind, classes, intercept, seeds):
    for seed in seeds:
        X, y = made(kind, classes, seed)
        found = told(X, y, keep=2, intercept=intercept)  # so few that rows must be added
        assert (found.kind, found.columns) == by_all_rows(X, y, intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_random_labels_are_told_as_by_a_programme_over_all_rows(seed, intercept):
    rng = np.random.default_rng(seed)
    n, d, classes = int(rng.integers(8, 40)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
    X = np.round(rng.standard_normal((n, d)))  # on a grid: ties and equal rows
    y = np.append(np.arange(classes), rng.integers(0, classes, n - classes))
    found = told(X, y, keep=2, intercept=intercept)
    assert (found.kind, found.columns) == by_all_rows(X, y, intercept=intercept)


@pytest.mark.parametrize("kind", KINDS)
@some_seeds
def test_a_column_of_ones_is_an_intercept_where_there_is_none(kind, seeds):
    for seed in seeds:
        X, y = made(kind, 2 + seed % 3, seed)
        with_ones = np.column_stack([X, np.ones(len(X))])
        assert told(with_ones, y, intercept=False).kind == told(X, y).kind


def test_rows_that_are_zero_cannot_be_told_apart_without_an_intercept():
    assert told(np.zeros((4, 2)), [0, 0, 1, 1], intercept=False).kind == "none"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
@some_seeds
def test_units_and_offsets_change_nothing(kind, classes, seeds):
    for seed in seeds:
        X, y = made(kind, classes, seed)
        rng = np.random.default_rng(seed)
        X = np.round(X * 2**20) / 2**20  # so that an offset of 2^20 takes no digit
        unit = 10.0 ** rng.integers(-6, 7, X.shape[1])
        here, there = told(X, y), told((X + 2.0**20) * unit, y)
        assert (there.kind, there.columns, there.classes) == (here.kind, here.columns, here.classes)


@pytest.mark.parametrize("kind", KINDS)
@some_seeds
def test_constant_and_collinear_columns_change_nothing(kind, seeds):
    for seed in seeds:
        X, y = made(kind, 2 + seed % 3, seed)
        more = np.column_stack([X, np.full(len(X), 7.0), 2 * X[:, 0] + 1, X[:, 0]])
        assert told(more, y).kind == told(X, y).kind


@pytest.mark.parametrize("kind", KINDS)
@some_seeds
def test_the_direction_is_wrong_of_no_row(kind, seeds):
    for seed in seeds:
        X, y = made(kind, 2 + seed % 3, seed)
        found = told(X, y)
        if kind != "none":
            codes = np.unique(y, return_inverse=True)[1]
            origin = read_moments(as_table(X, y), detail="diagonal").anchor.origin
            scores = (X - origin) @ found.direction[:-1] + found.direction[-1]
            margins = scores[np.arange(len(y)), codes][:, None] - scores
            assert margins.min() > -1e-9 * np.abs(scores).max()
            assert margins.max() > 0.01 * np.abs(scores).max()


# --- columns and classes ------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 4])
@some_seeds
def test_a_dummy_of_one_class_is_named_with_the_pairs_it_pulls_apart(classes, seeds):
    for seed in seeds:
        X, y = made("dummy", classes, seed)
        found = told(X, y)
        assert found.columns == (f"x{X.shape[1] - 1}",)
        assert found.classes == tuple(
            sorted((min(1, c), max(1, c)) for c in range(classes) if c != 1)
        )


def test_of_all_the_levels_of_a_category_only_the_one_that_separates_is_named():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 400)
    y = np.where(level == 2, 1, rng.integers(0, 2, 400))
    X = np.column_stack([rng.standard_normal(400), np.eye(4)[level]])  # they add up to one
    assert told(X, y).columns == ("x3",)


def test_endometrial_cancer_is_quasi_separated_by_neovasculation_alone(shared_data):
    folder = shared_data / "sep_endometrial"
    rows = pd.read_csv(folder / "endometrial.csv")
    reference = json.loads((folder / "reference.json").read_text())
    assert "NV is +infinity, the others are finite" in reference["separation"]
    found = told(rows[["NV", "PI", "EH"]], rows["HG"])
    assert (found.kind, found.columns, found.classes) == ("quasi", ("NV",), ((0, 1),))


# --- many rows -----------------------------------------------------------------------------------


def many(kind, rows=200_000, width=20):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, width))
    s = X @ rng.standard_normal(width) - 0.3
    y = (s > 0).astype(int)
    if kind in ("none", "rare"):
        y = (rng.random(rows) < expit(s)).astype(int)
    if kind == "rare":  # in 20 rows of 200 000, all of one class
        X[:, 7] = 0.0
        X[rng.choice(np.flatnonzero(y), 20, replace=False), 7] = 1.0
    if kind == "tie":
        X, y = np.vstack([X, X[np.abs(s).argmin()]]), np.append(y, 1 - y[np.abs(s).argmin()])
    return X, y


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("none", "none"), ("rare", "quasi"), ("tie", "quasi"), ("complete", "complete")],
)
def test_of_many_rows_few_are_looked_at(kind, wanted):
    found = told(*many(kind))
    assert found.kind == wanted
    assert found.rows_looked_at < 4000
    if kind == "rare":
        assert found.columns == ("x7",)


def test_a_start_that_separates_needs_no_programme():
    X, y = made("complete", 2, 3)
    found = told(X, y)
    again = told(X, y, start=found.direction)
    assert (again.kind, again.rows_looked_at) == ("complete", 0)


@pytest.mark.parametrize("kind", KINDS)
@some_seeds
def test_where_it_starts_does_not_matter(kind, seeds):
    for seed in seeds:
        X, y = made(kind, 3, seed)
        K = len(np.unique(y))
        start = np.random.default_rng(seed).standard_normal((X.shape[1] + 1, K))
        here, there = told(X, y), told(X, y, start=start)
        assert (there.kind, there.columns, there.classes) == (here.kind, here.columns, here.classes)


def test_rows_without_weight_are_not_looked_at():
    X, y = made("complete", 2, 3)
    both, labels = np.vstack([X, X]), np.append(y, 1 - y)
    assert told(both, labels).kind == "none"
    assert told(both, labels, weight=np.repeat([1.0, 0.0], len(X))).kind == "complete"


# --- what it is told and told of ----------------------------------------------------------------


def test_the_warning_names_columns_classes_and_ways_out():
    text = str(SeparationWarning.of("quasi", ["NV"], [("low", "high")]))
    for word in ("'low' and 'high'", "quasi", "'NV'", "no finite", 'bias_reduction="jeffreys"'):
        assert word in text
    assert "ridge > 0" in text


def test_margins_within_rounding_of_zero_are_zero():
    X = np.array([[0.1, 0.2, -0.3]]) * np.array([[1.0], [3.0], [7.0]])  # sums of 0, but rounded
    reading = MarginReading(
        ("a", "b", "c"), Anchor.zero(3), np.array([[0.0] * 3, [1.0] * 3]), np.zeros(2), 5
    )
    found = reading.read(Block(X, np.array([0, 1, 1])))
    assert (found.zero.sum(), found.negative.sum(), found.positive.sum()) == (3, 0, 0)


def test_a_missing_cell_is_named():
    X = np.array([[1.0], [np.nan]])
    reading = MarginReading(("age",), Anchor.zero(1), np.ones((2, 1)), np.zeros(2), 5)
    with pytest.raises(MissingValueError, match="age"):
        reading.read(Block(X, np.array([0, 1])))


def test_a_sample_does_not_hang_on_the_order_of_rows_and_has_no_row_twice():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (5000, 3)).astype(float), rng.integers(0, 2, 5000)
    order = rng.permutation(5000)
    reading = MarginReading(("a", "b", "c"), Anchor.zero(3), np.zeros((2, 3)), np.zeros(2), 20)
    one, two = reading.read(Block(X, y)), reading.read(Block(X[order], y[order]))
    assert np.array_equal(one.offsets, two.offsets)
    assert len(np.unique(np.column_stack([one.codes, one.offsets]), axis=0)) == 40
