"""moments, merge, forget and drift: files of moments, which add and subtract."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from discriminant import store
from discriminant.assessment.inference.group_tests import Hotelling, hotelling
from discriminant.cli.options import one_or_all, reading_arguments
from discriminant.cli.session import DONE, Session
from discriminant.cli.study_commands import check_places
from discriminant.engines.engine import read_moments
from discriminant.engines.table_moments import TableMoments, alike
from discriminant.errors import CommandError, CommandWarning
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.format import counted, number
from discriminant.study.predict import ProgressRate
from discriminant.study.sources import open_study_source

_CHANCE = 0.05


def moments(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Of a table."""
    check_places(source, options["out"])
    options["reference"] = options["reference"] or "none"  # so that those of several sites add
    detail, how = options["detail"], reading_arguments(options)
    with session.progress() as shown:
        pace = ProgressRate(shown)
        pace("reading", 0, 1)
        taken = open_study_source(
            one_or_all(source), detail=detail, progress=pace.rows, min_classes=1, **how
        )
        found = read_moments(taken.rows, detail=detail)
    if isinstance(found, ClassMoments):
        found = TableMoments.of(found, taken.opened.encoding)
    store.save(found, options["out"])
    taken.complete()
    for line in taken.opened.said:
        session.log(line)
    return _told(session, found, options["out"])


def merge(session: Session, files: tuple[str, ...], options: dict[str, Any]) -> int:
    """The sum of several files."""
    for file in files:
        check_places(file, options["out"])
    found = reduce(add, [loaded(file) for file in files])
    for first, again in _repeated(files):
        session.warn(CommandWarning.counted_twice(first, again))
    store.save(found, options["out"])
    return _told(session, found, options["out"])


def _repeated(files: Sequence[str]) -> list[tuple[str, str]]:
    """Files that hold, bit for bit, what another before them holds."""
    known: dict[bytes, str] = {}
    found = []
    for path in files:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        if digest in known:
            found.append((known[digest], path))
        known.setdefault(digest, path)
    return found


def forget(session: Session, whole: str, part: str, options: dict[str, Any]) -> int:
    """One file without another."""
    for file in (whole, part):
        check_places(file, options["out"])
    found = loaded(whole) - loaded(part)
    left = [label for label, rows in zip(found.labels.tolist(), found.rows, strict=True) if rows]
    found = found.classes(left) if left else found
    store.save(found, options["out"])
    return _told(session, found, options["out"])


def drift(session: Session, before: str, after: str, options: dict[str, Any]) -> int:
    """Whether means differ, and of which features."""
    first, second = comparable(loaded(before), loaded(after))
    found = hotelling(first, second, labels=list(options["label"]) or None)
    found = replace(found, labels=(before, after))
    text = f"{found.text}\n\n{_most_changed(found)}"
    session.result({"before": before, "after": after, **found.to_dict()}, text)
    return DONE


def _most_changed(found: Hotelling) -> str:
    """The feature whose mean differs most, if any differs beyond chance (Bonferroni)."""
    worst = min(found.to_dict()["features"], key=lambda row: row["p"])
    if worst["p"] * len(found.features) >= _CHANCE:
        return (
            f"No feature on its own differs by more than chance would, with {len(found.features)} "
            f"looked at (p times {len(found.features)} is not below {_CHANCE})."
        )
    return (
        f"The feature that differs most is {worst['feature']}: by {number(worst['difference'])}, "
        f"or {number(worst['effect'])} standard deviations."
    )


def loaded(path: str) -> ClassMoments:
    """Moments from a file."""
    found = store.load(path)
    if not isinstance(found, ClassMoments):
        raise CommandError.not_moments(path, type(found).__name__)
    return found


def comparable(first: ClassMoments, second: ClassMoments) -> tuple[ClassMoments, ClassMoments]:
    """Both over the same features, whose indicators do not sum to one."""
    if not (isinstance(first, TableMoments) and isinstance(second, TableMoments)):
        return first, second
    whole = first + second
    assert isinstance(whole, TableMoments)
    names = whole.with_reference().features
    first, second = alike(first, second)
    return first.select(names), second.select(names)


def _told(session: Session, found: ClassMoments, out: str) -> int:
    labels = [str(label) for label in found.labels.tolist()]
    rows = [int(n) for n in found.rows]
    text = [
        f"Moments of {counted(sum(rows), 'row')}, {counted(len(found.features), 'feature')}, "
        f"{counted(len(labels), 'class', 'classes')}, detail '{found.detail}':",
        *(f"  {label}: {counted(n, 'row')}" for label, n in zip(labels, rows, strict=True)),
    ]
    session.result(
        {
            "rows": sum(rows),
            "features": list(found.features),
            "detail": found.detail,
            "classes": [{"label": k, "rows": n} for k, n in zip(labels, rows, strict=True)],
        },
        "\n".join(text),
        written={"moments": out},
    )
    return DONE
