"""The notebook widget: its traits in Python, and its script in Chromium with a stub model."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import discriminant as dd
from discriminant.errors import (
    InfiniteValueError,
    LibraryMissingError,
    MissingValueError,
    OptionError,
    ShapeError,
)
from discriminant.widget import boundary_widget, script, style

# What anywidget passes to `render`: traits with events. `changed` sets a trait as Python would.
MODEL = """
class Model {
  constructor(state) { this.state = state; this.listeners = {}; this.saved = 0; }
  get(name) { return structuredClone(this.state[name]); }
  set(name, value) { this.state[name] = value; }
  save_changes() { this.saved++; }
  on(name, call) { (this.listeners[name] ??= []).push(call); }
  off(name, call) { this.listeners[name] = this.listeners[name].filter((each) => each !== call); }
  changed(name, value) {
    this.state[name] = value;
    (this.listeners[`change:${name}`] ?? []).forEach((call) => call());
  }
}
"""
FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def rows(n=150):
    iris = load_iris(as_frame=True)
    keep = np.linspace(0, 149, n).astype(int)
    return iris.data.iloc[keep], iris.target_names[iris.target[keep]]


@pytest.fixture
def shown(browser, tmp_path):
    """A function that shows traits in a page; the model is `window.model`."""
    contexts = []

    def show(state):
        file = tmp_path / "widget.html"
        module = script().replace("export default", "window.widget =")
        file.write_text(
            f"<!doctype html><html lang=en><title>Notebook</title><style>{style()}</style>"
            f"<main id=cell></main><script type=module>{module}{MODEL}"
            f"window.model = new Model({json.dumps(state)});"
            "const el = document.querySelector('#cell'), { model } = window;"
            "window.end = window.widget.render({ model, el });"
            "</script></html>",
            encoding="utf-8",
        )
        context = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.wrong = []
        page.on("console", lambda message: page.wrong.append(message.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.goto(file.as_uri())
        page.evaluate(FRAME)
        return page

    yield show
    for context in contexts:
        context.close()


def state_of(X, y, **options):
    labels, codes = np.unique(y, return_inverse=True)
    state = {"model": "lda", "pooling": 0.5, "shrinkage": 0.0, "axes": [0, 1], "numbers": {}}
    return state | {
        "rows": X.to_numpy().tolist(),
        "codes": codes.tolist(),
        "labels": labels.tolist(),
        "features": list(X.columns),
        **options,
    }


@pytest.mark.parametrize(
    "options, model",
    [
        ({"model": "lda"}, dd.LDA()),
        ({"model": "qda", "axes": [2, 3]}, dd.QDA()),
        (
            {"model": "rda", "pooling": 0.3, "shrinkage": 0.2},
            dd.RDA(pooling=0.3, shrinkage=0.2),
        ),
    ],
)
def test_numbers_are_those_of_python(shown, options, model):
    X, y = rows(60)
    page = shown(state_of(X, y, **options))
    numbers = page.evaluate("model.get('numbers')")
    held = dd.leave_one_out(model, X.to_numpy(), y)
    wrong = int((model.fit(X, y).predict(X) != y).sum())
    assert numbers["training"] == wrong
    assert numbers["held_out"] == round(held.error * len(y))
    assert numbers["log_loss"] == pytest.approx(held.log_loss, rel=1e-9)
    assert page.wrong == []


def test_moved_points_and_controls_are_shared_with_python(shown):
    X, y = rows(60)
    page = shown(state_of(X, y))
    before = page.evaluate("model.get('rows')")
    page.locator(".points").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.evaluate(FRAME)
    after = page.evaluate("model.get('rows')")
    assert after[0][0] > before[0][0]
    assert after[0][1:] == before[0][1:]
    assert after[1:] == before[1:]
    page.locator("input[value=qda]").check()
    page.evaluate(FRAME)
    assert page.evaluate("model.get('model')") == "qda"
    assert page.evaluate("model.saved") >= 2
    assert page.wrong == []


def test_changes_in_python_are_shown(shown):
    X, y = rows(60)
    page = shown(state_of(X, y))
    page.evaluate("model.changed('model', 'rda'); model.changed('pooling', 0.1)")
    page.evaluate(FRAME)
    assert page.locator("input[value=rda]").is_checked()
    assert page.locator("input[type=range]").first.input_value() == "0.1"
    page.evaluate("model.changed('axes', [2, 3])")
    page.evaluate(FRAME)
    assert "petal length (cm)" in page.locator("svg.figure").first.text_content()
    page.evaluate("end()")
    assert page.evaluate("Object.values(model.listeners).flat().length") == 0
    assert page.wrong == []


def test_style_changes_nothing_outside_the_widget(shown):
    X, y = rows(60)
    page = shown(state_of(X, y))
    margin = page.evaluate("getComputedStyle(document.body).marginTop")
    assert margin == "8px"  # of the browser, not of the report
    accent = "(each) => getComputedStyle(each).getPropertyValue('--accent')"
    assert page.locator("body").evaluate(accent) == ""
    light = page.locator(".discriminant-widget").evaluate(accent)
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    assert page.locator(".discriminant-widget").evaluate(accent) != light


def test_traits_hold_the_table_and_the_estimator_its_model():
    pytest.importorskip("anywidget", reason="the widget needs anywidget")
    X, y = rows(60)
    widget = boundary_widget(X, y, model="rda", pooling=0.3, axes=(2, 3))
    assert widget.features == list(X.columns)
    assert widget.labels == ["setosa", "versicolor", "virginica"]
    assert np.array(widget.rows).tolist() == X.to_numpy().tolist()
    assert "export default { render" in widget._esm
    expected = dd.RDA(pooling=0.3, shrinkage=0.0).fit(X.to_numpy(), y)
    assert np.allclose(
        widget.estimator().predict_proba(X.to_numpy()), expected.predict_proba(X.to_numpy())
    )
    widget.rows = widget.rows[:40]
    widget.codes = widget.codes[:40]
    assert widget.estimator().moments_.rows.sum() == 40


def test_widget_rejects_a_model_and_a_table_that_it_cannot_show():
    X, y = rows(60)
    with pytest.raises(OptionError, match="'lda', 'qda' or 'rda'"):
        boundary_widget(X, y, model="svm")
    with pytest.raises(ShapeError, match=r"at most 1000 rows.*has 1001 rows"):
        boundary_widget(np.zeros((1001, 2)), np.arange(1001) % 2)
    with pytest.raises(ShapeError, match=r"2 to 8 classes.*9 classes"):
        boundary_widget(np.zeros((18, 2)), np.arange(18) % 9)


@pytest.mark.parametrize(
    "change, options, error, reason",
    [
        (np.nan, {}, MissingValueError, "Row 3.*column 'b'"),
        (np.inf, {}, InfiniteValueError, "Row 3.*column 'b'"),
        ("text", {}, OptionError, "numeric features only"),
        (0.0, {"axes": (0, 9)}, OptionError, "from 0 to 1"),
        (0.0, {"axes": (0, 0.5)}, OptionError, "two positions"),
        (0.0, {"axes": (0,)}, OptionError, "two positions"),
        (0.0, {"pooling": 3}, OptionError, "a number from 0 to 1"),
        (0.0, {"shrinkage": "0"}, OptionError, "a number from 0 to 1"),
    ],
)
def test_widget_rejects_cells_and_options_with_the_reason(change, options, error, reason):
    X = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0) ** 2}).astype(object)
    X.loc[3, "b"] = change
    with pytest.raises(error, match=reason):
        boundary_widget(X, [0, 1, 0, 1, 0, 1], **options)


def test_estimator_predicts_the_labels_of_y():
    pytest.importorskip("anywidget", reason="the widget needs anywidget")
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    widget = boundary_widget(X, y)
    assert widget.labels == ["0", "1"]
    assert widget.estimator().classes_.tolist() == [0, 1]


def test_rows_and_codes_of_different_lengths_are_not_drawn(shown):
    X, y = rows(60)
    page = shown(state_of(X, y))
    page.evaluate("model.changed('rows', model.get('rows').slice(0, 59))")
    page.evaluate(FRAME)
    assert page.evaluate("model.get('rows').length") == 59
    page.evaluate("model.changed('codes', model.get('codes').slice(0, 59))")
    page.evaluate(FRAME)
    assert page.evaluate("model.get('codes').length") == 59
    page.locator(".numbers", has_text="of 59").wait_for(timeout=5000)
    assert page.wrong == []


def test_error_names_the_extra_where_anywidget_is_missing(monkeypatch):
    from discriminant import widget

    monkeypatch.setitem(sys.modules, "anywidget", None)
    widget._widget_class.cache_clear()
    with pytest.raises(LibraryMissingError, match=r"discriminant\[notebook\]"):
        boundary_widget(*rows(60))
    widget._widget_class.cache_clear()
