"""Many classes from two: codes, decoding, coupling, and members from moments or from rows."""

import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import sparse as matrices
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import discriminant as dd
from discriminant import (
    LDA,
    QDA,
    RDA,
    Fisher,
    LeastSquares,
    Logistic,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OutputCodes,
    cross_validate,
    moments,
)
from discriminant.errors import (
    CodeError,
    CollinearWarning,
    MomentsMismatchError,
    OptionError,
    RepeatedColumnsWarning,
    TooFewRowsError,
    WeightError,
)
from discriminant.models.multiclass.codes import (
    FIXED,
    RANDOM,
    OutputCode,
    _couple_code,
    code_distance,
    count_opposed,
    couple_probabilities,
    dense_code,
    design_code,
    distinct_columns,
    euclidean_scores,
    exhaustive_code,
    hamming_scores,
    loss_scores,
    means_in_total_metric,
    one_vs_one_code,
    one_vs_rest_code,
    optimal_code,
    separability,
    sparse_code,
)

WINE, KINDS = load_wine(return_X_y=True)
IRIS, SPECIES = load_iris(return_X_y=True)
MOMENT_BASES = [
    LDA(),
    LDA(shrinkage=0.3, target="identity"),
    LDA(shrinkage=1.0),
    LDA(shrinkage="oas"),
    LDA(shrinkage="auto", denominator="ml"),
    LDA(denominator="reliability"),
    QDA(),
    RDA(pooling=0.5, shrinkage=0.2),
    NearestMean(),
    Fisher(),
    Fisher(threshold="midpoint"),
    LeastSquares(),
    LeastSquares(coding="fisher"),
]
OTHER_BASES = [LogisticRegression(max_iter=5000), LinearSVC(), Logistic(ridge=0.1)]
WAYS = [
    OneVsRest(LDA()),
    OneVsOne(LDA()),
    OutputCodes(LDA()),
    OutputCodes(LDA(), code="sparse"),
]
every_base = pytest.mark.parametrize("base", MOMENT_BASES, ids=repr)
every_other = pytest.mark.parametrize("base", OTHER_BASES, ids=lambda base: type(base).__name__)
every_way = pytest.mark.parametrize("way", WAYS, ids=repr)


def around(way, base):
    return clone(way).set_params(estimator=base)


def row_by_row(code, base, rows, labels):
    """(n, M) what classifiers say that are fitted to the rows of each column."""
    said = []
    for column in code.T:
        side = column[np.searchsorted(np.unique(labels), labels)]
        fitted = clone(base).fit(rows[side != 0], side[side != 0] > 0)
        said.append(fitted.decision_function(rows))
    return np.column_stack(said)


# --- codes ---------------------------------------------------------------------------------------

# Lecture 5, figure 3.5 (a): four classes, five classifiers.
BINARY = np.array([[-1, 1, -1, 1, 1], [1, -1, -1, 1, -1], [-1, 1, 1, -1, 1], [-1, -1, 1, 1, -1]])
# and (b): three of the classes are left out of some of seven.
TERNARY = np.array(
    [
        [-1, -1, 1, 1, -1, 1, 1],
        [-1, 0, 0, 0, 1, -1, 0],
        [1, 1, -1, -1, -1, 1, -1],
        [-1, 1, 0, 1, -1, 0, 1],
    ]
)


def test_the_word_of_figure_3_5_still_decodes_to_class_3():
    word = np.array([[-1.0, -1.0, 1.0, -1.0, 1.0]])  # class 3 with classifier 2 in error
    assert hamming_scores(word, BINARY).round().tolist() == [[-3.0, -4.0, -1.0, -2.0]]
    expected = [-2 * np.sqrt(3), -4.0, -2.0, -2 * np.sqrt(2)]
    np.testing.assert_allclose(euclidean_scores(word, BINARY)[0], expected, rtol=1e-12)


