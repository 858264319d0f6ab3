"""More features than rows: the same rules as ever, worked out in the space of the rows."""

import itertools
import json
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf_shrinkage, oas
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from discriminant import LDA, QDA, RDA, ClassMoments, NearestMean, moments
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    DecompositionError,
    MissingValueError,
    MomentsMismatchError,
    OptionError,
    SeparatingColumnWarning,
    ShrinkageChosenWarning,
    TooFewRowsError,
    WeightError,
)
from discriminant.models.gaussian import covariance
from discriminant.models.gaussian.family import GaussianFamily, fit_gaussian, pooled_metric
from discriminant.models.gaussian.wide import fit_wide, wide_metric
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.posterior import log_posterior

SHRINKAGES = (0.0, 0.2, 0.999, 1.0, "auto", "oas")
TARGETS = ("diagonal", "scaled_identity", "identity")
MEMBERS = {
    "LDA": GaussianFamily(1.0),
    "QDA": GaussianFamily(0.0, shrink="mixed"),
    "RDA": GaussianFamily(0.4),
    "RDA mixed": GaussianFamily(0.4, shrink="mixed"),
    "RDA of Friedman": GaussianFamily(0.4, shrink="mixed", weighting="friedman"),
}

NO_BEST = ("RDA mixed", "RDA of Friedman")  # whose best shrinkage is refused


