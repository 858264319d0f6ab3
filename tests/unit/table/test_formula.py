"""Formulas: what is allowed, what is refused and with which words, and what the fit learns."""

import numpy as np
import pandas as pd
import pytest

from discriminant import Encoded, LinearRegression, Logistic
from discriminant.errors import (
    CategoryError,
    EmptyLevelWarning,
    FormulaError,
    LibraryMissingError,
    MissingCellError,
    OptionError,
)
from discriminant.table.formula.expressions import (
    FUNCTIONS,
    column_names,
    parse_expression,
    to_text,
)

RNG = np.random.default_rng(0)
N = 40
FRAME = pd.DataFrame(
    {
        "case": np.where(RNG.normal(size=N) > 0, "yes", "no"),
        "age": RNG.integers(20, 60, N),
        "dose": RNG.uniform(1, 5, N).round(2),
        "group": np.array(["a", "b", "c"])[np.arange(N) % 3],
        "birth weight": RNG.normal(3, 1, N),
        "body.mass": RNG.uniform(20, 30, N),
        "y": RNG.normal(size=N),
    }
)


def features(text, frame=FRAME, **options):
    model = LinearRegression.from_formula(f"y ~ {text}", frame, **options)
    return list(model.encoding_.features)


# --- expressions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("I(a+b*c)", "I(a + b * c)"),
        ("I((a + b) * c)", "I((a + b) * c)"),
        ("I(a - (b - c))", "I(a - (b - c))"),
        ("I(-a**2)", "I(-a^2)"),
        ("I((-a)**2)", "I((-a)^2)"),
        ("I((a**b)**2)", "I((a^b)^2)"),
        ("I(a/b/c)", "I(a/b/c)"),
        ("np.log(a)", "log(a)"),
        ("bs(a,df=4)", "bs(a, df = 4)"),
        ('C(g, levels=["x", "y"])', 'C(g, levels = c("x", "y"))'),
        ("log(`birth weight`)", "log(`birth weight`)"),
        ("log(body.mass)", "log(body.mass)"),
        ('Q("birth weight")', "`birth weight`"),
        ("poly(a, 2, raw=TRUE)", "poly(a, 2, raw = TRUE)"),
        ("I(a >= 3)", "I(a >= 3)"),
    ],
)
def test_expressions_are_printed_as_in_r(text, printed):
    assert to_text(parse_expression(text)) == printed


def test_columns_of_an_expression_are_no_functions_or_contrasts():
    assert column_names(parse_expression("C(group, sum)")) == ("group",)
    assert column_names(parse_expression("log(age) * body.mass / age")) == ("age", "body.mass")


