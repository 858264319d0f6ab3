"""The lecture pages in Chromium: every control, the keyboard, accessibility, and numbers of Python.

Points are read from the page, so that both sides fit models to the same numbers.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import discriminant as dd
from discriminant.lectures import TITLES, page as page_of, write_pages
from tests.shared.paths import ROOT

AXE = Path(__file__).parents[2] / "shared" / "vendor" / "axe-core" / "axe.min.js"
VIOLATIONS = (
    "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id))"
)
FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

# Move every slider to its farther end, choose every option, press every button, and Reset. Returns
# what did not work.
USE_CONTROLS = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const texts = (s) => [...s.querySelectorAll('dd')].map((each) => each.textContent).join('|');
  const layers = (s) =>
    [...s.querySelectorAll('svg > g, table')].map((each) => each.innerHTML).join('');
  const faults = [];
  for (const s of document.querySelectorAll('.explorable')) {
    const before = texts(s), drawing = layers(s);
    if (/NaN|undefined|null/.test(s.textContent)) faults.push(`${s.id}: ${s.textContent}`);
    let changed = false;
    for (const input of s.querySelectorAll('.panel input')) {
      if (input.disabled || input.defaultChecked) continue;
      const { value, min, max } = input;
      if (input.type === 'range') {
        input.value = max - value > value - min ? max : min;
        input.dispatchEvent(new Event('input'));
      } else input.click();
      await frame();
      changed ||= texts(s) !== before;
      if (/NaN|undefined|null/.test(s.textContent)) faults.push(`${s.id}: ${s.textContent}`);
      if (texts(s) === before && layers(s) === drawing) {
        faults.push(`${s.id}: ${input.value} of ${input.id || input.name} has no effect`);
      }
      input.value = value;
      input.dispatchEvent(new Event('input'));
    }
    if (s.querySelector('.panel input') && !changed) faults.push(`${s.id}: no number changed`);
    for (const button of s.querySelectorAll('button')) button.click();
    await frame();
    [...s.querySelectorAll('.buttons button')].at(-1).click();
    await frame();
    if (texts(s) !== before) faults.push(`${s.id}: after a reset ${texts(s)}, at first ${before}`);
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def lectures(browser, tmp_path_factory):
    """A function that opens the page of a lecture from a file, once, without a network."""
    folder = tmp_path_factory.mktemp("lectures")
    write_pages(folder)
    opened = {}

    def open_page(lecture, width=1280, scheme="light"):
        key = lecture, width, scheme
        if key not in opened:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
            )
            page = context.new_page()
            page.wrong = []
            page.on("console", lambda message: page.wrong.append(message.text))
            page.on("pageerror", lambda error: page.wrong.append(str(error)))
            page.on(
                "request",
                lambda request: (
                    page.wrong.append(request.url)
                    if not request.url.startswith(("file:", "data:"))
                    else None
                ),
            )
            page.goto((folder / f"lecture_{lecture}.html").as_uri())
            page.evaluate(FRAME)
            opened[key] = page, context
        return opened[key][0]

    yield open_page
    for _, context in opened.values():
        context.close()


@pytest.mark.parametrize("lecture", TITLES)
def test_every_control_changes_a_number_and_reset_restores_all(lectures, lecture):
    page = lectures(lecture)
    assert page.evaluate(USE_CONTROLS) == []
    assert page.wrong == []


@pytest.mark.parametrize("lecture", TITLES)
def test_points_and_handles_move_by_keys_and_by_the_mouse(lectures, lecture):
    page = lectures(lecture)
    still = []
    for plot in page.query_selector_all("figure.plane:has(.points .point)"):
        points = plot.query_selector(".points")
        before = points.inner_html()
        points.focus()
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press(".")
        page.keyboard.press("Shift+ArrowRight")
        page.evaluate(FRAME)
        if points.inner_html() == before:
            still.append(plot.evaluate("(each) => each.querySelector('svg').ariaLabel"))
    for handle in page.query_selector_all(".handle"):
        before = handle.get_attribute("transform")
        handle.focus()
        for key in ("Shift+ArrowLeft", "Shift+ArrowDown", "Shift+ArrowUp", "Shift+ArrowUp"):
            page.keyboard.press(key)
            page.evaluate(FRAME)
            if handle.get_attribute("transform") != before:
                break
        else:
            still.append(handle.get_attribute("aria-label"))
    assert still == []
    assert page.wrong == []


def test_mouse_adds_drags_and_removes_points(lectures):
    page = fresh(lectures, 5)
    plot = page.locator("#regression .plane")
    plot.scroll_into_view_if_needed()
    box = plot.locator("svg.figure").bounding_box()
    count = plot.locator(".point").count()
    slope = page.locator("#regression [data-number=weights]").text_content()
    x, y = box["x"] + 0.8 * box["width"], box["y"] + 0.75 * box["height"]
    page.mouse.click(x, y)
    page.evaluate(FRAME)
    assert plot.locator(".point").count() == count + 1
    added = page.locator("#regression [data-number=weights]").text_content()
    assert added != slope
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 60, steps=4)
    page.mouse.up()
    page.evaluate(FRAME)
    assert plot.locator(".point").count() == count + 1
    assert page.locator("#regression [data-number=weights]").text_content() != added
    page.mouse.dblclick(x, y - 60)
    page.evaluate(FRAME)
    assert plot.locator(".point").count() == count
    assert page.locator("#regression [data-number=weights]").text_content() == slope


@pytest.mark.parametrize(
    "lecture, width, scheme",
    [(1, 1280, "light"), (2, 390, "dark"), (3, 390, "light"), (4, 390, "dark"), (5, 390, "light")],
)
def test_page_violates_no_rule_of_axe_and_fits_a_phone(lectures, lecture, width, scheme):
    page = lectures(lecture, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(VIOLATIONS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.wrong == []


# --- numbers, against Python ---


def fresh(lectures, lecture):
    """The page of a lecture, with everything reset."""
    page = lectures(lecture)
    page.evaluate(
        "document.querySelectorAll('.explorable').forEach((each) => each.explorable?.reset())"
    )
    page.evaluate(FRAME)
    return page


def points_of(page, section, plot=0):
    """Rows (N, 2) and codes of the points of a plot."""
    points = page.evaluate(
        "([id, plot]) => document.getElementById(id).explorable.planes[plot].points"
        ".map((point) => [point.x, point.y, point.k])",
        [section, plot],
    )
    table = np.array(points)
    return table[:, :2], table[:, 2].astype(int)


def number(page, section, name):
    """A number of a section, as far as it is shown."""
    text = page.locator(f"#{section} [data-number={name}]").text_content()
    return float(re.match(r"-?[\d.]+", text.replace("−", "-"))[0])


def choose(page, section, **options):
    """Choose a radio button by its value, or set a slider by its label's first word."""
    for name, value in options.items():
        page.evaluate(
            """([id, name, value]) => {
              const s = document.getElementById(id);
              const radio = s.querySelector(`.panel input[type=radio][value="${value}"]`);
              if (name.startsWith('choose')) return radio.click();
              const input = s.querySelectorAll('.panel input[type=range]')[Number(name.slice(6))];
              input.value = value;
              input.dispatchEvent(new Event('input'));
            }""",
            [section, name, str(value)],
        )
    page.evaluate(FRAME)


