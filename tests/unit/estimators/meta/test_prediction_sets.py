"""Prediction sets: parity with MAPIE, brute force, laws, coverage by simulation, bad input."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import beta as beta_distribution
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import discriminant as dd
from discriminant import (
    LDA,
    QDA,
    REJECT,
    SVM,
    Calibrated,
    Decision,
    Encoded,
    LaplaceNB,
    Logistic,
    NearestMean,
    PredictionSets,
)
from discriminant.assessment.prediction_set_assessment import assess_sets
from discriminant.decision.prediction_sets import (
    CalibrationScores,
    conformity_of,
    p_values,
    prediction_sets,
    uniform_numbers,
)
from discriminant.errors import (
    CoverageError,
    ExportError,
    LabelError,
    NeedsMemoryError,
    OptionError,
    PosteriorError,
    TooFewRowsError,
)
from discriminant.estimators.meta.cross_fit import hash_rows
from discriminant.table.hash_folds import row_hash_folds
from tests.parity.golden import frozen

GOLDEN = frozen("prediction_sets")
LABELS = np.array(["ash", "beech", "cedar"])

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


def sample(rows, seed, classes=3, width=4, apart=1.0):
    """Gaussian classes that overlap, each of its own covariance."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, rows, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    X = rng.normal(size=(rows, width)) * (1.0 + 0.3 * codes[:, None])
    X[:, :classes] += apart * np.eye(classes)[codes]
    return X, LABELS[codes]


# --- parity with MAPIE ----------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_sets_on_given_scores_equal_those_of_mapie(score):
    given = GOLDEN["scores"]
    p, new, y = np.array(given["p"]), np.array(given["new"]), np.array(given["y"])
    values = conformity_of(np.log(p), score, np.array(given["uniform"]))[np.arange(len(y)), y]
    mapie = 1.0 - np.array(given[score]["scores"])
    np.testing.assert_allclose(np.exp(values) if score == "lac" else values, mapie, atol=1e-12)
    scores = CalibrationScores(values, y, np.zeros(len(y), dtype=int))
    new_values = conformity_of(np.log(new), score, np.array(given["uniform_new"]))
    counts = scores.count(0, new_values, by_class=False)
    p_value = p_values(counts, scores.total(4, by_class=False))
    for level, sets in zip(given["levels"], given[score]["sets"], strict=True):
        assert np.array_equal(prediction_sets(p_value, level), np.array(sets, dtype=bool))


@pytest.mark.parametrize("method", ["cross", "jackknife"])
def test_cross_conformal_sets_in_iris_equal_those_of_mapie(method):
    given = GOLDEN["iris"]
    X, y = load_iris(return_X_y=True)
    X, train, new = X[:, :2], given["train"], given["new"]
    options = {"method": "jackknife+"} if method == "jackknife" else {"folds": given["fold"]}
    model = PredictionSets(LDA(denominator="ml"), **options).fit(X[train], y[train])
    for level, sets in zip(given["levels"], given[method], strict=True):
        ours = model.set_params(coverage=level).predict_set(X[new])
        assert np.array_equal(ours, np.array(sets, dtype=bool))


# --- brute force ----------------------------------------------------------------------------------


def brute_force(estimator, X, y, fold, new, weight=None, by_class=False):
    """p-values by refitting without each fold and counting row by row; LAC."""
    labels, codes = np.unique(y, return_inverse=True)
    w = np.ones(len(y)) if weight is None else weight
    counts = np.zeros((len(new), len(labels)))
    for f in np.unique(fold):
        rest = fold != f
        options = {} if weight is None else {"sample_weight": w[rest]}
        model = clone(estimator).fit(X[rest], y[rest], **options)
        held, fresh = model.predict_log_proba(X[fold == f]), model.predict_log_proba(new)
        for row, code, times in zip(held, codes[fold == f], w[fold == f], strict=True):
            for k in range(len(labels)):
                if not by_class or code == k:
                    counts[:, k] += times * (row[code] <= fresh[:, k])
    totals = np.bincount(codes, w) if by_class else np.full(len(labels), w.sum())
    return (1 + counts) / (1 + totals)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [LDA(), QDA(), NearestMean(), LaplaceNB(), LDA(shrinkage="auto"), Logistic(ridge=0.1)],
    ids=repr,
)
def test_cross_conformal_p_values_equal_refits(estimator, by_class):
    (X, y), (new, _) = sample(120, 0), sample(40, 1)
    fold = np.arange(120) % 4
    model = PredictionSets(estimator, 0.8, folds=fold, by_class=by_class).fit(X, y)
    wanted = brute_force(estimator, X, y, fold, new, by_class=by_class)
    np.testing.assert_allclose(model.p_values(new), wanted, atol=1e-12)


