"""Metrics of the service in the text format of Prometheus.

    discriminant_requests_total{route, status}             requests
    discriminant_request_seconds{route}                    histogram of their duration
    discriminant_rows_total{model}                         rows predicted
    discriminant_predictions_total{model, class}           rows by predicted class
    discriminant_rejected_rows_total{model}                decisions to reject
    discriminant_outlier_rows_total{model}                 decisions that a row is like no class
    discriminant_class_share, _rejected_share, _outlier_share    the same as shares of the rows
    discriminant_drift_distance{model}                     Mahalanobis distance of the mean of the
                                                           rows from that of the training rows
    discriminant_drift_t2, _p_value, _rows{model}          Hotelling's T2 test of the two means

Drift needs a model that stores the moments of its training rows. The rows of requests are summed to
separate moments and are not stored. Counts and moments start at zero with the process; those of a
model are also reset when its file changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np

from discriminant.assessment.inference.mean_and_covariance_tests import hotelling
from discriminant.engines.dispatch import read_moments
from discriminant.errors import DiscriminantError, capture_warnings
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Schema
from discriminant.table.encoding import EncodedRows
from discriminant.table.memory import Table
from discriminant.web.service.models import ServedModel
from discriminant.web.service.predictions import RequestPredictions

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MAX_CLASSES = 1000  # models with more classes have no counts by class
_MAX_FEATURES = 500  # models with more features have no drift
_BUFFERED_ROWS = 4096


class Drift:
    """Moments of the rows of requests, and those of the training rows."""

    def __init__(self, training: ClassMoments) -> None:
        self._training = training.reduce("pooled") if training.detail != "pooled" else training
        self._served: ClassMoments | None = None
        self._buffer: list[EncodedRows] = []
        self._buffered = 0

    @classmethod
    def of(cls, model: ServedModel) -> Drift | None:
        """Return the drift of a model, or None if it stores no products of features."""
        moments = model.predictor.training_moments()
        if not isinstance(moments, ClassMoments) or moments.detail == "diagonal":
            return None
        return cls(moments) if len(moments.features) <= _MAX_FEATURES else None

    def add(self, rows: EncodedRows) -> None:
        """Add some rows; those with missing features are left out."""
        self._buffer.append(rows)
        self._buffered += rows.shape[0]
        if self._buffered >= _BUFFERED_ROWS:
            self._fold()

    def _fold(self) -> None:
        if not self._buffer:
            return
        by_column = zip(*(rows.features.columns for rows in self._buffer), strict=True)
        rows = np.column_stack([np.concatenate(parts, dtype=np.float64) for parts in by_column])
        self._buffer, self._buffered = [], 0
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not len(rows):
            return
        schema = Schema(self._training.features, np.array(["rows"]), True)
        table = Table(schema, rows, np.zeros(len(rows), dtype=np.uint8))
        moments = read_moments(table, detail="pooled", anchor=self._training.anchor, threads=1)
        self._served = moments if self._served is None else self._served + moments

    def test(self) -> dict[str, float] | None:
        """Return the test that the two means are equal, or None with fewer than 2 rows."""
        self._fold()
        if self._served is None or self._served.weight.sum() < 2:
            return None
        try:
            with capture_warnings():
                result = hotelling(self._training, self._served)
        except DiscriminantError:  # such as constant columns: there is no test
            return None
        return {
            "distance": float(np.sqrt(max(result.d2, 0.0))),
            "t2": float(result.t2.value),
            "p_value": float(result.t2.p),
            "rows": float(self._served.weight.sum()),
        }


class ModelMetrics:
    """Counts of one model since it was loaded."""

    def __init__(self, model: ServedModel) -> None:
        labels = model.predictor.labels
        self.digest = model.digest
        self.classes = [str(label) for label in labels] if len(labels) <= _MAX_CLASSES else []
        self.by_class: Counter[str] = Counter()
        self.rows = self.rejected = self.outliers = 0
        self.decides = False
        self.drift = Drift.of(model)


class Metrics:
    """Metrics of a service."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._models: dict[str, ModelMetrics] = {}
        self._lock = Lock()

    def reset(self, model: ServedModel) -> None:
        """Set the counts of a model to zero, because it was loaded."""
        fresh = ModelMetrics(model)
        with self._lock:
            self._models[model.name] = fresh

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[route, status] += 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(_BOUNDS) + 1)
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def predictions(self, model: ServedModel, predictions: RequestPredictions) -> None:
        """Count the rows of a request by class and decision."""
        with self._lock:
            counts = self._models[model.name]
            if counts.digest != model.digest:
                return  # a request that began before the model was replaced
            counts.rows += len(predictions.predicted)
            if counts.classes:
                for label, rows in Counter(predictions.predicted).items():
                    counts.by_class[str(label)] += rows
            if predictions.decision is not None:
                counts.decides = True
                counts.rejected += predictions.decision.count("REJECT")
                counts.outliers += predictions.decision.count("OUTLIER")
            if counts.drift is not None and predictions.encoded is not None:
                counts.drift.add(predictions.encoded)

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        lines: list[str] = []
        _add(
            lines,
            "requests_total",
            "counter",
            "Requests by route and status.",
            (({"route": r, "status": str(s)}, n) for (r, s), n in self._requests.items()),
        )
        self._add_histogram(lines)
        with self._lock:
            self._add_models(lines)
        return "\n".join(lines) + "\n"

    def _add_histogram(self, lines: list[str]) -> None:
        name = "discriminant_request_seconds"
        lines += [f"# HELP {name} Duration of requests.", f"# TYPE {name} histogram"]
        for route, buckets in self._buckets.items():
            total = 0
            for bound, n in zip((*_BOUNDS, "+Inf"), buckets, strict=True):
                total += n
                lines.append(f"{name}_bucket{_labels({'route': route, 'le': str(bound)})} {total}")
            lines.append(f"{name}_sum{_labels({'route': route})} {self._seconds[route]:.9g}")
            lines.append(f"{name}_count{_labels({'route': route})} {total}")

    def _add_models(self, lines: list[str]) -> None:
        models = self._models.items()
        deciding = [(name, counts) for name, counts in models if counts.decides]
        _add(
            lines,
            "rows_total",
            "counter",
            "Rows predicted.",
            (({"model": name}, counts.rows) for name, counts in models),
        )
        _add(
            lines,
            "predictions_total",
            "counter",
            "Rows by predicted class.",
            (
                ({"model": name, "class": label}, counts.by_class[label])
                for name, counts in models
                for label in counts.classes
            ),
        )
        _add(
            lines,
            "class_share",
            "gauge",
            "Share of the rows by predicted class.",
            (
                ({"model": name, "class": label}, counts.by_class[label] / counts.rows)
                for name, counts in models
                if counts.rows
                for label in counts.classes
            ),
        )
        for what, text in (("rejected", "rejected"), ("outliers", "like no class")):
            word = "outlier" if what == "outliers" else what
            _add(
                lines,
                f"{word}_rows_total",
                "counter",
                f"Rows decided as {text}.",
                (({"model": name}, getattr(counts, what)) for name, counts in deciding),
            )
            _add(
                lines,
                f"{word}_share",
                "gauge",
                f"Share of the rows decided as {text}.",
                (
                    ({"model": name}, getattr(counts, what) / counts.rows)
                    for name, counts in deciding
                    if counts.rows
                ),
            )
        tests = {
            name: test
            for name, counts in models
            if counts.drift is not None and (test := counts.drift.test()) is not None
        }
        for fact, text in (
            ("distance", "Mahalanobis distance of the mean from that of the training rows."),
            ("t2", "Hotelling's T2 of the rows of requests against the training rows."),
            ("p_value", "p-value of Hotelling's T2."),
            ("rows", "Rows of requests in the test."),
        ):
            values = (({"model": name}, test[fact]) for name, test in tests.items())
            _add(lines, f"drift_{fact}", "gauge", text, values)


def _add(
    lines: list[str],
    name: str,
    kind: str,
    text: str,
    values: Iterable[tuple[dict[str, str], float]],
) -> None:
    name = f"discriminant_{name}"
    lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in values]


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _labels(labels: dict[str, Any]) -> str:
    pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return "{" + pairs + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
