"""Report of a study: collect its facts, and write the page and the model.

`report.sections` computes the sections. A section that cannot be computed for these rows is left
out of the page. Files are written only after all computations have succeeded, each atomically.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import (
    ConstantColumnWarning,
    DiscriminantError,
    LookalikeWarning,
    capture_warnings,
)
from discriminant.estimators.meta.decision import Decision
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import gives_posterior
from discriminant.redaction import redact_facts
from discriminant.report.fact_types import (
    ComparisonFacts,
    DecisionFacts,
    Facts,
    FindingFacts,
    GainFacts,
    MattersFacts,
    ModelFacts,
    Provenance,
    ReadFacts,
    SpaceFacts,
    UseFacts,
    YardstickFacts,
    facts,
    plain,
)
from discriminant.report.format import (
    excluded_models,
    fixed,
    name_list,
    percent,
    plain_reason,
    shown,
)
from discriminant.report.markdown import to_markdown
from discriminant.report.sections.calibration import calibration_section
from discriminant.report.sections.columns import columns_section
from discriminant.report.sections.data import read_section
from discriminant.report.sections.decision import decision_section
from discriminant.report.sections.feature_importance import Probabilities, ranking_section
from discriminant.report.sections.features import (
    Lines,
    coefficients_from,
    far_rows,
    findings_of,
    matters_section,
)
from discriminant.report.sections.one_row import one_row_section
from discriminant.report.sections.pairs import pairs_section
from discriminant.report.sections.row_sample import RowSample
from discriminant.report.sections.rows import rows_section
from discriminant.report.sections.space import Predict, space_section
from discriminant.report.sections.usage import python_code, use_section
from discriminant.report.verdict import cost_headline, headline, selected, verdict_of
from discriminant.study.compare import ComparisonRun
from discriminant.study.comparison import Choice, Comparison
from discriminant.study.data_checks.result import DataChecks
from discriminant.table.blocks import Codes, Floats, Places
from discriminant.table.files.atomic import atomic_write_bytes
from discriminant.table.files.csv import lines_of_rows
from discriminant.table.load import EncodedTable
from discriminant.table.memory import Table

_COSTLY_CLASSES = 6  # largest number of classes for which a command with costs is shown
_MAX_SQL = 40_000  # largest number of characters of SQL shown on a page
_MAX_LINE_ROWS = 200_000  # largest number of rows of a CSV that is read again to find line numbers
_SHOWN_ROWS = 20_000  # largest number of rows whose distributions are drawn
_POINTS = 2000  # largest number of rows drawn as points
_MAX_STEPWISE = 200  # largest number of features for a stepwise selection


class ReportedStudy(Protocol):
    """What a report needs from a study."""

    source: str
    target: str
    seed: int
    warnings: list[Warning]
    options: dict[str, Any]  # options of the decision: cost, reject

    @property
    def opened(self) -> EncodedTable: ...

    @property
    def rows(self) -> AnyTable: ...

    @property
    def moments(self) -> ClassMoments | None: ...

    def model(self) -> Any: ...

    def check(self) -> DataChecks: ...

    def _get_comparison(self) -> Comparison: ...

    def _get_choice(self) -> Choice: ...

    def _comparison_section(self) -> ComparisonFacts: ...

    def _boosted_trees(
        self,
    ) -> AbstractContextManager[Callable[[], YardstickFacts | None]]: ...

    def _get_run(self) -> ComparisonRun: ...


def report_facts(
    study: ReportedStudy, *, title: str | None = None, command: str | None = None, file: str = ""
) -> Facts:
    """Return the facts of all sections."""
    with study._boosted_trees() as trees:
        report = _facts_of_sections(study, trees, title=title, command=command)
        with capture_warnings():
            use = _use(study, file)
        if use is not None:
            report["use"] = use
            use["card"] = model_card(report)
    report["verdict"] = verdict_of(report)
    return cast(Facts, redact_facts(plain(report)))


def _facts_of_sections(
    study: ReportedStudy,
    trees: Callable[[], YardstickFacts | None],
    *,
    title: str | None,
    command: str | None,
) -> Facts:
    """Return the facts of the sections on the data, the comparison and the selected model.

    `trees` waits for boosted trees.
    """
    comparison, opened = study._get_comparison(), study.opened
    section = study._comparison_section()
    read = read_section(
        study.rows,
        source=os.path.basename(study.source),
        target=study.target,
        columns=opened.encoding.columns,
        missing={column.name: column.missing for column in opened.encoding.columns},
        rows_read=opened.rows_read,
        said=[*map(plain_reason, opened.notes), *excluded_models(comparison.left_out)],
        warnings=study.warnings,
    )
    with capture_warnings():  # findings and notes state the same
        return facts(
            title or f"Predicting {study.target}",
            made=provenance(study, command),
            read=read,
            comparison=section,
            checks=list(study.check().findings),
            **_sections(study, section, read, trees),
        )


def _sections(
    study: ReportedStudy,
    comparison: ComparisonFacts,
    read: ReadFacts,
    trees: Callable[[], YardstickFacts | None],
) -> dict[str, Any]:
    """Return the sections that describe the rows and the selected model.

    The section that needs boosted trees comes last, and the trees are added to the comparison.
    """
    run, held = study._get_run(), _held(study)
    gain = None if held is None else _gain(held)
    if gain is not None:
        comparison["gain"] = gain
    table, moments = run.table, _class_moments(study)
    sample = RowSample.of(table, most=_SHOWN_ROWS, seed=study.seed)
    points = RowSample.of(table, most=_POINTS, seed=study.seed)
    predict, probabilities = _functions(study)
    space = _space(study, comparison, held, predict)
    far = None if moments is None else far_rows(table, moments)
    decision, matters = _decision(study, held), _matters(study, far)
    sections: dict[str, Any] = {"space": space, "decision": decision, "matters": matters}
    if decision is not None and held is not None:
        sections["calibration"] = calibration_section(held, positive=decision["positive"])
        sections["rows"] = rows_section(
            table,
            held,
            moments,
            lines=_line_finder(study, table),
            numbering=_row_numbering(study, table),
            far=far,
        )
    if moments is not None:
        sections["ranking"] = ranking_section(
            moments,
            loadings=_largest_loadings(space),
            matters=matters,
            probabilities=probabilities,
            model=study._get_choice().title,
            limits=sample.limits,
        )
    sections["columns"] = columns_section(
        sample, moments, read["columns"], encoded=study.opened.encoding.columns, points=points
    )
    sections["one_row"] = one_row_section(
        decision_model(study),
        table,
        sample,
        moments,
        encoded=study.opened.encoding.columns,
        fills_missing=study.opened.encoding.missing in ("mean", "indicator"),
        rows=sections.get("rows"),
        title=study._get_choice().title,
    )
    yardstick = trees()
    if yardstick is not None:
        comparison["yardstick"] = yardstick
    if decision is not None and held is not None:
        curved = yardstick is not None and yardstick["better"]
        sections["pairs"] = pairs_section(sample, moments, decision, points=points, curved=curved)
    return {name: section for name, section in sections.items() if section}


def _gain(held: HeldOutPredictions) -> GainFacts | None:
    """Return the mean gain in log loss over guessing the class shares, with a 95% interval.

    With gains g of n rows, the interval is mean(g) -+ 1.96 sd(g) / sqrt(n).
    """
    if not held.probabilistic:
        return None
    weight = np.ones(len(held.codes)) if held.weight is None else held.weight
    share = np.bincount(held.codes, weight, minlength=len(held.labels)) / weight.sum()
    rows = np.flatnonzero(weight > 0)
    own = held.log_posterior[rows, held.codes[rows]]
    gains = own - np.log(share[held.codes[rows]])
    if not np.isfinite(gains).all() or len(rows) < 2:
        return None
    mean = float(np.average(gains, weights=weight[rows]))
    variance = float(np.average((gains - mean) ** 2, weights=weight[rows]))
    reach = 1.959963984540054 * np.sqrt(variance / (len(rows) - 1))
    return GainFacts(value=mean, low=mean - reach, high=mean + reach)


def _held(study: ReportedStudy) -> HeldOutPredictions | None:
    """Return the held-out predictions of the selected model, if it gives probabilities."""
    result = study._get_comparison()[study._get_choice().name]
    if result.facts["brier"] is None:
        return None
    return study._get_run().predictions_of(result)


def _class_moments(study: ReportedStudy) -> ClassMoments | None:
    """Return the moments of all rows if they hold the scatter of each class."""
    moments = study.moments
    return moments if moments is not None and moments.detail in ("class", "fourth") else None


def _largest_loadings(space: SpaceFacts | None) -> dict[str, float] | None:
    if space is None:
        return None
    structure = space["structure"]
    return {
        name: max(abs(value or 0.0) for value in line)
        for name, line in zip(structure["features"], structure["loadings"], strict=True)
    }


def _functions(study: ReportedStudy) -> tuple[Predict, Probabilities | None]:
    """Return functions from numeric rows to class codes and to posteriors of the selected model."""
    model = study.model().estimator_
    decides: Any = model
    if any(option is not None for option in study.options.values()):
        decides = Decision.of_fitted(model, **study.options)
    labels = study.rows.schema.labels
    order = np.searchsorted(model.classes_, labels)

    def predict(features: Floats) -> Codes:
        return np.searchsorted(labels, np.asarray(decides.predict(features)))

    def probabilities(features: Floats) -> Floats:
        return np.asarray(model.predict_proba(features))[:, order]

    return predict, probabilities if gives_posterior(model) else None


def model_card(report: Facts) -> list[list[str]]:
    """Return a short model card: names and texts."""
    read, model = report["read"], selected(report)
    classes = ", ".join(
        f"{shown(row['label'], 24)} ({row['rows']:,})" for row in read["classes"][:8]
    )
    more = len(read["classes"]) - 8
    costs = cost_headline(report)
    error = f"{percent(headline(report).error)} on held-out rows"
    if costs is not None:
        error = f"on held-out rows, {costs.errors}"
    for without in report["comparison"].get("without", []):
        if without["error"] is not None:
            columns = name_list(without["columns"])
            error += f"; {percent(without['error'])} without {columns}, which may reveal the class"
    card = [
        [
            "Predicts",
            f"{shown(read['target'])}: {classes}{f' and {more} more' if more > 0 else ''}",
        ],
        ["Model", model["label"]],
        [
            "Fitted to",
            f"{read['rows']:,} rows of {shown(read['source'])}, {read['features']} features",
        ],
        ["Error", error],
        [
            "Not for",
            "rows of another kind than the rows of the fit: other places, times, devices",
        ],
    ]
    if costs is not None:
        mean = f"{costs.compared} for guessing, on held-out rows"
        card.insert(3, ["Cost of its decisions", mean])
    if "date" in report["made"]:
        card.append(["Made", f"{report['made']['date']}, discriminant {report['made']['version']}"])
    return card


def _refused(study: ReportedStudy) -> list[str]:
    """Return the input that the model rejects, in sentences."""
    encoding = study.opened.encoding
    refused = ["a table without one of the columns used"]
    if encoding.missing == "error":
        refused.append("rows with missing cells")
    if encoding.unseen == "error" and any(c.kind == "category" for c in encoding.used):
        refused.append("levels of a category that were not in the fitted rows")
    refused.append("texts in a column of numbers, and infinite numbers")
    return refused


def provenance(study: ReportedStudy, command: str | None) -> Provenance:
    """Return versions, date, seed and command of a report."""
    made = Provenance(version=versions(), date=date.today().isoformat(), seed=study.seed)
    if command:
        made["command"] = command
    return made


def versions() -> str:
    """Return the versions of this package, Python, NumPy and SciPy.

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


