"""The first screen says what accuracy hides."""

import json
from importlib import resources

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.report.format import number, percent
from discriminant.report.html import render
from discriminant.report.markdown import to_markdown
from discriminant.report.overview import in_short, tiles
from discriminant.report.verdict import baseline_log_loss, headline, verdict_of
from discriminant.study.report import model_card
from tests.unit.report.samples import cancer


def churn(rows=400, rare=0.2, signal=1.2):
    rng = np.random.default_rng(1)
    y = rng.random(rows) < rare
    return pd.DataFrame({"x": rng.normal(size=rows) + signal * y, "y": np.where(y, "yes", "no")})


def test_recall_and_precision_of_the_class_with_the_lowest_recall_are_reported():
    study = dd.study(churn(), target="y")
    study.compare(["lda"])
    facts = study.facts()
    table = np.array(facts["decision"]["confusion"])  # decided by true; 'no' comes first
    n, recall, precision = table[:, 1].sum(), *(table[1, 1] / table.sum(axis=a)[1] for a in (0, 1))
    z = 1.959963984540054  # Wilson's interval
    middle, half = (
        recall + z**2 / (2 * n),
        z * np.sqrt(recall * (1 - recall) / n + z**2 / (4 * n**2)),
    )
    low, high = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    sentence = (
        f"The lowest recall is that of “yes”: {100 * recall:.1f}% (95% interval "
        f"{100 * low:.1f}% to {100 * high:.1f}%); its precision is {100 * precision:.1f}%."
    )
    assert sentence in in_short(facts)
    assert any(tile["name"].startswith("recall for “yes”") for tile in tiles(facts))


def test_shares_of_few_cases_are_given_as_counts():
    study = dd.study(churn(rows=60), target="y")
    study.compare(["lda"])
    facts = study.facts()
    table = np.array(facts["decision"]["confusion"]).astype(int)
    recall = f"{table[1, 1]} of {table[:, 1].sum()}"
    values = [tile["value"] for tile in tiles(facts) if tile["name"].startswith("recall for “yes”")]
    assert values == [recall]


def test_reason_for_selection_says_if_the_error_does_not_beat_the_baseline():
    study = dd.study(churn(signal=0.0), target="y")
    study.compare(["lda"])
    why = study.choose().why
    assert "the model is not significantly better than this baseline" in why
    assert "not above the 95% interval of the model's error" in why


def test_better_than_the_baseline_gives_the_interval_as_the_reason():
    study = dd.study(churn(signal=4.0), target="y")
    study.compare(["lda"])
    assert in_short(study.facts())[0].startswith("Use it. It misclassifies ")


@pytest.mark.parametrize("classes", [2, 3])
def test_error_of_never_predicting_the_rare_class_is_a_lower_bound_with_three_classes(classes):
    rows = churn(rare=0.05)
    if classes == 3:
        rows.loc[rows.index[::3], "y"] = "other"
    study = dd.study(rows, target="y")
    study.compare(["lda"])
    findings = study.facts()["matters"]["findings"]
    text = next(finding["text"] for finding in findings if finding["kind"] == "imbalance")
    assert ("can have an error of only" in text) == (classes == 3)
    assert ("has an error of only" in text) == (classes == 2)


def test_model_name_states_the_ridge_of_logistic_regression():
    study = dd.study(churn(rows=60), target="y")
    study.compare(["logistic"])
    assert study.facts()["comparison"]["models"][0]["label"] == "Logistic, ridge 0.0001"
    assert study.model("logistic").estimator_.ridge == 0.0001


def test_levels_that_look_alike_are_a_finding():
    rows = churn(rows=120)
    rows["city"] = ["Bonn", "bonn", "Bonn ", "Köln"] * 30
    study = dd.study(rows, target="y")
    study.compare(["lda"])
    texts = [finding["text"] for finding in study.facts()["matters"]["findings"]]
    assert any("Some levels of column 'city' differ only by case, spaces" in t for t in texts)


@pytest.mark.parametrize(("classes", "largest"), [(2, 1.0), (3, 2.0)])
def test_glossary_agrees_with_the_scale_of_auc_and_brier_score(classes, largest):
    assets = resources.files("discriminant.report") / "assets"
    terms = json.loads((assets / "terms.json").read_text("utf-8"))
    assert "0.5 is random, 1 perfect" in terms["AUC"] and "%" not in terms["AUC"]
    y = np.repeat(np.arange(classes), 20)
    X = np.random.default_rng(0).normal(size=(len(y), 1)) + 100.0 * y[:, None]
    wrong = dd.evaluate(dd.LDA().fit(X, y), X, np.roll(y, 20))
    assert wrong.brier == pytest.approx(largest)
    assert f"from 0 to {largest:g}" in terms["Brier score"]


