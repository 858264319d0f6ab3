"""A study reads once; what it says of held-out rows is what refitting says."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict

import discriminant as dd
from discriminant.assessment.resampling.folds import fold_numbers
from discriminant.errors import OptionError, StudyError
from discriminant.study.models import candidate_models, resolve_models
from tests.shared.paths import SHARED

QUICK = ["lda", "qda", "rda", "nearest_mean", "least_squares"]


def frame_of(loader):
    bunch = loader(as_frame=True)
    return bunch.data.assign(kind=bunch.target_names[bunch.target])


@pytest.fixture(scope="module")
def wine():
    study = dd.study(frame_of(load_wine), target="kind", seed=3)
    study.compare(QUICK, repeats=1)
    return study


def splits(study):
    fold = fold_numbers(study.folds, study.opened.table.codes, seed=study.seed)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(study.folds)]


def test_measures_of_lda_are_those_of_scikit_learn_on_the_same_folds():
    frame = frame_of(load_wine)
    wine = dd.study(frame, target="kind", seed=3)
    wine.compare({"lda": dd.LDA(denominator="ml")}, repeats=1)
    X, y = frame.drop(columns="kind"), frame["kind"]
    p = cross_val_predict(
        LinearDiscriminantAnalysis(), X, y, cv=splits(wine), method="predict_proba"
    )
    said = np.unique(y)[p.argmax(axis=1)]
    facts = wine.comparison["lda"].facts
    assert facts["error"] == pytest.approx(np.mean(said != y))
    assert facts["log_loss"] == pytest.approx(log_loss(y, p), rel=1e-6)


def test_every_model_made_from_shared_moments_says_what_cross_validate_says(wine):
    frame = frame_of(load_wine)
    X, y = frame.drop(columns="kind"), frame["kind"]
    fold = fold_numbers(10, wine.opened.table.codes, seed=3)
    models = {"lda": dd.LDA(), "qda": dd.QDA(), "nearest_mean": dd.NearestMean()}
    for name, model in models.items():
        alone = dd.cross_validate(model, X, y, folds=fold)
        np.testing.assert_allclose(
            wine.comparison[name].predictions.log_posterior, alone.log_posterior, atol=1e-9
        )


def test_models_that_read_rows_are_refitted_on_the_same_folds():
    frame = frame_of(load_iris)
    study = dd.study(frame, target="kind", folds=3)
    found = study.compare(["logistic"])["logistic"].predictions
    alone = dd.cross_validate(
        dd.Logistic(ridge=1e-4), frame.drop(columns="kind"), frame["kind"], folds=found.fold
    )
    np.testing.assert_allclose(found.log_posterior, alone.log_posterior, atol=1e-6)


def test_auc_and_brier_of_two_classes_are_those_of_scikit_learn():
    study = dd.study(frame_of(load_breast_cancer), target="kind", folds=5)
    one = study.compare(["lda"])["lda"]
    p = np.exp(one.predictions.log_posterior[:, 1])
    assert one.facts["auc"] == pytest.approx(
        roc_auc_score(one.predictions.codes, one.predictions.log_posterior @ [-1, 1])
    )
    assert one.facts["brier"] == pytest.approx(brier_score_loss(one.predictions.codes, p))
    assert one.facts["auc_low"] < one.facts["auc"] < one.facts["auc_high"]


def test_models_without_probabilities_have_errors_and_auc_but_no_log_loss():
    study = dd.study(frame_of(load_iris), target="kind", folds=3)
    facts = study.compare(["svm"])["svm"].facts
    assert facts["log_loss"] is None and facts["auc"] > 0.9
    assert "no probabilities" in facts["note"]


def test_the_choice_is_the_simplest_within_one_standard_error(wine):
    choice = wine.choose(by="log_loss", rule="one_se", select="single")
    outcomes = {one.name: one for one in wine.comparison.results}
    assert outcomes.pop("least_squares").facts["log_loss"] is None  # it gives no probabilities
    outcomes.pop("pool", None)
    best = min(outcomes.values(), key=lambda one: one.facts["log_loss"])
    limit = best.facts["log_loss"] + best.standard_error["log_loss"]
    near = [one for one in outcomes.values() if one.facts["log_loss"] <= limit]
    assert outcomes[choice.name].model.simplicity == min(one.model.simplicity for one in near)
    assert wine.choose(rule="least", select="single").name == best.name


def test_the_standard_error_is_that_over_folds(wine):
    one = wine.comparison["lda"]
    wrong = pd.Series(one.predictions.wrong.astype(float)).groupby(one.predictions.fold)
    share = wrong.size() / len(one.predictions.wrong)
    error = np.sqrt((share * (wrong.mean() - one.facts["error"]) ** 2).sum() / 9)
    assert one.standard_error["error"] == pytest.approx(error)


def test_the_model_is_the_one_fitted_to_all_rows_and_takes_frames(wine):
    frame = frame_of(load_wine)
    rows = frame.drop(columns="kind")
    alone = dd.LDA().fit(rows.to_numpy(), frame["kind"])
    np.testing.assert_allclose(
        wine.model("lda").predict_proba(rows[rows.columns[::-1]]),
        alone.predict_proba(rows.to_numpy()),
        atol=1e-9,
    )


def test_rda_hyperparameters_are_chosen_for_each_fold_on_the_others(wine):
    run = wine._get_run()
    assert len(run._grid_by_fold) == 10
    sums = [grid.log_loss for grid in run._grid_by_fold]
    # each leaves one fold out, so their mean is near that of all, and none is the same as another
    assert np.mean(sums, axis=0) == pytest.approx(run.grid.log_loss, rel=0.05)
    assert len({grid.log_loss.tobytes() for grid in run._grid_by_fold}) == 10


def test_rows_drawn_for_models_that_read_rows_are_said():
    study = dd.study(frame_of(load_breast_cancer), target="kind", folds=3)
    facts = study.compare(["logistic"], most=100)["logistic"].facts
    assert "Fitted to a sample of 100 rows" in facts["note"] and facts["error"] < 0.15


def test_costs_move_the_decision_and_the_report_says_so(wine, tmp_path):
    wine.choose("lda")
    plain = wine.decide()
    model = wine.decide(cost={"class_0": {"class_1": 1000.0}}, reject=0.2)
    rows = frame_of(load_wine).drop(columns="kind")
    assert (model.predict(rows) == "class_0").sum() <= (plain.predict(rows) == "class_0").sum()
    found = wine.report(tmp_path / "wine.html", save=tmp_path / "wine.model")
    assert found["decision"]["costs_given"] and found["decision"]["reject"] == 0.2
    loaded = dd.load(tmp_path / "wine.model")
    assert loaded.decide(rows).tolist() == model.decide(rows).tolist()
    wine.decide()


def test_facts_are_json_and_the_page_is_small(wine, tmp_path):
    found = wine.report(tmp_path / "wine.html")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (tmp_path / "wine.html").stat().st_size < 1_000_000


def test_nothing_is_written_where_the_place_is_bad(wine, tmp_path):
    with pytest.raises(OSError, match="cannot be written"):
        wine.report(tmp_path / "absent" / "wine.html", save=tmp_path / "wine.model")
    assert list(tmp_path.iterdir()) == []


def test_unknown_models_and_options_are_named(wine):
    with pytest.raises(StudyError, match=r"no model 'forest'.*'lda'"):
        wine.compare(["forest"])
    with pytest.raises(StudyError, match=r"'svm' was not compared"):
        wine.choose("svm")
    with pytest.raises(OptionError, match=r"'log_loss', 'error' or 'brier'"):
        wine.choose(by="f1")


def test_misspelt_model_is_answered_with_the_nearest_name(wine):
    with pytest.raises(StudyError, match=r"no model 'lgistic': did you mean 'logistic'\? Choose"):
        wine.compare(["lgistic"])
    with pytest.raises(StudyError, match=r"did you mean 'lda'\?"):
        wine.compare(["LDA"])


def test_default_models_need_no_compiled_loop_and_all_adds_the_rest():
    default = [model.name for model in resolve_models(None)]
    every = [model.name for model in resolve_models("all")]
    rest = [name for name in every if name not in default]
    assert {"least_squares", "laplace_nb", "perceptron", "mda"} <= set(rest)
    assert sorted([*default, *rest]) == sorted(every)
    ordered = [model.name for model in resolve_models("all", ("low", "medium", "high"))]
    assert set(ordered) - set(every) == {"ordered_logistic"}
    assert sorted(ordered) == sorted(candidate_models())
    assert not any(model.compiled for model in resolve_models(None))
    assert [model.name for model in resolve_models(rest)] == rest


def test_ones_own_classifiers_join_the_comparison():
    from sklearn.naive_bayes import GaussianNB

    study = dd.study(frame_of(load_iris), target="kind", folds=5)
    compared = study.compare({"bayes": GaussianNB(), "lda": dd.LDA()}, repeats=1)
    frame = frame_of(load_iris)
    said = cross_val_predict(
        GaussianNB(), frame.drop(columns="kind"), frame["kind"], cv=splits(study)
    )
    assert compared["bayes"].facts["error"] == pytest.approx(np.mean(said != frame["kind"]))


def test_progress_names_every_model():
    told = []
    study = dd.study(
        frame_of(load_iris),
        target="kind",
        folds=3,
        progress=lambda what, done, of: told.append((what, done, of)),
    )
    study.compare(["lda", "qda"])
    assert ("LDA", 0, 2) in told and ("QDA", 1, 2) in told and told[-1] == ("done", 2, 2)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared sets are not here")
def test_penguins_with_missing_cells_and_categories():
    study = dd.study(SHARED / "penguins/penguins.csv", target="species", missing="drop")
    compared = study.compare(["lda", "qda"])
    assert compared["lda"].facts["error"] < 0.02
    assert study.opened.rows_read == 344 and len(study.opened.table) == 333


def test_classes_of_one_row_beside_a_single_other_make_log_losses_infinite_and_brier_decides():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(41, 2)), columns=["u", "v"])
    frame["kind"] = [*("a" * 39), "lonely", "alone"]
    study = dd.study(frame, target="kind", folds=4)
    compared = study.compare(["lda", "nearest_mean", "perceptron"])
    assert compared["lda"].facts["log_loss"] is None
    choice = study.choose()
    assert choice.by == "brier" and choice.why.startswith("No model has a finite log loss")


def test_models_that_take_no_weights_are_left_out_of_a_weighted_study():
    frame = frame_of(load_iris).assign(w=np.arange(150) % 3 + 1.0)
    study = dd.study(frame, target="kind", weight="w", folds=3)
    compared = study.compare(["lda", "perceptron"], repeats=1)
    assert [name for name, _ in compared.left_out] == ["Perceptron"]
    repeated = frame.loc[frame.index.repeat(frame["w"].astype(int))]
    fold = np.repeat(compared["lda"].predictions.fold, frame["w"].astype(int))
    X = repeated.drop(columns=["kind", "w"])
    alone = dd.cross_validate(dd.LDA(), X, repeated["kind"], folds=fold)
    assert compared["lda"].facts["error"] == pytest.approx(alone.error)
    assert "of the weight of these rows" in study.choose().why


def test_a_fit_that_had_not_converged_is_not_taken():
    frame = frame_of(load_iris)
    frame = frame[frame["kind"] != "virginica"]  # setosa lies apart
    study = dd.study(frame, target="kind", folds=3)
    compared = study.compare(["lda", "logistic_ml"])
    assert not compared["logistic_ml"].converged
    assert study.choose().name == "lda"


def test_numbers_of_rows_are_among_those_kept_where_some_were_dropped():
    frame = frame_of(load_iris)
    frame.iloc[20, 0] = 99.0
    study = dd.study(frame, target="kind", folds=3)
    study.compare(["lda"])
    said = study.explain()
    assert "row 20 (numbered from 0)" in said
    frame.iloc[3, 1] = np.nan
    study = dd.study(frame, target="kind", folds=3, missing="drop")
    study.compare(["lda"])
    said = study.explain()
    assert "row 19 (numbered from 0 among the rows that are used)" in said


def test_where_features_outnumber_rows_models_are_fitted_to_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(60)]).assign(kind=list("ab") * 15)
    study = dd.study(frame, target="kind", folds=3)
    compared = study.compare(["lda_shrunk", "rda"])
    assert compared.left_out[0][0] == "RDA" and "30 rows of 60 features" in compared.left_out[0][1]
    found = compared["lda_shrunk"].predictions
    alone = dd.cross_validate(dd.LDA(shrinkage="auto"), X, frame["kind"], folds=found.fold)
    np.testing.assert_allclose(found.log_posterior, alone.log_posterior, atol=1e-8)


def test_doing_without_missing_features_is_for_gaussian_models_only():
    frame = frame_of(load_iris)
    frame.iloc[[3, 70], 1] = np.nan
    study = dd.study(frame, target="kind", missing="marginal", folds=3)
    compared = study.compare(["lda", "logistic"])
    assert [name for name, _ in compared.left_out] == ["Logistic, ridge 0.0001"]
    assert np.isfinite(study.model().predict_proba(frame)).all()
    with pytest.raises(StudyError, match="marginal"):
        study.model("logistic")
    with pytest.raises(StudyError, match="'logistic' could not be compared: missing='marginal' is"):
        study.choose("logistic")


def test_compiling_a_loop_is_no_part_of_the_time_of_a_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    rows = {"u": X[:, 0], "v": X[:, 1], "y": np.where(X[:, 0] > 0.2, "a", "b")}
    found = dd.study(pd.DataFrame(rows), target="y").compare(["perceptron"])
    assert {"reading", "summing", "compiling"} <= set(found.seconds)


def test_where_no_fit_had_converged_the_reason_says_so():
    frame = frame_of(load_iris)
    frame = frame[frame["kind"] != "virginica"]  # setosa lies apart
    study = dd.study(frame, target="kind", folds=3)
    study.compare(["logistic_ml"])
    why = study.choose().why
    reason = "did not converge because the classes of their training rows are separated."
    assert "converged model" not in why and f"Some of its fits {reason}" in why


def test_a_name_stands_for_the_model_that_was_compared_last():
    study, own = dd.study(frame_of(load_iris), target="kind", folds=3), dd.LDA()
    study.compare({"mine": own})
    assert isinstance(study.model("mine").estimator_, dd.LDA)
    assert not hasattr(own, "rule_")  # a clone was fitted
    study.compare({"mine": dd.QDA()})
    assert isinstance(study.model("mine").estimator_, dd.QDA)


def test_costs_stay_when_another_model_is_taken_unless_it_cannot_weigh_them():
    frame = frame_of(load_breast_cancer)
    study = dd.study(frame, target="kind", folds=3)
    study.compare(["lda", "qda", "svm"], most=100)
    study.decide(reject=0.1, name="lda")
    with pytest.raises(StudyError, match=r"'svm' gives no probabilities.*`decide\(\)`"):
        study.choose("svm")
    assert study.choice.name == "lda"
    study.choose("qda")
    assert study.facts()["decision"]["reject"] == 0.1
    study.decide()
    assert study.choose("svm").name == "svm"


def test_a_class_of_one_row_costs_no_model_its_log_loss_and_is_told_of_once():
    iris = load_iris()
    X, y = iris.data, iris.target_names[iris.target].astype(object)
    y[7] = "alone"
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=y)
    found = dd.study(frame, target="kind").compare(["lda", "nearest_mean"], repeats=1)
    held = found["lda"].predictions
    rows = np.flatnonzero(y != "alone")
    loss = -held.log_posterior[rows, held.codes[rows]].mean()
    assert found["lda"].facts["log_loss"] == pytest.approx(loss, rel=1e-12)
    p = np.exp(held.log_posterior[np.ix_(rows, [1, 2, 3])])  # 'alone' comes first
    areas = [roc_auc_score(held.codes[rows] == k + 1, p[:, k]) for k in range(3)]
    assert found["lda"].facts["auc"] == pytest.approx(np.mean(areas), rel=1e-12)
    assert str(found).count("alone") == 1


def test_findings_name_the_line_of_the_file_that_a_row_begins_in(tmp_path):
    rng = np.random.default_rng(5)
    lines = ["x,note,kind"]
    for i in range(60):
        far = 1e4 if i == 40 else 0.0
        cell = '"two\nlines"' if i == 10 else "plain"
        lines.append(f"{rng.normal() + far if i != 20 else ''},{cell},{'ab'[i % 2]}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    study = dd.study(tmp_path / "t.csv", target="kind", missing="drop", exclude=["note"])
    study.compare(["lda"])
    texts = [one["text"] for one in study.facts()["matters"]["findings"]]
    # line 43: 40 + 2 + 1 broken
    said = "row 39 (numbered from 0 among the rows that are used; line 43 of the file)"
    assert any(said in text for text in texts)


def test_study_without_columns_has_the_same_rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
    frame["kind"] = np.where(frame["a"] + rng.normal(size=90) > 0, "yes", "no")
    frame.loc[::4, "c"] = np.nan
    complete = frame.dropna().drop(columns="c")
    own = dd.study(complete, target="kind").fitted(dd.LDA())
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for engine in ("memory", "files"):
        study = dd.study(tmp_path / "rows.csv", target="kind", missing="drop", engine=engine)
        part = study.without(["c"])
        assert len(part.rows) == len(complete)
        assert part.rows.schema.features == ("a", "b")
        given = frame[["a", "b"]]
        expected = own.predict_proba(given)
        np.testing.assert_allclose(part.fitted(dd.LDA()).predict_proba(given), expected, atol=1e-12)
        logistic = dd.Encoded(dd.Logistic()).fit(complete[["a", "b"]], complete["kind"])
        np.testing.assert_allclose(
            part.fitted(dd.Logistic()).predict_proba(given),
            logistic.predict_proba(given),
            atol=1e-6,
        )
        assert part.compare(["lda"])["lda"].facts["error"] < 0.5
        with pytest.raises(OptionError, match="columns that have features"):
            study.without(["d"])
        with pytest.raises(OptionError, match="not all of them"):
            study.without(["a", "b", "c"])
