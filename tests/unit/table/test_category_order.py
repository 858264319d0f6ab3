"""Order of categories: a source that declares one keeps it, everything else is sorted.

Expected designs are R's treatment contrasts, written by hand. In R,

    size <- factor(c("mid", "low", "high", "low"), levels = c("none", "low", "mid", "high"))
    model.matrix(~ size, model.frame(~ size, drop.unused.levels = TRUE))

has columns sizemid and sizehigh: lm and glm drop unused levels, and the first level that is left is
the reference.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discriminant as dd
from discriminant import LDA, Encoded
from discriminant.engines.dispatch import read_moments
from discriminant.engines.moments_with_encoding import TableMoments
from discriminant.errors import CategoryError
from discriminant.table.encoding import Encoding, merge_encodings

LEVELS = ["none", "low", "mid", "high"]
CELLS = ["mid", "low", "high", "low", "mid", "high", "high", "low"] * 3
Y = ["b", "a", "a", "b", "a", "b", "b", "a"] * 3
TREATMENT = {"low": (0.0, 0.0), "mid": (1.0, 0.0), "high": (0.0, 1.0)}  # R, by hand
DESIGN = np.array([TREATMENT[cell] for cell in CELLS])
NAMES = ("size=mid", "size=high")
X = np.random.default_rng(0).standard_normal(len(CELLS)).round(3)

PANDAS = pd.DataFrame({"size": pd.Categorical(CELLS, categories=LEVELS), "y": Y})
POLARS = pl.DataFrame({"size": pl.Series(CELLS, dtype=pl.Enum(LEVELS)), "y": Y})
ARROW = pa.table(
    {
        "size": pa.DictionaryArray.from_arrays([LEVELS.index(c) for c in CELLS], LEVELS),
        "y": Y,
    }
)


def parquet(frame, path):
    path.mkdir(exist_ok=True)
    path = path / "rows.parquet"
    if isinstance(frame, pl.DataFrame):
        frame.write_parquet(path, row_group_size=5)
    else:
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)
        pq.write_table(table, path, row_group_size=5)
    return path


def arrow(frame, path):
    table = frame.to_arrow() if isinstance(frame, pl.DataFrame) else pa.table(frame)
    path.mkdir(exist_ok=True)
    with pa.ipc.new_file(path / "rows.arrow", table.schema) as file:
        for batch in table.to_batches(max_chunksize=5):
            file.write_batch(batch)
    return path / "rows.arrow"


@pytest.mark.parametrize("frame", [PANDAS, POLARS, ARROW], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("write", [None, parquet, arrow], ids=["memory", "parquet", "ipc"])
def test_first_category_is_the_reference_as_in_r(frame, write, tmp_path):
    source = frame if write is None else write(frame, tmp_path)
    found = dd.open_source(source, target="y", reference="first")
    assert found.encoding.features == NAMES
    assert np.array_equal(found.table.features[:], DESIGN)


@pytest.mark.parametrize("frame", [PANDAS, POLARS, ARROW], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("write", [parquet, arrow], ids=["parquet", "ipc"])
def test_partitioned_rows_have_the_order_of_rows_in_memory(frame, write, tmp_path):
    found = dd.rows(write(frame, tmp_path), target="y", reference="first")
    assert found.plan.encoding.features == NAMES
    assert found.plan.encoding == dd.open_source(frame, target="y", reference="first").encoding


def test_encoded_estimator_uses_the_first_category():
    model = Encoded(LDA(), reference="first").fit(PANDAS[["size"]], Y)
    assert model.encoding_.features == NAMES
    assert np.array_equal(model.encode(PANDAS[["size"]]), DESIGN)


def test_texts_and_polars_categoricals_are_sorted(tmp_path):
    lexical = pl.DataFrame({"size": pl.Series(CELLS, dtype=pl.Categorical), "y": Y})
    texts = pd.DataFrame({"size": CELLS, "y": Y})
    texts.to_csv(tmp_path / "rows.csv", index=False)
    files = [parquet(lexical, tmp_path / "polars"), parquet(texts, tmp_path / "pandas")]
    sources = [lexical, pa.table(lexical), texts, pl.DataFrame(texts.to_dict("list"))]
    for source in (*sources, *files, tmp_path / "rows.csv"):
        found = dd.open_source(source, target="y", reference="first").encoding
        assert found.features == ("size=low", "size=mid"), source
    for file in (*files, tmp_path / "rows.csv"):
        found = dd.rows(file, target="y", reference="first").plan.encoding
        assert found.features == ("size=low", "size=mid"), file


def test_categories_that_are_numbers_are_in_their_own_order():
    weeks = pd.DataFrame(
        {"week": pd.Categorical([2, 10, 1, 10, 2, 1] * 4), "y": list("abbaab") * 4}
    )
    found = dd.open_source(weeks, target="y", reference="first").encoding
    assert found.features == ("week=2", "week=10")  # factor(c(2, 10, 1)) has levels 1, 2, 10


def test_ordered_categories_count_unused_levels_and_enums_are_not_ordered():
    ordered = PANDAS.assign(size=pd.Categorical(CELLS, categories=LEVELS, ordered=True))
    found = dd.open_source(ordered, target="y")
    place = {"none": 0.0, "low": 1 / 3, "mid": 2 / 3, "high": 1.0}
    assert found.table.features[:][:, 0].tolist() == [place[cell] for cell in CELLS]
    assert dd.open_source(POLARS, target="y").encoding.columns[0].kind == "category"


def test_ordered_categories_keep_their_order_in_partitioned_rows(tmp_path):
    cells = ["high"] * 12 + ["low"] * 12 + ["mid"] * 12  # each row group has one of them
    frame = pd.DataFrame(
        {"size": pd.Categorical(cells, categories=LEVELS, ordered=True), "y": list("ab") * 18}
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=12)
    assert dd.rows(path, target="y").plan.encoding.columns[0].levels == tuple(LEVELS)


def files_of(tmp_path, first, second, *, ordered=False):
    for name, levels in (("1", first), ("2", second)):
        size = pd.Categorical(CELLS, categories=levels, ordered=ordered)
        PANDAS.assign(size=size).to_parquet(tmp_path / f"{name}.parquet")
    return str(tmp_path / "*.parquet")


def test_parts_that_declare_different_orders_are_sorted(tmp_path):
    found = dd.rows(files_of(tmp_path, LEVELS, LEVELS[::-1]), target="y", reference="first")
    assert found.plan.encoding.features == ("size=low", "size=mid")  # high, low, mid


def test_ordered_parts_that_differ_need_an_order(tmp_path):
    source = files_of(tmp_path, LEVELS, LEVELS[::-1], ordered=True)
    with pytest.raises(CategoryError, match=r"'size'.*different orders.*ordered="):
        dd.rows(source, target="y")
    found = dd.rows(source, target="y", ordered={"size": LEVELS})
    assert found.plan.encoding.columns[0].levels == tuple(LEVELS)


def encoding(levels, cells):
    frame = pd.DataFrame(
        {
            "x": X[: len(cells)],
            "size": pd.Categorical(cells, categories=levels),
            "y": Y[: len(cells)],
        }
    )
    return dd.open_source(frame, target="y", reference=None).encoding


ONE = encoding(LEVELS, ["high", "mid"] * 4)
TWO = encoding(LEVELS, ["low", "high"] * 4)
OTHER = encoding(LEVELS[::-1], ["low", "high"] * 4)
CONSTANT = encoding(LEVELS, ["low"] * 8)
THREES = [
    (ONE, TWO, CONSTANT),
    (ONE, OTHER, TWO),
    (CONSTANT, ONE, OTHER),
    (CONSTANT, CONSTANT, ONE),
]


@pytest.mark.parametrize("one, two, three", THREES)
def test_merging_orders_is_associative_and_commutative(one, two, three):
    def merged(left, right):
        return merge_encodings(left, right).encoding

    def facts(encoding):
        size = encoding.columns[1]
        return size.levels, size.features, size.order

    found = {
        facts(merged(merged(one, two), three)),
        facts(merged(one, merged(two, three))),
        facts(merged(three, merged(two, one))),
    }
    assert len(found) == 1


def test_merge_keeps_a_common_order_and_sorts_different_ones():
    assert merge_encodings(ONE, TWO).encoding.columns[1].levels == ("low", "mid", "high")
    assert merge_encodings(ONE, OTHER).encoding.columns[1].levels == ("high", "low", "mid")


def test_merged_moments_equal_a_single_pass():
    whole = pd.DataFrame({"x": X, "size": PANDAS["size"], "y": Y})
    parts = [whole.iloc[:7], whole.iloc[7:]]  # slices keep the categories

    def moments(frame):
        opened = dd.open_source(frame, target="y", reference=None)
        return TableMoments.from_moments(
            read_moments(opened.table, detail="class"), opened.encoding
        )

    merged, single = moments(parts[0]) + moments(parts[1]), moments(whole)
    assert merged.features == single.features == ("x", "size=low", "size=mid", "size=high")
    np.testing.assert_allclose(merged.within(), single.within(), atol=1e-12)


def test_encoding_with_an_order_survives_json():
    assert Encoding.from_dict(ONE.to_dict()) == ONE


def test_classes_are_sorted_whatever_the_order_of_the_labels():
    # scikit-learn's contract: classes_ is sorted, as np.unique sorts.
    order = ["c", "a", "b"]
    y = pd.Categorical(list("abc") * 8, categories=order, ordered=True)
    frame = pd.DataFrame({"x": X, "z": X**2, "y": y})
    labels = [y, pd.Series(y), pl.Series(list("abc") * 8, dtype=pl.Enum(order))]
    for one in labels:
        assert LDA().fit(frame[["x", "z"]], one).classes_.tolist() == ["a", "b", "c"]
    assert dd.open_source(frame, target="y").table.schema.labels.tolist() == ["a", "b", "c"]
