"""The studio in Chromium: upload, dials, export, and the model answers as Python does."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.table.files.example_tables import EXAMPLES
from tests.unit.web.conftest import table

AXE = Path(__file__).parents[2] / "shared" / "vendor" / "axe-core" / "axe.min.js"
RUN_AXE = "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id))"
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
TABS = ("decide", "what-if", "cohorts", "columns", "export")


@pytest.fixture(scope="module")
def url():
    """The address of a running studio."""
    command = [sys.executable, "-m", "discriminant", "studio", "--no-browser"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    yield process.stderr.readline().split()[1]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


@pytest.fixture
def open_page(browser, url):
    """A function that opens the studio; `faults` lists errors, violations and foreign requests."""
    contexts = []

    def open_studio(width=1280, scheme="light", fragment=""):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.add_init_script(VIOLATIONS)
        faults = []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        place = url.partition("/#")[0]
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((place, "blob:")) else faults.append(request.url)
            ),
        )
        page.goto(url + fragment)
        page.locator("[data-example]").first.wait_for(state="attached")
        return SimpleNamespace(page=page, faults=faults)

    yield open_studio
    for context in contexts:
        context.close()


def frame_of_rows():
    frame, labels = table(180)
    return frame.assign(kind=labels)


def upload(page, frame, name="kinds.csv"):
    page.set_input_files(
        "#file",
        {"name": name, "mimeType": "text/csv", "buffer": frame.to_csv(index=False).encode()},
    )
    page.locator("#open-table").click()
    page.locator("#workbench").wait_for()


def slide(page, name, value):
    page.evaluate(
        "([name, value]) => { const input = document.getElementById(name);"
        " input.value = value; input.dispatchEvent(new Event('input')); }",
        [name, str(value)],
    )


def settle(page):
    """Wait until a change is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 200)))")


def confusion(page):
    cells = page.locator("#confusion tbody td button")
    return [int(text.split()[0].replace(",", "")) for text in cells.all_text_contents()]


def check_clean(opened):
    assert opened.faults == []
    assert opened.page.evaluate("window.violations") == []


def test_upload_dials_and_export_give_the_model_of_python(open_page, tmp_path):
    opened = open_page()
    page, frame = opened.page, frame_of_rows()
    upload(page, frame)
    page.select_option("#model", "rda")
    slide(page, "pooling", 0.3)
    slide(page, "prior-0", 0.5)
    page.fill("#cost-0-1", "3")
    page.check("#rejects")
    page.locator("#columns-on input").nth(1).uncheck()
    settle(page)

    model = dd.RDA(pooling=0.3, prior=page_prior(page))
    X, y = frame[["size", "colour"]], frame["kind"].to_numpy()
    held = dd.leave_one_out(model, dd.Encoded(model).fit(X, y).encode(X), y)
    cost = {
        "a": {"a": 0, "b": 3, "c": 1},
        "b": {"a": 1, "b": 0, "c": 1},
        "c": {"a": 1, "b": 1, "c": 0},
    }
    tally = dd.assess(
        y, log_posterior=held.log_posterior, classes=list("abc"), cost=cost, reject=0.2
    )
    assert confusion(page) == tally.weight.astype(int).ravel().tolist()

    page.click("#tab-export")
    with page.expect_download() as download:
        page.click("[data-format=model]")
    file = tmp_path / "page.model"
    download.value.save_as(file)
    own = dd.Decision.of_fitted(dd.Encoded(model).fit(X, y), cost=cost, reject=0.2)
    loaded = dd.load(file)
    np.testing.assert_allclose(loaded.predict_proba(frame), own.predict_proba(X), atol=1e-9)
    assert loaded.decide(frame).tolist() == own.decide(X).tolist()
    page.locator("#code").get_by_text("dd.RDA(pooling=0.3").wait_for()
    check_clean(opened)


def test_squares_and_products_give_the_left_out_predictions_of_python(open_page):
    opened = open_page()
    page = opened.page
    page.click("[data-example=iris]")
    page.locator("#workbench").wait_for()
    page.check("#degree")
    for model, classifier in [("lda", dd.LDA()), ("rda", dd.RDA(pooling=0.5, shrinkage=0.2))]:
        page.select_option("#model", model)
        slide(page, "shrinkage", 0.2 if model == "rda" else 0)
        settle(page)
        page.locator("#error-about:not(:has-text('updating'))").wait_for()
        frame = pd.read_csv(io.BytesIO(EXAMPLES[0].csv()))
        X, y = frame.drop(columns="species").to_numpy(), frame["species"].to_numpy()
        held = dd.leave_one_out(classifier, dd.Basis(degree=2).fit_transform(X), y)
        counts = dd.assess(y, held.predicted).weight
        assert confusion(page) == counts.astype(int).ravel().tolist()
    check_clean(opened)


