"""Messages built from templates: their facts, their constructors and every call of them."""

import ast
import pickle
import re
from pathlib import Path
from string import Formatter

import pytest

from discriminant import errors
from discriminant.errors.base import Template

SOURCE = Path(errors.__file__).parents[1]
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, Exception)
}
TEMPLATES = {
    (owner, name): value
    for owner, error in CLASSES.items()
    for name, value in vars(error).items()
    if isinstance(value, Template)
}


def fields(text):
    """Names and format specifications of all facts, also within optional parts."""
    for _, field, spec, _ in Formatter().parse(text):
        for name in re.findall(r"[a-z_]\w*", re.split(r"[.\[]", field or "")[0]):
            yield name, "[" if "[" in field else spec
        if spec and spec.startswith("?"):
            yield from fields(spec[1:])


def fact(template, name):
    """Return a value that the fields of this name can show."""
    specs = {spec for field, spec in fields(template.text) if field == name}
    if any(spec.startswith(("short", ".16")) for spec in specs):
        return "abc"
    if "pairs" in specs:
        return [("a", "b"), ("c", "d")]
    if any(spec.startswith(("names", "list", "len", "join", "[")) for spec in specs):
        return ["a", "b", "c"]
    return 12


@pytest.mark.parametrize("key", TEMPLATES, ids=".".join)
def test_template_shows_each_of_its_facts(key):
    template = TEMPLATES[key]
    assert {name for name, _ in fields(template.text)} == set(template.signature.parameters)
    facts = {name: fact(template, name) for name in template.signature.parameters}
    error = getattr(CLASSES[key[0]], key[1])(**facts)
    assert type(error) is CLASSES[key[0]]
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.args) == (type(error), error.args)


def test_every_call_in_the_package_passes_the_facts_of_its_template():
    checked, wrong = 0, []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
                    pass
                case _:
                    continue
            template = TEMPLATES.get((owner, name))
            splat = any(isinstance(arg, ast.Starred) for arg in node.args)
            if template is None or splat or any(word.arg is None for word in node.keywords):
                continue
            checked += 1
            try:
                template.signature.bind(*node.args, **{word.arg: 0 for word in node.keywords})
            except TypeError as error:
                wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno} {owner}.{name}: {error}")
    assert checked > 300
    assert wrong == []


def test_formats_of_a_template():
    template = Template("names, rows, *, text", "{names:names 2} {rows:n row} {text:short}")
    assert template.format(["a", "b", "c"], 1, text="x" * 90) == (
        f"'a', 'b' and 1 more 1 row '{'x' * 80}…'"
    )
    assert Template("n", "{n:n class}, {n:n category}").format(3) == "3 classes, 3 categories"
    with pytest.raises(TypeError, match="missing a required"):
        template.format(["a"], 2)


def test_optional_parts_of_a_template():
    template = Template("row, line=None", "Row {row}{line:?, line {line}}: {line:?known|unknown}.")
    assert template.format(3) == "Row 3: unknown."
    assert template.format(3, 4) == "Row 3, line 4: known."
    template = Template("names", "{names:?Unused: {names:join ; }.|None.}")
    assert template.format([]) == "None." and template.format(["a|b", "c"]) == "Unused: a|b; c."


def test_arithmetic_and_counts_of_a_template():
    template = Template("first, n", "{first} to {first + n - 1}{n:more}")
    assert template.format(1, 12) == "1 to 12 (and 11 more)"
    assert template.format(5, 1) == "5 to 5"
    assert Template("size, pairs", "{size:MB}, {pairs:pairs}").format(1 << 30, [(1, "b")]) == (
        "1,024 MB, '1' and 'b'"
    )
