"""However rows lie in memory, every estimator reads the same numbers and leaves them unchanged.

A cell of a sparse matrix may be stored in several entries (their sum counts), in any order, or as a
stored zero. Values are small multiples of 1/4, so that halves and sums are exact and all answers
are equal to the last bit.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression

import discriminant
from discriminant import (
    GLM,
    LDA,
    QDA,
    RDA,
    SVM,
    Basis,
    Decision,
    EasyEnsemble,
    Encoded,
    Fisher,
    Fusion,
    LabelTree,
    LaplaceNB,
    LeastSquares,
    LinearRegression,
    Logistic,
    LogLinear,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OutputCodes,
    Perceptron,
    Resampled,
    Reweighted,
)
from discriminant.errors import ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")

RANDOM = np.random.default_rng(16)
Y = np.repeat([0, 1, 2], [40, 25, 15])
DENSE = RANDOM.integers(0, 4, (80, 6)) * (RANDOM.random((80, 6)) < 0.7) / 4.0
DENSE[np.arange(80), Y] += 1.0
NEW = RANDOM.integers(0, 8, (30, 6)) / 4.0

MODELS = [
    LDA(),
    LDA(shrinkage="auto"),
    QDA(shrinkage=0.3),
    RDA(),
    NearestMean(),
    Fisher(),
    LaplaceNB(),
    LeastSquares(),
    LinearRegression(),
    GLM("poisson"),
    LogLinear(),
    Logistic(ridge=0.1),
    Logistic(ridge=0.01, l1_ratio=1.0),
    Logistic(ridge=0.1, standardize=False, solver="lbfgs"),
    Perceptron(),
    Perceptron(standardize=False, shuffle=True, random_state=0),
    Perceptron(update="batch"),
    SVM(),
    SVM(standardize=True),
    SVM(loss="hinge", standardize=True),
    SVM(solver="dual"),
    Basis(),
    LabelTree(trees=1),
    LabelTree(trees=1, unit_rows=True),
    Decision(LDA(), reject=0.1),
    Fusion([("a", LDA(), [0, 1, 2]), ("b", Perceptron(), [3, 4, 5])][:1]),
    OneVsRest(LDA()),
    OneVsRest(Perceptron()),
    OneVsOne(SVM(standardize=True)),
    OutputCodes(LDA()),
    OutputCodes(LogisticRegression(), code="sparse"),
    Reweighted(LDA()),
    Reweighted(SVM(standardize=True)),
    Resampled(LDA(), "smote", neighbours=3),
    Resampled(LDA(), "smote", neighbours=3, expected=False),
    Resampled(SVM(standardize=True), "smote", neighbours=3),
    Resampled(Perceptron(), "over"),
    EasyEnsemble(LDA(), 3),
    EasyEnsemble(SVM(standardize=True), 3),
    Encoded(LDA()),
]
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "decide",
    "typicality",
    "transform",
    "mahalanobis",
    "log_density",
    "resample",
)
TARGETS = np.array([1.0, 2.0, 5.0])


def canonical(values, kind=sparse.csr_array):
    return kind(values)


def split(values, kind=sparse.csr_array):
    """Every cell in two entries or more, columns in random order, and zeros stored."""
    n, d = values.shape
    random = np.random.default_rng(1)
    order = [random.permutation(np.repeat(np.arange(d), 2)) for _ in range(n)]
    indices = np.concatenate(order)
    data = np.concatenate([row[o] / 2 for row, o in zip(values, order, strict=True)])
    return kind((data, indices, np.arange(0, 2 * d * n + 1, 2 * d)), shape=(n, d))


def target_of(model):
    return Y if is_classifier(model) or isinstance(model, Basis) else TARGETS[Y]


def answers(model, rows, new):
    """All that a model says after a fit to some rows; new rows are scored."""
    y = target_of(model)
    fitted = clone(model).fit(rows, y)
    found = {}
    for name in METHODS:
        if hasattr(fitted, name):
            given = (rows, y) if name == "resample" else (new,)
            answer = getattr(fitted, name)(*given)
            parts = answer if isinstance(answer, tuple) else (answer,)
            found[name] = [one.toarray() if sparse.issparse(one) else one for one in parts]
    return found


def assert_same(found, wanted, **tolerance):
    assert found.keys() == wanted.keys()
    for name in wanted:
        for one, other in zip(found[name], wanted[name], strict=True):
            if other.dtype.kind != "f" or not tolerance:
                np.testing.assert_array_equal(one, other, err_msg=name)
            else:
                np.testing.assert_allclose(one, other, err_msg=name, **tolerance)


every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@every_model
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_duplicate_and_unsorted_entries_are_the_canonical_matrix(model, kind):
    wanted = answers(model, canonical(DENSE, kind), canonical(NEW, kind))
    rows, new = split(DENSE, kind), split(NEW, kind)
    held = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    foreign = "LogisticRegression" in repr(model)  # it adds the entries up in their order
    assert_same(answers(model, rows, new), wanted, **({"rtol": 1e-12} if foreign else {}))
    for before, now in zip(held, (rows.data, rows.indices, rows.indptr), strict=True):
        assert np.array_equal(before, now)


@every_model
@pytest.mark.parametrize("form", ["csc", "coo", "lil", "dok", "bsr"])
def test_every_sparse_format_is_read_as_csr(model, form):
    wanted = answers(model, canonical(DENSE), canonical(NEW))
    found = answers(model, canonical(DENSE).asformat(form), canonical(NEW).asformat(form))
    assert_same(found, wanted)


@every_model
@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">f8", "<i4", ">i4", "u1", "g"])
def test_sparse_numbers_of_every_type_are_read_as_float64(model, dtype):
    if "LogisticRegression" in repr(model):
        pytest.skip("scikit-learn's own solver works in float32, or refuses the type")
    rows, new = (np.rint(4 * values) for values in (DENSE, NEW))
    given = []
    for values in (rows, new):
        made = canonical(values)
        made.data = made.data.astype(dtype)
        given.append(made)
    tolerance = {} if np.dtype(dtype).itemsize != 4 else {"rtol": 1e-5, "atol": 1e-5}
    assert_same(
        answers(model, *given), answers(model, canonical(rows), canonical(new)), **tolerance
    )


MEMORY = {
    "big-endian float64": lambda values: values.astype(">f8"),
    "big-endian float32": lambda values: values.astype(">f4"),
    "big-endian integers": lambda values: np.rint(4 * values).astype(">i4"),
    "big-endian short integers": lambda values: np.rint(4 * values).astype(">u2"),
    "long double": lambda values: values.astype(np.longdouble),
    "float16": lambda values: values.astype(np.float16),
    "bool": lambda values: values > 0.6,
    "Fortran order": np.asfortranarray,
    "every second row and column": lambda values: np.repeat(np.repeat(values, 2, 0), 2, 1)[
        ::2, ::2
    ],
    "reversed": lambda values: values[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda values: _read_only(values),
    "read-only Fortran order": lambda values: _read_only(np.asfortranarray(values)),
    "unaligned": lambda values: _unaligned(values),
}


def _read_only(values):
    values = values.copy(order="K")
    values.flags.writeable = False
    return values


def _unaligned(values):
    room = np.zeros(values.nbytes + 1, dtype=np.uint8)[1:]
    room = room.view(values.dtype).reshape(values.shape)
    room[...] = values
    return room


@every_model
@pytest.mark.parametrize("memory", MEMORY)
def test_a_dense_array_is_read_the_same_however_it_lies_in_memory(model, memory):
    rows, new = MEMORY[memory](DENSE), MEMORY[memory](NEW)
    wanted = answers(model, *(np.array(one, dtype=float, order="C") for one in (rows, new)))
    assert_same(answers(model, rows, new), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [">f8", ">i4", ">f4"])
@pytest.mark.parametrize("model", [LDA(), Perceptron(), SVM(), LinearRegression()], ids=repr)
def test_labels_weights_and_columns_of_a_frame_may_be_big_endian(model, dtype):
    weight = np.arange(1, 81)
    options = [{}, {}] if isinstance(model, Perceptron) else [
        {"sample_weight": weight.astype(dtype)}, {"sample_weight": weight}
    ]  # fmt: skip
    frame = pd.DataFrame({f"x{j}": column for j, column in enumerate(DENSE.astype(">f8").T)})
    found = clone(model).fit(frame, Y.astype(dtype), **options[0])
    wanted = clone(model).fit(pd.DataFrame(DENSE, columns=frame.columns), Y, **options[1])
    np.testing.assert_allclose(found.predict(frame), wanted.predict(frame), rtol=1e-12)


def test_evaluation_reads_duplicate_entries_as_their_sum():
    rows, wanted = split(DENSE), canonical(DENSE)
    for model in (Perceptron(), SVM(standardize=True), LDA()):
        fitted = clone(model).fit(wanted, Y)
        assert np.array_equal(fitted.predict(rows), fitted.predict(wanted))
        found = discriminant.evaluate(fitted, rows, Y).to_dict()
        assert found == discriminant.evaluate(fitted, wanted, Y).to_dict()
    folds = np.arange(80) % 4
    found, wanted = (
        discriminant.cross_validate(LDA(), given, Y, folds).log_posterior
        for given in (rows, wanted)
    )
    assert np.array_equal(found, wanted)


def test_a_label_matrix_with_duplicate_entries_is_its_sum():
    labels = np.eye(3)[Y]
    labels[::4, 2] = 1
    twice = split(2 * labels)
    found, wanted = (
        LabelTree(trees=1).fit(DENSE, y).predict_topk(NEW, k=2) for y in (twice, canonical(labels))
    )
    assert np.array_equal(found[0], wanted[0]) and np.array_equal(found[1], wanted[1])


def test_row_pointers_that_do_not_rise_are_refused():
    rows = split(DENSE)
    rows.indptr[3] = rows.indptr[9]
    with pytest.raises(ShapeError, match="row pointers"):
        LDA().fit(rows, Y)


def test_one_dimensional_sparse_rows_are_refused():
    with pytest.raises(ShapeError, match="Expected 2D array, got 1D"):
        LDA().fit(sparse.coo_array(np.ones(80)), Y)
