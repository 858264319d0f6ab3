"""The perceptron: its theorem, its pocket, and what it is not moved by."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from discriminant import LeastSquares, Perceptron
from discriminant.errors import (
    ConstantColumnWarning,
    LabelError,
    MissingValueError,
    NotConvergedWarning,
    NotSeparatedWarning,
    OptionError,
)

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
IRIS = load_iris(return_X_y=True)


def separable_rows(seed, n=60, d=3, classes=2, gap=0.3):
    """Rows that linear scores without error have labelled, none near a border."""
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((classes, d)), 0.3 * rng.standard_normal(classes)
    rows = 2.0 * rng.standard_normal((40 * n, d))
    scores = rows @ W.T + b
    first, second = -np.sort(-scores, axis=1)[:, :2].T
    clear = first - second > gap
    return rows[clear][:n], scores[clear].argmax(axis=1)[:n]


def by_the_book(X, t, passes):
    """Lecture 4, row by row: w += t (x, 1) for a row that is wrong."""
    w, updates = np.zeros(X.shape[1] + 1), 0
    rows = np.hstack([X, np.ones((len(X), 1))])
    for _ in range(passes):
        for z, sign in zip(rows, t, strict=True):
            if sign * (w @ z) <= 0:
                w, updates = w + sign * z, updates + 1
    return w, updates


@given(seed=st.integers(0, 999))
def test_the_steps_are_those_of_the_book(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-4, 5, (20, 3)).astype(float), rng.integers(2, size=20)
    y[:2] = 0, 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three passes may not be enough
        model = Perceptron(standardize=False, keep="last", max_passes=3).fit(X, y)
    w, updates = by_the_book(X, 2 * y - 1, model.n_passes_)
    assert model.n_updates_ == updates
    np.testing.assert_array_equal([*model.coef_[0], *model.intercept_], w)


@given(seed=st.integers(0, 999))
def test_augmented_vectors_take_the_steps_that_an_intercept_takes(seed):
    """The books write the border w.(1, x) = 0, and the 1 as a column like any other."""
    X, y = separable_rows(seed, d=2, gap=0.05)
    if len(np.unique(y)) < 2:
        return
    here = Perceptron(standardize=False).fit(X, y)
    augmented = np.column_stack([np.ones(len(X)), X])
    there = Perceptron(standardize=False, intercept=False).fit(augmented, y)
    assert there.n_updates_ == here.n_updates_
    np.testing.assert_allclose(there.coef_[0], [*here.intercept_, *here.coef_[0]], rtol=1e-12)


def test_a_standardised_constant_column_without_intercept_is_an_intercept():
    x, y = np.arange(1.0, 7.0), np.array([0, 0, 0, 1, 1, 1])
    model = Perceptron(intercept=False).fit(np.column_stack([np.full(6, 7.0), x]), y)
    assert model.converged_ and model.n_wrong_ == 0 and model.separable_


def test_without_an_intercept_a_border_off_the_origin_is_no_border():
    x, y = np.arange(1.0, 7.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    with pytest.warns(NotSeparatedWarning, match="no linear boundary"):
        model = Perceptron(intercept=False, max_passes=5).fit(x, y)
    assert model.separable_ is False


@given(
    seed=st.integers(0, 999), classes=st.integers(2, 4), update=st.sampled_from(["row", "batch"])
)
def test_it_separates_what_can_be_separated_within_the_bound_of_its_theorem(seed, classes, update):
    X, y = separable_rows(seed, classes=classes)
    if len(np.unique(y)) < 2:
        return
    model = Perceptron(update=update, max_passes=20_000).fit(X, y)
    assert model.converged_ and model.n_wrong_ == 0 and model.score(X, y) == 1.0
    assert 1 <= model.n_updates_ <= model.bound_ == (model.radius_ / model.margin_) ** 2


def test_margin_and_radius_are_those_of_the_standardised_rows():
    X, y = separable_rows(3)
    model = Perceptron().fit(X, y)
    z = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones((len(X), 1))])
    w = model.coef_[0] * X.std(axis=0)
    w = np.append(w, model.intercept_ + model.coef_[0] @ X.mean(axis=0))
    lead = (2 * y - 1) * (z @ w) / np.linalg.norm(w)
    assert model.margin_ == pytest.approx(lead.min(), rel=1e-12)
    assert model.radius_ == pytest.approx(np.linalg.norm(z, axis=1).max(), rel=1e-12)


# --- what cannot be separated --------------------------------------------------------------------


def test_xor_is_not_separable_and_the_pocket_has_one_mistake():
    said = r"after 1000 passes 1 of 4 rows are misclassified by the pocket rule.*no linear boundary"
    with pytest.warns(NotSeparatedWarning, match=said):
        model = Perceptron().fit(*XOR)
    assert model.separable_ is False and not model.converged_ and model.bound_ == np.inf
    assert (model.predict(XOR[0]) == XOR[1]).sum() == 3  # no line does better


@pytest.mark.parametrize(
    "options", [{"update": "batch"}, {"keep": "last"}, {"keep": "average"}], ids=repr
)
def test_every_variant_stops_on_xor_and_says_so(options):
    with pytest.warns(NotSeparatedWarning, match=r"of 4 rows are misclassified"):
        model = Perceptron(**options).fit(*XOR)
    assert not model.converged_ and model.n_passes_ <= 1000


def test_training_stops_early_once_no_boundary_is_proved_to_exist():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)), rng.integers(0, 2, 500)
    with pytest.warns(NotSeparatedWarning, match="no linear boundary"):
        model = Perceptron().fit(X, y)
    assert model.separable_ is False
    assert 40 <= model.n_passes_ < 100  # separability is tested after 20,000 rows
    with pytest.warns(NotConvergedWarning, match="not known whether"):
        untested = Perceptron(prove=False).fit(X, y)
    assert untested.separable_ is None and untested.n_passes_ == 1000


def test_separable_rows_are_trained_to_the_end_after_the_test_of_separability():
    X, y = separable_rows(8, n=500, gap=0.01)
    model = Perceptron().fit(X, y)
    assert model.converged_ and model.n_wrong_ == 0
    assert model.n_passes_ * len(y) > 20_000  # separability was tested


def test_without_a_proof_it_is_not_known_whether_a_border_exists():
    rows, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    with pytest.warns(NotConvergedWarning, match="not known whether a separating boundary exists"):
        assert Perceptron(max_passes=5, prove=False).fit(rows, y).separable_ is None


def test_existing_boundary_not_reached_warns():
    X, y = separable_rows(5, gap=0.05)
    with pytest.warns(NotConvergedWarning, match="boundary exists.*pass max_passes=10"):
        model = Perceptron(max_passes=1).fit(X, y)
    assert model.separable_ is True and not model.converged_


def batch_passes(X, t):
    """Lecture 4 in batch: w += the mean of t (x, 1) over the wrong rows, until there are none."""
    rows = t[:, None] * np.hstack([X, np.ones((len(X), 1))])
    w, passes = np.zeros(rows.shape[1]), 0
    while (wrong := rows @ w <= 0).any():
        w, passes = w + rows[wrong].mean(axis=0), passes + 1
    return passes


def test_batch_that_needs_more_passes_did_not_converge():
    """Two columns of iris, in centimetres: separable, but after more than 1000 passes."""
    X, y = IRIS[0][:100, :2], IRIS[1][:100]
    with pytest.warns(NotConvergedWarning, match="did not converge in 1000 passes") as caught:
        model = Perceptron(update="batch", standardize=False).fit(X, y)
    assert "A linear programme shows that a separating boundary exists" in str(caught[0].message)
    assert "max_passes=10000" in str(caught[0].message) and len(caught) == 1
    assert model.separable_ is True and not model.converged_ and model.n_wrong_ > 0
    more = Perceptron(update="batch", standardize=False, max_passes=10_000).fit(X, y)
    assert more.converged_ and more.n_passes_ == batch_passes(X, 2 * y - 1) > 1000


def test_batch_whose_moves_cancel_is_proved_not_to_be_separable_without_a_programme():
    with pytest.warns(
        NotSeparatedWarning,
        match="updates by the misclassified rows cancel each other, which proves",
    ):
        model = Perceptron(update="batch", prove=False).fit(*XOR)
    assert model.separable_ is False and model.n_passes_ == 1


def test_the_pocket_is_never_worse_than_the_last_weights():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((80, 2)), rng.integers(3, size=80)
        with pytest.warns(NotSeparatedWarning):
            pocket, last = (Perceptron(keep=k, max_passes=50).fit(X, y) for k in ("pocket", "last"))
        assert pocket.n_wrong_ <= last.n_wrong_


def test_an_average_with_rows_wrong_says_which_weights_have_none():
    rows = np.random.default_rng(6).integers(-3, 4, (8, 2)).astype(float)
    with pytest.warns(NotConvergedWarning, match=r"average.*1 of 8 rows.*keep=\"pocket\""):
        Perceptron(keep="average").fit(rows, rows @ [1.0, 2.0] > 0.5)


@pytest.mark.filterwarnings("ignore::discriminant.errors.NotConvergedWarning")
def test_an_average_with_rows_wrong_has_not_converged_though_its_walk_ended():
    ended = []
    for seed in range(20):
        rows = np.random.default_rng(seed).integers(-3, 4, (8, 2)).astype(float)
        y = (rows @ [1.0, 2.0] > 0.5).astype(int)
        model = Perceptron(keep="average").fit(rows, y)
        assert model.converged_ == ((model.predict(rows) == y).all() and model.margin_ > 0)
        ended.append(model.converged_)
    assert len(set(ended)) == 2  # there are some of both


@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
@given(seed=st.integers(0, 200))
def test_whether_a_border_exists_is_as_the_rows_were_made(seed):
    X, y = separable_rows(seed, n=30)
    assert Perceptron(max_passes=1).fit(X, y).separable_ is True
    doubled = np.vstack([X, X[:1]])  # one row with both labels
    assert Perceptron(max_passes=1).fit(doubled, np.append(y, 1 - y[0])).separable_ is False


# --- what moves it and what does not -------------------------------------------------------------


def test_rows_that_are_too_right_move_least_squares_and_not_the_perceptron():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2.0, 0.5, (50, 1)), rng.normal(2.0, 0.5, (50, 1))])
    y = np.repeat([0, 1], 50)
    far = np.vstack([X, rng.normal(1000.0, 0.5, (5, 1))])  # deep in their own half
    labels = np.append(y, np.ones(5, dtype=int))
    plain = {"standardize": False}
    before, after = Perceptron(**plain).fit(X, y), Perceptron(**plain).fit(far, labels)
    np.testing.assert_array_equal(before.coef_, after.coef_)
    assert before.n_updates_ == after.n_updates_
    least = LeastSquares().fit(X, y), LeastSquares().fit(far, labels)
    assert least[0].score(X, y) == 1.0 and least[1].score(X, y) < 0.9


@given(seed=st.integers(0, 99), power=st.integers(-30, 30))
def test_units_and_origins_of_columns_do_not_matter(seed, power):
    X, y = separable_rows(seed)
    X = np.round(X * 1024) / 1024
    moved = (X + np.array([0.0, 1.0, -8.0])) * 2.0 ** (power * np.arange(3))
    ours, theirs = Perceptron().fit(X, y), Perceptron().fit(moved, y)
    assert ours.n_updates_ == theirs.n_updates_ and theirs.converged_


def test_a_mean_of_1e8_costs_no_digit():
    X, y = separable_rows(1)
    X = np.round(X * 1024) / 1024
    assert Perceptron().fit(X + 1e8, y).score(X + 1e8, y) == 1.0


@pytest.mark.parametrize("kind", [np.float32, np.int64, "F", "list", "strided"])
def test_rows_of_any_kind_are_walked_alike(kind):
    X, y = np.round(IRIS[0] * 10), IRIS[1] == 0
    ways = {
        "F": np.asfortranarray(X),
        "list": X.tolist(),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
    }
    given_ = ways[kind] if isinstance(kind, str) else X.astype(kind)
    ours, theirs = Perceptron().fit(X, y), Perceptron().fit(given_, y)
    np.testing.assert_allclose(theirs.coef_, ours.coef_, rtol=1e-12)
    assert ours.n_updates_ == theirs.n_updates_


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore::discriminant.errors.NotSeparatedWarning")
def test_sparse_rows_are_walked_as_the_same_rows_dense(kind, classes):
    X, y = np.round(IRIS[0] * 2), np.minimum(IRIS[1], classes - 1)
    options = {"standardize": False, "max_passes": 20, "keep": "average"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        dense = Perceptron(**options).fit(X, y)
        model = Perceptron(**options).fit(sparse.csr_array(X.astype(kind)), y)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-12)
    assert model.n_updates_ == dense.n_updates_ and model.n_wrong_ == dense.n_wrong_


def test_wide_sparse_rows_stay_sparse_even_where_a_cell_is_missing():
    rows = sparse.random_array((300, 1_000_000), density=2e-5, format="csr", rng=0)
    y = np.arange(300) % 2
    assert Perceptron().fit(rows, y).predict(rows).shape == (300,)
    rows.data[7] = np.nan
    with pytest.raises(MissingValueError, match=r"Row \d+ .*1 row\(s\) in 1 column"):
        Perceptron().fit(rows, y)


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier])
def test_it_serves_in_decompositions_of_scikit_learn(wrapper):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotSeparatedWarning)
        assert wrapper(Perceptron()).fit(*IRIS).score(*IRIS) > 0.9


def test_a_seed_repeats_a_shuffled_walk_and_another_seed_does_not():
    X, y = separable_rows(11, n=200)
    walks = [Perceptron(shuffle=True, random_state=s).fit(X, y).coef_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(walks[0], walks[1])
    assert not np.array_equal(walks[0], walks[2])


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, said",
    [
        ({"update": "rows"}, "update='rows'.*one of row, batch"),
        ({"keep": "best"}, "keep='best'.*one of pocket, last, average"),
        ({"max_passes": 0}, "max_passes=0.*1 or more"),
        ({"max_passes": 2.5}, "max_passes=2.5.*whole number"),
        ({"shuffle": "yes"}, "shuffle='yes'.*True or False"),
    ],
    ids=repr,
)
def test_an_option_that_cannot_be_is_named(options, said):
    with pytest.raises(OptionError, match=said):
        Perceptron(**options).fit(*IRIS)


def test_a_continuous_label_is_called_a_regression_target():
    with pytest.raises(LabelError, match=r"row 0 is not a whole number.*regression target"):
        Perceptron().fit(IRIS[0], IRIS[0][:, 0] + 0.05)


@pytest.mark.filterwarnings("ignore::discriminant.errors.NotSeparatedWarning")
def test_a_constant_column_is_named():
    X, y = IRIS
    frame = pd.DataFrame(np.column_stack([X[:, 0], np.full(len(X), 7.0)]), columns=["a", "same"])
    with pytest.warns(ConstantColumnWarning, match="'same'"):
        Perceptron().fit(frame, y == 0)


# --- learning rate, starting weights and records --------------------------------------------------


def train_from(X, t, start, rate, passes):
    """Lecture 4 with a learning rate: weights after each update, from given weights."""
    w, history = np.array(start, dtype=float), [np.array(start, dtype=float)]
    rows = np.hstack([X, np.ones((len(X), 1))])
    criteria = [-(t * (rows @ w))[t * (rows @ w) <= 0].sum()]
    for _ in range(passes):
        for z, sign in zip(rows, t, strict=True):
            if sign * (w @ z) <= 0:
                w = w + rate * sign * z
                history.append(w)
        criteria.append(-(t * (rows @ w))[t * (rows @ w) <= 0].sum())
    return np.array(history), np.array(criteria)


@given(seed=st.integers(0, 999))
def test_start_and_learning_rate_give_the_weights_of_the_lecture(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-4, 5, (20, 3)).astype(float), rng.integers(2, size=20)
    y[:2] = 0, 1
    start, rate = rng.integers(-3, 4, 4) / 4, 0.25
    options = {"standardize": False, "keep": "last", "max_passes": 3, "record": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three passes may not be enough
        model = Perceptron(start=start, learning_rate=rate, **options).fit(X, y)
    history, criteria = train_from(X, 2 * y - 1, start, rate, model.n_passes_)
    np.testing.assert_array_equal(model.weights_path_[:, 0], history)
    np.testing.assert_allclose(model.criterion_path_, criteria, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal([*model.coef_[0], *model.intercept_], history[-1])
    assert model.n_updates_ == len(history) - 1


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_recording_does_not_change_the_fit(classes, form):
    X, y = separable_rows(3, classes=classes, gap=0.05)
    plain, recorded = (Perceptron(record=record).fit(form(X), y) for record in (False, True))
    np.testing.assert_array_equal(recorded.coef_, plain.coef_)
    assert recorded.n_updates_ == plain.n_updates_
    assert plain.weights_path_ is None and plain.criterion_path_ is None
    scores = 1 if classes == 2 else classes
    assert recorded.weights_path_.shape == (plain.n_updates_ + 1, scores, X.shape[1] + 1)
    assert (
        recorded.criterion_path_[-1] == 0.0
        and len(recorded.criterion_path_) == len(plain.path_) + 1
    )


@given(seed=st.integers(0, 999))
def test_the_norm_of_the_weights_lies_between_the_bounds_of_the_theorem(seed):
    X, y = separable_rows(seed, gap=0.1)
    if len(np.unique(y)) < 2:
        return
    model = Perceptron(record=True, start="random", random_state=seed, learning_rate=0.5).fit(X, y)
    assert model.converged_ and model.n_updates_ <= model.bound_
    norms, k = np.linalg.norm(model.weights_path_[:, 0], axis=1), np.arange(model.n_updates_ + 1)
    assert (norms**2 <= norms[0] ** 2 + k * (0.5 * model.radius_) ** 2 + 1e-9).all()
    assert (norms >= 0.5 * k * model.margin_ - norms[0] - 1e-9).all()


def test_the_learning_rate_has_no_effect_from_zero():
    X, y = separable_rows(5)
    one, other = (Perceptron(learning_rate=rate, keep="last").fit(X, y) for rate in (1.0, 0.3))
    np.testing.assert_allclose(other.coef_, 0.3 * one.coef_, rtol=1e-12)
    assert other.n_updates_ == one.n_updates_


def test_batch_training_records_the_criterion_of_every_step():
    X, y = separable_rows(2)
    model = Perceptron(update="batch", standardize=False, start=[0.0, 1.0, -1.0, 0.5]).fit(X, y)
    rows, t = np.hstack([X, np.ones((len(X), 1))]), 2 * y - 1
    margins = t * (rows @ np.array([0.0, 1.0, -1.0, 0.5]))
    assert model.criterion_path_[0] == pytest.approx(-margins[margins <= 0].sum())
    assert model.criterion_path_[-1] == 0.0 and model.converged_


@pytest.mark.parametrize(
    "options, words",
    [
        ({"learning_rate": 0.0}, "learning_rate=0.0 is not valid: it must be a positive number"),
        ({"start": "zero"}, "'random', an array of weights or None"),
        ({"start": [1.0, 2.0]}, r"finite numbers of shape \(5,\)"),
        ({"start": [np.nan] * 5}, "finite numbers"),
        ({"record": "yes"}, "record='yes' is not valid"),
    ],
)
def test_invalid_starts_and_rates_are_named(options, words):
    X, y = IRIS
    with pytest.raises(OptionError, match=words):
        Perceptron(**options).fit(X[:100], y[:100])
