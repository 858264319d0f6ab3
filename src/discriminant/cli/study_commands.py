"""Commands that run a study: report, compare, explain and fit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discriminant import store
from discriminant.cli.options import (
    one_or_all,
    parse_costs,
    reading_arguments,
    reject_inapplicable,
    split_names,
)
from discriminant.cli.session import DONE, NOT_CONVERGED, Session, track_output
from discriminant.engines.moments_with_encoding import TableMoments, without_encoding
from discriminant.errors import CommandError, StudyError, UnlabelledRowsWarning
from discriminant.estimators.meta.decision import Decision
from discriminant.estimators.meta.encoded import Encoded
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import gives_posterior
from discriminant.redaction import split_table
from discriminant.report.fact_types import Facts, to_json
from discriminant.report.format import count_with_noun
from discriminant.report.markdown import markdown_to_text, to_markdown
from discriminant.report.overview import in_short
from discriminant.study import study
from discriminant.study.data_source import reject_sparse_file
from discriminant.study.models import candidate_models, resolve_models
from discriminant.study.report import write_text
from discriminant.study.workflow import Study
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.formats import is_model_file


@contextmanager
def open_study(
    session: Session,
    source: tuple[str, ...],
    options: dict[str, Any],
    *,
    unlabelled: str = "drop",
) -> Iterator[Study]:
    """Open a study and show its progress and warnings; at the end, remove its checkpoint."""
    arguments = reading_arguments(options)
    with session.progress() as shown:
        analysis = study(
            one_or_all(source),
            seed=options["seed"],
            folds=options["folds"],
            groups=options["groups"],
            time=options["time"],
            unlabelled=unlabelled,
            progress=shown,
            **arguments,
        )
        rows, seconds = analysis.opened.rows_read, analysis.seconds["reading"]
        session.log(
            f"read {count_with_noun(rows, 'row')} in {seconds:.1f} s "
            f"({rows / max(seconds, 1e-9):,.0f} a second)"
        )
        for line in analysis.opened.notes:
            session.log(line)
        for warning in analysis.warnings:
            session.warn(warning)
        shown_warnings = len(analysis.warnings)
        analysis.check_decision(parse_costs(options.get("cost")), options.get("reject"))
        yield analysis
        # warnings from fitting the selected model
        for warning in analysis.warnings[shown_warnings:]:
            session.warn(warning)
        analysis.complete()


def check(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Print the findings of the data checks."""
    if options["target"] is None:
        reject_sparse_file(source)
    unused = {"missing": "mean", "unseen": "error", "reference": None}  # no model is fitted
    arguments = reading_arguments({**options, **unused, "pushdown": False, "checkpoint": None})
    with session.progress() as shown:
        analysis = study(
            one_or_all(source),
            seed=options["seed"],
            folds=options["folds"],
            groups=options["groups"],
            time=options["time"],
            progress=shown,
            **arguments,
        )
        for warning in analysis.warnings:
            if not isinstance(warning, UnlabelledRowsWarning):  # a finding of the checks
                session.warn(warning)
        checks = analysis.check()
    session.result(checks.to_dict(), checks.text)
    return DONE


