"""Bad input as `open_source` and `Encoded` meet it: files and tables, and what the user is told.

The number is that of the row of the table in test_bad_input.py. A case does one thing wrong to a good table: 40 rows, columns a
and b, labels p and q in column y. Every message has the place (line, row, column), the number and
the way out, and so have the patterns below. Lines are counted from 1, rows from 0: row 8 is line 10.
"""

# ruff: noqa: E501 -- a table of cases is read line by line

import gzip
import os
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from discriminant import LDA, Encoded, Logistic, open_source
from discriminant.errors import (
    BadNumberError,
    CategoryError,
    ColumnKindError,
    ColumnNamesError,
    DiscriminantError,
    ExtraColumnsWarning,
    FileError,
    InfiniteCellError,
    LabelError,
    LargeIntegerWarning,
    LookalikeWarning,
    MissingCellError,
    NoFeaturesError,
    OptionError,
    TargetError,
    WeightError,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2)).round(3)
Y = np.repeat(["p", "q"], 20)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})


def csv(*, head="a,b,y", sep=",", dec=".", end="\n", cells=(), rows=None):
    """The table as text, some cells changed: (row, column, text)."""
    body = [[str(value).replace(".", dec) for value in row] for row in FRAME.to_numpy()]
    for row, column, text in cells:
        body[row][column : column + 1] = [text]
    if rows is not None:
        body = rows(body)
    return end.join([head.replace(",", sep), *(sep.join(row) for row in body)]) + end


def cell(text, row=8, column=1):
    return csv(cells=[(row, column, text)])


def labels(change):
    return csv(cells=[(row, 2, change(row)) for row in range(40)])


def more(name, value):
    """One more column before the last."""
    return csv(
        head=f"a,b,{name},y",
        rows=lambda body: [[*r[:2], value(i), r[2]] for i, r in enumerate(body)],
    )


def table(**columns):
    """The frame with other columns."""
    return FRAME.assign(**columns)


def parquet(folder, frame=FRAME, *, change=lambda content: content, **options):
    path = folder / "t.parquet"
    whole = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)
    pq.write_table(whole, path, **options)
    path.write_bytes(bytes(change(bytearray(path.read_bytes()))))
    return path


def flipped(content):
    content[60] ^= 1
    return content


def arrow(folder, frame, *, change=lambda content: content):
    path = folder / "t.arrow"
    with pa.ipc.new_file(path, frame.schema) as writer:
        writer.write_table(frame)
    path.write_bytes(change(path.read_bytes()))
    return path


def bomb(folder):
    path = folder / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b,y\n")
        for _ in range(20):
            file.write(b"0,0,p\n" * 100_000)
    return path


def cut_gzip(folder):
    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(csv().encode())[:-20])
    return path


def linked(folder):
    (folder / "t.csv").write_text(csv())
    (folder / "link").symlink_to(folder / "t.csv")
    return folder / "link"


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


UUID = pa.table(
    {
        "k": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 4, pa.binary(16))),
        "y": [1, 1, 2, 2],
    }
)
PLACE = r"Row 8 \(counted from 0, line 10 of the file\), column 'b': "
DEVICE = r"not a regular file, and cannot be read\. "

