"""Ten planted defects are named by the facts that the first screen of the report shows."""

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.report.overview import in_short, tiles
from discriminant.report.verdict import warning_checks
from tests.unit.study.test_data_checks import NUMBER, TABLES, TRAPS

NAMED = {  # what the first screen says; {} is the column
    "noise": "Do not use it: no better than guessing",
    "leak": "Leak: code",
    "sentinel": "{}",
    "groups": "person",
    "duplicates": "duplicate rows",
    "doubled": "again",
    "shuffled": "Do not use it: no better than guessing",
    "identifier": "record",
    "drift": "Drift: {}",
}


def first_screen(facts):
    """Return the texts of the first screen: verdict, reasons, warnings, figures, sentences."""
    lines = [facts["verdict"]["text"], *facts["verdict"]["reasons"], *in_short(facts)]
    lines += [f"{check['title']} {check['text']}" for check in warning_checks(facts)]
    lines += [f"{tile['value']} {tile['name']}" for tile in tiles(facts)]
    return "\n".join(lines)


def facts_of(frame):
    study = dd.study(frame, target="y", missing="mean", folds=5)
    study.compare(["lda", "qda", "logistic_cv"])
    return study.facts(yardstick=False)


@pytest.mark.parametrize("table", ["wine", "cancer"])
@pytest.mark.parametrize("trap", NAMED)
def test_first_screen_names_a_planted_defect(trap, table):
    frame = TABLES[table]()
    if trap == "drift":
        frame = frame.sample(frac=1, random_state=6).reset_index(drop=True)
    planted = TRAPS[trap][0](frame, NUMBER[table], np.random.default_rng(0))
    facts = facts_of(planted)
    screen = first_screen(facts)
    assert NAMED[trap].format(NUMBER[table]) in screen, screen
    assert facts["verdict"]["level"] == ("no" if trap in ("noise", "shuffled") else "care")


def test_first_screen_names_a_class_of_one_row_in_a_hundred():
    rng = np.random.default_rng(0)
    rare = np.arange(3000) % 100 == 0
    rows = rng.standard_normal((3000, 3)) + 2.0 * rare[:, None]
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(y=np.where(rare, "fraud", "fine"))
    facts = facts_of(frame)
    assert "imbalance" in {check["kind"] for check in warning_checks(facts)}
    assert "fraud" in first_screen(facts)
    assert facts["verdict"]["level"] == "care"


def test_first_screen_of_a_clean_table_has_no_warning():
    facts = facts_of(TABLES["cancer"]())
    assert facts["verdict"]["level"] == "use", facts["verdict"]
    assert warning_checks(facts) == []
