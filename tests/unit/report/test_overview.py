"""The first screen says what accuracy hides."""

import numpy as np
import pandas as pd

import discriminant as dd
from discriminant.report.overview import in_short, tiles


def churn(rows=400, rare=0.2, signal=1.2):
    rng = np.random.default_rng(1)
    y = rng.random(rows) < rare
    return pd.DataFrame({"x": rng.normal(size=rows) + signal * y, "y": np.where(y, "yes", "no")})


def test_of_a_rare_class_it_says_how_many_are_found_and_how_many_called_so_are():
    study = dd.study(churn(), target="y")
    study.compare(["lda"])
    facts = study.facts()
    table = np.array(facts["decision"]["confusion"])  # decided by true; 'no' comes first
    found, are = table[1, 1] / table[:, 1].sum(), table[1, 1] / table[1].sum()
    said = f"{100 * found:.1f}% of “yes”, the rarest class, are found; of those called “yes”, "
    assert f"{said}{100 * are:.1f}% are." in in_short(facts)
    assert any(tile["name"] == "of “yes” found" for tile in tiles(facts))


def test_of_classes_about_as_frequent_it_says_nothing_of_the_kind():
    study = dd.study(churn(rare=0.5), target="y")
    study.compare(["lda"])
    assert not any("rarest" in line for line in in_short(study.facts()))


def test_a_model_no_better_than_the_most_frequent_class_is_told_so_where_it_is_taken():
    study = dd.study(churn(signal=0.0), target="y")
    study.compare(["lda"])
    assert "it is not clearly better than that" in study.choose().why
