"""Bad input as the command line meets it: the folder, the command, its code and what it must say.

Every folder has a good table (good.csv: 40 rows, numbers a and b, text c, label y), a model of it
(good.model: LDA), its moments, and old files that a command would replace (out.model, out.csv,
out.html). A case adds one bad thing, t.csv unless it says otherwise. Lines are counted
from 1, rows from 0.
"""

# ruff: noqa: E501 -- a table of cases is read line by line

import gzip
import json
import os
import pickle
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.shared.stored import signed, taken_apart
from tests.trust.cases.running import GOOD
from tests.trust.cases.tables import (
    UUID,
    X,
    arrow,
    cell,
    csv,
    cut_gzip,
    flipped,
    labels,
    linked,
    more,
    parquet,
    pipe,
)

BAD_INPUT, DONE, NOT_CONVERGED = 2, 0, 3
FIT = "fit t.csv --target y --model lda --out out.model"
STRICT = "predict good.model t.csv --out out.csv"


@dataclass(frozen=True)
class Command:
    """One bad thing, the command that meets it, and what must come of it."""

    number: int
    what: str
    given: Any  # text or bytes of t.csv; or a function of the folder; None: what is there already
    words: str  # pattern of what must be said
    run: str = FIT
    code: int = BAD_INPUT
    dangerous: bool = False  # its time and memory are measured, in a process of its own


def good(**columns):
    """The good table with other columns, as text."""
    return GOOD.assign(**columns).to_csv(index=False)


def without(name):
    return GOOD.drop(columns=name).to_csv(index=False)


def stored(change):
    """A function that writes bad.model: the good one, its bytes changed."""

    def write(folder):
        (folder / "bad.model").write_bytes(change((folder / "good.model").read_bytes()))

    return write


def forged(change):
    """The same, taken apart, changed and signed again."""

    def whole(content):
        header, manifest, arrays = taken_apart(content)
        return signed(*change(header, manifest, arrays))

    return stored(whole)


def _terabyte(header, manifest, arrays):
    name = next(key for key in header if key != "__metadata__")
    header[name] = {"dtype": "F64", "shape": [125_000_000_000], "data_offsets": [0, 10**12]}
    return header, manifest, arrays


def _later(header, manifest, arrays):
    header["__metadata__"] |= {"version": "7", "package": "9.1"}
    return header, manifest, arrays


def _not_a_number(header, manifest, arrays):
    _, stop = next(v for k, v in header.items() if k.endswith(".coef"))["data_offsets"]
    nan = np.array([np.nan]).tobytes()
    return header, manifest, arrays[: stop - 8] + nan + arrays[stop:]


def _twice(content):
    header, manifest, arrays = taken_apart(content)
    text = json.dumps(header, separators=(",", ":"))
    text = text.replace('"kind":', '"kind":"LDA","kind":', 1)
    return signed(header, manifest, arrays, text=text)


class _Runs:
    """Makes a folder when it is opened as a pickle."""

    def __reduce__(self):
        return os.makedirs, ("was run",)


def _pickled(folder):
    (folder / "bad.model").write_bytes(pickle.dumps(_Runs()))


def _joblib(folder):
    joblib.dump(_Runs(), folder / "bad.model", compress=3)


def _npy(folder):
    with open(folder / "bad.model", "wb") as file:
        np.save(file, np.array([_Runs()], dtype=object), allow_pickle=True)


