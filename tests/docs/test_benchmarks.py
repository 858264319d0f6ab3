"""The README's table of benchmarks is a selection from docs/benchmarks.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(monkeypatch):
    """The module that writes both tables."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import page

    yield page
    sys.modules.pop("page")


def test_readme_table_is_a_selection_of_the_page(page):
    readme = (ROOT / "README.md").read_text()
    table = readme.split(page.BEGIN)[1].split(page.END)[0].strip()
    rows = page.table_rows((ROOT / "docs" / "benchmarks.md").read_text())
    assert len(rows) > 40
    assert table == page.readme_table(rows)


def test_readme_sentences_have_the_figures_of_the_table(page):
    """'148 times' and '3,700 times' in the text are ratios of the page, to two digits."""
    readme = (ROOT / "README.md").read_text()
    rows = page.table_rows((ROOT / "docs" / "benchmarks.md").read_text())
    ratios = [float(row[5].rstrip("×")) for row in rows if re.fullmatch(r"[\d.e+]+×", row[5])]
    numbers = re.findall(r"([\d,]+)\s+times as fast|is\s+([\d,]+)\s+times", readme)
    for number in (float("".join(pair).replace(",", "")) for pair in numbers):
        assert any(abs(ratio / number - 1) < 0.06 for ratio in ratios), number