# each would do something if it were evaluated as Python
HOSTILE = [
    "__import__('os').system('touch was_run')",
    "().__class__.__bases__[0].__subclasses__()",
    "age.__class__.mro()",
    "(lambda: age)()",
    "[x for x in age]",
    "{1: age}",
    "open('/etc/passwd').read()",
    "eval('1')",
    "exec('1')",
    "getattr(age, 'sum')",
    "age[0]",
    "f'{age}'",
    "age if age else age",
    "(a := age)",
    "np.save('x', age)",
    "np.loadtxt('x')",
    "pd.read_pickle('x')",
    "log.__globals__",
    "log(age).__class__",
    "I(age)()",
    "C(age, __import__('os'))",
    "b'bytes'",
    "10**10**10 + 99999999999999999999",
    "log(*age)",
    "log(**age)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_expression_can_run_code(text):
    with pytest.raises(FormulaError):
        column = parse_expression(text)
        Logistic.from_formula(f"case ~ {text}", FRAME)
        assert column is None  # not reached: the expression itself is refused, or its column absent


@pytest.mark.parametrize("text", HOSTILE)
def test_no_formula_can_run_code(text):
    with pytest.raises(FormulaError):
        Logistic.from_formula(f"case ~ age + I({text})", FRAME)


def test_every_refused_function_is_named_with_those_allowed():
    with pytest.raises(
        FormulaError, match=r"character 14 .*'system' is not allowed.*log, log2"
    ) as e:
        Logistic.from_formula("case ~ age + system('ls')", FRAME)
    assert all(name in str(e.value) for name in FUNCTIONS)


def test_offset_is_refused_with_the_way_out():
    with pytest.raises(FormulaError, match=r"pass offset= to GLM\.fit"):
        Logistic.from_formula("case ~ age + offset(dose)", FRAME)


def test_deep_and_long_expressions_are_refused():
    for text in (
        "(" * 500 + "age" + ")" * 500,
        "-" * 1500 + "age",
        "log(" * 150 + "age" + ")" * 150,
    ):
        with pytest.raises(FormulaError):
            parse_expression(f"I({text}+{text})")
    with pytest.raises(FormulaError, match=r"limit is 2000"):
        parse_expression("age+" * 600 + "1")


# --- formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("age + dose", ["age", "dose"]),
        ("age * dose", ["age", "dose", "age:dose"]),
        ("(age + dose)^2", ["age", "dose", "age:dose"]),
        ("group", ["groupb", "groupc"]),
        ("group - 1", ["groupa", "groupb", "groupc"]),
        ("0 + group", ["groupa", "groupb", "groupc"]),
        ("C(group, Treatment('b'))", ['C(group, Treatment("b"))a', 'C(group, Treatment("b"))c']),
        ("C(group, levels=['c', 'b', 'a'])", None),
        ("I(age^2 + 1)", ["I(age^2 + 1)"]),
        ("`birth weight`", ["`birth weight`"]),
        ("body.mass + log(body.mass)", ["body.mass", "log(body.mass)"]),
        ("log(`birth weight` + 10)", ["log(`birth weight` + 10)"]),
        ("center(age)", ["center(age)"]),
        ("dose:group", ["dose:groupa", "dose:groupb", "dose:groupc"]),
        ("age + age", ["age"]),
    ],
)
def test_names_of_features(text, names):
    found = features(text)
    assert found == names or (names is None and [name[-1] for name in found] == ["b", "a"])


def test_a_power_within_an_expression_binds_as_in_r():
    """In Python `^` binds less than `+`, so that x^2 + 1 would be x^3."""
    model = LinearRegression.from_formula("y ~ I(dose^2 + 1)", FRAME)
    np.testing.assert_allclose(model.encode(FRAME)[:, 0], FRAME["dose"] ** 2 + 1)


def test_the_dot_means_all_other_columns():
    frame = FRAME[["case", "age", "dose"]]
    assert list(Logistic.from_formula("case ~ .", frame).encoding_.features) == ["age", "dose"]
    model = Logistic.from_formula("case ~ . - age", frame)
    assert list(model.encoding_.features) == ["dose"]


def test_without_intercept_the_model_has_none():
    model = Logistic.from_formula("case ~ age + dose - 1", FRAME)
    assert model.estimator_.intercept is False and model.intercept_.tolist() == [0.0]
    plain = Logistic(intercept=False).fit(FRAME[["age", "dose"]], FRAME["case"])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


def test_a_model_without_that_option_refuses_a_formula_without_intercept():
    from discriminant import LDA

    with pytest.raises(FormulaError, match=r"LDA has no option to leave it out"):
        LDA.from_formula("case ~ age - 1", FRAME)
    with pytest.raises(FormulaError, match=r"Logistic\(intercept=False\) contradicts"):
        Logistic.from_formula("case ~ age", FRAME, intercept=False)


def test_declared_levels_are_those_of_pandas_in_their_order():
    ordered = pd.Categorical(FRAME["group"], categories=["c", "a", "b"])
    assert features("group", FRAME.assign(group=ordered)) == ["groupa", "groupb"]


def test_a_declared_level_without_rows_is_left_out_with_a_warning():
    """As R's glm does; the level is unknown when predicting."""
    more = pd.Categorical(FRAME["group"], categories=["a", "b", "c", "d"])
    frame = FRAME.assign(group=more)
    with pytest.warns(EmptyLevelWarning, match=r"level\(s\) 'd', so they have no coefficient"):
        model = Logistic.from_formula("case ~ group", frame)
    assert model.encoding_.features == ("groupb", "groupc")
    with pytest.raises(CategoryError, match="the category 'd' was not seen"):
        model.predict(FRAME.assign(group="d"))
    with pytest.warns(EmptyLevelWarning, match="'d'"):
        assert len(features("C(group, levels=['a', 'b', 'c', 'd'])")) == 2


