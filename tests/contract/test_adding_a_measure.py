"""A new measure is one formula and one entry in `assessment/measures.py`; all outputs have it.

The package is copied, two measures are added to the copy, and a new process checks every output.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discriminant

FORMULAS = '''def informedness(cells: Floats) -> Floats:
    """Return sum_k prevalence_k (recall_k + specificity_k - 1), (...)."""
    gains = ratio(recall(cells)) + ratio(specificity(cells)) - 1.0
    return np.asarray((ratio(prevalence(cells)) * gains).sum(axis=-1))


def negative_predictive_value(cells: Floats) -> Fraction:
    """Return correct rows and all rows among those not predicted as each class, (..., K)."""
    return specificity(cells)[0], total(cells)[..., np.newaxis] - predicted_total(cells)



'''
ENTRIES = """    Measure(
        "informedness",
        informedness,
        "informedness",
        "counts",
        "Prevalence-weighted recall + specificity - 1.",
        bounds=(-1.0, 1.0),
        criterion="informedness",
        best="highest",
    ),
    Measure(
        "negative_predictive_value",
        negative_predictive_value,
        "NPV",
        "rate",
        "Share of correct rows among those not predicted as each class, (K,).",
        per_class=True,
    ),
"""

CHECKS = """
import sys

import numpy as np
import pytest

from discriminant import assess, interval_over, study
from discriminant.errors import OptionError

found = assess(["a"] * 4 + ["b"] * 6, ["a", "a", "a", "b"] + ["b"] * 5 + ["a"])
j, npv = 3 / 4 + 5 / 6 - 1, [5 / 6, 3 / 4]

assert abs(found.informedness - j) < 1e-15
np.testing.assert_allclose(found.negative_predictive_value, npv, rtol=1e-15)
assert "specificity - 1" in type(found).informedness.__doc__

ends = found.interval("informedness")
assert ends.method == "bootstrap" and ends.low < j < ends.high
assert found.interval("negative_predictive_value").method == "wilson"
across = interval_over([found, found], "informedness")
assert abs(across.value - j) < 1e-15
with pytest.raises(OptionError, match="informedness"):
    found.interval("no such measure")

lines = [line.split() for line in found.text.splitlines()]
assert ["informedness", f"{j:.4f}"] in lines
assert ["precision", "recall", "F1", "specificity", "NPV", "support"] in lines

facts = found.to_dict()
assert abs(facts["measures"]["informedness"] - j) < 1e-15
assert facts["measured_on"]["informedness"] == "all"
assert [record["negative_predictive_value"] for record in facts["classes"]] == npv
assert abs(found.frame("measures").loc["informedness", "value"] - j) < 1e-15
assert found.frame("classes")["negative_predictive_value"].tolist() == npv

comparison = study(sys.argv[1], target="kind", folds=3).compare(["lda", "qda"])
choice = comparison.choose(by="informedness")
assert "informedness on held-out rows" in choice.why
frame = comparison.frame()
assert frame["informedness"].between(-1, 1).all() and frame["informedness_se"].ge(0).all()
print("all checked")
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return the folder of a copy of the package that has two more measures."""
    folder = tmp_path_factory.mktemp("package")
    source = Path(discriminant.__file__).parent
    shutil.copytree(
        source, folder / "discriminant", ignore=shutil.ignore_patterns("__pycache__", "*.nbi")
    )
    registry = folder / "discriminant" / "assessment" / "measures.py"
    text = registry.read_text()
    formulas, entries = "# --- the registry", ")\nMEASURES = {"
    assert text.count(formulas) == text.count(entries) == 1
    text = text.replace(formulas, FORMULAS + formulas).replace(entries, ENTRIES + entries)
    registry.write_text(text)
    return folder


def test_a_registered_measure_is_in_every_output(copy, tmp_path):
    table = tmp_path / "rows.csv"
    lines = [f"{i % 7},{(i * i) % 11},{'ab'[(i % 7 + i % 3) > 4]}" for i in range(90)]
    table.write_text("\n".join(["x,y,kind", *lines]) + "\n")
    path = os.pathsep.join([str(copy), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-c", CHECKS, str(table)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.stdout.strip().endswith("all checked"), run.stderr[-3000:]
