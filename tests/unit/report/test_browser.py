"""The page in a real browser: nothing leaves it, nothing overflows, what is moved is counted."""

import functools
import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import confusion_matrix

from discriminant.report.fact_types import plain
from discriminant.report.html import render
from discriminant.report.sections.decision import decision_section
from tests.unit.report.looks import beyond_paper, overflow, smallest_text
from tests.unit.report.samples import CORPUS, cancer, hostile, iris
from tests.unit.report.test_html import named

PAGES = {"many": iris, "two": cancer, "hostile": hostile}
WIDTHS = [360, 1280]


def cells(page):
    return page.eval_on_selector_all("[data-cell]", "all => all.map(one => one.textContent)")


def count(page):
    """Rows in the confusion table, all told."""
    return sum(float(cell.replace(",", "")) for cell in cells(page))


def wait_for(page, place, text):
    """Until a place says this; asked from outside, for the page lets nobody evaluate texts."""
    from playwright.sync_api import expect

    expect(page.locator(place)).to_have_text(text)


def slide(page, name, step):
    page.eval_on_selector(
        f"#{name}",
        "(one, step) => { one.value = step;"
        " one.dispatchEvent(new Event('input', { bubbles: true })); }",
        str(step),
    )


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_complained_of_nothing_leaves_and_nothing_overflows(opened, made, width, scheme):
    assert overflow(opened(made(), width, scheme)) == ([], width)


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_on_paper_nothing_is_wider_than_the_page(opened, made):
    assert beyond_paper(opened(made(), 680)) == 0


@pytest.mark.parametrize("width", [360, 375])
def test_confusion_table_of_three_classes_fits_on_a_phone(opened, width):
    wider = "one => one.parentElement.scrollWidth - one.parentElement.clientWidth"
    assert opened(iris(), width).eval_on_selector("table.confusion", wider) <= 0


def test_text_in_figures_can_be_read_on_a_phone(opened):
    assert smallest_text(opened(iris(), 360)) >= 10.0


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_deciding_again_without_moving_anything_gives_the_table_of_the_facts(opened, made):
    page = opened(made())
    before = cells(page)
    page.eval_on_selector(
        ".controls", "one => one.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    assert cells(page) == before


def test_the_threshold_moves_the_table_and_no_row_is_lost(opened):
    page, roc = opened(cancer()), cancer()["decision"]["roc"]
    before = cells(page)
    slide(page, "threshold", 40)
    found = [float(cell.replace(",", "")) for cell in cells(page)][:4]
    tp, fp = roc["tp"][40], roc["fp"][40]
    expected = [roc["negatives"] - fp, roc["positives"] - tp, fp, tp]
    assert (found, cells(page) != before) == (expected, True)


def test_the_threshold_can_be_moved_from_the_keyboard(opened):
    page = opened(cancer())
    page.focus("#threshold")
    before = page.get_attribute("#threshold", "aria-valuetext")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    assert page.get_attribute("#threshold", "aria-valuetext") != before


def test_the_point_of_the_curve_can_be_dragged(opened):
    page = opened(cancer())
    page.locator("svg.roc").scroll_into_view_if_needed()
    box = page.locator("svg.roc .handle").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 150, y - 5, steps=4)
    page.mouse.up()
    moved = page.locator("svg.roc .handle").bounding_box()
    assert moved["x"] > box["x"] + 80


def test_a_dearer_miss_lets_fewer_be_missed(opened):
    page = opened(cancer())
    before = float(cells(page)[1])
    slide(page, "miss", 10)
    assert float(cells(page)[1]) < before


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_the_cheaper_passing_on_is_the_more_rows_are_passed_on_and_none_is_lost(opened, made):
    page = opened(made())
    total, shares = count(page), []
    for step in (12, 6, 2):
        slide(page, "aside", step)
        shares.append(float(page.inner_text("#passed").rstrip("%")))
    assert (count(page), shares == sorted(shares), shares[-1] > 0) == (total, True, True)


