"""EM for rows with missing cells against maximum likelihood by brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import discriminant as dd
from discriminant.engines.dispatch import fold
from discriminant.engines.missing_cells import ExpectedMomentsReading
from discriminant.errors import ExportError, MissingCellError, MissingValueError, OptionError
from discriminant.export.sql import to_sql
from discriminant.moments.anchor import Anchor
from discriminant.table.memory import as_table


def gappy(seed=0, n=(25, 35), d=2, share=0.25):
    """Rows of two classes with cells missing at random, as a frame, and their labels."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(size=(m, d)) @ rng.normal(size=(d, d)) + 3.0 * rng.normal(size=d) for m in n
    ]
    X, y = np.vstack(parts), np.repeat(["a", "b"], n)
    X[rng.random(X.shape) < share] = np.nan
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(d)]), y


def log_likelihood(X, means, covariances):
    """Sum over rows of the log density of the cells that are present."""
    total = 0.0
    for k, rows in enumerate(X):
        for row in rows:
            o = np.flatnonzero(~np.isnan(row))
            if len(o):
                block = covariances[k][np.ix_(o, o)]
                total += multivariate_normal(means[k][o], block).logpdf(row[o])
    return total


def brute_force(X, d, shared):
    """Means and covariances that maximise the likelihood, by a general optimiser."""
    lower = np.tril_indices(d)
    per, count = len(lower[0]), 1 if shared else 2

    def unpack(theta):
        means = theta[: 2 * d].reshape(2, d)
        covariances = []
        for c in range(count):
            root = np.zeros((d, d))
            root[lower] = theta[2 * d + c * per : 2 * d + (c + 1) * per]
            covariances.append(root @ root.T + 1e-10 * np.eye(d))
        return means, covariances * (2 if shared else 1)

    start = np.concatenate(
        [*(np.nanmean(rows, axis=0) for rows in X)]
        + [np.diag(np.nanstd(np.vstack(X), axis=0))[lower]] * count
    )
    best = minimize(lambda t: -log_likelihood(X, *unpack(t)), start, method="BFGS", tol=1e-9)
    return unpack(best.x)


@pytest.mark.parametrize("kind", [dd.LDA, dd.QDA])
def test_moments_maximise_the_likelihood_of_the_present_cells(kind):
    frame, y = gappy()
    X = [frame.to_numpy()[y == label] for label in "ab"]
    means, covariances = brute_force(X, 2, kind is dd.LDA)
    model = dd.Encoded(kind(denominator="ml"), missing="em").fit(frame, y).estimator_
    found = np.broadcast_to(model.covariance_, (2, 2, 2))
    assert log_likelihood(X, model.means_, found) >= log_likelihood(X, means, covariances) - 1e-6
    np.testing.assert_allclose(model.means_, means, atol=2e-4)
    np.testing.assert_allclose(found, covariances, atol=2e-3)


def test_complete_rows_have_their_moments():
    frame, y = gappy(share=0.0)
    found = dd.Encoded(dd.QDA(), missing="em").fit(frame, y)
    wanted = dd.QDA().fit(frame, y)
    np.testing.assert_allclose(found.estimator_.means_, wanted.means_, rtol=1e-12)
    np.testing.assert_allclose(found.predict_proba(frame), wanted.predict_proba(frame), atol=1e-10)


@pytest.mark.parametrize("kind", [dd.LDA, dd.QDA])
def test_monotone_gaps_have_a_closed_form(kind):
    """One column is complete; the other is regressed on it (Anderson 1957)."""
    frame, y = gappy(seed=3, share=0.0)
    rng = np.random.default_rng(0)
    frame.loc[rng.random(len(y)) < 0.4, "c1"] = np.nan
    model = dd.Encoded(kind(denominator="ml"), missing="em").fit(frame, y).estimator_
    own = [frame[y == label].to_numpy() for label in "ab"]
    complete = [rows[~np.isnan(rows[:, 1])] for rows in own]
    centred = [rows - rows.mean(axis=0) for rows in complete]
    groups = [[0, 1]] if kind is dd.LDA else [[0], [1]]
    for group in groups:
        gaps = np.vstack([centred[k] for k in group])
        slope = (gaps[:, 0] @ gaps[:, 1]) / (gaps[:, 0] @ gaps[:, 0])
        residual = np.mean((gaps[:, 1] - slope * gaps[:, 0]) ** 2)
        first = np.mean(np.concatenate([own[k][:, 0] - own[k][:, 0].mean() for k in group]) ** 2)
        matrix = [[first, slope * first], [slope * first, residual + slope**2 * first]]
        for k in group:
            found = np.broadcast_to(model.covariance_, (2, 2, 2))[k]
            np.testing.assert_allclose(found, matrix, rtol=1e-6)
            mean = own[k][:, 0].mean()
            other = complete[k][:, 1].mean() + slope * (mean - complete[k][:, 0].mean())
            np.testing.assert_allclose(model.means_[k], [mean, other], rtol=1e-6)


