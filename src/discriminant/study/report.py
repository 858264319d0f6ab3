"""What a study says: the facts of its report, and the page.

Sections come from `report`; here they are asked for, and one that the rows do not allow is left out
rather than the page lost. A file is written beside its place and moved there, after all else went
well: nothing is written where anything fails.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Protocol, cast

from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import DiscriminantError, capture_warnings
from discriminant.estimators.meta.decision import Decision
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import gives_posterior
from discriminant.redaction import redact_facts
from discriminant.report.fact_types import (
    DecisionFacts,
    Facts,
    FindingFacts,
    Made,
    MattersFacts,
    ModelFacts,
    SpaceFacts,
    UseFacts,
    facts,
)
from discriminant.report.format import excluded_models, percent, plain_reason, shown
from discriminant.report.markdown import to_markdown
from discriminant.report.sections.data import python_code, read_section, use_section
from discriminant.report.sections.decision import decision_section
from discriminant.report.sections.features import (
    Lines,
    coefficients_from,
    findings_of,
    matters_section,
)
from discriminant.report.sections.space import space_section
from discriminant.study.compare import ComparisonRun
from discriminant.study.comparison import Choice, Comparison
from discriminant.table.files.atomic import atomic_write_bytes
from discriminant.table.files.csv import lines_of_rows
from discriminant.table.memory import Table
from discriminant.table.load import EncodedTable

_SQL = 40_000  # characters on a page
_LINES = 200_000  # rows of a file that is read again to tell lines
_STEPS = 200  # features up to which the order of entry is worked out


class ReportedStudy(Protocol):
    """The parts of a study that its report shows."""

    source: str
    target: str
    seed: int
    warnings: list[Warning]
    options: dict[str, Any]  # of the decision: cost, reject

    @property
    def opened(self) -> EncodedTable: ...

    @property
    def rows(self) -> AnyTable: ...

    @property
    def moments(self) -> ClassMoments | None: ...

    def model(self) -> Any: ...

    def _get_comparison(self) -> Comparison: ...

    def _get_choice(self) -> Choice: ...

    def _get_run(self) -> ComparisonRun: ...


def report_facts(
    study: ReportedStudy, *, title: str | None = None, command: str | None = None, file: str = ""
) -> Facts:
    """All sections."""
    compared, choice = study._get_comparison(), study._get_choice()
    opened = study.opened
    comparison = compared.section(choice)
    read = read_section(
        study.rows,
        source=os.path.basename(study.source),
        target=study.target,
        columns=opened.encoding.columns,
        missing={column.name: column.missing for column in opened.encoding.columns},
        rows_read=opened.rows_read,
        said=[*map(plain_reason, opened.notes), *excluded_models(compared.left_out)],
        warnings=study.warnings,
    )
    with capture_warnings():  # what there is to know is a finding, or a note
        found = facts(
            title or f"{study.target}: {Path(study.source).name}",
            made=provenance(study, command),
            read=read,
            comparison=comparison,
            space=_space(study, comparison),
            decision=_decision(study),
            matters=_matters(study),
            use=_use(study, file),
        )
    return cast(Facts, redact_facts(found))


def provenance(study: ReportedStudy, command: str | None) -> Made:
    """How to make it again."""
    found = Made(version=versions(), date=date.today().isoformat(), seed=study.seed)
    if command:
        found["command"] = command
    return found


def versions() -> str:
    """Of this package, and of what it computes with.

    >>> versions().split(" ")[0] != ""
    True
    """
    import numpy
    import scipy

    from discriminant import __version__

    return (
        f"{__version__} (Python {platform.python_version()}, NumPy {numpy.__version__}, "
        f"SciPy {scipy.__version__})"
    )


def explanation(found: Facts) -> str:
    """Of the report as Markdown, what tells the classes apart and what is odd."""
    parts = to_markdown(found).split("\n## ")
    wanted = ("Discriminant space", "What matters")
    return "\n".join(f"## {part.strip()}\n" for part in parts if part.startswith(wanted))


def write_report(
    study: ReportedStudy,
    path: Path,
    *,
    save: str | os.PathLike[str] | None,
    title: str | None,
    command: str | None,
) -> Facts:
    """The page, and the model."""
    from discriminant import store
    from discriminant.report.html import render

    for place in (path, save):
        if place is not None:
            store.check_writable(place)
    found = report_facts(
        study, title=title, command=command, file="" if save is None else os.path.basename(save)
    )
    page = render(found)
    if save is not None:
        store.save(decision_model(study), save)
    write_text(path, page)
    return found


def decision_model(study: ReportedStudy) -> Any:
    """The model taken, with the costs and the reject option that were asked for."""
    model = study.model()
    if not any(option is not None for option in study.options.values()):
        return model
    return Decision.of_fitted(model, **study.options)


def write_text(path: Path, text: str) -> None:
    """A file that is there whole or not at all."""
    atomic_write_bytes(path, text.encode("utf-8"))


def _space(study: ReportedStudy, comparison: Any) -> SpaceFacts | None:
    if study.moments is None or study.moments.detail not in ("class", "fourth"):
        return None
    table = study._get_run().table
    found = space_section(table, study.moments, comparison=comparison, seed=study.seed)
    if found is not None and len(table) < len(study.rows):
        found["notes"].insert(0, f"The rows shown are {_drawn(study)}; means and tests are of all.")
    return found


def _decision(study: ReportedStudy) -> DecisionFacts | None:
    outcome = study._get_comparison()[study._get_choice().name]
    if outcome.facts["brier"] is None:  # no probabilities to decide by
        return None
    held = study._get_run().predictions_of(outcome)
    found = decision_section(
        held.labels,
        held.codes,
        held.log_posterior,
        decided=held.decided,
        weight=held.weight,
        cost=study.options.get("cost"),
        reject=study.options.get("reject"),
        seed=study.seed,
    )
    if len(held.codes) < len(study.rows):
        found["drawn"] = f"Counts and curves here are of {_drawn(study)}."
    return found


def _drawn(study: ReportedStudy) -> str:
    return f"{len(study._get_run().table):,} rows drawn from {len(study.rows):,}"


def _matters(study: ReportedStudy) -> MattersFacts:
    moments, table = study.moments, study._get_run().table
    if moments is not None and moments.detail not in ("class", "fourth"):
        moments = None
    outcome = study._get_comparison()[study._get_choice().name]
    held = study._get_run().predictions_of(outcome) if outcome.facts["brier"] is not None else None
    warnings = [_named(warning, table.schema.features) for warning in outcome.warnings]
    found = _below_chance(outcome.facts)
    found += findings_of(
        table,
        moments,
        held=held,
        warnings=warnings,
        among=_among(study, table),
        lines=_lines(study, table),
    )
    if moments is None:
        return MattersFacts(findings=found)
    coefficients = steps = None
    with suppress(DiscriminantError):
        coefficients = coefficients_from(moments)
    if table.width <= _STEPS:
        from discriminant.assessment.selection.stepwise import stepwise

        with suppress(DiscriminantError):
            steps = stepwise(moments)
    return matters_section(coefficients=coefficients, stepwise=steps, findings=found)


def _named(warning: Warning, features: Sequence[str]) -> Warning:
    """The warning with the names of features: fits to rows are told only their places, x0, x1..."""

    def name(found: re.Match[str]) -> str:
        place = int(found[1])
        plain = found[0][1:-1] not in features and place < len(features)
        return f"'{features[place]}'" if plain else found[0]

    return type(warning)(re.sub(r"'x(\d+)'", name, str(warning)))


def _below_chance(facts: ModelFacts) -> list[FindingFacts]:
    if facts["auc_high"] is None or facts["auc_high"] >= 0.5:
        return []
    text = (
        f"The model ranks held-out rows the wrong way round (AUC {percent(facts['auc'])}, and at "
        "most "
        f"{percent(facts['auc_high'])} is plausible), which a coin would not. Rows that belong "
        "together, such as counts of one group or repeated measurements, may have been torn apart "
        "by the folds; the figures of this report then say little of new rows."
    )
    return [FindingFacts(kind="worse than chance", text=text)]


def _among(study: ReportedStudy, table: Table) -> str:
    """Which rows are looked at, if not all: their numbers are not those of the file."""
    if study.opened.rows_read == len(table):
        return ""
    return "kept" if len(table) == len(study.rows) else "drawn"


def _lines(study: ReportedStudy, table: Table) -> Lines | None:
    """What tells the lines of the file that rows begin in, of a CSV that is not too long."""
    opened = study.opened
    format, kept = opened.format, opened.kept_rows
    if format is None or format.kind != "csv" or opened.rows_read > _LINES:
        return None
    if table is not opened.table:
        return None

    def lines(rows: Sequence[int]) -> list[int]:
        return lines_of_rows(format, list(rows) if kept is None else kept[list(rows)].tolist())

    return lines


def _use(study: ReportedStudy, file: str) -> UseFacts | None:
    table = Path(study.source).stem or "rows"
    model, keys = decision_model(study), _keys(study)
    able, rare = gives_posterior(model), _rarest(study)
    sql = _sql(model, table, keys)
    if sql:
        sql = f"{_about_sql(file, table, keys)}\n{sql}"
    command = python = ""
    if file:
        command = f"discriminant predict {_quoted(file)} new.csv --out predicted.csv"
        python = python_code(
            file, decides=isinstance(model, Decision), likeliest=rare if able else None
        )
        if able:
            command += (
                f"\n\n# those most likely {shown(rare)!r}: sort predicted.csv by its column "
                f"{shown(f'p({rare})')!r}, largest first"
            )
    return use_section(file=file, sql=sql, command=command, python=python)


def _rarest(study: ReportedStudy) -> Any:
    """The label whose likeliest rows somebody may want to see."""
    return study.rows.schema.labels.tolist()[int(study._get_run().class_weight.argmin())]


def _keys(study: ReportedStudy) -> list[str]:
    """Columns by which rows are known."""
    columns = study.opened.encoding.columns
    return [column.name for column in columns if column.kind == "identifier"][:1]


def _about_sql(file: str, table: str, keys: Sequence[str]) -> str:
    """Lines above the SQL: for which database, which table, and how to have it otherwise."""
    named = _quoted(shown(file, 200)) if file else "FILE.model"
    key = f" --keep {_quoted(shown(keys[0], 200))}" if keys else " --keep KEY"
    why = "" if keys else "\n-- Rows come in no order: KEY is the column to join them by."
    return (
        f"-- For DuckDB, of a table {shown(table)}. For another database or table:\n"
        f"-- discriminant export {named} --to sql --dialect postgres --table NAME{key}{why}"
    )


def _sql(model: Any, table: str, keys: Sequence[str]) -> str:
    from discriminant.export import export

    try:
        text = str(export(model, "sql", table=table, keep=keys))
    except (DiscriminantError, ImportError):
        return ""
    return text if len(text) <= _SQL else ""


def _quoted(name: str) -> str:
    import shlex

    return shlex.quote(name)
