"""The form of the page that predicts one row, compared with the fitted model in Python."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import discriminant as dd
from discriminant.report.fact_types import Facts
from discriminant.report.sections.one_row import one_row_section
from discriminant.report.sections.row_sample import RowSample
from discriminant.study.models import resolve_models
from discriminant.table.memory import as_table
from tests.unit.report.samples import cancer, iris


@pytest.fixture(scope="module")
def mixed():
    """A table with columns of every kind, some cells missing."""
    generator = np.random.default_rng(3)
    n = 240
    size = generator.normal(5.0, 2.0, n)
    colour = generator.choice(["red", "green", "blue"], n)
    grade = generator.choice(["low", "mid", "high"], n)
    old = generator.random(n) < 0.5
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 300, n), unit="D")
    lead = size - 5 + 2.0 * (colour == "red") + 1.5 * old + generator.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": np.where(generator.random(n) < 0.1, np.nan, size.round(2)),
            "colour": np.where(generator.random(n) < 0.1, None, colour),
            "grade": grade,
            "old": old,
            "day": day,
            "count": generator.integers(0, 9, n),
            "kind": np.where(lead > 1.2, "yes", "no"),
        }
    )
    return frame


def study_of(frame, model="logistic", missing="indicator"):
    study = dd.study(
        frame, target="kind", missing=missing, ordered={"grade": ["low", "mid", "high"]}, folds=4
    )
    study.compare([model])
    study.choose(model)
    return study


@pytest.fixture(scope="module")
def study(mixed):
    return study_of(mixed)


@pytest.fixture(scope="module")
def facts(study) -> Facts:
    return study.facts()


def outputs(page, fields, cells):
    names = [field["name"] for field in fields]
    return page.evaluate(
        "([names, cells]) => rowModel.outputs("
        "Object.fromEntries(names.map((name, i) => [name, cells[i]])))",
        [names, cells],
    )


def table_of(page, place):
    return page.eval_on_selector_all(
        f"{place} tbody tr", "rows => rows.map(row => [...row.cells].map(c => c.textContent))"
    )


def signed(text):
    return float(text.replace("−", "-").replace(",", ""))


def test_examples_have_the_probabilities_of_python_to_twelve_digits(opened, study, facts, mixed):
    page, one = opened(facts), facts["one_row"]
    rows = [example["row"] for example in one["examples"]]
    expected = study.model().predict_proba(mixed.drop(columns="kind").iloc[rows])
    found = [outputs(page, one["fields"], example["cells"])["p"] for example in one["examples"]]
    assert len(rows) > 5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_form_has_a_field_of_the_right_kind_for_every_column(opened, facts):
    page = opened(facts)
    kinds = {field["name"]: field["kind"] for field in facts["one_row"]["fields"]}
    tags = page.eval_on_selector_all("[data-field]", "all => all.map(one => one.tagName)")
    assert kinds == {
        "size": "number",
        "colour": "category",
        "grade": "ordered",
        "old": "boolean",
        "day": "date",
        "count": "number",
    }
    assert tags == ["INPUT", "SELECT", "SELECT", "SELECT", "INPUT", "INPUT"]


def test_cells_written_into_the_form_are_read_back(opened, facts, study, mixed):
    page, one = opened(facts), facts["one_row"]
    for i, example in enumerate(one["examples"]):
        page.select_option("#row-start", str(i))
        row = mixed.drop(columns="kind").iloc[[example["row"]]]
        p = dict(zip(["no", "yes"], study.model().predict_proba(row)[0], strict=True))
        shown = table_of(page, "#row-classes")
        assert {label: text for label, text, _ in shown} == {
            label: percent_of(share) for label, share in p.items()
        }


def percent_of(share):
    if 100 * share < 0.005:
        return "< 0.01%"
    if round(100 * share, 1) == 100:
        return "> 99.9%"
    return f"{100 * share:.1f}%" if round(100 * share, 1) else f"{100 * share:.2f}%"


@pytest.fixture(scope="module")
def linear():
    """LDA on six columns of the breast cancer data: facts, weights and means by NumPy alone."""
    found = load_breast_cancer(as_frame=True)
    frame = found.data.iloc[:, :6].assign(kind=np.where(found.target, "benign", "malignant"))
    study = dd.study(frame, target="kind", folds=4)
    study.compare(["lda"])
    X, own = frame.iloc[:, :6].to_numpy(), (frame["kind"] == "malignant").to_numpy()
    groups = [X[~own], X[own]]
    within = sum(np.cov(one.T) * (len(one) - 1) for one in groups) / (len(X) - 2)
    weights = np.linalg.solve(within, groups[1].mean(axis=0) - groups[0].mean(axis=0))
    return study.facts(), weights, X


def test_contributions_of_a_linear_model_are_weight_times_distance_from_the_mean(opened, linear):
    facts, weights, X = linear
    page, one = opened(facts), facts["one_row"]
    place = next(i for i, e in enumerate(one["examples"]) if "typical of malignant" in e["text"])
    page.select_option("#row-start", str(place))
    page.wait_for_function("document.querySelectorAll('#row-parts tbody tr').length === 6")
    x = X[one["examples"][place]["row"]]
    typical = [field["typical"] for field in one["fields"]]
    np.testing.assert_allclose(typical, X.mean(axis=0), rtol=1e-5)
    expected = weights * (x - np.array(typical))
    page.wait_for_function(
        "(text) => document.querySelector('#row-evidence').textContent.includes(text)",
        arg="malignant against benign",
    )
    found = {line[0]: signed(line[3]) for line in table_of(page, "#row-parts")}
    names = [field["name"] for field in one["fields"]]
    np.testing.assert_allclose([found[name] for name in names], expected, rtol=0.06, atol=0.006)
    evidence = page.inner_text("#row-evidence").replace("−", "-")
    pattern = r": (-?[\d.]+) for this row, (-?[\d.]+) for a typical row"
    here, mean = map(float, re.search(pattern, evidence).groups())
    assert here - mean == pytest.approx(expected.sum(), abs=0.02 * abs(expected.sum()))


def test_change_that_flips_the_decision_does_and_half_of_it_does_not(opened, linear):
    facts, _, _ = linear
    page = opened(facts)
    page.wait_for_function("document.querySelector('#row-flip').textContent !== ''")
    before = page.inner_text("#row-answer b")
    text = page.inner_text("#row-flip")
    pattern = r": (.+?) from (\S+) to (\S+) \(.*?\) gives (\w+)"
    name, old, new, after = re.search(pattern, text).groups()
    i = [field["name"] for field in facts["one_row"]["fields"]].index(name)
    page.fill(f"#field-{i}", str((float(old) + float(new)) / 2))
    half = page.inner_text("#row-answer b")
    page.fill(f"#field-{i}", new)
    assert (half, page.inner_text("#row-answer b"), before != after) == (before, after, True)


def test_change_by_category_is_named(opened, study, facts):
    page, one = opened(facts), facts["one_row"]
    texts = []
    for i in range(len(one["examples"])):
        page.select_option("#row-start", str(i))
        page.wait_for_timeout(150)
        texts.append(page.inner_text("#row-flip"))
    pattern = "(colour|old) from (red|blue|green|no|yes|missing) to"
    assert any(re.search(pattern, text) for text in texts)


def test_form_works_from_the_keyboard(opened, linear):
    page = opened(linear[0])
    before = page.inner_text("#row-answer")
    page.focus("#row-start")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("28")
    assert page.evaluate("document.activeElement.id") == "field-0"
    assert page.inner_text("#row-answer") != before


def test_text_in_a_number_is_refused_by_name_of_the_column(opened, linear):
    page = opened(linear[0])
    page.fill("#field-0", "wide")
    name = linear[0]["one_row"]["fields"][0]["name"]
    assert page.inner_text("#row-answer") == f"The column '{name}' is not a number."
    assert table_of(page, "#row-parts") == []


def test_value_beyond_the_rows_is_called_an_extrapolation(opened, linear):
    page = opened(linear[0])
    page.fill("#field-0", "1000")
    assert "outside the range of the rows" in page.inner_text("#row-answer")


def test_row_to_look_at_opens_in_the_form(opened, linear):
    page = opened(linear[0])
    button = page.locator("tr[data-row] button.to-form").first
    number = button.inner_text()
    button.click()
    chosen = page.eval_on_selector("#row-start", "one => one.selectedOptions[0].textContent")
    assert chosen.startswith(f"row {number},")


def test_rejected_row_is_said_to_be_rejected(opened, mixed):
    study = study_of(mixed, missing="mean")
    study.decide(reject=0.05)
    facts = study.facts()
    page, one = opened(facts), facts["one_row"]
    place = next(i for i, e in enumerate(one["examples"]) if "unsure" in e["text"])
    page.select_option("#row-start", str(place))
    assert page.inner_text("#row-answer b") == "rejected"


@pytest.fixture(scope="module")
def wine():
    from sklearn.datasets import load_wine

    found = load_wine(as_frame=True)
    frame = found.data.iloc[:, :5].copy()
    return frame, found.target_names[found.target]


@pytest.mark.parametrize("name", ["pool", *(one.name for one in resolve_models(["all"]))])
def test_every_model_of_the_comparison_has_a_form_with_its_own_answers(opened, wine, name):
    frame, y = wine
    study = dd.study(frame.assign(kind=y), target="kind", folds=3)
    study.compare(["lda", "qda", "logistic"] if name == "pool" else [name])
    model, table = study.model(name), as_table(frame, y)
    section = one_row_section(model, table, RowSample.of(table, most=500), None)
    assert section is not None
    facts = dict(iris()) | {"one_row": section}
    page = opened(facts)
    cells = frame.iloc[[0, 60, 130, 177]]
    found = [outputs(page, section["fields"], row) for row in cells.to_numpy().tolist()]
    assert [one["label"] for one in found] == model.predict(cells).tolist()
    assert ("p" in found[0]) == hasattr(model, "predict_proba")
    if "p" in found[0]:
        p = [one["p"] for one in found]
        np.testing.assert_allclose(p, model.predict_proba(cells), rtol=0, atol=1e-12)


def form_of(frame, y, name, **options):
    """Page facts with the form of a model of the comparison, and the model."""
    study = dd.study(frame.assign(kind=y), target="kind", folds=3)
    study.compare(["lda", "qda", "logistic"] if name == "pool" else [name])
    model, table = study.model(name), as_table(frame, y)
    sample = RowSample.of(table, most=500)
    section = one_row_section(model, table, sample, None, **options)
    assert section is not None
    return dict(iris()) | {"one_row": section}, model


@pytest.mark.parametrize("name", ["pool", "logistic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_log_odds_are_those_of_the_probabilities_and_contributions_add_up(
    opened, wine, name, classes
):
    frame, y = wine
    own = np.isin(y, np.unique(y)[:classes])
    facts, model = form_of(frame[own], y[own], name)
    page = opened(facts)
    examples = facts["one_row"]["examples"]
    assert len(examples) == classes
    for i, example in enumerate(examples):
        page.select_option("#row-start", str(i))
        page.wait_for_timeout(200)
        p = model.predict_proba(frame[own].iloc[[example["row"]]])[0]
        first, second = np.sort(p)[::-1][:2]
        evidence = page.inner_text("#row-evidence").replace("−", "-").replace(",", "")
        assert evidence.startswith("Log odds of ")
        pattern = r": (-?[\d.]+) for this row (-?[\d.]+) for a typical row"
        here, typical = re.search(pattern, evidence).groups()
        assert float(here) == pytest.approx(np.log(first / second), abs=rounding(here))
        parts = [line[3] for line in table_of(page, "#row-parts")]
        expected = float(here) - float(typical)
        within = sum(map(rounding, [here, typical, *parts]))
        assert sum(map(signed, parts)) == pytest.approx(expected, abs=within)


def rounding(text):
    """Half a unit of the last digit of a number."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) * (1 + 1e-9)