CLOSED_FORMS = [
    LDA(),
    LDA(denominator="ml", prior=[0.2, 0.3, 0.5]),
    LDA(shrinkage=1.0),
    LDA(shrinkage=0.4, target="identity"),
    LDA(shrinkage=0.3, target="scaled_identity"),
    NearestMean(),
    QDA(),
    QDA(denominator="ml", prior=[0.2, 0.3, 0.5]),
    QDA(denominator="reliability"),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", CLOSED_FORMS, ids=repr)
def test_jackknife_in_closed_form_equals_refits(estimator, weighted):
    (X, y), (new, _) = sample(60, 2), sample(25, 3)
    weight = np.random.default_rng(4).integers(1, 4, 60).astype(float) if weighted else None
    model = PredictionSets(estimator, method="jackknife+").fit(X, y, weight)
    assert not model.estimators_, "the closed form was not used"
    wanted = brute_force(estimator, X, y, np.arange(60), new, weight)
    np.testing.assert_allclose(model.p_values(new), wanted, atol=1e-12)


NO_CLOSED_FORM = [
    QDA(shrinkage=0.2),
    QDA(covariance="diagonal"),
    QDA(predictive="student"),
    LDA(shrinkage="auto"),
    Logistic(ridge=0.1),
]


@pytest.mark.parametrize("estimator", NO_CLOSED_FORM, ids=repr)
def test_jackknife_without_closed_form_equals_refits(estimator):
    (X, y), (new, _) = sample(60, 2), sample(25, 3)
    model = PredictionSets(estimator, method="jackknife+", by_class=True, coverage=0.7).fit(X, y)
    assert len(model.estimators_) == 60
    wanted = brute_force(estimator, X, y, np.arange(60), new, by_class=True)
    np.testing.assert_allclose(model.p_values(new), wanted, atol=1e-12)


def test_jackknife_by_aps_in_closed_form_equals_refits():
    (X, y), (new, _) = sample(50, 5), sample(20, 6)
    model = PredictionSets(LDA(), method="jackknife+", conformity="aps").fit(X, y)
    codes = np.unique(y, return_inverse=True)[1]
    own, fresh = (uniform_numbers(hash_rows(rows, 0)) for rows in (X, new))
    counts = np.zeros((20, 3))
    for i in range(50):
        left = np.arange(50) != i
        rule = LDA().fit(X[left], y[left])
        value = conformity_of(rule.predict_log_proba(X[i : i + 1]), "aps", own[i : i + 1])[
            0, codes[i]
        ]
        counts += value <= conformity_of(rule.predict_log_proba(new), "aps", fresh)
    np.testing.assert_allclose(model.p_values(new), (1 + counts) / 51, atol=1e-12)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_split_sets_are_those_above_the_quantile(coverage):
    (X, y), (held, truth), (new, _) = sample(100, 0), sample(99, 1), sample(50, 2)
    fitted = Logistic(ridge=0.1).fit(X, y)
    sets = PredictionSets(FrozenEstimator(fitted), coverage, method="split").fit(held, truth)
    own = fitted.predict_proba(held)[np.arange(99), np.unique(truth, return_inverse=True)[1]]
    rank = int(np.ceil(round(coverage * 100, 9)))  # of 99 rows
    limit = np.sort(1.0 - own)[rank - 1]
    assert np.array_equal(sets.predict_set(new), 1.0 - fitted.predict_proba(new) <= limit)


# --- laws -----------------------------------------------------------------------------------------

METHODS = [
    {"method": "split"},
    {"method": "cross"},
    {"method": "cross", "conformity": "aps"},
    {"method": "cross", "by_class": True},
]


@pytest.mark.parametrize("options", METHODS, ids=repr)
def test_an_integer_weight_is_equivalent_to_repeated_rows(options):
    (X, y), (new, _) = sample(90, 0), sample(30, 1)
    times = np.random.default_rng(2).integers(0, 4, 90)
    weighted = PredictionSets(LDA(), 0.7, **options).fit(X, y, times)
    repeated = PredictionSets(LDA(), 0.7, **options).fit(X.repeat(times, 0), y.repeat(times))
    np.testing.assert_allclose(weighted.p_values(new), repeated.p_values(new), atol=1e-12)


@pytest.mark.parametrize("options", [*METHODS, {"method": "jackknife+"}], ids=repr)
def test_the_order_of_the_rows_has_no_effect(options):
    (X, y), (new, _) = sample(90, 0), sample(30, 1)
    order = np.random.default_rng(3).permutation(90)
    model = PredictionSets(LDA(), 0.7, **options)
    first, second = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(first.p_values(new), second.p_values(new), atol=1e-12)
    assert np.array_equal(first.predict_set(new)[::-1], first.predict_set(new[::-1]))


def test_an_affine_map_of_the_features_changes_no_set():
    (X, y), (new, _) = sample(90, 0), sample(30, 1)
    fold, turn = np.arange(90) % 5, np.random.default_rng(1).normal(size=(4, 4))
    sets = [
        PredictionSets(LDA(), folds=fold).fit(rows, y).predict_set(fresh)
        for rows, fresh in ((X, new), (X @ turn + 3.0, new @ turn + 3.0))
    ]
    assert np.array_equal(*sets)


def test_larger_coverage_gives_larger_sets_without_a_fit():
    (X, y), (new, _) = sample(120, 0), sample(60, 1)
    model = PredictionSets(QDA()).fit(X, y)
    small, large = (model.set_params(coverage=level).predict_set(new) for level in (0.6, 0.95))
    assert (large >= small).all() and large.sum() > small.sum()


def test_nonempty_replaces_empty_sets_by_the_predicted_class():
    (X, y), (new, truth) = sample(200, 0, apart=4.0), sample(400, 1, apart=4.0)
    model = PredictionSets(LDA(), 0.7).fit(X, y)
    sets, summary = model.predict_set(new), model.evaluate(new, truth)
    empty = ~sets.any(axis=1)
    assert summary.empty == pytest.approx(empty.mean()) and empty.any()
    full = model.set_params(nonempty=True).predict_set(new)
    assert np.array_equal(full[~empty], sets[~empty])
    assert np.array_equal(model.classes_[full[empty].argmax(axis=1)], model.predict(new)[empty])
    assert (full[empty].sum(axis=1) == 1).all()
    assert model.evaluate(new, truth).coverage > summary.coverage


def test_predictions_and_posteriors_are_those_of_the_classifier():
    X, y = sample(90, 0)
    model, plain = PredictionSets(LDA()).fit(X, y), LDA().fit(X, y)
    assert np.array_equal(model.predict(X), plain.predict(X))
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    assert np.array_equal(model.prior_, plain.prior_)


def test_a_table_with_text_columns_and_foreign_classifiers_are_supported():
    X, y = sample(150, 0)
    frame = pd.DataFrame(X, columns=list("pqrs"))
    frame["colour"] = np.where(X[:, 0] > 0.5, "red", "blue")
    for estimator in (Encoded(LDA()), Encoded(Logistic(ridge=0.1))):
        for options in ({"method": "split"}, {"method": "cross", "conformity": "aps", "folds": 3}):
            sets = PredictionSets(estimator, 0.8, **options).fit(frame, y).predict_set(frame)
            assert 0.7 < sets[np.arange(150), np.unique(y, return_inverse=True)[1]].mean() < 0.95
    forest = PredictionSets(RandomForestClassifier(30, random_state=0), 0.8, folds=3).fit(X, y)
    new, truth = sample(600, 1)
    assert 0.75 < forest.evaluate(new, truth).coverage < 0.9


# --- partitioned tables ---------------------------------------------------------------------------


@pytest.fixture
def partitioned(tmp_path, monkeypatch):
    from discriminant.table.files import splits

    for name, size in (("SMALL", 1), ("BATCH", 100), ("RANGE", 6000)):
        monkeypatch.setattr(splits, name, size)
    X, y = sample(600, 0)
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(kind=y)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=100)
    return frame, dd.rows(str(path), target="kind")