# number, what is done, what is opened (a text is written to t.csv first), what is raised, what it must say
CASES = [
    (1, "an empty cell", cell(""), MissingCellError, PLACE + r"missing \(1 row\(s\) in 1 column\(s\).*missing='drop' \(--missing drop\).*'mean'"),
    (1, "NaN", cell("NaN"), MissingCellError, PLACE + r"missing \(1 row"),
    (1, "NA, twice", csv(cells=[(8, 1, "NA"), (9, 0, "NA")]), MissingCellError, PLACE + r"missing \(2 row\(s\) in 2 column\(s\)"),
    (1, "NaN in a frame", table(b=np.where(np.arange(40) == 8, np.nan, X[:, 1])), MissingCellError, r"Row 8 \(counted from 0\), column 'b': missing \(1 row"),
    (1, "an empty category", more("c", lambda i: "" if i == 8 else "uvw"[i % 3]), MissingCellError, r"Row 8 .*line 10 .*column 'c': missing \(1 row"),
    (2, "inf", cell("-inf"), InfiniteCellError, PLACE + r"the text '-inf' is infinity.*Correct or drop"),
    (2, "1e400", cell("1e400"), InfiniteCellError, PLACE + r"the text '1e400'.*too large for float64 \(more than 1\.8e308\)"),
    (2, "inf in a frame", table(b=np.where(np.arange(40) == 8, np.inf, X[:, 1])), InfiniteCellError, r"Row 8 \(counted from 0\), column 'b': infinity.*Correct"),
    (3, "a decimal comma must be quoted", cell('"12,5"'), BadNumberError, PLACE + r"the text '12,5' is not a number.*decimal comma: write '\.'"),
    (3, "n/a", cell("n/a"), BadNumberError, PLACE + r"the text 'n/a' is not a number.*missing_texts.*categories"),
    (3, "a text after the sample", csv(rows=lambda body: body * 3000 + [["x", "1", "p"]]), BadNumberError, r"Row 120000 \(counted from 0, line 120002 of the file\), column 'a': the text 'x'"),
    (3, "grouped digits", csv(sep=";", cells=[(row, 1, f"{row + 1},234") for row in range(40)]), BadNumberError, r"column 'b': the text '1,234' may be 1234 or 1\.234.*decimal comma"),
    (5, "hexadecimal", cell("0xFF"), BadNumberError, PLACE + r"the text '0xFF' is not a number.*Hexadecimal"),
    (5, "underscores", cell("1_000"), BadNumberError, PLACE + r"the text '1_000' is not a number.*grouped by '_'"),
    (5, "TRUE", cell("TRUE"), BadNumberError, PLACE + r"the text 'TRUE' is not a number.*truth value"),
    (5, "digits of another alphabet", cell("١"), BadNumberError, PLACE + r"the text '١' is not a number"),
    (6, "integers beyond 2**53", more("k", lambda i: str(2**60 + 7919 * i * i)), LargeIntegerWarning, r"'k' .*2\*\*53.*Drop"),
    (6, "in a frame", table(k=2**60 + RNG.integers(0, 2**50, 40)), LargeIntegerWarning, r"'k' .*2\*\*53.*Drop"),
    (7, "complex numbers", table(k=X[:, 0] + 1j), ColumnKindError, r"Column 'k' has type complex128.*exclude=\['k'\]"),
    (7, "durations", table(k=pd.timedelta_range("1h", periods=40)), ColumnKindError, r"Column 'k' has type duration.*exclude"),
    (7, "lists", table(k=[[1]] * 40), ColumnKindError, r"Column 'k' has type list.*exclude"),
    (7, "mixed objects", table(k=["u", 1] * 20), ColumnKindError, r"Column 'k' has type object \(int and str mixed\).*exclude"),
    (15, "two columns of one name", csv(head="a,a,y"), ColumnNamesError, r"column name 'a' occurs at positions 1, 2. Rename"),
    (15, "in Parquet", lambda f: parquet(f, pa.table([X[:, 0], X[:, 1], Y], names=["a", "a", "y"])), ColumnNamesError, r"Column name 'a' occurs at positions 0, 1. Rename"),
    (16, "names that differ by case", csv(head="a,A,y"), LookalikeWarning, r"column names differ only by case.*'a' and 'A'.*correct"),
    (16, "by a space", csv(head="a,a ,y"), LookalikeWarning, r"'a' and 'a '"),
    (16, "by Unicode form", csv(head="é,e\u0301,y"), LookalikeWarning, "'é' and 'e\u0301'"),
    (17, "an empty file", b"", FileError, r"t\.csv: the file is empty"),
    (17, "blank lines", b"\n\n \n", FileError, r"t\.csv: the file is empty"),
    (18, "a header only", "a,b,y\n", FileError, r"no data rows.*header of 3 columns.*Add rows"),
    (18, "Parquet without rows", lambda f: parquet(f, FRAME[:0]), FileError, r"no data rows.*3 column"),
    (19, "only columns that are set aside", csv(head="id,k,y", cells=[(i, j, t) for i in range(40) for j, t in ((0, f"n{i}"), (1, "5"))]), NoFeaturesError, r"0 feature\(s\) are left.*'id' \(40 texts, all different\); 'k' \(5 in every row\).*columns="),
    (21, "one class", labels(lambda i: "p"), LabelError, r"Only one class is present \('p'\).*2 or more"),
    (22, "no such target", csv(head="a,b,Y"), TargetError, r"no column 'y' for the target\. Did you mean 'Y'\? The columns are 'a', 'b', 'Y'"),
    (22, "no header", "\n".join(csv().split("\n")[1:]), TargetError, r"no column 'y'; the first line holds '0\.126'.*line of names before the rows"),
    (22, "numbers for a header", csv(head="1,2,3"), FileError, r"line 1 holds only numbers \(1, 2, 3\).*names"),
    (23, "an identifier for a target", labels(lambda i: f"n{i}"), TargetError, r"40 different labels in 40 rows.*identifier.*another target"),
    (23, "too many classes", csv(rows=lambda body: [[*r[:2], f"c{i % 1200}"] for i, r in enumerate(body * 60)]), TargetError, r"1200 different labels in 2400 rows, more than max_classes=1000.*raise max_classes"),
    (24, "an empty label", cell("", column=2), LabelError, r"label is missing in row\(s\) 8 .*Drop these rows"),
    (24, "a null label", table(y=np.where(np.arange(40) == 8, None, Y)), LabelError, r"label is missing in row\(s\) 8 "),
    (27, "p and 'p '", cell("p ", column=2), LookalikeWarning, r"labels \(column 'y'\) differ only.*'p' and 'p '"),
    (28, "mixed labels", table(y=["p", 1] * 20), ColumnKindError, r"Column 'y' has type object \(int and str mixed\)"),
    (29, "a continuous label", labels(lambda i: f"{i % 30}.5"), TargetError, r"30 different numbers in 40 rows, written with decimals, so it is a regression target.*LinearRegression"),
    (29, "in a frame", table(y=X[:, 0]), LabelError, r"regression target.*LinearRegression"),
    (51, "a row too long", csv(cells=[(5, 2, "p,p")]), FileError, r"t\.csv, line 7: 4 fields, but the header has 3\. .*must be quoted"),
    (51, "after a field of two lines", csv(cells=[(2, 2, '"p\np"'), (5, 2, "p,p")]), FileError, r"line 8: 4 fields, but the header has 3"),
    (52, "a row too short", csv(rows=lambda body: [*body[:5], body[5][:2], *body[6:]]), FileError, r"t\.csv, line 7: 2 fields, but the header has 3"),
    (53, "every row too long", csv(rows=lambda body: [["1", *row] for row in body]), FileError, r"all lines checked have 4 fields, but the header has 3.*name every column"),
    (54, "a quote not closed", cell('"p', row=5, column=2), FileError, r"line 7: a quote is opened there and never closed.*Close the quote"),
    (55, "a NUL byte", cell("p\0", row=5, column=2), FileError, r"line 7: a NUL byte \(byte \d+ .*Write the file again"),
    (56, "a line too long", cell("z" * 11_000_000, row=3, column=2), FileError, r"line 5: longer than the limit of 10000000 bytes"),
    (56, "a header too long", "a" * 11_000_000, FileError, r"line 1: longer than the limit of 10000000 bytes"),
    (56, "a field too long", cell("z" * 1_100_000, row=3, column=2), FileError, r"line 5, column 'y': a field longer than the limit of 1000000"),
    (56, "too many columns", ",".join(f"c{j}" for j in range(100_001)) + "\n1\n", FileError, r"100001 columns, more than the limit of 100000"),
    (57, "Parquet cut off", lambda f: parquet(f, change=lambda c: c[:-100]), FileError, r"t\.parquet: file incomplete \(no footer.*fetch it again"),
    (57, "Arrow cut off", lambda f: arrow(f, pa.Table.from_pandas(FRAME), change=lambda c: c[:-300]), FileError, r"t\.arrow is damaged.*Fetch"),
    (57, "gzip cut off", cut_gzip, FileError, r"file incomplete \(its gzip stream has no end\)"),
    (58, "Parquet with a flipped bit", lambda f: parquet(f, change=flipped, write_page_checksum=True, compression="none"), FileError, r"is damaged: a page of column 'a' in row group 0 .*CRC.*Fetch"),
    (59, "an extension type", lambda f: parquet(f, UUID), FileError, r"column 'k' has the extension type .*uuid.*not supported.*plain numbers or text"),
    (59, "in Arrow", lambda f: arrow(f, UUID), FileError, r"column 'k' has the extension type .*uuid.*not supported"),
    (60, "a gzip bomb", bomb, FileError, r"\d+ bytes of gzip have expanded to \d+, more than 100 times.*gunzip"),
    (61, "a link", linked, FileError, r"is a symbolic link, " + DEVICE + r"Pass the file it leads to: .*t\.csv"),
    (61, "a pipe", pipe, FileError, r"is a named pipe \(FIFO\), " + DEVICE),
    (61, "a device", lambda f: "/dev/zero", FileError, r"is a character device, " + DEVICE + "Pass a file"),
    (61, "a directory", lambda f: f, FileError, r"is a directory, " + DEVICE),
    (61, "nothing", lambda f: f / "none.csv", FileError, r"none\.csv: there is no such file"),
    (61, "a workbook", b"PK\x03\x04" + b"0" * 50, FileError, r"is a zip archive \(or an Excel workbook\).*save as CSV"),
    (61, "a pickle", b"\x80\x04\x95" + b"0" * 50, FileError, r"is a pickle.*never opened"),
    (61, "a JSON array", '[{"a": 1}]', FileError, r"is a JSON array.*one object a line"),
    (3, "a text in JSON lines", '{"a": 1.5, "y": "p"}\n{"a": "x", "y": "q"}\n', FileError, r"line 2: column 'a' holds the text 'x', and a number in the lines before"),
    (3, "no JSON", '{"a": 1.5, "y": "p"}\n{"a": \n', FileError, r"line 2: no JSON"),
]  # fmt: skip

