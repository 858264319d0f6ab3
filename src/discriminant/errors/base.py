"""Base classes of every error and warning, and the templates their messages are built from.

An error class lists its messages as class attributes, each with the names of its facts:

    class PriorError(InputError):
        of_length = template("entries, labels")(
            "prior has {entries:n entry} for {labels:len} classes: pass one for each class."
        )

    raise PriorError.of_length(len(prior), labels)

Facts are passed by position or by name, after a `*` by name only. Beside the format specifications
of Python a field may have one of these:

    {columns:names}     'a', 'b', 'c', 'd', 'e' and 3 more
    {labels:names 20}   the same with up to 20 names
    {rows:list 5}       0, 4, 7, 8, 9 and 3 more; without a number all of them
    {labels:len}        8
    {rows:n row}        1 row, 8 rows
    {text:short}        the first 80 characters, quoted
    {value:value}       as Python writes it; of an array or a frame only the type and the shape

Values of rows are never formatted, except a text where a number is expected. An exception pickles
as its text. A message that depends on its facts in another way is a class method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from inspect import Parameter, Signature
from string import Formatter
from typing import Any, TypeVar

from discriminant.redaction import redact

E = TypeVar("E", bound=Exception)


class DiscriminantError(Exception):
    """Base class of all errors of this package. Registered secrets are removed from its text."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(DiscriminantError, ValueError):
    """Rows, labels, weights or options are not valid."""


class DiscriminantWarning(UserWarning):
    """Base class of all warnings of this package. Registered secrets are removed from its text."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class Template:
    """Message with named facts; as an attribute of an exception class, a constructor of it."""

    __slots__ = ("facts", "text")

    def __init__(self, facts: str, text: str) -> None:
        self.facts = facts
        self.text = text

    def __get__(self, instance: object, owner: type[E]) -> Callable[..., E]:
        return lambda *args, **facts: owner(self.format(*args, **facts))

    def format(self, *args: object, **facts: object) -> str:
        """Return the message with these facts."""
        return _FORMATTER.vformat(self.text, (), self.signature.bind(*args, **facts).arguments)

    @property
    def signature(self) -> Signature:
        """Parameters of the constructor."""
        positional, _, by_name = self.facts.partition("*")
        return Signature(
            [
                Parameter(name.strip(), kind)
                for names, kind in (
                    (positional, Parameter.POSITIONAL_OR_KEYWORD),
                    (by_name, Parameter.KEYWORD_ONLY),
                )
                for name in names.split(",")
                if name.strip()
            ]
        )


def template(facts: str = "") -> Callable[[str], Template]:
    """Return a function that makes a template with these facts from its text."""
    return lambda text: Template(facts, text)


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, option = format_spec.partition(" ")
        formatter = _FORMATS.get(name)
        if formatter is None:
            return format(value, format_spec)
        return formatter(value, option)


def quote(names: Sequence[object], most: int = 5) -> str:
    """Return the first few names in quotes.

    >>> quote(["a", "b"])
    "'a', 'b'"
    >>> quote(range(7), most=2)
    "'0', '1' and 5 more"
    """
    return enumerate_first([f"'{name}'" for name in names], most)


def enumerate_first(items: Sequence[object], most: int = 5, separator: str = ", ") -> str:
    """Return the first few items, and the number of the others.

    >>> enumerate_first([0, 4, 7], 2)
    '0, 4 and 1 more'
    """
    text = separator.join(map(str, items[:most]))
    return text if len(items) <= most else f"{text} and {len(items) - most} more"


def show_value(value: object) -> str:
    """Return a value as Python writes it; of an array or a frame only the type and the shape."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"<{type(value).__name__} of shape {tuple(shape)}>"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:100]}..."


def _count(number: Any, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}es" if noun.endswith("s") else f"{number} {noun}s"


def _size(items: Sized, option: str) -> str:
    return str(len(items))


def _short(text: str, option: str) -> str:
    return repr(text[:80])


_FORMATS: dict[str, Callable[[Any, str], str]] = {
    "names": lambda names, most: quote(names, int(most or 5)),
    "list": lambda items, most: enumerate_first(items, int(most or len(items))),
    "len": _size,
    "n": _count,
    "short": _short,
    "value": lambda value, option: show_value(value),
}
_FORMATTER = _Formatter()
