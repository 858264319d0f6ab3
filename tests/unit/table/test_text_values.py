"""Numbers and dates that are written as texts are read as what they are, or spoken of."""

import datetime

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.errors import BadNumberError, UnreadTextWarning
from discriminant.table.encoding import Encoding
from discriminant.table.load import open_source
from discriminant.table.text_values import explain_unparsed, parse_texts

LABELS = ["a", "b", "a", "b", "b", "a"]


def column_of(texts, **options):
    opened = open_source(pd.DataFrame({"x": texts, "y": LABELS}), target="y", **options)
    return opened.table.features[:][:, 0].tolist()


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["7.039,00", "120,50"], [7039, 120.5]),
        (["$143,548", "$98,000"], [143548, 98000]),
        (["-$1,234.50", "$3.20"], [-1234.5, 3.2]),
        (["41%", "7%"], [41, 7]),
        (["1.200 €", "12 €"], [1200, 12]),
        (["1 234,5", "99,25"], [1234.5, 99.25]),
        (["1'234", "12'345.5"], [1234, 12345.5]),
        (["1,234", "12,345,678"], [1234, 12345678]),
    ],
)
def test_a_number_is_what_a_person_reads(texts, values):
    assert list(parse_texts(texts).values.values()) == values


@pytest.mark.parametrize(
    ("text", "other"),
    [("27.10.2023", "01.02.2023"), ("27/10/2023", "01/02/2023"), ("2023/10/27", "2023/02/01")],
)
def test_a_date_is_days_since_1970(text, other):
    days = [
        (datetime.date(2023, *on) - datetime.date(1970, 1, 1)).days for on in ((10, 27), (2, 1))
    ]
    assert list(parse_texts([text, other]).values.values()) == days


def test_month_first_is_told_by_one_day_beyond_twelve():
    days = [
        (datetime.date(2023, *on) - datetime.date(1970, 1, 1)).days for on in ((10, 27), (1, 2))
    ]
    assert list(parse_texts(["10/27/2023", "01/02/2023"]).values.values()) == days


@pytest.mark.parametrize(
    "texts", [["1,234", "2,345"], ["1", "2"], ["10.0.0.1", "10.0.0.12"], ["555 123", "555 124"]]
)
def test_what_could_be_something_else_is_left_alone(texts):
    assert parse_texts(texts) is None


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["01/02/2023", "03/04/2023"], "day and month"),
        (["27.10.23", "28.10.23"], "two digits"),
        (["$5", "€6"], "same unit"),
        (["$5", "$6", "$7", "$8", "x"], "'x'"),
    ],
)
def test_what_is_not_read_is_told_with_a_reason(texts, why):
    assert why in explain_unparsed(dict.fromkeys(texts, 1)).reason


def test_a_column_that_may_be_dates_is_warned_of():
    texts = ["01/02/2023", "03/04/2023", "05/06/2023", "01/02/2023", "03/04/2023", "07/08/2023"]
    with pytest.warns(UnreadTextWarning, match=r"'x' looks like dates .*day and month"):
        column_of(texts)


def test_a_text_that_means_missing_is_a_gap():
    texts = ["$1,000", "NA", "$3,000", "$2,000", "$4,000", "$5,000"]
    assert column_of(texts, missing="mean")[1] == 3000


def test_how_it_is_written_travels_with_the_model(tmp_path):
    rows = pd.DataFrame({"x": ["$1,000", "$9,000", "$1,500", "$8,000", "$7,500", "$2,000"]})
    model = dd.Encoded(dd.LDA()).fit(rows, LABELS)
    kept = Encoding.from_dict(model.encoding_.to_dict())
    assert kept.encode(pd.DataFrame({"x": ["$1,250.5"]})).tolist() == [[1250.5]]


def test_a_number_written_another_way_is_refused_when_predicting():
    rows = pd.DataFrame({"x": ["$1,000", "$9,000", "$1,500", "$8,000", "$7,500", "$2,000"]})
    model = dd.Encoded(dd.LDA()).fit(rows, LABELS)
    with pytest.raises(BadNumberError, match=r"'1\.250,50 €' is not a number such as 1,234\.5"):
        model.predict(pd.DataFrame({"x": ["1.250,50 €"]}))


def test_iso_dates_as_texts_are_the_dates_of_a_csv(tmp_path):
    days = ["2023-10-27", "2023-01-05", "2022-03-04", "2021-12-31", "2020-02-29", "2024-07-01"]
    frame = pd.DataFrame({"since": days, "y": LABELS})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    found = [
        open_source(source, target="y").table.features[:].tolist()
        for source in (tmp_path / "rows.csv", tmp_path / "rows.parquet", frame)
    ]
    assert found[0] == found[1] == found[2]


def test_a_model_of_a_csv_takes_its_dates_as_texts(tmp_path):
    days = ["2023-10-27", "2023-01-05", "2022-03-04", "2021-12-31", "2020-02-29", "2024-07-01"]
    frame = pd.DataFrame({"since": days, "y": LABELS})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = dd.study(tmp_path / "rows.csv", target="y", folds=2).model("nearest_mean")
    by_file = model.predict(tmp_path / "rows.csv")
    assert np.array_equal(model.predict(pd.read_csv(tmp_path / "rows.csv")), by_file)


def test_categories_stay_texts_where_they_are_named():
    opened = open_source(
        pd.DataFrame({"x": ["5%", "7%", "5%", "7%", "5%", "7%"], "y": LABELS}),
        target="y",
        categories=["x"],
    )
    assert opened.encoding.features == ("x=7%",)


def test_exported_python_takes_dates_as_texts_and_names_what_is_none(tmp_path):
    days = pd.to_datetime(["2023-10-27", "2023-01-05", "2022-03-04"] * 2)
    model = dd.Encoded(dd.NearestMean()).fit(pd.DataFrame({"since": days}), LABELS)
    made: dict = {}
    exec(dd.export(model, "python"), made)
    by_text = [made["predict"]({"since": str(day.date())}) for day in days]
    by_date = [made["predict"]({"since": day.to_pydatetime()}) for day in days]
    assert by_text == by_date
    with pytest.raises(ValueError, match="The column 'since' is not a date such as 2023-10-27"):
        made["predict"]({"since": "soon"})
