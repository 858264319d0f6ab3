"""Classes by label and columns by name: what every summary that knows both has to look up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import LabelError, OptionError
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Floats, Labels

Places = npt.NDArray[np.intp]


def codes_of(labels: Labels, wanted: Sequence[Any]) -> Places:
    """The place of each label wanted among `labels`."""
    place = {label: code for code, label in enumerate(labels.tolist())}
    unknown = [label for label in wanted if label not in place]
    if unknown:
        raise LabelError.unknown(unknown, labels.tolist())
    if len(set(wanted)) < len(wanted):
        raise OptionError.of("labels", list(wanted), "named once each")
    return np.array([place[label] for label in wanted], dtype=np.intp)


def columns_of(features: Sequence[str], wanted: Sequence[str] | Sequence[int]) -> Places:
    """The place of each feature wanted, by name, by place, or by a truth value for each of all."""
    asked: list[Any] = list(wanted)
    if asked and all(isinstance(f, (bool, np.bool_)) for f in asked):
        if len(asked) != len(features):
            allowed = f"one for each of the {len(features)} features"
            raise OptionError.of("features", f"{len(asked)} truth values", allowed)
        return np.flatnonzero(asked)
    place: dict[Any, int] = {name: j for j, name in enumerate(features)}
    d = len(features)
    whole = {j: j % d for j in range(-d, d)}
    wrong = [f for f in asked if f not in (place if isinstance(f, str) else whole)]
    wrong += [f for f in asked if isinstance(f, (bool, np.bool_))]
    if wrong:
        allowed = f"among {list(features)[:20]} or their places 0 to {d - 1}"
        raise OptionError.of("features", wrong, allowed)
    chosen = [place[f] if isinstance(f, str) else whole[int(f)] for f in asked]
    if len(set(chosen)) < len(chosen):
        twice = sorted({features[j] for j in chosen if chosen.count(j) > 1})
        raise OptionError.of("features", twice, "named once each")
    return np.array(chosen, dtype=np.intp)


def per_class(
    labels: Labels, factors: Mapping[Any, float] | npt.ArrayLike, *, option: str = "factors"
) -> Floats:
    """(K,) a factor for each class; one that a mapping does not name is 1. `option`: its name."""
    if isinstance(factors, Mapping):
        codes_of(labels, list(factors))
        factors = [float(factors.get(label, 1.0)) for label in labels.tolist()]
    found = np.array(factors, dtype=np.float64)  # a copy: the caller may change the array later
    if found.shape != labels.shape:
        raise OptionError.of(
            option, f"array of shape {found.shape}", f"one number for {len(labels)} classes"
        )
    for wrong in found[~(np.isfinite(found) & (found >= 0))]:
        raise OptionError.of(option, float(wrong), "finite and not negative")
    return found


def grouped(labels: Labels, groups: Mapping[Any, Sequence[Any]]) -> tuple[Labels, Places]:
    """Labels after merging, sorted, and the new code of each old class; unnamed classes stay."""
    taken = [label for members in groups.values() for label in members]
    codes_of(labels, taken)
    whole = {label: [label] for label in labels.tolist() if label not in set(taken)}
    for name in groups:
        if name in whole:
            raise OptionError.of("groups", name, "a name no class that stays apart already has")
    wanted = {**whole, **groups}
    names = np.empty(len(wanted), dtype=object)
    names[:] = list(wanted)
    labels_after, places = encode_labels(names)
    code = np.zeros(len(labels), dtype=np.intp)
    for new, members in zip(places, wanted.values(), strict=True):
        code[codes_of(labels, members)] = new
    return labels_after, code