NO_CLOSED_FORM = {
    "lda": dd.LDA(shrinkage=0.1),
    "qda": dd.QDA(shrinkage=0.1),
    "rda": dd.RDA(pooling=0.5, shrinkage=0.1),
    "student": dd.LDA(shrinkage=0.1, predictive="student"),
}


def left_out(model, X, y):
    """Counts of Python's decisions, each row predicted by the model fitted to all others."""
    return dd.assess(y, dd.leave_one_out(model, X, y).predicted).weight.astype(int).ravel().tolist()


@pytest.mark.parametrize("name", NO_CLOSED_FORM)
def test_models_without_a_closed_form_give_the_left_out_predictions_of_python(open_page, name):
    opened = open_page()
    page = opened.page
    page.click("[data-example=breast_cancer]")
    page.locator("#workbench").wait_for()
    page.select_option("#model", name)
    slide(page, "shrinkage", 0.1)
    settle(page)
    page.locator("#error-about:not(:has-text('updating'))").wait_for()
    frame = pd.read_csv(io.BytesIO(EXAMPLES[2].csv()))
    X, y = frame.drop(columns="diagnosis").to_numpy(), frame["diagnosis"].to_numpy()
    assert confusion(page) == left_out(NO_CLOSED_FORM[name], X, y)
    check_clean(opened)


def test_worker_gives_the_left_out_predictions_of_python(open_page):
    """Some points are left out at once, and all by the worker; a prior needs no worker."""
    rng = np.random.default_rng(3)
    y = rng.choice(["a", "b", "c"], 900)
    X = (
        rng.normal(size=(900, 40))
        + 0.4 * rng.normal(size=(3, 40))[np.unique(y, return_inverse=True)[1]]
    )
    opened = open_page()
    page = opened.page
    upload(page, pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]).assign(kind=y))
    page.select_option("#model", "rda")
    slide(page, "pooling", 0.5)
    slide(page, "shrinkage", 0.1)
    page.locator("#error-about", has_text="updating").wait_for()
    some = sum(confusion(page))
    assert 40 <= some <= 500
    page.locator("#error-about:not(:has-text('updating'))").wait_for()
    assert confusion(page) == left_out(dd.RDA(pooling=0.5, shrinkage=0.1), X, y)
    slide(page, "prior-0", 0.7)
    settle(page)
    prior = page_prior(page)
    page.locator("#error-about:not(:has-text('updating'))").wait_for()
    assert confusion(page) == left_out(dd.RDA(pooling=0.5, shrinkage=0.1, prior=prior), X, y)
    check_clean(opened)


def page_prior(page):
    page.wait_for_url(lambda address: "prior=" in address)
    fragment = page.evaluate("location.hash")
    text = next(part for part in fragment[1:].split("&") if part.startswith("prior="))
    return [float(value) for value in text[6:].replace("%2C", ",").split(",")]


def test_edited_points_reach_the_exported_model(open_page, tmp_path, monkeypatch):
    opened = open_page()
    page, frame = opened.page, frame_of_rows()
    upload(page, frame)
    page.focus("#space")
    for key in ("ArrowRight", "Shift+ArrowUp", "Shift+ArrowUp", "ArrowLeft", "Delete"):
        page.keyboard.press(key)
        settle(page)
    box = page.locator("#space").bounding_box()
    page.check("input[name=tool][value=draw]")
    page.mouse.click(box["x"] + 200, box["y"] + 150)
    settle(page)
    page.click("#tab-export")
    page.locator("#code").get_by_text("np.delete").wait_for()
    code = page.locator("#code").text_content()
    assert page.locator("#error-about").text_content().split()[2] == "180"  # one less, one more
    (tmp_path / "kinds.csv").write_text(frame.to_csv(index=False))
    monkeypatch.chdir(tmp_path)
    exec(code, scope := {})
    with page.expect_download() as download:
        page.click("[data-format=model]")
    download.value.save_as(tmp_path / "page.model")
    loaded = dd.load(tmp_path / "page.model")
    np.testing.assert_allclose(
        loaded.predict_proba(frame), scope["model"].predict_proba(frame), atol=1e-8
    )
    for _ in range(4):
        page.click("#undo")
    settle(page)
    assert page.locator("#undo").is_disabled()
    assert page.locator("#reset").is_hidden()
    check_clean(opened)