@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize("estimator", [LDA(), QDA(), Logistic(ridge=0.1)], ids=repr)
def test_a_partitioned_table_gives_the_numbers_of_memory(estimator, score, partitioned):
    frame, table = partitioned
    X, new = frame[list("pqrs")], sample(40, 1)[0]
    codes = np.unique(frame["kind"], return_inverse=True)[1]
    fold = row_hash_folds(X.to_numpy(), codes, 5, seed=2)
    options = {"conformity": score, "seed": 2}
    ours = PredictionSets(estimator, folds=5, **options).fit(table)
    theirs = PredictionSets(estimator, folds=fold, **options).fit(X, frame["kind"])
    new = pd.DataFrame(new, columns=list("pqrs"))
    np.testing.assert_allclose(ours.p_values(new), theirs.p_values(new), atol=1e-12)


def test_a_partitioned_table_is_split_as_in_memory(partitioned):
    frame, table = partitioned
    X, y = frame[list("pqrs")], frame["kind"]
    codes = np.unique(y, return_inverse=True)[1]
    held = row_hash_folds(X.to_numpy(), codes, 4) == 0
    ours = PredictionSets(LDA(), method="split").fit(table)
    frozen_model = FrozenEstimator(LDA().fit(X[~held], y[~held]))
    theirs = PredictionSets(frozen_model, method="split").fit(X[held], y[held])
    np.testing.assert_allclose(ours.p_values(X), theirs.p_values(X), atol=1e-12)


