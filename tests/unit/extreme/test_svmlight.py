"""XMC text and svmlight: read, written, and refused with the line that is wrong."""

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from discriminant.errors import (
    FileError,
    LabelSetError,
    MoreFeaturesWarning,
    ShapeError,
    SparseFileError,
)
from discriminant.table.files.svmlight import (
    NumberRanges,
    concatenate_rows,
    parse_each_line,
    parse_lines,
    read_matrix,
    read_svmlight,
    read_xmc,
    scan_block,
    svmlight_blocks,
    write_svmlight,
    write_xmc,
    xmc_blocks,
)


def same(one, two):
    return one.shape == two.shape and (one != two).nnz == 0


def drawn(seed, dtype=np.float32, n=12, d=9, labels=6):
    """Rows of which some have no features and some no labels."""
    rng = np.random.default_rng(seed)
    x = sparse.random(n, d, 0.3, "csr", dtype, rng, data_rvs=rng.standard_normal)
    y = sparse.csr_matrix((rng.random((n, labels)) < 0.3).astype(dtype))
    return x, y


@pytest.fixture
def file(tmp_path):
    def written(text, name="rows.txt"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / name

    return written


# --- reading and writing --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.txt.xz"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=15)
@given(seed=st.integers(0, 999))
def test_what_is_written_as_xmc_text_is_read_back_to_the_last_bit(
    tmp_path_factory, name, dtype, seed
):
    x, y = drawn(seed, dtype)
    path = tmp_path_factory.mktemp("xmc") / name
    write_xmc(path, x, y)
    found = read_xmc(path, dtype=dtype)
    assert same(found.features, x) and same(found.labels, y)


@settings(max_examples=15)
@given(seed=st.integers(0, 999), size=st.integers(1, 300))
def test_the_size_of_a_block_changes_nothing(tmp_path_factory, seed, size):
    x, y = drawn(seed)
    path = tmp_path_factory.mktemp("xmc") / "rows.txt"
    write_xmc(path, x, y)
    blocks = list(xmc_blocks(path, size=size))
    found = concatenate_rows(blocks)
    assert [block.start for block in blocks] == np.cumsum([0, *map(len, blocks)])[:-1].tolist()
    assert same(found.features, x) and same(found.labels, y)


def test_the_format_as_its_authors_describe_it(file):
    found = read_xmc(file("3 4 5\n0,4 1:0.5 3:2\n 0:1e-3\n2\n"))
    assert found.features.toarray().tolist() == [
        [0, 0.5, 0, 2],
        [np.float32(1e-3), 0, 0, 0],
        [0, 0, 0, 0],
    ]
    assert found.labels.toarray().tolist() == [[1, 0, 0, 0, 1], [0] * 5, [0, 0, 1, 0, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "2 3 4\r\n1,3 0:1 2:5\r\n2 1:3\r\n",
        "2 3 4\n1,3 0:1 2:5\n2 1:3",
        "2 3 4\n1,3\t0:1\t2:5\n2 1:3\n\n\n",
        "2 3 4\n3,1 2:5 0:1\n2  1:3 \n",
        "2 3 4\n 1,3 0:1 2:5\n2 1:+3\n",
    ],
    ids=["windows", "no last line end", "tabs, empty lines after", "any order", "spaces before"],
)
def test_what_differs_in_looks_only_is_read_alike(file, text):
    found = read_xmc(file(text))
    assert found.features.toarray().tolist() == [[1, 0, 5], [0, 3, 0]]
    assert found.labels.toarray().tolist() == [[0, 1, 0, 1], [0, 0, 1, 0]]


def test_a_file_of_no_rows_has_its_columns(file):
    found = read_xmc(file("0 7 3\n"))
    assert (found.features.shape, found.labels.shape) == ((0, 7), (0, 3))


def test_features_and_labels_in_two_files_are_joined(file):
    found = read_xmc(file("2 3\n0:1 2:5\n1:3\n", "x"), labels=file("2 4\n1:1 3:1\n2:1\n", "y"))
    assert found.features.toarray().tolist() == [[1, 0, 5], [0, 3, 0]]
    assert found.labels.toarray().tolist() == [[0, 1, 0, 1], [0, 0, 1, 0]]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_packed_files_are_known_by_their_bytes_not_their_names(file, pack):
    found = read_xmc(file(pack(b"1 2 2\n1 0:3\n")))
    assert found.features.toarray().tolist() == [[3, 0]]


@pytest.mark.parametrize(
    ("name", "rows", "features", "labels"),
    [("bibtex", 4880, 1836, 159), ("delicious", 12920, 500, 983), ("rcv1sub1", 3000, 47236, 101)],
)
def test_real_sets_have_the_sizes_that_are_published(shared_data, name, rows, features, labels):
    found = read_xmc(shared_data / "xmc" / "mldr" / f"{name}_train.txt.xz")
    assert (found.features.shape, found.labels.shape) == ((rows, features), (rows, labels))


# --- the two readers of lines ---------------------------------------------------------------------

_token = st.sampled_from(
    ["1", "3", "0", "12", "1,2", "2,1", "1:2", "0:0.5", "2:1e3", "4:-1", "1:nan", "3:", ":4", "x"]
)
_line = st.lists(_token, max_size=4).map(" ".join)


@settings(max_examples=400)
@given(lines=st.lists(_line, min_size=1, max_size=4), lead=st.sampled_from(["", " "]))
def test_a_block_read_at_once_is_the_block_read_line_by_line(lines, lead):
    text = "".join(lead + line + "\n" for line in lines).encode()
    bounds = NumberRanges("rows.txt", labels=9, features=9)
    try:
        slow = parse_each_line(text, bounds, line=1)
    except SparseFileError as fault:
        with pytest.raises(SparseFileError) as told:
            parse_lines(text, bounds, line=1)
        assert str(told.value) == str(fault)
        return
    fast = parse_lines(text, bounds, line=1)
    for name in ("label_ends", "label", "feature_ends", "feature", "value"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist()


def test_plain_lines_are_read_at_once():
    assert len(scan_block(b"3,4 0:1 7:-0.5e-3\n 2:1\n\n12\n")) == 4


# --- svmlight -------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(seed=st.integers(0, 999), zero=st.booleans())
def test_svmlight_is_read_as_scikit_learn_reads_it(tmp_path_factory, seed, zero):
    x, _ = drawn(seed, np.float64)
    y = np.random.default_rng(seed).choice([-1.0, 1.0, 2.5], x.shape[0])
    path = str(tmp_path_factory.mktemp("svm") / "rows.svm")
    dump_svmlight_file(x, y, path, zero_based=zero, comment="made by another")
    theirs = load_svmlight_file(path)
    ours = read_svmlight(path)
    assert same(ours[0], sparse.csr_matrix(theirs[0])) and (ours[1] == theirs[1]).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 999), first=st.sampled_from([0, 1]))
