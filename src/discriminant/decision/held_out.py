"""Held-out rows at the door of curves and tuning: log posteriors, true classes, weights, costs.

Codes count the columns of the posteriors, from 0. Labels do as well, where it is known which column
is whose: by `classes`, by the names of the columns of a data frame, or by the labels of the costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.decision.costs import Costs
from discriminant.errors import LabelError, ShapeError
from discriminant.posterior import checked_logs
from discriminant.table.class_columns import classes_of_columns
from discriminant.table.labels import code_labels, encode_labels
from discriminant.table.schema import Codes, Floats, Labels
from discriminant.table.weights import open_weight


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """n rows of K classes that were not fitted."""

    log_posterior: Floats  # (n, K)
    codes: Codes  # (n,)
    weight: Floats  # (n,)
    costs: Costs | None

    @classmethod
    def of(
        cls,
        log_posterior: Any,
        truth: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        costs: Any = None,
    ) -> HeldOut:
        """Checked; the columns in the order of `classes`, or else as they are.

        >>> HeldOut.of(np.log([[0.9, 0.1]]), ["ill"], classes=["well", "ill"]).codes.tolist()
        [1]
        """
        known = _known(log_posterior, classes, costs)
        logs = checked_logs(log_posterior, None if known is None else len(known))
        if known is not None:
            logs = logs[:, _places(log_posterior, known)]
        codes = _codes(truth, known, logs.shape[1], by_label=classes is not None)
        if len(codes) != len(logs):
            raise ShapeError.of_lengths("log_posterior", len(logs), len(codes))
        weight = open_weight(sample_weight, len(codes))
        labels = np.arange(logs.shape[1]) if known is None else known
        return cls(
            logs,
            codes,
            np.ones(len(codes)) if weight is None else weight,
            None if costs is None else Costs.of(costs, labels),
        )


def _known(log_posterior: Any, classes: Any, costs: Any) -> Labels | None:
    """(K,) labels in the order that codes have; None if nothing says them."""
    if classes is None and isinstance(costs, Costs):
        return costs.labels
    if classes is None:
        classes = classes_of_columns(log_posterior, found=[], classes=None, what="log_posterior")
    if classes is None:
        return None
    found, place = encode_labels(classes)
    if len(found) < len(place):
        raise LabelError.twice(np.asarray(classes).tolist())
    return np.asarray(found[place])


def _places(log_posterior: Any, known: Labels) -> list[int]:
    """(K,) the column of each label."""
    names = known.tolist()
    found = classes_of_columns(log_posterior, found=names, classes=names, what="log_posterior")
    return [list(found).index(name) for name in names]


def _codes(truth: Any, known: Labels | None, classes: int, *, by_label: bool) -> Codes:
    labels, place = encode_labels(truth)
    if by_label or labels.dtype.kind not in "iubf":
        if known is None:
            raise LabelError.uncoded(labels.tolist())
        return code_labels(labels[place], known)
    codes = labels.astype(np.intp)[place]
    for row in np.flatnonzero((codes < 0) | (codes >= classes)):
        raise LabelError.no_code(int(row), int(codes[row]), classes)
    return codes
