"""Counts over all rows of a table: decisions, curves, and rows per cell of a map.

The page itself counts the rows that it shows: up to 5,000 rows, each predicted by a model fitted to
the others. For larger tables it shows those counts first, and then the counts of this module: exact
counts over all rows, predicted by the model that was fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.pipeline import Pipeline

import discriminant as dd
from discriminant.assessment.assessment import Assessment
from discriminant.assessment.resampling.folds import fold_numbers
from discriminant.decision.actions import REJECT, Reject, least_cost, rejected
from discriminant.decision.costs import Costs
from discriminant.errors import InputError, capture_warnings
from discriminant.estimators.meta.decision import final_estimator
from discriminant.table.blocks import Codes, Floats
from discriminant.table.memory import ColumnarFeatures, NamedFeatures
from discriminant.web.studio.specification import Edits, ModelChoice, number, numbers
from discriminant.web.studio.tables import OpenTable

_BLOCK = 1 << 16
_CURVE = 200  # points of a curve
_SURFACE_ROWS = 5_000
_SURFACE_STEPS = tuple(np.round(np.linspace(0, 1, 11), 3).tolist())
_SURFACE_WORK = 2e9  # operations beyond which fewer rows are used
_MAX_CELLS = 4_000_000  # of a map, for all classes together


def named_rows(table: OpenTable, X: Any, places: npt.NDArray[np.intp]) -> NamedFeatures:
    """Return the features in use, with their names."""
    names = tuple(table.features[j] for j in places)
    columns = X.columns if isinstance(X, ColumnarFeatures) else np.asarray(X).T
    return NamedFeatures(names, ColumnarFeatures(tuple(columns[j] for j in places)))


def log_posteriors(model: Any, rows: Any) -> Floats:
    """Return log posteriors; for least squares, logarithms of the clipped fitted values."""
    if isinstance(model, Pipeline):  # its first step takes a data frame
        rows = pa.table(dict(zip(rows.column_names, rows.features.columns, strict=True)))
    if isinstance(final_estimator(model), dd.LeastSquares):
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(model.predict_proba(rows)))
    return np.asarray(model.predict_log_proba(rows))


def row_blocks(table: OpenTable, edits: Edits) -> Iterator[tuple[Any, Codes, Floats | None]]:
    """Yield features, codes and weights of all rows after edits, a block at a time."""
    X: Any = table.table.features
    codes, weight = table.table.codes, table.table.weight
    if edits:
        X, codes, weight = table.edited_rows(edits)
    for low in range(0, len(codes), _BLOCK):
        rows = slice(low, low + _BLOCK)
        if isinstance(X, ColumnarFeatures):  # views, without stacking the columns
            part: Any = ColumnarFeatures(tuple(column[rows] for column in X.columns))
        else:
            part = X[rows]
        yield part, codes[rows], None if weight is None else weight[rows]


def evaluate_choice(
    table: OpenTable, choice: ModelChoice, edits: Edits, label: Any = None
) -> dict[str, Any]:
    """Count the decisions of a model over all rows, and rank the rows for one class.

    Returns the confusion matrix (decisions in rows), and the curves of the class `label`.
    """
    if label is not None and label not in table.labels:
        raise InputError("label must be one of the classes.")
    model, places = table.fitted(choice, edits), table.places(choice)
    labels = table.table.schema.labels
    own = 0 if label is None else table.labels.index(label)
    cost = choice.cost_by_label(table.own_labels)
    costs = None if cost is None else Costs.of(cost, labels)
    reject = None if choice.reject is None else Reject.of(choice.reject)

    def count(block: Any) -> tuple[Assessment, Floats, npt.NDArray[np.bool_], Floats]:
        X, codes, weight = block
        rows = named_rows(table, X, places)
        logs = log_posteriors(model, rows)
        if choice.model == "ridge":  # fitted values are not probabilities
            predicted = logs.argmax(axis=1)
            tally = Assessment.from_decisions(codes, predicted, labels=labels, weight=weight)
        else:
            decisions = least_cost(logs, costs)[0]
            if reject is not None:
                decisions = np.where(rejected(logs, reject, costs), len(labels), decisions)
            others = () if reject is None else (REJECT,)
            tally = Assessment.from_decisions(
                codes, decisions, labels=labels, others=others, log_posterior=logs, weight=weight
            )
        return tally, logs[:, own], codes == own, _certainty(logs, codes)

    with ThreadPoolExecutor(2) as pool, capture_warnings():
        parts = list(pool.map(count, row_blocks(table, edits)))
    total = parts[0][0]
    for part in parts[1:]:
        total = total + part[0]
    scores = np.concatenate([part[1] for part in parts])
    positive = np.concatenate([part[2] for part in parts])
    certainty = np.sum([part[3] for part in parts], axis=0)
    return {
        "rows": len(scores),
        "confusion": total.weight.tolist(),
        "error": total.error,
        "log_loss": None if choice.model == "ridge" else total.log_loss,
        "curve": _curve(scores, positive, labels[own]),
        "reliability": None if choice.model == "ridge" else _reliability(total, labels[own]),
        "certainty": dict(zip(("rows", "wrong"), certainty.tolist(), strict=True)),
    }


def _curve(scores: Floats, positive: npt.NDArray[np.bool_], label: Any) -> dict[str, Any] | None:
    """Return up to 200 points of the ROC curve, with counts, and its exact area."""
    count = int(positive.sum())
    if not 0 < count < len(positive):
        return None
    curve = dd.roc(positive, scores, positive=True)
    m = len(curve.fpr)
    steps = np.unique(
        np.concatenate(
            [
                np.searchsorted(curve.fpr, np.linspace(0, 1, _CURVE // 2), side="right") - 1,
                np.searchsorted(curve.tpr, np.linspace(0, 1, _CURVE // 2)),
                [0, m - 1],
            ]
        ).clip(0, m - 1)
    )
    return {
        "label": str(label),
        "threshold": np.exp(np.minimum(curve.threshold[steps], 0.0)).tolist(),
        "fpr": curve.fpr[steps].tolist(),
        "tpr": curve.tpr[steps].tolist(),
        "auc": curve.area,
        "positive": count,
        "negative": len(positive) - count,
    }


def _reliability(total: Assessment, label: Any) -> list[dict[str, float]]:
    curve = total.calibration(label, bins=10).to_dict()
    names = ("predicted", "observed", "weight")
    return [
        dict(zip(names, values, strict=True))
        for values in zip(*(curve[name] for name in names), strict=True)
    ]


def _certainty(logs: Floats, codes: Codes) -> Floats:
    """Return (2, 100) counts: rows and misclassified rows, in bins of the largest probability."""
    predicted = logs.argmax(axis=1)
    largest = np.exp(np.take_along_axis(logs, predicted[:, None], axis=1)[:, 0])
    bins = np.minimum((largest * 100).astype(np.intp), 99)
    rows = np.bincount(bins, minlength=100)
    return np.array([rows, np.bincount(bins, predicted != codes, minlength=100)], dtype=float)


# --- maps -----------------------------------------------------------------------------------------


def count_density(table: OpenTable, body: dict[str, Any]) -> bytes:
    """Return the number of rows of each class in each cell of a map, (K, height, width) int32.

    A row x has the coordinates (x - centre) . axis on two axes.
    """
    d, K = len(table.features), len(table.labels)
    centre = np.array(numbers(body.get("centre"), "centre", d))
    axes = body.get("axes")
    if not isinstance(axes, list) or len(axes) != 2:
        raise InputError("axes must be two lists of numbers.")
    axes = [np.array(numbers(axis, "axes", d)) for axis in axes]
    low_x, high_x, low_y, high_y = numbers(body.get("box"), "box", 4)
    width = int(number(body.get("width"), "width", 1, 1000))
    height = int(number(body.get("height"), "height", 1, 1000))
    if not (low_x < high_x and low_y < high_y and K * width * height <= _MAX_CELLS):
        raise InputError(
            "box must have a positive width and height, with at most "
            f"{_MAX_CELLS // K:,} cells for {K} classes."
        )
    counts = np.zeros(K * height * width, dtype=np.int64)
    for X, codes, _ in row_blocks(table, Edits()):
        x, y = ((np.asarray(X) - centre) @ axis for axis in axes)
        i = np.floor((x - low_x) / (high_x - low_x) * width)
        j = np.floor((y - low_y) / (high_y - low_y) * height)
        inside = (i >= 0) & (i < width) & (j >= 0) & (j < height)
        own = codes[inside].astype(np.intp)  # codes may be stored in one byte
        cell = (own * height + j[inside].astype(np.intp)) * width + i[inside].astype(np.intp)
        counts += np.bincount(cell, minlength=len(counts))
    return counts.astype("<i4").tobytes()


def error_surface(table: OpenTable, choice: ModelChoice) -> dict[str, Any]:
    """Return the 10-fold cross-validation error of RDA over pooling and shrinkage."""
    places, K = table.places(choice), len(table.labels)
    if table.moments.detail != "class":
        raise InputError("RDA needs a covariance for each class: leave columns out.")
    codes = table.table.codes
    work = len(_SURFACE_STEPS) ** 2 * len(places) ** 2 * K
    most = int(min(_SURFACE_ROWS, max(_SURFACE_WORK / work, 500)))
    shown = table.shown
    if len(shown) > most:
        shown = np.sort(np.random.default_rng(1).choice(shown, most, replace=False))
    X = np.asarray(table.table.features[shown], dtype=np.float64)[:, places]
    y = table.table.schema.labels[codes[shown]]
    _, numbered = np.unique(y, return_inverse=True)
    folds = min(10, int(np.bincount(numbered).min()))
    if folds < 2:
        raise InputError("A class has fewer than two rows, so that no row of it can be held out.")
    prior = dict(choice.options).get("prior")
    with capture_warnings():
        grid = dd.rda_grid(
            X,
            y,
            fold_numbers(folds, numbered, seed=0),
            pooling=_SURFACE_STEPS,
            shrinkage=_SURFACE_STEPS,
            prior=(None if prior is None else np.array(prior),),
        )
    p, s, _ = grid.best()
    return {
        "pooling": grid.pooling.tolist(),
        "shrinkage": list(grid.shrinkage),
        "error": grid.error[:, :, 0].tolist(),
        "log_loss": grid.log_loss[:, :, 0].tolist(),
        "best": [float(grid.pooling[p]), float(grid.shrinkage[s])],
        "rows": len(shown),
        "folds": folds,
    }
