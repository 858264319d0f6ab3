"""Estimators work alike under every floating-point error state of NumPy's.

A posterior of exp(-800) is zero: that underflow is part of the arithmetic and no reason to raise,
whatever the caller chose with `np.seterr(under="raise")`. Public methods and properties of every
estimator therefore ignore underflow; overflow, division by zero and invalid operations are left to
the caller's state wherever a formula does not expect them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def ignoring_underflow(function: F) -> F:
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
                setattr(cls, name, ignoring_underflow(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, member.getter(ignoring_underflow(member.fget)))
