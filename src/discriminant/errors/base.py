"""Base classes of errors and warnings, templates of their messages, and capture of warnings.

A message is a text with named values, its facts. An error class lists its messages as class
attributes:

    class PriorError(InputError):
        of_length = template("entries, labels")(
            "prior has {entries:n entry} for {labels:len} classes: pass one for each class."
        )

    raise PriorError.of_length(len(prior), labels)

Facts are passed by position or by name (facts after a `*` by name only) and may have a default. A
field has a format specification of Python, or one of these:

    {columns:names}     'a', 'b', 'c', 'd', 'e' and 3 more
    {labels:names 20}   up to 20 names
    {rows:list 5}       0, 4, 7, 8, 9 and 3 more; {rows:list} gives all rows
    {pairs:pairs}       'a' and 'b'; 'c' and 'd', up to 5 pairs
    {reasons:join ; }   all reasons, separated by "; "
    {labels:len}        8
    {rows:n row}        1 row, 8 rows
    {count:more}        nothing for 1, else " (and 7 more)"
    {text:short 40}     the first 40 characters, quoted; {text:short} gives 80
    {limit:MB}          bytes as 512 MB
    {value:value}       as Python prints it; for an array or a frame only its type and shape
    {line:?, line {line}}    the text after ? unless the fact is None, False or empty
    {last:?final|first}      as above, and otherwise the text after |
    {classes - 1}       arithmetic of facts and whole numbers, from left to right

Values of rows are never included in a message, except a text in a place where a number is required.
A pickled exception contains only its text. If these fields are not sufficient, a class method
composes the message.

`warn` issues a warning of the package. Inside `merge_warnings`, `capture_warnings` and
`add_context`, warnings are collected in a context variable instead of by Python's warning filters:
a context variable belongs to one thread, but the filters are shared by the whole process.
"""

from __future__ import annotations

import operator
import sys
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Parameter, Signature
from string import Formatter
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from discriminant.redaction import redact

E = TypeVar("E", bound=Exception)


class DiscriminantError(Exception):
    """Base class of all errors of this package. Registered secrets are masked in its text."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(DiscriminantError, ValueError):
    """Rows, labels, weights or options are not valid."""


class DiscriminantWarning(UserWarning):
    """Base class of all warnings of this package. Registered secrets are masked in its text."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class Template:
    """Message with named facts.

    A template that is an attribute of an exception class is a constructor of this exception.
    """

    __slots__ = ("facts", "text")

    def __init__(self, facts: str, text: str) -> None:
        self.facts = facts
        self.text = text

    def __get__(self, instance: object, owner: type[E]) -> Callable[..., E]:
        return lambda *args, **facts: owner(self.format(*args, **facts))

    def format(self, *args: object, **facts: object) -> str:
        """Return the message, with the given facts filled in."""
        bound = self.signature.bind(*args, **facts)
        bound.apply_defaults()
        return _expand(self.text, bound.arguments)

    @property
    def signature(self) -> Signature:
        """Parameters of the constructor."""
        positional, _, by_name = self.facts.replace(" ", "").partition("*")
        parameters = []
        for facts, kind in (
            (positional, Parameter.POSITIONAL_OR_KEYWORD),
            (by_name, Parameter.KEYWORD_ONLY),
        ):
            for fact in filter(None, facts.split(",")):
                name, _, value = fact.partition("=")
                default = literal_eval(value) if value else Parameter.empty
                parameters.append(Parameter(name, kind, default=default))
        return Signature(parameters)


def template(facts: str = "") -> Callable[[str], Template]:
    """Return a function that makes a `Template` from the text of a message.

    `facts` lists the names of the facts that the text may use.
    """
    return lambda text: Template(facts, text)


def _expand(text: str, facts: Mapping[str, Any]) -> str:
    """Return the text of a template with its fields replaced by facts."""
    expanded = []
    for literal, field, spec, conversion in _FORMATTER.parse(text):
        expanded.append(literal)
        if field is None:
            continue
        value = _FORMATTER.convert_field(_evaluate(field, facts), conversion)
        name, _, option = (spec or "").partition(" ")
        if spec and spec.startswith("?"):
            present, _, absent = spec[1:].partition("|")
            empty = value is None or value is False or (isinstance(value, Sized) and not len(value))
            expanded.append(_expand(absent if empty else present, facts))
        elif name in _FORMATS:
            expanded.append(_FORMATS[name](value, option))
        else:
            expanded.append(format(value, spec or ""))
    return "".join(expanded)


def _evaluate(field: str, facts: Mapping[str, Any]) -> Any:
    """Return a fact, an attribute or an item of a fact, or the value of an expression of facts."""
    first, *rest = field.split()
    if not rest:
        return int(first) if first.isdigit() else _FORMATTER.get_field(first, (), facts)[0]
    value = _evaluate(first, facts)
    for symbol, operand in zip(rest[::2], rest[1::2], strict=True):
        value = _OPERATORS[symbol](value, _evaluate(operand, facts))
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
}


