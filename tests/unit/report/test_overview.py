"""The first screen says what accuracy hides."""

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.report.format import percent
from discriminant.report.html import render
from discriminant.report.markdown import to_markdown
from discriminant.report.overview import in_short, tiles
from tests.unit.report.samples import cancer


def churn(rows=400, rare=0.2, signal=1.2):
    rng = np.random.default_rng(1)
    y = rng.random(rows) < rare
    return pd.DataFrame({"x": rng.normal(size=rows) + signal * y, "y": np.where(y, "yes", "no")})


def test_recall_and_precision_of_the_rarest_class_are_reported():
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
        f"Recall for “yes”, the rarest class, is {100 * recall:.1f}% (95% interval "
        f"{100 * low:.1f}% to {100 * high:.1f}%); precision is {100 * precision:.1f}%."
    )
    assert sentence in in_short(facts)
    assert any(tile["name"] == "recall for “yes”" for tile in tiles(facts))


def test_shares_of_few_cases_are_given_as_counts():
    study = dd.study(churn(rows=60), target="y")
    study.compare(["lda"])
    facts = study.facts()
    table = np.array(facts["decision"]["confusion"]).astype(int)
    recall = f"{table[1, 1]} of {table[:, 1].sum()}"
    assert [tile["value"] for tile in tiles(facts) if tile["name"] == "recall for “yes”"] == [
        recall
    ]


def test_no_class_is_called_rare_if_all_are_about_as_frequent():
    study = dd.study(churn(rare=0.5), target="y")
    study.compare(["lda"])
    assert not any("rarest" in line for line in in_short(study.facts()))


def test_reason_for_selection_says_if_the_error_does_not_beat_the_baseline():
    study = dd.study(churn(signal=0.0), target="y")
    study.compare(["lda"])
    assert "the model is not significantly better than this baseline" in study.choose().why


@pytest.mark.parametrize("write", [render, to_markdown])
def test_auc_is_never_a_percentage(write):
    facts = cancer()
    area = next(model for model in facts["comparison"]["models"] if model["chosen"])["auc"]
    text = write(facts)
    assert f"{area:.3f}" in text and percent(area) not in text
    assert next(tile["value"] for tile in tiles(facts) if tile["name"] == "AUC") == f"{area:.3f}"
