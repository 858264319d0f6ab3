"""An assessment as text, as a dictionary and as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.assessment.layout import table
from discriminant.assessment.rates import AVERAGES, DECIDED
from discriminant.errors import OptionError
from discriminant.table.frames import pandas

if TYPE_CHECKING:
    from discriminant.assessment.measures import Assessment

_CLASS_MEASURES = ("precision", "recall", "f1", "specificity", "support")
_SHOWN = 12  # classes whose confusion matrix is printed whole; of more, the largest cells
_LARGEST = 10
_NAMES = {"mcc": "MCC", "f1": "F1", "brier": "Brier"}


def text_of(found: Assessment) -> str:
    """A page: what was measured, the confusion matrix, a line for each class."""
    rows, weight = int(found.rows.sum()), float(found.weight.sum())
    worth = "" if weight == rows else f" (weight {weight:.6g})"
    lines = [f"{rows} rows{worth} of {len(found.labels)} classes{_decided_words(found)}", ""]
    lines += _measure_lines(found)
    lines += ["", *_confusion_lines(found), "", *_class_lines(found)]
    return "\n".join(lines)


def facts_of(found: Assessment) -> dict[str, Any]:
    """Plain numbers, lists and texts."""
    scored = bool(found.scored.weight[0].any())
    return {
        "labels": found.labels.tolist(),
        "actions": [*found.labels.tolist(), *map(str, found.others)],
        "rows": int(found.rows.sum()),
        "weight": float(found.weight.sum()),
        "confusion": found.weight.tolist(),
        "decided": float(found.weight[: len(found.labels)].sum()),
        "measures": measures_of(found),
        "measured_on": {name: rows_of(found, name) for name in measures_of(found)},
        "classes": class_records(found),
        "averages": average_records(found),
        "calibration": found.calibration().to_dict() if scored else None,
    }


def frame_of(found: Assessment, what: str) -> Any:
    """A pandas frame of the classes, the confusion matrix, the averages or all measures."""
    frame = pandas().DataFrame
    if what == "confusion":
        index = pandas().Index(list(found.actions), dtype=object, name="decided")
        columns = pandas().Index(found.labels.tolist(), name="true")
        return frame(found.weight, index=index, columns=columns)
    if what == "classes":
        return frame(class_records(found)).set_index("class")
    if what == "averages":
        return frame(average_records(found)).set_index("average")
    if what == "measures":
        return frame([_with_ends(found, name) for name in measures_of(found)]).set_index("measure")
    raise OptionError.of("what", what, "'classes', 'confusion', 'averages' or 'measures'")


def measures_of(found: Assessment) -> dict[str, float]:
    """The measures over all classes, those that there are."""
    names = ["error", "accuracy"]
    if found.others:
        names += ["coverage", "rejected", "outliers"]
    names += ["balanced_accuracy", "mcc", "kappa"]
    scored = bool(found.scored.weight[0].any())
    names += ["log_loss", "brier"] if scored else []
    facts = {name: float(getattr(found, name)) for name in names}
    return facts | ({"calibration_error": found.calibration_error()} if scored else {})


def rows_of(found: Assessment, measure: str) -> str:
    """The rows that a measure is of: 'decided' or 'all'."""
    return "decided" if found.others and measure in DECIDED else "all"


def class_records(found: Assessment) -> list[dict[str, Any]]:
    """A record for each class."""
    columns = {name: getattr(found, name).tolist() for name in _CLASS_MEASURES}
    return [
        {"class": label} | {name: values[k] for name, values in columns.items()}
        for k, label in enumerate(found.labels.tolist())
    ]


def average_records(found: Assessment) -> list[dict[str, Any]]:
    """A record for each way to average."""
    return [
        {
            "average": way,
            "precision": found.average("precision", way),
            "recall": found.average("recall", way),
            "f1": found.average("f", way),
        }
        for way in AVERAGES
    ]


def _with_ends(found: Assessment, name: str) -> dict[str, Any]:
    """A measure with its interval, where that needs no drawing."""
    if name in ("balanced_accuracy", "mcc", "kappa", "calibration_error"):
        value = measures_of(found)[name]
        low = high = np.nan
    else:
        ends = found.interval(name)
        value, low, high = ends.value, ends.low, ends.high
    of = rows_of(found, name)
    return {"measure": name, "value": value, "low": low, "high": high, "rows": of}


def _measure_lines(found: Assessment) -> list[str]:
    rows, several = [], bool(found.others)
    for name in measures_of(found):
        facts = _with_ends(found, name)
        ends = "" if np.isnan(facts["low"]) else f"{facts['low']:.4f} to {facts['high']:.4f}"
        title = _NAMES.get(name, name.replace("_", " "))
        rows.append([title, _rate(facts["value"]), ends, *([facts["rows"]] if several else [])])
    return table("", ["", "value", "95% interval", *(["of rows"] if several else [])], rows)


def _decided_words(found: Assessment) -> str:
    """How many rows are decided, where some are not."""
    if not found.others:
        return ""
    decided = found.rows[: len(found.labels)].sum()
    return f", {int(decided)} decided (coverage {found.coverage:.1%})"


def _confusion_lines(found: Assessment) -> list[str]:
    names = [str(action) for action in found.actions]
    truth = [str(label) for label in found.labels.tolist()]
    if len(truth) <= _SHOWN:
        cells = [[name, *map(_count, line)] for name, line in zip(names, found.weight, strict=True)]
        return table("", ["decided \\ true", *truth], cells)
    wrong = found.weight.copy()
    np.fill_diagonal(wrong, 0.0)
    places = np.argsort(-wrong, axis=None, kind="stable")[:_LARGEST]
    cells = [
        [names[a], truth[k], _count(wrong[a, k])]
        for a, k in zip(*np.unravel_index(places, wrong.shape), strict=True)
        if wrong[a, k] > 0
    ]
    return table("Most often confused", ["decided", "true", "rows"], cells)


def _class_lines(found: Assessment) -> list[str]:
    rows = [
        [
            str(line["class"]),
            *(_rate(line[name]) for name in _CLASS_MEASURES[:-1]),
            _count(line["support"]),
        ]
        for line in class_records(found)
    ]
    rows += [
        [
            line["average"],
            _rate(line["precision"]),
            _rate(line["recall"]),
            _rate(line["f1"]),
            "",
            "",
        ]
        for line in average_records(found)
    ]
    return table("", ["", "precision", "recall", "F1", "specificity", "support"], rows)


def _rate(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.6g}"
