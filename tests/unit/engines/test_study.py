"""Whoever sums: a study of rows in parts finds what a study in memory finds on the same folds."""

import numpy as np
import pytest

import discriminant as dd
from discriminant.errors import DatabaseError
from tests.unit.engines.test_engine_laws import numbers

FIGURES = ["error", "error_low", "error_high", "auc", "log_loss", "brier", "calibration"]
SPREADS = ["error_se", "log_loss_se", "brier_se"]


def sites(seed, rows=500):
    """Rows of four places."""
    places = np.random.default_rng(seed).choice(["north", "south", "east", "west"], rows)
    return numbers(seed, rows).assign(site=places)


def of_engine(engine, frame, folder, **options):
    return dd.study(engine.laid(frame, 5, folder), target="y", **engine.options, **options)


def test_every_engine_compares_all_models_as_memory_does(engine, tmp_path):
    frame = sites(21)
    study = of_engine(engine, frame, tmp_path, folds="site")
    if engine.inside:  # folds cannot be scored where no row may leave
        with pytest.raises(DatabaseError):
            study.compare()
        return
    wanted = dd.study(frame, target="y", folds="site").compare()
    found = study.compare()
    ours, theirs = found.frame(), wanted.frame()
    correct = wanted.both_correct
    # the weights of the pool need the posteriors of all rows in memory; a single file is read whole
    if engine.name != "files-row-groups":
        theirs, correct = theirs.drop(index="pool"), correct[:-1, :-1]
    assert list(ours.index) == list(theirs.index) and len(ours) >= 16
    for column in [*FIGURES, *SPREADS]:
        np.testing.assert_allclose(
            ours[column].astype(float), theirs[column].astype(float), rtol=1e-6, err_msg=column
        )
    np.testing.assert_array_equal(found.both_correct, correct)
    assert found.choose(select="single").name == wanted.choose(select="single").name


def test_every_engine_fits_the_model_that_memory_fits(engine, tmp_path):
    frame = sites(22)
    rows = frame.drop(columns=["y", "site"])
    study = of_engine(engine, frame, tmp_path, exclude=["site"])
    model = study.model("lda")
    alone = dd.LDA().fit(rows, frame["y"])
    np.testing.assert_allclose(model.predict_proba(rows), alone.predict_proba(rows), atol=1e-10)