def test_left_out_classes_count_a_half_in_figure_3_5():
    word = np.array([[-1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0]])
    plain = 0.5 * (np.sign(word) @ TERNARY.T - TERNARY.shape[1])
    assert plain.tolist() == [[-4.0, -2.0, -5.0, -3.0]]
    assert np.abs(hamming_scores(word, TERNARY) - plain).max() <= 1 / 6 + 1e-12
    expected = [-4.0, -2.0, -2 * np.sqrt(5), -np.sqrt(10)]
    np.testing.assert_allclose(euclidean_scores(word, TERNARY)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("K", [2, 3, 5, 8])
def test_fixed_codes_have_as_many_columns_as_the_books_say(K):
    assert one_vs_rest_code(K).shape[1] == (1 if K == 2 else K)
    assert one_vs_one_code(K).shape[1] == K * (K - 1) // 2
    assert exhaustive_code(K).shape[1] == 2 ** (K - 1) - 1


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("K", [2, 3, 5, 8])
def test_every_fixed_code_passes_its_own_examination(name, K):
    OutputCode.from_matrix(FIXED[name](K), np.arange(K))


@pytest.mark.parametrize("name", RANDOM)
@given(K=st.integers(2, 25), seed=st.integers(0, 99))
def test_random_codes_distinguish_classes_and_repeat_no_column(name, K, seed):
    OutputCode.from_matrix(RANDOM[name](K, None, np.random.default_rng(seed)), np.arange(K))


def test_the_exhaustive_code_corrects_what_coding_theory_says():
    """Every two of its rows differ in 2^(K-2) columns (Dietterich & Bakiri 1995)."""
    code = OutputCode.from_matrix(exhaustive_code(6), np.arange(6))
    assert (code.distance, code.corrects) == (2.0**4, (2**4 - 1) // 2)


@pytest.mark.parametrize(
    "signs",
    [exhaustive_code(4), one_vs_one_code(4), one_vs_rest_code(4), BINARY, TERNARY]
    + [sparse_code(4, M, np.random.default_rng(M)) for M in (5, 8, 12)]
    + [dense_code(5, 9, np.random.default_rng(0))],
    ids=lambda signs: f"{signs.shape}",
)
def test_as_many_errors_as_are_promised_are_corrected_and_no_more(signs):
    """By trying all words: those a class may get, and all that differ from them in e places."""

    def survives(errors):
        words = 2.0 * (np.arange(2 ** signs.shape[1])[:, None] >> np.arange(signs.shape[1]) & 1) - 1
        agree = words @ signs.T
        for k, row in enumerate(signs):
            wrong = (words * row < 0).sum(axis=1)  # places where a classifier that knows k errs
            others = np.delete(agree, k, axis=1)
            if not (agree[wrong <= errors, k][:, None] > others[wrong <= errors]).all():
                return False
        return True

    promised = OutputCode(np.arange(len(signs)), signs).corrects
    assert (survives(promised) or promised == 0) and not survives(promised + 1)


def test_a_designed_code_is_easier_to_separate_than_a_random_one_and_tells_all_apart():
    rows, digits = load_digits(return_X_y=True)
    found = moments(rows, digits, detail="pooled")
    rng = np.random.default_rng(0)
    made, lot = design_code(found, 20, rng), dense_code(10, 20, rng)
    share = found.weight / found.weight.sum()
    ease = [
        separability(signs, means_in_total_metric(found), share).mean() for signs in (made, lot)
    ]
    assert ease[0] > ease[1] + 0.05
    OutputCode.from_matrix(made, np.arange(10))


def test_separability_is_the_squared_correlation_of_a_regression():
    """R^2 of the indicator of the positive side on the features, by least squares."""
    found = moments(WINE, KINDS, detail="pooled")
    signs = one_vs_rest_code(3)
    ours = separability(signs, means_in_total_metric(found), found.weight / found.weight.sum())
    ones = np.column_stack([np.ones(len(WINE)), (WINE - WINE.mean(0)) / WINE.std(0)])
    for m, said in enumerate(ours):
        side = (signs[KINDS, m] > 0).astype(float)
        left = side - ones @ np.linalg.lstsq(ones, side, rcond=None)[0]
        assert said == pytest.approx(1 - left.var() / side.var(), abs=1e-10)


# --- what is refused -----------------------------------------------------------------------------

BAD_CODES = [
    ([[1, 1], [1, 1], [-1, -1], [-1, 1]], "1 pair.*'a' and 'b'"),
    ([[1, 1], [0, 1], [1, 0], [0, 0]], "Column 0.*no class on side -1.*2 \\* code - 1"),
    ([[1, 2], [-1, 1], [1, -1], [-1, -1]], "class 'a' in column 1.*is 2"),
    ([[1, -1], [-1, 1], [1, 1]], "shape \\(3, 2\\) for 4 classes"),
    ([[1, 1, 0], [0, 1, 1], [-1, 0, 1], [0, -1, -1]], "2 pair.*'a' and 'b'; 'b' and 'c'"),
]


@pytest.mark.parametrize(("matrix", "told"), BAD_CODES, ids=[str(t) for _, t in BAD_CODES])
def test_invalid_code_names_classes_and_columns(matrix, told):
    """Case 47: equal rows are named by their classes."""
    rows = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.raises(CodeError, match=told):
        OutputCodes(LDA(), code=matrix).fit(rows, np.array(list("abcd") * 10))


@pytest.mark.parametrize(
    ("matrix", "told"),
    [
        (BINARY, "1 and 4 \\(equal\\)"),
        (TERNARY, "3 and 6 \\(equal\\)"),
        ([[1, 1, -1], [-1, -1, 1], [1, -1, 1], [-1, 1, -1]], "1 and 2 \\(complements\\)"),
    ],
    ids=["figure 3.5 a", "figure 3.5 b", "complements"],
)
def test_repeated_columns_are_named_and_the_code_is_used_as_it_is(matrix, told):
    rows = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.warns(RepeatedColumnsWarning, match=f"1 pair.*{told}"):
        model = OutputCodes(LDA(), code=matrix).fit(rows, np.array(list("abcd") * 10))
    assert np.array_equal(model.code_, matrix)


def test_an_exhaustive_code_of_many_classes_is_refused_with_its_number_and_a_way_out():
    with pytest.raises(CodeError, match=r"20 classes has 524,287 columns.*'dense'"):
        exhaustive_code(20)


def test_more_columns_than_there_are_is_refused_with_the_number():
    with pytest.raises(CodeError, match=r"columns=10.*only 3 .*columns=3"):
        OutputCodes(LDA(), columns=10).fit(IRIS, SPECIES)


def test_too_few_columns_to_distinguish_classes_raises():
    with pytest.raises(CodeError, match=r"2 column.*10 classes.*4 columns"):
        OutputCodes(LDA(), columns=2).fit(*load_digits(return_X_y=True))


@pytest.mark.parametrize(
    "options",
    [
        {"code": "hadamard"},
        {"decoding": "nearest"},
        {"columns": 0},
        {"code": "exhaustive", "columns": 3},
    ],
    ids=repr,
)
def test_an_option_that_cannot_be_is_named(options):
    with pytest.raises(ValueError, match=f"{list(options)[-1]}="):
        OutputCodes(LDA(), **options).fit(IRIS, SPECIES)


def test_weights_that_the_classifier_does_not_take_are_refused():
    with pytest.raises(WeightError, match="KNeighborsClassifier does not support sample_weight"):
        OneVsOne(KNeighborsClassifier()).fit(IRIS, SPECIES, sample_weight=np.ones(150))


def test_pooled_moments_cannot_be_split_into_pairs():
    with pytest.raises(MomentsMismatchError, match="'class'"):
        OneVsOne(LDA()).fit_moments(moments(IRIS, SPECIES, detail="pooled"))


# --- coupling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FIXED, *RANDOM])
@given(seed=st.integers(0, 999), K=st.integers(3, 10), spread=st.sampled_from([1.0, 0.1, 0.02]))
def test_probabilities_that_agree_are_given_back(name, seed, K, spread):
    rng = np.random.default_rng(seed)
    signs = FIXED[name](K) if name in FIXED else RANDOM[name](K, None, rng)
    p = np.maximum(rng.dirichlet(np.full(K, spread), size=4), 1e-12)
    p /= p.sum(axis=1, keepdims=True)
    up, down = p @ (signs == 1), p @ (signs == -1)
    np.testing.assert_allclose(couple_probabilities(up / (up + down), signs), p, atol=1e-5)


@given(seed=st.integers(0, 999), K=st.integers(3, 8), spread=st.floats(0.1, 8.0))
def test_one_against_the_rest_is_the_same_maximum_by_its_own_equation(seed, K, spread):
    odds = spread * np.random.default_rng(seed).standard_normal((5, K))
    one, signs = 1 / (1 + np.exp(-odds)), one_vs_rest_code(K)
    np.testing.assert_allclose(
        couple_probabilities(one, signs), _couple_code(one, signs), atol=1e-6
    )


def test_coupled_probabilities_of_a_dense_code_are_where_the_likelihood_is_largest():
    """No mixture with another distribution is likelier, by Huang, Weng and Lin's formula."""
    rng, signs = np.random.default_rng(3), dense_code(6, 12, np.random.default_rng(1))
    one = rng.uniform(0.02, 0.98, size=(20, signs.shape[1]))

    def likelihood(p):
        up, down = p @ (signs == 1), p @ (signs == -1)
        return (one * np.log(up) + (1 - one) * np.log(down)).sum(axis=1)

    p = couple_probabilities(one, signs)
    for _ in range(200):
        other = rng.dirichlet(np.ones(len(signs)), size=20)
        assert (likelihood(0.999 * p + 0.001 * other) <= likelihood(p) + 1e-7).all()


@given(seed=st.integers(0, 999), K=st.integers(3, 10), spread=st.floats(0.1, 20.0))
def test_coupled_probabilities_of_a_code_with_zeros_have_the_least_squares(seed, K, spread):
    """The optimality conditions of a convex programme: nothing is gained from any class."""
    rng = np.random.default_rng(seed)
    signs = RANDOM["sparse"](K, None, rng)
    one = 1 / (1 + np.exp(-spread * rng.standard_normal((5, signs.shape[1]))))
    p = couple_probabilities(one, signs)
    A = (1 - one)[:, None] * (signs == 1) - one[:, None] * (signs == -1)  # (n, K, M)
    slope = np.einsum("nkm,njm,nj->nk", A, A, p)
    least = slope.min(axis=1, keepdims=True)
    assert ((slope - least) * p).max() <= 1e-8 * signs.shape[1]
    assert (p > 0).all()


@pytest.mark.filterwarnings("error::discriminant.errors.CouplingWarning")
@pytest.mark.parametrize("code", ["sparse", "dense", "designed"])
@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantColumnWarning")
@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantInClassWarning")
def test_coupling_of_real_classifiers_does_not_warn(code):
    rows, digits = load_digits(return_X_y=True)
    used = rows.std(axis=0) > 0
    model = OutputCodes(LDA(shrinkage=0.1), code=code, random_state=0).fit(
        rows[::2, used], digits[::2]
    )
    np.testing.assert_allclose(model.predict_proba(rows[1::2, used]).sum(axis=1), 1.0, atol=1e-12)


def test_coupled_pairs_have_the_least_squares_of_wu_lin_and_weng():
    """By exact fractions: the stationary point of their second method."""
    r = {(0, 1): Fraction(9, 10), (0, 2): Fraction(6, 10), (1, 2): Fraction(3, 10)}
    r |= {(k, j): 1 - value for (j, k), value in r.items()}
    Q = [
        [
            sum(r[j, k] ** 2 for j in range(3) if j != k) if k == t else -r[t, k] * r[k, t]
            for t in range(3)
        ]
        for k in range(3)
    ]
    system = eliminated([[*Q[k], Fraction(-1)] for k in range(3)] + [[1, 1, 1, 0]], [0, 0, 0, 1])
    one = np.array([[float(r[1, 0]), float(r[2, 0]), float(r[2, 1])]])
    np.testing.assert_allclose(
        couple_probabilities(one, one_vs_one_code(3))[0], [float(v) for v in system[:3]], rtol=1e-12
    )


def eliminated(rows, right):
    """Gauss's elimination in fractions."""
    table = [[Fraction(v) for v in row] + [Fraction(b)] for row, b in zip(rows, right, strict=True)]
    n = len(table)
    for c in range(n):
        pivot = next(i for i in range(c, n) if table[i][c])
        table[c], table[pivot] = table[pivot], table[c]
        table[c] = [v / table[c][c] for v in table[c]]
        for i in range(n):
            if i != c:
                table[i] = [v - table[i][c] * w for v, w in zip(table[i], table[c], strict=True)]
    return [row[-1] for row in table]


# --- laws ----------------------------------------------------------------------------------------


@every_base
@every_way
def test_two_classes_are_the_classifier_itself(way, base):
    rows, labels = IRIS[50:], SPECIES[50:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, native = around(way, base).fit(rows, labels), clone(base).fit(rows, labels)
    np.testing.assert_allclose(
        ours.decision_function(rows), native.decision_function(rows), rtol=1e-9, atol=1e-10
    )
    assert np.array_equal(ours.predict(rows), native.predict(rows))
    np.testing.assert_allclose(ours.predict_proba(rows), native.predict_proba(rows), atol=1e-10)


@every_other
@every_way
def test_two_classes_are_any_classifier_itself(way, base):
    rows, labels = IRIS[50:], SPECIES[50:]
    ours, native = around(way, base).fit(rows, labels), clone(base).fit(rows, labels)
    assert np.array_equal(ours.decision_function(rows), native.decision_function(rows))
    assert hasattr(ours, "predict_proba") == hasattr(native, "predict_proba")


@pytest.mark.parametrize("decoding", ["loss", "hamming", "euclidean"])
@pytest.mark.parametrize("base", [LDA(), QDA(), LeastSquares(), LogisticRegression(max_iter=5000)])
def test_the_code_of_one_against_the_rest_is_one_against_the_rest(base, decoding):
    code = OutputCodes(base, code="one-vs-rest", decoding=decoding).fit(WINE, KINDS)
    rest = OneVsRest(base).fit(WINE, KINDS)
    assert np.array_equal(code.predict(WINE), rest.predict(WINE))
    np.testing.assert_allclose(code.predict_proba(WINE), rest.predict_proba(WINE), atol=1e-12)


def test_the_code_of_pairs_is_one_against_one():
    code = OutputCodes(LDA(), code="one-vs-one", decoding="hamming").fit(IRIS, SPECIES)
    pairs = OneVsOne(LDA()).fit(IRIS, SPECIES)
    assert np.array_equal(code.decision_function(IRIS), pairs.decision_function(IRIS))
    assert np.array_equal(code.predict_proba(IRIS), pairs.predict_proba(IRIS))


@every_base
@every_way
@pytest.mark.parametrize("shift", [0.0, 1e6, 1e8])
def test_members_from_moments_are_those_fitted_to_rows(way, base, shift):
    rows = IRIS + shift
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = around(way, base).fit(rows, SPECIES)
        expected = row_by_row(ours.code_, base, rows, SPECIES)
    size = np.abs(expected).max(axis=0)
    assert (np.abs(ours.binary_scores(rows) - expected) <= 1e-10 * size).all()


@every_way
def test_members_of_a_code_are_handed_out_fitted(way):
    model = clone(way).fit(WINE, KINDS)
    said = np.column_stack([member.decision_function(WINE) for member in model.estimators_])
    np.testing.assert_allclose(model.binary_scores(WINE), said, rtol=1e-8, atol=1e-8)


def test_members_without_a_clear_inverse_say_so_and_are_as_their_rows_say():
    rows = np.column_stack([IRIS, IRIS[:, 0] - IRIS[:, 1]])
    with pytest.warns(CollinearWarning):
        model = OneVsOne(LDA()).fit(rows, SPECIES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = row_by_row(model.code_, LDA(), rows, SPECIES)
    np.testing.assert_allclose(model.binary_scores(rows), expected, rtol=1e-8, atol=1e-8)


def test_warnings_of_two_class_problems_name_their_classes():
    rows, labels = np.vstack([IRIS, IRIS[:1]]), np.append(SPECIES.astype(str), "odd")
    with pytest.raises(TooFewRowsError, match=r"'1'.*'0' is '0'; '1' is 'odd'"):
        OneVsOne(QDA()).fit(rows, labels)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantColumnWarning")
@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantInClassWarning")
def test_rows_are_not_read_again_for_any_number_of_members(monkeypatch):
    import discriminant.estimators.meta.multiclass as room

    times = []
    real = room.read_classes
    monkeypatch.setattr(room, "read_classes", lambda *a, **k: times.append(1) or real(*a, **k))
    OutputCodes(QDA(shrinkage=0.5), columns=40).fit(*load_digits(return_X_y=True))
    assert times == [1]


@every_way
def test_fitting_moments_is_fitting_rows(way):
    ours = clone(way).fit_moments(moments(WINE, KINDS))
    np.testing.assert_allclose(
        ours.decision_function(WINE), clone(way).fit(WINE, KINDS).decision_function(WINE), rtol=1e-9
    )


@every_way
def test_wide_rows_are_decomposed_without_their_products(way):
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((30, 2000)), np.repeat(np.arange(3), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = around(way, LDA(shrinkage=0.5)).fit(rows, labels)
        expected = row_by_row(model.code_, LDA(shrinkage=0.5), rows, labels)
    assert model.moments_.detail == "rows"
    np.testing.assert_allclose(model.binary_scores(rows), expected, rtol=1e-8, atol=1e-8)


@every_way
@pytest.mark.parametrize("base", [LDA(), QDA(), LeastSquares()], ids=repr)
def test_cross_validation_from_moments_is_that_of_refitting(way, base):
    model = around(way, base)
    held = cross_validate(model, IRIS, SPECIES, 5)
    for f in range(5):
        out = held.fold == f
        refitted = clone(model).fit(IRIS[~out], SPECIES[~out])
        np.testing.assert_allclose(
            np.exp(held.log_posterior[out]), refitted.predict_proba(IRIS[out]), atol=1e-12
        )


def test_least_squares_against_the_rest_is_least_squares():
    """Regression on indicators is K regressions, each of one class against the rest."""
    rest, whole = OneVsRest(LeastSquares()).fit(WINE, KINDS), LeastSquares().fit(WINE, KINDS)
    np.testing.assert_allclose(
        (rest.decision_function(WINE) + 1) / 2, whole.decision_function(WINE), atol=1e-9
    )


@given(order=st.permutations(range(3)))
def test_renaming_the_classes_renames_the_answers(order):
    renamed = np.array(order)[SPECIES]
    for way in (OneVsRest(LDA()), OneVsOne(LDA())):
        was, now = clone(way).fit(IRIS, SPECIES), clone(way).fit(IRIS, renamed)
        assert np.array_equal(np.array(order)[was.predict(IRIS)], now.predict(IRIS))


def test_whole_weights_are_repeated_rows():
    times = np.random.default_rng(0).integers(0, 3, len(WINE))
    often = np.repeat(np.arange(len(WINE)), times)
    for way in WAYS:
        weighted = clone(way).fit(WINE, KINDS, sample_weight=times)
        repeated = clone(way).fit(WINE[often], KINDS[often])
        np.testing.assert_allclose(
            weighted.decision_function(WINE), repeated.decision_function(WINE), rtol=1e-8, atol=1e-8
        )


def test_loss_decoding_is_the_sum_of_losses():
    said = np.random.default_rng(0).standard_normal((6, TERNARY.shape[1])) * 3
    margins = said[:, None, :] * TERNARY
    assert np.allclose(loss_scores(said, TERNARY, logistic=True), -np.logaddexp(0, -margins).sum(2))
    assert np.allclose(
        loss_scores(said, TERNARY, logistic=False), -np.maximum(0, 1 - margins).sum(2)
    )


# --- others --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (OneVsOne(LDA(denominator="ml")), OneVsOneClassifier(LinearDiscriminantAnalysis())),
        (OneVsRest(LDA(denominator="ml")), OneVsRestClassifier(LinearDiscriminantAnalysis())),
        (OneVsOne(LogisticRegression()), OneVsOneClassifier(LogisticRegression())),
        (OneVsRest(LinearSVC()), OneVsRestClassifier(LinearSVC())),
        (
            OneVsOne(QDA(shrinkage=0.1, target="identity", denominator="ml")),
            OneVsOneClassifier(QuadraticDiscriminantAnalysis(reg_param=0.1)),
        ),
    ],
    ids=repr,
)
def test_labels_are_those_of_scikit_learn(ours, theirs):
    rows, digits = load_digits(return_X_y=True)
    rows = rows[:, rows.std(axis=0) > 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = ours.fit(rows, digits), theirs.fit(rows, digits)
    assert np.array_equal(found.predict(rows), expected.predict(rows))


@every_way
@every_other
def test_any_classifier_can_be_decomposed(way, base):
    model = around(way, base).fit(IRIS, SPECIES)
    assert model.score(IRIS, SPECIES) > 0.85 and model.moments_ is None
    assert len(model.estimators_) == model.code_.shape[1]


def test_a_classifier_that_only_predicts_votes():
    class Mute(KNeighborsClassifier):
        predict_proba = property()

    assert OneVsOne(Mute()).fit(IRIS, SPECIES).score(IRIS, SPECIES) > 0.9


def test_two_jobs_equal_one_and_report_progress():
    told = []
    one = OneVsOne(LogisticRegression(max_iter=5000), progress=lambda *step: told.append(step))
    alone = one.fit(IRIS, SPECIES).decision_function(IRIS)
    two = OneVsOne(LogisticRegression(max_iter=5000), n_jobs=2).fit(IRIS, SPECIES)
    assert np.array_equal(alone, two.decision_function(IRIS))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("base", "tolerance"),
    [(LDA(), 1e-10), (LogisticRegression(max_iter=5000, tol=1e-12), 1e-4)],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantColumnWarning")
def test_sparse_rows_equal_dense_rows(base, tolerance):
    rows = np.where(IRIS > 2, IRIS, 0.0)
    thin = matrices.csr_array(rows)
    for way in (OneVsRest(base), OneVsOne(base)):
        full = clone(way).fit(rows, SPECIES).decision_function(rows)
        found = clone(way).fit(thin, SPECIES).decision_function(thin)
        np.testing.assert_allclose(found, full, rtol=tolerance, atol=tolerance)


@every_way
def test_columns_of_a_frame_are_matched_by_name(way):
    frame = pd.DataFrame(IRIS, columns=list("abcd"))
    model = clone(way).fit(frame, SPECIES)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.predict(frame[list("dcba")]), model.predict(frame))


# --- ambiguous regions ---------------------------------------------------------------------------


def test_ambiguous_rows_against_the_rest_are_those_with_no_yes_or_several():
    model = OneVsRest(LDA()).fit(IRIS, SPECIES)
    yes = (np.column_stack([m.predict(IRIS) for m in model.estimators_]) == 1).sum(axis=1)
    found = model.ambiguous(IRIS)
    assert np.array_equal(found.claims, yes)
    assert (found.none, found.several) == ((yes == 0).mean(), (yes > 1).mean())


def test_a_cycle_of_pairs_is_claimed_by_nobody():
    """Rock beats scissors beats paper beats rock."""
    model = OneVsOne(LDA()).fit(IRIS, SPECIES)
    signs = model.code_  # the pairs (0, 1), (0, 2), (1, 2), the later positive
    from discriminant.models.multiclass.codes import measure_ambiguity

    found = measure_ambiguity(np.array([[1.0, -1.0, 1.0], [1.0, 1.0, 1.0]]), signs, rest=False)
    assert found.claims.tolist() == [0, 1] and found.tied.tolist() == [True, False]


def test_a_tie_of_votes_goes_to_the_more_confident():
    # a vote each: 1 over 0, 0 over 2, 2 over 1; confidence -f01 - f02, f01 - f12, f02 + f12
    assert (
        hamming_scores(np.array([[2.0, -1.0, 1.0]]), one_vs_one_code(3)).argmax() == 1
    )  # -1, 1, 0
    assert (
        hamming_scores(np.array([[1.0, -2.0, 1.5]]), one_vs_one_code(3)).argmax() == 0
    )  # 1, -0.5, -0.5
    assert (
        hamming_scores(np.array([[1.0, -1.0, 3.0]]), one_vs_one_code(3)).argmax() == 2
    )  # 0, -2, 2


def test_every_pair_of_a_code_is_opposed_somewhere():
    assert (count_opposed(one_vs_one_code(4)) == 1 - np.eye(4)).all()


@pytest.mark.parametrize(("K", "columns"), [(3, 3), (11, 1023), (11, 1000), (12, 60), (14, 500)])
def test_a_designed_code_repeats_no_column_however_long(K, columns):
    labels = np.repeat(np.arange(K), 6)
    rows = np.random.default_rng(K).standard_normal((len(labels), 5)) + labels[:, None] % 5
    made = design_code(moments(rows, labels, detail="pooled"), columns, np.random.default_rng(0))
    assert made.shape == (K, columns) == distinct_columns(made).shape


def test_wide_dense_code_is_sampled():
    made = dense_code(14, 5000, np.random.default_rng(0))
    assert made.shape == (14, 5000) == distinct_columns(made).shape


# --- regressors ----------------------------------------------------------------------------------

REGRESSORS = [LinearRegression(), dd.LinearRegression(), dd.GLM("gaussian")]


def three_clouds(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 300)
    X = rng.standard_normal((300, 4))
    X[np.arange(300), y] += 4.0
    return X, np.array(["a", "b", "c"])[y]


def regression_outputs(X, y, signs):
    """(n, M) 2 f - 1 of regressions on 0 and 1, one for each column of a code, by lstsq."""
    design = np.column_stack([np.ones(len(X)), X])
    side = signs[np.unique(y, return_inverse=True)[1]]
    outputs = []
    for column in side.T:
        used = column != 0
        beta = np.linalg.lstsq(design[used], (column[used] > 0).astype(float), rcond=None)[0]
        outputs.append(2 * design @ beta - 1)
    return np.column_stack(outputs)


@pytest.mark.parametrize("base", REGRESSORS, ids=lambda base: type(base).__module__)
def test_one_vs_rest_of_a_regressor_is_that_of_scikit_learn(base):
    X, y = three_clouds()
    theirs = OneVsRestClassifier(LinearRegression()).fit(X, y)
    model = OneVsRest(base).fit(X, y)
    assert model.predict(X).tolist() == theirs.predict(X).tolist()
    ridge = RidgeClassifier(alpha=1e-12).fit(X, y)  # regressions on -1 and 1
    np.testing.assert_allclose(model.decision_function(X), ridge.decision_function(X), atol=1e-8)


def test_one_vs_rest_of_a_regressor_with_two_classes_cuts_at_one_half():
    X, y = three_clouds()
    X, y = X[y != "c"], y[y != "c"]
    theirs = OneVsRestClassifier(LinearRegression()).fit(X, y)
    model = OneVsRest(dd.LinearRegression()).fit(X, y)
    assert model.predict(X).tolist() == theirs.predict(X).tolist()
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "b")).all()


@pytest.mark.parametrize("base", REGRESSORS, ids=lambda base: type(base).__module__)
def test_one_vs_one_of_a_regressor_votes_by_its_output(base):
    X, y = three_clouds(1)
    model = OneVsOne(base).fit(X, y)
    scores = regression_outputs(X, y, model.code_)
    np.testing.assert_allclose(model.binary_scores(X), scores, atol=1e-10)
    votes = np.sign(scores) @ model.code_.T
    sure = np.sort(votes)[:, -1] > np.sort(votes)[:, -2]  # no tie
    assert (model.predict(X) == model.classes_[votes.argmax(axis=1)])[sure].all() and sure.any()


@pytest.mark.parametrize("decoding", ["loss", "hamming", "euclidean"])
def test_output_codes_of_a_regressor_decode_its_output(decoding):
    X, y = three_clouds(2)
    model = OutputCodes(dd.LinearRegression(), code="exhaustive", decoding=decoding).fit(X, y)
    scores = regression_outputs(X, y, model.code_)
    np.testing.assert_allclose(model.binary_scores(X), scores, atol=1e-10)
    loss = {
        "loss": lambda s: np.maximum(0.0, 1.0 - s * model.code_[:, None]).sum(axis=2),
        "hamming": lambda s: (np.sign(s) != model.code_[:, None]).sum(axis=2),
        "euclidean": lambda s: ((np.clip(s, -1, 1) - model.code_[:, None]) ** 2).sum(axis=2),
    }[decoding](scores)
    best = np.sort(loss, axis=0)
    sure = best[1] - best[0] > 1e-9
    assert (model.predict(X) == model.classes_[loss.argmin(axis=0)])[sure].all() and sure.any()


@pytest.mark.parametrize("kind", [OneVsRest, OneVsOne, OutputCodes])
def test_codes_of_a_regressor_refuse_probabilities_by_name(kind):
    model = kind(dd.LinearRegression()).fit(*three_clouds())
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    with pytest.raises(
        AttributeError, match=rf"{kind.__name__}\(LinearRegression\(\)\) has no prob"
    ):
        model.predict_proba(WINE)


def test_a_pipeline_that_ends_in_a_regressor_is_one():
    X, y = three_clouds()
    model = OneVsRest(make_pipeline(StandardScaler(), LinearRegression())).fit(X, y)
    assert model.predict(X).tolist() == OneVsRest(LinearRegression()).fit(X, y).predict(X).tolist()


@pytest.mark.parametrize("base", [dd.LogLinear(), dd.GLM("gamma")])
def test_a_regressor_that_cannot_be_fitted_to_0_and_1_is_refused(base):
    with pytest.raises(OptionError, match=f"{type(base).__name__}.*fitted to 0 and 1"):
        OneVsRest(base).fit(*three_clouds())


def test_codes_refuse_what_is_neither_a_classifier_nor_a_regressor():
    with pytest.raises(OptionError, match=r"KMeans.*of type 'clusterer'"):
        OneVsRest(KMeans(2)).fit(*three_clouds())


def test_codes_refuse_numbers_from_an_estimator_that_does_not_say_what_it_is():
    class Untyped(BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), 0.3)

    with pytest.raises(OptionError, match=r"Untyped.*RegressorMixin"):
        OneVsRest(Untyped()).fit(*three_clouds()).predict(WINE)