def test_a_class_that_is_dearer_to_miss_is_said_more_often(opened):
    page = opened(iris())
    slide(page, "cost-1", 10)
    said = [float(cell) for cell in cells(page)[3:6]]
    assert sum(said) > sum(iris()["decision"]["confusion"][1])


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_going_back_to_the_start_brings_the_table_back(opened, made):
    page = opened(made())
    before = cells(page)
    slide(page, "aside", 3)
    page.click("button[type=reset]")
    wait_for(page, "#passed", "0%")
    assert cells(page) == before


def test_pointing_at_a_row_says_its_class_and_its_values(opened):
    page = opened(iris())
    mark = page.locator("svg.space .points use").nth(100)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    lines = page.inner_text("#tip").split("\n")
    space = iris()["space"]
    number, label = re.fullmatch(r"Row (\d+): (.*)", lines[0]).groups()
    row = space["numbers"].index(int(number))
    decided = space["labels"][space["decided"][row]]
    probability = min(f"{100 * space['probability'][row]:.1f}", "99.9", key=float)
    assert (label, len(lines)) == (space["labels"][space["codes"][row]], 6)
    assert decided in lines[1] and probability in lines[1]


def test_the_theme_can_be_switched(opened):
    page = opened(iris())
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    dark = page.evaluate(ground)
    page.click("#theme")
    assert (dark != light, page.evaluate(ground)) == (True, light)


@pytest.mark.parametrize("name", [name for name in CORPUS if re.search("[<>{'&]", name)])
def test_hostile_names_are_shown_and_do_nothing(opened, name):
    page = opened(named(cancer(), name))
    made = page.evaluate(
        "[document.scripts.length, document.images.length,"
        " document.querySelectorAll('b b, h1 h1').length]"
    )
    assert (page.wrong, page.title() != "owned", made) == ([], True, [3, 0, 0])


BREAKERS = [
    "",
    '"',
    "'",
    ">",
    '">',
    "'>",
    "-->",
    "]]>",
    "</script>",
    "</style>",
    "</title>",
    "\x00",
]
ACTS = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "<svg onload=document.title='owned'>",
    "<svg><script>document.title='owned'</script></svg>",
    "<iframe src=javascript:parent.document.title='owned'></iframe>",
    "<body onload=document.title='owned'>",
    "<a href=javascript:document.title='owned' autofocus>x</a>",
    "<input autofocus onfocus=document.title='owned'>",
    "<details open ontoggle=document.title='owned'>",
    "<video><source onerror=document.title='owned'></video>",
    "<style>@import 'http://example.org'</style>",
    "<link rel=stylesheet href=http://example.org>",
    "<meta http-equiv=refresh content=0;url=http://example.org>",
    "<base href=http://example.org>",
    "<object data=http://example.org></object>",
    "<math><mtext><script>document.title='owned'</script></mtext></math>",
    "<template><script>document.title='owned'</script></template>",
    " onmouseover=document.title='owned' x=",
    " style=position:fixed;inset:0;background:url(http://example.org) x=",
    "{{constructor.constructor('document.title=1')()}}",
    "{% raw %}{{7*7}}{% endraw %}",
    "${document.title='owned'}",
    "<b id=facts>{}</b>",
    "<form id=theme><input name=hidden></form>",
    "\u202e<script>document.title='owned'</script>\u2069",
    "&#60;script&#62;document.title='owned'&#60;/script&#62;",
]