def press(page, section, button):
    page.locator(f"#{section} button", has_text=button).first.click()
    page.evaluate(FRAME)


def errors(model, X, y):
    return int((model.fit(X, y).predict(X) != y).sum())


def test_fisher_and_lda_agree_with_python(lectures):
    page = fresh(lectures, 1)
    press(page, "direction", "Fisher's direction")
    X, y = points_of(page, "direction")
    fisher = dd.Fisher().fit(X, y)
    assert number(page, "direction", "largest") == pytest.approx(fisher.eigenvalues_[0], abs=6e-4)
    angle = np.degrees(np.arctan2(*fisher.scalings_[::-1, 0])) % 180
    shown = page.evaluate("document.querySelector('#direction input[type=range]').valueAsNumber")
    assert shown == pytest.approx(angle, abs=0.26)
    X, y = points_of(page, "estimates")
    assert number(page, "estimates", "training") == errors(dd.LDA(), X, y)
    X, y = points_of(page, "schemes")
    rest = dd.OneVsRest(dd.LDA()).fit(X, y)
    assert number(page, "schemes", "errors") == (rest.predict(X) != y).sum()


def drawn_line(page, section, selector):
    """Points (x, y) of a drawn path, in units of the axes."""
    points = page.evaluate(
        """([id, selector]) => {
          const s = document.getElementById(id), { area, x, y } = s.explorable.planes[0];
          const numbers = s.querySelector(selector).getAttribute('d').match(/-?[\\d.]+/g);
          const share = (value, from, to) => (value - from) / (to - from);
          return numbers.map(Number).map((value, i) => i % 2
            ? y[0] + share(value, area.bottom, area.top) * (y[1] - y[0])
            : x[0] + share(value, area.left, area.right) * (x[1] - x[0]));
        }""",
        [section, selector],
    )
    return np.reshape(points, (-1, 2))


