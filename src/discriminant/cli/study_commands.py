"""report, compare, explain and fit: a study, from the command line."""

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
from discriminant.engines.table_moments import TableMoments, plain
from discriminant.errors import CommandError, StudyError
from discriminant.estimators.meta.encoded import Encoded
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import gives_posterior
from discriminant.redaction import split_table
from discriminant.report.fact_types import Facts, to_json
from discriminant.report.format import counted
from discriminant.report.markdown import to_markdown
from discriminant.report.overview import verdict
from discriminant.study import study
from discriminant.study.models import candidate_models, resolve_models
from discriminant.study.report import write_text
from discriminant.study.sources import reject_sparse_file
from discriminant.study.workflow import Study
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.formats import is_stored


@contextmanager
def opened(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> Iterator[Study]:
    """The study of some files or a table, while progress is shown; its checkpoint ends with it."""
    how = reading_arguments(options)
    with session.progress() as shown:
        found = study(
            one_or_all(source), seed=options["seed"], folds=options["folds"], progress=shown, **how
        )
        rows, seconds = found.opened.rows_read, found.seconds["reading"]
        session.log(
            f"read {rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 1e-9):,.0f} a second)"
        )
        for line in found.opened.said:
            session.log(line)
        for warning in found.warnings:
            session.warn(warning)
        told = len(found.warnings)
        found.check_decision(parse_costs(options.get("cost")), options.get("reject"))
        yield found
        for warning in found.warnings[told:]:  # of the fit of the model that is kept
            session.warn(warning)
        found.complete()


def report(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """The main job."""
    reject_inapplicable("table", *(["no model file"] if options["no_model"] else []))
    stem = stem_of(source, options["table"])
    page = Path(options["out"] or f"{stem}.html")
    model = None if options["no_model"] else Path(options["save"] or page.with_suffix(".model"))
    extra = {name: options[name] for name in ("facts", "markdown") if options[name]}
    check_places(source, page, model, *extra.values())
    _check_request(source, options)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    with opened(session, source, options) as found:
        compared = found.compare(split_names(options["models"]), most=options["most"])
        choice = found.choose(options["model"], by=options["by"], rule=options["rule"])
        if cost is not None or reject is not None:
            found.decide(cost=cost, reject=reject)
        session.log("writing ...")
        facts = found.report(page, save=model, title=options["title"], command=session.command)
    for name, path in extra.items():
        write_text(Path(path), to_json(facts) if name == "facts" else to_markdown(facts))
    written = {"page": page, "model": model, **extra}
    session.result(
        {"chosen": choice.name, "why": choice.why, "comparison": compared.to_dict()},
        "\n".join([f"{compared}\n\n{choice.why}", *_verdict(facts, choice.why), ""]),
        written=written,
    )
    converged = compared[choice.name].converged and _converged(found.model())
    return _ended(session, choice.title, converged)


def _verdict(facts: Facts, why: str) -> list[str]:
    """What the first screen of the page says besides, as lines."""
    lines = verdict(facts)
    found = facts["matters"]["findings"] if "matters" in facts else []
    if found:
        things = counted(len(found), "thing")
        lines.append(f"The page has {things} to know before trusting it (What matters).")
    return [line for line in lines if line.split(":")[0] not in why]


def compare(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """The table."""
    _check_request(source, options)
    with opened(session, source, options) as found:
        compared = found.compare(split_names(options["models"]), most=options["most"])
        choice = found.choose(by=options["by"], rule=options["rule"])
    session.result(
        {"chosen": choice.name, "why": choice.why, "comparison": compared.to_dict()},
        f"{compared}\n\n{choice.why}",
    )
    return _ended(session, choice.title, compared[choice.name].converged)


def _check_request(source: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse sparse rows without a target, and models that cannot be selected, before reading."""
    if options["target"] is None:
        reject_sparse_file(source)
    names, name = split_names(options["models"]), options.get("model")
    members = resolve_models(names)
    if name is not None:
        reject_inapplicable("named model")
        one = resolve_models([name])
        if names is not None and name not in names:
            raise StudyError.not_compared(name, names)
        members = one
    weighs = any(options.get(option) is not None for option in ("cost", "reject"))
    if not weighs and (name is not None or options["by"] == "error"):
        return
    if not any(gives_posterior(member.make()) for member in members):
        use = "costs and --reject need" if weighs else f"--by {options['by']} needs"
        raise StudyError.none_with_probabilities([one.name for one in members], use)


def explain(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Space and what matters."""
    _check_request(source, options)
    with opened(session, source, options) as found:
        models = split_names(options["models"])
        if models is None and options["model"]:
            models = [options["model"]]
        compared = found.compare(models, most=options["most"])
        choice = found.choose(options["model"], by=options["by"], rule=options["rule"])
        facts = found.facts(command=session.command)
        text = found.explain()
    kept: dict[str, Any] = {name: facts.get(name) for name in ("space", "matters")}
    session.result({"model": choice.name, **kept}, text)
    return _ended(session, choice.title, compared[choice.name].converged)


def fit(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """A model, of a name or chosen."""
    check_places(source, options["out"])
    if len(source) == 1 and is_stored(source[0]):
        reject_inapplicable("moments")
        return _fit_moments(session, source[0], options)
    reject_inapplicable("table")
    _check_request(source, options)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    if options["model"] is not None:
        options = {**options, "folds": 2}  # none are made, so that few rows are no obstacle
    with opened(session, source, options) as found:
        name, why = options["model"], "It was taken as asked, and not compared."
        if name is None:
            found.compare(split_names(options["models"]), most=options["most"])
            choice = found.choose(by=options["by"], rule=options["rule"])
            name, why = choice.name, choice.why
        model = found.model(name)
        if cost is not None or reject is not None:
            model = decided_as(model, name, cost, reject)
        store.save(model, options["out"])
    inner, converged = found.model(name).estimator_, _converged(found.model(name))
    rows, features = len(found.rows), found.rows.width
    session.result(
        {
            "model": name,
            "why": why,
            "rows": rows,
            "features": features,
            "converged": converged,
            "classes": [str(label) for label in found.rows.schema.labels.tolist()],
        },
        f"{type(inner).__name__} fitted to {rows:,} rows of {features} features. {why}",
        written={"model": options["out"]},
    )
    return _ended(session, type(inner).__name__, converged)


def _converged(model: Any) -> bool:
    """Whether a model had; those that take no steps always have."""
    return bool(getattr(model.estimator_, "converged_", True))


def _ended(session: Session, title: str, converged: bool) -> int:
    """The exit code of a command that takes a model: of that model, whatever others did."""
    if converged:
        return DONE
    session.warn(f"{title} had not converged: exit code {NOT_CONVERGED}.")
    return NOT_CONVERGED


def _fit_moments(session: Session, path: str, options: dict[str, Any]) -> int:
    """A model of a file of moments, without any rows."""
    found = store.load(path)
    if not isinstance(found, ClassMoments):
        raise CommandError.not_moments(path, type(found).__name__)
    names = [name for name, one in candidate_models().items() if one.moment_based and not one.tuned]
    name = options["model"]
    if name is None:
        raise CommandError.no_rows(path, names)
    member = resolve_models([name])[0]
    if name not in names or not found.holds(member.make().detail):
        raise CommandError.needs_rows(path, name, found.detail, names)
    table = found if isinstance(found, TableMoments) else _of_numbers(found)
    table = table.with_reference()
    inner = member.make().fit_moments(plain(table))
    model: Any = Encoded.of_fitted(inner, table.encoding)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    if cost is not None or reject is not None:
        model = decided_as(model, name, cost, reject)
    store.save(model, options["out"])
    rows, features = int(found.rows.sum()), len(table.features)
    session.result(
        {
            "model": name,
            "rows": rows,
            "features": features,
            "classes": [str(label) for label in found.labels.tolist()],
        },
        f"{type(inner).__name__} made from moments of {rows:,} rows, {features} features. It was "
        "taken as asked, and not compared: 'discriminant assess' measures it on other rows.",
        written={"model": options["out"]},
    )
    return DONE


def _of_numbers(found: ClassMoments) -> TableMoments:
    """Moments that know nothing of columns: each feature is a column of numbers."""
    columns = tuple(Column(name, "number", features=(name,)) for name in found.features)
    return TableMoments.of(found, Encoding(columns))


def decided_as(model: Any, name: str, cost: Any, reject: Any) -> Any:
    """The model with costs and a reject option, which are checked now."""
    from discriminant.estimators.meta.decision import Decision
    from discriminant.posterior import gives_posterior

    if not gives_posterior(model):
        raise StudyError.no_probabilities(name)
    made = Decision.of_fitted(model, cost=cost, reject=reject)
    made.check_options()
    return made


def stem_of(source: tuple[str, ...], table: str | None) -> str:
    """What files that are written are called, after what is read."""
    name = Path(source[0]).name.removesuffix(".gz")
    if os.path.isfile(source[0]):
        return Path(name).stem
    if table is not None or "://" in source[0]:
        name = table or split_table(source[0])[1]
    elif any(mark in name for mark in "*?["):
        name = Path(source[0]).parent.name
    return re.sub(r"[^\w. -]", "_", name).strip(". ") or "report"


def check_places(source: str | tuple[str, ...], *places: Any) -> None:
    """Say now, before any work, if something cannot be written."""
    read = [one for one in ([source] if isinstance(source, str) else source) if os.path.exists(one)]
    written: dict[str, Any] = {}  # the first that was to be written at each real place
    for place in places:
        if place is None:
            continue
        if (first := written.setdefault(os.path.realpath(place), place)) is not place:
            raise CommandError.same_place(first, place)
        for one in read if os.path.exists(place) else ():
            if os.path.samefile(place, one):
                raise CommandError.same_file(one)
        store.check_place(place)
        track_output(place)
