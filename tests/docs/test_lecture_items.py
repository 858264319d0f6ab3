"""The list of the items of the lectures: complete, with functions and sections that exist."""

import re

import pytest

import discriminant as dd
from tests.shared.paths import ROOT

LECTURES = ROOT / "docs" / "lectures"
ROW = re.compile(
    r"^\| (\d+) \| (.+?) \| ((?:`[\w.]+`(?:, )?)*) ?\| \[(.+?)\]\((\w+\.md)#(\S+?)\) \|$"
)
COUNTS = {1: 52, 2: 23, 3: 28, 4: 82, 5: 46}  # items of each lecture


def read_items():
    """Items as tuples (number, lecture, text, functions, title, page, anchor)."""
    items, lecture = [], None
    for line in (LECTURES / "items.md").read_text().splitlines():
        if heading := re.match(r"## Lecture (\d)", line):
            lecture = int(heading[1])
        if re.match(r"\| \d", line):
            row = ROW.match(line)
            assert row, f"not a row of the table: {line}"
            functions = re.findall(r"`([\w.]+)`", row[3])
            items.append((int(row[1]), lecture, row[2], functions, row[4], row[5], row[6]))
    return items


ITEMS = read_items()


def headings(page):
    """Title of each section of a page by its anchor, as MyST makes them."""
    text = re.sub(r"```.*?```", "", (LECTURES / page).read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"): title for title in titles}


def exists(name):
    """Whether a public name, or a documented attribute of it, exists."""
    first, _, attribute = name.partition(".")
    if first not in dd.__all__:
        return False
    thing = getattr(dd, first)
    if not attribute or hasattr(thing, attribute):
        return True
    documented = re.findall(r"^(\S.*?) : ", thing.__doc__ or "", flags=re.MULTILINE)
    return any(attribute in names.split(", ") for names in documented)


def test_every_item_of_the_lectures_is_listed_once():
    assert [item[0] for item in ITEMS] == list(range(1, 232))
    lectures = [item[1] for item in ITEMS]
    assert {k: lectures.count(k) for k in sorted(set(lectures))} == COUNTS


@pytest.mark.parametrize("name", sorted({name for item in ITEMS for name in item[3]}))
def test_every_function_of_an_item_exists(name):
    assert exists(name)


@pytest.mark.parametrize("name", ["Fisherman", "LDA.covariance", "Perceptron.criterion"])
def test_a_name_that_does_not_exist_is_noticed(name):
    assert not exists(name)


def test_every_section_of_an_item_exists():
    pages = {page: headings(page) for page in {item[5] for item in ITEMS}}
    wrong = [item[0] for item in ITEMS if pages[item[5]].get(item[6]) != item[4]]
    assert wrong == []


def test_every_section_of_the_lectures_has_code_and_a_figure_or_a_table():
    bare = []
    for number in range(1, 6):
        text = (LECTURES / f"lecture_{number}.md").read_text()
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            shown = re.search(r"^!\[|^\|[-| ]+\|$", section, flags=re.MULTILINE)
            if not shown or not re.search(r"^>>> ", section, flags=re.MULTILINE):
                bare.append((number, section.partition("\n")[0]))
    assert bare == []
