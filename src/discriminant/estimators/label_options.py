"""The options of a label tree: what they may be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from discriminant.errors import OptionError

TREES = ("balanced", "wide", "huffman", "one-vs-rest", "moments")
CHOICES = {
    "loss": ("squared_hinge", "logistic"),
    "precision": ("float32", "float16", "float64"),
    "path": ("hinge", "logistic", None),
    "weighting": ("propensity", None),
}
LEAST = {"trees": 1, "arity": 2, "leaf": 2, "max_sweeps": 1, "beam": 1, "threads": 1}
OPTIONAL = ("arity", "threads")


def check_options(model: Any) -> None:
    """Refuse what an option cannot be."""
    if isinstance(model.tree, str) and model.tree not in TREES:
        words = ", ".join(f"'{tree}'" for tree in TREES)
        raise OptionError.of("tree", model.tree, f"{words} or a hierarchy of the labels")
    if from_moments(model) and model.unit_rows:
        raise OptionError.of("unit_rows", True, "False with tree='moments', made of rows as given")
    for name, choices in CHOICES.items():
        value = getattr(model, name)
        if not (value is None or isinstance(value, str)) or value not in choices:
            raise OptionError.of(name, value, " or ".join(repr(choice) for choice in choices))
    for name, least in LEAST.items():
        check_whole(name, getattr(model, name), least, optional=name in OPTIONAL)
    for name in ("standardize", "unit_rows"):
        if not isinstance(getattr(model, name), bool | np.bool_):
            raise OptionError.of(name, getattr(model, name), "True or False")
    for name in ("cost", "tolerance", "threshold"):
        _check_number(name, getattr(model, name), zero=name == "threshold")


def from_moments(model: Any) -> bool:
    """Whether the tree is made of class moments."""
    return isinstance(model.tree, str) and model.tree == "moments"


def check_whole(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Refuse what is not a whole number from `least` on."""
    if optional and value is None:
        return
    if not _is_whole(value) or value < least:
        more = ", or None" if optional else ""
        raise OptionError.of(name, value, f"a whole number of {least} or more{more}")


def seed_of(state: Any) -> int:
    """A whole number from whatever scikit-learn takes as a seed."""
    if _is_whole(state) and 0 <= state < 1 << 62:
        return int(state)
    if isinstance(state, np.random.Generator):
        return int(state.integers(1 << 31))
    return int(check_random_state(state).randint(np.iinfo(np.int32).max))


def _is_whole(value: Any) -> bool:
    if type(value) is int:  # quick, for single rows
        return True
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_number(name: str, value: Any, *, zero: bool) -> None:
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not (fits and 0 <= float(value) < np.inf) or (not zero and value == 0):
        raise OptionError.of(name, value, "a number from 0 on" if zero else "a positive number")
