"""An export is made from what estimators show of themselves, and from nothing they keep inside."""

import ast
from importlib.resources import files

import pytest

FOLDER = files("discriminant.export")
MODULES = sorted(one.name for one in FOLDER.iterdir() if one.name.endswith(".py"))


def inside(name):
    """Attributes of others whose names say that they are nobody else's: all but those of self."""
    tree = ast.parse(FOLDER.joinpath(name).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner, attribute = node.value, node.attr
        elif _asks(node):
            owner, attribute = node.args[0], str(getattr(node.args[1], "value", ""))
        else:
            continue
        own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
        if attribute.startswith("_") and not attribute.startswith("__") and not own:
            yield attribute


def _asks(node):
    """getattr(thing, "name") and its like."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    return node.func.id in ("getattr", "hasattr", "setattr") and len(node.args) > 1


@pytest.mark.parametrize("name", MODULES)
def test_no_module_of_the_export_looks_inside_an_estimator(name):
    assert list(inside(name)) == []
