"""One open table: the options of its columns, its moments, and the rows that the page shows.

The page gets the moments of all rows, which suffice to fit every Gaussian or least-squares model,
and up to 5,000 rows to draw. Both are sent in one binary response, because a page can read a float
array from bytes without parsing and without a library:

    4 bytes           length of the header (little-endian)
    header            JSON: {"arrays": [[name, type, length], ...]}, padded with spaces to 8 bytes
    arrays            float64 or int32, each padded to 8 bytes
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

import discriminant as dd
from discriminant.errors import InputError, capture_warnings
from discriminant.estimators.meta.encoded import Encoded
from discriminant.moments.class_moments import ClassMoments
from discriminant.study.workflow import Study
from discriminant.table.blocks import Codes, Floats
from discriminant.table.encoding import Encoding
from discriminant.web.responses import HttpError, Response, dump
from discriminant.web.studio.sources import Source
from discriminant.web.studio.specification import MOST_TERMS, Edits, ModelChoice

SHOWN_ROWS = 5_000
_SHOWN_NUMBERS = 2_000_000  # largest number of cells of the rows that the page gets
_MAX_CELLS = 3_000_000  # largest number of entries of all scatter matrices
_BLOCK = 1 << 16
_MODELS = 8  # fitted models that are stored
_LARGEST = 1e60  # value whose squares and products can be summed and squared again
BINARY = b"application/octet-stream"


class OpenTable:
    """A table that was opened in the studio."""

    def __init__(
        self, number: int, source: Source, target: str, reading: dict[str, Any], folder: Path
    ) -> None:
        self.number, self.source, self.target = number, source, target
        self.reading = {name: value for name, value in reading.items() if value}
        self.report_file = folder / f"report-{number}.html"
        self.study = self.new_study(self.reading)
        self.opened = self.study.opened
        self.table = self.opened.table
        self.partial = self.study.study_source.partitioned is not None
        partitioned = self.study.study_source.partitioned
        self.sampled = partitioned is not None and not partitioned.sample_is_complete
        self._models: OrderedDict[Any, Any] = OrderedDict()
        self._lock = Lock()
        self._check_size()

    def new_study(self, reading: dict[str, Any], **options: Any) -> Study:
        """Open the source as a study."""
        study: Study = dd.study(
            self.source.path, target=self.target, **self.source.options, **reading, **options
        )
        study.source = self.source.name
        study.study_source = replace(study.study_source, name=self.source.name)
        return study

    def _check_size(self) -> None:
        d = len(self.features)
        if d * d > _MAX_CELLS:
            raise InputError(
                f"The table has {d:,} features; the studio shows up to {int(_MAX_CELLS**0.5):,}. "
                "Leave columns out, or use discriminant report, which has no such limit."
            )

    # --- facts ------------------------------------------------------------------------------------

    @property
    def labels(self) -> list[str]:
        """Labels of the classes as the page shows them."""
        return [str(label) for label in self.own_labels]

    @property
    def own_labels(self) -> list[Any]:
        """Labels of the classes as in the table: text, whole numbers or booleans."""
        labels: list[Any] = self.table.schema.labels.tolist()
        return labels

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.table.schema.features

    @property
    def columns(self) -> list[str]:
        """Names of the columns that have features."""
        return [column.name for column in self.opened.encoding.used]

    @cached_property
    def moments(self) -> ClassMoments:
        """Moments of all rows."""
        d, K = len(self.features), len(self.labels)
        if self.partial:
            moments = self.study.moments
            if moments is None:
                raise InputError("The table has too many features for the studio.")
            return moments
        table = self.table
        detail: Any = "class" if K * d * d <= _MAX_CELLS else "pooled"
        sums = dd.moments(table.features[:], table.schema.labels[table.codes], table.weight, detail)
        return replace(sums, features=self.features)

    @cached_property
    def shown(self) -> npt.NDArray[np.intp]:
        """Numbers of the rows that the page draws: all, or a random sample."""
        n, most = len(self.table), min(SHOWN_ROWS, _SHOWN_NUMBERS // max(len(self.features), 1))
        if n <= most:
            return np.arange(n)
        sample = np.random.default_rng(0).choice(n, most, replace=False)
        return np.sort(sample)

    def describe(self) -> Response:
        """Return the facts that the page shows as soon as the table is open."""
        encoding, moments = self.opened.encoding, self.moments
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "features": list(column.features),
                "levels": list(column.levels),
                "reference": column.reference,
                "missing": column.missing,
                "note": column.note,
            }
            for column in encoding.columns
        ]
        return Response(
            dump(
                {
                    "id": self.number,
                    "name": self.source.name,
                    "target": self.target,
                    "reading": self.reading,
                    "rows": len(self.study.rows),
                    "shown": len(self.shown),
                    "partial": self.partial,
                    "features": list(self.features),
                    "detail": moments.detail,
                    "basis_origin": self.basis_origin,
                    "classes": [
                        {"label": label, "rows": int(rows)}
                        for label, rows in zip(self.labels, moments.rows, strict=True)
                    ],
                    "columns": columns,
                    "notes": list(self.opened.notes),
                    "warnings": [str(warning) for warning in self.study.warnings],
                }
            )
        )

    def data(self) -> Response:
        """Return the moments of all rows, and the rows to draw."""
        sums, shown = self.moments, self.shown
        rows = np.asarray(self.table.features[shown], dtype=np.float64)
        arrays = {
            "origin": sums.anchor.origin,
            "unit": sums.anchor.unit,
            "weight": sums.weight,
            "weight2": sums.weight2,
            "rows": sums.rows,
            "mean": sums.mean,
            "scatter": sums.scatter,
            "lost": sums.lost,
            "points": rows,
            "codes": self.table.codes[shown].astype(np.int32),
            "numbers": shown.astype(np.int32),
        }
        return Response(pack(arrays), BINARY)

    def check(self) -> Response:
        """Return the findings of the data checks."""
        checks = self.study.check().to_dict()
        for finding in checks["findings"]:
            if finding["kind"] == "incomplete":  # its text names options of the command line
                finding["text"] = f"{', '.join(finding['columns'])}. {self._missing_text()}"
        return Response(dump(checks))

    def _missing_text(self) -> str:
        treatments = {
            "drop": "These rows are left out.",
            "mean": "The cells are filled in with the mean.",
            "indicator": "The cells are filled in with the mean, and marked by a column.",
        }
        return treatments.get(self.reading.get("missing", ""), "Choose their treatment below.")

    def report_page(self) -> Response:
        """Return the report that was written last."""
        if not self.report_file.exists():
            raise HttpError(404, "ReportError", "No report has been written.")
        return Response(self.report_file.read_bytes(), b"text/html; charset=utf-8")

    # --- models -----------------------------------------------------------------------------------

    def choice(self, given: Any, edits: Any = None) -> tuple[ModelChoice, Edits]:
        """Return the model and the edits that a page sent, after checking them."""
        chosen = ModelChoice.of(given, labels=self.labels, columns=self.columns)
        d = len(self.places(chosen))
        if chosen.degree == 2 and d * (d + 3) // 2 > MOST_TERMS:
            raise InputError(
                f"{d} features have {d * (d + 3) // 2} squares, products and features; the studio "
                f"fits up to {MOST_TERMS}. Leave columns out, or fit Basis(degree=2) in Python."
            )
        if self.sampled and edits:
            raise InputError(
                "This table is read in partitions, so that its points can be changed in the page "
                "but not counted, saved or exported. Undo the changes, or open a file of its rows."
            )
        size = {"rows": len(self.table), "classes": len(self.labels)}
        checked = Edits.of(edits, **size, features=len(self.features))
        self._check_classes(checked)
        return chosen, checked

    def _check_classes(self, edits: Edits) -> None:
        """Raise an error if edits leave a class without rows."""
        if not edits.removed:
            return
        left = np.bincount(self.table.codes, minlength=len(self.labels))
        np.subtract.at(left, self.table.codes[list(edits.removed)], 1)
        np.add.at(left, np.array([code for code, _ in edits.added], dtype=np.intp), 1)
        empty = [label for label, rows in zip(self.labels, left, strict=True) if rows == 0]
        if empty:
            raise InputError(
                f"All rows of the class {', '.join(empty)} are removed. Put one back, or draw one."
            )

    def encoding(self, choice: ModelChoice) -> Encoding:
        """Return the encoding without the columns that are left out."""
        return self.opened.encoding.without(choice.off)

    def places(self, choice: ModelChoice) -> npt.NDArray[np.intp]:
        """Return the numbers of the features in use."""
        used = set(self.encoding(choice).features)
        return np.array([j for j, name in enumerate(self.features) if name in used], dtype=np.intp)

    @cached_property
    def basis_origin(self) -> list[float]:
        """Origin of squares and products of the features: means, rounded."""
        basis = dd.Basis(degree=2, interactions=False)
        shown = np.asarray(self.table.features[self.shown], dtype=np.float64)
        origin: list[float] = np.asarray(basis.fit(shown).origin_).tolist()
        return origin

    def origin_of(self, choice: ModelChoice) -> list[float]:
        """Return the origin of the features in use."""
        return [self.basis_origin[j] for j in self.places(choice)]

    def fitted(self, choice: ModelChoice, edits: Edits) -> Any:
        """Return the classifier, fitted to the features in use of all rows."""
        key = choice.model, choice.options, choice.off, choice.degree, edits
        with self._lock:
            if key in self._models:
                self._models.move_to_end(key)
                return self._models[key]
        with capture_warnings():
            model = self._fit(choice, edits)
        with self._lock:
            self._models[key] = model
            while len(self._models) > _MODELS:
                self._models.popitem(last=False)
        return model

    def _fit(self, choice: ModelChoice, edits: Edits) -> Any:
        places, model = self.places(choice), choice.estimator(self.origin_of(choice))
        if choice.model != "logistic" and choice.degree == 1:
            return model.fit_moments(self.edited_moments(edits).select(places.tolist()))
        if self.sampled:
            if choice.degree == 2:
                raise InputError("Squares and products need all rows in memory.")
            return self.study.without(choice.off).fitted(model).estimator_
        rows, codes, weight = self.edited_rows(edits)
        if choice.degree == 2 and rows.size and np.abs(rows).max() > _LARGEST:
            raise InputError(
                f"A value is larger than {_LARGEST:g}, so that its square loses all digits. Divide "
                "the column by a unit, or leave squares and products out."
            )
        names = [self.features[j] for j in places]
        frame = dict(zip(names, np.ascontiguousarray(rows[:, places]).T, strict=True))
        import pyarrow as pa

        fitting = {} if weight is None else {"sample_weight": weight}
        if fitting and choice.degree == 2:
            raise InputError("Squares and products cannot be fitted to weighted rows here.")
        return model.fit(pa.table(frame), self.table.schema.labels[codes], **fitting)

    def edited_moments(self, edits: Edits) -> ClassMoments:
        """Return the moments after edits: rows removed, then classes shifted, then rows added."""
        sums, labels = self.moments, self.table.schema.labels
        detail: Any = sums.detail
        if edits.removed:
            removed = self.table.take(np.array(edits.removed))
            part = dd.moments(removed.features[:], labels[removed.codes], removed.weight, detail)
            sums = sums - replace(part, features=self.features)
        if edits.shifts:
            mean = sums.mean.copy()
            for code, shift in edits.shifts:
                mean[code] += np.array(shift) / sums.anchor.unit
            sums = replace(sums, mean=mean)
        if edits.added:
            X = np.array([row for _, row in edits.added])
            codes = np.array([code for code, _ in edits.added])
            sums = sums + replace(
                dd.moments(X, labels[codes], detail=detail), features=self.features
            )
        return sums

    def edited_rows(self, edits: Edits) -> tuple[Floats, Codes, Floats | None]:
        """Return all rows after edits."""
        X, codes = np.asarray(self.table.features[:], dtype=np.float64), self.table.codes
        weight = self.table.weight
        if not edits:
            return X, codes, weight
        left = np.ones(len(codes), dtype=bool)
        left[list(edits.removed)] = False
        X, codes = X[left], codes[left]
        for code, shift in edits.shifts:
            X[codes == code] += np.array(shift)
        if edits.added:
            X = np.vstack([X, [row for _, row in edits.added]])
            codes = np.concatenate([codes, [code for code, _ in edits.added]])
        if weight is not None:
            weight = np.concatenate([weight[left], np.ones(len(edits.added))])
        return X, codes, weight

    def model(self, choice: ModelChoice, edits: Edits) -> Any:
        """Return the model that accepts tables, with its decision."""
        encoded = Encoded.of_fitted(self.fitted(choice, edits), self.encoding(choice))
        if not choice.decides:
            return encoded
        cost = choice.cost_by_label(self.own_labels)
        return dd.Decision.of_fitted(encoded, cost=cost, reject=choice.reject)


def pack(arrays: dict[str, Any]) -> bytes:
    """Return arrays in the binary format that the page reads."""
    parts, listed = [], []
    for name, values in arrays.items():
        kind = "int32" if np.asarray(values).dtype == np.int32 else "float64"
        flat = np.ascontiguousarray(values, dtype="<i4" if kind == "int32" else "<f8").ravel()
        listed.append([name, kind, len(flat)])
        body = flat.tobytes()
        parts += [body, b"\0" * (-len(body) % 8)]
    header = dump({"arrays": listed})
    header += b" " * (-(len(header) + 4) % 8)
    return b"".join([len(header).to_bytes(4, "little"), header, *parts])
