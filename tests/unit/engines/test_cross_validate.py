"""Whoever sums: the same cross-validation and the same assessment, whatever comes in what order."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.errors import DatabaseError
from discriminant.table.hash_folds import row_hash_folds
from tests.unit.engines.test_engine_laws import numbers


def folds_of(frame, folds):
    codes = np.unique(frame["y"], return_inverse=True)[1]
    return row_hash_folds(frame.drop(columns="y").to_numpy(), codes, folds)


def needing_rows(engine):
    """Where rows stay inside a database, what needs them is refused."""
    return pytest.raises(DatabaseError, match="needs rows") if engine.inside else nullcontext()


@pytest.mark.parametrize("model", [dd.LDA(), dd.QDA(), dd.Logistic()], ids=repr)
def test_every_engine_holds_out_the_same_rows(engine, model, tmp_path):
    frame = numbers(11)
    held = None
    with needing_rows(engine):
        held = dd.cross_validate(model, engine.rows(frame, 5, tmp_path, target="y"), folds=4)
    if held is None:
        return
    wanted = dd.cross_validate(model, frame.drop(columns="y"), frame["y"], folds_of(frame, 4))
    assert np.array_equal(held.tally.weight, wanted.tally.weight)
    assert held.log_loss == pytest.approx(wanted.log_loss, rel=1e-10)


def test_every_engine_measures_a_model_alike(engine, tmp_path):
    train, test = numbers(12), numbers(13)
    model = dd.LDA().fit(train.drop(columns="y"), train["y"])
    found = None
    with needing_rows(engine):
        found = dd.evaluate(model, engine.rows(test, 6, tmp_path, target="y"))
    if found is None:
        return
    wanted = dd.evaluate(model, test.drop(columns="y"), test["y"])
    assert np.array_equal(found.weight, wanted.weight)
    assert found.log_loss == pytest.approx(wanted.log_loss, rel=1e-12)


def test_every_engine_tries_the_same_grid(engine, tmp_path):
    frame = numbers(14)
    tried = {"pooling": [0.0, 0.5, 1.0], "shrinkage": [0.0, 0.5]}
    found = None
    with needing_rows(engine):
        found = dd.rda_grid(engine.rows(frame, 3, tmp_path, target="y"), folds=4, **tried)
    if found is None:
        return
    wanted = dd.rda_grid(frame.drop(columns="y"), frame["y"], folds_of(frame, 4), **tried)
    np.testing.assert_allclose(found.log_loss, wanted.log_loss, rtol=1e-10)


def test_every_engine_deals_copies_of_rows_into_all_folds(engine, tmp_path):
    """A binary column: 9 in 10 rows are of the class that it says."""
    rng = np.random.default_rng(15)
    x = np.repeat([0.0, 1.0], 600)
    frame = pd.DataFrame({"x": x, "y": np.where((rng.random(1200) < 0.9) == (x == 1), "a", "b")})
    found = None
    with needing_rows(engine):
        found = dd.cross_validate(
            dd.LDA(), engine.rows(frame.sample(frac=1, random_state=1), 4, tmp_path, target="y")
        )
    if found is not None:
        wrong = ((frame["x"] == 1) != (frame["y"] == "a")).mean()  # whoever has seen some knows
        assert found.error == pytest.approx(wrong, abs=1e-12)
