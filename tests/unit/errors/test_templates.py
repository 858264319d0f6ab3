"""Messages built from templates: their facts, their constructors and every call of them."""

import ast
import pickle
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
    return [field.split("!")[0] for _, field, _, _ in Formatter().parse(text) if field]


def fact(template, name):
    """A value that the field of this name can show."""
    specs = {spec for _, field, spec, _ in Formatter().parse(template.text) if field == name}
    if specs & {"short"}:
        return "abc"
    if any(spec.startswith(("names", "list", "len")) for spec in specs):
        return ["a", "b", "c"]
    return 12


@pytest.mark.parametrize("key", TEMPLATES, ids=".".join)
def test_template_shows_each_of_its_facts(key):
    template = TEMPLATES[key]
    assert set(fields(template.text)) == set(template.signature.parameters)
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
        f"'a', 'b' and 1 more 1 row '{'x' * 80}'"
    )
    assert Template("n", "{n:n class}, {n:n category}").format(3) == "3 classes, 3 categories"
    with pytest.raises(TypeError, match="missing a required"):
        template.format(["a"], 2)