def test_booleans_are_levels():
    frame = FRAME.assign(flag=FRAME["age"] > 40)
    assert features("flag", frame) == ["flagTRUE"]
    assert features("I(age > 40)", frame) == ["I(age > 40)TRUE"]
    flag = LinearRegression.from_formula("y ~ flag", frame)
    test = LinearRegression.from_formula("y ~ I(age > 40)", frame)
    np.testing.assert_array_equal(flag.predict(frame), test.predict(frame))


def test_an_expression_may_be_the_response():
    frame = FRAME.assign(y=np.exp(FRAME["y"]))
    model = LinearRegression.from_formula("log(y) ~ age", frame)
    np.testing.assert_allclose(
        model.predict(frame), LinearRegression.from_formula("y ~ age", FRAME).predict(FRAME)
    )
    young = Logistic.from_formula("I(age < 40) ~ dose", FRAME)
    assert young.classes_.tolist() == [False, True]


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("case ~ agee", r"the column 'agee' \(character 8\).*Did you mean 'age'\?"),
        ("cas ~ age", r"the column 'cas' \(character 1\)"),
        ("case ~ age + case", "response 'case' is also on the right-hand side"),
        ("case ~ log(case)", "response 'case' is also on the right-hand side"),
        ("case ~ age + ", "cannot be parsed"),
        ("case ~ age + log(dose", "cannot be parsed"),
        ("case ~ age + log(dose +)", r"cannot be parsed, at character \d+"),
        ("case ~ age dose", r"cannot be parsed, at character 8: Missing operator"),
        ("case ~ age | group", "cannot be parsed"),
        ("case ~ (age]", "cannot be parsed"),
        ("case ~ 1", "no terms besides the intercept"),
        ("case ~ 2:age", r"write I\(2 \* x\)"),
        ("case + y ~ age", "must be one column"),
        ("case ~ group + log(group)", "'group' in the formula is not a number"),
        ("case ~ log(age - 1000)", r"'log\(age - 1000\)' in the formula is not finite in row 0"),
        ("case ~ I(3)", "cannot be parsed|does not depend on any column"),
        ("case ~ C(group, foo)", "is not the name of contrasts|not allowed"),
        ("case ~ C(group, Treatment('z'))", "no row has the reference level 'z'"),
        ("case ~ C(group, levels=['a', 'b'])", "the level 'c', which is not among those listed"),
        ("case ~ poly(age, 99)", "a degree from 1 to 50"),
        ("case ~ poly(I(age > 30), 2)", "needs 3 different values"),
        ("case ~ scale(I(age * 0))", "one value in all rows"),
        ("case ~ bs(age, df=1)", "df from 3"),
        ("case ~ poly(age, degre=2)", "options degree, raw"),
        ("case ~ (age + dose)^40", "the power is above"),
        ("", "A formula is a text"),
    ],
)
def test_a_bad_formula_is_named(text, words):
    with pytest.raises(FormulaError, match=words):
        Logistic.from_formula(text, FRAME)


def test_the_character_is_that_of_the_text_and_not_of_its_powers():
    with pytest.raises(FormulaError, match=r"At character 27 "):
        Logistic.from_formula("case ~ I(age^2) + I(age^3*open(1))", FRAME)


def test_a_category_of_one_level_is_named():
    with pytest.raises(FormulaError, match=r"'group' in the formula has one level .*'a'"):
        features("age + group", FRAME.assign(group="a"))


def test_unknown_levels_are_named_when_predicting():
    model = Logistic.from_formula("case ~ group + C(age > 40)", FRAME)
    new = FRAME.assign(group=["z"] + ["a"] * (N - 1))
    with pytest.raises(CategoryError, match=r"Row 0 .*column 'group': the category 'z'"):
        model.predict(new)
    model = Logistic.from_formula("case ~ C(dose_level)", FRAME.assign(dose_level=FRAME.index % 3))
    with pytest.raises(FormulaError, match=r"Row 2 .*'C\(dose_level\)' has a level"):
        model.predict(FRAME.assign(dose_level=[0, 1, 7] + [1] * (N - 3)))


