"""Inheritance of docstrings: estimators show the parameters and attributes of their base classes.

A class documents only the parameters and attributes that it adds or changes. The entries that it
leaves out are copied from its base classes into its docstring, so that `help` shows every parameter
of the constructor and every fitted attribute.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

_HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", flags=re.MULTILINE)
_SECTIONS = ("Parameters", "Attributes")


class InheritsDocstring:
    """Mixin: subclasses inherit the documentation of parameters and attributes."""

    _documented: dict[str, list[str]]  # section name -> entries that the class documents itself

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        introduction, *parts = _HEADING.split(inspect.cleandoc(cls.__doc__ or ""))
        sections = dict(zip(parts[::2], parts[1::2], strict=True))
        cls._documented = {name: _entries(sections.pop(name, "")) for name in _SECTIONS}
        if cls.__doc__ is None:
            return
        names = list(inspect.signature(cls.__init__).parameters)
        parameters = _with_inherited(cls, "Parameters", names)
        parameters.sort(key=lambda entry: _position(entry, names))
        attributes = _with_inherited(cls, "Attributes")
        merged = {"Parameters": "\n".join(parameters), "Attributes": "\n".join(attributes)}
        texts = [introduction.rstrip()]
        for name, body in (merged | sections).items():
            if body:
                texts.append(f"{name}\n{'-' * len(name)}\n{body.rstrip()}")
        cls.__doc__ = "\n\n".join(texts)


def _entries(section: str) -> list[str]:
    """Split a section of a docstring into entries, each a name line with its description."""
    return [entry.rstrip() for entry in re.split(r"^(?=\S)", section, flags=re.MULTILINE) if entry]


def _names(entry: str) -> list[str]:
    """Return the names in an entry: ["coef_", "intercept_"] for "coef_, intercept_ : arrays"."""
    return entry.partition("\n")[0].partition(" : ")[0].split(", ")


def _position(entry: str, names: list[str]) -> int:
    name = _names(entry)[0]
    return names.index(name) if name in names else len(names)


def _with_inherited(cls: type, section: str, wanted: list[str] | None = None) -> list[str]:
    """Return the entries of a section: first the entries of the class, then the inherited ones.

    With `wanted`, return only the entries of these names.
    """
    entries = list(vars(cls)["_documented"][section])
    known = {name for entry in entries for name in _names(entry)}
    for base in cls.__mro__[1:]:
        for entry in vars(base).get("_documented", {}).get(section, ()):
            names = _names(entry)
            if known.isdisjoint(names) and (wanted is None or names[0] in wanted):
                entries.append(entry)
                known.update(names)
    return entries
