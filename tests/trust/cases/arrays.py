"""Bad input as an estimator meets it: arrays and frames, each with what the user must be told.

The number is that of the row of the table in test_bad_input.py (0: an option that cannot be). A
case does one thing wrong to a good problem: 60 rows, columns u, v, w, classes a, b, c of 20 rows
each. Every message has the place (row, column, class), the number and the way out, and so have the
patterns below. Rows are counted from 0. More of decisions (42 to 45) is in test_decision.py, of
codes (47) in test_decomposition.py, of evaluation (10) in assessment/test_measures.py.
"""

# ruff: noqa: E501 -- a table of cases is read line by line

import datetime
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from discriminant import (
    GLM,
    LDA,
    QDA,
    RDA,
    SDA,
    SVM,
    Decision,
    Fisher,
    LabelTree,
    LaplaceNB,
    LeastSquares,
    LinearRegression,
    Logistic,
    NearestMean,
    OneVsOne,
    OutputCodes,
    Perceptron,
    ShrunkenCentroids,
    SparseLDA,
    assess,
    evaluate,
)
from discriminant.decision import tuned_threshold
from discriminant.errors import (
    CellTypeError,
    CodeError,
    CollinearWarning,
    ColumnNamesError,
    ColumnTypeError,
    ConstantColumnWarning,
    CostError,
    ExtraColumnsWarning,
    HierarchyError,
    InfiniteValueError,
    InputError,
    LabelError,
    LargeIntegerWarning,
    MissingValueError,
    NeverRejectsWarning,
    NotConvergedWarning,
    NotSeparatedWarning,
    OptionError,
    PriorError,
    ResponseError,
    SeparatingColumnWarning,
    SeparationWarning,
    ShapeError,
    ShrinkageChosenWarning,
    TextInNumberError,
    ThresholdError,
    TooFewRowsError,
    WeightError,
)

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b", "c"], 20)
X = RNG.standard_normal((60, 3)) + np.repeat([0.0, 2.0, 4.0], 20)[:, None]
FRAME = pd.DataFrame(X, columns=["u", "v", "w"])
FAMILY = (LDA, QDA, RDA, NearestMean)
SELECTING = (SDA, ShrunkenCentroids, SparseLDA)
WEIGHED = (*FAMILY, Fisher, LeastSquares, LaplaceNB, *SELECTING, Logistic, SVM)
CLASSIFIERS = (*WEIGHED, Perceptron)
MIXED = np.tile(["a", "b", "c"], 20)  # labels that rows tell nothing of


def cell(value, row=8, kind=float):
    """The rows with another value in column 1."""
    changed = X.astype(kind)
    changed[row, 1] = value
    return changed


def column(values):
    """The frame with one more column, k."""
    return FRAME.assign(k=values)


def polars_column(values, **options):
    return pl.from_pandas(FRAME).with_columns(k=pl.Series(values, **options))


def with_hole(values):
    """The values with nothing in row 8."""
    return [None if row == 8 else value for row, value in enumerate(values)]


def fit(rows, labels=Y, weight=None, **options):
    return lambda model: model(**options).fit(rows, labels, weight)


def fit_unweighted(rows, labels=Y):
    return lambda model: model().fit(rows, labels)


def predict(rows, fitted=FRAME):
    return lambda model: model().fit(fitted, Y).predict(rows)


def weight(value, rows=5):
    found = np.ones(60)
    found[rows] = value
    return found


MISSING = (
    r"Row 8 \(counted from 0\), column '{}': missing .*1 row\(s\) in 1 column\(s\).*Drop .*fill"
)
LOST_LABEL = r"y contains NaN.*row\(s\) {} \(counted from 0\).*Drop these rows"
NOT_NUMBER = r"column '{}': could not convert the text {} to a number\. .*{}"
DAY = datetime.date(2020, 1, 1)

