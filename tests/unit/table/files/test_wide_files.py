"""Files that are wide, or oddly encoded, are read in linear time or refused with their line."""

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant import LDA, Encoded
from discriminant.cli.run import run as main
from discriminant.errors import FileError
from discriminant.table.blocks import Schema
from discriminant.table.column_types import ReadOptions
from discriminant.table.files.formats import detect_format
from discriminant.table.memory import as_features

READERS = [dd.open_source, dd.rows]


def wide(path, columns, rows=6):
    values = np.random.default_rng(0).standard_normal((rows, columns)).round(3)
    lines = [",".join([*map(str, row), "ab"[i % 2]]) for i, row in enumerate(values)]
    path.write_text("\n".join([",".join([*(f"g{j}" for j in range(columns)), "y"]), *lines]) + "\n")
    return path, values


@pytest.mark.filterwarnings("ignore::discriminant.errors.NamesUncheckedWarning")
def test_a_table_of_10000_columns_is_fitted_and_saved(tmp_path):
    path, values = wide(tmp_path / "wide.csv", 10_000)
    out = tmp_path / "wide.model"
    assert main(["fit", str(path), "--target", "y", "--model", "lda", "--out", str(out)]) == 0
    model = dd.load(out)
    with pytest.warns(dd.errors.DiscriminantWarning, match="rank"):
        want = LDA().fit(values, list("ababab"))
    np.testing.assert_allclose(
        model.estimator_.decision_function(values), want.decision_function(values)
    )


def test_the_kinds_of_a_wide_table_are_judged_from_several_rows(tmp_path):
    # A header longer than the sample: without rows in it, columns would be read as texts.
    names = [f"a_rather_long_name_of_a_column_{j}" for j in range(40_000)]
    path = tmp_path / "wide.csv"
    row = ",".join(["1.5"] * len(names))
    path.write_text("\n".join([",".join([*names, "y"]), *(f"{row},{c}" for c in "ab")]) + "\n")
    assert set(detect_format(path).dialect.kinds[:-1]) == {"number"}


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_columns_are_chosen_in_linear_time():
    names = [CountedName(f"g{j}") for j in range(2000)]
    wishes = ReadOptions("g5", columns=tuple(names[::2]), exclude=("g6",))
    CountedName.compared = 0
    wishes.check_names(names)
    found = wishes.columns_to_read(names)
    assert len(found) == 1000 and "g5" in found and "g6" not in found
    assert CountedName.compared < 20 * len(names)  # a search in lists makes a million comparisons


def test_an_encoding_stores_only_what_is_not_the_default():
    model = Encoded(LDA()).fit(pd.DataFrame({"x": [1.0, 2, 3, 5]}), list("aabb"))
    assert model.encoding_.to_dict()["columns"] == (
        {"name": "x", "kind": "number", "features": ("x",)},
    )


# --- encodings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_several_byte_order_marks_are_skipped(read, encoding, ending, tmp_path):
    rows = [(i / 7, "ab"[i % 2]) for i in range(30)]
    text = "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows)
    if ending == "jsonl":
        text = "".join(f'{{"x": {x}, "y": "{y}"}}\n' for x, y in rows)
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(("\ufeff\ufeff" + text).encode(encoding))
    found = read(path, target="y")
    assert found.width == 1 if read is dd.rows else found.table.schema.features == ("x",)


MIXED = {
    "text among numbers": ('{"x": "foo", "y": "a"}', "the text 'foo', and a number"),
    "truth value among numbers": ('{"x": true, "y": "a"}', "a truth value, and a number"),
    "list among numbers": ('{"x": [1], "y": "a"}', "a list, and a number"),
    "no object": ("[1, 2]", "a list, not an object"),
    "no JSON": ('{"x": 1', "no JSON"),
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("line, reason", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("place", [3, 31])
def test_json_lines_of_mixed_types_are_refused_with_their_line(read, line, reason, place, tmp_path):
    lines = [f'{{"x": {i / 7}, "y": "{"ab"[i % 2]}"}}' for i in range(40)]
    lines[place - 1] = line
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(FileError, match=rf"rows\.jsonl, line {place}: .*{reason}"):
        read(path, target="y")


def test_columns_of_a_wide_frame_are_matched_by_name():
    names = [f"g{j}" for j in range(20_000)]
    frame = pd.DataFrame(np.eye(4, 20_000), columns=names)
    found = as_features(frame, match=Schema(tuple(names[::-1]), np.array(["a"]), True))
    assert found[1] == tuple(names[::-1])