def explanation(report: Facts) -> str:
    """Return the sections on the discriminant space and the features as Markdown."""
    sections = to_markdown(report).split("\n## ")
    titles = ("Discriminant space", "What matters")
    return "\n".join(f"## {text.strip()}\n" for text in sections if text.startswith(titles))


def write_report(
    study: ReportedStudy,
    path: Path,
    *,
    save: str | os.PathLike[str] | None,
    title: str | None,
    command: str | None,
) -> Facts:
    """Write the page; also write the model if `save` names a file."""
    from discriminant import store
    from discriminant.report.html import render

    for output in (path, save):
        if output is not None:
            store.check_writable(output)
    report = report_facts(
        study, title=title, command=command, file="" if save is None else os.path.basename(save)
    )
    page = render(report)
    if save is not None:
        store.save(decision_model(study), save)
    write_text(path, page)
    return report


def decision_model(study: ReportedStudy) -> Any:
    """Return the selected model, with costs and a reject option if these are set."""
    model = study.model()
    if not any(option is not None for option in study.options.values()):
        return model
    return Decision.of_fitted(model, **study.options)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    atomic_write_bytes(path, text.encode("utf-8"))


def _space(
    study: ReportedStudy,
    comparison: ComparisonFacts,
    held: HeldOutPredictions | None,
    predict: Predict,
) -> SpaceFacts | None:
    moments, folded = _class_moments(study), study._get_run().in_memory
    if moments is None:
        return None
    table = study._get_run().table
    section = space_section(
        table,
        moments,
        comparison=comparison,
        held=held,
        trains=folded.trains,
        predict=predict,
        model=study._get_choice().title,
        most=_POINTS,
        seed=study.seed,
    )
    if section is not None and len(table) < len(study.rows):
        section["notes"].insert(0, f"Points are {_sample(study)}; means and tests use all rows.")
    return section


