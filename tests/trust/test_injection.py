"""Row S3: names and labels from strangers, in the page and in the CSV that commands write.

SQL is in tests/unit/export/test_hostile_names.py, on three databases; the page with the same
strings in every place of its facts in tests/unit/report/test_browser.py.
"""

import csv

import numpy as np
import pytest

from discriminant.table.files.csv_dialect import is_number
from tests.trust.cases.running import call
from tests.unit.export.test_hostile_names import corpus
from tests.unit.report.test_browser import ACTS, BREAKERS
from tests.unit.report.test_html import Tags

STRINGS = [start + act for start in BREAKERS for act in ACTS if "\0" not in start]
GIVEN = [
    "=cmd|'/c calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "\nx",
    "＝1",
    "＋1",
    "－1",
    "＠x",
]
FORMULAS = [start + text for start in GIVEN for text in ["", *corpus()[:27]]]


def table(path, names, labels, cells):
    """A CSV whose columns, labels and categories have these names."""
    draw = np.random.default_rng(0)
    rows = 6 * max(len(cells), len(labels))
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([*names, "kind", "y"])
        for i in range(rows):
            numbers = draw.normal(size=len(names)).round(3).tolist()
            out.writerow([*numbers, cells[i % len(cells)], labels[(i // 2) % len(labels)]])
    return path


@pytest.mark.parametrize("part", range(0, len(STRINGS), 48))
def test_a_page_from_the_command_line_with_hostile_names_is_inert(browser, part, tmp_path):
    names = list(dict.fromkeys(STRINGS[part : part + 48]))
    table(tmp_path / "t.csv", names[:20], names[20:24], names[24:])
    table(
        tmp_path / "plain.csv",
        [f"x{j}" for j in range(20)],
        list("abcd"),
        [f"c{j}" for j in range(len(names) - 24)],
    )
    for name in ("t", "plain"):
        line = f"report {name}.csv --target y --models lda,nearest_mean --folds 3"
        assert call(line, tmp_path).code == 0
    errors, page = [], browser.new_context(offline=True).new_page()
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto((tmp_path / "t.html").as_uri())
    title, scripts = page.title(), page.evaluate("document.scripts.length")
    page.context.close()
    assert (errors, title == "owned", scripts) == ([], False, 3)  # facts, model, page
    tags = [set(Tags((tmp_path / f"{name}.html").read_text()).tags) for name in ("t", "plain")]
    assert {tag for tag in tags[0] - tags[1] if tag[0] in DANGEROUS or len(tag) > 1} == set()


DANGEROUS = (
    "iframe",
    "object",
    "img",
    "video",
    "base",
    "link",
    "form",
    "math",
    "template",
    "input",
)


def test_of_three_hundred_texts_none_is_a_formula_in_what_is_written(tmp_path):
    assert len(FORMULAS) >= 300
    texts = [text.replace("\0", "") for text in FORMULAS]
    live, kept = [], 0
    for start in range(0, len(texts), 77):
        part = list(dict.fromkeys(texts[start : start + 77]))
        table(tmp_path / "t.csv", part[:10], part[10:14], part[14:])
        fit = "fit t.csv --target y --model nearest_mean --out t.model"
        assert call(fit, tmp_path).code == 0
        assert call("predict t.model t.csv --out said.csv", tmp_path).code == 0
        with open(tmp_path / "said.csv", newline="", encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        live += [
            cell for cell in cells if cell[:1] in set("=+-@\t\r\n＝＋－＠") and not is_number(cell)
        ]
        kept += sum(cell[:1] == "-" for cell in cells)
    assert (live, kept > 1000) == ([], True)