OPTIONS = [
    (0, "a policy that is none", {"missing": "guess"}, OptionError, r"missing='guess'.*'error', 'drop', 'mean'"),
    (0, "an unseen policy that is none", {"unseen": "guess"}, OptionError, r"unseen='guess'.*'error', 'ignore', 'reject'"),
    (0, "a reference that is none", {"reference": "last"}, OptionError, r"reference='last'.*'frequent', 'first', None"),
    (0, "no classes", {"max_classes": 0}, OptionError, r"max_classes=0.*2 or more"),
    (0, "no levels", {"max_levels": 1}, OptionError, r"max_levels=1.*2 or more"),
    (0, "an encoding that is none", {"encoding": "klingon"}, OptionError, r"encoding='klingon'.*'latin-1'"),
    (0, "a delimiter of two characters", {"delimiter": "::"}, OptionError, r"delimiter='::'.*one character"),
    (22, "an excluded column that is none", {"exclude": ["bb"]}, TargetError, r"no column 'bb' for the exclude\. Did you mean 'b'"),
    (22, "a weight that is none", {"weight": "w"}, TargetError, r"no column 'w' for the weight"),
    (36, "negative weights", {"weight": "a"}, WeightError, r"row 2 .* is -0.*weight 0"),
    (60, "too many bytes", {"max_bytes": 100}, FileError, r"more than max_bytes=100 bytes.*larger max_bytes"),
]  # fmt: skip