def test_scikit_learn_reads_what_is_written_as_svmlight(tmp_path_factory, seed, first):
    x, _ = drawn(seed, np.float64)
    y = np.random.default_rng(seed).choice([-1.0, 1.0, 2.5], x.shape[0])
    path = str(tmp_path_factory.mktemp("svm") / "rows.svm")
    write_svmlight(path, x, y, first=first)
    theirs = load_svmlight_file(path, n_features=x.shape[1], zero_based=first == 0)
    assert same(sparse.csr_matrix(theirs[0]), x) and (theirs[1] == y).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 999))
def test_sets_of_labels_go_through_svmlight(tmp_path_factory, seed):
    x, y = drawn(seed, np.float64)
    some = (np.diff(x.indptr) + np.diff(y.indptr)) > 0
    path = tmp_path_factory.mktemp("svm") / "rows.svm"
    write_svmlight(path, x[some], y[some])
    found = read_svmlight(path, many=True, features=x.shape[1], labels=y.shape[1], first=1)
    assert same(found[0], x[some]) and same(found[1], y[some])


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_in_blocks_is_svmlight_at_once(tmp_path, first):
    rng = np.random.default_rng(4)
    x = sparse.random_array((300, 30), density=0.2, format="csr", rng=rng)
    y = sparse.csr_array(sparse.random_array((300, 9), density=0.3, format="csr", rng=rng) > 0)
    some = (np.diff(x.indptr) > 0) | (np.diff(y.indptr) > 0)
    path = tmp_path / "rows.svm"
    write_svmlight(path, x[some], y[some], first=first)
    blocks = [block for block, _ in svmlight_blocks(path, features=30, size=200)]
    whole = read_svmlight(path, features=30, many=True, dtype=np.float32)
    found = concatenate_rows(blocks)
    assert len(blocks) > 20 and {block.labels.shape[1] for block in blocks} == {9}
    assert (found.features != whole[0]).nnz == 0 and (found.labels != whole[1]).nnz == 0


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_a_fault_of_svmlight_in_blocks_is_told_with_its_line(file, size):
    path = file("0 1:1\n1 2:1\n\n0 9:1\n")
    with pytest.raises(SparseFileError, match=r"line 4: feature 9, but there are 3"):
        list(svmlight_blocks(path, features=3, size=size))