def test_weights_and_folds_by_a_column_give_the_numbers_of_memory(tmp_path):
    X, y = sample(300, 0)
    frame = pd.DataFrame(X, columns=list("pqrs"))
    weight = np.random.default_rng(0).integers(0, 3, 300)
    table = frame.assign(kind=y, w=weight.astype(float), site=np.repeat(list("abcdef"), 50))
    table.to_csv(tmp_path / "rows.csv", index=False)
    rows = dd.rows(str(tmp_path / "rows.csv"), target="kind", weight="w", exclude=["site"])
    fold = np.repeat(np.arange(6), 50)
    ours = PredictionSets(LDA(), 0.8, by_class=True, folds="site").fit(rows)
    theirs = PredictionSets(LDA(), 0.8, by_class=True, folds=fold).fit(frame, y, weight)
    np.testing.assert_allclose(ours.p_values(frame), theirs.p_values(frame), atol=1e-12)


def test_jackknife_rejects_a_partitioned_table(partitioned):
    with pytest.raises(NeedsMemoryError, match=r"600 rows. Pass method='cross' or 'split'"):
        PredictionSets(LDA(), method="jackknife+").fit(partitioned[1])


# --- coverage -------------------------------------------------------------------------------------

MODELS = [LDA(), QDA(), Logistic(ridge=0.01), NearestMean()]
OPTIONS = [
    {"method": "split"},
    {"method": "split", "conformity": "aps"},
    {"method": "cross"},
    {"method": "cross", "conformity": "aps"},
    {"method": "jackknife+"},
]


def simulated(estimator, draws, options, coverage=0.9):
    """Coverage of each draw: 200 rows to fit, 200 new rows."""
    shares = []
    for draw in range(draws):
        (X, y), (new, truth) = sample(200, 2 * draw), sample(200, 2 * draw + 1)
        model = PredictionSets(estimator, coverage, **options).fit(X, y)
        shares.append(model.evaluate(new, truth).coverage)
    return np.array(shares)