def _decision(study: ReportedStudy, held: HeldOutPredictions | None) -> DecisionFacts | None:
    if held is None:  # without probabilities there is no decision section
        return None
    section = decision_section(
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
        section["drawn"] = f"Counts and curves are computed on {_sample(study)}."
    repeats = study._get_comparison().repeats
    if repeats > 1:
        error = "error with equal costs" if section["costs_given"] else "error"
        section["repeated"] = (
            "Counts are those of the first division into folds; the "
            f"{error} at the top is the mean over {repeats} divisions."
        )
    return section


def _sample(study: ReportedStudy) -> str:
    return f"a sample of {len(study._get_run().table):,} of the {len(study.rows):,} rows"


def _matters(study: ReportedStudy, far: Places | None) -> MattersFacts:
    moments, table = _class_moments(study), study._get_run().table
    result, held = study._get_comparison()[study._get_choice().name], _held(study)
    named = [_with_feature_names(warning, table.schema.features) for warning in result.warnings]
    warnings = [_of_fold(warning) for warning in named]
    warnings += [warning for warning in study.warnings if isinstance(warning, LookalikeWarning)]
    findings = _below_chance(result.facts)
    findings += findings_of(
        table,
        moments,
        held=held,
        warnings=warnings,
        among=_row_numbering(study, table),
        lines=_line_finder(study, table),
        far=far,
    )
    if moments is None:
        return MattersFacts(findings=findings)
    coefficients = steps = None
    with suppress(DiscriminantError):
        coefficients = coefficients_from(moments)
    if table.width <= _MAX_STEPWISE:
        from discriminant.assessment.selection.stepwise import stepwise

        with suppress(DiscriminantError):
            steps = stepwise(moments)
    return matters_section(coefficients=coefficients, stepwise=steps, findings=findings)


def _of_fold(warning: Warning) -> Warning:
    """Reword a warning about constant columns: they are constant in some folds only.

    A column that is constant in all rows has no features (`table.column_types`).
    """
    match = re.fullmatch(r"Constant c(olumn\(s\) .*) carry no information .*", str(warning))
    if not isinstance(warning, ConstantColumnWarning) or match is None:
        return warning
    return type(warning)(
        f"C{match[1]} are constant in the training rows of a fold and are ignored in that fold."
    )


def _with_feature_names(warning: Warning, features: Sequence[str]) -> Warning:
    """Replace the names x0, x1, ... in a warning by the names of the features.

    Models fitted to arrays use the names x0, x1, ...
    """

    def name(match: re.Match[str]) -> str:
        j = int(match[1])
        invented = match[0][1:-1] not in features and j < len(features)
        return f"'{features[j]}'" if invented else match[0]

    return type(warning)(re.sub(r"'x(\d+)'", name, str(warning)))


def _below_chance(facts: ModelFacts) -> list[FindingFacts]:
    if facts["auc_high"] is None or facts["auc_high"] >= 0.5:
        return []
    text = (
        f"The model ranks held-out rows worse than chance (AUC {fixed(facts['auc'], 3)}, upper 95% "
        f"limit {fixed(facts['auc_high'], 3)}). Rows that belong together, such as repeated "
        "measurements or counts of one group, may be in different folds; the measures in this "
        "report then say little about new rows. Hold such rows out together: folds may be the "
        "name of a column."
    )
    return [FindingFacts(kind="worse than chance", text=text)]


def _row_numbering(study: ReportedStudy, table: Table) -> str:
    """Return a description of the numbered rows if they differ from the rows of the file.

    The numbered rows may be the remaining rows after some were dropped, or a sample.
    """
    if study.opened.rows_read == len(table):
        return ""
    return "that are used" if len(table) == len(study.rows) else "of the sample"


def _line_finder(study: ReportedStudy, table: Table) -> Lines | None:
    """Return a function from row numbers to line numbers of the file.

    Return None unless the source is a CSV that is not too long.
    """
    opened = study.opened
    format, file_rows = opened.format, opened.kept_rows
    if format is None or format.kind != "csv" or opened.rows_read > _MAX_LINE_ROWS:
        return None
    if table is not opened.table:
        return None

    def find_lines(rows: Sequence[int]) -> list[int]:
        numbers = list(rows) if file_rows is None else file_rows[list(rows)].tolist()
        return lines_of_rows(format, numbers)

    return find_lines


def _use(study: ReportedStudy, file: str) -> UseFacts | None:
    table = Path(study.source).stem or "rows"
    model, columns = decision_model(study), study.opened.encoding.columns
    keys = [column.name for column in columns if column.kind == "identifier"][:1]
    probabilistic = gives_posterior(model)
    rarest = study.rows.schema.labels.tolist()[int(study._get_run().class_weight.argmin())]
    sql = _sql(model, table, keys)
    if sql:
        sql = f"{_sql_comment(file, table, keys)}\n{sql}"
    command = python = ""
    if file:
        command = f"discriminant predict {shlex.quote(file)} new.csv --out predicted.csv"
        python = python_code(
            file, decides=isinstance(model, Decision), likeliest=rarest if probabilistic else None
        )
        if probabilistic:
            command += (
                f"\n\n# those most likely {shown(rarest)!r}: sort predicted.csv by its column "
                f"{shown(f'p({rarest})')!r}, largest first"
            )
            labels = [str(label) for label in study.rows.schema.labels.tolist()]
            if len(labels) <= _COSTLY_CLASSES and not isinstance(model, Decision):
                missed = labels[int(study._get_run().class_weight.argmin())]
                costs = {label: {missed: 5} for label in labels if label != missed}
                cost = shlex.quote(json.dumps(costs, ensure_ascii=False))
                command += (
                    f"\n\n# if missing {shown(missed)!r} costs 5 times any other error: predict "
                    "the class with the lowest expected cost\n"
                    f"discriminant predict {shlex.quote(file)} new.csv --out decided.csv "
                    f"--cost {cost}"
                )
    use = use_section(file=file, sql=sql, command=command, python=python)
    if use is not None:
        use["refused"] = _refused(study)
        if file and _has_export(model):
            export, stem = f"discriminant export {shlex.quote(file)}", Path(file).stem
            use["onnx"] = "\n".join(
                f"{export} --to {format} --out {shlex.quote(f'{stem}.{ending}')}"
                for format, ending in (("onnx", "onnx"), ("javascript", "js"))
            )
            if not sql:
                use["sql"] = (
                    f"{_sql_comment(file, table, keys)}\n-- The SQL is too long for a page."
                )
    return use


def _has_export(model: Any) -> bool:
    from discriminant.export.plan import make_plan

    try:
        make_plan(model)
    except DiscriminantError:
        return False
    return True


def _sql_comment(file: str, table: str, keys: Sequence[str]) -> str:
    """Return the comment above the SQL: its database and table, and the command for another
    database or table.
    """
    model = shlex.quote(shown(file, 200)) if file else "FILE.model"
    key = f" --keep {shlex.quote(shown(keys[0], 200))}" if keys else " --keep KEY"
    order = "" if keys else "\n-- Rows come in no order: KEY is the column to join them by."
    return (
        f"-- For DuckDB and a table {shown(table)}. For another database or table:\n"
        f"-- discriminant export {model} --to sql --dialect postgres --table NAME{key}{order}"
    )


def _sql(model: Any, table: str, keys: Sequence[str]) -> str:
    from discriminant.export import export

    try:
        text = str(export(model, "sql", table=table, keep=keys))
    except (DiscriminantError, ImportError):
        return ""
    return text if len(text) <= _MAX_SQL else ""
