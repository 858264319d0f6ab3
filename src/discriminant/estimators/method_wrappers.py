"""Wrappers around the methods of every estimator: copies of mutable options, underflow ignored.

Options: scikit-learn's contract is that a constructor stores its arguments unchanged. The caller's
own array stays the value of the option, and a change to it must not change a fitted model:
each fit copies mutable options (arrays, lists, dicts), and the model uses the copy as long as the
option is the same object. An option that is replaced, by `set_params` or assignment, is copied when
it is first used.

Underflow: a posterior of exp(-800) is zero, whatever the caller chose with
`np.seterr(under="raise")`. Public methods and properties therefore ignore underflow; overflow,
division by zero and invalid operations follow the caller's settings.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache, wraps
from inspect import isfunction
from typing import Any, TypeVar, cast

import numpy as np

_FITS = ("fit", "fit_moments", "partial_fit", "forget")


class OptionCopies:
    """Mixin that protects a fitted model from changes to the objects given as options."""

    _copied: dict[str, tuple[Any, Any]]  # by option: the object that was given, and its copy

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _FITS:
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, _copying_first(vars(cls)[name]))

    def options_in_effect(self) -> dict[str, Any]:
        """All options by name, with the copies of mutable ones."""
        kind: Any = type(self)
        copied = self.__dict__.get("_copied", {})
        options = {name: getattr(self, name) for name in _option_names(kind)}
        for name, (given, copy) in copied.items():
            if options[name] is given:
                options[name] = copy
        return options

    def _option(self, name: str) -> Any:
        """An option that is read after the fit; a replaced one is copied now."""
        given = getattr(self, name)
        if not _is_mutable(given):
            return given
        copied = self.__dict__.setdefault("_copied", {})
        if name not in copied or copied[name][0] is not given:
            copied[name] = given, deepcopy(given, _models_within(given))
        return copied[name][1]

    def _copy_options(self) -> None:
        """Copy mutable options in one go, so that shared objects stay shared."""
        self.__dict__.pop("_copied", None)
        options = self.options_in_effect().items()
        given = {name: value for name, value in options if _is_mutable(value)}
        if given:
            copies = deepcopy(given, _models_within([*given.values()]))
            self._copied = {name: (given[name], copies[name]) for name in given}


def _copying_first(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def run(self: OptionCopies, *args: Any, **options: Any) -> Any:
        self._copy_options()
        return fit(self, *args, **options)

    return run


@cache
def _option_names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def _is_mutable(value: Any) -> bool:
    """Whether a value can change in place; estimators and functions do not count."""
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        return True
    return hasattr(value, "shape") or hasattr(value, "__array__")  # frames, series, sparse matrices


def _models_within(value: Any) -> dict[int, Any]:
    """Estimators and functions within lists, such as those of `Fusion`, which are not copied."""
    models: dict[int, Any] = {}
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if hasattr(item, "fit") or callable(item):
            models[id(item)] = item
        elif isinstance(item, list | tuple) and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(item)
    return models


F = TypeVar("F", bound=Callable[..., Any])


def ignore_underflow(function: F) -> F:
    """Wrap a function to run with underflow ignored."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(under="ignore"):
            return function(*args, **options)

    return cast(F, run)


class IgnoresUnderflow:
    """Mixin whose public methods and properties ignore underflow."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(member):
                setattr(cls, name, ignore_underflow(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, member.getter(ignore_underflow(member.fget)))