def assert_covers(shares, goal):
    error = shares.std() / np.sqrt(len(shares))
    assert shares.mean() > goal - 3 * error, f"{shares.mean():.4f} is below {goal}"
    assert shares.mean() < goal + 0.03, f"{shares.mean():.4f} is more than 0.03 above {goal}"


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_coverage_in_20_draws(options):
    assert_covers(simulated(LDA(), 20, options), 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_coverage_in_200_draws(estimator, options):
    if options["method"] == "jackknife+" and not hasattr(estimator, "left_out_rules"):
        options = {**options, "method": "cross", "folds": 20}
    assert_covers(simulated(estimator, 200, options), 0.9)


def test_by_class_covers_a_rare_class_where_the_whole_does_not():
    rare, rare_by_class = [], []
    for draw in range(10):
        (X, y), (new, truth) = (sample(400, 100 + 2 * draw + i, apart=0.6) for i in (0, 1))
        of_class = np.flatnonzero(truth == "ash")
        for shares, by_class in ((rare, False), (rare_by_class, True)):
            model = PredictionSets(LDA(), by_class=by_class).fit(X, y)
            shares.append(model.evaluate(new[of_class], truth[of_class]).coverage)
    assert np.mean(rare) < 0.85
    assert_covers(np.array(rare_by_class), 0.9)


# --- assessment, decisions, exports ---------------------------------------------------------------


def test_assessment_of_sets_by_hand():
    sets = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=bool)
    result = assess_sets(sets, list("aabb"), list("ab"), coverage=0.9)
    assert (result.coverage, result.mean_size, result.empty, result.single) == (
        0.75,
        1.0,
        0.25,
        0.5,
    )
    assert result.coverage_by_class.tolist() == [1.0, 0.5]
    ends = beta_distribution.ppf([0.025, 0.975], [3, 4], [2, 1])
    np.testing.assert_allclose([result.interval().low, result.interval().high], ends)
    weighted = assess_sets(sets, list("aabb"), list("ab"), sample_weight=[2, 0, 1, 1])
    assert weighted.coverage == 0.75 and weighted.mean_size == 0.75
    halves = [assess_sets(sets[s], list("aabb")[s], list("ab")) for s in (slice(2), slice(2, 4))]
    assert (halves[0] + halves[1]).to_dict() == assess_sets(
        sets, list("aabb"), list("ab")
    ).to_dict()
    assert "coverage         0.7500" in str(result) and "sets for coverage 0.9" in str(result)
    assert result.frame().loc["b", "coverage"] == 0.5


def test_a_decision_rejects_rows_whose_set_has_not_one_class():
    (X, y), (new, _) = sample(120, 0), sample(60, 1)
    model = Decision(PredictionSets(LDA())).fit(X, y)
    size = model.estimator_.predict_set(new).sum(axis=1)
    assert np.array_equal(model.decide(new) == REJECT, size != 1)
    assert set(model.predict(new)) <= set(LABELS)


def test_export_refers_to_the_classifier_inside():
    model = PredictionSets(LDA()).fit(*sample(90, 0))
    with pytest.raises(ExportError, match=r"a set of classes.*model.estimator_"):
        dd.export(model, "python")
    assert "def predict" in dd.export(model.estimator_, "python")


SAVED = [(LDA(), options) for options in [*METHODS, {"method": "jackknife+"}]]


@pytest.mark.parametrize(
    ("estimator", "options"), [*SAVED, (QDA(), {"method": "jackknife+"})], ids=repr
)
def test_a_loaded_model_gives_the_same_sets(estimator, options, tmp_path):
    (X, y), (new, _) = sample(90, 0), sample(30, 1)
    model = PredictionSets(estimator, 0.7, **options).fit(X, y)
    model.save(tmp_path / "sets.dd")
    loaded = dd.load(tmp_path / "sets.dd")
    assert np.array_equal(loaded.p_values(new), model.p_values(new))


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, "0.9", None, True, float("nan")])
def test_a_coverage_of_0_or_1_is_rejected(coverage):
    with pytest.raises(OptionError, match="above 0 and below 1"):
        PredictionSets(LDA(), coverage).fit(*sample(90, 0))


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"method": "bootstrap"}, "split, "),
        ({"conformity": "raps"}, "lac, aps"),
        ({"by_class": "yes"}, "True or False"),
        ({"folds": 1}, "2 or more"),
        ({"calibration_size": 1.0, "method": "split"}, "below 1"),
        ({"seed": -1}, "whole number"),
    ],
)
def test_an_invalid_option_is_rejected(options, pattern):
    with pytest.raises(OptionError, match=pattern):
        PredictionSets(LDA(), **options).fit(*sample(90, 0))


def test_too_few_calibration_rows_are_rejected_with_the_way_out():
    X, y = sample(32, 0)
    with pytest.raises(CoverageError, match=r"8 calibration rows.*0.9.*fewer than 9.*'cross'"):
        PredictionSets(LDA(), method="split").fit(X, y)
    with pytest.raises(CoverageError, match=r"'ash' has \d+ calibration rows.*by_class=False"):
        PredictionSets(LDA(), by_class=True).fit(X, y)
    model = PredictionSets(LDA()).fit(X, y)
    with pytest.raises(CoverageError, match=r"32 calibration rows.*fewer than 99"):
        model.set_params(coverage=0.99).predict_set(X)


def test_calibration_rows_of_one_class_are_rejected():
    X, y = sample(90, 0)
    frozen_model = FrozenEstimator(LDA().fit(X, y))
    with pytest.raises((CoverageError, LabelError), match="class"):
        PredictionSets(frozen_model, method="split").fit(X[y == "ash"], y[y == "ash"])


