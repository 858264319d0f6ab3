"""One page that needs nothing else, and that no name can change."""

import base64
import copy
import hashlib
import itertools
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jinja2 import Environment

from discriminant.report import html, svg
from discriminant.report.fact_types import Facts
from discriminant.report.format import shown
from discriminant.report.html import asset, render
from discriminant.report.markdown import to_markdown
from tests.unit.report.samples import CORPUS, cancer, hostile, iris, report_of

MADE = [pytest.param(made, id=made.__name__) for made in (iris, cancer, hostile)]


class Tags(HTMLParser):
    """Elements with their attributes that do something, in order; and the text of some."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.inside, self.blocks, self.links = [], None, {}, []
        self.scripts = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        doing = sorted(name for name, _ in attributes if name.startswith("on") or name == "style")
        self.tags.append((tag, *doing))
        self.links += [value for name, value in attributes if name in ("href", "src", "action")]
        kind = dict(attributes).get("type", "")
        self.inside = (tag, kind) if tag in ("style", "script") else None
        if self.inside == ("script", ""):
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.blocks[self.inside] = self.blocks.get(self.inside, "") + data
        if self.inside == ("script", ""):
            self.scripts[-1] += data


def named(facts: Facts, name: str) -> Facts:
    """The same report, with a name in every place where somebody names something."""
    found = copy.deepcopy(facts)
    found["title"] = found["read"]["source"] = found["read"]["columns"][0]["name"] = name
    found["read"]["target"] = found["read"]["columns"][0]["note"] = f"{name}."  # "" is none
    found["read"]["said"] = found["read"]["warnings"] = [name]
    found["comparison"]["models"][0]["label"] = found["comparison"]["why"] = name
    found["space"]["structure"]["features"][0] = found["space"]["shown"][0] = name
    found["matters"]["findings"] = [{"kind": name, "text": name, "details": [name]}]
    found["matters"]["stepwise"]["steps"][0]["entered"] = f"{name}."
    found["use"] = {"file": name, "python": name, "sql": name, "command": name}
    found["made"]["command"] = found["made"]["version"] = name
    old = found["read"]["classes"][0]["label"]
    found["read"]["classes"][0]["label"] = name
    for section in (found["space"], found["decision"]):
        section["labels"] = [name if label == old else label for label in section["labels"]]
    found["decision"]["actions"] = list(found["decision"]["labels"])
    found["decision"]["by_class"][0]["label"] = name
    found["verdict"]["text"] = found["verdict"]["rule"] = f"{name}."
    found["verdict"]["reasons"] = [f"{name}.", f"{name}."]
    check = {"kind": name, "severity": "warning", "title": f"{name}.", "text": f"{name}."}
    found["checks"] = [check | {"columns": [name], "rows": 1}]
    found["space"]["boundaries"] = name
    found["ranking"]["features"][0] |= {"feature": name, "why": f"{name}."}
    found["columns"][0] |= {"name": name, "note": f"{name}."}
    for pair in found["pairs"]["pairs"]:
        pair["text"] = pair["separates"] = f"{name}."
        pair["strips"][0]["feature"] = name
    for one in found["rows"]["lists"]:
        one["title"] = one["text"] = f"{name}."
        one["rows"][0]["decided"] = name
    for example in found["one_row"]["examples"]:
        example["text"] = f"{name}."
    found["one_row"]["model"] = found["one_row"]["classes"][0] = name
    found["use"] |= {"refused": [name], "card": [[name, name]], "onnx": name}
    coefficients = found["matters"]["coefficients"]
    coefficients["groups"] = [name if group == old else group for group in coefficients["groups"]]
    for row in coefficients["rows"]:
        row["of"] = name if row["of"] == old else row["of"]
    return found


@pytest.mark.parametrize("made", MADE)
def test_nothing_on_the_page_leads_away_from_it(made):
    links = Tags(render(made())).links
    assert [link for link in links if not link.startswith(("#", "data:,"))] == []


@pytest.mark.parametrize("made", MADE)
def test_the_policy_allows_the_scripts_and_the_style_of_the_page_and_no_others(made):
    page = render(made())
    found = Tags(page)
    style, *scripts = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in [found.blocks["style", ""], *found.scripts]
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert policy.startswith(
        f"default-src 'none'; style-src {style}; script-src {' '.join(scripts)}; img-src data:;"
    )
    assert len(scripts) == 2  # the script of every page, and the model


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("made", [iris, cancer], ids=["many", "two"])
def test_no_name_adds_an_element_or_an_attribute_that_does_something(made, name):
    assert Tags(render(named(made(), name))).tags == Tags(render(named(made(), "plain"))).tags


@given(name=st.text(max_size=40))
@settings(max_examples=30)
def test_no_text_whatever_adds_an_element(name):
    assert Tags(render(named(cancer(), name))).tags == Tags(render(named(cancer(), "a"))).tags


@pytest.mark.parametrize("name", CORPUS)
def test_a_page_can_be_written_as_utf_8_whatever_the_names(name):
    page = render(named(iris(), name))
    assert page.encode().decode() == page


@pytest.mark.parametrize("name", CORPUS)
def test_no_name_turns_text_around_or_hides(name):
    page = render(named(iris(), name))
    assert re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x08\x1b]", page) is None


def test_a_template_in_a_name_is_not_evaluated():
    page = render(named(iris(), "{{7*7}}"))
    assert ("{{7*7}}" in page, "<bdi>49</bdi>" in page) == (True, False)


def test_a_name_too_long_for_a_line_is_cut_in_the_middle():
    found = shown("a" * 500 + "z")
    assert (len(found), found[0], found[-1], "…" in found) == (60, "a", "z", True)


def test_the_numbers_of_the_facts_are_on_the_page():
    facts = iris()
    page = render(facts)
    model = next(model for model in facts["comparison"]["models"] if model["chosen"])
    cells = [f"{model['log_loss']:.3f}", f"{100 * model['error']:.1f}%", "141", "0.0234"]
    assert [cell for cell in cells if cell not in page] == []


@pytest.mark.parametrize("made", MADE)
def test_a_term_is_explained_once(made):
    terms = re.findall(r"<dt>(.*?)</dt>", render(made()))
    assert terms and len(terms) == len(set(terms))


def test_what_there_are_no_facts_of_is_left_out():
    facts = {name: iris()[name] for name in ("title", "made", "read", "comparison")}
    page = render(facts)
    assert re.findall(r'<h2 id="(\w+)"', page) == ["comparison", "columns"]


@pytest.mark.parametrize(
    ("classes", "features"), [(2, 1), (3, 1), (26, 3), (40, 3), (3, 90)], ids=str
)
def test_reports_of_few_and_of_many_classes_and_features_stay_under_a_megabyte(classes, features):
    draw = np.random.default_rng(classes + features)
    y = np.arange(classes * 100) % classes
    X = draw.normal(size=(len(y), features)) + 2 * draw.normal(size=(classes, features))[y]
    page = render(report_of(X, y, names=[f"a feature of some length {j}" for j in range(features)]))
    assert len(page.encode()) < 1_000_000


def test_a_report_of_many_rows_and_ten_classes_stays_under_a_megabyte():
    draw = np.random.default_rng(0)
    y = np.arange(30_000) % 10
    X = draw.normal(size=(len(y), 12)) + draw.normal(size=(10, 12))[y]
    assert len(render(report_of(X, y)).encode()) < 1_000_000


# --- colours ---


def themes():
    """{name: {variable: colour}} of the style sheet: light, dark by choice, dark by the system."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", asset("style.css"))
    found = [dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{3,6})", block)) for block in blocks[:3]]
    return dict(zip(("light", "dark", "system"), found, strict=True))


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """As WCAG 2 defines it."""
    high, low = sorted([luminance(first), luminance(second)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ink", ["ink", "soft", "accent", "warn"])
def test_text_can_be_read_on_every_ground(theme, ink):
    colours = themes()[theme]
    grounds = [colours[name] for name in ("ground", "raised", "accent-ground", "warn-ground")]
    assert min(contrast(colours[ink], ground) for ground in grounds) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_class_stands_out_from_the_ground(theme):
    colours = themes()[theme]
    assert min(contrast(colours[f"k{i}"], colours["ground"]) for i in range(12)) >= 3.0


def oklab(colour):
    """As Ottosson (2020) defines it: distances are about those that the eye sees."""
    part = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    opponent = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return opponent @ np.cbrt(cones @ linear)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_first_twelve_classes_differ_in_colour_and_in_shape(theme):
    colours = [oklab(themes()[theme][f"k{i}"]) for i in range(12)]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2)]
    assert min(distances) > 0.08
    assert len({svg.SHAPES[int(svg.shape(code)[1:])] for code in range(12)}) == 12
    assert len({(svg.colour(code), svg.shape(code)) for code in range(100)}) == 100