def quote(names: Sequence[object], most: int = 5) -> str:
    """Return the first few names, each in quotes.

    >>> quote(["a", "b"])
    "'a', 'b'"
    >>> quote(range(7), most=2)
    "'0', '1' and 5 more"
    """
    return enumerate_first([f"'{name}'" for name in names], most)


def enumerate_first(items: Sequence[object], most: int = 5, separator: str = ", ") -> str:
    """Return the first few items as text, followed by the number of remaining items.

    >>> enumerate_first([0, 4, 7], 2)
    '0, 4 and 1 more'
    """
    text = separator.join(map(str, items[:most]))
    return text if len(items) <= most else f"{text} and {len(items) - most} more"


def show_value(value: object) -> str:
    """Return a value as Python prints it; for an array or a frame only its type and shape."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"<{type(value).__name__} of shape {tuple(shape)}>"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:100]}..."


def format_count(number: Any, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> format_count(1, "feature"), format_count(0, "entry")
    ('1 feature', '0 entries')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}es" if noun.endswith("s") else f"{number} {noun}s"


def _pairs(pairs: Sequence[tuple[object, object]], option: str) -> str:
    texts = [f"{str(first)!r} and {str(second)!r}" for first, second in pairs]
    return enumerate_first(texts, separator="; ")


def _short(text: str, limit: str) -> str:
    most = int(limit or 80)
    return repr(text if len(text) <= most else text[:most] + "…")


_FORMATS: dict[str, Callable[[Any, str], str]] = {
    "names": lambda names, most: quote(names, int(most or 5)),
    "list": lambda items, most: enumerate_first(items, int(most or len(items))),
    "pairs": _pairs,
    "join": lambda items, separator: separator.join(map(str, items)),
    "len": lambda items, option: f"{len(items):,}",
    "n": format_count,
    "more": lambda count, option: f" (and {count - 1} more)" if count > 1 else "",
    "short": _short,
    "MB": lambda size, option: f"{size >> 20:,} MB",
    "value": lambda value, option: show_value(value),
}
_FORMATTER = Formatter()


P = ParamSpec("P")
R = TypeVar("R")

_LIBRARY_MODULES = (__name__.partition(".")[0] + ".", "sklearn.", "contextlib", "concurrent.")
_COLLECTED: ContextVar[list[Warning] | None] = ContextVar("collected warnings", default=None)


def warn(warning: Warning) -> None:
    """Issue a warning that points to the line of the user's code that called this package."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected.append(warning)
        return
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARY_MODULES):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


@contextmanager
def merge_warnings() -> Iterator[None]:
    """Merge the warnings raised inside: for each class issue the first, with a count of the others.

    If such blocks are nested (`merge_warnings` or `capture_warnings`), only the outermost block
    merges.
    """
    if _COLLECTED.get() is not None:
        yield
        return
    with _collect_warnings() as collected:
        yield
    for warning in _merge(collected):
        warn(warning)


@contextmanager
def capture_warnings() -> Iterator[list[Warning]]:
    """Capture the warnings raised inside; on exit the list holds one warning of each class."""
    merged: list[Warning] = []
    collected: list[Warning] = []
    try:
        with _collect_warnings() as collected:
            yield merged
    finally:
        merged += _merge(collected)


@contextmanager
def add_context(context: str) -> Iterator[None]:
    """Append a sentence to every error and warning raised inside."""
    try:
        with _collect_warnings() as collected:
            yield
    except DiscriminantError as error:
        raise type(error)(f"{error} {context}") from error
    for warning in collected:
        warn(type(warning)(f"{warning} {context}"))


def in_thread(work: Callable[P, R]) -> Callable[P, R]:
    """Return a function like `work` that can be called in another thread.

    Its warnings are collected together with the warnings of this thread.
    """
    collected = _COLLECTED.get()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _COLLECTED.set(collected)
        try:
            return work(*args, **kwargs)
        finally:
            _COLLECTED.reset(token)

    return run


@contextmanager
def _collect_warnings() -> Iterator[list[Warning]]:
    collected: list[Warning] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


def _merge(collected: Sequence[Warning]) -> list[Warning]:
    """Return the first warning of each class, with a count of the other texts of the class."""
    texts: dict[type[Warning], dict[str, None]] = {}
    for warning in collected:
        texts.setdefault(type(warning), {})[str(warning)] = None
    merged = []
    for category, distinct in texts.items():
        first, more = next(iter(distinct)), len(distinct) - 1
        merged.append(
            category(f"{first} (And {more} more warning(s) of this kind.)" if more else first)
        )
    return merged
