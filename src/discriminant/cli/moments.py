"""Commands on moment files, which can be added and subtracted: moments, merge, forget, drift."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from discriminant import store
from discriminant.assessment.inference.mean_and_covariance_tests import Hotelling, hotelling
from discriminant.cli.options import one_or_all, reading_arguments
from discriminant.cli.session import DONE, Session
from discriminant.cli.study_commands import check_outputs
from discriminant.engines.dispatch import read_moments
from discriminant.engines.moments_with_encoding import TableMoments, align_encodings
from discriminant.errors import CommandError, CommandWarning
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.format import count_with_noun, number
from discriminant.study.data_source import open_study_source
from discriminant.study.progress import ProgressRate

_LEVEL = 0.05  # significance level


def moments(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Read a table and save its moments."""
    check_outputs(source, options["out"])
    # so that the moments of several sites can be added
    options["reference"] = options["reference"] or "none"
    detail, arguments = options["detail"], reading_arguments(options)
    with session.progress() as shown:
        rate = ProgressRate(shown)
        rate("reading", 0, 1)
        table = open_study_source(
            one_or_all(source), detail=detail, progress=rate.rows, min_classes=1, **arguments
        )
        result = read_moments(table.rows, detail=detail)
    if isinstance(result, ClassMoments):
        result = TableMoments.from_moments(result, table.opened.encoding)
    store.save(result, options["out"])
    table.complete()
    for note in table.opened.notes:
        session.log(note)
    return _print_moments(session, result, options["out"])


def merge(session: Session, files: tuple[str, ...], options: dict[str, Any]) -> int:
    """Save the sum of several moment files."""
    for file in files:
        check_outputs(file, options["out"])
    result = reduce(add, [load_moments(file) for file in files])
    for first, again in _duplicates(files):
        session.warn(CommandWarning.counted_twice(first, again))
    store.save(result, options["out"])
    return _print_moments(session, result, options["out"])


def _duplicates(files: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of files that have the same content, the earlier file first."""
    known: dict[bytes, str] = {}
    result = []
    for path in files:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        if digest in known:
            result.append((known[digest], path))
        known.setdefault(digest, path)
    return result


def forget(session: Session, whole: str, part: str, options: dict[str, Any]) -> int:
    """Save the moments of one file minus the moments of another."""
    for file in (whole, part):
        check_outputs(file, options["out"])
    result = load_moments(whole) - load_moments(part)
    left = [label for label, rows in zip(result.labels.tolist(), result.rows, strict=True) if rows]
    result = result.classes(left) if left else result
    store.save(result, options["out"])
    return _print_moments(session, result, options["out"])


def drift(session: Session, before: str, after: str, options: dict[str, Any]) -> int:
    """Test whether the means of two files differ, and print the feature that changed most."""
    first, second = comparable(load_moments(before), load_moments(after))
    result = hotelling(first, second, labels=list(options["label"]) or None)
    result = replace(result, labels=(before, after))
    text = f"{result.text}\n\n{_most_changed(result)}"
    session.result({"before": before, "after": after, **result.to_dict()}, text)
    return DONE


def _most_changed(result: Hotelling) -> str:
    """Return a sentence on the feature whose mean differs most.

    If no difference is significant (with Bonferroni's correction), the sentence states that.
    """
    worst = min(result.to_dict()["features"], key=lambda row: row["p"])
    if worst["p"] * len(result.features) >= _LEVEL:
        return (
            f"No single feature differs significantly at level {_LEVEL} (Bonferroni correction for "
            f"{len(result.features)} features)."
        )
    return (
        f"The mean of {worst['feature']} differs most: by {number(worst['difference'])}, or "
        f"{number(worst['effect'])} standard deviations."
    )


def load_moments(path: str) -> ClassMoments:
    """Load a moment file."""
    result = store.load(path)
    if not isinstance(result, ClassMoments):
        raise CommandError.not_moments(path, type(result).__name__)
    return result


def comparable(first: ClassMoments, second: ClassMoments) -> tuple[ClassMoments, ClassMoments]:
    """Return both moments, converted to the same features.

    Every categorical column gets the same reference level in both.
    """
    if not (isinstance(first, TableMoments) and isinstance(second, TableMoments)):
        return first, second
    total = first + second
    assert isinstance(total, TableMoments)
    names = total.with_reference().features
    first, second = align_encodings(first, second)
    return first.select(names), second.select(names)


def _print_moments(session: Session, result: ClassMoments, out: str) -> int:
    labels = [str(label) for label in result.labels.tolist()]
    rows = [int(n) for n in result.rows]
    text = [
        f"Moments of {count_with_noun(sum(rows), 'row')}, "
        f"{count_with_noun(len(result.features), 'feature')}, "
        f"{count_with_noun(len(labels), 'class', 'classes')}, detail '{result.detail}':",
        *(f"  {label}: {count_with_noun(n, 'row')}" for label, n in zip(labels, rows, strict=True)),
    ]
    session.result(
        {
            "rows": sum(rows),
            "features": list(result.features),
            "detail": result.detail,
            "classes": [{"label": k, "rows": n} for k, n in zip(labels, rows, strict=True)],
        },
        "\n".join(text),
        written={"moments": out},
    )
    return DONE