def test_a_label_with_a_plus_is_the_label_without(file):
    signed, plain = file("+1,3 1:2\n+0 2:5\n+1\n"), file("1,3 1:2\n0 2:5\n1\n", "plain.txt")
    found, wanted = read_svmlight(signed, many=True), read_svmlight(plain, many=True)
    assert all(map(same, found, wanted))


def test_comments_queries_and_empty_lines_are_no_part_of_svmlight_rows(file):
    x, y = read_svmlight(file("# by hand\n+1 qid:3 1:2 3:4 # good\n\n-1 2:5\n"))
    assert (x.toarray().tolist(), y.tolist()) == ([[2, 0, 4], [0, 5, 0]], [1.0, -1.0])


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 0:1\n", r"line 1: the header should be 'rows features labels'.*'1 0:1'"),
        ("1 2\n0 0:1\n", r"line 1: the header should be"),
        ("-1 2 3\n", r"line 1: the header should be"),
        ("3 2 2\n0 0:1\n1 1:1\n", r"states 3 rows, but the file ends after 2"),
        ("1 2 2\n0 0:1\n\n1 1:1\n", r"line 4: one row more than the 1 "),
        ("2 2 2\n0 0:1\n2 1:1\n", r"line 3: label 2, but there are 2 labels, 0 to 1"),
        ("2 2 2\n0 0:1\n1 2:1\n", r"line 3: feature 2, but there are 2 features, 0 to 1"),
        ("", r"is empty: it should begin with a header, 'rows features labels'"),
        ("\n1 0:1\n", r"line 1: the header should be 'rows features labels'.* is ''"),
        ("1 2 2\n-1 0:1\n", r"line 2: label '-1', but labels are numbers counted from 0"),
        ("1 2 2\n+1 0:1\n", r"line 2: '\+1' instead of the number of a label"),
        ("1 2 2\n0.0 0:1\n", r"line 2: '0.0' instead of the number of a label"),
        ("1 2 2\n1 -1:1\n", r"line 2: '-1' instead of the number of a feature"),
        ("1 2 2\n1,0,1 0:1\n", r"line 2: label 1 occurs twice"),
        ("1 2 2\n1 1:1 0:2 1:1\n", r"line 2: feature 1 occurs twice"),
        ("1 2 2\n1 0:nan\n", r"line 2: feature 0 is 'nan', which is not a finite number"),
        ("1 2 2\n1 0:1e999\n", r"line 2: feature 0 is '1e999', which is not a finite"),
        ("1 2 2\n1 0:1,5\n", r"line 2: '0:1,5' instead of feature:value"),
        ("1 2 2\n1 0:\n", r"line 2: '0:' instead of feature:value"),
        ("1 2 2\n1, 0 0:1\n", r"line 2: '' instead of the number of a label"),
        ("1 2 2\n1 0 0:1\n", r"line 2: '0' instead of feature:value"),
        ("1 2 2\n1 0:1_0\n", r"line 2: '0:1_0' instead of feature:value"),
        ("1 2 2\ncat 0:1\n", r"line 2: 'cat' instead of the number of a label"),
        ("1 2 2\n99999999999 0:1\n", r"line 2: '99999999999' instead of the number of a label"),
        ("1 2 2\n1 0:1\0\n", r"line 2: '0:1\\x00' instead of"),
        ("1 2 0\n1 0:1\n", r"line 2: label 1, but there are 0 labels"),
    ],
    ids=repr,
)
def test_a_fault_is_told_with_its_line_and_what_stands_there(file, text, words):
    with pytest.raises(SparseFileError, match=words):
        read_xmc(file(text))


def test_a_fault_far_down_is_told_with_the_line_of_the_file(file):
    lines = ["2000 5 5", *(f"{i % 5} {i % 5}:1.5" for i in range(1998)), "7 1:1", "1 1:1"]
    path = file("\n".join(lines))
    with pytest.raises(SparseFileError, match=r"line 2000: label 7"):
        concatenate_rows(xmc_blocks(path, size=100))


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1 1:2\n1,2 1:3\n", {}, r"line 2: 2 labels, but each row should have one.*many=True"),
        ("1 1:2\n 1:3\n", {}, r"line 2: 0 labels"),
        ("1 1:2\n1 4:3\n", {"features": 3}, r"line 2: feature 4, but there are 3 .* 1 to 3"),
        ("1 1:2\n1 0:3\n", {"first": 1}, r"line 2: feature 0, but there are"),
        ("1 1:2\n4 1:3\n", {"many": True, "labels": 3}, r"line 2: label 4, but there are 3"),
        ("nan 1:2\n", {}, r"line 1: 'nan' instead of a label, a finite number,"),
        ("-1 1:2\n", {"many": True}, r"line 1: label '-1', but labels are numbers counted from 0"),
        ("++1 1:2\n", {"many": True}, r"line 1: '\+\+1' instead of the number of a label"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else repr(value),
)
def test_faults_of_svmlight_are_told_with_their_line(file, text, options, words):
    with pytest.raises(SparseFileError, match=words):
        read_svmlight(file(text), **options)