@pytest.mark.parametrize("kind", [OneVsRest, OneVsOne, OutputCodes])
def test_codes_of_a_regressor_are_saved_and_loaded(kind, tmp_path):
    X, y = three_clouds()
    model = kind(dd.LinearRegression()).fit(X, y)
    model.save(tmp_path / "model")
    assert dd.load(tmp_path / "model").predict(X).tolist() == model.predict(X).tolist()


# --- codes by search, and K - 1 classifiers -------------------------------------------------------


def largest_distance(K, M):
    """Largest distance of a code of M different columns, by comparing all of them."""
    pool = exhaustive_code(K)
    first, second = np.triu_indices(K, 1)
    separated = (pool[first] != pool[second]).astype(int)
    sets = combinations(range(pool.shape[1]), M)
    return max(int(separated[:, list(columns)].sum(axis=1).min()) for columns in sets)


@pytest.mark.parametrize(
    "K, M", [(3, 2), (3, 3), (4, 2), (4, 3), (4, 5), (5, 3), (5, 5), (5, 7), (6, 4)]
)
def test_the_optimal_code_has_the_largest_distance_of_all_codes(K, M):
    signs = optimal_code(K, M)
    assert signs.shape == (K, M) and set(np.unique(signs)) == {-1, 1}
    assert code_distance(signs) == largest_distance(K, M)
    oriented = signs * signs[-1]
    assert len(np.unique(oriented, axis=1).T) == M  # no equal or complementary columns


