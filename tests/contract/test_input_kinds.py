"""However the same numbers are handed in, the same moments are read, and labels go by any type.

The law: every kind of table gives the moments of the float64, C-ordered array of its numbers. Rows
are quarters of whole numbers, which float16 and decimals hold exactly.
"""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import discriminant
from discriminant import LDA, QDA, LinearRegression, moments
from discriminant.errors import LabelError
from discriminant.moments.class_moments import DETAILS

RNG = np.random.default_rng(6)
NAMES = ["u", "v", "w"]
Y = RNG.integers(0, 3, size=500)
WHOLE = RNG.integers(-20, 20, size=(500, 3)) + 5 * Y[:, None]
QUARTERS = WHOLE / 4
BITS = RNG.integers(0, 2, size=(500, 3)) | (RNG.random((500, 3)) < 0.2 * Y[:, None])


def read_only(rows):
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


def strided(rows):
    wide = np.zeros((2 * len(rows), 2 * rows.shape[1]))
    wide[::2, 1::2] = rows
    return wide[::2, 1::2]


def reversed_view(rows):
    return np.ascontiguousarray(rows[::-1, ::-1])[::-1, ::-1]


def in_big_endian(rows):
    return rows.astype(">f8")


def in_polars(rows):
    return pl.DataFrame(rows, schema=NAMES)


def in_arrow(rows):
    return in_polars(rows).to_arrow()


def in_chunks(rows):
    return pa.concat_tables([in_arrow(rows[:100]), in_arrow(rows[100:])])


def in_decimals(rows):
    return pd.DataFrame(
        {n: [decimal.Decimal(v) for v in c] for n, c in zip(NAMES, rows.T, strict=True)}
    )


def in_mixed_columns(rows):
    frame = pd.DataFrame(rows, columns=NAMES)
    return frame.astype({"u": np.float32, "v": "Float64"})


KINDS = {
    "F order": np.asfortranarray,
    "float32": lambda rows: rows.astype(np.float32),
    "float32, F order": lambda rows: np.asfortranarray(rows, dtype=np.float32),
    "float16": lambda rows: rows.astype(np.float16),
    "longdouble": lambda rows: rows.astype(np.longdouble),
    "other byte order": in_big_endian,
    "objects": lambda rows: rows.astype(object),
    "texts": lambda rows: rows.astype(str),
    "strided view": strided,
    "reversed view": reversed_view,
    "read-only": read_only,
    "nested lists": lambda rows: rows.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "csr matrix": sparse.csr_matrix,
    "lil": sparse.lil_array,
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "pandas, mixed columns": in_mixed_columns,
    "pandas, decimals": in_decimals,
    "pandas, numbered columns": pd.DataFrame,
    "polars": in_polars,
    "pyarrow": in_arrow,
    "pyarrow in chunks": in_chunks,
}
INTEGERS = {
    kind: (lambda rows, kind=kind: rows.astype(kind))
    for kind in ("i1", "i2", "i4", "i8", "u1", "u8")
} | {
    "pandas Int64": lambda rows: pd.DataFrame(rows, columns=NAMES).astype("Int64"),
    "polars Int16": lambda rows: in_polars(rows.astype("i2")),
}
BOOLEANS = {
    "bool": lambda rows: rows.astype(bool),
    "bool, csr": lambda rows: sparse.csr_array(rows.astype(bool)),
    "pandas boolean": lambda rows: pd.DataFrame(rows.astype(bool), columns=NAMES).astype("boolean"),
    "polars": lambda rows: in_polars(rows.astype(bool)),
}
TABLES = [
    *(pytest.param(QUARTERS, kind, id=name) for name, kind in KINDS.items()),
    *(pytest.param(np.abs(WHOLE), kind, id=name) for name, kind in INTEGERS.items()),
    *(pytest.param(BITS, kind, id=f"booleans: {name}") for name, kind in BOOLEANS.items()),
]


def same(ours, theirs):
    for name in ("rows", "weight", "means", "scatter"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-9
        )


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize(("rows", "kind"), TABLES)
def test_every_kind_of_table_gives_the_moments_of_its_numbers(rows, kind, detail):
    plain = discriminant.moments(np.ascontiguousarray(rows, dtype=np.float64), Y, detail=detail)
    same(discriminant.moments(kind(rows), Y, detail=detail), plain)