def test_files_of_features_and_labels_of_different_length_are_told_apart(file):
    with pytest.raises(SparseFileError, match=r"x has 2 rows but .*y has 1"):
        read_xmc(file("2 3\n0:1\n1:3\n", "x"), labels=file("1 4\n1:1\n", "y"))


def test_rows_and_labels_of_different_length_are_not_written(tmp_path):
    with pytest.raises(ShapeError, match=r"labels has 2 entries for 3 rows"):
        write_xmc(tmp_path / "rows.txt", np.eye(3), np.eye(2))
    assert not list(tmp_path.iterdir())


def test_a_row_of_nothing_is_not_written_as_svmlight(tmp_path):
    with pytest.raises(SparseFileError, match=r"row 1 has neither labels nor features"):
        write_svmlight(tmp_path / "rows.svm", np.diag([1, 0, 1]), np.diag([1, 0, 1]))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_a_packed_file_that_was_cut_off_is_told_as_such(file, pack):
    rng = np.random.default_rng(0)
    rows = "".join(f"1 0:{value}\n" for value in rng.random(500))
    whole = pack(f"500 2 2\n{rows}".encode())
    with pytest.raises(FileError, match="incomplete"):
        read_xmc(file(whole[: len(whole) // 2]))


def test_a_bomb_of_xz_is_not_unpacked(file):
    packed = lzma.compress(b"1 2 2\n1 " + b" " * (1 << 25))
    with pytest.raises(FileError, match="bomb"):
        read_xmc(file(packed))


def test_a_matrix_alone_is_read_in_its_shape(file):
    assert read_matrix(file("2 4\n1:2\n\n")).toarray().tolist() == [[0, 2, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("write", [write_xmc, write_svmlight])
def test_what_no_reader_takes_is_not_written(tmp_path, write):
    path, Y = tmp_path / "rows.txt", sparse.csr_matrix([[1, 0], [0, 1]])
    with pytest.raises(SparseFileError, match=r"row 1, feature 0 .* is nan"):
        write(path, np.array([[1.0, 0.0], [np.nan, 2.0]]), Y)
    with pytest.raises(LabelSetError, match=r"y\[1, 1\] is 0.3"):
        write(path, np.eye(2), np.array([[1, 0], [0, 0.3]]))
    assert not path.exists()


def test_names_of_labels_are_not_written_as_xmc(tmp_path):
    with pytest.raises(LabelSetError, match="MultiLabelBinarizer"):
        write_xmc(tmp_path / "rows.txt", np.eye(2), [{"a"}, {"b"}])


def test_features_beyond_those_asked_for_are_left_out_and_told(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("0 1:1 9:2\n1 2:3\n1 8:1 3:4\n")
    with pytest.warns(MoreFeaturesWarning, match=r"up to 9, but the model knows 3, 1 to 3"):
        [(block, rows)] = svmlight_blocks(path, features=3, more="drop")
    assert rows == 3
    assert block.features.toarray().tolist() == [[1, 0, 0], [0, 3, 0], [0, 0, 4]]
    with pytest.raises(SparseFileError, match="line 1: feature 9"):
        list(svmlight_blocks(path, features=3))


def test_the_mark_that_some_writers_begin_with_is_no_part_of_the_header(tmp_path):
    (tmp_path / "rows.txt").write_bytes("\ufeff1 2 2\n1 0:1\n".encode())
    assert read_xmc(tmp_path / "rows.txt").labels.toarray().tolist() == [[0, 1]]


def test_a_header_that_tells_of_too_much_is_named(tmp_path):
    (tmp_path / "rows.txt").write_text("1 40000000000 2\n1 0:1\n")
    with pytest.raises(SparseFileError, match="line 1: the header states 40,000,000,000"):
        read_xmc(tmp_path / "rows.txt")


def test_labels_that_are_minus_one_are_told_the_way_out(tmp_path):
    (tmp_path / "rows.svm").write_text("+1 1:1\n-1 2:1\n")
    with pytest.raises(SparseFileError, match=r"line 2: label '-1'.* write 0 instead of -1"):
        read_svmlight(tmp_path / "rows.svm", many=True)
    assert read_svmlight(tmp_path / "rows.svm")[1].tolist() == [1, -1]
