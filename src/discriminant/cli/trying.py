"""examples: tables that come with scikit-learn, as CSV, with a command to try on each."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path
from typing import Any

from discriminant import store
from discriminant.cli.door import DONE, Session, watch
from discriminant.errors import FileError
from discriminant.table.replacing import write_whole

_SETS = {
    "iris": ("species", "150 flowers of three species: the classic of 1936."),
    "wine": ("cultivar", "178 wines of three cultivars, by their chemistry."),
    "breast_cancer": (
        "diagnosis",
        "569 tumours, malignant or benign, by cells under a microscope.",
    ),
    "digits": ("digit", "1,797 handwritten digits, by the ink in 64 squares."),
}


def examples(session: Session, folder: str) -> int:
    """Write them all."""
    place = Path(folder)
    if not place.is_dir():
        raise FileError.absent(str(place))
    files = {name: place / f"{name}.csv" for name in _SETS}
    for file in files.values():
        store.check_place(file)
        watch(file)
    found = [_written(name, file) for name, file in files.items()]
    lines = []
    for one in found:
        lines += [f"{one['file']}: {one['about']}", f"  {one['command']}", ""]
    session.tell({"examples": found}, "\n".join(lines))
    return DONE


def _written(name: str, file: Path) -> dict[str, Any]:
    from sklearn import datasets

    target, about = _SETS[name]
    bunch = getattr(datasets, f"load_{name}")()
    names = [str(column) for column in bunch.feature_names]
    labels = [str(label) for label in bunch.target_names[bunch.target].tolist()]
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*names, target])
    for row, label in zip(bunch.data.tolist(), labels, strict=True):
        out.writerow([*(f"{value:g}" for value in row), label])
    write_whole(file, text.getvalue().encode("utf-8"))
    command = shlex.join(["discriminant", "report", str(file), "--target", target])
    return {"name": name, "file": str(file), "about": about, "target": target, "command": command}
