"""Whether the arrays of a label tree go together, so that no loop can read beyond their ends.

Loops of the search check nothing. Whatever a file says, what they will use as a place is held here
to what there is: children, rows of chunks, features, entries and labels. Arrays are looked at some
millions of numbers at a time, since they may lie in a file that is larger than the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from discriminant.models.label_tree.packing import ROWS, bits_fault, entries_of, marks_of
from discriminant.table.schema import holds_throughout

_AT_ONCE = 1 << 22
_KINDS = {
    "children": ("int64",),
    "chunks": ("int64",),
    "feature": ("uint16", "int32"),
    "begins": ("int64",),
    "beyond": ("uint16", "uint32"),
    "marks": ("int64",),
    "places": ("uint8", "uint16", "uint32"),
    "weight": ("float16", "float32", "float64"),
    "bias": ("float32", "float64"),
}


def layer_fault(of: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of a layer."""
    for name, kinds in _KINDS.items():
        values = of[name]
        if not isinstance(values, np.ndarray) or values.ndim != 1 or str(values.dtype) not in kinds:
            return f"{name} must be a vector of {' or '.join(kinds)}"
        if not values.flags.c_contiguous:
            return f"{name} must lie in one piece"
    for name, last in (("children", len(of["bias"])), ("chunks", len(of["feature"]))):
        if not _rises(of[name], last):
            return f"{name} must rise from 0 to {last}"
    if len(of["children"]) < 2 or len(of["children"]) != len(of["chunks"]):
        return "children and chunks must be of the same parents, one or more"
    return _entries_fault(of) or _places_fault(of) or _numbers_fault(of)


def _entries_fault(of: Mapping[str, Any]) -> str | None:
    begins, beyond, R, E = of["begins"], of["beyond"], len(of["feature"]), len(of["weight"])
    if len(beyond) != R + 1 or len(begins) != R // ROWS + 1:
        return "feature, begins and beyond must be of the same rows"
    ends = entries_of(begins, beyond, 0, 1)[0], entries_of(begins, beyond, R, R + 1)[0]
    parts = (entries_of(begins, beyond, at, at + _AT_ONCE + 1) for at in range(0, R + 1, _AT_ONCE))
    if ends != (0, E) or not all((part[1:] >= part[:-1]).all() for part in parts):
        return f"the entries of rows must rise from 0 to {E}"
    return None


def _places_fault(of: Mapping[str, Any]) -> str | None:
    chunks, feature = of["chunks"], of["feature"]
    if len(feature) and not holds_throughout(feature, lambda part: part >= 0):
        return "a feature is negative"
    for first, part in _parts(feature, overlap=1):
        falls = np.flatnonzero(part[1:] <= part[:-1]) + first + 1
        if len(_not_in(falls, chunks)):
            return "the features of a chunk must rise"
    return _bits_fault(of) if len(of["marks"]) else _list_fault(of)


def _bits_fault(of: Mapping[str, Any]) -> str | None:
    children, chunks, marks, places = (of[n] for n in ("children", "chunks", "marks", "places"))
    if not np.array_equal(marks, marks_of(children, chunks)):
        return "marks are not where the bits of chunks begin"
    if str(places.dtype) != "uint8" or len(places) != marks[-1]:
        return f"bits must be {marks[-1]} bytes"
    if (np.diff(chunks)[np.diff(children) == 0] > 0).any():
        return "a parent without children has weights"
    return bits_fault(children, chunks, (of["begins"], of["beyond"]), places)


