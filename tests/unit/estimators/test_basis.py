"""Basis: what its columns are, to the last digit, and that they make crooked borders straight."""

import pickle
import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from discriminant import LDA, QDA, Basis, Logistic
from discriminant.errors import (
    BasisError,
    ColumnNamesError,
    InfiniteValueError,
    InputError,
    MissingValueError,
    OptionError,
    SeparationWarning,
    ShapeError,
)
from discriminant.estimators import basis as estimator

RNG = np.random.default_rng(4)
X, Y = load_iris(return_X_y=True)
ROWS = RNG.normal(size=(500, 3))
FRAME = pd.DataFrame(
    {"age": 40 + 12 * RNG.normal(size=60), "income": 35e3 + 21e3 * RNG.normal(size=60)}
)

BASES = [
    Basis(),
    Basis(degree=4, interactions="only"),
    Basis(degree=3, interactions=False, origin="zero"),
    Basis(degree=2, centres=4),
    Basis(degree=None, centres=[[5.0, 3.4, 1.5, 0.2], [6.3, 2.9, 5.0, 1.7]], width=1.5),
]
every_basis = pytest.mark.parametrize("basis", BASES, ids=repr)

# --- polynomials ----------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("interactions", [True, "only"])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_about_zero_the_columns_are_those_of_scikit_learn(degree, interactions, width):
    rows = ROWS[:, :width]
    theirs = PolynomialFeatures(degree, interaction_only=interactions == "only", include_bias=False)
    ours = Basis(degree=degree, interactions=interactions, origin="zero").fit(rows)
    np.testing.assert_allclose(ours.transform(rows), theirs.fit_transform(rows), rtol=1e-14)
    names = [name.replace(" × ", " ") for name in ours.get_feature_names_out()]
    assert names == theirs.get_feature_names_out().tolist()


def test_without_interactions_there_are_powers_alone():
    found = Basis(degree=3, interactions=False, origin="zero").fit_transform(ROWS)
    np.testing.assert_allclose(found, np.hstack([ROWS, ROWS**2, ROWS**3]), rtol=1e-15)


def evaluated(name, row):
    """The number that the name of a column says, in exact arithmetic."""
    text = re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", lambda m: f"F({m.group()!r})", name)
    for feature in row:
        text = text.replace(feature.replace("0", "F('0')").replace("1", "F('1')"), feature)
    text = text.replace("×", "*").replace("^F", "**F")
    numbers = {feature: Fraction(float(value)) for feature, value in row.items()}
    return eval(text, {"F": lambda digits: Fraction(float(digits))}, numbers)


@pytest.mark.parametrize("origin", ["mean", "zero", [3.25, -1e7]])
@pytest.mark.parametrize("shift", [0.0, -7.25, 1e8, 3e15])
def test_a_name_says_its_column_to_the_last_digits(origin, shift):
    rows = RNG.normal(size=(20, 2)) * [1.0, 300.0] + shift
    basis = Basis(degree=3, origin=origin).fit(rows)
    found, names = basis.transform(rows), basis.get_feature_names_out()
    for row, columns in zip(rows[:5], found, strict=False):
        exact = [evaluated(name, {"x0": row[0], "x1": row[1]}) for name in names]
        worst = max(
            abs(Fraction(float(c)) - e) / (abs(e) or 1) for c, e in zip(columns, exact, strict=True)
        )
        assert worst < 2**-50


@given(
    seed=st.integers(0, 999),
    mean=st.floats(-1e12, 1e12),
    spread=st.sampled_from([1e-3, 0.5, 2.0, 9.99, 1e6]),
)
def test_the_origin_is_within_half_a_spread_and_has_few_digits(seed, mean, spread):
    column = mean + spread * np.random.default_rng(seed).normal(size=(50, 1))
    origin, sd = Basis().fit(column).origin_[0], column.std()
    assert abs(origin - column.mean()) <= 0.5 * sd + 1e-15 * abs(mean)
    place = 10.0 ** np.floor(np.log10(sd))
    assert abs(round(origin / place) * place - origin) <= 1e-15 * abs(origin)


