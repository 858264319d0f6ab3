"""What becomes of the columns of a table in parts, before all of its rows are read.

Some rows show what most columns are: numbers. Columns that they leave in doubt are surveyed first,
those columns alone:

    categories               all of their levels, and how frequent they are
    what looked constant     whether it is
    what may count the rows  whether it does
    means that fill gaps     of all rows

So the plan is the same as if all rows had been in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.table.cells import Cells, Frame
from discriminant.table.counting import may_count
from discriminant.table.learning import Wishes, learn_seen
from discriminant.table.opening import check_classes
from discriminant.table.parts import Plan, label_codes
from discriminant.table.schema import Labels
from discriminant.table.seen import CellsSeen, Seen
from discriminant.table.survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A plan, and what is said of it; or the columns to be surveyed before there is one."""

    plan: Plan | None
    said: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def planned(
    look: Frame, wishes: Wishes, *, survey: Survey | None, max_classes: int, min_classes: int = 2
) -> Planned:
    """The plan from some rows, and a survey of the columns that these left in doubt.

    Parameters
    ----------
    look
        Some rows, from all over the source.
    survey
        None where there was none yet.
    """
    assert wishes.target is not None
    labels = label_codes(look[wishes.target])[0] if survey is None else survey.labels
    if survey is None:
        doubtful = _doubtful(look, wishes, labels)
        few = isinstance(max_classes, int) and len(labels) <= max_classes
        if doubtful and few:  # else there is no need to survey all labels
            return Planned(None, doubtful=doubtful)
    check_classes(
        look[wishes.target].name,
        labels,
        len(look),
        max_classes,
        whole=False,
        min_classes=min_classes,
    )
    surveyed = {} if survey is None else {column.name: column for column in survey.columns}
    seen: list[Seen] = [
        surveyed.get(cells.name) or CellsSeen(cells, None, wishes.by_level(cells.name))
        for cells in look.columns
    ]
    encoding, said = learn_seen(seen, wishes, left_out=look.left_out, named=look.named)
    return Planned(Plan(encoding, labels, wishes.target, wishes.weight), tuple(said))


def _doubtful(look: Frame, wishes: Wishes, labels: Labels) -> tuple[str, ...]:
    """Columns of which some rows do not tell enough, target and weight along with them."""
    aside = (wishes.target, wishes.weight)
    names = [c.name for c in look.columns if c.name not in aside and _in_doubt(c, wishes)]
    if not names and len(labels) > 1:
        return ()
    surveyed = {*names, *aside}
    return tuple(name for name in look.names if name in surveyed)


def _in_doubt(cells: Cells, wishes: Wishes) -> bool:
    if cells.kind == "text" or wishes.by_level(cells.name):
        return True
    if wishes.missing in ("mean", "indicator") or cells.gaps == len(cells):
        return True
    counting = cells.kind == "number" and not cells.gaps and may_count(cells.values)
    return bool(CellsSeen(cells, None).constant) or counting


def wider(look: Frame, wishes: Wishes) -> tuple[str, ...]:
    """What to survey where rows held a class that was not foreseen."""
    assert wishes.target is not None
    doubtful = _doubtful(look, wishes, np.zeros(0))
    return doubtful or (wishes.target,)
