"""Categories, dates, truth values and missing cells mean in a database what they mean here."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pytest

from discriminant import GLM, LDA, QDA, Decision, Encoded, LinearRegression, Logistic, LogLinear
from discriminant.errors import ExportError
from discriminant.export import export
from discriminant.export.sql import to_sql
from tests.shared.javascript import JavaScriptError
from tests.unit.export.targets import run
from tests.unit.export.test_round_trips import agrees, close

LEVELS = ("low", "mid", "high")
COLOURS = ("re'd", 'gr"een', "blue 🙂")


def table_of(seed, rows=120, gaps=True):
    """A table of all kinds of columns, some cells missing."""
    rng = np.random.default_rng(seed)
    colour = np.array(COLOURS, dtype=object)[rng.integers(0, 3, rows)]
    size = np.array(LEVELS, dtype=object)[rng.integers(0, 3, rows)]
    day = [dt.date(2020, 1, 1) + dt.timedelta(days=int(k)) for k in rng.integers(0, 900, rows)]
    frame = pd.DataFrame(
        {
            "n'umber": rng.normal(size=rows) + (colour == COLOURS[0]),
            "colour=": colour,
            "size": size,
            "sure": rng.integers(0, 2, rows).astype(bool),
            "day": day,
            "zip": rng.integers(1, 4, rows),
        }
    )
    truth = (frame["n'umber"] + (size == "high") + rng.normal(size=rows) > 0.7).to_numpy()
    if gaps:
        for name in ("n'umber", "colour=", "size"):
            frame.loc[rng.random(rows) < 0.15, name] = None
    return frame, np.where(truth, "yes", "no").astype(object)


def fitted(model, **options):
    frame, labels = table_of(1, gaps=options.get("missing") != "error")
    wrapped = Encoded(model, ordered={"size": LEVELS}, categories=["zip"], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return wrapped.fit(frame, labels)


def columns_of(frame, target):
    """Cells as each target takes them: ONNX and its numbers have no dates and no truth values."""
    columns = {}
    for name in frame.columns:
        values = [None if value is None or value != value else value for value in frame[name]]
        values = [value.item() if hasattr(value, "item") else value for value in values]
        if target == "onnx" and isinstance(values[0], dt.date):
            values = [float((value - dt.date(1970, 1, 1)).days) for value in values]
        columns[name] = values
    return columns


@pytest.mark.parametrize("missing", ["error", "mean", "indicator"])
@pytest.mark.parametrize("model", [LDA(), QDA(shrinkage=0.2), Logistic(ridge=0.01)], ids=str)
def test_every_kind_of_column_becomes_the_same_features(model, missing, target):
    made = fitted(model, missing=missing)
    frame, _ = table_of(2, gaps=missing != "error")
    said = run(target[0], made, columns_of(frame, target[0]), connection=target[1])
    close(said["log_p"], made.predict_log_proba(frame), size=10.0)
    assert said["label"] == made.predict(frame).tolist()


@pytest.mark.parametrize(
    "model", [LinearRegression(), GLM("poisson"), LogLinear(predicted="mean")], ids=str
)
def test_a_regressor_of_every_kind_of_column_says_the_same_number(model, target):
    frame, labels = table_of(1)
    response = np.random.default_rng(3).uniform(1.0, 2.0, len(frame)) + (labels == "yes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Encoded(model, ordered={"size": LEVELS}, categories=["zip"], missing="mean")
        made.fit(frame, response)
    new, _ = table_of(2)
    said = run(target[0], made, columns_of(new, target[0]), connection=target[1])
    close(said["value"], made.predict(new), size=10.0)


@pytest.mark.parametrize("unseen", ["error", "ignore"])
def test_categories_of_floats_and_of_truth_values_become_the_same_features(unseen, target):
    frame, labels = table_of(7, gaps=False)
    frame["zip"] = frame["zip"].astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Encoded(LDA(), categories=["zip", "sure"], unseen=unseen).fit(frame, labels)
    said = run(target[0], made, columns_of(frame, target[0]), connection=target[1])
    close(said["log_p"], made.predict_log_proba(frame), size=10.0)


def test_a_missing_cell_with_nothing_to_stand_in_has_no_answer(target):
    made = fitted(LDA(), missing="error")
    frame, _ = table_of(3, gaps=False)
    frame.loc[4, "n'umber"] = None
    frame.loc[5, "colour="] = "never seen"
    if target[0] in ("python", "node", "chromium"):
        for row, message in ((4, "n'umber.*missing"), (5, "colour=.*(never seen|unknown)")):
            cells = columns_of(frame[row : row + 1], target[0])
            with pytest.raises((ValueError, JavaScriptError), match=message):
                run(target[0], made, cells, connection=target[1])
        return
    said = run(target[0], made, columns_of(frame, target[0]), connection=target[1])
    gone = [k for k, p in enumerate(said["p"][:, 0]) if np.isnan(p)]
    assert gone == [4, 5] and not said["label"][4] and not said["label"][5]
    assert said["label"][:4] == made.predict(frame[:4]).tolist()


@pytest.mark.parametrize("around", [False, True])
def test_a_category_never_seen_is_rejected_where_that_was_asked(around, target):
    made = fitted(LDA(), missing="mean", unseen="reject")
    if around:
        made = Decision.of_fitted(made, reject=0.2)
    frame, _ = table_of(4)
    frame.loc[[1, 7], "colour="] = "never seen"
    said = run(target[0], made, columns_of(frame, target[0]), connection=target[1])
    assert said["action"] == [str(action) for action in made.decide(frame)]
    assert said["label"] == made.predict(frame).tolist()


def test_a_category_never_seen_is_no_category_where_that_was_asked(target):
    made = fitted(LDA(), missing="mean", unseen="ignore")
    frame, _ = table_of(5)
    frame.loc[3, "size"] = frame.loc[2, "colour="] = "never seen"
    said = run(target[0], made, columns_of(frame, target[0]), connection=target[1])
    close(said["p"], made.predict_proba(frame))


def test_decisions_with_costs_stand_around_or_inside(target):
    frame, labels = table_of(6)
    inside = Encoded(Decision(LDA(), cost={"yes": {"no": 3}}, reject=0.4), missing="mean")
    made = inside.fit(frame, labels)
    said = run(target[0], made, columns_of(frame, target[0]), connection=target[1])
    assert said["action"] == [str(action) for action in made.decide(frame)]


def test_exact_marginals_are_named_as_what_cannot_be_exported(tmp_path):
    made = fitted(LDA(), missing="marginal")
    with pytest.raises(ExportError, match=r"missing='marginal'.*Nothing was written"):
        export(made, "sql", tmp_path / "model.sql", table="t")
    assert not list(tmp_path.iterdir())


def test_a_number_that_is_text_in_sqlite_is_no_number():
    import sqlite3

    made = LDA().fit(pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0]}), list("aabb"))
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (a)")
        database.executemany("INSERT INTO t VALUES (?)", [("abc",), ("5",), (5,)])
        query = to_sql(made, table="t", dialect="sqlite", outputs=["label"])
        assert database.execute(query).fetchall() == [(None,), (None,), ("b",)]


def test_times_are_days_with_their_parts():
    import duckdb

    frame = pd.DataFrame({"at": pd.date_range("2020-01-01", periods=40, freq="7h13min")})
    labels = ["early" if k < 17 or k == 30 else "late" for k in range(40)]
    made = Encoded(LDA()).fit(frame, labels)
    with duckdb.connect() as database:
        database.register("t", frame)
        query = to_sql(made, table="t", outputs=["log_odds"])
        found = [row[0] for row in database.execute(query).fetchall()]
    close(found, np.diff(made.predict_log_proba(frame)).ravel())


def test_plain_models_are_not_changed_by_an_encoding_around_them(target):
    frame, labels = table_of(8, gaps=False)
    frame = frame[["n'umber"]]
    agrees(Encoded(LDA()).fit(frame, labels), frame, target)


def test_a_column_of_yes_and_no_that_a_database_reads_as_truth_values_is_answered():
    rng = np.random.default_rng(3)
    x, senior = rng.normal(size=80), np.where(rng.random(80) < 0.4, "Yes", "No")
    y = np.where(x + (senior == "Yes") + rng.normal(size=80) > 0.4, "stay", "go")
    frame = pd.DataFrame({"x": x, "senior?": senior})
    model = Encoded(LDA()).fit(frame, y)
    truths = frame.assign(**{"senior?": senior == "Yes"})
    text = export(model, "sql", table="truths", keep=["x"], outputs=["label"])
    duck = pytest.importorskip("duckdb", reason="DuckDB is not installed").connect()
    said = dict(duck.register("truths", truths).execute(text).fetchall())
    assert [said[one] for one in x] == model.predict(frame).tolist()