def test_numbers_that_are_centred_already_have_the_plain_names():
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    names = Basis(degree=2, interactions=False).fit(centred).get_feature_names_out()
    assert names.tolist() == ["x0", "x1", "x2", "x3", "x0^2", "x1^2", "x2^2", "x3^2"]


def test_names_are_in_the_words_of_the_frame():
    names = Basis().fit(FRAME).get_feature_names_out()
    age, income = (re.escape(text) for text in ("(age - 40)", "(income - "))
    assert re.fullmatch(rf"{age} × {income}\d0000\)", names[3])
    raw = Basis(origin="zero").fit(FRAME).get_feature_names_out()
    assert raw.tolist() == ["age", "income", "age^2", "age × income", "income^2"]


@pytest.mark.parametrize("interactions", [True, "only", False])
def test_the_origin_does_not_change_what_lda_says(interactions):
    about = [
        make_pipeline(Basis(degree=2, interactions=interactions, origin=origin), LDA()).fit(X, Y)
        for origin in ("mean", "zero", [1.0, -2.0, 0.5, 0.0])
    ]
    said = [model.predict_log_proba(X) for model in about]
    np.testing.assert_allclose(said[1], said[0], atol=1e-7)
    np.testing.assert_allclose(said[2], said[0], atol=1e-7)


