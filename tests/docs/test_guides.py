"""Guides: every block of code runs, and says what the guide says it does."""

import doctest
import re

import pytest
from sklearn.datasets import load_wine

from tests.shared.paths import ROOT

GUIDES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "lectures").glob("*.md")),
]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def code_of(guide):
    return re.findall(r"```python\n(.*?)```", guide.read_text(), flags=re.DOTALL)


def prose_of(guide):
    """What stands outside of blocks and spans of code."""
    return re.sub(r"```.*?```|`[^`]*`", "", guide.read_text(), flags=re.DOTALL)


def names_of(guides, *, sessions):
    """Guides whose code is a session with answers, or else plain lines."""
    found = [guide for guide in guides if code_of(guide)]
    return [pytest.param(g, id=g.name) for g in found if (">>>" in g.read_text()) == sessions]


@pytest.mark.filterwarnings("error::discriminant.errors.DiscriminantWarning")
@pytest.mark.parametrize("guide", names_of(GUIDES, sessions=True))
def test_the_code_of_a_guide_says_what_the_guide_says(guide):
    blocks = "\n".join(code_of(guide))
    session = doctest.DocTestParser().get_doctest(blocks, {}, guide.name, str(guide), 0)
    told = []
    doctest.DocTestRunner(optionflags=FLAGS).run(session, out=told.append)
    assert not told, "".join(told)


@pytest.mark.filterwarnings("error::discriminant.errors.DiscriminantWarning")
@pytest.mark.parametrize("guide", names_of(GUIDES, sessions=False))
def test_the_code_of_a_guide_runs_as_it_stands(guide):
    X, y = load_wine(return_X_y=True)  # where a guide begins from rows at hand
    names = {"X": X, "y": y}
    for block in code_of(guide):  # a reader goes on from one to the next
        exec(compile(block, str(guide), "exec"), names)


def test_every_page_that_a_guide_links_to_is_there():
    links = [
        (guide.parent / link)
        for guide in GUIDES
        for link in re.findall(r"\]\((?!http)([^)#]+)", prose_of(guide))
    ]
    assert [str(link) for link in links if not link.exists()] == []


def cells_of(page, columns):
    """The cells of every row of a table that has at least so many."""
    rows = [line.strip("| ").split("|") for line in page.read_text().split("\n") if line[:1] == "|"]
    return [tuple(cell.strip() for cell in row)[:columns] for row in rows if len(row) >= columns]


def test_the_figures_of_the_readme_are_those_of_the_benchmarks():
    measured = set(cells_of(ROOT / "docs" / "benchmarks.md", 6))
    shown = [row for row in cells_of(ROOT / "README.md", 6) if row[-1].endswith("×")]
    assert shown
    assert [row for row in shown if row not in measured] == []