@pytest.mark.parametrize("part", range(4))
def test_of_three_hundred_hostile_names_none_comes_alive(opened, part):
    names = [breaker + act for breaker in BREAKERS for act in ACTS][part::4]
    facts = named(iris(), names[0])
    column = facts["read"]["columns"][0]
    facts["read"]["columns"] = [column | {"name": name, "note": name} for name in names]
    facts["read"]["said"] = facts["read"]["warnings"] = names
    facts["matters"]["findings"] = [{"kind": name, "text": name} for name in names]
    facts["space"]["shown"] = names[:1] + facts["space"]["shown"][1:]
    page = opened(facts)
    alive = page.evaluate(
        "[document.scripts.length, document.images.length, document.styleSheets.length,"
        " document.querySelectorAll('iframe, object, base, video, body *[style], [onload]').length]"
    )
    assert (len(names), page.wrong, page.title() != "owned", alive) == (78, [], True, [3, 0, 1, 0])


# --- for all: the keyboard, readers of screens, contrast, paper --------------------------------

LUMINANCE = """
(() => {
  const parts = (text) => {
    const [r, g, b, a] = text.match(/[\\d.]+(e-?\\d+)?/g).map(Number);
    const size = text.startsWith("color(srgb") ? 255 : 1;
    return [size * r, size * g, size * b, a];
  };
  const over = (top, under) => {
    const [r, g, b, a = 1] = top;
    return [r, g, b].map((c, i) => a * c + (1 - a) * under[i]);
  };
  const ground = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      layers.push(parts(getComputedStyle(at).backgroundColor));
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const light = (rgb) => {
    const bent = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((c) => bent(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll("body *")]
    .filter((one) => [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
    .filter((one) => one.getClientRects().length && !one.closest("script, .skip, .unseen, #tip"))
    .map((one) => {
      const style = getComputedStyle(one);
      const svg = one instanceof SVGElement;
      const under = ground(svg ? one.closest("svg").parentElement : one);
      const top = over(parts(svg ? style.fill : style.color), under);
      const [a, b] = [light(top), light(under)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return [ratio, one.textContent.trim().slice(0, 30)];
    })
    .filter((found) => found[0] < 4.5);
})()
"""


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_ground(opened, made, scheme):
    assert opened(made(), 1280, scheme).evaluate(LUMINANCE) == []


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_headings_go_down_one_step_at_a_time(opened, made):
    levels = opened(made()).eval_on_selector_all(
        "h1, h2, h3, h4", "all => all.map(one => Number(one.tagName[1]))"
    )
    steps = [after - before for before, after in pairwise(levels)]
    assert (levels[0], levels.count(1), max(steps)) == (1, 1, 1)


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_every_drawing_has_a_name_or_is_no_news(opened, made):
    nameless = opened(made()).evaluate(
        "[...document.querySelectorAll('svg')].filter(one =>"
        " one.getAttribute('aria-hidden') !== 'true' &&"
        " !(one.getAttribute('role') === 'img' && one.getAttribute('aria-label') &&"
        " one.querySelector('title'))).length"
    )
    assert nameless == 0


@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_every_control_has_a_name(opened, made):
    nameless = opened(made()).evaluate(
        "[...document.querySelectorAll('input, button, [tabindex=\"0\"]')].filter(one =>"
        " !(one.labels && one.labels.length) && !one.textContent.trim() &&"
        " !one.getAttribute('aria-label')).length"
    )
    assert nameless == 0


