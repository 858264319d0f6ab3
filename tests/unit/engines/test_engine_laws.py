"""Whoever sums, and however the rows are cut: the same moments, the same models (trust.md, N6)."""

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.engines.dispatch import read_moments
from discriminant.errors import DatabaseError
from discriminant.moments.accumulate import MomentsReading
from tests.shared.engine_kinds import pieces_of

PARTS = (1, 2, 7, 64)
NEAR = 1e-13  # relative, of moments
ALIKE = 1e-10  # of coefficients


def numbers(seed=0, rows=400, d=4):
    """Rows of three classes, far from the origin."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, rows)
    X = 100.0 + code[:, None] * np.linspace(0.2, 1.0, d) + rng.normal(size=(rows, d))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    return frame.assign(y=np.array(["low", "mid", "top"])[code])


def mixed(seed=0, rows=400, *, gaps=False):
    """Numbers, truth values and categories, one of which is rare, and weights."""
    rng = np.random.default_rng(seed)
    frame = numbers(seed, rows, 2)
    frame["colour"] = rng.choice(["red", "green, pale", 'a "blue" one'], rows)
    frame.loc[rows // 2, "colour"] = "rare"
    frame["flag"] = rng.random(rows) < 0.4
    frame["w"] = rng.integers(1, 4, rows).astype(float)
    if gaps:
        frame.loc[rng.random(rows) < 0.1, "x1"] = np.nan
    return frame


def assert_near(found, wanted, tolerance=NEAR):
    """Counts to the last bit, sums to so many of their largest."""
    assert found.labels.tolist() == wanted.labels.tolist()
    assert np.array_equal(found.rows, wanted.rows)
    mine = (found.weight, found.means, found.within(), found.between())
    theirs = (wanted.weight, wanted.means, wanted.within(), wanted.between())
    apart = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(mine, theirs, strict=True)]
    assert max(apart) <= tolerance


@pytest.mark.parametrize("parts", PARTS)
def test_every_engine_reads_the_same_moments_in_any_number_of_parts(engine, parts, tmp_path):
    frame = numbers(parts)
    found = engine.rows(frame, parts, tmp_path, target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


def test_the_one_door_takes_every_source(engine, tmp_path):
    frame = numbers(8)
    source = engine.laid(frame, 3, tmp_path)
    found = dd.moments(source, target="y", detail="pooled", **engine.options)
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"], detail="pooled"))


@pytest.mark.parametrize("missing", ["drop", "mean", "indicator", "marginal"])
def test_columns_become_what_they_become_in_memory(engine, missing, tmp_path):
    frame = mixed(3, gaps=True)
    found = engine.rows(frame, 5, tmp_path, target="y", missing=missing)
    wanted = dd.open_source(frame, target="y", missing=missing)
    assert found.plan.encoding.features == wanted.encoding.features
    assert_near(found.moments, read_moments(wanted.table, detail="class"), 1e-12)


def test_weights_and_categories_that_look_like_numbers_are_what_they_are_in_memory(
    engine, tmp_path
):
    frame = mixed(4)
    frame["code"] = np.random.default_rng(4).integers(1, 4, len(frame))
    wishes = {"target": "y", "weight": "w", "categories": ["code"], "exclude": ["flag"]}
    found = engine.rows(frame, 4, tmp_path, **wishes)
    wanted = dd.open_source(frame, **wishes)
    assert found.plan.encoding.features == wanted.encoding.features
    assert_near(found.moments, read_moments(wanted.table, detail="class"))


def test_a_column_that_counts_the_rows_is_set_aside_by_every_engine(engine, tmp_path):
    frame = numbers(10, 600).assign(zz=np.arange(7, 607))
    found = engine.rows(frame, 5, tmp_path, target="y")
    assert found.plan.encoding.features == dd.open_source(frame, target="y").encoding.features
    assert "zz" not in found.plan.encoding.features


def test_a_column_of_whole_numbers_that_differ_is_kept_by_every_engine(engine, tmp_path):
    rng = np.random.default_rng(11)
    frame = numbers(11, 600).assign(cents=rng.choice(10**6, 600, replace=False))
    found = engine.rows(frame, 5, tmp_path, target="y")
    assert found.plan.encoding.features == ("x0", "x1", "x2", "x3", "cents")


MODELS = [
    dd.LDA(),
    dd.QDA(),
    dd.RDA(pooling=0.5, shrinkage=0.1),
    dd.LeastSquares(),
    dd.Fisher(),
    dd.NearestMean(),
    dd.SDA(),
    dd.SDA(shrinkage=0.3, variance_shrinkage=0.1),
    dd.ShrunkenCentroids(),
    dd.SparseLDA(),
    dd.Logistic(),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_engine_fits_the_same_model(engine, model, tmp_path):
    frame = numbers(5)
    X, y = frame.drop(columns="y"), frame["y"]
    rows = engine.rows(frame, 6, tmp_path, target="y")
    needs_rows = isinstance(model, dd.Logistic) or getattr(model, "detail", "") == "fourth"
    if engine.inside and needs_rows:  # rows may not leave the database
        with pytest.raises(DatabaseError, match="pushdown=True keeps them in the database"):
            model.fit(rows)
        return
    ours = type(model)(**model.get_params()).fit(rows)
    theirs = type(model)(**model.get_params()).fit(X, y)
    assert _coefficients_apart(ours, theirs, X) <= ALIKE


def _coefficients_apart(ours, theirs, X):
    if hasattr(theirs, "coef_"):
        return np.abs(ours.coef_ - theirs.coef_).max() / np.abs(theirs.coef_).max()
    return np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max()


def test_a_part_that_lacks_a_class_changes_nothing(engine, tmp_path):
    frame = numbers(6).sort_values("y", kind="stable")
    found = engine.rows(frame, 9, tmp_path, target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


def test_a_part_without_rows_changes_nothing(engine, tmp_path):
    frame = numbers(7, rows=30)
    assert min(map(len, pieces_of(frame, 41))) == 0
    found = engine.rows(frame, 41, tmp_path, target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


def test_the_same_parts_give_the_same_bits_each_time(engine, tmp_path):
    rows = engine.rows(numbers(9), 7, tmp_path, target="y")
    found = rows.moments
    reading = MomentsReading(found.labels, found.features, found.anchor, found.detail)
    again = rows.fold(reading)
    assert np.array_equal(found.scatter, again.scatter)
    assert np.array_equal(found.mean, again.mean)
