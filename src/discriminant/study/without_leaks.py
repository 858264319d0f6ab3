"""The comparison repeated without columns that reveal the class.

A column that alone separates the classes (`data_checks.columns.leaks`) makes every measure
meaningless if it is not known when the model is used. The same models are compared without these
columns, on the same folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from discriminant.errors import DiscriminantError, capture_warnings
from discriminant.report.fact_types import CheckFacts, WithoutColumnsFacts
from discriminant.report.format import loss, name_list, percent, quoted
from discriminant.table.encoding import Column

if TYPE_CHECKING:
    from discriminant.study.compare import ComparisonRun
    from discriminant.study.models import StudyModel


def compare_without(
    run: ComparisonRun,
    models: Sequence[StudyModel],
    columns: Sequence[Column],
    names: Sequence[str],
) -> WithoutColumnsFacts | None:
    """Return the model selected without the named columns; None if no feature is left.

    For a partitioned table the comparison uses the sample in memory.
    """
    left_out = {
        feature for column in columns if column.name in names for feature in column.features
    }
    table = run.in_memory.table
    assert table is not None
    places = [j for j, name in enumerate(table.schema.features) if name not in left_out]
    if not places or len(places) == table.width:
        return None
    schema = replace(table.schema, features=tuple(table.schema.features[j] for j in places))
    rows = replace(table, schema=schema, features=table.features[:][:, places])
    without = run.on(rows, run.in_memory.fold)
    removed = name_list([f"'{name}'" for name in names])
    with capture_warnings():
        try:
            comparison = without.compare(list(models))
            choice = comparison.choose()
        except DiscriminantError as fault:
            return WithoutColumnsFacts(
                columns=list(names),
                label="",
                error=None,
                log_loss=None,
                text=f"Without {removed} no model could be compared: {fault}",
            )
    selected = comparison[choice.name]
    error, log_loss = selected.facts["error"], selected.facts["log_loss"]
    figures = f"its error on held-out rows is {percent(error)}"
    if log_loss is not None:
        figures += f" and its log loss {loss(log_loss)}"
    guesses = f"error {percent(comparison.baseline)}"
    if log_loss is not None:
        guesses += f", log loss {loss(comparison.baseline_log_loss)}"
    return WithoutColumnsFacts(
        columns=list(names),
        label=selected.title,
        error=error,
        log_loss=log_loss,
        text=(
            f"Without {removed}, {quoted(selected.title)} would be selected; {figures} (guessing: "
            f"{guesses})."
        ),
    )


def leaking_columns(checks: Sequence[CheckFacts]) -> list[str]:
    """Return the columns that reveal the class, according to the data checks."""
    names = [name for check in checks if check["kind"] == "leak" for name in check["columns"]]
    return list(dict.fromkeys(names))
