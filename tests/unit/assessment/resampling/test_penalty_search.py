"""A path of penalties has the held-out losses of separate fits; the smallest one is chosen."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import discriminant as dd
from discriminant import GLM, LDA, SVM, LeastSquares, Logistic
from discriminant.assessment.resampling.penalty_search import PenaltyPath
from discriminant.errors import ClassMissingWarning, NeedsMemoryError, OptionError

RIDGES = [0.3, 0.03, 0.003]


def rows_of_classes(seed, n, d, classes, *, scale=1.0):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, d)) * np.linspace(1.0, 3.0, d) + 1.0
    scores = scale * rows @ generator.normal(size=(d, classes)) / np.sqrt(d)
    labels = (scores + generator.gumbel(size=scores.shape)).argmax(axis=1)
    return rows, labels


def losses_by_refitting(rows, labels, fold, weight=None, **options):
    """Mean held-out log loss of each ridge, and its standard error, by one fit for each fold."""
    weight = np.ones(len(labels)) if weight is None else weight
    by_fold = np.zeros((len(RIDGES), fold.max() + 1))
    totals = np.array([weight[fold == f].sum() for f in range(fold.max() + 1)])
    for i, ridge in enumerate(RIDGES):
        for f in range(fold.max() + 1):
            train, held = fold != f, fold == f
            model = Logistic(ridge=ridge, **options)
            model.fit(rows[train], labels[train], sample_weight=weight[train])
            logs = model.predict_log_proba(rows[held])
            own = logs[np.arange(held.sum()), np.searchsorted(model.classes_, labels[held])]
            by_fold[i, f] = -np.average(own, weights=weight[held])
    mean = by_fold @ totals / totals.sum()
    variance = (by_fold - mean[:, None]) ** 2 @ totals / totals.sum()
    return mean, np.sqrt(variance / fold.max())


CASES = {
    "two classes": (2, 6, {}),
    "three classes": (3, 6, {}),
    "lasso": (2, 6, {"l1_ratio": 1.0}),
    "elastic net of three classes": (3, 6, {"l1_ratio": 0.5}),
    "many coefficients": (5, 20, {}),  # all folds use the curvature of all rows
    "without intercept": (2, 6, {"intercept": False}),
    "three classes without intercept": (3, 4, {"intercept": False}),
    "raw columns": (2, 6, {"standardize": False}),
    "lasso of raw columns": (3, 6, {"standardize": False, "l1_ratio": 0.9}),
    "probit": (2, 6, {"link": "probit"}),
    "more features than rows": (2, 260, {}),
    "more features than rows, three classes": (3, 260, {"standardize": False}),
    "lasso with more features than rows": (2, 90, {"l1_ratio": 1.0}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_held_out_losses_equal_those_of_separate_fits(case):
    classes, d, options = CASES[case]
    rows, labels = rows_of_classes(len(case), 80, d, classes)
    fold = np.arange(80) % 4
    expected, error = losses_by_refitting(rows, labels, fold, **options)
    path = Logistic(ridge="cv", ridges=RIDGES, folds=fold, **options).fit(rows, labels).path_
    np.testing.assert_allclose(path.loss, expected, rtol=2e-6)
    np.testing.assert_allclose(path.standard_error, error, rtol=1e-4)


def test_weights_count_in_training_and_held_out_rows():
    rows, labels = rows_of_classes(3, 60, 4, 2)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 60)
    weight[:5] = 0.0
    fold = np.arange(60) % 4
    expected, error = losses_by_refitting(rows, labels, fold, weight)
    path = Logistic(ridge="cv", ridges=RIDGES, folds=fold).fit(rows, labels, weight).path_
    np.testing.assert_allclose(path.loss, expected, rtol=2e-6)
    np.testing.assert_allclose(path.standard_error, error, rtol=1e-4)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_integer_weights_equal_repeated_rows_in_the_same_folds(l1_ratio):
    rows, labels = rows_of_classes(4, 50, 3, 3)
    times, fold = np.random.default_rng(2).integers(0, 3, 50), np.arange(50) % 5
    options = {"ridge": "cv", "ridges": 8, "l1_ratio": l1_ratio}
    weighted = Logistic(folds=fold, **options).fit(rows, labels, times)
    repeated = Logistic(folds=np.repeat(fold, times), **options).fit(
        np.repeat(rows, times, axis=0), np.repeat(labels, times)
    )
    np.testing.assert_allclose(weighted.path_.loss, repeated.path_.loss, rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)


def test_units_and_origins_of_columns_do_not_change_the_path():
    rows, labels = rows_of_classes(5, 80, 4, 3)
    moved = rows * [1e-6, 1e3, 1.0, 50.0] + [0.0, 1e6, -3.0, 4.0]
    plain, other = (Logistic(ridge="cv").fit(each, labels) for each in (rows, moved))
    np.testing.assert_allclose(plain.path_.ridges, other.path_.ridges, rtol=1e-8)
    np.testing.assert_allclose(plain.path_.loss, other.path_.loss, rtol=1e-6)


def test_sparse_rows_have_the_path_of_dense_rows():
    rows, labels = rows_of_classes(6, 80, 5, 2)
    rows[np.abs(rows) < 1.0] = 0.0
    plain = Logistic(ridge="cv").fit(rows, labels)
    other = Logistic(ridge="cv").fit(sparse.csr_array(rows), labels)
    np.testing.assert_allclose(plain.path_.loss, other.path_.loss, rtol=1e-8)


def test_the_final_fit_is_that_of_the_chosen_penalty():
    rows, labels = rows_of_classes(7, 90, 5, 3)
    chosen = Logistic(ridge="cv").fit(rows, labels)
    again = Logistic(ridge=chosen.ridge_).fit(rows, labels)
    np.testing.assert_array_equal(chosen.coef_, again.coef_)
    assert again.path_ is None
    assert again.ridge_ == chosen.ridge_ == chosen.path_.ridge


def test_lasso_path_starts_where_the_first_feature_enters():
    rows, labels = rows_of_classes(8, 90, 5, 2)
    path = Logistic(ridge="cv", l1_ratio=1.0).fit(rows, labels).path_
    assert path.nonzero[0] == 0
    assert path.nonzero[1] > 0
    assert path.nonzero[-1] == 5


def test_one_standard_error_rule_chooses_a_larger_penalty():
    losses = np.array([0.7, 0.52, 0.5, 0.51])
    path = PenaltyPath(
        np.array([8.0, 4.0, 2.0, 1.0]), losses, np.full(4, 0.03), np.arange(4), "log_loss", "one_se"
    )
    assert path.ridge == 4.0
    assert path.minimum == 2


def test_ties_choose_the_largest_penalty():
    losses = np.array([0.5, 0.5, 0.5])
    path = PenaltyPath(np.array([4.0, 2.0, 1.0]), losses, np.zeros(3), np.arange(3), "error", "min")
    assert path.ridge == 4.0


def test_error_criterion_counts_misclassified_rows():
    rows, labels = rows_of_classes(9, 80, 3, 3)
    fold = np.arange(80) % 4
    path = Logistic(ridge="cv", ridges=[0.01], folds=fold, criterion="error").fit(rows, labels)
    wrong = 0
    for f in range(4):
        model = Logistic(ridge=0.01).fit(rows[fold != f], labels[fold != f])
        wrong += int((model.predict(rows[fold == f]) != labels[fold == f]).sum())
    assert path.path_.loss[0] == pytest.approx(wrong / 80)


def test_a_class_with_one_row_is_always_in_the_training_set():
    rows, labels = rows_of_classes(10, 60, 3, 2)
    labels[0] = 7
    with pytest.warns(ClassMissingWarning, match="class '7' are in one fold"):
        model = Logistic(ridge="cv").fit(rows, labels)
    assert np.isfinite(model.path_.loss).all()
    assert model.classes_.tolist() == [0, 1, 7]


def test_a_column_that_is_constant_in_a_training_set_is_penalised():
    rows, labels = rows_of_classes(11, 60, 3, 2)
    fold = np.arange(60) % 4
    rows = np.column_stack([rows, np.where(fold == 1, np.arange(60.0), 5.0)])
    path = Logistic(ridge="cv", ridges=RIDGES, folds=fold).fit(rows, labels).path_
    assert np.isfinite(path.loss).all()
    assert path.loss.max() < 1.0


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_separated_classes_have_a_path(l1_ratio):
    rows, labels = load_iris(return_X_y=True)
    with np.errstate(all="raise", under="ignore"):
        path = Logistic(ridge="cv", l1_ratio=l1_ratio).fit(rows, labels).path_
    assert np.isfinite(path.loss).all()
    assert path.loss.min() < 0.16


@pytest.mark.parametrize(
    ("load", "largest"), [(load_breast_cancer, 0.088), (load_wine, 0.08)], ids=["cancer", "wine"]
)
def test_chosen_penalty_predicts_as_well_as_a_tuned_model(load, largest):
    """Nested folds; LogisticRegressionCV of scikit-learn has .075 to .079 and .065 to .078."""
    rows, labels = load(return_X_y=True)
    held_out = dd.cross_validate(Logistic(ridge="cv"), rows, labels, folds=10)
    assert held_out.log_loss < largest


# --- options and errors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": "loo"}, r"ridge='loo' is not valid: it must be a number, 0 or more, or 'cv'"),
        ({"ridge": "cv", "ridges": [0.0, 1.0]}, r"array of positive numbers"),
        ({"ridge": "cv", "ridges": 1}, r"from 2 to 1000"),
        ({"ridge": "cv", "ridges": "auto"}, r"array of positive numbers"),
        ({"ridge": "cv", "criterion": "auc"}, r"one of log_loss, error"),
        ({"ridge": "cv", "rule": "max"}, r"one of min, one_se"),
        ({"ridge": "cv", "folds": 1}, r"from 2 to the number of rows \(60\)"),
        ({"ridge": "cv", "bias_reduction": "jeffreys"}, r"unless link='logit' and ridge=0"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    rows, labels = rows_of_classes(12, 60, 3, 2)
    with pytest.raises(OptionError, match=message):
        Logistic(**options).fit(rows, labels)


def test_folds_that_never_hold_out_a_row_are_rejected():
    rows, labels = rows_of_classes(12, 60, 3, 2)
    with pytest.raises(OptionError, match="puts the rows of some class into two folds"):
        Logistic(ridge="cv", folds=labels).fit(rows, labels)


def test_too_many_coefficients_are_rejected_with_the_remedy():
    rows, labels = rows_of_classes(13, 420, 400, 9)
    with pytest.raises(OptionError, match=r"at most 3,000 coefficients \(there are 3,208\)"):
        Logistic(ridge="cv").fit(rows, labels)


def test_summary_says_that_the_chosen_penalty_biases_the_estimates():
    rows, labels = rows_of_classes(14, 60, 3, 2)
    model = Logistic(ridge="cv").fit(rows, labels)
    assert f"ridge={model.ridge_:g} biases the estimates" in str(model.summary())


def test_saved_model_has_its_path(tmp_path):
    rows, labels = rows_of_classes(15, 60, 3, 2)
    model = Logistic(ridge="cv", ridges=5).fit(rows, labels)
    model.save(tmp_path / "model.dsc")
    loaded = dd.load(tmp_path / "model.dsc")
    assert loaded.ridge_ == model.ridge_
    np.testing.assert_array_equal(loaded.path_.loss, model.path_.loss)
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))


def test_path_prints_its_choice():
    path = PenaltyPath(
        np.array([1.0, 0.1]), np.array([0.6, 0.5]), np.zeros(2), np.ones(2, int), "log_loss", "min"
    )
    assert repr(path) == "PenaltyPath(2 penalties from 1 to 0.1, chosen: 0.1 with log_loss 0.5)"
    assert path.to_dict()["ridge"] == [1.0, 0.1]


# --- GLM and LDA ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "link"), [("gaussian", None), ("poisson", None), ("gamma", "log")]
)
def test_held_out_deviance_equals_that_of_separate_fits(family, link):
    generator = np.random.default_rng(16)
    rows = generator.normal(size=(60, 4)) * [1.0, 2.0, 3.0, 0.1]
    score = rows @ [0.3, -0.2, 0.1, 1.0] + 0.5
    response = {
        "gaussian": score + generator.normal(size=60),
        "poisson": generator.poisson(np.exp(score)),
        "gamma": generator.gamma(3.0, np.exp(score) / 3.0),
    }[family]
    fold = np.arange(60) % 4
    path = GLM(family, link, ridge="cv", ridges=RIDGES, folds=fold).fit(rows, response).path_
    for i, ridge in enumerate(RIDGES):
        total = 0.0
        for f in range(4):
            model = GLM(family, link, ridge=ridge).fit(rows[fold != f], response[fold != f])
            mean, y = model.predict(rows[fold == f]), response[fold == f]
            total += {
                "gaussian": lambda mean, y: 0.5 * (y - mean) ** 2,
                "poisson": lambda mean, y: (
                    np.where(y > 0, y * np.log(np.maximum(y, 1) / mean), 0) - (y - mean)
                ),
                "gamma": lambda mean, y: (y - mean) / mean - np.log(y / mean),
            }[family](mean, y).sum()
        assert path.loss[i] == pytest.approx(total / 60, rel=1e-5)


def test_elastic_net_of_a_binomial_glm_is_that_of_logistic():
    rows, labels = rows_of_classes(17, 80, 5, 2)
    net = GLM("binomial", ridge=0.05, l1_ratio=0.7).fit(rows, labels)
    logistic = Logistic(ridge=0.05, l1_ratio=0.7).fit(rows, labels)
    np.testing.assert_allclose(net.coef_, logistic.coef_[0], rtol=0, atol=1e-7)
    assert net.converged_


def test_net_without_a_valid_mean_for_every_score_is_rejected():
    with pytest.raises(OptionError, match="link 'inverse' of 'gamma'"):
        GLM("gamma", ridge=0.1, l1_ratio=1.0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])


def test_lda_chooses_the_shrinkage_with_the_smallest_held_out_loss():
    rows, labels = rows_of_classes(18, 60, 12, 3)
    fold = np.arange(60) % 5
    model = LDA(shrinkage="cv", folds=fold).fit(rows, labels)
    losses = [
        dd.cross_validate(LDA(shrinkage=s), rows, labels, folds=fold).log_loss
        for s in model.cv_.shrinkage
    ]
    np.testing.assert_allclose(model.cv_.log_loss[0, :, 0], losses, rtol=1e-9)
    assert model.shrinkage_ == model.cv_.shrinkage[int(np.argmin(losses))]
    fixed = LDA(shrinkage=model.shrinkage_).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, fixed.coef_, rtol=1e-12)


def test_lda_keeps_its_shrinkage_when_rows_are_added():
    rows, labels = rows_of_classes(19, 60, 5, 2)
    model = LDA(shrinkage="cv").fit(rows[:50], labels[:50])
    shrinkage = model.shrinkage_
    model.partial_fit(rows[50:], labels[50:])
    assert model.shrinkage_ == shrinkage
    with pytest.raises(OptionError, match="no rows to hold out"):
        LDA(shrinkage="cv").fit_moments(dd.moments(rows, labels))


# --- least squares and SVM ------------------------------------------------------------------------


@pytest.mark.parametrize("coding", ["indicator", "sign"])
def test_held_out_squared_errors_of_codes_equal_those_of_separate_fits(coding):
    rows, labels = rows_of_classes(23, 60, 4, 3)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    fold, ridges = np.arange(60) % 4, [30.0, 1.0, 0.01]
    options = {"coding": coding, "ridges": ridges, "folds": fold}
    path = LeastSquares(ridge="cv", **options).fit(rows, labels, weight).path_
    codes = np.eye(3)[labels] if coding == "indicator" else 2.0 * np.eye(3)[labels] - 1.0
    for i, ridge in enumerate(ridges):
        total = 0.0
        for f in range(4):
            train, held = fold != f, fold == f
            model = LeastSquares(coding=coding, ridge=ridge)
            model.fit(rows[train], labels[train], weight[train])
            residual = codes[held] - model.fitted_values(rows[held])
            total += float(weight[held] @ (residual**2).sum(axis=1))
        assert path.loss[i] == pytest.approx(total / weight.sum(), rel=1e-9)


def test_least_squares_keeps_its_penalty_when_rows_are_added():
    rows, labels = rows_of_classes(22, 60, 5, 2)
    model = LeastSquares(ridge="cv").fit(rows[:50], labels[:50])
    ridge = model.ridge_
    again = LeastSquares(ridge=ridge).fit(rows[:50], labels[:50])
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-12)
    model.partial_fit(rows[50:], labels[50:])
    assert model.ridge_ == ridge
    with pytest.raises(OptionError, match="no rows to hold out"):
        LeastSquares(ridge="cv").fit_moments(dd.moments(rows, labels))


def test_least_squares_of_a_partitioned_table_chooses_a_penalty(tmp_path):
    rows, labels = rows_of_classes(23, 200, 3, 2)
    columns = np.column_stack([rows, labels])
    names = {"header": "a,b,c,label", "comments": ""}
    np.savetxt(tmp_path / "rows.csv", columns, delimiter=",", **names)
    model = LeastSquares(ridge="cv", folds=5).fit(
        dd.rows(str(tmp_path / "rows.csv"), target="label")
    )
    plain = LeastSquares(ridge=model.ridge_).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("criterion", ["error", "squared_hinge"])
def test_held_out_measures_of_an_svm_equal_those_of_separate_fits(classes, criterion):
    rows, labels = rows_of_classes(24, 80, 4, classes)
    fold = np.arange(80) % 4
    search = {"ridges": RIDGES, "folds": fold, "criterion": criterion}
    path = SVM(ridge="cv", standardize=True, **search).fit(rows, labels).path_
    for i, ridge in enumerate(RIDGES):
        total = 0.0
        for f in range(4):
            train, held = fold != f, fold == f
            model = SVM(ridge=ridge, standardize=True).fit(rows[train], labels[train])
            scores = model.decision_function(rows[held])
            sign = np.where(labels[held][:, None] == np.arange(classes), 1.0, -1.0)
            if classes == 2:
                scores, sign = scores[:, None], sign[:, 1:]
            loss = (np.maximum(1.0 - sign * scores, 0.0) ** 2).sum()
            wrong = (model.predict(rows[held]) != labels[held]).sum()
            total += float(wrong if criterion == "error" else loss)
        assert path.loss[i] == pytest.approx(total / 80, rel=1e-5)


def test_svm_is_fitted_with_the_chosen_penalty():
    rows, labels = rows_of_classes(25, 80, 4, 3)
    model = SVM(ridge="cv", class_weight="balanced").fit(rows, labels)
    again = SVM(ridge=model.ridge_, class_weight="balanced").fit(rows, labels)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    with pytest.raises(OptionError, match="'squared_hinge' with ridge='cv'"):
        SVM(ridge="cv", loss="hinge").fit(rows, labels)
    with pytest.raises(OptionError, match="one of error, squared_hinge"):
        SVM(ridge="cv", criterion="log_loss").fit(rows, labels)


# --- studies and partitioned tables ---------------------------------------------------------------


def test_a_study_compares_models_with_chosen_penalties():
    rows, labels = load_wine(return_X_y=True, as_frame=True)
    frame = rows.assign(cultivar=labels.astype(str))
    study = dd.study(frame, target="cultivar")
    comparison = study.compare(["logistic_cv", "logistic_l1_cv", "lda_cv", "rda", "lda"])
    losses = {result.model.name: result.value("log_loss") for result in comparison.results}
    assert set(losses) == {"logistic_cv", "logistic_l1_cv", "lda_cv", "rda", "lda", "pool"}
    assert losses["logistic_cv"] < 0.08


def test_large_partitioned_tables_are_rejected(monkeypatch, tmp_path):
    rows, labels = rows_of_classes(20, 400, 3, 2)
    np.savetxt(
        tmp_path / "rows.csv",
        np.column_stack([rows, labels]),
        delimiter=",",
        header="a,b,c,label",
        comments="",
    )
    table = dd.rows(str(tmp_path / "rows.csv"), target="label")
    monkeypatch.setattr(type(table), "sample_is_complete", property(lambda self: False))
    with pytest.raises(NeedsMemoryError, match="A penalty chosen by cross-validation"):
        Logistic(ridge="cv").fit(table)


@pytest.mark.parametrize(
    "model",
    [Logistic(ridge="cv"), SVM(ridge="cv"), LeastSquares(ridge="cv"), LDA(shrinkage="cv")],
)
@pytest.mark.filterwarnings("ignore::discriminant.errors.MaskedClassWarning")
def test_a_class_with_one_row_is_named_and_the_model_is_fitted(model):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(41, 3)), np.array([0, 1] * 20 + [2])
    with pytest.warns(ClassMissingWarning, match=r"All 1 row of class '2' are in one fold"):
        model.fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClassMissingWarning)
        model.fit(X[:40], y[:40])


@pytest.mark.parametrize("odd", [0, 1])
def test_a_binomial_response_with_one_success_or_failure_is_named(odd):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(41, 3)), np.full(41, 1 - odd)
    y[7] = odd
    with pytest.warns(ClassMissingWarning, match=rf"All 1 row of class '{odd}' are in one fold"):
        GLM("binomial", ridge="cv").fit(X, y)
    y[:20] = odd
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClassMissingWarning)
        GLM("binomial", ridge="cv").fit(X, y)


def test_column_nearly_constant_in_a_training_set_hardly_changes_the_losses():
    rows, labels = rows_of_classes(3, 300, 4, 2)
    rare = np.zeros(300)
    rare[7], rare[11] = 1.0, 1 / 300  # a level of one row, and its share in a missing cell
    fold = np.arange(300) % 5
    model = Logistic(ridge="cv", ridges=RIDGES, folds=fold)
    plain = model.fit(rows, labels).path_.loss
    wider = model.fit(np.column_stack([rows, rare]), labels).path_.loss
    np.testing.assert_allclose(wider, plain, rtol=0.02)