def _list_fault(of: Mapping[str, Any]) -> str | None:
    children, chunks, places = of["children"], of["chunks"], of["places"]
    if len(places) != len(of["weight"]):
        return "places and weight must be of the same entries"
    if int(np.diff(children).max()) > 1 << 8 * places.itemsize:
        return f"a parent has more children than {places.dtype} can number"
    begin = of["begins"][chunks // ROWS] + of["beyond"][chunks].astype(np.int64)
    some = np.flatnonzero(begin[1:] > begin[:-1])
    if len(some):
        largest = np.maximum.reduceat(places, begin[some]).astype(np.int64)
        if (largest >= np.diff(children)[some]).any():
            return "an entry is of a child that its parent does not have"
    return None


def _numbers_fault(of: Mapping[str, Any]) -> str | None:
    if not holds_throughout(of["weight"], np.isfinite):
        return "a weight is no finite number"
    bias = of["bias"]
    if np.isnan(bias).any() or (bias == -np.inf).any():
        return "a bias is no number"
    return None


def tree_fault(of: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of one tree, whose layers are sound by themselves."""
    label_of, layers = of["label_of"], of["layers"]
    if not layers or any(type(layer).__name__ != "Layer" for layer in layers):
        return "it must have layers"
    nodes = 1
    for layer in layers:
        if len(layer.children) - 1 != nodes:
            return f"a layer has {len(layer.children) - 1} parents below {nodes} nodes"
        nodes = len(layer.bias)
    if label_of.ndim != 1 or str(label_of.dtype) != "int32" or len(label_of) != nodes:
        return f"label_of must be {nodes} numbers of int32"
    if not label_of.flags.c_contiguous:
        return "label_of must lie in one piece"
    if not (label_of.min() >= 0 and label_of.max() < nodes):
        return f"labels must be from 0 to {nodes - 1}"
    if np.bincount(label_of, minlength=nodes).max() > 1:
        return "a label comes twice"
    return None


def forest_fault(of: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of a forest, whose trees are sound by themselves."""
    trees, d = of["trees"], of["n_features"]
    if not trees or any(type(tree).__name__ != "Tree" for tree in trees):
        return "it must have trees"
    if len({len(tree.label_of) for tree in trees}) > 1:
        return "its trees are of different labels"
    if of["path"] not in ("hinge", "logistic"):
        return "path must be 'hinge' or 'logistic'"
    layers = [layer for tree in trees for layer in tree.layers]
    if len({str(layer.weight.dtype) for layer in layers}) > 1:
        return "its weights are of different precision"
    if not 0 < d < 2**31 or not all(
        holds_throughout(layer.feature, lambda part: part < d) for layer in layers
    ):
        return f"a feature is beyond the {d} that there are"
    return None


def model_fault(of: Mapping[str, Any]) -> str | None:
    """What is wrong with the fitted attributes of a `LabelTree`."""
    wanted = {"forest_", "classes_", "kind_", "n_features_in_"}
    absent = wanted - set(of)
    if absent == wanted:
        return None  # not fitted
    if absent:
        return f"it has no {min(absent)}"
    forest, labels, d = of["forest_"], of["classes_"], of["n_features_in_"]
    if type(forest).__name__ != "Forest" or len(forest.trees[0].label_of) != len(labels):
        return f"its trees are not of its {len(labels)} labels"
    if of["kind_"] not in ("one", "indicator", "sets") or forest.n_features != d:
        return f"its trees are not of its {d} features"
    if len(of.get("feature_names_in_", range(d))) != d:
        return f"it has no names for its {d} features"
    first = of.get("first_feature_", 0)
    if type(first) is not int or first not in (0, 1):
        return "first_feature_ must be 0 or 1"
    scale = of.get("scale_")
    if scale is not None and not _is_scale(scale, d):
        return f"it has no means and standard deviations of its {d} features"
    if type(of.get("unit_rows_", False)) is not bool:
        return "unit_rows_ must be true or false"
    return _counts_fault(of, len(labels))


def _counts_fault(of: Mapping[str, Any], L: int) -> str | None:
    """What is wrong with the rows of each label, which files of old do not have."""
    if "label_rows_" not in of and "n_rows_" not in of:
        return None
    counts, rows = of.get("label_rows_"), of.get("n_rows_")
    if not isinstance(counts, np.ndarray) or counts.shape != (L,) or counts.dtype != np.int32:
        return f"label_rows_ must be {L} numbers of int32"
    if type(rows) is not int or not (counts.min() >= 0 and counts.max() <= rows):
        return "label_rows_ must be from 0 to n_rows_"
    return None


def _is_scale(scale: Any, d: int) -> bool:
    fits = isinstance(scale, np.ndarray) and scale.shape == (2, d) and scale.dtype.kind == "f"
    return bool(fits and np.isfinite(scale).all() and (scale[1] > 0).all())


def _rises(borders: Any, last: int) -> bool:
    if not len(borders) or borders[0] != 0 or borders[-1] != last:
        return False
    return all((part[1:] >= part[:-1]).all() for _, part in _parts(borders, overlap=1))


def _not_in(places: Any, borders: Any) -> Any:
    at = np.searchsorted(borders, places)
    return places[borders[np.minimum(at, len(borders) - 1)] != places]


def _parts(values: Any, *, overlap: int = 0) -> Iterator[tuple[int, Any]]:
    for first in range(0, len(values), _AT_ONCE):
        yield first, values[first : first + _AT_ONCE + overlap]