def test_drawn_boundaries_are_those_of_python(lectures):
    page = fresh(lectures, 1)
    X, y = points_of(page, "logistic")
    line = drawn_line(page, "logistic", "path.boundary")
    assert len(line) > 20
    assert np.abs(dd.LDA().fit(X, y).decision_function(line)).max() < 0.01
    line = drawn_line(page, "logistic", "path.second")
    assert np.abs(dd.Logistic().fit(X, y).decision_function(line)).max() < 0.01
    line = drawn_line(fresh(lectures, 4), "geometry", "path.boundary")
    assert np.abs(line @ [1.5, 1] - 4).max() < 0.01


def test_priors_move_the_boundary_as_lda_does(lectures):
    page = fresh(lectures, 1)
    choose(page, "priors", slider0=0.3)
    step = np.sqrt(0.5)
    line = np.array([[-1.5 - step], [-1.5 + step], [1.5 - step], [1.5 + step]])
    model = dd.LDA(prior=[0.3, 0.7]).fit(line, [0, 0, 1, 1])
    boundary = (-model.intercept_ / model.coef_[:, 0]).item()
    assert number(page, "priors", "boundary") == pytest.approx(boundary, abs=6e-5)
    error = 0.3 * norm.sf(boundary, -1.5) + 0.7 * norm.cdf(boundary, 1.5)
    assert number(page, "priors", "error") == pytest.approx(100 * error, abs=0.06)


def test_roc_area_and_measures_agree_with_python(lectures):
    page = fresh(lectures, 2)
    X, y = points_of(page, "roc")
    area = dd.auc(y, X[:, 0], positive=1).value
    assert number(page, "roc", "auc") == pytest.approx(area, abs=6e-5)
    result = dd.assess(y, (X[:, 0] > 0).astype(int))
    shown = [number(page, "roc", name) for name in ("precision", "recall", "f")]
    expected = [result.precision[1], result.recall[1], result.f()[1]]
    assert shown == pytest.approx(expected, abs=6e-4)
    choose(page, "roc", slider1=10)
    assert number(page, "roc", "auc") == pytest.approx(area, abs=6e-5)
    assert number(page, "roc", "precision") < shown[0] / 2


def test_fisher_step_by_step_agrees_with_python(lectures):
    page = fresh(lectures, 2)
    X, y = points_of(page, "steps")
    fisher = dd.Fisher().fit(X, y)
    n = np.bincount(y)
    eigenvalue = fisher.eigenvalues_[0] * n.sum() / (n[0] * n[1])
    assert number(page, "steps", "J") == pytest.approx(eigenvalue, abs=6e-5)
    assert number(page, "steps", "eigenvalue") == pytest.approx(eigenvalue, abs=6e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_masking_agrees_with_python(lectures):
    page = fresh(lectures, 3)
    X, y = points_of(page, "masking")
    flat = dd.LeastSquares().fit(X[:, :1], y)
    assert flat.masked_.tolist() == [1]
    assert page.locator("#masking [data-number=masked]").text_content() == "orange"
    assert number(page, "masking", "error") == (flat.predict(X[:, :1]) != y).sum()
    choose(page, "masking", choose=2)
    curved = dd.LeastSquares(degree=2).fit(X[:, :1], y)
    assert number(page, "masking", "error") == (curved.predict(X[:, :1]) != y).sum()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name, model", [("lda", dd.LDA()), ("qda", dd.QDA()), ("least_squares", dd.LeastSquares())]
)
def test_training_and_leave_one_out_errors_agree_with_python(lectures, name, model):
    page = fresh(lectures, 3)
    choose(page, "boundaries", choose=name)
    X, y = points_of(page, "boundaries")
    assert number(page, "boundaries", "training") == errors(model, X, y)
    held_out = round(dd.leave_one_out(model, X, y).error * len(y))
    assert number(page, "boundaries", "held_out") == held_out


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rda_surface_agrees_with_python(lectures):
    page = fresh(lectures, 3)
    choose(page, "regularised", slider1=0)
    X, y = points_of(page, "regularised", 1)
    held = dd.leave_one_out(dd.RDA(pooling=0.5, shrinkage=0.2), X, y)
    assert number(page, "regularised", "here") == pytest.approx(held.log_loss, rel=3e-3)
    assert number(page, "regularised", "error") == round(held.error * len(y))


