"""The page in a real browser: nothing leaves it, nothing overflows, what is moved is counted."""

import re
import shutil

import pytest

from discriminant.report.render import render
from tests.report.samples import CORPUS, cancer, hostile, iris
from tests.report.test_render import named

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = {"many": iris, "two": cancer, "hostile": hostile}
WIDTHS = [360, 1280]


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium to open the page in")
    with driver.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a report; what went wrong is in `page.wrong`."""
    contexts = []

    def open_page(facts, width=1280, scheme="light"):
        file = tmp_path / "report.html"
        file.write_text(render(facts), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.wrong = []
        page.on("console", lambda said: page.wrong.append(said.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith(("file:", "data:")) else page.wrong.append(asked.url)
            ),
        )
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def cells(page):
    return page.eval_on_selector_all("[data-cell]", "all => all.map(one => one.textContent)")


def count(page):
    """Rows in the confusion table, all told."""
    return sum(float(cell.replace(",", "")) for cell in cells(page))


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
    page = opened(made(), width, scheme)
    page.mouse.wheel(0, 4000)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert (page.wrong, wide) == ([], width)


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_on_paper_nothing_is_wider_than_the_page(opened, made):
    page = opened(made(), 680)
    page.emulate_media(media="print")
    beyond = page.evaluate(
        "[...document.querySelectorAll('main *')]"
        ".filter(one => one.getBoundingClientRect().right > innerWidth + 1).length"
    )
    assert beyond == 0


def test_text_in_figures_can_be_read_on_a_phone(opened):
    page = opened(iris(), 360)
    least = page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg.figure')].map(svg =>"
        " parseFloat(getComputedStyle(svg.querySelector('text')).fontSize)"
        " * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))"
    )
    assert least >= 10.0


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
    page.wait_for_function(
        "before => document.querySelector('#passed').textContent === '0%'", arg=0
    )
    assert cells(page) == before


def test_pointing_at_a_row_says_its_class_and_its_values(opened):
    page = opened(iris())
    mark = page.locator("svg.space .points use").nth(100)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    lines = page.inner_text("#tip").split("\n")
    assert (lines[0] in iris()["space"]["labels"], len(lines)) == (True, 5)


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
    assert (page.wrong, page.title() != "owned", made) == ([], True, [2, 0, 0])


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
    assert (len(names), page.wrong, page.title() != "owned", alive) == (78, [], True, [2, 0, 1, 0])
