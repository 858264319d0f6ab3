"""Rows selected in one place of the page are shown everywhere; directions, zoom and sorting."""

import functools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.unit.report.samples import cancer, iris, report_of


@functools.cache
def digits():
    """Five classes, so that there are four directions."""
    found = load_digits()
    rows = found.target < 5
    columns = np.argsort(-found.data[rows].var(axis=0))[:6]
    return report_of(found.data[rows][:, columns], found.target[rows].astype(str))


def shown(page):
    """Numbers of the rows that are not faded in discriminant space."""
    faded = page.eval_on_selector_all(
        "svg.figure .points use", "all => all.map(one => one.classList.contains('faded'))"
    )
    return [i for i, hidden in enumerate(faded) if not hidden]


def selection(page):
    return page.inner_text("#brush span") if page.is_visible("#brush") else ""


def rows_of(facts, holds):
    space = facts["space"]
    return [
        i
        for i, (code, decided) in enumerate(zip(space["codes"], space["decided"], strict=True))
        if holds(code, decided)
    ]


def test_cell_of_the_confusion_table_selects_its_rows(opened):
    page, facts = opened(iris()), iris()
    cell = page.locator('.matrix button[data-true="2"][data-decided="2"]')
    cell.click()
    expected = rows_of(facts, lambda code, decided: (code, decided) == (2, 2))
    assert shown(page) == expected
    assert selection(page) == f"{len(expected)} of the rows shown: virginica decided as virginica"
    assert cell.get_attribute("aria-pressed") == "true"


def test_class_of_the_legend_selects_its_rows_and_again_none(opened):
    page = opened(iris())
    button = page.locator(".linked .pick").nth(1)
    button.click()
    assert shown(page) == rows_of(iris(), lambda code, _: code == 1)
    button.click()
    assert (len(shown(page)), selection(page)) == (len(iris()["space"]["codes"]), "")


@pytest.mark.parametrize("made", [iris, cancer], ids=["plane", "line"])
def test_bar_of_a_column_selects_its_rows(opened, made):
    page, card = opened(made()), made()["columns"][0]
    b = int(np.argmax(np.sum(card["counts"], axis=0)))
    page.locator('[data-card="0"] .cover').nth(b).click()
    assert shown(page) == [i for i, bin in enumerate(card["bins"]) if ord(bin) - 65 == b]
    heights = page.eval_on_selector_all(
        '[data-card="0"] .picked', "all => all.map(one => Number(one.getAttribute('height')) > 0)"
    )
    assert heights == [place == b for place in range(len(card["counts"][0]))]


@pytest.mark.parametrize("made", [iris, cancer], ids=["plane", "line"])
def test_bar_of_a_strip_selects_its_rows(opened, made):
    page, strip = opened(made()), made()["pairs"]["pairs"][0]["strips"][0]
    counts = np.sum(strip["counts"], axis=0)
    b = int(np.argmax(counts))
    page.locator('[data-strip="0-0"] .cover').nth(b).click()
    assert shown(page) == [i for i, bin in enumerate(strip["bins"]) if ord(bin) - 65 == b]
    assert selection(page).split(": ")[1].startswith(strip["feature"])


def test_selected_rows_are_drawn_in_the_strips_by_class(opened):
    page, facts = opened(iris()), iris()
    pair = facts["pairs"]["pairs"][0]
    first = pair["codes"][0]
    page.locator(".linked .pick").nth(first).click()
    heights = page.eval_on_selector_all(
        '[data-strip="0-0"] .picked', "all => all.map(one => Number(one.getAttribute('height')))"
    )
    drawn = np.array(heights).reshape(-1, 2)
    assert drawn[:, 0].sum() > 0 and drawn[:, 1].sum() == 0


def test_rows_to_look_at_are_marked(opened):
    page, facts = opened(iris()), iris()
    wrong = rows_of(facts, lambda code, decided: (code, decided) == (1, 2))
    page.locator('.matrix button[data-true="1"][data-decided="2"]').click()
    lit = page.eval_on_selector_all("tr.lit", "all => all.map(one => Number(one.dataset.row))")
    assert set(lit) and set(lit) <= {facts["space"]["numbers"][i] for i in wrong}


def test_bar_can_be_selected_from_the_keyboard_and_escape_clears(opened):
    page = opened(iris())
    page.focus('[data-card="0"] summary')
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    card = iris()["columns"][0]
    assert shown(page) == [i for i, bin in enumerate(card["bins"]) if bin == "A"]
    page.keyboard.press("Escape")
    assert (len(shown(page)), selection(page)) == (len(iris()["space"]["codes"]), "")


def test_cell_says_its_share_and_its_interval_with_the_focus(opened):
    page = opened(iris())
    page.locator('.matrix button[data-true="0"][data-decided="0"]').focus()
    assert page.inner_text("#tip").split("\n") == [
        "setosa → setosa",
        "50 of 50 rows: 100%",
        "95% interval 92.9% to 100%",
    ]


def test_other_directions_are_drawn(opened):
    page, space = opened(digits()), digits()["space"]
    page.select_option("#pair", "5")
    directions = space["regions"][5]["directions"]
    titles = page.eval_on_selector_all("svg.space .axis", "all => all.map(one => one.textContent)")
    assert sorted(titles) == sorted(space["axes"][j] for j in directions)
    x = np.array(
        page.eval_on_selector_all(
            "svg.space .points use", "all => all.map(one => Number(one.getAttribute('x')))"
        )
    )
    expected = np.array(space["points"])[:, directions[0]]
    assert np.corrcoef(x, expected)[0, 1] > 0.999999


def test_zoom_enlarges_and_the_whole_plot_comes_back(opened):
    page = opened(iris())
    place = "all => all.map(one => Number(one.getAttribute('x')))"
    before = np.array(page.eval_on_selector_all("svg.space .points use", place))
    page.click('[data-zoom="0.6"]')
    after = np.array(page.eval_on_selector_all("svg.space .points use", place))
    # points that would lie outside are arrows at the border
    inside = np.abs(before - np.median(before)) < 0.2 * np.ptp(before)
    enlarged = np.ptp(after[inside]) / np.ptp(before[inside])
    assert inside.sum() >= 20 and enlarged == pytest.approx(1 / 0.6, rel=1e-3)
    page.click('[data-zoom="0"]')
    again = np.array(page.eval_on_selector_all("svg.space .points use", place))
    np.testing.assert_allclose(again, before, atol=0.1)


def test_comparison_is_sorted_with_its_guessing_row(opened):
    page = opened(iris())
    page.click("#comparison ~ .scroll th:has-text('Error') button")
    rows = page.eval_on_selector_all(
        "#comparison ~ .scroll tbody tr",
        "rows => rows.map(row => parseFloat(row.cells[1].textContent))",
    )
    page.click("#comparison ~ .scroll th:has-text('Error') button")
    first = page.inner_text("#comparison ~ .scroll tbody tr:first-child th")
    assert rows == sorted(rows) and first.startswith("Guessing")