def test_perceptron_makes_the_updates_of_python(lectures):
    page = fresh(lectures, 4)
    press(page, "perceptron", "Run")
    converged = page.locator("#perceptron .note", has_text="converged")
    converged.wait_for()
    X, y = points_of(page, "perceptron")
    model = dd.Perceptron(standardize=False, record=True).fit(X, y)
    w = np.zeros(3)
    rows, t = np.column_stack([np.ones(len(X)), X]), 2 * y - 1
    updates, wrong = 0, True
    while wrong:
        wrong = False
        for row, sign in zip(rows, t, strict=True):
            if (1 if row @ w >= 0 else -1) != sign:
                w, updates, wrong = w + sign * row, updates + 1, True
    assert number(page, "perceptron", "updates") == updates
    assert model.converged_
    assert number(page, "perceptron", "misclassified") == 0


def test_newton_steps_reach_the_estimate_of_python(lectures):
    page = fresh(lectures, 4)
    choose(page, "irls", slider0=12)
    X, y = points_of(page, "irls")
    model = dd.Logistic().fit(X[:, :1], y)
    weights = page.locator("#irls [data-number=weights]").text_content().replace("−", "-")
    shown = [float(each) for each in weights.split(", ")]
    assert shown == pytest.approx([model.intercept_.item(), model.coef_.item()], rel=6e-3)


def test_expected_loss_with_rejection_is_the_integral(lectures):
    page = fresh(lectures, 4)
    choose(page, "loss", slider0=3, slider1=0.3, slider2=0.2)

    def least(x):
        healthy, ill = 0.8 * norm.pdf(x, -1.5), 0.2 * norm.pdf(x, 1.5)
        return min(10 * ill, healthy, 0.3 * (healthy + ill))

    expected = quad(least, -12, 12, limit=400, points=[-2, -1, 0, 1])[0]
    assert number(page, "loss", "loss") == pytest.approx(expected, rel=6e-3)
    half = np.log(4) / 3  # where P(ill | x) is 1/2
    usual = 10 * 0.2 * norm.cdf(half - 1.5) + 0.8 * norm.sf(half + 1.5)
    assert number(page, "loss", "loss_half") == pytest.approx(usual, rel=6e-3)


@pytest.mark.parametrize("lecture", TITLES)
def test_formulas_have_subscripts_instead_of_underscores(lectures, lecture):
    text = lectures(lecture).locator("main").inner_text()
    assert re.findall(r"\w_\w+", text) == []


def test_wide_table_scrolls_with_a_hint(lectures):
    page = lectures(5, width=390)
    page.locator("#codes").get_by_label("of all 7 columns").or_(
        page.locator("#codes input[value=all]")
    ).first.check()
    page.evaluate(FRAME)
    box = page.locator("#codes .table")
    assert box.evaluate("each => each.scrollWidth > each.clientWidth")
    assert "Scroll" in box.evaluate("each => getComputedStyle(each, '::before').content")
    box.evaluate("each => { each.scrollLeft = 1000; }")
    assert box.evaluate("each => each.scrollLeft") > 0


