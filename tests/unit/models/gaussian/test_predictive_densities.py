"""Student-t predictive densities against SciPy, exact arithmetic, integration over posteriors."""

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.stats import invwishart, multivariate_normal, multivariate_t
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import discriminant as dd
from discriminant.errors import OptionError, ScarceRowsWarning
from discriminant.models.gaussian.predictive_densities import log_gamma_ratio


def small_classes(seed=0, d=3, sizes=(7, 12, 30)):
    """Rows of three classes of very different sizes, with different covariances."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2.0 * rng.normal(size=d) for n in sizes
    ]
    return np.vstack(parts), np.repeat(["a", "b", "c"], sizes)


def sums(X, y):
    """Sizes, means and scatters of the classes, from the rows."""
    classes = [X[y == label] for label in np.unique(y)]
    means = [own.mean(axis=0) for own in classes]
    scatters = [(own - mean).T @ (own - mean) for own, mean in zip(classes, means, strict=True)]
    return np.array([len(own) for own in classes]), means, scatters


def densities(X, n, means, scatters, degrees):
    """Log t densities of posteriors with these scatters and degrees of freedom, by SciPy."""
    d = X.shape[1]
    columns = []
    for n_k, mean, scatter, m in zip(n, means, scatters, degrees, strict=True):
        freedom = m - d + 1
        shape = (1 + 1 / n_k) * scatter / freedom
        columns.append(multivariate_t(mean, shape, df=freedom).logpdf(X))
    return np.column_stack(columns)


# --- closed formula -------------------------------------------------------------------------------


@pytest.mark.parametrize("denominator", ["unbiased", "ml"])
def test_density_of_lda_has_the_degrees_of_the_pooled_scatter(denominator):
    X, y = small_classes()
    n, means, scatters = sums(X, y)
    model = dd.LDA(predictive="student", denominator=denominator).fit(X, y)
    wanted = densities(X, n, means, [sum(scatters)] * 3, [n.sum() - 3] * 3)
    np.testing.assert_allclose(model.log_density(X, by_class=True), wanted, rtol=1e-11)


@pytest.mark.parametrize("denominator", ["unbiased", "ml"])
def test_density_of_qda_has_the_degrees_of_the_class(denominator):
    X, y = small_classes()
    n, means, scatters = sums(X, y)
    model = dd.QDA(predictive="student", denominator=denominator).fit(X, y)
    wanted = densities(X, n, means, scatters, n - 1)
    np.testing.assert_allclose(model.log_density(X, by_class=True), wanted, rtol=1e-11)
    joint = np.exp(wanted) * n / n.sum()
    np.testing.assert_allclose(model.log_density(X), np.log(joint.sum(axis=1)), rtol=1e-11)
    posterior = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), posterior, atol=1e-12)


def test_density_of_one_feature_in_exact_arithmetic():
    """t with 2 degrees of freedom: rows 1, 2, 6 and 0, 4, 5 have means 3 and scatters 14."""
    model = dd.QDA(predictive="student").fit([[1.0], [2], [6], [0], [4], [5]], list("aaabbb"))
    mpmath.mp.dps = 40
    scale2 = mpmath.mpf(4) / 3 * 14 / 2
    for x in (3.0, 4.5, -1e3, 1e90):
        t2 = (mpmath.mpf(x) - 3) ** 2 / scale2
        wanted = -mpmath.log(2 * mpmath.sqrt(2 * scale2)) - 1.5 * mpmath.log(1 + t2 / 2)
        (found,) = model.log_density([[x]], by_class=True)
        np.testing.assert_allclose(found, float(wanted), rtol=1e-13)


@pytest.mark.parametrize("x", [0.5, 3.0, 99.5, 1e4, 1e9])
@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_ratio_of_gamma_functions(x, d):
    mpmath.mp.dps = 40
    wanted = mpmath.loggamma(mpmath.mpf(x) + mpmath.mpf(d) / 2) - mpmath.loggamma(x)
    assert log_gamma_ratio(x, d) == pytest.approx(float(wanted), rel=1e-13)


# --- priors of pooling and shrinkage --------------------------------------------------------------


def test_shrinkage_is_an_inverse_wishart_prior():
    X, y = small_classes()
    n, means, scatters = sums(X, y)
    s = 0.3
    model = dd.QDA(predictive="student", shrinkage=s, target="identity").fit(X, y)
    added = s * (n - 1) / (1 - s)  # degrees of freedom of the prior, whose scale is the identity
    posterior = [scatter + a * np.eye(3) for scatter, a in zip(scatters, added, strict=True)]
    wanted = densities(X, n, means, posterior, n - 1 + added)
    np.testing.assert_allclose(model.log_density(X, by_class=True), wanted, rtol=1e-11)


def test_pooling_is_a_prior_with_the_pooled_covariance():
    X, y = small_classes()
    n, means, scatters = sums(X, y)
    p, total = 0.2, n.sum() - 3
    model = dd.RDA(pooling=p, predictive="student").fit(X, y)
    added = p * (n - 1) / (1 - p)
    pooled = sum(scatters) / total
    posterior = [scatter + a * pooled for scatter, a in zip(scatters, added, strict=True)]
    wanted = densities(X, n, means, posterior, n - 1 + added)
    np.testing.assert_allclose(model.log_density(X, by_class=True), wanted, rtol=1e-11)


def test_friedman_weighting_counts_the_rows_of_other_classes_in_part():
    X, y = small_classes()
    n, means, scatters = sums(X, y)
    p = 0.25
    model = dd.RDA.from_friedman(p, 0.0, predictive="student").fit(X, y)
    posterior = [(1 - p) * scatter + p * sum(scatters) for scatter in scatters]
    degrees = (1 - p) * (n - 1) + p * (n.sum() - 3)
    wanted = densities(X, n, means, posterior, degrees)
    np.testing.assert_allclose(model.log_density(X, by_class=True), wanted, rtol=1e-11)


@pytest.mark.parametrize("weighting", ["covariance", "friedman"])
def test_ends_of_rda_are_lda_and_qda(weighting):
    X, y = small_classes()
    options = {"predictive": "student"}
    for pooling, named in ((0.0, dd.QDA(**options)), (1.0, dd.LDA(**options))):
        model = dd.RDA(pooling=pooling, weighting=weighting, **options).fit(X, y)
        wanted = named.fit(X, y).log_density(X, by_class=True)
        np.testing.assert_allclose(model.log_density(X, by_class=True), wanted, rtol=1e-12)
        near = dd.RDA(pooling=abs(pooling - 1e-9), weighting=weighting, **options).fit(X, y)
        np.testing.assert_allclose(near.log_density(X, by_class=True), wanted, rtol=1e-6)


def test_known_covariance_gives_gaussian_densities():
    """With shrinkage 1 the target counts as known; only the mean is uncertain."""
    X, y = small_classes()
    n, means, scatters = sums(X, y)
    model = dd.LDA(predictive="student", shrinkage=1.0).fit(X, y)
    diagonal = np.diag(np.diagonal(sum(scatters)) / (n.sum() - 3))
    wanted = [
        multivariate_normal(mean, (1 + 1 / n_k) * diagonal).logpdf(X)
        for mean, n_k in zip(means, n, strict=True)
    ]
    found = model.log_density(X, by_class=True)
    np.testing.assert_allclose(found, np.column_stack(wanted), rtol=1e-11)
    near = dd.LDA(predictive="student", shrinkage=1 - 1e-9).fit(X, y)
    np.testing.assert_allclose(near.log_density(X, by_class=True), found, rtol=1e-6)
    assert np.isfinite(model.predict_log_proba([[1e200, 0, 0]]).max())


# --- integration over the posterior ---------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False], ids=["LDA", "QDA"])
def test_density_is_the_mean_of_gaussian_densities_over_the_posterior(shared):
    X, y = small_classes(seed=4, d=2, sizes=(6, 9, 14))
    n, means, scatters = sums(X, y)
    rng, draws = np.random.default_rng(1), 40_000
    model = (dd.LDA if shared else dd.QDA)(predictive="student").fit(X, y)
    for k in range(3):
        new = means[k] + np.array([[0.3, -0.2], [1.0, 0.8]])
        found = np.exp(model.log_density(new, by_class=True))
        degrees, scatter = (n.sum() - 3, sum(scatters)) if shared else (n[k] - 1, scatters[k])
        covariances = invwishart(df=degrees, scale=scatter).rvs(draws, random_state=rng)
        roots = np.linalg.cholesky(covariances)
        noise = (roots @ rng.normal(size=(draws, 2, 1)))[:, :, 0]
        offsets = new[:, None] - (means[k] + noise / np.sqrt(n[k]))
        distances = np.einsum("rni,nij,rnj->rn", offsets, np.linalg.inv(covariances), offsets)
        values = np.exp(-0.5 * distances) / (2 * np.pi * np.sqrt(np.linalg.det(covariances)))
        error = values.std(axis=1) / np.sqrt(draws)
        assert (np.abs(values.mean(axis=1) - found[:, k]) < 4 * error).all()
        assert (error < 0.02 * found[:, k]).all()


# --- what it is for -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer], ids=["wine", "breast cancer"])
def test_log_loss_of_new_rows_is_smaller_with_few_rows_per_class(load):
    """30 rows of each class to fit, the others to predict; mean over ten random choices."""
    X, y = load(return_X_y=True)
    losses, errors = {"plug-in": [], "student": []}, {"plug-in": [], "student": []}
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(y))
        chosen = np.concatenate([order[y[order] == k][:30] for k in np.unique(y)])
        others = np.setdiff1d(order, chosen)
        for kind in losses:
            logs = dd.LDA(predictive=kind).fit(X[chosen], y[chosen]).predict_log_proba(X[others])
            losses[kind].append(-logs[np.arange(len(others)), y[others]].mean())
            errors[kind].append(np.mean(logs.argmax(axis=1) != y[others]))
    assert np.mean(losses["student"]) < 0.8 * np.mean(losses["plug-in"])
    assert abs(np.mean(errors["student"]) - np.mean(errors["plug-in"])) < 0.005


def test_density_tends_to_the_plug_in_density_with_many_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 2)), np.repeat([0, 1], 50_000)
    X[y == 1] *= 2.0
    for kind in (dd.LDA, dd.QDA):
        found = kind(predictive="student").fit(X, y).predict_proba(X[::1000])
        np.testing.assert_allclose(found, kind().fit(X, y).predict_proba(X[::1000]), atol=1e-3)


# --- rows that are left out -----------------------------------------------------------------------

KINDS = [
    dd.LDA(predictive="student"),
    dd.QDA(predictive="student"),
    dd.RDA(pooling=0.3, shrinkage=0.2, predictive="student"),
    dd.RDA.from_friedman(0.3, 0.1, predictive="student"),
    dd.LDA(predictive="student", shrinkage=1.0),
    dd.QDA(predictive="student", shrinkage="auto"),
]
every_kind = pytest.mark.parametrize("model", KINDS, ids=repr)


@every_kind
def test_cross_validation_from_moments_equals_refitting(model):
    X, y = load_iris(return_X_y=True)
    fold = np.arange(150) % 5
    held = dd.cross_validate(model, X, y, fold)
    for f in range(5):
        fitted = type(model)(**model.get_params()).fit(X[fold != f], y[fold != f])
        wanted = fitted.predict_log_proba(X[fold == f])
        np.testing.assert_allclose(held.log_posterior[fold == f], wanted, atol=1e-9)


@every_kind
def test_leave_one_out_equals_refitting(model):
    X, y = small_classes(sizes=(8, 9, 12))
    held = dd.leave_one_out(model, X, y)
    for i in (0, 7, 8, 20, 28):
        others = np.arange(len(y)) != i
        fitted = type(model)(**model.get_params()).fit(X[others], y[others])
        wanted = fitted.predict_log_proba(X[i : i + 1])[0]
        np.testing.assert_allclose(held.log_posterior[i], wanted, atol=1e-9)


def test_feature_selection_refits_the_model():
    X, y = small_classes(sizes=(12, 15, 30))
    model = dd.LDA(predictive="student")
    fold = np.arange(len(y)) % 3
    selection = dd.select_features(model, X, y, fold, n_features=2, criterion="log_loss")
    held = dd.cross_validate(model, X[:, [int(f[1:]) for f in selection.selected]], y, fold)
    codes = np.searchsorted(["a", "b", "c"], y)
    loss = -held.log_posterior[np.arange(len(y)), codes].mean()
    chosen = next(stage for stage in selection.stages if stage.size == 2)
    assert chosen.log_loss == pytest.approx(loss, rel=1e-9)


def test_two_class_decomposition_uses_student_densities():
    X, y = small_classes()
    model = dd.OneVsRest(dd.LDA(predictive="student")).fit(X, y)
    single = dd.LDA(predictive="student").fit(X, y == "a")
    np.testing.assert_allclose(
        model.decision_function(X)[:, 0], single.decision_function(X), rtol=1e-9
    )


# --- missing features, samples, priors, files -----------------------------------------------------


@every_kind
def test_missing_features_are_integrated_out(model):
    """A t in all features is a t in some of them, with the same degrees of freedom."""
    X, y = small_classes()
    fitted = type(model)(**model.get_params()).fit(X, y)
    rule = fitted.rule_
    rows = X[::7].copy()
    rows[:, 1] = np.nan
    covariances = np.broadcast_to(fitted.covariance_, (3, 3, 3))
    present = [0, 2]
    wanted = []
    for k in range(3):
        block = covariances[k][np.ix_(present, present)]
        mean, scale, freedom = fitted.means_[k, present], rule.scale[k], rule.freedom[k]
        density = (
            multivariate_normal(mean, scale * block)
            if np.isinf(freedom)
            else multivariate_t(mean, scale / freedom * block, df=freedom)
        )
        wanted.append(density.logpdf(rows[:, present]) + np.log(fitted.prior_[k]))
    found = fitted.marginal_scores(rows)
    np.testing.assert_allclose(
        found - found[:, :1], np.transpose(wanted) - wanted[0][:, None], atol=1e-9
    )
    nothing = fitted.marginal_scores(np.full((1, 3), np.nan))
    np.testing.assert_allclose(np.exp(nothing[0]), fitted.prior_, rtol=1e-12)


def test_marginal_policy_of_tables_scores_by_student_densities():
    X, y = small_classes()
    frame = pd.DataFrame(X, columns=list("uvw"))
    model = dd.Encoded(dd.QDA(predictive="student"), missing="marginal").fit(frame, y)
    row = frame.iloc[[3]].copy()
    row["v"] = np.nan
    inner = model.estimator_
    scores = inner.marginal_scores(row.to_numpy())
    wanted = np.exp(scores - scores.max())
    np.testing.assert_allclose(model.predict_proba(row), wanted / wanted.sum(), rtol=1e-12)


def test_sampled_rows_follow_the_densities():
    X, y = small_classes(d=1, sizes=(5, 6, 40))
    model = dd.QDA(predictive="student", prior=[0.3, 0.3, 0.4]).fit(X, y)
    rows, labels = model.sample(200_000, seed=2)
    n, means, scatters = sums(X, y)
    for k, label in enumerate("abc"):
        shape = (1 + 1 / n[k]) * scatters[k] / (n[k] - 1)
        density = multivariate_t(means[k], shape, df=n[k] - 1)
        own = rows[labels == label, 0]
        for probability in (0.05, 0.3, 0.8):
            quantile = np.quantile(own, probability)
            error = np.sqrt(probability * (1 - probability) / len(own))
            assert abs(density.cdf([quantile]) - probability) < 5 * error


@every_kind
def test_priors_of_a_prediction_replace_those_of_the_fit(model):
    X, y = small_classes()
    prior = [0.6, 0.3, 0.1]
    options = model.get_params()
    found = type(model)(**options).fit(X, y).predict_proba(X, prior)
    wanted = type(model)(**options | {"prior": prior}).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@every_kind
def test_model_is_saved_and_loaded(model, tmp_path):
    X, y = small_classes()
    fitted = type(model)(**model.get_params()).fit(X, y)
    fitted.save(tmp_path / "model.dd")
    loaded = dd.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict_log_proba(X), fitted.predict_log_proba(X))
    np.testing.assert_array_equal(loaded.log_density(X), fitted.log_density(X))


def test_rows_in_partitions_give_the_same_model(tmp_path):
    X, y = small_classes()
    frame = pd.DataFrame(X, columns=list("uvw")).assign(y=y)
    for part in range(3):
        frame.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet")
    rows = dd.rows(str(tmp_path / "*.parquet"), target="y", engine="files")
    memory = dd.QDA(predictive="student").fit(frame[list("uvw")], y)
    parts = dd.QDA(predictive="student").fit(rows)
    np.testing.assert_allclose(
        parts.predict_log_proba(frame[list("uvw")]),
        memory.predict_log_proba(frame[list("uvw")]),
        atol=1e-10,
    )


def test_more_features_than_rows_have_student_densities_after_shrinkage():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 600)), np.repeat([0, 1], 20)
    X[y == 1, :20] += 1.0
    wide = dd.LDA(predictive="student", shrinkage=0.95).fit(X, y)
    assert wide.moments_.detail == "rows"
    dense = dd.LDA(predictive="student", shrinkage=0.95)
    dense.fit_moments(dd.moments(X, y, detail="pooled"))
    np.testing.assert_allclose(wide.predict_log_proba(X), dense.predict_log_proba(X), atol=1e-8)


def test_far_rows_have_finite_scores():
    X, y = small_classes()
    model = dd.QDA(predictive="student").fit(X, y)
    far = np.array([[1e300, 1e300, 1e300], [1e160, 0, 0]])
    logs = model.predict_log_proba(far)
    assert np.isfinite(logs).all()
    # far out the density of a class is a power of the distance: the ratio of two tends to one power
    freedom = model.rule_.freedom
    np.testing.assert_allclose(
        (logs[0] - logs[1])[0] - (logs[0] - logs[1])[2],
        -(freedom[0] - freedom[2]) * 140 * np.log(10.0),
        rtol=1e-2,
    )


# --- bad input ------------------------------------------------------------------------------------


def test_too_few_degrees_of_freedom_count_as_the_fewest_possible():
    """6 rows of 12 features: a t with 1 degree of freedom about the shrunk covariance."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 12)) @ rng.normal(size=(12, 12)), np.repeat([0, 1], [6, 24])
    options = {"shrinkage": 0.1, "denominator": "ml"}
    with pytest.warns(ScarceRowsWarning, match=r"class '0' has 5\.67 .* Student-t density of 12"):
        model = dd.QDA(predictive="student", **options).fit(X, y)
    own = X[y == 0]
    covariance = np.cov(own.T, bias=True)
    covariance = 0.9 * covariance + 0.1 * np.diag(np.diagonal(covariance))
    # n = 6 is the denominator, and 2 / 3 of the prior; then as many as lack to 12 degrees
    denominator = 6 + 2 / 3 + (12 - 5 - 2 / 3)
    wanted = multivariate_t(own.mean(axis=0), 7 / 6 * denominator * covariance, df=1)
    np.testing.assert_allclose(
        model.log_density(X, by_class=True)[:, 0], wanted.logpdf(X), rtol=1e-9
    )


