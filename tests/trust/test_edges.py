"""Degenerate and extreme rows: the right labels, or an error that names the place (trust.md, N7).

Three classes in four features, 600 rows to fit and 2000 to score. Right means: as many rows right
as scikit-learn gets on the same rows at a scale that suits it, and for a change of scale the same
labels. NumPy may not complain on the way, and nothing may fail without saying where.
"""

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from discriminant import LDA, QDA, RDA, LeastSquares
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    DiscriminantWarning,
    InfiniteValueError,
    SeparatingColumnWarning,
    ShrinkageChosenWarning,
    TooFewRowsError,
)

CENTRES = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 0.0, -1.5], [0.0, 2.0, -1.5, 1.5]])
PEERS = {
    LDA: LinearDiscriminantAnalysis(),
    QDA: QuadraticDiscriminantAnalysis(),
}
pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
MODELS = pytest.mark.parametrize("model", [LDA, QDA])


def draw(count, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    spread = np.array(
        [[1.0, 0.3, 0.0, 0.0], [0.0, 1.0, 0.2, 0.0], [0.0, 0.0, 1.0, 0.4], [0, 0, 0, 1]]
    )
    wide = np.array([0.9, 1.0, 1.15])[y, None]
    return (rng.standard_normal((count, 4)) * wide) @ spread + 1.17 * CENTRES[y], y


FIT, NEW = draw(600, 1), draw(2000, 2)


def peer_labels(model):
    return PEERS[model].fit(*FIT).predict(NEW[0])


def labels(model, X, new, y=FIT[1], **options):
    """Predicted labels; anything NumPy has to complain of is an error."""
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DiscriminantWarning)
        fitted = model(**options).fit(X, y)
        posterior = fitted.predict_proba(new)
        assert np.isfinite(posterior).all()
        return fitted.predict(new)


def accuracy(found):
    return (found == NEW[1]).mean()


@MODELS
def test_the_problem_is_neither_easy_nor_hopeless(model):
    assert 0.92 < accuracy(peer_labels(model)) < 0.95


SCALES = {
    "1e-3": np.full(4, 1e-3),
    "1e-8": np.full(4, 1e-8),
    "1e-300": np.full(4, 1e-300),
    "denormal 1e-310": np.full(4, 1e-310),
    "1e150": np.full(4, 1e150),
    "1e300": np.full(4, 1e300),
    "1e-12 to 1e12": np.array([1e-12, 1e-4, 1e4, 1e12]),
    "1e-300 to 1e300": np.array([1e-300, 1e-150, 1e150, 1e300]),
}


@MODELS
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_no_scale_of_the_columns_changes_a_label(model, scale):
    found = labels(model, FIT[0] * scale, NEW[0] * scale)
    assert np.array_equal(found, peer_labels(model))


@MODELS
@pytest.mark.parametrize("scale", [1e-300, 1e-310, 1e300])
def test_nor_does_it_with_the_options_that_shrink(model, scale):
    near = model(shrinkage=0.3).fit(*FIT).predict(NEW[0])
    far = model(shrinkage=0.3).fit(FIT[0] * scale, FIT[1]).predict(NEW[0] * scale)
    assert np.array_equal(far, near)


def unsampled():
    """Rows beside the evenly spread 101 from which origin and unit are guessed."""
    return np.setdiff1d(np.arange(600), np.linspace(0, 599, 101).astype(int))


FAMILY = {
    "LDA": LDA(),
    "diagonal LDA": LDA(shrinkage=1.0),
    "best shrinkage": LDA(shrinkage="auto"),
    "QDA": QDA(),
    "RDA": RDA(pooling=0.5),
    "regression": LeastSquares(),
}
SOME = pytest.mark.parametrize("model", FAMILY.values(), ids=FAMILY)


def with_outlier(size):
    X = FIT[0].copy()
    X[unsampled()[5], 1] = size
    return X


@SOME
@pytest.mark.parametrize("power", [80, 155, 300])
def test_one_huge_value_is_as_one_in_another_unit(model, power):
    down = np.array([1.0, 2.0 ** -round(3.3219 * (power - 50)), 1.0, 1.0])
    far = clone(model).fit(with_outlier(10.0**power), FIT[1]).predict(NEW[0])
    near = clone(model).fit(with_outlier(10.0**power) * down, FIT[1]).predict(NEW[0] * down)
    assert np.array_equal(far, near)


@SOME
def test_one_huge_value_among_rows_that_come_later_is_as_one_at_first(model):
    X, late = with_outlier(1e155), slice(300, None)
    parts = clone(model).partial_fit(X[:300], FIT[1][:300]).partial_fit(X[late], FIT[1][late])
    assert np.array_equal(parts.predict(NEW[0]), clone(model).fit(X, FIT[1]).predict(NEW[0]))


@SOME
@pytest.mark.parametrize("scale", [1e-120, 1e-200, 1e-300])
def test_tiny_values_in_rows_not_looked_at_first_are_no_constant(model, scale):
    column, X, new = np.zeros(600), FIT[0][:, 1:], NEW[0][:, 1:]
    column[unsampled()] = FIT[0][unsampled(), 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConstantColumnWarning)
        far = clone(model).fit(np.column_stack([X, column * scale]), FIT[1])
    near = clone(model).fit(np.column_stack([X, column]), FIT[1])
    found = far.predict(np.column_stack([new, NEW[0][:, 0] * scale]))
    assert np.array_equal(found, near.predict(np.column_stack([new, NEW[0][:, 0]])))