def test_the_optimal_code_is_fitted_by_name():
    X, y = load_iris(return_X_y=True)
    model = OutputCodes(LDA(), code="optimal", columns=2).fit(X, y)
    assert model.code_.shape == (3, 2) and model.distance_ == 1.0
    assert OutputCodes(LDA(), code="optimal").fit(X, y).code_.shape == (3, 3)


@pytest.mark.parametrize(
    "K, columns, words",
    [
        (9, 5, "takes too long for 9 classes"),
        (4, 8, "columns=8 is too many"),
        (5, 2, "at least 3 columns are needed"),
    ],
)
def test_a_search_that_cannot_succeed_says_why(K, columns, words):
    with pytest.raises(CodeError, match=words):
        optimal_code(K, columns)


def test_the_reference_class_gets_the_rows_that_no_classifier_claims():
    X, y = load_iris(return_X_y=True)
    model = OutputCodes(LDA(), code="reference", decoding="hamming").fit(X, y)
    assert model.code_.tolist() == [[1, -1], [-1, 1], [-1, -1]]
    claimed = model.binary_scores(X) > 0
    alone = ~claimed.any(axis=1)
    assert alone.any() and (model.predict(X[alone]) == 2).all()
    only_first = claimed[:, 0] & ~claimed[:, 1]
    assert (model.predict(X[only_first]) == 0).all()