# number, what is done, what is raised, what it must say
CELLS = [
    (1, "NaN in an array", fit_unweighted(cell(np.nan)), MissingValueError, MISSING.format("x1")),
    (1, "NaN in float32", fit_unweighted(cell(np.nan, kind="f4")), MissingValueError, MISSING.format("x1")),
    (1, "NaN in sparse rows", fit_unweighted(sparse.csr_array(cell(np.nan))), MissingValueError, MISSING.format("x1")),
    (1, "NaN in a frame", fit_unweighted(FRAME.assign(v=cell(np.nan)[:, 1])), MissingValueError, MISSING.format("v")),
    (1, "NaN when predicting", predict(cell(np.nan), X), MissingValueError, MISSING.format("x1")),
    (1, "NaN in a frame when predicting", predict(FRAME.assign(v=cell(np.nan)[:, 1])), MissingValueError, MISSING.format("v")),
    (1, "NaN in three rows", fit_unweighted(cell(np.nan, row=[8, 20, 59])), MissingValueError, r"Row 8 .*3 row\(s\) in 1 column"),
    (1, "None in an array", fit_unweighted(cell(None, kind=object)), MissingValueError, MISSING.format("x1")),
    (1, "None in polars", fit_unweighted(polars_column(with_hole(X[:, 0]))), MissingValueError, MISSING.format("k")),
    (1, "None in polars integers", fit_unweighted(polars_column(with_hole(range(60)))), MissingValueError, MISSING.format("k")),
    (1, "None in polars booleans", fit_unweighted(polars_column(with_hole([True, False] * 30))), MissingValueError, MISSING.format("k")),
    (1, "null in pyarrow", fit_unweighted(polars_column(with_hole(X[:, 0])).to_arrow()), MissingValueError, MISSING.format("k")),
    (1, "NA in pandas Int64", fit_unweighted(column(pd.array(with_hole(range(60)), dtype="Int64"))), MissingValueError, MISSING.format("k")),
    (1, "NA in pandas Float64", fit_unweighted(column(pd.array(with_hole(X[:, 0]), dtype="Float64"))), MissingValueError, MISSING.format("k")),
    (1, "NA in pandas boolean", fit_unweighted(column(pd.array(with_hole([True, False] * 30), dtype="boolean"))), MissingValueError, MISSING.format("k")),
    (1, "a mask", fit_unweighted(np.ma.masked_array(X, mask=np.isin(np.arange(180), [25]).reshape(60, 3))), MissingValueError, MISSING.format("x1")),
    (1, "a mask when predicting", predict(np.ma.masked_array(X, mask=np.isin(np.arange(180), [25]).reshape(60, 3)), X), MissingValueError, MISSING.format("x1")),
    (2, "infinity", fit_unweighted(cell(np.inf)), InfiniteValueError, r"Row 8 .*column 'x1': infinity.*Correct or drop"),
    (2, "minus infinity when predicting", predict(cell(-np.inf), X), InfiniteValueError, r"Row 8 .*column 'x1': infinity.*Correct or drop"),
    (2, "text 1e400", fit_unweighted(cell("1e400", kind=object)), InfiniteValueError, r"Row 8 .*column 'x1': the text '1e400'.*too large.*Correct or drop"),
    (3, "decimal comma", fit_unweighted(cell("12,5", kind=object)), TextInNumberError, r"Row 8 .*" + NOT_NUMBER.format("x1", "'12,5'", "decimal comma: replace ',' by '.'")),
    (3, "n/a", fit_unweighted(cell("n/a", kind="U30")), TextInNumberError, r"Row 8 .*" + NOT_NUMBER.format("x1", "'n/a'", "encode")),
    (3, "text in a frame", fit_unweighted(column(["1.5"] * 8 + ["n/a"] + ["1.5"] * 51)), TextInNumberError, r"Row 8 .*" + NOT_NUMBER.format("k", "'n/a'", "encode")),
    (3, "text in polars", fit_unweighted(polars_column(["1.5"] * 8 + ["12,5"] + ["1.5"] * 51)), TextInNumberError, r"Row 8 .*" + NOT_NUMBER.format("k", "'12,5'", "decimal comma")),
    (3, "text in pyarrow", fit_unweighted(pa.table({"k": ["1.5"] * 8 + ["x"] + ["1.5"] * 51})), TextInNumberError, r"Row 8 .*" + NOT_NUMBER.format("k", "'x'", "encode")),
    (3, "text when predicting", predict(FRAME.astype(object).replace(FRAME.v[8], "x")), TextInNumberError, r"Row 8 .*" + NOT_NUMBER.format("v", "'x'", "encode")),
    (6, "integers beyond 2**53", fit_unweighted(column(RNG.integers(2**60, 2**61, size=60))), LargeIntegerWarning, r"Column\(s\) 'k' .*2\*\*53.*Drop"),
    (6, "an array of them", fit_unweighted(RNG.integers(2**60, 2**61, size=(60, 2))), LargeIntegerWarning, r"'x0', 'x1' .*2\*\*53.*Drop"),
    (6, "unsigned", fit_unweighted(column(RNG.integers(2**63, 2**64 - 1, size=60, dtype="u8"))), LargeIntegerWarning, r"'k' .*2\*\*53"),
    (7, "complex numbers", fit_unweighted(X + 1j), ColumnTypeError, r"column 'x0' is complex128.*real and imaginary"),
    (7, "a complex column", fit_unweighted(column(X[:, 0] + 1j)), ColumnTypeError, r"column 'k' is complex128.*real and imaginary"),
    (7, "dates in pandas", fit_unweighted(column(pd.date_range("2020", periods=60))), ColumnTypeError, r"Column 'k' has type datetime64.*days since"),
    (7, "dates with a zone", fit_unweighted(column(pd.date_range("2020", periods=60, tz="UTC"))), ColumnTypeError, r"Column 'k' has type datetime64.*days since"),
    (7, "times in pandas", fit_unweighted(column(pd.timedelta_range("1h", periods=60))), ColumnTypeError, r"Column 'k' has type timedelta64.*seconds"),
    (7, "dates in polars", fit_unweighted(polars_column([DAY] * 60)), ColumnTypeError, r"Column 'k' has type datetime64.*days since"),
    (7, "times in polars", fit_unweighted(polars_column([datetime.timedelta(1)] * 60)), ColumnTypeError, r"Column 'k' has type timedelta64.*seconds"),
    (7, "dates in an array", fit_unweighted(X.astype("datetime64[s]")), ColumnTypeError, r"Column 'x0' has type datetime64.*days since"),
    (7, "objects", fit_unweighted(cell({}, kind=object)), CellTypeError, r"Row 8 .*column 'x1'.*not 'dict'.*Convert or drop"),
    (7, "objects in a frame", fit_unweighted(column([DAY] * 60)), CellTypeError, r"Row 0 .*column 'k'.*not 'date'.*Convert or drop"),
    (7, "lists in polars", fit_unweighted(polars_column([[1, 2]] * 60)), CellTypeError, r"Row 0 .*column 'k'.*not 'ndarray'.*Convert or drop"),
    (8, "categories in pandas", fit_unweighted(column(pd.Categorical(["p", "q", "r"] * 20))), ColumnTypeError, r"Column 'k' holds 3 categories.*OneHotEncoder"),
    (8, "categories that are numbers", fit_unweighted(column(pd.Categorical([1, 2, 3] * 20))), ColumnTypeError, r"Column 'k' holds 3 categories.*convert it to numbers"),
    (8, "categories in polars", fit_unweighted(polars_column(["p", "q"] * 30, dtype=pl.Categorical)), ColumnTypeError, r"Column 'k' holds 2 categories.*OneHotEncoder"),
    (8, "an enum in polars", fit_unweighted(polars_column(["p", "q"] * 30, dtype=pl.Enum(["p", "q"]))), ColumnTypeError, r"Column 'k' holds 2 categories.*OneHotEncoder"),
    (8, "a dictionary in pyarrow", fit_unweighted(pa.table({"k": pa.array(["p", "q"] * 30).dictionary_encode()})), ColumnTypeError, r"Column 'k' holds 2 categories.*OneHotEncoder"),
    (8, "categories when predicting", predict(FRAME.assign(v=pd.Categorical([1, 2, 3] * 20))), ColumnTypeError, r"Column 'v' holds 3 categories"),
]  # fmt: skip