def report(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Compare models, select one, and write the report and the model."""
    reject_inapplicable("table", *(["no model file"] if options["no_model"] else []))
    stem = output_stem(source, options["table"])
    page = Path(options["out"] or f"{stem}.html")
    model = None if options["no_model"] else Path(options["save"] or page.with_suffix(".model"))
    extra = {name: options[name] for name in ("facts", "markdown") if options[name]}
    check_outputs(source, page, model, *extra.values())
    _check_request(source, options)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    with open_study(session, source, options) as analysis:
        compared = analysis.compare(
            _compared_models(options), most=options["most"], repeats=options["repeats"]
        )
        choice = analysis.choose(
            options["model"], by=options["by"], rule=options["rule"], select=options["select"]
        )
        if cost is not None or reject is not None:
            analysis.decide(cost=cost, reject=reject)
        session.log("writing ...")
        facts = analysis.report(
            page,
            save=model,
            title=options["title"],
            command=session.command,
            yardstick=not options["no_yardstick"],
        )
    for name, path in extra.items():
        write_text(Path(path), to_json(facts) if name == "facts" else to_markdown(facts))
    written = {"page": page, "model": model, **extra}
    session.result(
        {"chosen": choice.name, "why": choice.why, **facts},
        "\n".join([f"{compared}\n", *_verdict(facts), ""]),
        written=written,
    )
    converged = compared[choice.name].converged and _converged(analysis.model())
    return _exit_code(session, choice.title, converged, separated=compared[choice.name].separated)


def _verdict(facts: Facts) -> list[str]:
    """Return the verdict of the report with its reasons, and the main results, as lines."""
    lines = in_short(facts)
    findings = facts["matters"]["findings"] if "matters" in facts else []
    if findings:
        lines.append(
            f"{count_with_noun(len(findings), 'warning')}: see “What matters” in the report."
        )
    return lines


def compare(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Print the table of the comparison."""
    _check_request(source, options)
    with open_study(session, source, options) as analysis:
        compared = analysis.compare(
            split_names(options["models"]), most=options["most"], repeats=options["repeats"]
        )
        choice = analysis.choose(by=options["by"], rule=options["rule"], select=options["select"])
    session.result(
        {"chosen": choice.name, "why": choice.why, "comparison": compared.to_dict()},
        f"{compared}\n\n{choice.why}",
    )
    chosen = compared[choice.name]
    return _exit_code(session, choice.title, chosen.converged, separated=chosen.separated)


def _check_request(source: tuple[str, ...], options: dict[str, Any]) -> None:
    """Reject sparse rows without a target, and invalid model names, before any row is read."""
    if options["target"] is None:
        reject_sparse_file(source)
    name = options.get("model")
    candidates = resolve_models(_compared_models(options))
    if name is not None:
        reject_inapplicable("named model")
        named = resolve_models([name])
        names = [model.name for model in candidates]
        if name not in names:
            raise StudyError.not_compared(name, names)
        candidates = named
    can_marginalise = (getattr(model.make(), "can_marginalise", False) for model in candidates)
    if options["missing"] == "marginal" and not any(can_marginalise):
        raise StudyError.not_gaussian()
    weighs = any(options.get(option) is not None for option in ("cost", "reject"))
    if not weighs and (name is not None or options["by"] == "error"):
        return
    if not any(gives_posterior(model.make()) for model in candidates):
        use = "costs and --reject need" if weighs else f"--by {options['by']} needs"
        raise StudyError.none_with_probabilities([model.name for model in candidates], use)


def _compared_models(options: dict[str, Any]) -> list[str] | None:
    """Return the names of the models to compare: those of --models, or the default and --model."""
    names, name = split_names(options["models"]), options.get("model")
    if names is not None or name is None:
        return names
    return list(dict.fromkeys([*(model.name for model in resolve_models(None)), name]))


def explain(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Print the discriminant space and the most important features."""
    _check_request(source, options)
    with open_study(session, source, options) as analysis:
        models = split_names(options["models"])
        if models is None and options["model"]:
            models = [options["model"]]
        compared = analysis.compare(models, most=options["most"], repeats=options["repeats"])
        choice = analysis.choose(
            options["model"], by=options["by"], rule=options["rule"], select=options["select"]
        )
        facts = analysis.facts(command=session.command, yardstick=False)
        text = analysis.explain()
    sections: dict[str, Any] = {name: facts.get(name) for name in ("space", "matters")}
    named = f"Model: {choice.title}\n{choice.why}"
    session.result({"model": choice.name, **sections}, f"{named}\n\n{markdown_to_text(text)}")
    chosen = compared[choice.name]
    return _exit_code(session, choice.title, chosen.converged, separated=chosen.separated)


def fit(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Fit the named model, or the selected one, and save it."""
    check_outputs(source, options["out"])
    if len(source) == 1 and is_model_file(source[0]):
        reject_inapplicable("moments")
        return _fit_moments(session, source[0], options)
    reject_inapplicable("table")
    _check_request(source, options)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    if options["model"] is not None:
        # unused, since nothing is compared
        options = {**options, "folds": 2, "groups": None, "time": None}
    with open_study(session, source, options, unlabelled="error") as analysis:
        name, why = options["model"], "The model was not compared with other models."
        if name is None:
            analysis.compare(
                split_names(options["models"]), most=options["most"], repeats=options["repeats"]
            )
            choice = analysis.choose(
                by=options["by"], rule=options["rule"], select=options["select"]
            )
            name, why = choice.name, choice.why
        model = analysis.model(name)
        if cost is not None or reject is not None:
            model = with_decision(model, name, cost, reject)
        store.save(model, options["out"])
    inner, converged = analysis.model(name).estimator_, _converged(analysis.model(name))
    rows, features = len(analysis.rows), analysis.rows.width
    session.result(
        {
            "model": name,
            "why": why,
            "rows": rows,
            "features": features,
            "converged": converged,
            "classes": [str(label) for label in analysis.rows.schema.labels.tolist()],
        },
        f"{type(inner).__name__} fitted to {count_with_noun(rows, 'row')} of "
        f"{count_with_noun(features, 'feature')}. {why}",
        written={"model": options["out"]},
    )
    separated = getattr(inner, "separation_", None) in ("quasi", "complete")
    return _exit_code(session, type(inner).__name__, converged, separated=separated)


def _converged(model: Any) -> bool:
    """Whether a model converged; a model with a closed form always counts as converged."""
    return bool(getattr(model.estimator_, "converged_", True))


def _exit_code(session: Session, title: str, converged: bool, *, separated: bool) -> int:
    """Return the exit code: it depends only on whether the selected model converged."""
    if converged:
        return DONE
    why = " because the classes are separated" if separated else ""
    session.warn(f"{title} did not converge{why}: exit code {NOT_CONVERGED}.")
    return NOT_CONVERGED


def _fit_moments(session: Session, path: str, options: dict[str, Any]) -> int:
    """Fit a model to a moment file, without any rows."""
    moments = store.load(path)
    if not isinstance(moments, ClassMoments):
        raise CommandError.not_moments(path, type(moments).__name__)
    names = [
        name
        for name, model in candidate_models().items()
        if model.moment_based and not model.tuning
    ]
    name = options["model"]
    if name is None:
        raise CommandError.no_rows(path, names)
    candidate = resolve_models([name])[0]
    if name not in names or not moments.has(candidate.make().detail):
        raise CommandError.needs_rows(path, name, moments.detail, names)
    table = moments if isinstance(moments, TableMoments) else _as_numeric_columns(moments)
    table = table.with_reference()
    inner = candidate.make().fit_moments(without_encoding(table))
    model: Any = Encoded.of_fitted(inner, table.encoding)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    if cost is not None or reject is not None:
        model = with_decision(model, name, cost, reject)
    store.save(model, options["out"])
    rows, features = int(moments.rows.sum()), len(table.features)
    session.result(
        {
            "model": name,
            "rows": rows,
            "features": features,
            "classes": [str(label) for label in moments.labels.tolist()],
        },
        f"{type(inner).__name__} fitted to the moments of {count_with_noun(rows, 'row')} of "
        f"{count_with_noun(features, 'feature')}. "
        "Use 'discriminant assess' to evaluate the model on labelled rows.",
        written={"model": options["out"]},
    )
    return DONE


def _as_numeric_columns(moments: ClassMoments) -> TableMoments:
    """Return moments without an encoding as moments of a table of numeric columns."""
    columns = tuple(Column(name, "number", features=(name,)) for name in moments.features)
    return TableMoments.from_moments(moments, Encoding(columns))


def with_decision(model: Any, name: str, cost: Any, reject: Any) -> Any:
    """Return the model with costs and a reject option, after validating both."""
    if not gives_posterior(model):
        raise StudyError.no_probabilities(name)
    decision = Decision.of_fitted(model, cost=cost, reject=reject)
    decision.check_options()
    return decision


def output_stem(source: tuple[str, ...], table: str | None) -> str:
    """Return the default name of output files, without suffix, derived from the source."""
    name = Path(source[0]).name.removesuffix(".gz")
    if os.path.isfile(source[0]):
        return Path(name).stem
    if table is not None or "://" in source[0]:
        name = table or split_table(source[0])[1]
    elif any(mark in name for mark in "*?["):
        name = Path(source[0]).parent.name
    return re.sub(r"[^\w. -]", "_", name).strip(". ") or "report"


def check_outputs(source: str | tuple[str, ...], *outputs: Any) -> None:
    """Raise an error if an output file cannot be written or would replace an input."""
    sources = [source] if isinstance(source, str) else source
    inputs = [path for path in sources if os.path.exists(path)]
    written: dict[str, Any] = {}  # real path -> the first output file with that path
    for output in outputs:
        if output is None:
            continue
        if (first := written.setdefault(os.path.realpath(output), output)) is not output:
            raise CommandError.same_output(first, output)
        for path in inputs if os.path.exists(output) else ():
            if os.path.samefile(output, path):
                raise CommandError.same_file(path)
        store.check_writable(output)
        track_output(output)