def test_url_restores_the_table_and_the_dials(open_page):
    opened = open_page()
    page = opened.page
    page.click("[data-example=iris]")
    page.locator("#workbench").wait_for()
    page.select_option("#model", "qda")
    slide(page, "shrinkage", 0.25)
    page.select_option("#axis-0", "f2")
    page.click("#tab-cohorts")
    page.wait_for_url(lambda address: "shrinkage=0.25" in address and "tab=cohorts" in address)
    state = page.evaluate("location.hash")
    assert "token" not in state
    again = open_page(fragment="&" + state[1:]).page
    again.locator("#workbench").wait_for()
    assert again.input_value("#axis-0") == "f2"
    assert again.input_value("#model") == "qda"
    assert again.locator("#shrinkage-value").text_content() == "0.25"
    assert again.locator("#cohorts").is_visible()
    check_clean(opened)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_page_violates_no_rule_of_axe_and_fits_the_screen(open_page, width, scheme):
    opened = open_page(width, scheme)
    page = opened.page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(RUN_AXE) == []
    page.click("[data-example=wine]")
    page.locator("#workbench").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.focus("#space")
    page.keyboard.press("ArrowRight")
    page.check("#rejects")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        settle(page)
        assert page.evaluate(RUN_AXE) == [], tab
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
    check_clean(opened)


def is_blank(page):
    """Whether the canvas of the space has one colour only."""
    return page.evaluate(
        "() => { const { width, height } = document.getElementById('space');"
        " const data = document.getElementById('space').getContext('2d')"
        ".getImageData(0, 0, width, height).data;"
        " return new Set(new Uint32Array(data.buffer)).size < 2; }"
    )


def canvas(page):
    return page.evaluate("document.getElementById('space').toDataURL()")


def test_every_control_changes_what_it_names(open_page):
    """Each control of the workbench changes the picture, the URL or a figure; none fails."""
    opened = open_page()
    page = opened.page
    upload(page, frame_of_rows())
    settle(page)
    assert not is_blank(page)

    def changes(action, state):
        before = state()
        action()
        settle(page)
        assert state() != before, action

    def text(selector):
        return lambda: page.locator(selector).text_content()

    for id in ("boundaries", "ellipses", "errors", "points"):  # what is drawn
        box = page.locator("#shows label", has_text=id.capitalize()).locator("input")
        changes(box.uncheck, lambda: canvas(page))
        box.check()
    for name in ("Zoom in", "Zoom out"):
        changes(page.get_by_role("button", name=name).click, lambda: canvas(page))
    changes(lambda: page.select_option("#axis-1", "f0"), lambda: canvas(page))
    page.get_by_role("button", name="Fit").click()

    box = page.locator("#space").bounding_box()  # tools
    page.check("input[name=tool][value=lasso]")
    corners = [(60, 20), (box["width"] - 20, 20), (box["width"] - 20, 200), (60, 200)]
    page.mouse.move(box["x"] + 60, box["y"] + 20)
    page.mouse.down()
    for x, y in corners:
        page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.up()
    settle(page)
    chosen = int(page.locator("#chosen-count").text_content().split()[0])
    assert 0 < chosen < 180
    changes(lambda: page.select_option("#chosen-class", "1"), text("#confusion"))
    changes(page.locator("#chosen-clear").click, page.locator("#chosen").is_visible)
    changes(page.locator("#undo").click, text("#confusion"))
    changes(page.locator("#redo").click, text("#confusion"))
    changes(page.locator("#reset").click, text("#confusion"))
    page.check("input[name=tool][value=move]")

    for model in ("qda", "rda", "student", "nearest_mean", "ridge", "logistic", "lda"):
        page.select_option("#model", model)
        settle(page)
        assert "NaN" not in page.locator("main").inner_text()
        assert not page.locator("#error").text_content().startswith("–"), model
    changes(lambda: page.check("#degree"), text("#confusion-note"))
    page.uncheck("#degree")
    changes(lambda: slide(page, "shrinkage", 0.9), lambda: canvas(page))
    page.locator("#plane").wait_for()
    changes(page.locator("#best").click, text("#model-about"))
    page.focus("#surface")
    changes(lambda: page.keyboard.press("ArrowLeft"), text("#pooling-value"))
    changes(lambda: slide(page, "prior-2", 0.8), text("#error-about"))
    changes(page.get_by_role("button", name="Equal").click, text("#prior-value-0"))
    changes(page.get_by_role("button", name="As in the data").click, text("#prior-value-0"))
    changes(lambda: page.fill("#cost-0-1", "5"), text("#error-about"))
    assert "mean cost" in page.locator("#error-about").text_content()
    page.check("#rejects")
    changes(lambda: slide(page, "reject", 0.02), text("#error-about"))
    page.uncheck("#rejects")
    page.locator("#columns-on input").first.uncheck()
    settle(page)
    changes(page.get_by_role("button", name="All", exact=True).click, text("#features-count"))

    changes(lambda: page.select_option("#own-class", "2"), text("#threshold-about"))
    changes(lambda: slide(page, "threshold", 0.9), text("#threshold-about"))
    changes(page.locator("#confusion button").first.click, page.locator("#chosen").is_visible)
    changes(page.locator("#chosen-forget").click, text("#confusion"))
    page.click("#tab-what-if")
    settle(page)
    page.get_by_role("button", name="Average row").click()
    changes(lambda: page.locator("#what-if input[type=range]").first.fill("4"), text("#why"))
    changes(page.get_by_role("button", name="As it was").click, text("#why"))
    page.click("#tab-cohorts")
    page.locator("#slices table").wait_for()
    changes(lambda: page.select_option("#slice-column", "colour"), text("#slices"))
    changes(lambda: page.select_option("#slice-class", "1"), text("#slices"))
    later = frame_of_rows().drop(columns="kind").to_csv(index=False).encode()
    page.set_input_files("#drift-file", {"name": "b.csv", "mimeType": "text/csv", "buffer": later})
    page.locator("#drift table").wait_for()
    page.click("#tab-columns")
    page.locator("#checks").get_by_text("findings").wait_for()
    page.select_option("select[data-column=size]", "exclude")
    page.click("#reread")
    page.locator("#columns-on input").nth(2).wait_for(state="detached")
    page.click("#tab-export")
    for kind in ("model", "python", "javascript", "sql", "onnx"):
        with page.expect_download() as download:
            page.click(f"[data-format={kind}]")
        assert Path(download.value.path()).stat().st_size > 300
    page.click("#home")
    page.locator("#start").wait_for()
    changes(page.locator("#theme").click, text("#theme"))
    check_clean(opened)