NAMES = [
    (11, "a column is missing", predict(FRAME[["u", "w"]]), ColumnNamesError, r"Missing column\(s\) 'v'.*[Aa]dd"),
    (11, "a column by another name", predict(FRAME.rename(columns={"v": "V"})), ColumnNamesError, r"Missing column\(s\) 'v'.*not used by the model: 'V'.*Rename"),
    (11, "a polars column is missing", predict(pl.from_pandas(FRAME).drop("v")), ColumnNamesError, r"Missing column\(s\) 'v'"),
    (12, "a column too many", predict(FRAME.assign(z=1.0)), ExtraColumnsWarning, r"Ignored column\(s\) 'z'"),
    (12, "text in a column too many", predict(FRAME.assign(z="x")), ExtraColumnsWarning, r"Ignored column\(s\) 'z'"),
    (14, "an array too narrow", predict(X[:, :2], X), ShapeError, r"X has 2 features, but \w+ is expecting 3 .*no column names.*same order"),
    (14, "an array for a frame, too narrow", predict(X[:, :2]), ShapeError, r"X has 2 features, but \w+ is expecting 3 .*no column names.*same order"),
    (14, "an array for a frame", predict(X), UserWarning, r"fitted with feature names: columns are matched by position, unchecked"),
    (14, "a frame for an array", predict(FRAME, X), UserWarning, r"fitted without feature names: columns are matched by position, unchecked"),
    (15, "names of text and of numbers", fit_unweighted(FRAME.set_axis(["u", 1, "w"], axis=1)), ColumnNamesError, r"'u', 'w' are named by text and '1' by int\. Rename.*astype\(str\)"),
    (15, "two columns of one name", fit_unweighted(FRAME.set_axis(["u", "v", "u"], axis=1)), ColumnNamesError, r"Column name 'u' occurs at positions 0, 2. Rename"),
    (15, "when predicting", predict(FRAME.set_axis(["u", "w", "w"], axis=1)), ColumnNamesError, r"Column name 'w' occurs at positions 1, 2. Rename"),
]  # fmt: skip