def test_dark_by_choice_and_dark_by_the_system_are_the_same():
    assert themes()["dark"] == themes()["system"]


# --- Markdown ---


def unfenced(text):
    """Without its code, which is nobody's markup."""
    return re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)


@pytest.mark.parametrize("name", CORPUS)
def test_no_name_breaks_a_table_of_the_markdown(name):
    plain, found = (unfenced(to_markdown(named(iris(), text))) for text in ("plain", name))
    cells = [
        [len(re.findall(r"(?<!\\)\|", line)) for line in text.split("\n")]
        for text in (plain, found)
    ]
    assert cells[0] == cells[1]


@pytest.mark.parametrize("name", CORPUS)
def test_no_name_opens_a_tag_or_a_link_in_the_markdown(name):
    text = unfenced(to_markdown(named(iris(), name))).replace("| < 0.001", "")
    assert re.search(r"(?<!\\)[<\[]|(?<!\\)://", text) is None


def test_the_markdown_has_every_section():
    assert re.findall("(?m)^## (.*)$", to_markdown(cancer())) == [
        "Data",
        "Model comparison",
        "Discriminant space",
        "Decisions",
        "What matters",
        "Using the model",
    ]


def test_selected_model_and_best_rda_setting_are_highlighted():
    page, style = render(iris()), asset("style.css")
    for kind in ("label", "bar", "dot"):
        assert f'class="{kind} selected"' in page and f".{kind}.selected" in style
    assert 'class="selected"/>' in page and "rect.selected" in style