def opened(source, folder):
    """A path, or a frame; a text is written to t.csv first."""
    if callable(source):
        return source(folder)
    if isinstance(source, pd.DataFrame):
        return source
    path = folder / "t.csv"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return path


def opening(source, options, folder):
    open_source(opened(source, folder), target="y", **options)


# --- what is fitted, and then another table ------------------------------------------------------

WIDE = FRAME.assign(c=["u", "v", "w", "u"] * 10)
LATER = [
    (9, "an unseen category", WIDE.assign(c=["u"] * 8 + ["z"] * 32), CategoryError, r"Row 8 .*column 'c': the category 'z' was not seen.*\(32 such row\(s\).*known are 'u', 'v', 'w'.*unseen='ignore'.*'reject'"),
    (11, "a column is missing", WIDE.drop(columns="b"), ColumnNamesError, r"Missing column\(s\) 'b'.*[Aa]dd"),
    (11, "a column by another name", WIDE.rename(columns={"b": "B"}), ColumnNamesError, r"Missing column\(s\) 'b'.*not used by the model: 'B'.*Rename"),
    (12, "a column too many", WIDE.assign(z=[[1]] * 40), ExtraColumnsWarning, r"Ignored column\(s\) 'z'"),
    (1, "a missing cell", WIDE.assign(b=np.where(np.arange(40) == 8, np.nan, X[:, 1])), MissingCellError, r"Row 8 .*column 'b': missing \(1 row.*fitted with missing='error'.*fit with missing='mean'"),
    (3, "a text", WIDE.assign(b=["1.5"] * 8 + ["x"] * 32), BadNumberError, r"Row 8 .*column 'b': the text 'x' is not a number"),
    (7, "dates", WIDE.assign(b=pd.date_range("2020", periods=40)), ColumnKindError, r"Column 'b' holds dates, but held numbers when the model was fitted"),
    (14, "an array too narrow", X, DiscriminantError, r"X has 2 features, but Encoded is expecting 3 "),
]  # fmt: skip