TABLES = [
    (17, "no rows", fit_unweighted(X[:0], Y[:0]), ShapeError, r"0 sample\(s\).*minimum of 1"),
    (17, "no rows when predicting", predict(FRAME[:0]), ShapeError, r"0 sample\(s\).*minimum of 1"),
    (19, "no columns", fit_unweighted(FRAME[[]]), ShapeError, r"0 feature\(s\).*at least one"),
    (20, "one row", fit_unweighted(X[:1], Y[:1]), TooFewRowsError, r"1 row .*needs [234] or more.*Add rows"),
    (21, "one class", fit_unweighted(X, ["a"] * 60), LabelError, r"Only one class is present \('a'\).*2 or more"),
    (24, "None for a label", fit_unweighted(X, np.where(np.isin(np.arange(60), [3, 7]), None, Y)), LabelError, LOST_LABEL.format("3, 7")),
    (24, "in a list", fit_unweighted(X, with_hole(Y.tolist())), LabelError, LOST_LABEL.format(8)),
    (24, "NaN among texts", fit_unweighted(X, [*Y.tolist()[:-1], float("nan")]), LabelError, LOST_LABEL.format(59)),
    (24, "NaN among numbers", fit_unweighted(X, np.where(np.arange(60) == 4, np.nan, np.arange(60) % 3)), LabelError, LOST_LABEL.format(4)),
    (24, "NA in pandas", fit_unweighted(X, pd.Series(with_hole([0, 1, 2] * 20), dtype="Int64")), LabelError, LOST_LABEL.format(8)),
    (24, "NaN in categories", fit_unweighted(X, pd.Series(pd.Categorical(with_hole(Y)))), LabelError, LOST_LABEL.format(8)),
    (24, "null in polars", fit_unweighted(X, pl.Series(with_hole(Y.tolist()))), LabelError, LOST_LABEL.format(8)),
    (24, "null in pyarrow", fit_unweighted(X, pa.array(with_hole(Y.tolist()))), LabelError, LOST_LABEL.format(8)),
    (28, "1 and '1'", fit_unweighted(X, np.array([1, "1"] * 30, dtype=object)), LabelError, r"mixed types \(int, str\).*astype\(str\)"),
    (28, "1 and '1' in a list", fit_unweighted(X, [1, "1"] * 30), LabelError, r"mixed types \(int, str\).*astype\(str\)"),
    (29, "a continuous label", fit_unweighted(X, X[:, 0]), LabelError, r"^.{0,200}row 0 .*60 distinct values.*regression.*LinearRegression.{0,60}$"),
    (39, "labels too few", fit_unweighted(X, Y[:50]), ShapeError, r"y has 50 entries for 60 rows"),
]  # fmt: skip

CLASSES_ALONE = [
    (30, "a class of one row", fit_unweighted(X[:41], Y[:41]), TooFewRowsError, r"Class 'c' has 1 row,.*at least 2.*LDA"),
]  # fmt: skip

# What the Gaussian family makes of columns without an inverse.
GAUSSIAN = [
    (31, "a constant column", fit_unweighted(FRAME.assign(z=3.0)), ConstantColumnWarning, r"'z'.*ignored"),
    (31, "constant within classes", fit_unweighted(FRAME.assign(z=np.repeat([1.0, 2.0, 3.0], 20))), SeparatingColumnWarning, r"'z' do not vary within class 'a'.*separate.*drop it"),
    (32, "a sum of columns", fit_unweighted(FRAME.assign(z=FRAME.u + FRAME.v)), CollinearWarning, r"'u', 'v', 'z'.*rank 3 of 4, condition number \d.*0 correct digits.*Drop 1 of them"),
    (32, "almost a copy", fit_unweighted(FRAME.assign(z=FRAME.u + 1e-6 * X[::-1, 1])), CollinearWarning, r"'u', 'z' almost.*rank 4 of 4, condition number \d.*e\+1\d, about [1-5] correct digits.*Drop one"),
    (33, "more columns than rows", fit_unweighted(RNG.standard_normal((60, 100))), ShrinkageChosenWarning, r"rank \d\d for 100 features.*shrunk by [01][.\d]* towards its diagonal.*shrinkage="),
    (33, "many more", fit_unweighted(RNG.standard_normal((60, 1000))), ShrinkageChosenWarning, r"rank \d\d for 1000 features.*shrunk by [01][.\d]* towards its diagonal.*shrinkage="),
]  # fmt: skip

