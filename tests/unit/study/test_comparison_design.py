"""Headline, repeated folds, groups, time, yardstick, learning curve and leaks of a comparison."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import discriminant as dd
from discriminant.assessment.resampling.folds import stratified_folds, time_folds
from discriminant.errors import OptionError, StudyError
from discriminant.report.format import loss, percent
from discriminant.report.overview import result
from discriminant.report.verdict import shown_comparison, verdict_of
from discriminant.study.learning_curve import _text as learning_text
from discriminant.study.models import POOL

QUICK = ["lda", "qda", "rda", "logistic_cv"]


def wine():
    bunch = load_wine(as_frame=True)
    return bunch.data.assign(kind=bunch.target_names[bunch.target])


def grouped():
    """Sixty groups of ten nearly equal rows, whose classes are pure chance."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    centre, kind = rng.normal(size=(60, 3)), np.array(["a", "b"])[rng.integers(0, 2, 60)]
    rows = centre[group] + 0.05 * rng.normal(size=(600, 3))
    frame = pd.DataFrame(rows, columns=list("pqr")).assign(kind=kind[group])
    return frame.assign(person=[f"p{i}" for i in group]).sample(frac=1, random_state=1)


def drifting():
    """The boundary between the classes moves with time."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2))
    kind = np.where(rows[:, 0] + np.linspace(-2, 2, 400) > 0, "u", "v")
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(kind=kind)
    days = pd.date_range("2020-01-01", periods=400).strftime("%Y-%m-%d")
    return frame.assign(day=days).sample(frac=1, random_state=2).reset_index(drop=True)


# --- headline and selection -----------------------------------------------------------------------


def test_headline_of_noise_is_not_better_than_guessing():
    rng = np.random.default_rng(5)
    noise = pd.DataFrame(rng.normal(size=(80, 6)), columns=list("abcdef"))
    study = dd.study(noise.assign(kind=np.arange(80) % 2), target="kind")
    study.compare()
    headline = study.comparison.section(study.choose(select="single"))["headline"]
    assert headline["error_raw"] < headline["error"]
    assert headline["log_loss_raw"] < headline["log_loss"]
    assert headline["error_high"] > 0.5 and headline["log_loss_high"] > np.log(2)


def test_headline_of_a_named_model_is_its_raw_figure_with_an_interval():
    study = dd.study(wine(), target="kind")
    study.compare(QUICK)
    headline = study.comparison.section(study.choose("qda"))["headline"]
    qda = study.comparison["qda"].facts
    assert headline["error"] == pytest.approx(qda["error"])
    assert headline["log_loss"] == pytest.approx(qda["log_loss"])
    assert headline["log_loss_low"] < headline["log_loss"] < headline["log_loss_high"]


def test_single_model_replaces_the_pool_only_if_it_has_half_of_the_weight():
    study = dd.study(wine(), target="kind")
    compared = study.compare(QUICK)
    choice = study.choose()
    single = compared.best_single()
    heavy = {member.name for member in compared.members if member.weight >= 0.5}
    corrected = single.value("log_loss") + compared.optimism("log_loss")
    pooled = compared[POOL].value("log_loss")
    close = corrected <= 1.01 * pooled and single.name in heavy
    assert choice.name == (single.name if close else POOL)
    assert "corrected resampled t test" in choice.why


def test_ordered_logistic_is_compared_if_the_classes_have_an_order():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    place = np.digitize(rows @ [1, 2, 0] + rng.logistic(size=400), [-1, 1])
    frame = pd.DataFrame(rows, columns=list("abc"))
    levels = ["low", "medium", "high"]
    texts = frame.assign(y=np.array(levels)[place])
    category = frame.assign(y=pd.Categorical(texts["y"], levels, ordered=True))
    losses = []
    for study in (
        dd.study(frame.assign(y=place), target="y"),
        dd.study(category, target="y"),
        dd.study(texts, target="y", ordered={"y": levels}),
    ):
        compared = study.compare()
        losses.append(compared["ordered_logistic"].value("log_loss"))
    np.testing.assert_allclose(losses, losses[0], rtol=1e-12)
    assert compared.best_single().name == "ordered_logistic"
    assert study.model("ordered_logistic").estimator_.order == levels
    numbers = dd.study(frame.assign(y=np.array(["-1", "5", "10"])[place]), target="y")
    assert numbers.class_order == ("-1", "5", "10")
    unordered = dd.study(texts, target="y")
    assert unordered.class_order is None
    assert "ordered_logistic" not in [each.name for each in unordered.compare().results]
    with pytest.raises(dd.errors.OptionError, match="every label once, lowest first"):
        dd.study(texts, target="y", ordered={"y": ["low", "high"]})


def test_prediction_of_a_selected_pool_does_not_warn():
    study = dd.study(wine(), target="kind")
    study.compare()
    study.choose(select="pool")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert study.model().predict_proba(wine()).shape == (178, 3)


def test_repeated_folds_are_means_of_single_divisions():
    frame = wine()
    repeated = dd.study(frame, target="kind", seed=3).compare(["lda", "qda"], repeats=2)
    codes = np.unique(frame["kind"], return_inverse=True)[1]
    losses = []
    for seed in (3, 3 + 7919):
        held = dd.cross_validate(
            dd.LDA(),
            frame.drop(columns="kind"),
            frame["kind"],
            folds=stratified_folds(codes, 10, seed),
        )
        losses.append(held.log_loss)
    assert repeated["lda"].facts["log_loss"] == pytest.approx(np.mean(losses))
    assert "repeated 2 times" in repeated.text
    assert len(repeated["lda"].repetitions) == 1


def test_default_comparison_has_no_two_equal_models():
    iris = load_iris(as_frame=True)
    compared = dd.study(iris.frame, target="target", folds=5).compare()
    logs = [np.exp(one.predictions.log_posterior) for one in compared.results if one.facts["brier"]]
    for i, first in enumerate(logs):
        assert not any(np.allclose(first, second, atol=1e-9) for second in logs[:i])
    names = {result.name for result in compared.results}
    assert {"lda_quadratic", "lda_random", "logistic_net_cv"} <= names
    assert not {"perceptron", "least_squares", "laplace_nb", "fisher"} & names


# --- groups and time ------------------------------------------------------------------------------


def test_rows_of_a_group_are_held_out_together():
    study = dd.study(grouped(), target="kind", groups="person")
    held = study.compare(["qda"])["qda"].predictions
    folds = pd.Series(held.fold).groupby(grouped()["person"].to_numpy()).nunique()
    assert (folds == 1).all()
    assert "person" not in study.rows.schema.features
    alone = dd.study(grouped().drop(columns="person"), target="kind").compare(["qda"])
    assert study.comparison["qda"].facts["log_loss"] > 1.2 * alone["qda"].facts["log_loss"]
    assert "'person' held out together" in study.comparison.text


def test_a_model_in_order_of_time_is_fitted_to_earlier_rows_only():
    frame = drifting()
    study = dd.study(frame, target="kind", time="day", folds=4)
    held = study.compare(["lda"])["lda"].predictions
    fold = time_folds(pd.to_datetime(frame["day"]).to_numpy(), 4)
    later = np.flatnonzero(fold >= 0)
    np.testing.assert_array_equal(held.fold, fold[later])
    X, y = frame[["a", "b"]].to_numpy(), frame["kind"].to_numpy()
    for f in range(4):
        model = dd.LDA().fit(X[fold < f], y[fold < f])
        expected = model.predict_log_proba(X[fold == f])
        np.testing.assert_allclose(held.log_posterior[held.fold == f], expected, atol=1e-9)
    random = dd.study(frame.drop(columns="day"), target="kind", folds=5).compare(["lda"])
    assert study.comparison["lda"].facts["error"] > 1.2 * random["lda"].facts["error"]


def test_a_model_selected_in_order_of_time_is_fitted_to_all_rows():
    frame = drifting()
    study = dd.study(frame, target="kind", time="day")
    study.compare(["lda", "logistic_l1_cv"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = study.model("logistic_l1_cv")
    rows, labels = frame[["a", "b"]].to_numpy(), frame["kind"].to_numpy()
    alone = dd.Logistic(ridge="cv", l1_ratio=1.0).fit(rows, labels)
    np.testing.assert_allclose(model.estimator_.coef_, alone.coef_, rtol=1e-6)
    assert not [each for each in study.warnings if "sample" in str(each)]


def test_all_default_models_and_the_report_work_in_order_of_time(tmp_path):
    study = dd.study(drifting(), target="kind", time="day", folds=3)
    study.compare()
    assert study.comparison.left_out == ()
    facts = study.report(tmp_path / "time.html", yardstick=False)
    assert "earlier by 'day'" in facts["comparison"]["folds"]
    assert study.model().predict(drifting()[["a", "b", "day"]]).shape == (400,)


def test_design_options_that_conflict_or_name_no_column_are_errors():
    frame = drifting()
    for options in ({"time": "kind"}, {"groups": "kind"}, {"time": "day", "groups": "a"}):
        with pytest.raises(OptionError):
            dd.study(frame, target="kind", **options)
    with pytest.raises(OptionError, match="numbers or of dates"):
        dd.study(frame.assign(day="soon"), target="kind", time="day")
    with pytest.raises(OptionError, match="different times"):
        dd.study(frame, target="kind", time="day", folds=400)


def test_time_needs_rows_in_memory(tmp_path):
    path = tmp_path / "rows.csv"
    drifting().to_csv(path, index=False)
    with pytest.raises(StudyError, match="read in partitions"):
        dd.study(path, target="kind", time="day", engine="files")


def test_groups_of_a_partitioned_table_are_held_out_together(tmp_path):
    path = tmp_path / "rows.csv"
    grouped().to_csv(path, index=False)
    study = dd.study(path, target="kind", groups="person", engine="files")
    study.compare(["lda"])
    run = study._get_run()
    folds = pd.Series(run.folded.sample_fold)
    rows = pd.DataFrame(np.asarray(run.table.features[:])).round(9)
    source = grouped().reset_index(drop=True)
    names = source["person"].tolist()
    keys = map(tuple, source[list("pqr")].round(9).to_numpy())
    people = dict(zip(keys, names, strict=True))
    person = [people[tuple(row)] for row in rows.to_numpy()]
    assert (folds.groupby(person).nunique() == 1).all()


# --- yardstick, learning curve, leaks ------------------------------------------------------------


def test_yardstick_is_the_cross_validation_of_scikit_learn_and_is_never_selected():
    from sklearn.ensemble import HistGradientBoostingClassifier

    cancer = load_breast_cancer(as_frame=True)
    study = dd.study(cancer.frame, target="target")
    study.compare(["lda", "logistic_cv"])
    trees = study.facts()["comparison"]["yardstick"]
    held = study.comparison["lda"].predictions
    X, y, fold = cancer.data.to_numpy(), cancer.target.to_numpy(), held.fold // 2
    losses = np.empty(len(y))
    for f in range(5):
        model = HistGradientBoostingClassifier(
            max_iter=100, early_stopping=True, n_iter_no_change=5, random_state=0
        ).fit(X[fold != f], y[fold != f])
        p = model.predict_proba(X[fold == f])
        losses[fold == f] = -np.log(p[np.arange(len(p)), y[fold == f]])
    assert trees["log_loss"] == pytest.approx(losses.mean())
    assert trees["folds"] == 5 and trees["rows"] == 569 and not trees["better"]
    assert "yardstick" not in study.facts(yardstick=False)["comparison"]
    assert trees["label"] not in [one["label"] for one in study.facts()["comparison"]["models"]]


def test_yardstick_is_better_on_a_chessboard():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 4, (2000, 2))
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(kind=np.floor(rows).sum(axis=1) % 2)
    study = dd.study(frame, target="kind")
    study.compare(["lda", "qda"])
    facts = study.facts()
    trees = facts["comparison"]["yardstick"]
    assert trees["better"] and "consider trees" in trees["text"]
    (pair,) = facts["pairs"]["pairs"]
    assert "No straight boundary separates them well" in pair["separates"]
    assert "Another measurement is needed" not in pair["separates"]


def test_trees_that_may_be_better_by_chance_are_called_so():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(150, 2))
    kind = (rows[:, 0] ** 2 + rng.normal(size=150) > 0.6).astype(int)
    study = dd.study(pd.DataFrame(rows, columns=["a", "b"]).assign(kind=kind), target="kind")
    study.compare(["lda"])
    comparison = study.facts()["comparison"]
    trees = comparison["yardstick"]
    assert trees["log_loss"] < comparison["models"][0]["log_loss"] and not trees["better"]
    assert "may be chance (p = 0.37)" in trees["text"]


def test_a_confused_pair_that_the_model_separates_is_not_called_inseparable():
    rng = np.random.default_rng(0)
    radius = np.repeat([1.0, 4.0], 300) + rng.normal(scale=0.5, size=600)
    angle = rng.uniform(0, 2 * np.pi, 600)
    rows = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(kind=np.repeat(["in", "out"], 300))
    study = dd.study(frame, target="kind")
    study.choose("qda")
    (pair,) = study.facts(yardstick=False)["pairs"]["pairs"]
    assert pair["overlap"] > 0.4 and sum(pair["errors"]) < 30
    assert "their boundary is not straight" in pair["separates"]
    assert "Nothing measured" not in pair["separates"]


def test_a_basis_with_too_many_columns_is_reduced_before_it_is_left_out():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 30))
    frame = pd.DataFrame(rows, columns=[f"x{j}" for j in range(30)])
    frame["kind"] = np.digitize(rows[:, 0] ** 2 + 0.3 * rng.normal(size=400), [0.3, 1.0, 2.0])
    study = dd.study(frame, target="kind")
    compared = study.compare(["lda", "logistic_quadratic", "logistic_random"])
    notes = {result.name: result.facts["note"] for result in compared.results}
    assert notes["logistic_quadratic"].startswith("With squares only")
    assert notes["logistic_random"].startswith("With 53 random features")
    assert study.model("logistic_quadratic").estimator_.steps[0][1].basis_.width == 60
    assert study.model("logistic_random").estimator_.steps[0][1].basis_.width == 83
    worse, better = (compared[name].facts["log_loss"] for name in ("lda", "logistic_quadratic"))
    assert better < 0.8 * worse


def test_learning_curve_is_that_of_fits_to_some_folds():
    frame = wine()
    study = dd.study(frame, target="kind", seed=1)
    compared = study.compare(["lda"], repeats=1)
    curve = study.facts(yardstick=False)["comparison"]["learning_curve"]
    fold = compared["lda"].predictions.fold
    X, y = frame.drop(columns="kind").to_numpy(), frame["kind"].to_numpy()
    errors = []
    for f in range(10):
        rows = np.isin(fold, [(f + 1 + i) % 10 for i in range(4)])
        errors.append(np.mean(dd.LDA().fit(X[rows], y[rows]).predict(X[fold == f]) != y[fold == f]))
    assert curve["error"][curve["share"].index(0.4)] == pytest.approx(np.mean(errors))
    assert curve["share"][-1] == 0.9
    assert curve["error"][-1] == pytest.approx(compared["lda"].facts["error"], abs=0.01)


def test_learning_curve_recommends_rows_only_for_a_clear_gain_of_its_last_steps():
    rows, noise = [100, 200, 400, 800], np.array([-0.02, 0.02, -0.01, 0.01])
    errors = [0.3, 0.25, 0.22, 0.2]

    def text(*means):
        losses = np.array(means)[:, None] + noise * np.array([[1], [2], [3], [4]])
        return learning_text("LDA, shrunk", rows, losses, errors)

    falls, rises = text(0.9, 0.7, 0.6, 0.5), text(0.9, 0.7, 0.6, 0.65)
    assert falls.endswith("more rows would probably help.")
    for unclear in (rises, text(0.9, 0.7, 0.505, 0.5)):
        assert unclear.endswith("no clear gain from more rows.")
    for sentence in (falls, rises):
        assert sentence.startswith("For “LDA, shrunk”") and "flat" not in sentence
    assert "The log loss does not fall: no clear gain" in rises
    assert "by less than 1%: no clear gain" in text(0.9, 0.7, 0.504, 0.5)


def test_learning_curve_without_clear_gain_names_the_end_of_the_curve_and_its_noise():
    rows, quiet, loud = [100, 200, 400, 800, 900], 0.001, 0.4
    errors = [0.3, 0.25, 0.22, 0.2, 0.21]
    means = np.array([0.9, 0.7, 0.6, 0.5, 0.52])[:, None]
    signs = np.array([-1.0, 1.0, -1.0, 1.0])

    def text(noise):
        return learning_text("LDA", rows, means + noise * signs * np.arange(5)[:, None], errors)

    assert (
        "At the end of the curve, from 800 to 900 rows, the log loss rises by 0.020 and the error "
        "does not fall: no clear gain"
    ) in text(quiet)
    # differences of 400 and 900 rows: 0.08 -+ 0.8, with a standard error of 0.8 sqrt(4 / 3) / 2
    assert "by 0.080 is within chance (standard error 0.462): no clear gain" in text(loud)


def test_models_that_cannot_be_selected_are_counted_and_named_once():
    study = dd.study(wine(), target="kind", seed=1)
    study.compare(["lda", "qda", "least_squares"], repeats=1)
    why = study.choose().why
    total = len(study.comparison.results)
    assert f"{total} models were compared, and {total - 1} of them could be selected" in why
    assert why.count("Least squares has no probabilities") == 1
    first_screen = " ".join(result(study.facts(yardstick=False)))
    assert f"selected among {total - 1} models" in first_screen
    assert not re.search(r"among \d+ models", why.replace(f"the {total - 1} models", ""))


def test_error_of_the_selected_model_has_one_interval_if_the_correction_is_not_visible():
    study = dd.study(wine(), target="kind", seed=1)
    study.compare(["lda", "qda"], repeats=1)
    facts = study.facts(yardstick=False)
    one = facts["comparison"]["headline"]
    one["error"], one["error_low"], one["error_high"] = one["error_raw"] + 1e-9, 0.001, 0.123
    (same,) = [model for model in shown_comparison(facts)["models"] if model["chosen"]]
    assert (same["error_low"], same["error_high"]) == (0.001, 0.123)
    one["error"] = one["error_raw"] + 0.05
    assert shown_comparison(facts) == facts["comparison"]


def test_a_leak_is_named_and_the_comparison_repeated_without_it():
    frame = wine().assign(code=lambda rows: pd.factorize(rows["kind"])[0] * 2.0)
    study = dd.study(frame, target="kind")
    study.compare(["lda", "qda"], repeats=1)
    (without,) = study.facts(yardstick=False)["comparison"]["without"]
    alone = dd.study(wine(), target="kind")
    alone.compare(["lda", "qda"], repeats=1)
    assert without["columns"] == ["code"]
    assert without["log_loss"] == pytest.approx(
        alone.comparison[alone.choose().name].facts["log_loss"]
    )
    assert "without" not in alone.facts(yardstick=False)["comparison"]
    facts = study.facts(yardstick=False)
    error = percent(without["error"])
    verdict = verdict_of(facts)["text"]
    assert f"may contain the outcome (leak; without it the error is {error})" in verdict
    assert without["text"] in result(facts)


def test_a_model_that_is_useless_without_a_leak_is_not_recommended():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame["y"] = np.array(["no", "yes"])[np.arange(200) % 2]
    frame["paid"] = (frame["y"] == "yes") * 3.0 + 0.01 * rng.normal(size=200)
    study = dd.study(frame, target="y")
    study.compare(["lda", "nearest_mean"])
    facts = study.facts(yardstick=False)
    assert facts["comparison"]["headline"]["error"] < 0.01
    verdict = verdict_of(facts)
    assert verdict["level"] == "no"
    assert "no better than guessing without paid, which may contain the outcome" in verdict["text"]


def test_study_and_comparison_have_tables_in_notebooks():
    study = dd.study(wine(), target="kind")
    study.compare(["lda"])
    study.choose()
    html = study._repr_html_()
    assert '<th scope="row">LDA</th>' in html and html.count("<table>") == 1


def test_sentences_compare_the_log_losses_of_the_table():
    study = dd.study(wine(), target="kind", seed=1)
    compared = study.compare(["lda", "qda", "logistic", "nearest_mean"], repeats=2)
    study.choose(select="pool")
    facts = study.facts()["comparison"]
    pool, single = compared[POOL].value("log_loss"), compared.best_single().value("log_loss")
    text = facts["best_single"]["text"]
    assert f"its log loss, {loss(single)}, is lower than that of the pool, {loss(pool)}" in text
    assert facts["best_single"]["ratio"] == pytest.approx(single / pool)
    trees = facts["yardstick"]
    ratio = float(loss(trees["log_loss"])) / float(loss(pool))
    assert ratio > 2  # otherwise the text gives a percentage
    figures = f"{loss(trees['log_loss'])}, {ratio:.2g} times the {loss(pool)} of the selected model"
    assert figures in trees["text"]