def test_unknown_kind_of_density_is_named():
    X, y = small_classes()
    with pytest.raises(OptionError, match=r"predictive='t'.*plug-in, student"):
        dd.LDA(predictive="t").fit(X, y)


def test_hyperparameters_chosen_by_plug_in_loss_are_refused():
    X, y = small_classes()
    with pytest.raises(OptionError, match=r"predictive='student'.*pooling_ and shrinkage_"):
        dd.RDA(pooling="cv", predictive="student").fit(X, y)


def test_student_densities_have_no_coefficients():
    X, y = small_classes()
    with pytest.raises(AttributeError, match="not linear"):
        dd.LDA(predictive="student").fit(X, y).coef_  # noqa: B018


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
def test_study_compares_and_describes_student_densities(tmp_path):
    X, y = load_wine(return_X_y=True)
    frame = pd.DataFrame(X[:, :5], columns=[f"c{j}" for j in range(5)]).assign(y=y.astype(str))
    study = dd.study(frame, target="y", folds=5)
    compared = study.compare(["lda", "lda_student", "qda_student"])
    fold = compared["lda_student"].predictions.fold
    held = dd.cross_validate(dd.LDA(predictive="student"), X[:, :5], y.astype(str), fold)
    np.testing.assert_allclose(
        compared["lda_student"].predictions.log_posterior, held.log_posterior, atol=1e-9
    )
    study.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "LDA, Student-t" in page and "less extreme where classes have few rows" in page