WEIGHTS = [
    (36, "a negative weight", fit(X, weight=weight(-2.0)), WeightError, r"row 5 \(counted from 0\) is -2.*weight 0"),
    (37, "NaN for a weight", fit(X, weight=weight(np.nan)), WeightError, r"row 5 \(counted from 0\) is nan.*weight 0"),
    (37, "infinity for a weight", fit(X, weight=weight(np.inf)), WeightError, r"row 5 \(counted from 0\) is inf.*weight 0"),
    (37, "no weight at all", fit(X, weight=np.zeros(60)), WeightError, r"zero for every row.*sample_weight=None"),
    (37, "texts for weights", fit(X, weight=["heavy"] * 60), WeightError, r"holds a str, not numbers"),
    (38, "a class without weight", fit(X, weight=weight(0.0, slice(20, 40))), WeightError, r"Class 'b' has total weight 0\. .*drop"),
    (38, "all weight on one class", fit(X, weight=weight(0.0, slice(20, 60))), WeightError, r"Class 'b' has total weight 0\. .*drop"),
    (39, "weights too few", fit(X, weight=np.ones(59)), ShapeError, r"sample_weight has 59 entries for 60 rows"),
    (39, "weights in a column", fit(X, weight=np.ones((60, 1))), WeightError, r"shape \(60, 1\) for 60 rows"),
]  # fmt: skip

PRIORS = [
    (40, "priors that sum to 0.9", fit(X, prior=[0.5, 0.2, 0.2]), PriorError, r"sum to 0\.9, not 1\. Divide"),
    (40, "beyond 1e-6", fit(X, prior=[0.5, 0.3, 0.2 + 2e-6]), PriorError, r"sum to 1\.000002, not 1"),
    (40, "when predicting", lambda model: model().fit(X, Y).predict(X, prior=[0.5, 0.2, 0.2]), PriorError, r"sum to 0\.9, not 1"),
    (41, "a negative prior", fit(X, prior=[0.6, -0.1, 0.5]), PriorError, r"class 'b' is -0\.1.*drop it"),
    (41, "NaN for a prior", fit(X, prior=[0.5, 0.5, np.nan]), PriorError, r"class 'c' is nan.*drop it"),
    (41, "a prior of zero", fit(X, prior=[0.0, 0.5, 0.5]), PriorError, r"class 'a' is 0:.*drop it"),
    (41, "priors too few", fit(X, prior=[0.5, 0.5]), PriorError, r"2 entries for 3 classes.*'a', 'b', 'c'"),
    (41, "priors by name", fit(X, prior={"a": 1.0}), PriorError, r"no entry for class\(es\) 'b', 'c'.*'a', 'b', 'c'"),
    (41, "priors of others", fit(X, prior={"a": 0.5, "z": 0.5}), LabelError, r"Unknown class\(es\) 'z'.*'a', 'b', 'c'"),
]  # fmt: skip

TARGET = X[:, 0]
REGRESSION = [
    (1, "NaN in an array", fit(cell(np.nan), TARGET), MissingValueError, MISSING.format("x1")),
    (1, "NaN when predicting", lambda model: model().fit(X, TARGET).predict(cell(np.nan)), MissingValueError, MISSING.format("x1")),
    (2, "infinity", fit(cell(np.inf), TARGET), InfiniteValueError, r"Row 8 .*column 'x1': infinity"),
    (3, "text", fit(cell("n/a", kind=object), TARGET), TextInNumberError, r"Row 8 .*column 'x1'.*'n/a'"),
    (8, "categories", fit(column(pd.Categorical(["p", "q"] * 30)), TARGET), ColumnTypeError, r"Column 'k' holds 2 categories"),
    (11, "a column is missing", lambda model: model().fit(FRAME, TARGET).predict(FRAME[["u", "w"]]), ColumnNamesError, r"Missing column\(s\) 'v'"),
    (15, "two columns of one name", fit(FRAME.set_axis(["u", "v", "u"], axis=1), TARGET), ColumnNamesError, r"'u' occurs at positions 0, 2"),
    (24, "NaN for a response", fit(X, weight(np.nan)), InputError, r"NaN.*row.* 5"),
    (24, "text for a response", fit(X, Y), InputError, r"y holds values such as str.*classifier"),
    (36, "a negative weight", fit(X, TARGET, weight(-2.0)), WeightError, r"row 5 \(counted from 0\) is -2"),
    (37, "NaN for a weight", fit(X, TARGET, weight(np.nan)), WeightError, r"row 5 \(counted from 0\) is nan"),
    (39, "weights too few", fit(X, TARGET, np.ones(59)), ShapeError, r"59 entries for 60 rows"),
]  # fmt: skip

