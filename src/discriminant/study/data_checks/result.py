"""Result of the data checks: findings sorted by severity, printed as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.assessment.printed_results import PrintedResult
from discriminant.assessment.resampling.folds import FoldNumbers
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.report.fact_types import CheckFacts, plain
from discriminant.report.format import count_with_noun, percent, shown
from discriminant.study.data_checks import classes, columns, rows
from discriminant.study.data_checks.prepared_table import SAMPLE_ROWS, PreparedTable, finding
from discriminant.study.data_source import StudySource
from discriminant.table.column_cells import Frame, import_pandas
from discriminant.table.load import EncodedTable

SEVERITIES = ("stop", "warning", "note")
_HEADS = {
    "stop": "STOP: results are misleading until this is resolved",
    "warning": "WARNING: read before using a model",
    "note": "NOTE",
}
_CHECKS: tuple[Callable[[PreparedTable], list[CheckFacts]], ...] = (
    columns.leaks,
    columns.sentinels,
    rows.identifiers,
    rows.roles,
    rows.duplicate_rows,
    columns.duplicate_columns,
    rows.time_drift,
    classes.label_spellings,
    classes.class_sizes,
    columns.missing_by_class,
    columns.spellings,
    columns.rare_levels,
    classes.signal,
    columns.constants,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DataChecks(PrintedResult):
    """Findings of the data checks, the most severe first.

    Attributes
    ----------
    source, target : str
        Name of the source, and the target column.
    rows, rows_checked, columns : int
        Number of labelled rows, number of rows that were checked, and number of columns other than
        target and weight.
    findings : tuple of dict
        Kind, severity ('stop', 'warning' or 'note'), title, text, columns and rows of each finding.
    """

    source: str
    target: str
    rows: int
    rows_checked: int
    columns: int
    findings: tuple[CheckFacts, ...]

    @property
    def text(self) -> str:
        """The findings as text, grouped by severity."""
        subject = (
            f"Data checks of {shown(self.source)}: {count_with_noun(self.rows, 'row')}, "
            f"{count_with_noun(self.columns, 'column')}, target {shown(self.target)}"
        )
        if self.rows_checked < self.rows:
            subject += f" (checked on a sample of {self.rows_checked:,} rows)"
        if not self.findings:
            return f"{subject}\n\nNo findings."
        lines = [subject]
        for severity in SEVERITIES:
            group = [item for item in self.findings if item["severity"] == severity]
            if group:
                lines += ["", _HEADS[severity]]
            for item in group:
                lines.append(f"  {item['title']}")
                lines += textwrap.wrap(
                    item["text"], 92, initial_indent="    ", subsequent_indent="    "
                )
        return "\n".join(lines)

    def frame(self) -> Any:
        """Return a pandas frame with a row for each finding."""
        fields = ["severity", "kind", "title", "columns", "rows", "text"]
        return import_pandas().DataFrame(list(self.findings), columns=fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as a dictionary of plain numbers, lists and texts."""
        facts: dict[str, Any] = plain(
            {
                "source": self.source,
                "target": self.target,
                "rows": self.rows,
                "rows_checked": self.rows_checked,
                "columns": self.columns,
                "findings": self.findings,
            }
        )
        return facts


def check_source(
    source: StudySource, *, target: str, fold: FoldNumbers | None, seed: int
) -> DataChecks:
    """Check the rows of a source: all rows in memory, or a sample of a partitioned table."""
    opened = source.opened
    frame = opened.frame
    if frame is None:
        assert source.partitioned is not None
        frame = _sample_frame(source.partitioned, target)
    elif fold is not None and len(fold) < len(frame):
        fold = _fold_of_labelled(opened, frame, fold)
    table = PreparedTable.of(frame, opened.encoding, target=target, fold=fold, seed=seed)
    total = len(table) if source.partitioned is None else len(source.partitioned)
    dropped = opened.rows_read - len(frame) if source.partitioned is None else 0
    findings = [
        *unlabelled_rows(dropped, opened.rows_read),
        *check_table(table),
        *columns.missing_cells(table),
    ]
    findings.sort(key=lambda item: SEVERITIES.index(item["severity"]))
    return DataChecks(source.name, target, total, len(table), len(table.columns), tuple(findings))


def _fold_of_labelled(opened: EncodedTable, frame: Frame, fold: FoldNumbers) -> FoldNumbers:
    """Return the fold of every labelled row, -1 for rows that were dropped later."""
    assert opened.kept_rows is not None
    numbers = np.arange(len(frame)) if frame.row_numbers is None else frame.row_numbers
    fold_of = np.full(opened.rows_read, -1, dtype=np.intp)
    fold_of[opened.kept_rows] = fold
    return fold_of[numbers]


def _sample_frame(table: PartitionedTable, target: str) -> Frame:
    names = [column.name for column in table.plan.encoding.columns if column.note != "excluded"]
    return table.source.sample(names, SAMPLE_ROWS).drop_unlabelled(target)


def unlabelled_rows(dropped: int, rows: int) -> list[CheckFacts]:
    """Return a finding on rows without a label, if there are any."""
    if not dropped:
        return []
    text = (
        f"{count_with_noun(dropped, 'row')} of {rows:,} ({percent(dropped / rows)}) "
        f"{'has' if dropped == 1 else 'have'} no label and {'is' if dropped == 1 else 'are'} not "
        "used. If an empty label means a class, such as 'none', write it out. If labels are "
        "missing for a reason, such as an outcome that is not yet known, the other rows may not "
        "represent new rows."
    )
    title = f"{count_with_noun(dropped, 'row')} without a label"
    return [finding("unlabelled", "warning", title, text, rows=dropped)]


def check_table(table: PreparedTable) -> list[CheckFacts]:
    """Return the findings of all checks."""
    findings = [item for check in _CHECKS for item in check(table)]
    leaks = {name for item in findings if item["kind"] == "leak" for name in item["columns"]}
    return [
        item for item in findings if item["kind"] != "identifier" or not leaks & {*item["columns"]}
    ]
