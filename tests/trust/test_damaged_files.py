"""Files damaged at every byte: each is refused, or says what it said."""

import gzip
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import discriminant as dd
from discriminant.errors import DiscriminantError, StoredFileError
from tests.shared.stored import differences

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(12, 2)).round(2)
MODEL = dd.LDA().fit(ROWS, np.repeat(["a", "b"], 6))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "model.dd"


@pytest.fixture
def content(place):
    """A small model, as bytes."""
    MODEL.save(place)
    return place.read_bytes()


def test_a_model_cut_at_any_byte_is_refused_with_that_byte(content, place):
    for size in range(len(content)):
        place.write_bytes(content[:size])
        with pytest.raises(StoredFileError, match=f"damaged at byte {size:,}:"):
            dd.load(place)


CHANGES = {
    "one bit": lambda byte, at: byte ^ 1 << at % 8,
    "all bits": lambda byte, at: byte ^ 255,
    "zero": lambda byte, at: 0,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_with_any_byte_changed_is_refused(content, place, change):
    accepted = []
    for at, byte in enumerate(content):
        new = CHANGES[change](byte, at)
        if new == byte:
            continue
        place.write_bytes(content[:at] + bytes([new]) + content[at + 1 :])
        try:
            dd.load(place, mmap=at % 5 == 0)
            accepted.append(at)
        except StoredFileError:
            pass
    assert accepted == []


def test_a_model_with_bytes_put_in_taken_out_or_moved_is_refused(content, place):
    draw, accepted = random.Random(0), []
    for turn in range(1000):
        a, b, c = sorted(draw.sample(range(len(content) + 1), 3))
        made = {
            0: content[:a] + draw.randbytes(1 + a % 40) + content[a:],
            1: content[:a] + content[b:],
            2: content[:a] + content[b:c] + content[a:b] + content[c:],
            3: content[:a] + content[a:b] * 2 + content[b:],
        }[turn % 4]
        place.write_bytes(made)
        try:
            if differences(dd.load(place), MODEL):
                accepted.append((turn, a, b, c))
        except StoredFileError:
            pass
    assert accepted == []


# --- tables --------------------------------------------------------------------------------------

TEXT = "a,b,when,y\n" + "".join(
    f'{x},{y},2020-01-{i + 1:02d},"{"pq"[i % 2]}"\n' for i, (x, y) in enumerate(ROWS.tolist())
)
ODD = [
    *(b"\0", b'"', b"'", b"\r", b"\n", b",", b";", b"\t", b"|", b"{", b"[", b"-", b""),
    *(b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xff\xfe", b"PAR1", b"\x1f\x8b", "\u2028".encode()),
    *(b"NA", b"1e999", b"inf"),
]


@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(TEXT)), st.integers(0, 12), st.sampled_from(ODD)),
        min_size=1,
        max_size=6,
    )
)
def test_a_csv_with_anything_put_anywhere_is_read_or_refused(edits, tmp_path_factory):
    content = TEXT.encode()
    for at, taken, put in edits:
        content = content[:at] + put + content[at + taken :]
    path = tmp_path_factory.getbasetemp() / "edited.csv"
    path.write_bytes(content)
    try:
        dd.open_source(path, target="y")
    except DiscriminantError as told:
        assert len(str(told)) > 20


def test_a_gzip_file_with_any_byte_changed_is_refused_or_says_what_it_said(tmp_path):
    content, wrong = gzip.compress(TEXT.encode(), mtime=0), []
    honest = dd.open_source(_written(tmp_path, content), target="y")
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        try:
            found = dd.open_source(_written(tmp_path, bytes(changed)), target="y")
        except DiscriminantError:
            continue
        if not _same(found, honest):
            wrong.append(at)
    assert wrong == []


def test_a_parquet_file_with_any_byte_changed_is_refused_or_says_what_it_said(tmp_path):
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(y=["p", "q"] * 6)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, write_page_checksum=True)
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            dd.open_source(path, target="y")
        except DiscriminantError as told:
            assert str(path) in str(told) or "'y'" in str(told)


def _written(folder, content):
    path = folder / "rows.csv.gz"
    path.write_bytes(content)
    return path


def _same(one, other):
    return (
        one.encoding.features == other.encoding.features
        and np.array_equal(one.table.codes, other.table.codes)
        and all(
            np.array_equal(a, b)
            for a, b in zip(one.table.features.columns, other.table.features.columns, strict=True)
        )
    )