LATER_ROWS = [
    (11, "in later rows", lambda model: model().partial_fit(FRAME, TARGET).partial_fit(FRAME[["u", "w"]], TARGET), ColumnNamesError, r"Missing column\(s\) 'v'"),
]  # fmt: skip

# What has no end, or was not given the passes to come to it.
APART = FRAME.assign(z=np.repeat([0.0, 1.0, 2.0], 20))
RARE = FRAME.assign(z=np.arange(60) == 7)
ENDS = [
    (34, "separated classes", fit(APART), SeparationWarning, r"'a' and 'b', 'a' and 'c', 'b' and 'c' are completely separated.*'u', 'v', 'w', 'z'.*jeffreys.*ridge > 0"),
    (34, "quasi-separated by a rare column", fit(RARE, MIXED), SeparationWarning, r"'a' and 'b', 'b' and 'c' are quasi-completely separated.*of column\(s\) 'z' grow.*jeffreys.*ridge > 0"),
    (34, "by a link", fit(APART[:40], Y[:40], link="probit"), SeparationWarning, r"'a' and 'b' are completely separated"),
    (35, "too few passes", fit(X, MIXED, max_iter=1), NotConvergedWarning, r"stopped after 1 passes with a scaled gradient of \d\.\de-\d+ \(tolerance 1\.0e-08\).*Raise max_iter"),
    (35, "to separated classes too", fit(APART, max_iter=1), SeparationWarning, r"completely separated"),
]  # fmt: skip

LOGISTIC_OPTIONS = [
    (0, "a link for more than two classes", fit(X, link="probit"), OptionError, r"link='probit' .*must be 'logit' for 3 classes"),
    (0, "an unknown link", fit(X, link="loglog"), OptionError, r"link='loglog' .*logit, probit, cloglog, cauchit"),
    (0, "a cost for an unknown label", fit(X, class_weight={"d": 2.0}), LabelError, r"Unknown class\(es\) 'd'; the classes are 'a', 'b', 'c'"),
    *((0, f"a cost of {cost!r}", fit(X, class_weight={"a": cost}), OptionError, r"class_weight=.*positive and finite") for cost in (0, -1.0, np.nan, np.inf, "dear")),
    *((0, f"{name} for costs", fit(X, class_weight=cost), OptionError, r"class_weight=.*'balanced'") for name, cost in (("a word", "heavy"), ("a list", [1, 2, 3]), ("an array", np.ones(3)))),
    *((0, f"ridge {ridge!r}", fit(X, ridge=ridge), OptionError, r"ridge=.*a number, 0 or more") for ridge in (-1, np.nan, np.inf, "small", None)),
    *((0, f"l1_ratio {share!r}", fit(X, ridge=0.1, l1_ratio=share), OptionError, r"l1_ratio=.*a number from 0 to 1") for share in (-0.1, 1.5, np.nan, "half", None)),
    *((0, f"max_iter {most!r}", fit(X, max_iter=most), OptionError, r"max_iter=.*a whole number, 1 or more") for most in (0, 2.5, None)),
    (0, "an unknown solver", fit(X, solver="sag"), OptionError, r"solver='sag'.*auto, newton, lbfgs, gradient"),
    (0, "an unknown bias reduction", fit(X, bias_reduction="firth"), OptionError, r"bias_reduction='firth'.*None or 'jeffreys'"),
    (0, "two penalties", fit(X, bias_reduction="jeffreys", ridge=1.0), OptionError, r"bias_reduction='jeffreys'.*ridge=0"),
    (0, "a word for a switch", fit(X, intercept="no"), OptionError, r"intercept='no'.*True or False"),
    (0, "a number for a function", fit(X, progress=3), OptionError, r"progress=3.*None or a function"),
    (0, "sparse rows too wide to be multiplied", fit(sparse.csr_array(np.tile(X, 600))), OptionError, r"ridge=0.*more than 0 for sparse rows of 1800 features \(1/60"),
]  # fmt: skip