def test_a_class_unknown_to_a_frozen_classifier_is_rejected():
    X, y = sample(90, 0)
    frozen_model = FrozenEstimator(LDA().fit(X[y != "ash"], y[y != "ash"]))
    with pytest.raises(LabelError, match="'ash'"):
        PredictionSets(frozen_model, method="split").fit(X, y)
    with pytest.raises(OptionError, match="frozen"):
        PredictionSets(frozen_model).fit(X, y)


def test_a_classifier_without_probabilities_is_rejected_with_the_way_out():
    X, y = sample(90, 0)
    with pytest.raises(PosteriorError, match=r"PredictionSets\(Calibrated\(SVM\(\)\)\)"):
        PredictionSets(SVM()).fit(X, y)
    assert PredictionSets(Calibrated(SVM())).fit(X, y).predict_set(X).shape == (90, 3)


def test_the_only_row_of_a_class_conforms_to_no_class_when_it_is_left_out():
    (X, y), (new, _) = sample(60, 0), sample(20, 1)
    y = np.where(np.arange(60) == 0, "larch", y)
    model = PredictionSets(LDA(), method="jackknife+").fit(X, y)
    assert model.calibration_.values[0] == -np.inf
    counts = np.zeros((20, 4))
    for i, label in enumerate(y):
        fitted = LDA().fit(np.delete(X, i, axis=0), np.delete(y, i))
        own, fresh = np.full(4, -np.inf), np.full((20, 4), -np.inf)
        columns = np.searchsorted(model.classes_, fitted.classes_)
        own[columns] = fitted.predict_log_proba(X[i : i + 1])[0]
        fresh[:, columns] = fitted.predict_log_proba(new)
        counts += own[model.classes_ == label] <= fresh
    np.testing.assert_allclose(model.p_values(new), (1 + counts) / 61, atol=1e-12)


def test_foreign_names_of_options_are_translated():
    with pytest.raises(TypeError, match="folds"):
        PredictionSets(LDA(), cv=5)
    with pytest.raises(TypeError, match="coverage"):
        PredictionSets(LDA(), confidence_level=0.9)
    (X, y), (new, _) = sample(120, 0), sample(5, 1)
    model = PredictionSets(LDA()).fit(X, y)
    with pytest.raises(TypeError, match=r"predict_set has no option 'coverage'.*set_params"):
        model.predict_set(new, coverage=0.8)
    with pytest.raises(TypeError, match=r"predict_set has no option 'alpha'.*coverage"):
        model.predict_set(new, alpha=0.2)


def test_a_logistic_regression_of_scikit_learn_is_supported():
    (X, y), (new, truth) = sample(200, 0), sample(500, 1)
    model = PredictionSets(LogisticRegression(max_iter=500), folds=5).fit(X, y)
    wanted = brute_force(LogisticRegression(max_iter=500), X, y, model.calibration_.fold, new)
    np.testing.assert_allclose(model.p_values(new), wanted, atol=1e-12)
    assert 0.85 < model.evaluate(new, truth).coverage < 0.96


def test_a_class_that_only_calibrates_is_rejected_with_the_way_out():
    X, y = sample(90, 0)
    y = np.where(np.arange(90) == 0, "larch", y)
    messages = []
    for seed in range(12):  # a quarter of the seeds choose the only row
        try:
            PredictionSets(LDA(), method="split", seed=seed).fit(X, y)
        except TooFewRowsError as error:
            messages.append(str(error))
    assert 0 < len(messages) < 12
    assert all("'larch' has 1 row, and a fit without the calib" in text for text in messages)


def test_a_split_without_calibration_or_training_rows_is_named():
    X, y = np.arange(60.0)[:, None], np.tile([0, 1], 30)
    with pytest.raises(CoverageError, match=r"0 calibration rows.*raise calibration_size"):
        PredictionSets(LDA(), method="split", calibration_size=0.01).fit(X, y)
    with pytest.raises(CoverageError, match=r"calibration_size=0\.999 leaves 1 of 60 rows"):
        PredictionSets(LDA(), method="split", calibration_size=0.999).fit(X, y)
    wider = PredictionSets(LDA(), method="split", calibration_size=0.4).fit(X, y)
    assert wider.predict_set(X).shape == (60, 2)