def test_points_of_the_direction_are_inside_the_frame(lectures):
    page = fresh(lectures, 1)
    page.locator("#direction input[value='3']").check()
    page.evaluate(FRAME)
    X, _ = points_of(page, "direction")
    assert (np.abs(X).max(axis=0) <= [6, 5]).all()
    assert page.locator("#direction circle.foot:not([clip-path])").count() == 0


def test_densities_agree_with_python(lectures):
    page = fresh(lectures, 4)
    X, y = points_of(page, "densities")
    assert number(page, "densities", "error") == errors(dd.QDA(denominator="ml"), X[:, :1], y)
    choose(page, "densities", choose="laplace")
    laplace = dd.LaplaceNB().fit(X[:, :1], y)
    assert number(page, "densities", "error") == (laplace.predict(X[:, :1]) != y).sum()
    assert number(page, "densities", "blue") == pytest.approx(laplace.medians_[0, 0], rel=6e-3)


def test_output_codes_show_the_distances_of_the_chapter(lectures):
    page = fresh(lectures, 5)
    rows = page.locator("#codes tbody").first.locator("tr").all()
    shown = [row.locator("td").all_text_contents()[-2:] for row in rows]
    assert shown == [["3", "3.46"], ["4", "4"], ["1", "2"], ["2", "2.83"]]
    assert page.locator("#codes [data-number=predicted]").text_content() == "C₃"


@pytest.mark.parametrize("method, choice", [("under", "under"), ("over", "over")])
def test_resampling_uses_as_many_rows_as_python(lectures, method, choice):
    page = fresh(lectures, 5)
    choose(page, "imbalance", choose=choice)
    X, y = points_of(page, "imbalance")
    model = dd.Resampled(dd.LDA(), method).fit(X, y)
    assert number(page, "imbalance", "rows") == model.estimator_.moments_.rows.sum()


ANSWERS = [  # lecture, section, buttons and options, number, text in docs/lectures/questions.md
    (1, "direction", ["Fisher's direction"], {}, "J", "1.86"),
    (1, "priors", [], {"slider0": 0.3}, "boundary", "−0.282"),
    (1, "estimates", [], {"slider0": 1}, "new", "16.9%"),
    (1, "estimates", [], {"slider0": 5}, "new", "13.7%"),
    (1, "tree", [], {}, "evaluated", "8 instead of 22"),
    (2, "roc", [], {"slider0": 1}, "recall", "0.375"),
    (2, "roc", [], {"slider1": 10}, "precision", "0.180"),
    (2, "optimism", [], {"choose": "qda", "slider1": 0}, "test", "28.1%"),
    (
        3,
        "boundaries",
        [],
        {"choose": "row", "choose_model": "least_squares"},
        "training",
        "16 of 66",
    ),
    (4, "outliers", ["Add 10 distant points"], {}, "least_squares", "9 of 70"),
    (4, "loss", [], {"slider1": 0.1}, "coverage", "79.1%"),
    (5, "regression", [], {}, "mse", "0.448"),
    (5, "imbalance", [], {"choose": "threshold"}, "recall_rare", "90"),
    (5, "imbalance", [], {"slider0": 25}, "baseline", "96.2%"),
]


@pytest.mark.parametrize("lecture, section, buttons, options, name, text", ANSWERS)
def test_answers_of_the_questions_are_on_the_pages(
    lectures, lecture, section, buttons, options, name, text
):
    page = fresh(lectures, lecture)
    for button in buttons:
        press(page, section, button)
    choose(page, section, **options)
    answers = (ROOT / "docs" / "lectures" / "questions.md").read_text(encoding="utf-8")
    shown = page.locator(f"#{section} [data-number={name}]").text_content()
    assert text in answers.split(f"## Lecture {lecture}")[1].split("## Lecture")[0]
    assert shown.startswith(text.split(" instead")[0])


def test_page_loads_nothing_and_joins_every_module(tmp_path):
    for lecture in TITLES:
        text = page_of(lecture, guide="../lecture.html")
        assert re.findall(r'(?:src|href)="https?:[^"]*"', text) == []
        assert re.findall(r"^(?:import|export) ", text, re.MULTILINE) == []
        assert 'href="../lecture.html"' in text
        assert "{{" not in re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL)