SVM_OPTIONS = [
    (35, "too few steps", fit(X, MIXED, max_steps=1), NotConvergedWarning, r"of class 'a' stopped after 1 steps; its objective may still exceed the minimum by a relative 1\.0e\+00 \(tolerance 1\.0e-08\).*Raise max_steps"),
    (0, "a weight for an unknown label", fit(X, class_weight={"d": 2.0}), LabelError, r"Unknown class\(es\) 'd'; the classes are 'a', 'b', 'c'"),
    *((0, f"a weight of {cost!r}", fit(X, class_weight={"a": cost}), OptionError, r"class_weight=.*positive and finite") for cost in (0, -1.0, np.nan, np.inf, "dear")),
    (0, "a list of weights", fit(X, class_weight=[1, 2, 3]), OptionError, r"class_weight=\[1, 2, 3\].*'balanced'"),
]  # fmt: skip

PERCEPTRON_ENDS = [
    (35, "classes that overlap", fit_unweighted(X, MIXED), NotSeparatedWarning, r"after \d+ passes \d+ of 60 rows are misclassified .*no linear boundary separates.*LDA, Logistic or SVM"),
]  # fmt: skip

GLM_ENDS = [
    (35, "too few passes", fit(X, np.arange(60.0) % 7, family="poisson", max_iter=1), NotConvergedWarning, r"GLM stopped after 1 passes with a scaled gradient of \d\.\de-\d+ \(tolerance 1\.0e-08\).*Raise max_iter"),
    (38, "all weight on one response", fit(X, (Y == "a") * 1.0, weight(0.0, slice(20, 60)), family="binomial"), ResponseError, r"y is 1 in every row.*infinite.*Add rows"),
]  # fmt: skip


# --- from posterior to action ---------------------------------------------------------------------


def decide(**options):
    return lambda model: Decision(model(), **options).fit(X, Y)


def decide_later(**options):
    return lambda model: Decision(model()).fit(X, Y).set_params(**options).decide(X)


def costs(action, label, value):
    """Every error costs 1, but for one cell."""
    found = 1 - np.eye(3)
    found["abc".index(action), "abc".index(label)] = value
    return found


def judge(labels):
    return lambda model: evaluate(model().fit(X, Y), X, labels)


def couple(code):
    return lambda model: OutputCodes(model(), code=code).fit(X, Y)


NEW = np.where(np.arange(60) >= 57, "d", Y)
THIRDS = np.log(np.full((60, 3), 1 / 3))
EVALUATION = [
    (10, "a class that was not fitted", judge(NEW), LabelError, r"'d' \(3 rows\).*'a', 'b', 'c'.*unseen='count'"),
    (10, "two of them", judge(np.where(np.arange(60) < 2, "e", NEW)), LabelError, r"'d' \(3 rows\), 'e' \(2 rows\)"),
    (10, "and posteriors alone", lambda _: assess(NEW, posterior=np.exp(THIRDS), classes=list("abc")), LabelError, r"'d' \(3 rows\)"),
    (39, "labels too few", judge(Y[:50]), ShapeError, r"X has 60 rows and y has 50 labels"),
]  # fmt: skip