def test_studio_works_while_every_other_address_fails(open_page):
    """Nothing that the page does needs another host: all requests to other hosts are aborted."""
    opened = open_page()
    page = opened.page
    host = page.url.partition("/#")[0]
    page.context.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith(host) else route.abort(),
    )
    page.reload()
    page.click("[data-example=iris]")
    page.locator("#workbench").wait_for()
    for tab in TABS:
        page.click(f"#tab-{tab}")
        settle(page)
    page.locator("#code").get_by_text("dd.LDA").wait_for()
    check_clean(opened)


def test_count_that_fails_is_reported_and_asked_again(open_page):
    """Exact counts of a large table: a failure is shown, and the next change asks again."""
    frame, labels = table(6000)
    opened = open_page()
    page = opened.page
    fails = []

    def answer(route):
        if len(fails) < 1:
            fails.append(route.request.url)
            route.fulfill(status=503, json={"error": "The server is busy.", "kind": "Busy"})
        else:
            route.continue_()

    page.route("**/evaluate", answer)
    upload(page, frame.assign(kind=labels))
    page.locator("#confusion-note", has_text="The server is busy.").wait_for()
    assert sum(confusion(page)) == 5000
    page.wait_for_timeout(2100)
    slide(page, "shrinkage", 0.1)
    page.locator("#confusion-note", has_text="6,000 rows").wait_for()
    model = dd.Encoded(dd.LDA(shrinkage=0.1)).fit(frame, labels)
    expected = dd.assess(labels, model.predict(frame)).weight.astype(int).ravel().tolist()
    assert confusion(page) == expected
    assert len(fails) == 1
    assert len(opened.faults) == 1  # the browser logs the refused request


def test_what_if_reaches_the_other_side_of_the_boundary(open_page):
    opened = open_page()
    page = opened.page
    page.click("[data-example=iris]")
    page.locator("#workbench").wait_for()
    page.focus("#space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    before = page.locator("#prediction .decision").text_content()
    row = {}
    page.locator("#flip-buttons button").first.click()
    settle(page)
    after = page.locator("#prediction .decision").text_content()
    for label in page.locator("#what-if .field").all():
        name = label.locator("label").text_content()
        row[name] = [float(label.locator("input[type=number]").input_value())]
    assert after != before
    example = pd.read_csv(io.BytesIO(EXAMPLES[0].csv()))
    model = dd.Encoded(dd.LDA()).fit(example.drop(columns="species"), example["species"])
    p = model.predict_proba(pd.DataFrame(row))[0]
    assert np.sort(p)[-2] == pytest.approx(0.5, abs=1e-4)  # on the boundary, up to shown digits
    check_clean(opened)


def test_lecture_pages_work_in_the_studio(open_page):
    opened = open_page()
    page = opened.page
    page.locator("#lectures a").first.wait_for()
    page.goto(page.locator("#lectures a").nth(2).evaluate("(link) => link.href"))
    page.locator("svg").first.wait_for()
    check_clean(opened)


def test_wrong_table_is_explained(open_page):
    opened = open_page()
    page = opened.page
    page.click("summary:has-text('Paste rows')")
    page.fill("#paste", "a,b\n1,x\n2,x\n")
    page.click("#paste-open")
    page.select_option("#target", "b")
    page.click("#open-table")
    page.locator("#start-note", has_text="class").wait_for()
    assert "x" in page.locator("#start-note").text_content()
    assert json.dumps(opened.faults).count("400") == 1  # the browser logs the refused request