def test_unknown_levels_count_as_none_or_are_rejected():
    new = FRAME.assign(group=["z"] + ["a"] * (N - 1))
    ignore = Logistic.from_formula("case ~ age + group", FRAME, unseen="ignore")
    reference = ignore.predict_proba(FRAME.assign(group="a"))
    np.testing.assert_array_equal(ignore.predict_proba(new), reference)
    reject = Logistic.from_formula("case ~ age + group", FRAME, unseen="reject")
    assert reject.rejected(new).tolist() == [True] + [False] * (N - 1)


def test_missing_cells_are_named_or_their_rows_dropped():
    dose = FRAME["dose"].copy()
    dose[3] = np.nan
    gaps = FRAME.assign(dose=dose)
    with pytest.raises(MissingCellError, match=r"Row 3 .*column 'dose'"):
        Logistic.from_formula("case ~ log(dose)", gaps)
    model = Logistic.from_formula("case ~ log(dose)", gaps, missing="drop")
    whole = Logistic.from_formula("case ~ log(dose)", FRAME.drop(index=3))
    assert model.rows_dropped_ == 1
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    with pytest.raises(MissingCellError, match=r"Row 3 .*column 'dose'"):
        model.predict(gaps)
    assert Logistic.from_formula("case ~ age", gaps).rows_dropped_ == 0  # dose is not used
    with pytest.raises(OptionError, match=r"'error' or 'drop' with a formula"):
        Logistic.from_formula("case ~ dose", gaps, missing="mean")


def test_rows_outside_the_range_of_a_spline_are_named():
    model = LinearRegression.from_formula("y ~ bs(age, df=4)", FRAME)
    with pytest.raises(FormulaError, match=r"row 1 .* lies outside"):
        model.predict(FRAME.assign(age=[30, 99] + [30] * (N - 2)))


def test_formulaic_is_needed_by_a_fit_only(monkeypatch, tmp_path):
    import sys

    import discriminant as dd

    model = Logistic.from_formula("case ~ poly(age, 2) + group", FRAME)
    model.save(tmp_path / "model.dd")
    for name in [*sys.modules]:
        if name.partition(".")[0] == "formulaic":
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(LibraryMissingError, match=r"pip install '\.\[formula\]'"):
        Logistic.from_formula("case ~ age", FRAME)
    loaded = dd.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))


def test_options_that_a_formula_replaces_are_refused():
    with pytest.raises(OptionError, match=r"left out with a formula"):
        Encoded(Logistic(), formula="case ~ age", categories=("group",)).fit(FRAME)
    with pytest.raises(FormulaError, match=r"and y is given too"):
        Encoded(Logistic(), formula="case ~ age").fit(FRAME, FRAME["case"])


def test_the_state_of_a_transform_is_that_of_the_fit():
    for text in ("poly(age, 3)", "scale(dose)", "bs(dose, df=5)", "center(log(dose))"):
        model = LinearRegression.from_formula(f"y ~ {text}", FRAME)
        whole = model.encode(FRAME)
        np.testing.assert_allclose(model.encode(FRAME[:3]), whole[:3], rtol=1e-12)
    np.testing.assert_allclose(
        LinearRegression.from_formula("y ~ poly(age, 3)", FRAME).encode(FRAME).T
        @ LinearRegression.from_formula("y ~ poly(age, 3)", FRAME).encode(FRAME),
        np.eye(3),
        atol=1e-12,
    )


def test_columns_named_by_numbers_are_columns():
    frame = pd.DataFrame({"0": FRAME["age"], "1": FRAME["dose"], "y": FRAME["y"]})
    model = LinearRegression.from_formula("y ~ .", frame)
    assert model.encoding_.features == ("`0`", "`1`")
    same = LinearRegression.from_formula("y ~ `0` + I(`1`)", frame)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert LinearRegression.from_formula("y ~ . - `0`", frame).encoding_.features == ("`1`",)
    both = LinearRegression.from_formula("y ~ `0` + `1` + log(`1`)", frame)
    assert both.encoding_.features == ("`0`", "`1`", "log(`1`)")
