"""Options that can be changed in place (arrays, lists, dicts), copied when a model is fitted.

scikit-learn's contract is that a constructor stores what it is given, as it is. The caller's own
array therefore stays the value of the option, and a change to it must not change a fitted model:
each fit copies such options, and a model uses the copy for as long as the option is the same
object. An option that is replaced, with `set_params` or by assignment, is copied when it is first
used.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache, wraps
from inspect import isfunction
from typing import Any

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
        """All options by name, as they were at the fit or when they were last replaced."""
        kind: Any = type(self)
        return {name: self._option(name) for name in _option_names(kind)}

    def _option(self, name: str) -> Any:
        """One of them."""
        given = getattr(self, name)
        if not _is_mutable(given):
            return given
        copied = self.__dict__.setdefault("_copied", {})
        if name not in copied or copied[name][0] is not given:
            copied[name] = given, _copy(given)
        return copied[name][1]

    def _copy_options(self) -> None:
        self._copied = {}
        self.options_in_effect()


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


def _copy(value: Any) -> Any:
    """A copy of the containers; estimators within, as those of `Fusion`, are the same."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_copy(one) for one in value)
    return value if hasattr(value, "fit") or callable(value) else deepcopy(value)