def predicting(source, folder):
    model = Encoded(LDA()).fit(WIDE.drop(columns="y"), Y)
    model.predict(source.drop(columns="y") if isinstance(source, pd.DataFrame) else source)


def _marginal(folder):
    Encoded(Logistic(), missing="marginal").fit(FRAME[["a", "b"]], Y)


ODD = np.arange(40) % 2 == 1
GAPS = FRAME.assign(a=np.where(ODD, X[:, 0], np.nan), b=np.where(ODD, np.nan, X[:, 1]))
LATIN = cell("é", column=2).encode("latin-1")
# number, what is done, the act in a folder, what is raised or warned of, what it must say
OPENED = [
    *((n, what, partial(opening, given, {}), fault, words) for n, what, given, fault, words in CASES),
    *((n, what, partial(opening, csv(), given), fault, words) for n, what, given, fault, words in OPTIONS),
    (0, "marginal where a model cannot do without a feature", _marginal, OptionError, r"only LDA, QDA, RDA and NearestMean"),
    (1, "every row dropped", partial(opening, GAPS, {"missing": "drop"}), MissingCellError, r"All 40 rows have a missing cell in one of 'a', 'b'"),
    *((50, f"no {name}", partial(opening, LATIN, {"encoding": name}), FileError, rf"line 10: byte \d+ .* is not valid {name.upper()}.*encoding=") for name in ("utf-8", "ascii")),
    *((n, what, partial(predicting, given), fault, words) for n, what, given, fault, words in LATER),
]  # fmt: skip