@pytest.mark.parametrize("write", [render, to_markdown])
def test_auc_is_never_a_percentage(write):
    facts = {name: part for name, part in cancer().items() if name != "calibration"}
    area = next(model for model in facts["comparison"]["models"] if model["chosen"])["auc"]
    text = write(facts)
    assert f"{area:.3f}" in text and percent(area) not in text


def test_column_that_is_constant_in_a_fold_only_is_not_called_ignored():
    rows = churn(rows=120)
    rows["once"] = (np.arange(120) == 5).astype(float)
    study = dd.study(rows, target="y")
    study.compare(["lda"])
    findings = study.facts()["matters"]["findings"]
    details = next(finding["details"] for finding in findings if finding["kind"] == "constant")
    assert details == [
        "Column(s) 'once' are constant in the training rows of a fold and are ignored in that fold."
    ]


def test_verdict_compares_the_log_loss_with_guessing_row_by_row():
    generator = np.random.default_rng(1)
    lead = generator.normal(size=160)
    frame = pd.DataFrame(
        {"x": lead, "y": np.where(lead + 2 * generator.normal(size=160) > 1.3, "b", "a")}
    )
    study = dd.study(frame, target="y")
    study.compare(["lda"])
    facts = study.facts()
    facts["comparison"]["models"][0] |= {"error_high": 1.0}
    difference = baseline_log_loss(facts) - headline(facts).log_loss
    assert difference > 0
    verdicts = []
    for reach in (0.9 * difference, 1.1 * difference):
        facts["comparison"]["gain"] = {"value": 9.0, "low": 9.0 - reach, "high": 9.0 + reach}
        verdicts.append(verdict_of(facts)["level"] == "no")
    assert verdicts == [False, True]


@pytest.fixture(scope="module")
def costly():
    study = dd.study(churn(rare=0.3), target="y", seed=3)
    study.compare(["lda", "qda"], repeats=2)
    study.choose("lda")
    study.decide(cost={"no": {"yes": 5.0}})
    return study.facts(yardstick=False)


def test_headline_with_costs_is_the_mean_cost_of_the_decisions_against_guessing(costly):
    decision = costly["decision"]
    table = np.array(decision["confusion"])
    cost = (5.0 * table[0, 1] + table[1, 0]) / table.sum()
    guess = min(5.0 * table[:, 1].sum(), table[:, 0].sum()) / table.sum()
    error = (table[0, 1] + table[1, 0]) / table.sum()
    equal = costly["comparison"]["headline"]["error"]
    assert percent(error) != percent(equal)
    both = f"{percent(error)} with these costs, {percent(equal)} with equal costs"
    tile = tiles(costly)[0]
    assert (tile["value"], tile["guess"]) == (number(cost), f"guessing: {number(guess)}")
    assert tile["note"] == f"error: {both}"
    text = " ".join(in_short(costly))
    means = f"decisions cost {number(cost)} per row on average, against {number(guess)}"
    assert f"With the given costs, {means} for guessing" in text
    assert both in text and "; with equal costs it misclassified" in text
    assert any(both in value for _, value in model_card(costly))
    for write in (render, to_markdown):
        assert both in write(costly)


def test_decisions_that_cost_as_much_as_guessing_are_a_reason_for_care():
    study = dd.study(churn(signal=1.0, rare=0.3), target="y")
    study.compare(["lda"])
    study.decide(cost={"no": {"yes": 1e6}})  # every row is “yes”
    verdict = verdict_of(study.facts(yardstick=False))
    assert verdict["level"] == "care"
    assert "no better than guessing: they cost 0." in verdict["reasons"][0]


def test_named_model_is_not_called_selected_among_others(costly):
    text = " ".join(in_short(costly))
    assert "LDA was used as requested (3 models were compared)" in text
    assert "selected among" not in text


def test_counts_of_repeated_folds_are_those_of_the_first_division(costly):
    sentence = "the first division into folds; the error with equal costs at the top is the mean"
    assert f"Counts are those of {sentence} over 2 divisions." in to_markdown(costly)
    assert render(costly).count(sentence) == 2
    assert "repeated" not in cancer()["decision"]
