"""Accessibility of the page by the rules of axe-core (tests/shared/vendor/axe-core, MPL 2.0)."""

from pathlib import Path

import pytest

from tests.unit.report.samples import cancer, iris

_AXE = Path(__file__).parents[2] / "shared" / "vendor" / "axe-core" / "axe.min.js"
_RUN = "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id))"


def violations(page):
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    return page.evaluate(_RUN)


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_violates_no_rule_of_axe(opened, made, width, scheme):
    assert violations(opened(made(), width, scheme)) == []


def test_page_with_a_selection_and_a_tip_violates_no_rule_of_axe(opened):
    page = opened(iris())
    page.locator(".matrix button").first.focus()
    page.keyboard.press("Enter")
    page.locator("#row-start").select_option("-1")
    assert violations(page) == []


def test_axe_sees_a_field_without_a_label(opened):
    page = opened(iris())
    page.evaluate("document.querySelectorAll('label').forEach((one) => one.remove())")
    assert "label" in violations(page)