def bomb(folder, size=200_000_000):
    """t.csv.gz: some 200 kB that are 200 MB."""
    with gzip.open(folder / "t.csv.gz", "wb") as file:
        file.write(b"a,b,y\n")
        for _ in range(size // 6_000_000):
            file.write(b"0,0,p\n" * 1_000_000)


def wide(folder):
    """t.csv: 12 rows of 40 columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((12, 40)).round(4)).add_prefix("x")
    frame.assign(y=["p", "q"] * 6).to_csv(folder / "t.csv", index=False)


def separated(folder):
    rows = [f"{i}.5,{'p' if i < 20 else 'q'}" for i in range(40)]
    (folder / "t.csv").write_text("\n".join(["a,y", *rows]) + "\n")


def durations(folder):
    pq.write_table(
        pa.table({"k": pa.array(range(40), pa.duration("s")), "y": GOOD.y.tolist()}),
        folder / "t.parquet",
    )


def changed(name, **columns):
    """A Parquet file of the good table with other columns."""
    return lambda folder: GOOD.assign(**columns).to_parquet(folder / name)


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def nothing(folder):
    (folder / "t.csv").mkdir()


PLACE = r"Row 8 \(counted from 0, line 10 of the file\), column 'b': "
LOGISTIC = "fit t.csv --target y --model logistic_ml --out out.model"
WEIGH = FIT + " --weight w"
BAD = "predict bad.model good.csv --out out.csv"
TREE = "fit good.csv --target y --model label-tree --out out.model --with 'tree={}'"
COSTS = "fit good.csv --target y --model lda --out out.model --cost '{}'"
REJECT = "fit good.csv --target y --model lda --out out.model --reject {}"
PARQUET = FIT.replace("t.csv", "t.parquet")
ARROW = FIT.replace("t.csv", "t.arrow")
ASSESS = "assess good.model t.csv"
COMPARE = "compare t.csv --target y --models lda,qda"
weights = lambda value, rows=(5,): good(w=[value if row in rows else 1.0 for row in range(40)])  # noqa: E731

COMMANDS = [
    Command(1, "an empty cell", cell(""), PLACE + r"missing \(1 row\(s\) in 1 column\(s\) in total\).*--missing drop"),
    Command(1, "an empty cell at predict", good(b=np.where(np.arange(40) == 8, np.nan, X[:, 1])), r"Row 8 .*line 10 .*column 'b': missing \(1 row.*fit the model again with --missing mean", STRICT),
    Command(2, "1e400", cell("1e400"), PLACE + r"the text '1e400'.*too large for float64.*Correct or drop"),
    Command(2, "inf", cell("-inf"), PLACE + r"the text '-inf' is infinity.*Correct or drop"),
    Command(3, "12,5 among numbers", cell('"12,5"'), PLACE + r"the text '12,5' is not a number.*decimal comma"),
    Command(3, "n/a among numbers", cell("n/a"), PLACE + r"the text 'n/a' is not a number.*missing"),
    Command(4, "a file of decimal commas", csv(sep=";", dec=","), r"Read as CSV: fields separated by semicolons, decimal comma", code=DONE),
    Command(5, "hexadecimal", cell("0xFF"), PLACE + r"the text '0xFF' is not a number.*Hexadecimal"),
    Command(5, "underscores", cell("1_000"), PLACE + r"the text '1_000' is not a number.*grouped by '_'"),
    Command(5, "TRUE", cell("TRUE"), PLACE + r"the text 'TRUE' is not a number.*truth value"),
    Command(6, "integers beyond 2**53", more("k", lambda i: str(2**60 + 7919 * i * i)), r"Warning: Column\(s\) 'k' .*2\*\*53.*Drop", code=DONE),
    Command(6, "integers that float64 merges", more("k", lambda i: str(2**60 + 7 * i * i)), r"Column 'k' is set aside: 40 texts, all different", code=DONE),
    Command(7, "durations in Parquet", durations, r"Column 'k' has type duration.*exclude", PARQUET),
    Command(7, "lists in Parquet", changed("t.parquet", k=[[1]] * 40), r"Column 'k' has type list.*exclude", PARQUET),
    Command(8, "a column of categories", good(), r"LDA fitted to 40 rows of 4 features", code=DONE),
    Command(9, "an unseen category", good(c=["u"] * 8 + ["z"] * 32), r"Row 8 .*line 10 .*column 'c': the category 'z' was not seen.*32 such row\(s\).*'u', 'v', 'w'.*--unseen ignore", STRICT),
    Command(10, "an unseen class", good(y=["p"] * 20 + ["r"] * 17 + ["s"] * 3), r"'r' \(17 rows\), 's' \(3 rows\).*'p', 'q'", ASSESS),
    Command(10, "an unseen class, counted", good(y=["p"] * 20 + ["q"] * 17 + ["s"] * 3), r"3", ASSESS + " --unknown count", DONE),
    Command(11, "a missing column", without("b"), r"Missing column\(s\) 'b'.*[Aa]dd", STRICT),
    Command(12, "a column too many", good(z=1), r"Ignored column\(s\) 'z'", STRICT, DONE),
    Command(13, "columns in another order", GOOD[["c", "y", "b", "a"]].to_csv(index=False), r"40 rows", STRICT, DONE),
    Command(15, "two columns of one name", csv(head="a,a,y"), r"column name 'a' occurs at positions 1, 2. Rename"),
    Command(16, "names that differ by case", csv(head="a,A,y"), r"Warning: .*differ only by case.*'a' and 'A'", code=DONE),
    Command(17, "an empty file", b"", r"t\.csv: the file is empty"),
    Command(18, "a header only", "a,b,y\n", r"no data rows.*header of 3 columns.*Add rows"),
    Command(19, "no features", csv(head="id,k,y", cells=[(i, j, t) for i in range(40) for j, t in ((0, f"n{i}"), (1, "5"))]), r"0 feature\(s\) are left.*'id' .*'k'"),
    Command(20, "one row", "a,b,y\n1,2,p\n", r"1 row"),
    Command(21, "one class", labels(lambda i: "p"), r"Only one class is present \('p'\).*2 or more"),
    Command(22, "no such target", csv(head="a,b,Y"), r"no column 'y' for the target\. Did you mean 'Y'\? The columns are 'a', 'b', 'Y'"),
    Command(23, "an identifier for a target", labels(lambda i: f"n{i}"), r"40 different labels in 40 rows.*identifier"),
    Command(23, "more classes than allowed", csv(rows=lambda body: [[*r[:2], f"c{i % 1200}"] for i, r in enumerate(body * 60)]), r"1200 different labels in 2400 rows, more than --max-classes 1000.*--max-classes"),
    Command(24, "an empty label", cell("", column=2), r"label is missing in row\(s\) 8 .*Drop these rows"),
    Command(25, "classes called NA, null and nan", labels(lambda i: ("NA", "null", "nan")[i % 3]), r'"classes": \[\s*"NA",\s*"nan",\s*"null"', FIT + " --json", DONE),
    Command(26, "classes 001 and 1", labels(lambda i: ("001", "1")[i % 2]), r'"classes": \[\s*"001",\s*"1"', FIT + " --json", DONE),
    Command(27, "classes p and 'p '", cell("p ", column=2), r"Warning: .*labels \(column 'y'\) differ only.*'p' and 'p '", code=DONE),
    Command(28, "mixed labels", lines(*({"a": i / 7, "y": "p" if i % 2 else 1} for i in range(9))), r"line 2: column 'y' holds the text 'p', and a number in the lines before"),
    Command(29, "a continuous label", labels(lambda i: f"{i % 30}.5"), r"30 different numbers in 40 rows.*regression target"),
    Command(30, "a class of one row, QDA", csv(rows=lambda body: [*body, ["1", "2", "z"]]), r"Class 'z' has 1 row,.*at least 2", FIT.replace("lda", "qda")),
    Command(30, "a class of one row, held out", csv(rows=lambda body: [*body, ["1", "2", "z"]]), r"z", COMPARE, DONE),
    Command(31, "a constant column", more("k", lambda i: "3"), r"'k'.*3 in every row", code=DONE),
    Command(31, "constant within classes", more("k", lambda i: str(i // 20 + 0.5)), r"Warning: .*'k' do not vary within class 'p'.*separate", code=DONE),
    Command(32, "a sum of columns", GOOD.assign(k=GOOD.a + GOOD.b).to_csv(index=False), r"Warning: .*'a', 'b', 'k'.*rank \d of \d, condition number.*correct digits", code=DONE),
    Command(33, "more columns than rows", wide, r"Warning: .*rank \d+ for 40 features.*shrunk", code=DONE),
    Command(34, "separated classes", separated, r"Warning: .*'p' and 'q' are completely separated.*'a'", LOGISTIC, NOT_CONVERGED),
    Command(35, "a fit that does not end", separated, r"did not converge because the classes are separated: exit code 3", LOGISTIC, NOT_CONVERGED),
    Command(36, "a negative weight", weights(-2), r"row 5 \(counted from 0\) is -2.*weight 0", WEIGH),
    Command(37, "an infinite weight", weights("inf"), r"ow 5 .*inf", WEIGH),
    Command(37, "a missing weight", weights(""), r"ow 5 .*nan|missing", WEIGH),
    Command(37, "no weight at all", weights(0, range(40)), r"zero for every row", WEIGH),
    Command(38, "a class without weight", weights(0, range(20)), r"Class 'p' has total weight 0", WEIGH),
    Command(42, "costs of other classes", None, r"'r'.*'p', 'q'", COSTS.format('{"p": {"r": 5}}')),
    Command(42, "costs of another shape", None, r"shape \(1, 2\) for 2 classes.*'p', 'q'", COSTS.format("[[0, 1]]")),
    Command(43, "a negative cost", None, r"deciding 'p' where 'q' is true is -5", COSTS.format('{"p": {"q": -5}}')),
    Command(43, "NaN for a cost", None, r"deciding 'p' where 'q' is true is nan", COSTS.format('{"p": {"q": NaN}}')),
    Command(43, "a right decision that costs", None, r"deciding 'p' where 'p' is true is 1.*correct decisions must cost 0", COSTS.format('{"p": {"p": 1}}')),
    Command(44, "a negative cost of rejecting", None, r"cost of rejecting is -0\.1", REJECT.format("-0.1")),
    Command(44, "never rejects", None, r"Warning: .*rejecting, 0\.9, is never the lowest", REJECT.format("0.9"), DONE),
    Command(46, "a hierarchy with a cycle", None, r"has a cycle: 'm' -> 'n'|has a cycle: 'n' -> 'm'", TREE.format('{"p": "n", "q": "n", "n": "m", "m": "n"}')),
    Command(46, "a hierarchy without a label", None, r"1 label\(s\) are not in the hierarchy: 'q'", TREE.format('{"n": ["p"]}')),
    Command(46, "a leaf in two places", None, r"Label 'q' occurs 2 times", TREE.format('[["p", "q"], ["q"]]')),
    Command(48, "fields between semicolons", csv(sep=";"), r"Read as CSV: fields separated by semicolons", code=DONE),
    Command(49, "a byte order mark", b"\xef\xbb\xbf" + csv().encode(), r"UTF-8 with a byte order mark", code=DONE),
    Command(50, "latin-1", labels(lambda i: "pé" if i % 2 else "q").encode("latin-1"), r"by guess, since byte \d+ \(line 3\) is not valid UTF-8", code=DONE),
    Command(50, "UTF-16", csv().encode("utf-16"), r"UTF-16-LE with a byte order mark", code=DONE),
    Command(50, "another than was named", cell("é", column=2).encode("latin-1"), r"line 10: byte \d+ .*is not valid UTF-8.*encoding", FIT + " --encoding utf-8"),
    Command(51, "a row too long", csv(cells=[(5, 2, "p,p")]), r"t\.csv, line 7: 4 fields, but the header has 3"),
    Command(52, "a row too short", csv(rows=lambda body: [*body[:5], body[5][:2], *body[6:]]), r"t\.csv, line 7: 2 fields, but the header has 3"),
    Command(53, "every row too long", csv(rows=lambda body: [["1", *row] for row in body]), r"all lines checked have 4 fields, but the header has 3"),
    Command(54, "a quote not closed", cell('"p', row=5, column=2), r"line 7: a quote is opened there and never closed"),
    Command(55, "a NUL byte", cell("p\0", row=5, column=2), r"line 7: a NUL byte \(byte \d+"),
    Command(55, "CR line ends", csv(end="\r"), r"LDA fitted to 40 rows", code=DONE),
    Command(56, "a line too long", cell("z" * 11_000_000, row=3, column=2), r"line 5: longer than the limit of 10000000 bytes", dangerous=True),
    Command(56, "a field too long", cell("z" * 1_100_000, row=3, column=2), r"line 5, column 'y': a field longer than the limit of 1000000", dangerous=True),
    Command(56, "too many columns", ",".join(f"c{j}" for j in range(100_001)) + "\n1\n", r"100001 columns, more than the limit of 100000", dangerous=True),
    Command(57, "Parquet cut off", lambda f: parquet(f, change=lambda c: c[:-100]), r"t\.parquet: file incomplete \(no footer", PARQUET),
    Command(57, "gzip cut off", cut_gzip, r"file incomplete \(its gzip stream has no end\)", FIT.replace("t.csv", "t.csv.gz")),
    Command(58, "Parquet with a flipped bit", lambda f: parquet(f, change=flipped, write_page_checksum=True, compression="none"), r"is damaged: a page of column 'a' in row group 0 .*CRC", PARQUET),
    Command(59, "an extension type", lambda f: parquet(f, UUID), r"column 'k' has the extension type .*uuid.*not supported", PARQUET),
    Command(59, "an extension type in Arrow", lambda f: arrow(f, UUID), r"column 'k' has the extension type .*uuid.*not supported", ARROW),
    Command(60, "a gzip bomb", bomb, r"bytes of gzip have expanded to \d+, more than 100 times.*gunzip", FIT.replace("t.csv", "t.csv.gz"), dangerous=True),
    Command(60, "more bytes than allowed", csv(), r"more than --max-bytes 100 bytes.*--max-bytes", FIT + " --max-bytes 100"),
    Command(61, "a link", linked, r"is a symbolic link, not a regular file", FIT.replace("t.csv", "link")),
    Command(61, "a pipe", pipe, r"is a named pipe \(FIFO\), not a regular file", FIT.replace("t.csv", "pipe"), dangerous=True),
    Command(61, "a device", None, r"/dev/zero is a character device", FIT.replace("t.csv", "/dev/zero"), dangerous=True),
    Command(61, "a directory", nothing, r"t\.csv is a directory"),
    Command(61, "a device for a model", None, r"/dev/zero is a pipe or device", BAD.replace("bad.model", "/dev/zero"), dangerous=True),
    Command(61, "a pipe for a model", pipe, r"pipe is a pipe or device", BAD.replace("bad.model", "pipe"), dangerous=True),
    Command(63, "a model cut off", stored(lambda content: content[:1000]), r"bad\.model is damaged at byte 1,000: .*save it again", BAD),
    Command(64, "a model with another number", stored(lambda content: content[:-8] + b"\0" * 7 + b"\x40"), r"bad\.model was changed after it was saved: its SHA-256", BAD),
    Command(65, "a model of a later version", forged(_later), r"format version 7, written by discriminant 9\.1; .*1 to 1\. Upgrade", BAD),
    Command(67, "a pickle for a model", _pickled, r"is a pickle.*can run any code.*not opened", BAD),
    Command(67, "joblib for a model", _joblib, r"can run any code.*not opened", BAD),
    Command(67, "an array of objects for a model", _npy, r"is a NumPy array file.*can run any code.*not opened", BAD),
    Command(68, "an array of a terabyte", forged(_terabyte), r"bad\.model", BAD, dangerous=True),
    Command(68, "a coefficient that is none", forged(_not_a_number), r"bad\.model is not valid: .*coef", BAD),
    Command(68, "a name twice", stored(_twice), r"'kind' occurs twice", BAD),
]  # fmt: skip
