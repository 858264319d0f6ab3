"""One door to rows wherever they are: the table of engines, and how a source in parts is opened.

    source -> engine -> parts -> plan (from some rows) -> one reading of all -> Parted

An engine is one file with two functions: `takes(source)`, whether it reads such a thing, and
`source_of(source, **options)`, a `table.parts.Source`. It joins by its line in ENGINES.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from discriminant.engines.checkpoint import with_checkpoint
from discriminant.engines.parted import Parted, Some
from discriminant.engines.summing import PartWork
from discriminant.errors import (
    DiscriminantError,
    EngineError,
    LabelError,
    OptionError,
    SourceChangedError,
)
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import Detail
from discriminant.moments.reach import ReachReading
from discriminant.moments.reading import MomentsReading
from discriminant.table.cells import Frame
from discriminant.table.encoding import Encoding, Unforeseen
from discriminant.table.learning import Wishes, with_long_integers
from discriminant.table.opening import dropped
from discriminant.table.parts import Plan, Source, Spread, reading_as
from discriminant.table.planning import planned, wider
from discriminant.table.schema import Schema
from discriminant.table.source import Table
from discriminant.table.survey import Survey, surveyed

ENGINES: Mapping[str, str] = {  # asked in this order
    "sql": "discriminant.engines.sql",
    "spark": "discriminant.engines.spark",
    "dask": "discriminant.engines.dask",
    "files": "discriminant.engines.files",
}
_LOOK = 50_000  # rows that a plan is made from
_ROOM = 1 << 29  # bytes of moments that are read when a source is opened


def rows(
    source: Any,
    *,
    target: str,
    weight: Any = None,
    engine: str | None = None,
    ordered: Mapping[str, Sequence[str]] | None = None,
    categories: Iterable[str] = (),
    missing: str = "error",
    unseen: str = "error",
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    reference: str | None = "frequent",
    max_classes: int = 1000,
    min_classes: int = 2,
    max_levels: int = 100,
    detail: Detail | None = None,
    missing_texts: Iterable[str] | None = None,
    thousands: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Parted:
    """Open rows that need not fit into memory, and read them once.

    Parameters
    ----------
    source
        A file, several by a glob or a list, a folder, a Dask or Spark frame, or what
        `discriminant.sql` returns.
    engine
        Who does the summing: 'files', 'dask', 'spark' or 'sql'. None: by the kind of source.
    weight
        The name of a column; with `y` of a Dask array, the weights beside it.
    target, ordered, categories, missing, unseen, columns, exclude, reference
        As for `discriminant.open_source`.
    max_classes, max_levels
        More classes are refused; a category of more levels is set aside.
    min_classes
        Fewer classes are refused. 1: for moments of a part of the rows, which are merged later.
    detail
        Of the moments that are read. None: 'class' if there is room for it, else 'pooled'.
    missing_texts
        Texts of a CSV that stand for a missing cell, as for `discriminant.open_source`.
    thousands
        The sign between groups of three digits, as for `discriminant.open_source`.
    checkpoint
        A folder in which all sums over these rows are kept, those under way too: a run that was
        stopped and is started again goes on where it was, and gives the same to the last bit.
        `complete()` of what is returned removes it.
    options
        Of the engine. Files: `progress`, called with the rows read and the rows in all (of text
        an estimate), and of CSV `encoding`, `delimiter` and `decimal`.
    """
    if weight is not None and not isinstance(weight, str):
        if "y" not in options:
            allowed = "the name of a column; an array only beside y= of Dask"
            raise OptionError.of("weight", type(weight).__name__, allowed)
        options, weight = {**options, "weight": weight}, "weight"
    wishes = Wishes.of(
        target=target,
        weight=weight,
        columns=columns,
        exclude=exclude,
        ordered=ordered,
        categories=categories,
        missing=missing,
        unseen=unseen,
        reference=reference,
        max_levels=max_levels,
        missing_texts=missing_texts,
        thousands=thousands,
        reads_texts=(engine or engine_of(source)) != "sql",  # it sums what is written as it is
    )
    if thousands is not None and (engine or engine_of(source)) == "files":
        options = {**options, "thousands": thousands}
    found = source_of(source, engine=engine, **options)
    if checkpoint is not None:
        found = with_checkpoint(found, checkpoint)
    return open_parted(
        found, wishes, max_classes=max_classes, min_classes=min_classes, detail=detail
    )


def source_of(source: Any, *, engine: str | None = None, **options: Any) -> Source:
    """The source in parts, by the engine that reads it."""
    if engine is not None and engine not in ENGINES:
        raise EngineError.unknown(engine, list(ENGINES))
    reader = None if engine is None else engine_of(source)
    if engine is not None and reader is not None and not _reads(engine, source):
        raise EngineError.other(engine, reader)
    for name in [engine] if engine else ENGINES:
        room = import_module(ENGINES[name])
        if engine or room.takes(source):
            found: Source = room.source_of(source, **options)
            return found
    raise EngineError.of_source(type(source).__name__, list(ENGINES))


def engine_of(source: Any) -> str | None:
    """The engine other than memory that reads such a thing, if there is one."""
    return next((name for name in ENGINES if _reads(name, source)), None)


def _reads(engine: str, source: Any) -> bool:
    return bool(import_module(ENGINES[engine]).takes(source))


def takes(source: Any) -> bool:
    """Whether some engine other than memory reads such a thing."""
    return engine_of(source) is not None


def open_parted(
    source: Source,
    wishes: Wishes,
    *,
    max_classes: int = 1000,
    min_classes: int = 2,
    detail: Detail | None = None,
) -> Parted:
    """Plan, read once, and plan again if rows held what was not foreseen."""
    while True:
        wishes.check_names(source.names)
        source = reading_as(source, wishes)
        names = source.names
        found = _opened(
            source, wishes, max_classes=max_classes, min_classes=min_classes, detail=detail
        )
        if source.names == names:  # else later rows had columns that the first had not
            return found


def _opened(
    source: Source,
    wishes: Wishes,
    *,
    max_classes: int,
    min_classes: int,
    detail: Detail | None,
) -> Parted:
    look = source.sample(wishes.wanted(source.names), _LOOK)
    look = replace(look, left_out=tuple(n for n in source.names if n not in look.places))
    if wishes.target is not None and look[wishes.target].gaps:
        if wishes.missing == "drop":
            read, look = len(look), look.labelled(wishes.target)
            if not len(look):
                raise LabelError.none_left(wishes.target, read)
        else:  # rows of a sample do not know where they lie, those of the source do
            surveyed(source, wishes, wishes.aside)
    wishes = with_long_integers(look, wishes)
    survey: Survey | None = None
    while True:
        found = planned(
            look, wishes, survey=survey, max_classes=max_classes, min_classes=min_classes
        )
        doubtful = found.doubtful
        try:
            if found.plan is not None:
                plan = replace(found.plan, encoding=_with_decimal(found.plan.encoding, source))
                made = _read(source, look, plan, said=found.said, detail=detail)
                return _checked(made, min_classes)
        except Unforeseen as new:
            if survey is not None:  # all rows were surveyed
                raise SourceChangedError.of_class(source.name, new.column, new.level) from None
            doubtful = wider(look, wishes)
        survey = surveyed(source, wishes, doubtful)


def _read(
    source: Source, look: Frame, plan: Plan, *, said: Sequence[str], detail: Detail | None
) -> Parted:
    none = np.zeros(0)
    nothing = ReachReading(none, none.astype(np.intp))
    try:
        block = plan.block(look)
    except DiscriminantError:  # some rows do not know where they lie: read on to the place
        source.summed(PartWork(plan, nothing)).checked()
        raise
    schema = Schema(plan.encoding.features, plan.labels, True)
    at_hand = Table(schema, block.features, block.codes, block.weight)
    anchor = Anchor.of(np.asarray(at_hand.sample()))
    K, d = len(plan.labels), at_hand.width
    wanted: Detail = detail or ("class" if 8 * K * d * d <= _ROOM else "pooled")
    found = source.summed(
        PartWork(
            plan,
            MomentsReading(
                plan.labels, schema.features, anchor, wanted, getattr(source, "rows", 0)
            ),
        )
    ).checked()
    if found.total is None:
        raise LabelError.absent(source.name)
    moments = found.total
    some = Some(at_hand, _draw(source, plan, schema, len(at_hand), found.rows))
    made = Parted(schema, source, plan, some, moments, found.rows, said=(*source.said, *said))
    if plan.weight is None:
        return made
    return replace(made, lightest=made.fold(nothing).lightest)


def _draw(
    source: Source, plan: Plan, schema: Schema, at_hand: int, rows: int
) -> Callable[[], Table] | None:
    """How rows are drawn from all over a source whose rows at hand are the first of its parts."""
    if not isinstance(source, Spread) or at_hand >= rows:
        return None

    def drawn() -> Table:
        block = plan.block(source.drawn(plan.columns, _LOOK))
        return Table(schema, block.features, block.codes, block.weight)

    return drawn


def _with_decimal(encoding: Encoding, source: Source) -> Encoding:
    return replace(encoding, decimal=getattr(source, "decimal", "."))


def _checked(found: Parted, min_classes: int) -> Parted:
    """The rows, if enough classes have any, with a note on those that were dropped."""
    moments, missing = found.moments, found.plan.encoding.missing
    some = moments.weight > 0
    if some.sum() < min_classes:
        raise LabelError.one_class(moments.labels[int(np.argmax(some))])
    if missing not in ("drop", "marginal") or len(found) == found.rows_read:
        return found
    note = dropped(found.rows_read, len(found), missing, labels=True)
    return replace(found, said=(*found.said, note))