@pytest.mark.filterwarnings("error")
def test_a_mean_of_a_hundred_million_costs_no_digit():
    near = np.round(ROWS * 2**16) / 2**16
    y = (near**2).sum(axis=1) > 2.0
    here = make_pipeline(Basis(origin=[0.0] * 3), LDA()).fit(near, y)
    there = make_pipeline(Basis(), LDA()).fit(near + 1e8, y)
    np.testing.assert_allclose(
        there.predict_log_proba(near + 1e8), here.predict_log_proba(near), atol=1e-9
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("origin", ["mean", "zero"])
def test_columns_of_extreme_scale_neither_vanish_nor_overflow(scale, origin):
    y = (ROWS**2).sum(axis=1) > 2.0
    plain = make_pipeline(Basis(origin=origin), LDA()).fit(ROWS, y)
    scaled = make_pipeline(Basis(origin=origin), LDA()).fit(ROWS * scale, y)
    assert np.array_equal(scaled.predict(ROWS * scale), plain.predict(ROWS))
    assert "/ 2^" in scaled[0].get_feature_names_out()[3]


# --- kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0.3, 1.0, 20.0])
def test_kernels_are_those_of_scikit_learn(width):
    centres = RNG.normal(size=(7, 3))
    found = Basis(degree=None, centres=centres, width=width).fit_transform(ROWS)
    np.testing.assert_allclose(found, rbf_kernel(ROWS, centres, gamma=0.5 / width**2), rtol=1e-9)


@pytest.mark.parametrize("shift", [1e8, -1e12])
def test_kernels_are_the_same_far_from_zero(shift):
    near, centres = np.round(ROWS * 2**10) / 2**10, np.round(ROWS[:4] * 2**10) / 2**10
    here = Basis(degree=None, centres=centres, width=0.7).fit_transform(near)
    there = Basis(degree=None, centres=centres + shift, width=0.7).fit_transform(near + shift)
    assert np.array_equal(here, there)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_kernels_do_not_depend_on_the_unit(scale):
    here = Basis(degree=None, centres=3).fit_transform(ROWS)
    there = Basis(degree=None, centres=3).fit_transform(ROWS * scale)
    np.testing.assert_allclose(there, here, atol=1e-12)


def test_the_width_is_the_median_distance_between_centres():
    centres = [[0.0, 0.0], [3.0, 4.0], [0.0, 10.0]]  # 5, 10, sqrt(45) apart
    assert Basis(centres=centres).fit(ROWS[:, :2]).width_ == pytest.approx(np.sqrt(45))


def test_the_width_of_a_single_centre_is_how_far_rows_are_from_it():
    basis = Basis(centres=[[1.0, 2.0, 3.0]]).fit(ROWS)
    far = np.sqrt(((ROWS - [1.0, 2.0, 3.0]) ** 2).sum(axis=1).mean())
    assert basis.width_ == pytest.approx(far)


def test_k_means_finds_the_middle_of_every_cluster():
    middles = np.array([[0.0, 0.0], [0.0, 20.0], [20.0, 0.0]]) + 1e6
    rows = np.repeat(middles, 50, axis=0) + np.random.default_rng(3).normal(size=(150, 2))
    found, want = Basis(centres=3).fit(rows).centres_, rows.reshape(3, 50, 2).mean(axis=1)
    found, want = (centres[np.argsort(centres @ [1.0, 3.0])] for centres in (found, want))
    np.testing.assert_allclose(found, want, rtol=1e-14)


def test_the_same_seed_finds_the_same_centres(monkeypatch):
    monkeypatch.setattr(estimator, "_SAMPLE", 100)
    one, two = (Basis(centres=3, random_state=7).fit(ROWS).centres_ for _ in range(2))
    assert np.array_equal(one, two)


def test_kernels_are_named_by_where_they_are():
    centres = [[5.1, 3.5], [6.0, -2.04]]
    names = Basis(degree=None, centres=centres, width=0.5).fit(X[:, :2]).get_feature_names_out()
    assert names.tolist() == ["near (5.1, 3.5)", "near (6, -2.04)"]


def test_indistinguishable_kernels_are_numbered():
    centres = [[5.1, 3.5], [5.1 + 1e-9, 3.5]]
    names = Basis(degree=None, centres=centres, width=9.0).fit(X[:, :2]).get_feature_names_out()
    assert names.tolist() == ["near (5.1, 3.5) #1", "near (5.1, 3.5) #2"]


def test_kernels_are_named_to_three_digits_in_every_column_however_wide_they_are():
    centres = [[5.1, 0.00321, 203.4, 3714.2], [4.9, 0.0, 197.0, 3690.0]]
    names = Basis(degree=None, centres=centres, width=500.0).fit(centres).get_feature_names_out()
    assert names.tolist() == ["near (5.1, 0.00321, 203, 3710)", "near (4.9, 0, 197, 3690)"]


def test_close_kernels_are_named_with_more_digits():
    centres = [[3714.2], [3712.0]]
    names = Basis(degree=None, centres=centres, width=500.0).fit(centres).get_feature_names_out()
    assert names.tolist() == ["near (3714)", "near (3712)"]


def test_centres_in_a_frame_are_matched_by_name():
    centres = pd.DataFrame({"income": [1e4], "age": [30.0]})
    assert Basis(centres=centres, width=1.0).fit(FRAME).centres_.tolist() == [[30.0, 1e4]]


# --- the picture of lecture 4 ---------------------------------------------------------------------

CROSSES = np.array([[-1.0, -1.0], [1.0, 1.0]])


def lecture():
    """One class within 0.5 of two crosses, the other farther than 1 from both."""
    rows = np.random.default_rng(8).uniform(-2.5, 2.5, size=(2000, 2))
    far = np.linalg.norm(rows[:, None] - CROSSES, axis=2).min(axis=1)
    kept = (far < 0.5) | (far > 1.0)
    return rows[kept], far[kept] < 0.5


def test_two_gaussian_kernels_make_the_classes_of_the_lecture_linearly_separable():
    """With width 0.5 the kernels sum to more than exp(-1/2) inside, to less than 2 exp(-2) out."""
    rows, inside = lecture()
    total = Basis(degree=None, centres=CROSSES, width=0.5).fit_transform(rows).sum(axis=1)
    assert total[inside].min() >= np.exp(-0.5) > 2 * np.exp(-2.0) >= total[~inside].max()


def test_lda_finds_the_border_of_the_lecture_in_the_space_of_the_kernels_alone():
    rows, inside = lecture()
    equal = [0.5, 0.5]
    plain = LDA(prior=equal).fit(rows, inside)
    kernels = make_pipeline(Basis(degree=None, centres=CROSSES, width=0.5), LDA(prior=equal))
    assert 1 - plain.score(rows, inside) > 0.3
    assert kernels.fit(rows, inside).score(rows, inside) == 1.0


def test_logistic_regression_sees_that_two_kernels_separate_what_features_do_not():
    rows, inside = lecture()
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeparationWarning)
        plain = Logistic().fit(rows, inside)
    assert not plain.predict(rows).any()  # no line is better than to call no row inside
    kernels = make_pipeline(Basis(degree=None, centres=CROSSES, width=0.5), Logistic())
    with pytest.warns(SeparationWarning, match="completely separated"):
        assert kernels.fit(rows, inside).score(rows, inside) == 1.0


