"""JavaScript export: cells, extreme numbers, functions, and workers under a strict policy."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pytest

from discriminant import GLM, LDA, QDA, SVM, Decision, Encoded, Logistic, OneVsRest
from discriminant.export import export
from discriminant.export.javascript import to_javascript
from discriminant.export.python import to_python
from tests.shared.javascript import SITE, JavaScriptError

RNG = np.random.default_rng(11)
CELLS = {
    "amount": [
        *(1, 2.5, -0.0, 1e-320, True, None, float("nan"), float("inf"), "3.5", " 1e3 ", ".5", "5."),
        *("", " ", "abc", "0x10", "1,5", "-", "inf", "1e", [1], [], {"a": 1}),
    ],
    "kind": ["a", "b", "never", "", None, 1, True, 0.5, "toString", "__proto__"],
    "code": [1, "1", "1.0", 2.0, 3, "x", None, True, 1.5],
    "size": [1e-05, 0.0001, 2.5, 1e16, 1.5e-7, 1.5e300, "1e-05", "0.00001", None],
    "flag": [True, False, 0, 1, "1", "True", None],
    "day": [
        *("2023-10-27", "2024-02-29", "2023-02-29", "2023-13-01", "2023-10-27 18:30", "27.10.2023"),
        *("2023-10-27T18:30:15.25", "2023-10-27T18:30+02:00", "2023-10-27T18:30Z", "0099-01-01"),
        *("2023-10-27T24:30", "", None, 19000, 19000.5, dt.date(2023, 10, 27), "1969-12-31 06:00"),
    ],
}


@pytest.fixture(params=["node", "chromium"])
def engine(request):
    return request.getfixturevalue(request.param)


def frame_of(rows=80):
    sizes = np.array([1e-05, 0.0001, 2.5, 1e16, 1.5e-7, 1.5e300])
    days = [dt.date(2023, 1, 1) + dt.timedelta(days=int(k)) for k in RNG.integers(0, 400, rows)]
    frame = pd.DataFrame(
        {
            "amount": RNG.normal(size=rows),
            "kind": RNG.choice(["a", "b", "c", "True"], rows),
            "code": RNG.integers(1, 4, rows),
            "size": sizes[np.arange(rows) % 6],
            "flag": RNG.random(rows) < 0.5,
            "day": days,
        }
    )
    return frame, np.where(frame["amount"] + RNG.normal(size=rows) > 0, "yes", "no")


def fitted_to_all_kinds(**options):
    frame, labels = frame_of()
    model = Encoded(LDA(shrinkage=0.1), categories=["code", "size"], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(frame, labels), frame


@pytest.mark.parametrize(
    "options", [{"missing": "mean"}, {"missing": "error"}, {"missing": "mean", "unseen": "ignore"}]
)
def test_every_cell_is_read_as_in_the_python_export(engine, options):
    model, frame = fitted_to_all_kinds(**options)
    scope = {}
    exec(to_python(model), scope)
    usual = frame.iloc[0].to_dict() | {"day": frame["day"][0].isoformat(), "flag": True}
    usual = {name: getattr(cell, "item", lambda cell=cell: cell)() for name, cell in usual.items()}
    cases = [(column, cell) for column, cells in CELLS.items() for cell in cells]
    rows = [usual | {column: cell} for column, cell in cases]
    answers = engine.answers(to_javascript(model), "outputs", rows)
    for (column, cell), row, answer in zip(cases, rows, answers, strict=True):
        try:
            expected = list(scope["answer"](row)["p"].values())
        except ValueError:
            assert answer["error"].startswith(f"The column '{column}' is") or (
                answer["error"] == f"The column '{column}' has an unknown category."
            )
        else:
            found = answer["result"]["p"]
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{column} {cell}")


def test_an_absent_column_is_an_error_even_if_objects_have_a_property_of_its_name(engine):
    frame = pd.DataFrame({"constructor": [0.0, 1.0, 4.0, 5.0]})
    text = to_javascript(LDA().fit(frame, list("aabb")))
    with pytest.raises(JavaScriptError, match="The row has no column 'constructor'"):
        engine.outputs(text, [{}])
    assert engine.call(text, "predict", [{"constructor": 4.4}]) == ["b"]


def rows_of_classes(classes, rows, features=4):
    codes = np.arange(rows) % classes
    centres = RNG.normal(size=(classes, features))
    return centres[codes] + 0.7 * RNG.normal(size=(rows, features)), codes


def extreme_models():
    X, y = rows_of_classes(3, 120)
    yield "offset of 1e8", X + 1e8, y, [LDA(), QDA(), Logistic(ridge=1e-4)]
    for unit in (1e-150, 1e150):
        yield f"unit of {unit}", X * unit, y, [LDA(), QDA(), SVM()]
    mixed = X * np.array([1e-150, 1.0, 1e150, 1e8]) + np.array([0, 1e8, 0, 0])
    yield "columns of all units", mixed, y, [LDA(), QDA()]
    doubled = np.column_stack([X, X[:, 0] - X[:, 1], np.ones(len(X))])
    yield "singular covariance", doubled, y, [LDA(), QDA(), Logistic(ridge=1e-4)]
    wide, codes = rows_of_classes(150, 900, 12)
    yield "many classes", wide, codes, [LDA(), QDA(shrinkage=0.5)]


def test_extreme_numbers_give_the_scores_of_the_model(engine):
    for case, X, y, models in extreme_models():
        columns = [f"x{j}" for j in range(X.shape[1])]
        rows = [dict(zip(columns, row, strict=True)) for row in X[:20].tolist()]
        for model in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            found = engine.outputs(to_javascript(model), rows)
            expected = model.decision_function(X[:20])
            scores = np.array([row["score"] for row in found])
            largest = np.abs(expected).max(axis=1, keepdims=True)
            error = np.abs(scores - expected) / np.maximum(largest, 1.0)
            assert error.max() < 1e-12, f"{case}, {model}"
            assert [row["label"] for row in found] == model.predict(X[:20]).tolist()


def names_of(text):
    return {line.split("(")[0].split()[-1] for line in text.splitlines() if "export f" in line}


def test_a_module_exports_the_functions_that_the_model_has():
    X, y = rows_of_classes(3, 60)
    cases = {
        LDA(): {"predict", "predictProba", "predictLogProba", "scores"},
        SVM(): {"predict", "scores"},
        Decision(LDA(), reject=0.2): {
            "predict",
            "predictProba",
            "predictLogProba",
            "scores",
            "decide",
        },
        Decision(LDA(), cost={0: {1: 2}}): {
            *("predict", "predictProba", "predictLogProba", "scores", "decide", "expectedCosts"),
        },
    }
    for model, names in cases.items():
        assert names_of(to_javascript(model.fit(X, y))) == names | {"outputs"}
    rest = to_javascript(OneVsRest(LDA()).fit(X, y), outputs=["score", "label"])
    assert names_of(rest) == {"outputs", "predict", "scores"}
    number = to_javascript(GLM("poisson").fit(X, np.exp(X[:, 0])))
    assert names_of(number) == {"outputs", "predict"}


def test_constants_name_the_columns_the_classes_and_the_actions(chromium):
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0], 'b"</script>': [1.0, 0.0, 1.0, 0.0]})
    labels = [10**17 + 1, 10**17 + 1, 2, 2]
    model = Decision(LDA(shrinkage=0.5), reject=0.3).fit(frame, labels)
    text = export(model, "javascript")
    assert "<" not in text.split("function cell")[0] and text.isascii()
    page, path = chromium.page, chromium.add(text)
    found = page.evaluate(
        "path => import(path).then(m => [m.columns, m.classes.map(String)])", path
    )
    assert found == [["a", 'b"</script>'], ["2", "100000000000000001"]]
    actions = page.evaluate("path => import(path).then(m => m.actions.map(String))", path)
    assert actions == ["2", "100000000000000001", "REJECT", "OUTLIER"]


def test_a_module_works_in_a_worker_under_a_policy_that_forbids_eval(chromium):
    X, y = rows_of_classes(2, 40)
    model = Decision(QDA(), reject=0.1).fit(X, np.where(y, "yes", "no"))
    rows = [dict(zip(["x0", "x1", "x2", "x3"], row, strict=True)) for row in X[:10].tolist()]
    path = chromium.add(to_javascript(model))
    worker = chromium.add(
        f"import {{ predict, decide }} from '{SITE}{path}';"
        "onmessage = (event) => {"
        " let forbidden = false; try { new Function('1')(); } catch { forbidden = true; }"
        " postMessage([forbidden, event.data.map(predict), event.data.map(decide)]); };"
    )
    found = chromium.page.evaluate(
        "([path, rows]) => new Promise((done, failed) => {"
        " const worker = new Worker(path, { type: 'module' });"
        " worker.onmessage = (event) => done(event.data);"
        " worker.onerror = (event) => failed(new Error(event.message));"
        " worker.postMessage(rows); })",
        [worker, rows],
    )
    decisions = [str(action) for action in model.decide(X[:10])]
    assert found == [True, model.predict(X[:10]).tolist(), decisions]