def test_rows_in_partitions_give_the_same_model(tmp_path):
    frame, y = gappy(seed=2, n=(60, 80), d=3)
    table = frame.assign(y=y)
    for part in range(4):
        table.iloc[part::4].to_parquet(tmp_path / f"{part}.parquet")
    rows = dd.rows(str(tmp_path / "*.parquet"), target="y", engine="files", missing="em")
    assert len(rows) == 140
    for kind in (dd.LDA, dd.QDA, dd.RDA, dd.NearestMean):
        memory = dd.Encoded(kind(), missing="em").fit(frame, y)
        parts = dd.Encoded(kind()).fit(rows)
        np.testing.assert_allclose(
            parts.predict_proba(frame), memory.predict_proba(frame), atol=1e-7
        )


def few_complete():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(12, 5)), rng.normal(1.0, 1.0, size=(100, 5))])
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, np.repeat(["a", "b"], [12, 100])


def test_a_class_with_few_complete_rows_is_refused_and_both_ways_out_work():
    X, y = few_complete()
    with pytest.raises(
        MissingCellError, match=r"class 'a'.*singular, from 3 rows .* 5 features.*LDA"
    ):
        dd.Encoded(dd.QDA(), missing="em").fit(X, y)
    shared = dd.Encoded(dd.LDA(), missing="em").fit(X, y)
    mean = dd.Encoded(dd.QDA(shrinkage="auto"), missing="mean").fit(X, y)
    for model in (shared, mean):
        assert np.isfinite(model.predict_log_proba(X)).all()
    with pytest.raises(MissingCellError, match="of the classes, which becomes singular"):
        dd.Encoded(dd.LDA(), missing="em").fit(X[8:20], y[8:20])


@pytest.mark.parametrize(("n", "complete"), [(20, 2), (200, 2), (50, 2)])
def test_a_variance_that_shrinks_slowly_to_zero_is_named(n, complete):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2 * n, 3)), np.repeat(["a", "b"], n)
    X[n + complete :, 0] = np.nan  # a plane contains the complete rows of class b
    with pytest.raises(MissingCellError, match=rf"'b'.*singular, from {complete} row"):
        dd.Encoded(dd.QDA(), missing="em").fit(X, y)
    dd.Encoded(dd.LDA(), missing="em").fit(X, y)


def test_a_class_without_a_complete_row_can_have_a_covariance():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(600, 3)), np.repeat([0, 1], 300)
    X[np.arange(600), np.arange(600) % 3] = np.nan
    covariance = dd.Encoded(dd.QDA(), missing="em").fit(X, y).estimator_.covariance_
    assert np.linalg.eigvalsh(covariance).min() > 0.5


def test_partitioned_rows_with_few_complete_rows_need_one_covariance(tmp_path):
    X, y = few_complete()
    frame = pd.DataFrame(X, columns=list("pqrst")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = dd.rows(str(tmp_path / "*.parquet"), target="y", engine="files", missing="em")
    with pytest.raises(MissingCellError, match="class 'a'"):
        dd.QDA().fit(rows)
    dd.LDA().fit(rows)


def test_weights_are_repetitions_and_units_do_not_matter():
    frame, y = gappy(seed=5, d=3)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    model = dd.Encoded(dd.LDA(), missing="em").fit(frame, y, sample_weight=times.astype(float))
    again = dd.Encoded(dd.LDA(), missing="em").fit(
        frame.loc[np.repeat(frame.index, times)].reset_index(drop=True), np.repeat(y, times)
    )
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), atol=1e-7)
    scaled = frame * [1e-6, 1e5, 1.0] + [5.0, -1e7, 0.0]
    other = dd.Encoded(dd.LDA(), missing="em").fit(scaled, y, sample_weight=times.astype(float))
    np.testing.assert_allclose(other.predict_proba(scaled), model.predict_proba(frame), atol=1e-4)