# --- cache of compiled templates ------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Names of the templates that are compiled, with an empty cache folder in `tmp_path`."""
    names = []
    compile_template = Environment.compile

    def compile_and_log(self, source, name=None, *args, **options):
        names.append(name)
        return compile_template(self, source, name, *args, **options)

    monkeypatch.setattr(Environment, "compile", compile_and_log)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    html._template.cache_clear()
    yield names
    html._template.cache_clear()


def render_again(names):
    """Render a page as a new process would; return it and the templates that were compiled."""
    html._template.cache_clear()
    names.clear()
    page = html.render(iris())
    return page, list(names)


def test_templates_are_compiled_once_per_user(compiled, tmp_path):
    first, once = render_again(compiled)
    second, again = render_again(compiled)
    assert "template.html" in once and again == [] and first == second
    folder = tmp_path / "discriminant" / "templates"
    assert len(list(folder.iterdir())) == len(once) and folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_templates_of_a_folder_that_others_can_write_to_are_not_run(mode, compiled, tmp_path):
    folder = tmp_path / "discriminant" / "templates"
    render_again(compiled)
    folder.chmod(mode)
    assert "template.html" in render_again(compiled)[1]


def test_templates_of_a_folder_of_another_user_are_not_run(compiled, monkeypatch):
    render_again(compiled)
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    assert "template.html" in render_again(compiled)[1]


def test_page_is_written_where_no_cache_can_be(compiled, monkeypatch, tmp_path):
    page = render_again(compiled)[0]
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert render_again(compiled) == (page, compiled) and "template.html" in compiled

    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "full"))
    monkeypatch.setattr("tempfile.NamedTemporaryFile", fail)
    assert render_again(compiled) == (page, compiled) and "template.html" in compiled
    assert not list((tmp_path / "full").rglob("*.cache"))


@pytest.mark.parametrize("end", [0, 5, 15, 20, 30, 60, -200])
def test_damaged_template_in_the_cache_is_compiled_again(end, compiled, tmp_path):
    page = render_again(compiled)[0]
    for file in (tmp_path / "discriminant" / "templates").iterdir():
        file.write_bytes(file.read_bytes()[:end])
    again, names = render_again(compiled)
    assert again == page and "template.html" in names