def test_typical_row_is_the_nearest_that_is_decided_as_its_class(wine):
    frame, y = wine
    table = as_table(frame, y)
    sample = RowSample.of(table, most=500)
    scaled = sample.features / sample.features.std(axis=0)
    own = np.flatnonzero(sample.codes == 1)
    order = own[np.argsort(((scaled[own] - scaled[own].mean(axis=0)) ** 2).sum(axis=1))]
    model = dd.LDA().fit(frame, y)

    def decide(features):  # the two rows nearest to the mean of class 1 are decided as class 0
        near = (features[:, None, :] == sample.features[order[:2]]).all(axis=2).any(axis=1)
        return np.where(near, 0, 1)

    texts = [
        example["text"]
        for example in one_row_section(model, table, sample, None, decide=decide)["examples"]
    ]
    labels = sample.labels
    assert f"row {order[2]}, typical of {labels[1]}" in texts
    assert any(
        text.endswith(f"typical of {labels[0]}, but decided as {labels[1]}") for text in texts
    )
    assert len(texts) == 3


def test_no_change_of_an_identifier_or_a_leak_is_suggested(opened, wine):
    frame, y = wine
    plain, _ = form_of(frame, y, "lda")
    page = opened(plain)
    page.wait_for_function("document.querySelector('#row-flip').textContent !== ''")
    suggested = re.search(r": (.+?) from", page.inner_text("#row-flip")).group(1)
    facts, _ = form_of(frame, y, "lda", unchanged=[suggested])
    page = opened(facts)
    page.wait_for_function("document.querySelector('#row-flip').textContent !== ''")
    text = page.inner_text("#row-flip")
    assert f"{suggested} from" not in text
    assert f"No change of {suggested} is suggested" in text