def test_a_square_makes_a_circle_a_straight_line():
    rows, inner = make_circles(400, noise=0.05, factor=0.5, random_state=0)
    assert LDA().fit(rows, inner).score(rows, inner) < 0.6
    assert make_pipeline(Basis(), LDA()).fit(rows, inner).score(rows, inner) == 1.0


def test_one_product_is_all_that_xor_needs():
    """Every row comes with its three mirror images, so that the features alone say nothing."""
    quarter = RNG.uniform(0.1, 1, size=(100, 2))
    rows = np.vstack([quarter * signs for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1))])
    odd = rows.prod(axis=1) < 0
    product = make_pipeline(Basis(interactions="only"), LDA()).fit(rows, odd)
    assert product.score(rows, odd) == 1.0
    assert LDA().fit(rows, odd).score(rows, odd) == 0.5


# --- sparse rows ----------------------------------------------------------------------------------

THIN = sparse.random_array((200, 6), density=0.2, rng=5, format="csr")


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("interactions", [True, "only", False])
def test_sparse_rows_stay_sparse_and_say_the_same(degree, interactions):
    basis = Basis(degree=degree, interactions=interactions).fit(THIN)
    found = basis.transform(THIN)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), basis.transform(THIN.toarray()), rtol=1e-14)


def test_sparse_rows_are_counted_from_zero():
    assert Basis().fit(THIN).get_feature_names_out()[6] == "x0^2"


# --- company --------------------------------------------------------------------------------------


@every_basis
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_are_matched_by_name(basis, frame):
    names = ["a", "b", "c", "d"]
    rows = frame(dict(zip(names, X.T, strict=True)))
    fitted = clone(basis).fit(rows)
    assert np.array_equal(fitted.transform(rows[names[::-1]]), fitted.transform(rows))


@every_basis
def test_blocks_of_rows_say_what_the_whole_says(basis, monkeypatch):
    whole = clone(basis).fit_transform(X)
    monkeypatch.setattr(estimator, "_BLOCK", 1)
    assert np.array_equal(clone(basis).fit(X).transform(X), whole)


@every_basis
def test_a_copy_by_pickle_says_the_same(basis):
    fitted = clone(basis).fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))


@every_basis
def test_single_precision_is_expanded_in_double(basis):
    narrow = X.astype(np.float32)
    fitted = clone(basis).fit(narrow)
    assert np.array_equal(fitted.transform(narrow), fitted.transform(narrow.astype(np.float64)))


@every_basis
def test_every_attribute_is_there_whatever_the_options(basis):
    fitted = clone(basis).fit(X)
    assert {"origin_", "unit_", "centres_", "width_"} <= set(vars(fitted))


def test_options_of_a_basis_are_searched_in_a_pipeline():
    rows, inside = lecture()
    pipeline = make_pipeline(Basis(degree=1), QDA())
    grid = {"basis__degree": [1, 2], "basis__centres": [None, 2, CROSSES], "basis__width": [0.5]}
    found = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(rows, inside)
    assert found.best_params_["basis__centres"] is CROSSES and found.best_score_ > 0.99


def test_without_a_fit_there_is_nothing_to_expand():
    with pytest.raises(NotFittedError, match="Basis"):
        Basis().transform(X)


# --- bad input ------------------------------------------------------------------------------------

HOLE = np.where(np.arange(600).reshape(150, 4) == 25, np.nan, X)
WIDE = np.zeros((3, 200))


