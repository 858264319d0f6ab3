"""What a page says in words is true, and nobody needs to know code or statistics to read it."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import discriminant as dd
from discriminant.errors import DiscriminantError, WeightError
from discriminant.report.fact_types import SurfaceFacts
from discriminant.report.format import excluded_models, name_list, plain_reason
from discriminant.report.html import render
from discriminant.report.overview import in_short
from discriminant.report.svg import draw_surface
from tests.unit.report.samples import iris

CODE = re.compile(r"\w\(\[|\w=\w|\w\.\w+\(|\(s\)|\(es\)|_[a-z]+=|n_samples|sample_weight")


def text_of(page):
    """The words of a page, without code that is meant to be code."""
    page = re.sub(r"<(style|script|pre|footer).*?</\1>", "", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def weighted_study():
    draw = np.random.default_rng(5)
    x = draw.normal(size=(120, 2))
    kind = np.where(x[:, 0] + 0.6 * draw.normal(size=120) > 0.4, "yes", "no")
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "kind": kind, "w": draw.integers(1, 6, 120)})
    study = dd.study(frame, target="kind", weight="w", folds=5)
    study.compare(["lda", "qda", "perceptron"])
    return frame, study.facts()


def test_with_weights_shares_are_said_to_be_of_weight():
    facts = weighted_study()[1]
    taken = next(model for model in facts["comparison"]["models"] if model["chosen"])
    assert f"{100 * taken['error']:.1f}% of the weight of the rows" in " ".join(in_short(facts))


def test_with_weights_the_table_of_classes_has_both():
    frame, facts = weighted_study()
    sums = frame.groupby("kind")["w"].agg(["size", "sum"]).to_numpy().tolist()
    assert [[row["rows"], row["weight"]] for row in facts["read"]["classes"]] == sums


def test_with_weights_no_sentence_speaks_of_a_share_of_rows():
    page = text_of(render(weighted_study()[1]))
    assert re.findall(r"% of (?:the|these|decided|all|its held-out) rows", page) == []


def test_a_model_left_out_says_why_without_code():
    said = weighted_study()[1]["read"]["said"]
    assert "Perceptron was excluded: it does not support weights." in said


def reasons():
    """What the tests of section 3 say of rows that they cannot do with."""
    X, y = load_iris().data, load_iris().target
    flat = np.c_[X, np.where(y == 0, 1.0, X[:, 0])]
    twice = np.c_[X, X[:, 0] + X[:, 1]]
    few = np.r_[0:3, 50:60, 100:110]
    for test in (dd.box_m, dd.manova):
        for rows, labels in ((flat, y), (twice, y), (X[few], y[few])):
            try:
                test(dd.moments(rows, labels))
            except DiscriminantError as reason:
                yield str(reason)
    yield str(WeightError.not_supported("Perceptron"))


@pytest.mark.parametrize("reason", list(reasons()))
def test_a_reason_for_readers_holds_no_code(reason):
    assert CODE.search(plain_reason(reason)) is None


def test_models_kept_out_by_one_reason_are_one_sentence():
    found = excluded_models([("LDA", "none."), ("LDA, shrunk", "none."), ("QDA", "none.")])
    assert found == ["LDA, “LDA, shrunk” and QDA were excluded: none."]


def test_a_name_with_a_comma_stays_one_name():
    assert name_list(["Logistic, no penalty", "SVM"]) == "“Logistic, no penalty” and SVM"


def test_settings_of_one_loss_have_one_colour():
    loss = [[0.3, 0.3 * (1 + 1e-13), 0.3 * (1 - 1e-13)], [0.2, 0.4, 0.5]]
    surface = SurfaceFacts(
        pooling=[0.5, 1.0], shrinkage=["0", "0.5", "1"], error=loss, log_loss=loss, best=[1, 0]
    )
    found = re.findall(r'fill-opacity="([\d.]+)"', draw_surface(surface))
    assert len(set(found[:3])) == 1 and len(set(found)) == 4


def test_without_pooling_shrinkage_has_no_part_and_there_is_one_cell():
    loss = [[0.3, 0.3, 0.3], [0.2, 0.4, 0.5]]
    surface = SurfaceFacts(
        pooling=[0.0, 1.0], shrinkage=["0", "0.5", "1"], error=loss, log_loss=loss, best=[0, 2]
    )
    drawn = draw_surface(surface)
    assert (drawn.count('class="cell"'), "pooling 0.00, any shrinkage" in drawn) == (4, True)


def test_a_wide_table_says_what_is_left_out_and_sections_are_counted_without_gaps():
    draw = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 12)
    frame = pd.DataFrame(draw.normal(size=(24, 40)) + 2.0 * (y == "a")[:, None])
    frame.columns = [f"g{j}" for j in range(40)]
    study = dd.study(frame.assign(kind=y), target="kind", folds=4)
    study.compare(["lda_shrunk", "nearest_mean"])
    facts = study.facts()
    page = render(facts)
    numbers = [int(n) for n in re.findall(r'<span class="count">(\d)</span>', page)]
    said = [finding["text"] for finding in facts["matters"]["findings"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert any(text.startswith("There are only 24 rows for 40 features") for text in said)


def test_no_sentence_of_a_page_is_code():
    assert CODE.search(text_of(render(iris()))) is None
