"""The page "Where is what" has every module, with one sentence on each."""

import ast
import importlib.util
import re

from tests.shared.paths import ROOT


def load_extension():
    path = ROOT / "docs" / "_ext" / "module_index.py"
    spec = importlib.util.spec_from_file_location("module_index", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


module_index = load_extension()
PACKAGE = ROOT / "src" / "discriminant"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_module_is_on_the_page_below_its_folder():
    listed, folder = [], PACKAGE
    for line in module_index.page(PACKAGE).splitlines():
        if heading := re.match(r"##+ `(.*?)/`", line):
            folder = PACKAGE / heading.group(1)
        elif entry := re.match(r"- `(.*?)`: ", line):
            listed.append(folder / entry.group(1))
    assert sorted(listed) == [path for path in MODULES if path.name != "__init__.py"]


def test_first_line_of_every_module_is_one_sentence():
    lines = {path.relative_to(PACKAGE).as_posix(): first_paragraph(path) for path in MODULES}
    wrong = {name: text for name, text in lines.items() if not is_one_sentence(text)}
    assert wrong == {}


def first_paragraph(path):
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]


def is_one_sentence(text):
    return text.endswith(".") and "\n" not in text and not re.search(r"[.?!] [A-Z]", text)


def test_signs_of_markdown_are_escaped_outside_code():
    assert module_index.escaped("a_b * `x_y` <c>") == r"a\_b \* `x_y` \<c\>"


def test_modules_of_a_nested_folder_follow_its_heading(tmp_path):
    for name in (
        "__init__",
        "posterior",
        "table/__init__",
        "table/files/__init__",
        "table/files/csv",
    ):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""Sentence on {name}.\n\nMore.\n"""\n')
    assert module_index.page(tmp_path).split(".\n\n", 1)[1] == NESTED.format(package=tmp_path.name)


NESTED = """\
## `{package}`

Sentence on \\_\\_init\\_\\_.

- `posterior.py`: Sentence on posterior.

## `table/`

Sentence on table/\\_\\_init\\_\\_.

### `table/files/`

Sentence on table/files/\\_\\_init\\_\\_.

- `csv.py`: Sentence on table/files/csv.
"""