@pytest.mark.parametrize(
    ("options", "rows", "error", "text"),
    [
        ({"degree": 0}, X, OptionError, r"degree=0 .*whole number, 1 .*or more.*None for kernels"),
        ({"degree": -1}, X, OptionError, r"degree=-1 "),
        ({"degree": 1.5}, X, OptionError, r"degree=1\.5 .*whole number"),
        ({"degree": True}, X, OptionError, r"degree=True .*whole number"),
        ({"degree": "2"}, X, OptionError, r"degree='2' .*whole number"),
        ({"degree": None}, X, OptionError, r"degree=None .*if there are no centres"),
        ({"interactions": "no"}, X, OptionError, r"interactions='no' .*True, False or 'only'"),
        ({"origin": "median"}, X, OptionError, r"origin='median' .*'mean', 'zero'"),
        ({"origin": [1.0]}, X, OptionError, r"origin=\[1\.0\] .*4 finite numbers"),
        ({"origin": [np.nan] * 4}, X, OptionError, r"origin=.*4 finite numbers"),
        ({"origin": ["a"] * 4}, X, OptionError, r"origin=.*4 finite numbers"),
        ({"origin": [1.0] * 6}, THIN, OptionError, r"origin=.*'zero' for sparse rows"),
        ({"centres": 0}, X, OptionError, r"centres=0 .*number of centres"),
        ({"centres": 2.5}, X, OptionError, r"centres=2\.5 .*number of centres"),
        ({"centres": np.float64(2)}, X, OptionError, r"centres=.*2\.0.* .*number of centres"),
        ({"centres": [[1.0] * 4, [2.0]]}, X, ShapeError, r"Row 1 .* has 1 entries and row 0 has 4"),
        ({"centres": "many"}, X, OptionError, r"centres='many' .*number of centres"),
        ({"centres": [1.0, 2.0]}, X, ShapeError, r"2D array, got 1D"),
        ({"centres": 151}, X, BasisError, r"151 centres for 150 rows.*centres=150 or fewer"),
        ({"centres": 3}, X[[0] * 9 + [1]], BasisError, r"3 centres for 10 row.*2 of them distinct"),
        (
            {"centres": X[:5, :3]},
            X,
            BasisError,
            r"shape \(5, 3\) for 4 features.*4 numbers",
        ),
        ({"centres": HOLE[:9]}, X, BasisError, r"Centre 6 \(counted from 0\).*not finite"),
        ({"centres": X[:1]}, X[[0, 0]], BasisError, r"all rows are the same point.*Pass width"),
        ({"centres": 2}, THIN, BasisError, r"[Kk]ernels of sparse rows.*toarray"),
        ({"centres": 2, "width": 0.0}, X, OptionError, r"width=0\.0 .*positive number"),
        ({"centres": 2, "width": np.inf}, X, OptionError, r"width=inf .*positive number"),
        ({"centres": 2, "width": "wide"}, X, OptionError, r"width='wide' .*positive number"),
        ({"max_columns": 0}, X, OptionError, r"max_columns=0 .*whole number"),
        (
            {},
            WIDE,
            BasisError,
            r"200 features up to degree 2 .*20,300 columns.*limit is 10,000",
        ),
        ({"degree": 9, "interactions": "only"}, WIDE, BasisError, r"columns; the limit is 10,000"),
        ({"max_columns": 16, "centres": 3}, X, BasisError, r"17 columns; the limit is 16.*=17"),
        ({}, HOLE, MissingValueError, r"Row 6 .*column 'x1': missing"),
        ({}, np.where(X == 5.1, np.inf, X), InfiniteValueError, r"Row 0 .*column 'x0': infinity"),
        ({}, np.zeros((0, 2)), ShapeError, r"0 sample\(s\)"),
        ({}, np.zeros((2, 0)), ShapeError, r"0 feature\(s\)"),
        (
            {},
            pd.DataFrame({"a": [-1.0, 1.0], "a^2": [1.0, 2.0]}),
            ColumnNamesError,
            r"'a\^2'.*1, ",
        ),
    ],
)
def test_invalid_options_raise_with_numbers_and_remedy(options, rows, error, text):
    with pytest.raises(error, match=text):
        Basis(**options).fit(rows)


