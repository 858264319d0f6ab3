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
    folder = str(ROOT / "benchmarks")
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(folder):
            del sys.modules[name]


def test_readme_table_is_a_selection_of_the_page(page):
    readme = (ROOT / "README.md").read_text()
    table = readme.split(page.BEGIN)[1].split(page.END)[0].strip()
    rows = page.table_rows((ROOT / "docs" / "benchmarks.md").read_text())
    assert len(rows) > 40
    assert table == page.readme_table(rows)


def test_every_goal_has_a_line(page):
    """A peer without a time, and a case that failed, are lines with a missed goal."""
    from contest import Case, Goal

    case = Case("name", "task", "size", lambda share: None, (Goal("a", 1.0), Goal("b", 1.0)))
    measured = {"best": {"discriminant": 1.0, "a": 2.0}, "peaks": {}, "apart": None}
    lines = page.lines_of(case, measured)
    met = page.HEADS.index("met")
    assert [(line.cells[3], line.cells[met]) for line in lines] == [("a", "yes"), ("b", "no")]
    (failed,) = page.lines_of(case, {"error": "failed"})
    assert failed.cells[met] == "no"


def test_reasons_match_cases(page):
    """A reason that no goal can show is about a case that no longer exists."""
    from cases import CASES

    goals = [f"{case.task}, {case.size} ({goal.peer})" for case in CASES for goal in case.goals]
    for pattern, _ in page.REASONS:
        assert any(re.match(pattern, goal) for goal in goals), pattern


def test_readme_sentences_have_the_figures_of_the_table(page):
    """'148 times' and '3,700 times' in the text are ratios of the page, to two digits."""
    readme = (ROOT / "README.md").read_text()
    rows = page.table_rows((ROOT / "docs" / "benchmarks.md").read_text())
    ratios = [float(row[5].rstrip("×")) for row in rows if re.fullmatch(r"[\d.e+]+×", row[5])]
    numbers = re.findall(r"([\d,]+)\s+times as fast|is\s+([\d,]+)\s+times", readme)
    for number in (float("".join(pair).replace(",", "")) for pair in numbers):
        assert any(abs(ratio / number - 1) < 0.06 for ratio in ratios), number


def test_readme_quotes_the_contest():
    readme = " ".join((ROOT / "README.md").read_text().split())
    page_text = (ROOT / "docs" / "contest.md").read_text()
    quoted = re.search(r"On (\d+) public tables, .*? mean rank of ([\d.]+) .*?: (.*?)\)\.", readme)
    tables, ours, peers = quoted.groups()
    assert f"on {tables} public tables" in page_text
    assert f"| discriminant | {ours} |" in page_text
    quoted_peers = re.findall(r"“(.+?)” (\d+\.\d+)", peers)
    assert len(quoted_peers) == 3
    for name, rank in quoted_peers:
        assert f"| {name} | {rank} |" in page_text
    assert re.search(r"for (\d+ of \d+) tables: see", readme)[1] in page_text
