"""The page of a label tree, in a real browser and as text."""

import functools
import json
import re
from itertools import groupby, pairwise

import numpy as np
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.extreme.file_predictions import assess_file
from discriminant.extreme.report import label_page_facts, labels_to_markdown, render_labels
from tests.unit.report.looks import beyond_paper, overflow, smallest_text
from tests.unit.report.samples import CORPUS
from tests.unit.report.test_html import unfenced

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@functools.cache
def drawn():
    """Rows whose labels are of frequencies such as those of words."""
    rng = np.random.default_rng(8)
    chance = 0.5 / np.arange(1, 301)
    Y = sparse.csr_array((rng.random((900, 300)) < chance).astype(np.float32))
    X = sparse.csr_array(Y @ (rng.random((300, 80)) < 0.1).astype(np.float32))
    return X, Y


def measured(tree="balanced"):
    """Fitted to some rows and measured on others."""
    import tempfile

    X, Y = drawn()
    model = dd.LabelTree(tree=tree, trees=2, arity=4, leaf=8).fit(X[:600], Y[:600])
    with tempfile.TemporaryDirectory() as folder:
        dd.write_xmc(f"{folder}/test.txt", X[600:], Y[600:])
        found = assess_file(model, f"{folder}/test.txt")
    more = {"seconds": {"reading": 0.1, "training": 2.0}, "file": "labels.model"}
    return label_page_facts(model, source="train.txt", measured=found, test="test.txt", **more)


@functools.cache
def balanced():
    return measured()


@functools.cache
def huffman():
    return measured("huffman")


@functools.cache
def hostile():
    """Labels, files and a title that somebody means ill with."""
    X, _ = drawn()
    names = [*CORPUS, *(f"label {i}" for i in range(20))]
    sets = [{names[i % len(names)], names[i % 7]} for i in range(600)]
    model = dd.LabelTree(trees=1).fit(X[:600], sets)
    bad = "</title><script>document.title='owned'</script>"
    return label_page_facts(model, source=bad, title=bad, file=bad, command=bad)


@functools.cache
def forgetful():
    """A model that was saved without counts of rows."""
    X, Y = drawn()
    model = dd.LabelTree(tree="wide", trees=2, arity=5).fit(X, Y)
    del model.label_rows_, model.n_rows_
    return label_page_facts(model, source="old.model")


PAGES = {"balanced": balanced, "huffman": huffman, "hostile": hostile, "forgetful": forgetful}


@pytest.fixture
def page(opened):
    return functools.partial(opened, rendered=render_labels)


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_complained_of_nothing_leaves_and_nothing_overflows(page, made, width, scheme):
    assert overflow(page(made(), width, scheme)) == ([], width)


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_on_paper_nothing_is_wider_than_the_page(page, made):
    assert beyond_paper(page(made(), 680)) == 0


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_headings_go_down_one_step_at_a_time_and_drawings_have_names(page, made):
    shown = page(made())
    levels = shown.eval_on_selector_all(
        "h1, h2, h3, h4", "all => all.map(one => Number(one.tagName[1]))"
    )
    nameless = shown.evaluate(
        "[...document.querySelectorAll('svg')].filter(one =>"
        " one.getAttribute('aria-hidden') !== 'true' && !one.getAttribute('aria-label')).length"
    )
    steps = [after - before for before, after in pairwise(levels)]
    assert (levels[0], levels.count(1), max(steps), nameless) == (1, 1, 1, 0)


def test_names_that_are_markup_are_shown_and_do_nothing(page):
    shown = page(hostile())
    alive = shown.evaluate("[document.scripts.length, document.images.length]")
    assert (shown.wrong, shown.title() != "owned", alive) == ([], True, [2, 0])


def test_text_in_figures_can_be_read_on_a_phone(page):
    assert smallest_text(page(balanced(), 360)) >= 10.0


def test_facts_read_back_from_json_give_the_same_page():
    assert render_labels(json.loads(json.dumps(balanced()))) == render_labels(balanced())


def test_the_curve_of_frequencies_is_that_of_sorted_counts():
    _, Y = drawn()
    counts = np.sort(Y[:600].toarray().sum(axis=0))[::-1]
    read = balanced()["read"]
    assert read["counts"] == counts[np.array(read["ranks"]) - 1].tolist()
    assert (read["pairs"], read["unseen"]) == (counts.sum(), (counts == 0).sum())
    half = next(n for n in range(1, 301) if counts[:n].sum() >= counts.sum() / 2)
    assert read["half"] == half


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_a_page_is_small(made):
    assert len(render_labels(made()).encode()) < 200_000


# --- Markdown ---


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_every_row_of_a_table_of_the_markdown_has_the_cells_of_its_head(made):
    lines = unfenced(labels_to_markdown(made())).split("\n")
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    tables = [set(some) for full, some in groupby(cells, key=bool) if full]
    assert tables and [found for found in tables if len(found) > 1] == []


def test_no_name_opens_a_tag_or_a_link_in_the_markdown():
    text = unfenced(labels_to_markdown(hostile()))
    assert re.search(r"(?<!\\)[<\[]|(?<!\\)://", text) is None


def test_the_markdown_has_every_section_and_the_measures_of_the_page():
    facts = balanced()
    text = labels_to_markdown(facts)
    assert re.findall("(?m)^## (.*)$", text) == [
        "Data",
        "The trees",
        "Accuracy on the test file",
        "Using the model",
    ]
    wanted = " | ".join(f"{100 * facts['measured']['at']['P'][k - 1]:.1f}%" for k in (1, 3, 5))
    assert f"| P\\@k | {wanted} |" in text


def test_a_page_says_that_few_labels_were_not_divided():
    X, Y = drawn()
    few = label_page_facts(dd.LabelTree(trees=1).fit(X, Y[:, :20]), source="few.txt")
    said = [render_labels(facts) for facts in (few, balanced())]
    assert ["repeated bisection" in page for page in said] == [False, True]
    assert ["too few labels for a tree" in page for page in said] == [True, False]
