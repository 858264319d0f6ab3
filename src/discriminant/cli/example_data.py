"""Example data: data sets of scikit-learn, written as CSV, with a command to try on each."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from discriminant import store
from discriminant.cli.session import DONE, Session, track_output
from discriminant.errors import CommandError, check_file_name
from discriminant.table.files.atomic import atomic_write_bytes
from discriminant.table.files.example_tables import EXAMPLES, ExampleTable


def write_examples(session: Session, folder: str, *, force: bool = False) -> int:
    """Write all examples. A file of the same name but with other content needs `force`."""
    check_file_name(folder)
    texts = {Path(folder) / f"{example.name}.csv": example.csv() for example in EXAMPLES}
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
    examples = [_describe(each, file) for each, file in zip(EXAMPLES, texts, strict=True)]
    lines = []
    for example in examples:
        lines += [f"{example['file']}: {example['about']}", f"  {example['command']}", ""]
    session.result({"examples": examples}, "\n".join(lines))
    return DONE


def _has_content(file: Path, text: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(text) and file.read_bytes() == text


def _describe(example: ExampleTable, file: Path) -> dict[str, Any]:
    name, target, about = example
    command = shlex.join(["discriminant", "report", str(file), "--target", target])
    return {"name": name, "file": str(file), "about": about, "target": target, "command": command}
