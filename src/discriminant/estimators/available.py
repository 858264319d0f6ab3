"""What a meta-estimator may ask of the estimator it wraps: its kind, and the methods it has."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

from sklearn.utils import get_tags

from discriminant.errors import OptionError
from discriminant.estimators.underflow import ignoring_underflow

F = TypeVar("F", bound=Callable[..., Any])


def only_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """A method that exists only where `check` of its object is true.

    As scikit-learn's `available_if`, but an AttributeError raised by `check` is what the caller
    sees, so that its message can say which estimator lacks the method, and why.
    """

    def conditional(method: F) -> F:
        return cast(F, _Conditional(ignoring_underflow(method), check))

    return conditional


class _Conditional:
    """Descriptor of a method that some objects have."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], bool]) -> None:
        self._method, self._check = method, check
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self._method
        if not self._check(instance):
            name = self._method.__name__
            raise AttributeError(f"This {owner.__name__!r} has no attribute {name!r}")
        return MethodType(self._method, instance)


def is_regressor(estimator: Any) -> bool:
    """Whether an estimator, or the last one of a pipeline, predicts numbers."""
    return _kind_of(estimator) == "regressor"


def require_classifier(estimator: Any, wrapper: str, why: str) -> None:
    """Raise OptionError if an estimator says that it is something other than a classifier.

    An estimator that does not say what it is passes.
    """
    kind = _kind_of(estimator)
    if kind not in (None, "classifier"):
        allowed = f"a classifier (this is of type '{kind}'): {wrapper} {why}"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def _kind_of(estimator: Any) -> str | None:
    """What an estimator says it is, in scikit-learn's words; None if it does not."""
    kind: str | None = None
    if hasattr(estimator, "__sklearn_tags__"):
        kind = get_tags(estimator).estimator_type
    return kind