def test_with_the_tab_key_all_controls_are_reached_and_the_focus_is_seen(opened):
    page, reached, unseen = opened(cancer()), set(), []
    for _ in range(60):
        page.keyboard.press("Tab")
        name, line = page.evaluate(
            "[document.activeElement.id || document.activeElement.tagName,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        if name == "BODY":
            break
        reached.add(name)
        unseen += [name] if line == "none" else []
    wanted = {"theme", "threshold", "miss", "alarm", "aside"}
    assert (wanted - reached, unseen) == (set(), [])


def test_with_an_arrow_key_a_cost_moves_the_table(opened):
    page = opened(iris())
    before = cells(page)
    page.focus("#cost-1")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert (page.get_attribute("#cost-1", "aria-valuetext"), cells(page) != before) == (
        "× 20",
        True,
    )


def test_who_wants_no_motion_gets_none(browser, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(render(iris()), encoding="utf-8")
    with browser.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(file.as_uri())
        moving = page.evaluate(
            "[getComputedStyle(document.documentElement).scrollBehavior,"
            " ...[...document.querySelectorAll('*')].map(one => getComputedStyle(one))"
            ".filter(one => one.animationName !== 'none' ||"
            " one.transitionDuration !== '0s').map(one => one.animationName)]"
        )
    assert moving == ["auto"]


def test_the_policy_stops_a_script_a_style_and_a_request_that_are_not_the_pages_own(opened):
    page = opened(iris())
    page.evaluate(
        "() => {"
        " const script = document.createElement('script');"
        " script.textContent = 'document.title = \"owned\"'; document.body.append(script);"
        " const style = document.createElement('style');"
        " style.textContent = 'body { display: none }'; document.head.append(style);"
        " const image = new Image(); image.src = 'https://example.org/x.png';"
        " return fetch('https://example.org').catch(() => 0); }"
    )
    shown = page.evaluate("getComputedStyle(document.body).display")
    refused = [line for line in page.wrong if "Content Security Policy" in line]
    assert (page.title() != "owned", shown, len(refused) >= 4) == (True, "block", True)


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_on_paper_there_are_no_controls_and_the_ground_is_white(opened, made):
    page = opened(made(), 680, "dark")
    page.emulate_media(media="print")
    seen = page.evaluate(
        "[[...document.querySelectorAll('input, button:not(.pick, .sort, .to-form, .matrix button),"
        " select, nav, .script, pre.long')]"
        ".filter(one => one.getClientRects().length).length,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    assert seen == [0, "rgb(255, 255, 255)"]


# --- what a slider shows is what the model would do --------------------------------------------


@functools.cache
def many():
    """Some thousands of rows with costs and a reject option, so that the curve is thinned."""
    draw = np.random.default_rng(3)
    codes = (draw.random(6000) < 0.2).astype(int)
    logs = log_softmax(np.c_[np.zeros(6000), draw.normal(size=6000) + 2.4 * codes - 2.0], axis=1)
    labels = np.array(["no", "yes"], dtype=object)
    return labels, codes, logs


def paged(section):
    found = cancer()
    return {**found, "decision": plain(section)}


def test_at_first_the_page_shows_the_decision_asked_for_to_the_last_row(opened):
    section = decision_section(*many(), cost={"no": {"yes": 7}}, reject=0.13)
    page = opened(paged(section))
    expected = [f"{cell:,.0f}" for row in section["confusion"] for cell in row]
    assert cells(page) == expected


@pytest.mark.parametrize(("miss", "aside"), [(5.0, 0.1), (0.5, 0.3), (20.0, 0.05), (1.0, 0.2)])
def test_where_dials_are_moved_to_the_counts_are_those_of_a_decision_with_these_costs(
    opened, miss, aside
):
    section = decision_section(*many())
    page = opened(paged(section))
    slide(page, "miss", section["dials"]["cost"].index(miss))
    slide(page, "aside", section["dials"]["aside"].index(aside))
    wanted = decision_section(*many(), cost={"no": {"yes": miss}}, reject=aside)["confusion"]
    assert cells(page) == [f"{cell:,.0f}" for row in wanted for cell in row]


def test_a_model_that_does_not_decide_by_the_largest_probability_is_shown_as_it_decides(opened):
    labels, codes, logs = many()
    decided = (logs[:, 1] > np.log(0.3)).astype(int)
    decided[:7] = 1 - decided[:7]  # no threshold does that
    section = decision_section(labels, codes, logs, decided=decided)
    exact = confusion_matrix(codes, decided).T
    page = opened(paged(section))
    slide(page, "aside", 3)
    page.click("button[type=reset]")
    wait_for(page, "#passed", "0%")
    assert cells(page)[:4] == [f"{cell:,}" for cell in exact.ravel()]