@pytest.mark.parametrize(
    ("basis", "rows", "error", "text"),
    [
        (Basis(), HOLE, MissingValueError, r"Row 6 .*column 'x1': missing"),
        (Basis(degree=None, centres=2), HOLE, MissingValueError, r"Row 6 .*column 'x1'"),
        (
            Basis(degree=None, centres=2),
            np.full((1, 4), -np.inf),
            InfiniteValueError,
            r"Row 0 .*'x0'",
        ),
        (Basis(degree=3), np.vstack([X, X[:1] * 1e200]), BasisError, r"Row 150 .*\(x0 - 5\.8\)\^2"),
        (Basis(), X[:, :3], ShapeError, r"3 features, but Basis is expecting 4"),
        (Basis(), sparse.csr_array(X), BasisError, r"\(x3 - 1\.2\)\^2' of sparse rows.*'zero'"),
        (Basis(centres=2), sparse.csr_array(X), BasisError, r"[Kk]ernels of sparse rows"),
    ],
)
def test_rows_that_cannot_be_expanded_are_named(basis, rows, error, text):
    with pytest.raises(error, match=text):
        clone(basis).fit(X).transform(rows)


def test_every_refusal_is_a_value_error_of_the_package():
    assert issubclass(BasisError, InputError) and issubclass(BasisError, ValueError)


# --- random features ------------------------------------------------------------------------------


def test_relu_features_are_the_formula():
    rows = RNG.normal(3, 2, (40, 3))
    basis = Basis(degree=None, random_features=7, random_state=3).fit(rows)
    u = (rows - rows.mean(axis=0)) / (rows.std(axis=0) * np.sqrt(3))
    part = basis.basis_.parts[0]
    expected = np.maximum(0, u @ basis.random_weights_ + part.bias)
    np.testing.assert_allclose(basis.transform(rows), expected, rtol=1e-12, atol=1e-12)
    assert basis.get_feature_names_out().tolist() == [f"relu {j}" for j in range(1, 8)]


def test_products_of_fourier_features_approximate_the_gaussian_kernel():
    rows = RNG.normal(size=(30, 4))
    basis = Basis(
        degree=None, random_features=40_000, activation="fourier", width=1.5, max_columns=50_000
    ).fit(rows)
    columns = basis.transform(rows)
    kernel = rbf_kernel(rows, gamma=1 / (2 * 1.5**2))
    np.testing.assert_allclose(columns @ columns.T, kernel, atol=5 / np.sqrt(40_000))


def test_random_features_follow_the_polynomial_and_the_kernels():
    rows = RNG.normal(size=(50, 2))
    options = {"degree": 2, "centres": [[0.0, 1.0]], "width": 0.7}
    plain, more = Basis(**options).fit(rows), Basis(**options, random_features=5).fit(rows)
    np.testing.assert_array_equal(more.transform(rows)[:, :6], plain.transform(rows))
    assert more.transform(rows).shape == (50, 11)


def test_random_features_depend_on_the_seed_only():
    rows = RNG.normal(size=(50, 2))
    first, again, other = (
        Basis(random_features=5, random_state=seed).fit(rows).transform(rows) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_features_ignore_units_and_constant_columns():
    rows = np.column_stack([RNG.normal(size=(50, 2)), np.full(50, 3.0)])
    here = Basis(degree=None, random_features=5).fit(rows)
    scaled = rows * [1024.0, 0.25, 1.0]
    there = Basis(degree=None, random_features=5).fit(scaled)
    np.testing.assert_allclose(here.transform(rows), there.transform(scaled), rtol=1e-9, atol=1e-12)
    assert np.isfinite(here.transform(rows)).all()


def test_a_linear_model_on_random_features_separates_circles():
    X, inner = make_circles(400, noise=0.05, factor=0.5, random_state=0)
    basis = Basis(degree=1, random_features=200)
    model = make_pipeline(basis, LDA(shrinkage="oas")).fit(X[::2], inner[::2])
    assert model.score(X[1::2], inner[1::2]) > 0.98


@pytest.mark.parametrize(
    "options, words",
    [
        ({"random_features": 0}, "None, or the number of random features"),
        ({"random_features": 5, "activation": "tanh"}, "one of relu, fourier"),
        ({"random_features": 5, "width": -1.0}, "a positive number, or None"),
        ({"degree": None}, "no centres and no random features"),
    ],
)
def test_invalid_options_of_random_features_are_named(options, words):
    with pytest.raises(OptionError, match=words):
        Basis(**options).fit(ROWS)


def test_sparse_rows_have_no_random_features():
    with pytest.raises(BasisError, match="of sparse rows, and random features"):
        Basis(random_features=5).fit(sparse.csr_array(ROWS))