SWAPPED = pd.DataFrame(1 - np.eye(3), columns=list("bac"))  # rows unnamed, so b, a, c as well
DECISIONS = [
    (42, "costs of another shape", decide(cost=np.ones((2, 3))), CostError, r"shape \(2, 3\) for 3 classes: pass \(3, 3\).*'a', 'b', 'c'"),
    (42, "a frame of other classes", decide(cost=SWAPPED.set_axis(list("bad"), axis=1)), CostError, r"columns of cost are 'b', 'a', 'd', but the classes are 'a', 'b', 'c'"),
    (42, "rows in another order than columns", decide(cost=SWAPPED.iloc[[1, 0, 2]].reset_index(drop=True)), CostError, r"3 rows of cost have no names.*columns \('b', 'a', 'c'\).*Name the decisions"),
    (42, "the same in polars", decide(cost=pl.from_pandas(SWAPPED.iloc[[1, 0, 2]])), CostError, r"3 rows of cost have no names"),
    (42, "an unknown class", decide(cost={"a": {"z": 1}}), CostError, r"cost of 'a' mentions 'z', which is not one of the classes: 'a', 'b', 'c'"),
    (42, "after the fit", decide_later(cost=np.ones((2, 3))), CostError, r"shape \(2, 3\)"),
    *((43, f"a cost of {value}", decide(cost=costs("a", "c", value)), CostError, rf"deciding 'a' where 'c' is true is {value}: .*0 or more.*very large") for value in (np.nan, np.inf, -2.0)),
    (43, "a right decision that costs", decide(cost=costs("b", "b", 0.5)), CostError, r"deciding 'b' where 'b' is true is 0\.5, but correct decisions must cost 0\. Subtract"),
    (44, "to reject for less than nothing", decide(reject=-0.1), CostError, r"cost of rejecting is -0\.1: .*from 0"),
    (44, "to reject for NaN", decide(reject=np.nan), CostError, r"cost of rejecting is nan"),
    (44, "never rejects", decide(reject=0.7), NeverRejectsWarning, r"rejecting, 0\.7, is never the lowest.*cost of 0\.666667 or less.*below that"),
    (44, "never rejects at the largest cost", decide(reject=5.0, cost=costs("a", "c", 5.0)), NeverRejectsWarning, r"rejecting, 5, is never the lowest"),
    *((45, f"a threshold of {value}", decide(reject={"threshold": value}), ThresholdError, rf"threshold is {value:g}: .*in \[0, 1\]") for value in (1.2, -0.1, np.nan)),
    *((45, f"a threshold of {value} for one class", decide(threshold=[0.2, value, 0.3]), ThresholdError, rf"threshold of 'b' is {value:g}: .*in \[0, 1\]") for value in (1.2, -0.1, np.nan)),
    (45, "unsorted candidates", lambda _: tuned_threshold(THIRDS[:, :2] + np.log(1.5), np.arange(60) % 2, thresholds=[0.2, 0.6, 0.4]), ThresholdError, r"entry 2 .*is 0\.4 after 0\.6\. Sort"),
    (45, "a level of outliers", decide(outlier=2.0), ThresholdError, r"outlier is 2: .*\[0, 1\]"),
]  # fmt: skip


def grow(hierarchy):
    return lambda model: model(tree=hierarchy).fit(X, Y)


HIERARCHIES = [
    (46, "a cycle", grow([("a", "m"), ("b", "m"), ("c", "n"), ("m", "n"), ("n", "m")]), HierarchyError, r"cycle: .*'m'.*remove one of these links"),
    (46, "an orphan", grow([["a", "b"]]), HierarchyError, r"1 label\(s\) are not in the hierarchy: 'c'.*Add the labels to the hierarchy"),
    (46, "two tops", grow([("a", "m"), ("b", "m"), ("c", "n")]), HierarchyError, r"2 roots: 'm', 'n'.*Put one node above them"),
    (46, "a leaf twice", grow([["a", "b"], ["b", "c"]]), HierarchyError, r"Label 'b' occurs 2 times in the hierarchy: tree\[0\]\[1\], tree\[1\]\[0\]. Keep one"),
    (46, "a leaf that is no label", grow([["a", "b"], ["c", "d"]]), HierarchyError, r"not labels: 'd'; the first is at tree\[1\]\[1\]"),
]  # fmt: skip

CODES = [
    (47, "a code with equal rows", couple([[1, -1], [1, -1], [-1, 1]]), CodeError, r"1 pair.*'a' and 'b'"),
    (47, "a ternary code that leaves a pair apart nowhere", couple([[1, 0], [0, 1], [-1, -1]]), CodeError, r"1 pair.*'a' and 'b'"),
    (47, "pairs of one class", lambda model: OneVsOne(model()).fit(X[:20], Y[:20]), LabelError, r"'a'"),
]  # fmt: skip


def over(models, *tables):
    for table in tables:
        for number, what, act, fault, words in table:
            for model in models:
                yield number, f"{what}-{model.__name__}", partial(act, model), fault, words


# number, what is done, the act, what is raised or warned of, what it must say
ARRAYS = [
    *over(CLASSIFIERS, CELLS, NAMES, TABLES),
    *over((LDA, QDA, RDA), GAUSSIAN),
    *over((QDA, RDA), CLASSES_ALONE),
    *over(WEIGHED, WEIGHTS),
    *over((*FAMILY, LaplaceNB, *SELECTING, Logistic), PRIORS),
    *over((LinearRegression, GLM), REGRESSION),
    *over((LinearRegression,), LATER_ROWS),
    *over((Logistic,), ENDS, LOGISTIC_OPTIONS),
    *over((SVM,), SVM_OPTIONS),
    *over((Perceptron,), PERCEPTRON_ENDS),
    *over((GLM,), GLM_ENDS),
    *over((LDA, Logistic), EVALUATION, DECISIONS, CODES),
    *over((LabelTree,), HIERARCHIES),
]