def wide_rows(seed=0, n=40, width=70, classes=3):
    """Correlated rows, far from zero, of columns in several units."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    mix = np.eye(width) + 0.2 * rng.standard_normal((width, width))
    X = rng.standard_normal((n, width)) @ mix + 0.7 * rng.standard_normal((classes, width))[y]
    return X * 2.0 ** rng.integers(-3, 4, width) + 100.0, y


def both(X, y, family, weight=None, new=None):
    """Log posteriors from moments, and from the rows, with what each warned of."""
    found = []
    for detail, fit in (("fourth", fit_gaussian), ("rows", fit_wide)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            summary = moments(X, y, weight, detail=detail)
            rule = fit(summary, family=family, prior=summary.weight / summary.weight.sum())
        scores = log_posterior(rule.scores(X if new is None else new))
        found.append((scores, sorted((w.category.__name__, str(w.message)) for w in told)))
    return found


def member(name, **options):
    base = MEMBERS[name]
    return GaussianFamily(
        base.pooling,
        options.get("shrinkage", 0.0),
        options.get("target", "diagonal"),
        options.get("denominator", "unbiased"),
        base.shrink,
        base.weighting,
    )


# --- one meaning, two ways ------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("denominator", ["unbiased", "ml", "reliability"])
@pytest.mark.parametrize("name", MEMBERS)
def test_rows_and_moments_give_the_same_posteriors(name, denominator, weighted):
    X, y = wide_rows()
    weight = np.random.default_rng(1).gamma(3.0, 1.0, len(y)) if weighted else None
    new = np.random.default_rng(2).permuted(X, axis=0)
    for shrinkage, target in itertools.product(SHRINKAGES, TARGETS):
        if isinstance(shrinkage, str) and (target == "identity" or name in NO_BEST):
            continue
        family = member(name, shrinkage=shrinkage, target=target, denominator=denominator)
        dense, wide = both(X, y, family, weight, new)
        np.testing.assert_allclose(
            wide[0], dense[0], rtol=1e-9, atol=1e-9, err_msg=f"{shrinkage} {target}"
        )


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_columns_that_do_not_vary_are_treated_alike_and_named_alike(name, shrinkage):
    X, y = wide_rows()
    X[:, 3] = 5.0  # constant
    X[:, 7] = y  # constant within every class
    X[y == 1, 11] = -2.0  # constant within one
    dense, wide = both(X, y, member(name, shrinkage=shrinkage))
    assert wide[1] == dense[1]
    np.testing.assert_allclose(wide[0], dense[0], rtol=1e-7, atol=1e-9)


def test_too_few_rows_choose_the_same_shrinkage_and_say_the_same():
    X, y = wide_rows()
    dense, wide = both(X, y, GaussianFamily())
    assert wide[1] == dense[1]
    assert wide[1][0][0] == ShrinkageChosenWarning.__name__


def test_copied_columns_are_left_out_as_ever():
    X, y = wide_rows(width=4)
    X = np.tile(X, 15)
    dense, wide = both(X, y, GaussianFamily())
    assert [name for name, _ in wide[1]] == [CollinearWarning.__name__]
    np.testing.assert_allclose(wide[0], dense[0], rtol=1e-7, atol=1e-8)


def test_copied_columns_are_left_out_of_class_covariances_too():
    X, y = wide_rows(width=4)
    X = np.tile(X, 15)
    dense, wide = both(X, y, member("QDA"))
    assert {name for name, _ in wide[1]} == {CollinearWarning.__name__}
    np.testing.assert_allclose(wide[0], dense[0], rtol=1e-7, atol=1e-7)


def test_when_few_columns_vary_nothing_is_shrunk():
    X, y = wide_rows()
    X[:, 10:] = 1.0
    dense, wide = both(X, y, GaussianFamily())
    assert [name for name, _ in wide[1]] == [ConstantColumnWarning.__name__]
    np.testing.assert_allclose(wide[0], dense[0], rtol=1e-9, atol=1e-9)


def test_a_tiny_shrinkage_keeps_its_digits():
    X, y = wide_rows(n=12, width=30, classes=2)
    new = X + np.random.default_rng(5).standard_normal(X.shape)
    family = GaussianFamily(1.0, 1e-7, "scaled_identity")
    dense, wide = both(X, y, family, new=new)
    np.testing.assert_allclose(wide[0], dense[0], rtol=1e-7)


@pytest.mark.parametrize("target", TARGETS)
def test_the_metric_is_that_of_the_covariance(target):
    X, y = wide_rows()
    family = GaussianFamily(1.0, 0.3, target)
    offsets = X[:9] - X.mean(axis=0)
    dense = pooled_metric(moments(X, y, detail="pooled"), family)
    wide = wide_metric(moments(X, y, detail="rows"), family)
    np.testing.assert_allclose(
        wide.squared_distances(offsets), dense.squared_distances(offsets), rtol=1e-10
    )
    np.testing.assert_allclose(wide.logdet, dense.logdet, rtol=1e-12)


def test_draws_from_the_metric_have_its_covariance():
    X, y = wide_rows()
    metric = wide_metric(moments(X, y, detail="rows"), GaussianFamily(1.0, 0.3))
    spread = metric.sample(np.eye(X.shape[1]))
    centred = X - np.stack([X[y == k].mean(axis=0) for k in range(3)])[y]
    covariance = centred.T @ centred / (len(y) - 3)
    expected = 0.7 * covariance + 0.3 * np.diag(np.diagonal(covariance))
    np.testing.assert_allclose(spread.T @ spread, expected, rtol=1e-9, atol=1e-9)


# --- other libraries ------------------------------------------------------------------------------


def centred_rows(X, y, standard):
    Z = X - np.stack([X[y == k].mean(axis=0) for k in np.unique(y)])[y]
    return Z / Z.std(axis=0) if standard else Z


@pytest.mark.parametrize("target", ["diagonal", "scaled_identity"])
def test_the_best_shrinkage_is_that_of_scikit_learn_on_centred_rows(target):
    X, y = wide_rows(n=50, width=600)
    Z = centred_rows(X, y, target == "diagonal")
    found = [LDA(shrinkage=s, target=target).fit(X, y).shrinkage_ for s in ("auto", "oas")]
    expected = [ledoit_wolf_shrinkage(Z, assume_centered=True), oas(Z, assume_centered=True)[1]]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("width", [5, 600])
@pytest.mark.parametrize("target", ["diagonal", "scaled_identity"])
def test_each_class_of_qda_has_the_best_shrinkage_of_its_own_rows(target, width):
    X, y = wide_rows(n=90, width=width)
    X, y = X[10:], np.where(y[10:] == 2, 1, y[10:])  # classes of unequal size
    own = [centred_rows(X[y == k], y[y == k] * 0, target == "diagonal") for k in (0, 1)]
    expected = [
        [ledoit_wolf_shrinkage(Z, assume_centered=True) for Z in own],
        [oas(Z, assume_centered=True)[1] for Z in own],
    ]
    found = [QDA(shrinkage=s, target=target).fit(X, y).shrinkage_ for s in ("auto", "oas")]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("width", [5, 600])
def test_the_best_shrinkage_of_each_class_is_the_one_that_is_used(width):
    X, y = wide_rows(n=60, width=width, classes=2)
    best = QDA(shrinkage="auto").fit(X, y)
    for k, amount in enumerate(best.shrinkage_):
        given = QDA(shrinkage=float(amount)).fit(X, y)
        np.testing.assert_allclose(best.mahalanobis(X)[:, k], given.mahalanobis(X)[:, k], rtol=1e-9)


@pytest.mark.parametrize("width", [5, 600])
@pytest.mark.parametrize("rule", ["auto", "oas"])
@pytest.mark.parametrize(
    ("options", "way_out"),
    [
        ({"shrink": "mixed"}, "shrink='pooled'"),
        ({"weighting": "friedman"}, "shrink='pooled'"),
        ({"target": "identity"}, "'diagonal' and 'scaled_identity'"),
    ],
    ids=str,
)
def test_a_best_shrinkage_that_nobody_knows_is_refused(options, way_out, rule, width):
    X, y = wide_rows(n=60, width=width)
    with pytest.raises(OptionError, match=f"shrinkage='{rule}'.*a number .*{way_out}"):
        RDA(pooling=0.4, shrinkage=rule, **options).fit(X, y)


def test_nor_is_it_among_candidates():
    X, y = wide_rows(n=60, width=5)
    with pytest.raises(OptionError, match=r"shrinkage='auto'.*a number"):
        RDA(pooling="cv", shrinkage="auto", shrink="mixed").fit(X, y)


@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 0.9])
def test_posteriors_are_those_of_scikit_learns_lsqr_solver(shrinkage):
    X, y = wide_rows(n=60, width=600)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X - 100.0, y)
    ours = LDA(shrinkage=shrinkage, target="scaled_identity", denominator="ml").fit(X, y)
    scores, expected = ours.decision_function(X), peer.decision_function(X - 100.0)
    apart = expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scores - scores.mean(axis=1, keepdims=True), apart, rtol=1e-7)


def test_densities_are_those_of_scipy():
    X, y = wide_rows(n=20, width=520, classes=2)
    X = X - 100.0
    found = QDA(shrinkage=0.4).fit(X, y).log_density(X[:5], by_class=True)[:, 1]
    covariance = np.cov(X[y == 1].T)
    covariance[~np.eye(len(covariance), dtype=bool)] *= 0.6
    expected = multivariate_normal(X[y == 1].mean(axis=0), covariance).logpdf(X[:5])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


# --- estimators -----------------------------------------------------------------------------------

WIDE = [
    LDA(shrinkage="auto"),
    LDA(shrinkage=0.5, target="identity"),
    RDA(shrinkage=0.5),
    QDA(shrinkage=0.5),
]


@pytest.mark.parametrize("model", WIDE, ids=str)
def test_twenty_thousand_features_take_no_more_room_than_a_few_copies_of_the_rows(model):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 20_000)), np.arange(30) % 2
    tracemalloc.start()
    with np.errstate(all="raise"):
        model.fit(X, y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * X.nbytes + (64 << 20)  # one 20000 x 20000 matrix is 650 times the rows


@pytest.mark.parametrize("model", WIDE, ids=str)
def test_wide_tables_keep_their_rows(model):
    X, y = wide_rows(n=30, width=510)
    assert isinstance(model.fit(X, y).moments_, ClassRows)


@pytest.mark.parametrize("model", [NearestMean(), LDA(shrinkage=1.0)], ids=str)
def test_models_of_variances_alone_need_no_rows(model):
    X, y = wide_rows(n=30, width=510)
    assert isinstance(model.fit(X, y).moments_, ClassMoments)


@pytest.mark.parametrize("model", WIDE, ids=str)
def test_rows_that_come_in_parts_equal_the_whole(model):
    X, y = wide_rows(n=30, width=510)
    whole = model.fit(X, y).predict_log_proba(X)
    del model.moments_
    parts = model.partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    np.testing.assert_allclose(parts.predict_log_proba(X), whole, rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ScarceRowsWarning")
def test_rows_become_moments_once_they_outnumber_the_features():
    X, y = wide_rows(n=620, width=510)
    parts = LDA().partial_fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
    whole = LDA().fit(X, y)
    assert (parts.moments_.detail, whole.moments_.detail) == ("pooled", "pooled")
    np.testing.assert_allclose(
        parts.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("model", WIDE, ids=str)
def test_forgotten_rows_leave_no_trace(model):
    X, y = wide_rows(n=30, width=510)
    fresh = model.fit(X[:21], y[:21]).predict_log_proba(X)
    left = model.fit(X, y).forget(X[21:], y[21:]).predict_log_proba(X)
    np.testing.assert_allclose(left, fresh, rtol=1e-8, atol=1e-9)


def test_rows_never_fitted_cannot_be_forgotten():
    X, y = wide_rows(n=30, width=510)
    with pytest.raises(MomentsMismatchError, match=r"2 of 3 rows of class '1'.*10 stored"):
        LDA(shrinkage=0.5).fit(X, y).forget(X[[1, 3, 6, 0]], [1, 1, 1, 0])


def test_canonical_directions_whiten_the_classes_of_wide_rows():
    X, y = wide_rows(n=60, width=510)
    model = LDA(shrinkage=0.5).fit(X, y)
    metric = wide_metric(model.moments_, model.family)
    spread = metric.sample(np.eye(510)) @ model.scalings_
    np.testing.assert_allclose(spread.T @ spread, np.eye(2), atol=1e-9)


def test_distances_between_classes_are_those_of_the_linear_scores():
    X, y = wide_rows(n=40, width=510)
    model = LDA(shrinkage=0.5, prior=[0.2, 0.3, 0.5]).fit(X, y)
    scores = np.log(model.prior_) - 0.5 * model.mahalanobis(X)
    np.testing.assert_allclose(
        log_posterior(scores), model.predict_log_proba(X), rtol=1e-8, atol=1e-8
    )


def test_samples_of_a_wide_model_have_its_means():
    X, y = wide_rows(n=40, width=510)
    model = RDA(shrinkage=0.5).fit(X, y)
    drawn, labels = model.sample(600, seed=0)
    own = drawn[labels == 2]
    apart = (own.mean(axis=0) - model.means_[2]) / own.std(axis=0)
    assert np.abs(apart).max() < 6 / np.sqrt(len(own))


def test_a_frame_of_many_columns_is_matched_by_name():
    pandas = pytest.importorskip("pandas")
    X, y = wide_rows(n=30, width=510)
    frame = pandas.DataFrame(X, columns=[f"gene{j}" for j in range(510)])
    model = LDA(shrinkage=0.5).fit(frame, y)
    turned = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(frame))


# --- what cannot be -------------------------------------------------------------------------------


def test_a_missing_value_in_wide_rows_is_named():
    X, y = wide_rows(n=30, width=510)
    X[4, 77] = np.nan
    with pytest.raises(MissingValueError, match=r"Row 4\b.*column 'x77'"):
        LDA(shrinkage=0.5).fit(X, y)


@pytest.mark.parametrize("model", [QDA(shrinkage=0.5), RDA(shrinkage=0.5)], ids=str)
def test_a_class_of_one_row_has_no_covariance_of_its_own(model):
    X, y = wide_rows(n=30, width=510)
    y[0], y[y == 0] = 9, 1
    with pytest.raises(TooFewRowsError, match="Class '9' has 1 row"):
        model.fit(X, np.where(np.arange(30) == 0, 9, y))


def test_a_class_of_no_weight_is_named():
    X, y = wide_rows(n=30, width=510)
    with pytest.raises(WeightError, match="Class '2' has total weight 0"):
        LDA(shrinkage=0.5).fit(X, y, sample_weight=(y != 2).astype(float))


def test_a_column_made_from_the_label_is_told():
    X, y = wide_rows(n=30, width=510)
    X[:, 5] = y
    with pytest.warns(SeparatingColumnWarning, match="'x5'"):
        assert (LDA(shrinkage=0.5).fit(X, y).predict(X) == y).all()


# --- real genes -----------------------------------------------------------------------------------


def genes(folder, part):
    polars = pytest.importorskip("polars")
    table = polars.read_parquet(folder / f"x_{part}.parquet")
    labels = polars.read_csv(folder / f"labels_{part}.csv")
    samples = labels["sample"].to_list()
    return table.select(samples).to_numpy().T, labels["class"].to_numpy()


@pytest.fixture(scope="module")
def khan(shared_data):
    folder = shared_data / "khan_srbct"
    if not folder.is_dir():
        pytest.skip("khan_srbct is not among the shared data sets")
    reference = json.loads((folder / "reference.json").read_text())
    return genes(folder, "train"), genes(folder, "test"), reference


def test_diagonal_lda_errs_on_five_of_twenty_tumours(khan):
    train, (X, y), _ = khan
    assert (LDA(shrinkage=1.0).fit(*train).predict(X) != y).sum() == 5


def test_errors_fall_with_shrinkage_as_esl_18_9_says(khan):
    train, test, reference = khan
    for gamma, *expected in reference["rda_esl_18_9"]["rows"]:
        model = LDA(shrinkage=1.0 - gamma).fit(*train)
        errors = [int((model.predict(X) != y).sum()) for X, y in (train, test)]
        assert errors == expected, gamma


def test_ridge_scores_are_those_worked_out_in_r(khan):
    train, (X, _), reference = khan
    for fit in reference["ridge_lda"]["fits"]:
        ridge, expected = fit["lambda"], np.array(fit["test_scores"])
        model = LDA(shrinkage=ridge / (1.0 + ridge), target="identity").fit(*train)
        found = as_ridge(model, X, ridge)
        np.testing.assert_allclose(
            found - found.mean(axis=1, keepdims=True),
            expected - expected.mean(axis=1, keepdims=True),
            rtol=1e-9,
            atol=1e-9 * np.abs(expected).max(),
        )


def as_ridge(model, X, ridge):
    """Scores of C + ridge I: ours are those of (C + ridge I) / (1 + ridge)."""
    prior = np.log(model.prior_)
    return (model.rule_.scores(X) - prior) / (1.0 + ridge) + prior


def test_leave_one_out_errors_of_ridge_lda_are_those_worked_out_in_r(shared_data):
    folder = shared_data / "alon_colon"
    if not folder.is_dir():
        pytest.skip("alon_colon is not among the shared data sets")
    X, y = genes(folder, "all")
    X = np.log2(X)
    reference = json.loads((folder / "reference.json").read_text())["ridge_lda_loo_errors"]
    found = []
    for ridge in reference["lambda"]:
        model = LDA(shrinkage=ridge / (1.0 + ridge), target="identity").fit(X, y)
        errors = 0
        for i in range(len(y)):
            model.forget(X[i : i + 1], y[i : i + 1])
            scores = as_ridge(model, X[i : i + 1], ridge)
            errors += model.classes_[scores.argmax()] != y[i]
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        found.append(errors)
    assert found == reference["errors"]


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_svd_that_does_not_converge_is_repeated_with_the_other_routine(shape, monkeypatch):
    X = np.random.default_rng(0).normal(size=shape) * 10.0 ** np.arange(shape[1])
    expected = np.linalg.svd(X, compute_uv=False)
    routines, svd = [], covariance.svd

    def failing(matrix, *, lapack_driver, **options):
        routines.append(lapack_driver)
        if lapack_driver in fails:
            raise np.linalg.LinAlgError("SVD did not converge")
        return svd(matrix, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(covariance, "svd", failing)
    fails = {"gesdd"}
    left, values, right = covariance.thin_svd(X)
    assert routines == ["gesdd", "gesvd"]
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    np.testing.assert_allclose((left * values) @ right, X, rtol=1e-9, atol=1e-12 * expected[0])
    fails = {"gesdd", "gesvd"}
    with pytest.raises(DecompositionError, match=r"did not converge.*redundant columns"):
        covariance.thin_svd(X)