@pytest.mark.parametrize("model", [LDA, QDA])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_of_table_is_predicted_alike(kind, model):
    plain = model().fit(QUARTERS, Y).predict_log_proba(QUARTERS)
    found = model().fit(kind(QUARTERS), Y).predict_log_proba(kind(QUARTERS))
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_reading_leaves_the_rows_as_they_were(kind):
    given, kept = kind(QUARTERS), kind(QUARTERS.copy())
    discriminant.moments(given, Y)
    same(discriminant.moments(given, Y), discriminant.moments(kept, Y))


# --- names ------------------------------------------------------------------------------


FRAMES = {
    "pandas": lambda rows, names: pd.DataFrame(rows, columns=names),
    "polars": lambda rows, names: pl.DataFrame(rows, schema=names),
    "pyarrow": lambda rows, names: pl.DataFrame(rows, schema=names).to_arrow(),
}
OTHER = [2, 0, 1]


@pytest.mark.parametrize("names", [["u", "v", "w"], ["x0", "x1", "x2"]])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_in_another_order_are_matched_by_name(frame, names):
    fitted = LDA().fit(frame(QUARTERS, names), Y)
    mixed = frame(QUARTERS[:, OTHER], [names[j] for j in OTHER])
    assert np.array_equal(fitted.predict_proba(mixed), fitted.predict_proba(frame(QUARTERS, names)))


