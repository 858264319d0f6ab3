"""Methods that a classifier has only if what it is made of has them: scikit-learn's way, typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if

from discriminant.estimators.underflow import ignoring_underflow

F = TypeVar("F", bound=Callable[..., Any])


def only_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """A method that is there only where `check` of its object is true."""
    return cast(Callable[[F], F], lambda method: available_if(check)(ignoring_underflow(method)))