@pytest.mark.parametrize("value", [1e155, 1e-200])
def test_so_it_is_where_features_outnumber_rows(value):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((120, 520)), np.arange(120) % 3
    X[:, 7] = 0.0
    X[[3, 4, 60, 61], 7] = value * np.array([1.0, 2.0, 3.0, -1.0])
    unit = np.where(np.arange(520) == 7, 1 / value, 1.0)
    model = LDA(shrinkage=0.5)
    far, near = (
        model.fit(X, y).predict_proba(X),
        clone(model).fit(X * unit, y).predict_proba(X * unit),
    )
    np.testing.assert_allclose(far, near, atol=1e-10)


@SOME
def test_differences_beyond_float64_are_refused_by_column(model):
    X = FIT[0].copy()
    X[:, 2] = -1.7e308
    X[unsampled()[::3], 2] = 1.7e308
    with pytest.raises(InfiniteValueError, match=r"Column 'x2'.*overflow.*Divide"):
        clone(model).fit(X, FIT[1])


@MODELS
def test_a_mean_of_ten_thousand_in_float32_costs_no_label(model):
    X, new = ((rows + 1e4).astype(np.float32) for rows in (FIT[0], NEW[0]))
    peer = PEERS[model].fit(X.astype(float) - 1e4, FIT[1]).predict(new.astype(float) - 1e4)
    assert np.array_equal(labels(model, X, new), peer)


@MODELS
@pytest.mark.parametrize("value", [0.0, 7.0, 0.1, -1e-300, 1e300])
def test_a_constant_column_changes_no_label(model, value):
    X, new = (np.insert(rows, 2, value, axis=1) for rows in (FIT[0], NEW[0]))
    assert np.array_equal(labels(model, X, new), peer_labels(model))


@MODELS
def test_a_constant_column_is_named(model):
    with pytest.warns(ConstantColumnWarning, match="'x2'"):
        model().fit(np.insert(FIT[0], 2, 7.0, axis=1), FIT[1])


def test_a_class_is_not_called_constant_because_another_is_far_away():
    rng = np.random.default_rng(5)
    rows = [rng.standard_normal(300), 1e15 + 100 * rng.standard_normal(200)]
    model = QDA().fit(np.concatenate(rows)[:, None], np.repeat([0, 1], [300, 200]))
    expected = norm(rows[0].mean(), rows[0].std(ddof=1)).logpdf([-1.0, 0.0, 2.0])
    found = model.log_density([[-1.0], [0.0], [2.0]], by_class=True)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@MODELS
def test_a_column_that_separates_the_classes_decides(model):
    X, new = (np.column_stack([rows, y * 0.1]) for rows, y in (FIT, NEW))
    assert accuracy(labels(model, X, new)) == 1.0


@MODELS
def test_a_column_that_separates_the_classes_is_named(model):
    with pytest.warns(SeparatingColumnWarning, match="'x4'"):
        model().fit(np.column_stack([FIT[0], FIT[1] * 0.1]), FIT[1])


COPIES = {
    "duplicated": lambda rows: rows[:, 1],
    "in another unit": lambda rows: 2.54 * rows[:, 1] + 32,
    "sum": lambda rows: rows[:, 0] + rows[:, 3],
    "with rounding": lambda rows: rows @ [0.1, 0.2, 0.3, 0.7],
}


@MODELS
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_column_made_from_others_changes_no_label(model, copy):
    X, new = (np.column_stack([rows, copy(rows)]) for rows in (FIT[0], NEW[0]))
    assert np.array_equal(labels(model, X, new), peer_labels(model))


@MODELS
def test_a_duplicated_column_is_named_with_its_rank(model):
    with pytest.warns(CollinearWarning, match=r"'x1', 'x4'.*rank 4 of 5, condition number .*digit"):
        model().fit(np.column_stack([FIT[0], FIT[0][:, 1]]), FIT[1])


def wide():
    rng = np.random.default_rng(3)
    X, new = (
        np.hstack([rows, rng.standard_normal((len(rows), 2000))]) for rows in (FIT[0], NEW[0])
    )
    return X, new


@MODELS
def test_more_columns_than_rows_is_shrunk_and_more_often_right_than_without(model):
    """The peer does not shrink; its QDA refuses such rows, so both are held to its LDA."""
    X, new = wide()
    peer = LinearDiscriminantAnalysis().fit(X, FIT[1]).predict(new)
    with pytest.warns(ShrinkageChosenWarning, match=r"rank \d+ for 2004 features"):
        fitted = model().fit(X, FIT[1])
    assert accuracy(fitted.predict(new)) > accuracy(peer) + 0.05


def lonely():
    """Class 2 has one row."""
    keep = [*np.flatnonzero(FIT[1] != 2).tolist(), 2]
    return FIT[0][keep], FIT[1][keep]


def test_lda_takes_a_class_of_one_row():
    X, y = lonely()
    peer = LinearDiscriminantAnalysis().fit(X, y).predict(NEW[0])
    assert np.array_equal(labels(LDA, X, NEW[0], y, denominator="ml"), peer)


def test_qda_refuses_a_class_of_one_row_by_name():
    with pytest.raises(TooFewRowsError, match=r"Class '2' has 1 row,.*at least 2.*LDA"):
        QDA().fit(*lonely())


@MODELS
def test_one_row_for_each_class_is_refused_with_the_numbers(model):
    with pytest.raises(TooFewRowsError, match=r"3 rows.*3 classes"):
        model().fit(FIT[0][:3], FIT[1][:3])