@pytest.mark.parametrize("fitted", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("used", FRAMES.values(), ids=FRAMES)
def test_a_model_fitted_to_one_kind_of_frame_takes_another(fitted, used):
    model = LDA().fit(fitted(QUARTERS, NAMES), Y)
    mixed = used(QUARTERS[:, OTHER], [NAMES[j] for j in OTHER])
    assert np.array_equal(model.predict(mixed), LDA().fit(QUARTERS, Y).predict(QUARTERS))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_so_are_columns_of_rows_that_are_added_later(frame):
    first, later = frame(QUARTERS[:200], NAMES), QUARTERS[200:, OTHER]
    model = LDA().partial_fit(first, Y[:200])
    model.partial_fit(frame(later, [NAMES[j] for j in OTHER]), Y[200:])
    same(model.moments_, LDA().fit(QUARTERS, Y).moments_)


def test_so_are_columns_of_rows_that_are_forgotten():
    frame = pd.DataFrame(QUARTERS, columns=NAMES)
    model = LDA().fit(frame, Y).forget(frame[["w", "u", "v"]][:100], Y[:100])
    same(model.moments_, LDA().fit(QUARTERS[100:], Y[100:]).moments_)


def test_so_are_columns_of_a_regression():
    frame, target = pd.DataFrame(QUARTERS, columns=NAMES), QUARTERS @ [1.0, -2.0, 3.0] + Y
    model = LinearRegression().partial_fit(frame[:200], target[:200])
    model.partial_fit(frame[200:][["w", "u", "v"]], target[200:])
    np.testing.assert_allclose(
        model.predict(frame[["v", "w", "u"]]), LinearRegression().fit(frame, target).predict(frame)
    )


# --- labels -----------------------------------------------------------------------------


TEXTS = np.array(["ash", "birch", "cedar"])[Y]
DAYS = [datetime.date(2020, 1, day + 1) for day in Y]
LABELS = {
    "texts": TEXTS,
    "objects": TEXTS.astype(object),
    "a list": TEXTS.tolist(),
    "a tuple": tuple(TEXTS.tolist()),
    "bytes": TEXTS.astype("S"),
    "bytes as objects": TEXTS.astype("S").astype(object),
    "a pandas series": pd.Series(TEXTS),
    "pandas strings": pd.Series(TEXTS, dtype="string"),
    "pandas categories": pd.Series(pd.Categorical(TEXTS)),
    "a categorical": pd.Categorical(TEXTS),
    "categories that are numbers": pd.Series(pd.Categorical(Y)),
    "pandas Int64": pd.Series(Y, dtype="Int64"),
    "a series with an index of its own": pd.Series(TEXTS, index=np.arange(500)[::-1]),
    "a polars series": pl.Series(TEXTS),
    "polars categories": pl.Series(TEXTS).cast(pl.Categorical),
    "a pyarrow array": pa.array(TEXTS),
    "a chunked pyarrow array": pa.chunked_array([TEXTS[:100], TEXTS[100:]]),
    "a pyarrow dictionary": pa.array(TEXTS).dictionary_encode(),
    "small integers": Y.astype(np.int8),
    "negative integers": Y - 5,
    "integers far apart": Y * 10**15,
    "unsigned integers beyond int64": Y.astype(np.uint64) + np.uint64(2**63),
    "whole floats": Y.astype(float),
    "huge floats": Y * 1e300,
    "dates": np.array(DAYS, dtype="datetime64[D]"),
    "dates as objects": DAYS,
    "whole numbers as objects": Y.astype(object),
    "whole numbers beyond any type": [2**70 + int(v) for v in Y],
    "whole numbers of both signs beyond int64": [-1 if v == 0 else 2**63 + int(v) for v in Y],
    "these as objects": np.array([-1 if v == 0 else 2**63 + int(v) for v in Y], dtype=object),
    "whole numbers and floats, beyond float64": [0.0 if v == 0 else 2**60 + int(v) for v in Y],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_any_type_tell_the_same_classes_apart(labels):
    fitted = LDA().fit(QUARTERS, labels)
    place = {label: code for code, label in enumerate(fitted.classes_.tolist())}
    found = [place[label] for label in fitted.predict(QUARTERS).tolist()]
    assert found == LDA().fit(QUARTERS, Y).predict(QUARTERS).tolist()


@pytest.mark.parametrize(
    "labels", [Y > 0, (Y > 0).tolist(), pd.Series(Y > 0, dtype="boolean"), pl.Series(Y > 0)]
)
def test_booleans_are_labels(labels):
    assert LDA().fit(QUARTERS, labels).classes_.tolist() == [False, True]


@pytest.mark.parametrize("names", [["NA", "nan", "null"], ["001", "01", "1"], ["A", "A ", "a"]])
def test_labels_that_look_alike_or_missing_stay_as_they_are(names):
    assert LDA().fit(QUARTERS, np.array(names)[Y]).classes_.tolist() == sorted(names)


@pytest.mark.parametrize(
    "labels", [[True, 2], [0, 1, True], [False, "no"], [True, 1.0, 2.0]], ids=str
)
@pytest.mark.parametrize("kind", [list, lambda values: np.array(values, dtype=object)])
def test_booleans_are_no_numbers_and_no_texts(labels, kind):
    with pytest.raises(LabelError, match=r"mixed types \(.*bool.*\).*Convert"):
        LDA().fit(QUARTERS, kind([labels[i % len(labels)] for i in Y]))


@pytest.mark.parametrize(
    ("first", "then"), [([0, 1], [True, False]), (["0", "1"], [0, 1]), ([0, 1], ["a", "b"])]
)
def test_later_rows_have_labels_of_the_same_kind(first, then):
    ours, theirs = (moments(QUARTERS, np.array(labels)[Y % 2]) for labels in (first, then))
    with pytest.raises(LabelError, match=r"mixed types .*Convert"):
        ours + theirs


def test_labels_of_two_integer_types_stay_as_many_as_they_are():
    low, high = np.array([-1, 2**62 + 1]), np.array([2**63, 2**63 + 1], dtype=np.uint64)
    found = moments(QUARTERS, low[Y % 2]) + moments(QUARTERS, high[Y % 2])
    assert found.labels.tolist() == [-1, 2**62 + 1, 2**63, 2**63 + 1]


def test_a_group_named_by_a_text_among_numbers_is_refused():
    with pytest.raises(LabelError, match=r"mixed types \(int, str\).*Convert"):
        moments(QUARTERS, Y).group({"a": [0]})


def test_a_group_named_by_a_number_keeps_the_others_numbers():
    assert moments(QUARTERS, Y).group({7: [0]}).labels.tolist() == [1, 2, 7]
