"""Wrappers of estimator methods: they copy mutable options and ignore underflow.

Options: scikit-learn requires that a constructor stores its arguments unchanged, so an option may
be the caller's own array. A later change of that array must not change a fitted model. Therefore
each fit copies mutable options (arrays, lists, dicts), and the fitted model uses the copies. If an
option is replaced after the fit, by `set_params` or assignment, the new object is copied when it is
first used.

Underflow: a posterior of exp(-800) is rounded to zero, even if the caller set
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
    """Mixin: a fitted model is not affected by later changes to the objects given as options."""

    _copied: dict[str, tuple[Any, Any]]  # option name -> the object that was given, and its copy

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _FITS:
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, _copy_options_first(vars(cls)[name]))

    def options_in_effect(self) -> dict[str, Any]:
        """Return all options by name; mutable ones are replaced by their copies."""
        kind: Any = type(self)
        copied = self.__dict__.get("_copied", {})
        options = {name: getattr(self, name) for name in _option_names(kind)}
        for name, (given, copy) in copied.items():
            if options[name] is given:
                options[name] = copy
        return options

    def _option(self, name: str) -> Any:
        """Return an option that is used after the fit; if it was replaced, it is copied first."""
        given = getattr(self, name)
        if not _is_mutable(given):
            return given
        copied = self.__dict__.setdefault("_copied", {})
        if name not in copied or copied[name][0] is not given:
            copied[name] = given, deepcopy(given, _models_within(given))
        return copied[name][1]

    def _copy_options(self) -> None:
        """Copy all mutable options together: an object shared by two options is copied once."""
        self.__dict__.pop("_copied", None)
        options = self.options_in_effect().items()
        given = {name: value for name, value in options if _is_mutable(value)}
        if given:
            copies = deepcopy(given, _models_within([*given.values()]))
            self._copied = {name: (given[name], copies[name]) for name in given}


def _copy_options_first(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def run(self: OptionCopies, *args: Any, **options: Any) -> Any:
        self._copy_options()
        return fit(self, *args, **options)

    return run


@cache
def _option_names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def _is_mutable(value: Any) -> bool:
    """Return whether a value can be changed in place; estimators and functions do not count."""
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        return True
    return hasattr(value, "shape") or hasattr(value, "__array__")  # frames, series, sparse matrices


def _models_within(value: Any) -> dict[int, Any]:
    """Return the estimators and functions within lists, as in `Fusion`, which are not copied."""
    models: dict[int, Any] = {}
    items, visited = [value], set()
    while items:
        item = items.pop()
        if hasattr(item, "fit") or callable(item):
            models[id(item)] = item
        elif isinstance(item, list | tuple) and id(item) not in visited:
            visited.add(id(item))
            items.extend(item)
    return models


F = TypeVar("F", bound=Callable[..., Any])


def ignore_underflow(function: F) -> F:
    """Return a function that runs with underflow ignored."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(under="ignore"):
            return function(*args, **options)

    return cast(F, run)


class IgnoresUnderflow:
    """Mixin: public methods and properties ignore underflow."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(member):
                setattr(cls, name, ignore_underflow(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, member.getter(ignore_underflow(member.fget)))
