"""Options that can be changed in place (arrays, lists, dicts), copied when a model is fitted.

scikit-learn's contract is that a constructor stores what it is given, as it is. The caller's own
array therefore stays the value of the option, and a change to it must not change a fitted model:
each fit copies such options, and a model uses the copy for as long as the option is the same
object. An option that is replaced, with `set_params` or by assignment, is copied when it is first
used.

Estimators work alike under every floating-point error state of NumPy's.

A posterior of exp(-800) is zero: that underflow is part of the arithmetic and no reason to raise,
whatever the caller chose with `np.seterr(under="raise")`. Public methods and properties of every
estimator therefore ignore underflow; overflow, division by zero and invalid operations are left to
the caller's state wherever a formula does not expect them.
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
    """An estimator whose fit does not change when the objects given as options do."""

    _copied: dict[str, tuple[Any, Any]]  # by option: the object that was given, and its copy

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _FITS:
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, _copying_first(vars(cls)[name]))

    def options_in_effect(self) -> dict[str, Any]:
        """All options by name: the copies of those that were copied, the others as they are."""
        kind: Any = type(self)
        copied = self.__dict__.get("_copied", {})
        found = {name: getattr(self, name) for name in _option_names(kind)}
        for name, (given, copy) in copied.items():
            if found[name] is given:
                found[name] = copy
        return found

    def _option(self, name: str) -> Any:
        """An option that is read after the fit; one that was replaced since is copied now."""
        given = getattr(self, name)
        if not _is_mutable(given):
            return given
        copied = self.__dict__.setdefault("_copied", {})
        if name not in copied or copied[name][0] is not given:
            copied[name] = given, deepcopy(given, _models_within(given))
        return copied[name][1]

    def _copy_options(self) -> None:
        """Copy mutable options together, so that shared objects stay shared."""
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
    """Whether a value can change in place; estimators are cloned, functions are called."""
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        return True
    return hasattr(value, "shape") or hasattr(value, "__array__")  # frames, series, sparse matrices


def _models_within(value: Any) -> dict[int, Any]:
    """Estimators and functions within lists, such as those of `Fusion`, for `deepcopy` to keep."""
    found: dict[int, Any] = {}
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if hasattr(one, "fit") or callable(one):
            found[id(one)] = one
        elif isinstance(one, list | tuple) and id(one) not in seen:
            seen.add(id(one))
            waiting.extend(one)
    return found


F = TypeVar("F", bound=Callable[..., Any])


def ignore_underflow(function: F) -> F:
    """The function, run with underflow ignored."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(under="ignore"):
            return function(*args, **options)

    return cast(F, run)


class IgnoresUnderflow:
    """Public methods and properties of all subclasses ignore underflow."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(member):
                setattr(cls, name, ignore_underflow(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, member.getter(ignore_underflow(member.fget)))