def test_more_cells_give_better_estimates_than_complete_rows():
    """Half of the second column is missing where the first one is large: at random."""
    rng = np.random.default_rng(1)
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=4000)
    y = np.repeat(["a", "b"], 2000)
    frame = pd.DataFrame(X, columns=["u", "v"])
    frame.loc[frame["u"] > 0, "v"] = np.nan
    em = dd.Encoded(dd.QDA(), missing="em").fit(frame, y).estimator_
    dropped = dd.Encoded(dd.QDA(), missing="marginal").fit(frame, y).estimator_
    assert np.abs(em.means_).max() < 0.1 < np.abs(dropped.means_).max()


def test_model_is_saved_and_predicts_rows_with_missing_cells(tmp_path):
    frame, y = gappy(seed=6)
    model = dd.Encoded(dd.RDA(pooling=0.4, predictive="student"), missing="em").fit(frame, y)
    assert np.isfinite(model.predict_proba(frame)).all()
    model.save(tmp_path / "model.dd")
    loaded = dd.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_column_without_a_cell_in_a_class_is_named():
    frame, y = gappy()
    frame.loc[y == "b", "c1"] = np.nan
    with pytest.raises(MissingCellError, match="'c1' is missing in all rows of class 'b'"):
        dd.Encoded(dd.LDA(), missing="em").fit(frame, y)


@pytest.mark.parametrize(
    "model",
    [
        dd.Logistic(),
        dd.MDA(),
        dd.RDA(pooling="cv"),
        dd.LDA(shrinkage="auto"),
        dd.QDA(covariance="diagonal"),
        dd.LaplaceNB(),
    ],
    ids=repr,
)
def test_models_that_cannot_use_em_are_refused(model):
    frame, y = gappy()
    with pytest.raises(OptionError, match="missing='em'"):
        dd.Encoded(model, missing="em").fit(frame, y)


def test_tables_and_studies_refuse_em(tmp_path):
    frame, y = gappy()
    with pytest.raises(OptionError, match=r"missing='em'.*Encoded\(model, missing='em'\)"):
        dd.open_source(frame.assign(y=y), target="y", missing="em")
    with pytest.raises(OptionError, match="missing='em'"):
        dd.study(frame.assign(y=y), target="y", missing="em")


def test_mixtures_predict_rows_with_missing_cells():
    frame, y = gappy()
    model = dd.Encoded(dd.MDA(components=1), missing="marginal").fit(frame, y)
    assert np.isfinite(model.predict_proba(frame)).all()


def test_partitioned_rows_refuse_what_em_does_not_complete(tmp_path):
    frame, y = gappy(seed=2, n=(60, 80), d=3)
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    rows = dd.rows(str(tmp_path / "*.parquet"), target="y", engine="files", missing="em")
    for model in (dd.Logistic(), dd.MDA()):
        with pytest.raises(MissingValueError, match="missing"):
            model.fit(rows)
    for held_out in (
        lambda: dd.cross_validate(dd.LDA(), rows),
        lambda: dd.PredictionSets(dd.LDA()).fit(rows),
        lambda: dd.Calibrated(dd.LDA()).fit(rows),
    ):
        with pytest.raises(OptionError, match=r"hold out.*in memory, Encoded\(LDA\(\), missing="):
            held_out()
    way_out = dd.cross_validate(dd.Encoded(dd.LDA(), missing="em"), frame, y, folds=5)
    assert np.isfinite(way_out.log_posterior).all()
    for refused in (lambda: dd.LDA(shrinkage="auto").fit(rows), lambda: dd.study(rows, target="y")):
        with pytest.raises(OptionError, match="missing='em'"):
            refused()
    with pytest.raises(OptionError, match="do not add up"):
        dd.moments(str(tmp_path / "*.parquet"), target="y", missing="em")


def test_export_names_the_policy():
    frame, y = gappy()
    model = dd.Encoded(dd.LDA(), missing="em").fit(frame, y)
    with pytest.raises(ExportError, match="missing='em'"):
        to_sql(model, table="t", dialect="duckdb")


def test_every_step_increases_the_likelihood():
    """From the moments of a few steps to those of more."""
    frame, y = gappy(seed=7, share=0.4)
    table = as_table(frame, y)
    own = [frame.to_numpy()[y == label] for label in "ab"]
    mean, covariance = np.zeros((2, 2)), np.array([np.eye(2)] * 2)
    anchor, path = Anchor.zero(2), []
    for _ in range(8):
        reading = ExpectedMomentsReading(
            table.schema.labels, table.schema.features, anchor, "class", mean, covariance
        )
        moments = fold(table, reading)
        mean, covariance = moments.mean, moments.scatter / moments.weight[:, None, None]
        path.append(log_likelihood(own, mean, covariance))
    assert (np.diff(path) > 0).all()
