"""Example data: data sets of scikit-learn, written as CSV, with a command to try on each."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path
from typing import Any

from discriminant import store
from discriminant.cli.session import DONE, Session, track_output
from discriminant.errors import CommandError, check_file_name
from discriminant.table.files.atomic import atomic_write_bytes

_SETS = {
    "iris": ("species", "150 flowers of three species: the classic of 1936."),
    "wine": ("cultivar", "178 wines of three cultivars, by their chemistry."),
    "breast_cancer": (
        "diagnosis",
        "569 tumours, malignant or benign, by cells under a microscope.",
    ),
    "digits": ("digit", "1,797 handwritten digits, by the ink in 64 squares."),
}


def write_examples(session: Session, folder: str, *, force: bool = False) -> int:
    """Write all examples. A file of the same name but with other content needs `force`."""
    check_file_name(folder)
    texts = {Path(folder) / f"{name}.csv": _text(name) for name in _SETS}
    for file, text in texts.items():
        if not force and file.exists() and not _has_content(file, text):
            raise CommandError.would_overwrite(file)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise CommandError(f"{folder} is a file. Name a folder; a new folder is created.") from None
    for file in texts:
        store.check_writable(file)
        track_output(file)
    for file, text in texts.items():
        if not _has_content(file, text):
            atomic_write_bytes(file, text)
    examples = [_describe(name, file) for name, file in zip(_SETS, texts, strict=True)]
    lines = []
    for example in examples:
        lines += [f"{example['file']}: {example['about']}", f"  {example['command']}", ""]
    session.result({"examples": examples}, "\n".join(lines))
    return DONE


def _has_content(file: Path, text: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(text) and file.read_bytes() == text


def _text(name: str) -> bytes:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    names = [str(column) for column in bunch.feature_names]
    labels = [str(label) for label in bunch.target_names[bunch.target].tolist()]
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*names, _SETS[name][0]])
    for row, label in zip(bunch.data.tolist(), labels, strict=True):
        out.writerow([*(f"{value:g}" for value in row), label])
    return text.getvalue().encode("utf-8")


def _describe(name: str, file: Path) -> dict[str, Any]:
    target, about = _SETS[name]
    command = shlex.join(["discriminant", "report", str(file), "--target", target])
    return {"name": name, "file": str(file), "about": about, "target": target, "command": command}