def test_values_have_few_digits_and_the_prediction_keeps_all_of_them(opened, wine):
    frame, y = wine
    single = frame.iloc[:, :3].astype(np.float32).assign(long=frame.iloc[:, 0] / 3 + 1e4)
    facts, model = form_of(single, y, "logistic")
    page, one = opened(facts), facts["one_row"]
    row = one["examples"][0]["row"]
    cells = page.eval_on_selector_all("[data-field]", "all => all.map(one => one.value)")
    assert cells[:3] == [str(single[name].iloc[row]) for name in single.columns[:3]]
    assert cells[3] == f"{single['long'].iloc[row]:.6g}"
    p = dict(zip(model.classes_, model.predict_proba(single.iloc[[row]])[0], strict=True))
    shown = {label: text for label, text, _ in table_of(page, "#row-classes")}
    assert shown == {label: percent_of(share) for label, share in p.items()}
    page.wait_for_function("document.querySelectorAll('#row-parts tbody tr').length === 4")
    values = [line[1] for line in table_of(page, "#row-parts") if line[0] == "long"]
    assert values == [f"{single['long'].iloc[row]:,.0f}"]


def test_pages_of_models_without_an_export_have_no_form():
    table = as_table(np.arange(12.0).reshape(6, 2), list("aaabbb"))

    class Foreign:
        classes_ = np.array(["a", "b"])

    assert one_row_section(Foreign(), table, RowSample.of(table, most=10), None) is None


def test_code_that_would_end_its_script_is_not_on_the_page():
    from discriminant.report.html import render

    facts = dict(cancer())
    facts["one_row"] = facts["one_row"] | {"javascript": "'</script><b id=owned>'"}
    page = render(facts)
    assert ("owned" in page, 'id="row-form"' in page) == (False, False)
