"""The same small study wherever rows are: moments, models, cross-validation, assessment."""

import numpy as np
import pytest

import discriminant as dd
from discriminant.errors import DatabaseError
from tests.unit.engines.test_engine_laws import numbers


def test_a_study_says_the_same_wherever_its_rows_are(engine, tmp_path):
    frame, fresh = numbers(11, 240), numbers(12, 100)
    new = fresh.drop(columns="y")
    frame.to_parquet(tmp_path / "reference.parquet", index=False)
    there = dd.rows(tmp_path / "reference.parquet", target="y")
    here = engine.rows(frame, 5, tmp_path, target="y")
    for model in (dd.LDA(), dd.QDA(), dd.Logistic()):
        if engine.inside:
            if isinstance(model, dd.Logistic):
                continue
            with pytest.raises(DatabaseError, match="pushdown=True keeps them"):
                dd.cross_validate(model, here, folds=4)
        else:
            ours, theirs = (dd.cross_validate(model, r, folds=4, seed=3) for r in (here, there))
            assert np.array_equal(ours.tally.confusion(), theirs.tally.confusion())
            assert ours.log_loss == pytest.approx(theirs.log_loss, rel=1e-10)
        one, other = (model.__class__().fit(r).predict_proba(new) for r in (here, there))
        np.testing.assert_allclose(one, other, rtol=1e-9)
