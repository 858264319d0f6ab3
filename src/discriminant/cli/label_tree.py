"""Commands for label trees: fit, report and assess.

The rows come from a file of sparse rows with label sets (XMC text or svmlight), or, for fit, from a
table (with --target).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from discriminant import store
from discriminant.cli.options import is_passed, one_or_all, parse_costs, reject_inapplicable
from discriminant.cli.session import DONE, Session
from discriminant.cli.study_commands import check_outputs, open_study, output_stem, with_decision
from discriminant.errors import CommandError
from discriminant.extreme.file_predictions import (
    FileAssessment,
    assess_file,
    check_same_width,
    is_xmc,
    read_labelled_rows,
    single_file,
)
from discriminant.extreme.label_tree import LabelTree, check_options
from discriminant.extreme.report import label_page_facts, labels_to_markdown, write_label_page
from discriminant.report.fact_types import to_json
from discriminant.report.format import count_with_noun
from discriminant.study.data_source import reject_sparse_file
from discriminant.study.progress import ProgressRate
from discriminant.study.report import write_text

_SCALED = " Rows were scaled to unit length (--with unit_rows=false turns this off)."
_FROM_ONE = (
    "There is no feature 0, so features are assumed to be numbered from 1, as svmlight does; if "
    "they are numbered from 0, pass --first 0. The model stores the number of the first feature."
)
_MAX_CLASSES = 10_000_000  # largest number of classes of a table, unless --max-classes is passed


def fit(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Fit a label tree to sparse rows, or to a table if --target names the label column."""
    check_outputs(source, options["out"])
    settings = dict(setting(text) for text in options["settings"])
    reject_inapplicable("label tree")
    if options["target"] is None:
        reject_inapplicable("sparse rows")
        return _fit_sparse(session, source, options, settings)
    reject_inapplicable("named model", "table of a label tree")
    return _fit_table(session, source, options, settings)


def _fit_sparse(
    session: Session, source: tuple[str, ...], options: dict[str, Any], settings: dict[str, Any]
) -> int:
    """Fit to a file of sparse rows, each with one label or a set of labels."""
    model, rows, _ = train(session, source, options, settings)
    store.save(model, options["out"])
    return _print_model(session, model, rows, options["out"])


def train(
    session: Session, source: tuple[str, ...], options: dict[str, Any], settings: dict[str, Any]
) -> tuple[LabelTree, int, dict[str, float]]:
    """Return a model fitted to sparse rows, the number of rows, and the seconds taken.

    Rows are scaled to unit length unless the settings contain unit_rows=false.
    """
    given = {"random_state": options["seed"], "checkpoint": options["checkpoint"]}
    given = given if settings.get("tree") == "moments" else {**given, "unit_rows": True}
    model = LabelTree(**{**given, **settings})
    check_options(model)  # checked before a large file is read
    with session.progress() as shown:
        shown("reading", 0, 1)
        began = time.perf_counter()
        first = first_feature(source, options)
        read = read_labelled_rows(one_or_all(source), first="auto" if first is None else first)
        reading = time.perf_counter() - began
        shown("training", 0, 1)
        if sys.stderr.isatty():
            model.progress = lambda done, of: shown("training", done, of)
        model.fit(read.features, read.labels)
    if not is_xmc(single_file(one_or_all(source))):
        model.first_feature_ = read.first
        if first is None and read.first == 1:
            session.log(_FROM_ONE)
    training = time.perf_counter() - began - reading
    return model, len(read), {"reading": reading, "training": training}


def first_feature(source: tuple[str, ...], options: dict[str, Any]) -> Any:
    """Return the value of --first (the number of the first feature): 0, 1 or None."""
    if options["first"] is None:
        return None
    path = single_file(one_or_all(source))
    if is_xmc(path):
        raise CommandError(
            f"--first applies only to svmlight, and {path} is XMC text, which numbers features "
            "from 0: leave it out."
        )
    return int(options["first"])


def set_first_feature(model: Any, source: tuple[str, ...], options: dict[str, Any]) -> None:
    """Store the value of --first in the model, if it was passed."""
    if options["first"] is None:
        return
    model.first_feature_ = first_feature(source, options)


def _fit_table(
    session: Session, source: tuple[str, ...], options: dict[str, Any], settings: dict[str, Any]
) -> int:
    """Fit to a table with one label per row and columns of any type.

    The checkpoint holds moments if the tree is built from them, else the trained levels.
    """
    reject_sparse_file(source)
    given = {"random_state": options["seed"], "standardize": True, **settings}
    if settings.get("tree") != "moments":
        given = {"checkpoint": options["checkpoint"], **given}
        options = {**options, "checkpoint": None}
    if not is_passed("max_classes"):
        options = {**options, "max_classes": _MAX_CLASSES}
    model, cost, reject = LabelTree(**given), parse_costs(options["cost"]), options["reject"]
    with open_study(session, source, {**options, "folds": 2}) as analysis:
        fitted: Any = analysis.fitted(model)
        decided = cost is not None or reject is not None
        store.save(
            with_decision(fitted, "label-tree", cost, reject) if decided else fitted, options["out"]
        )
    return _print_model(session, fitted.estimator_, len(analysis.rows), options["out"])


def is_of_sparse_rows(model: Any) -> bool:
    """Whether a model is a label tree fitted to sparse rows without column names."""
    return isinstance(model, LabelTree) and not hasattr(model, "feature_names_in_")


def _print_model(session: Session, model: LabelTree, rows: int, out: Any) -> int:
    labels = len(model.classes_)
    session.result(
        {
            "model": "label-tree",
            "rows": rows,
            "features": model.n_features_in_,
            "labels": labels,
            "trees": len(model.forest_.trees),
            "weights": model.n_weights_,
        },
        f"LabelTree fitted to {rows:,} rows of {model.n_features_in_:,} features: "
        f"{count_with_noun(len(model.forest_.trees), 'tree')} over {labels:,} labels, "
        f"{model.n_weights_:,} weights.{_SCALED if model.unit_rows else ''}",
        written={"model": out},
    )
    return DONE


def setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option; the value is a number or a text."""
    name, separator, value = text.partition("=")
    if not separator:
        raise CommandError(f"--with {text}: write OPTION=VALUE, such as --with arity=32.")
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):  # RecursionError is raised for too many nested brackets
        return name.strip(), value


def report(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Train on a file, evaluate on the file --test if it is passed, and write the report."""
    reject_inapplicable("sparse rows", *(["no test file"] if options["test"] is None else []))
    if options["no_model"]:
        reject_inapplicable("no model file")
    page = Path(options["out"] or f"{output_stem(source, None)}.html")
    file = None if options["no_model"] else Path(options["save"] or page.with_suffix(".model"))
    read_from = source if options["test"] is None else (*source, options["test"])
    extra = {name: options[name] for name in ("facts", "markdown") if options[name]}
    check_outputs(read_from, page, file, *extra.values())
    settings = dict(setting(text) for text in options["settings"])
    if options["test"] is not None:
        check_same_width(single_file(one_or_all(source)), single_file(options["test"]))
    model, _, seconds = train(session, source, options, settings)
    measured = None
    if file is not None:
        store.save(model, file)
    if options["test"] is not None:
        began = time.perf_counter()
        measured = _assess(session, model, options["test"], options)
        seconds["measuring"] = time.perf_counter() - began
    facts = label_page_facts(
        model,
        source=Path(single_file(one_or_all(source))).name,
        title=options["title"],
        measured=measured,
        test=Path(options["test"] or "").name,
        seconds=seconds,
        file="" if file is None else file.name,
        command=session.command,
    )
    return _write_report(session, model, measured, facts, page, {"model": file, **extra})


def assess(
    session: Session, model: LabelTree, path: str, source: tuple[str, ...], options: dict[str, Any]
) -> int:
    """Evaluate a saved label tree on a file; write a report if --page is passed."""
    page = None if options["page"] is None else Path(options["page"])
    check_outputs((path, *source), page)
    measured = _assess(session, model, one_or_all(source), options)
    if page is None:
        session.result(measured.to_dict(), str(measured))
        return DONE
    facts = label_page_facts(
        model,
        source=Path(path).name,
        measured=measured,
        test=Path(single_file(one_or_all(source))).name,
        file=Path(path).name,
        command=session.command,
    )
    return _write_report(session, model, measured, facts, page, {})


def _assess(
    session: Session, model: LabelTree, source: Any, options: dict[str, Any]
) -> FileAssessment:
    with session.progress() as shown:
        rate = ProgressRate(shown)
        rate("measuring", 0, 1)
        return assess_file(
            model, source, k=options["top"], unknown=options["unknown"], progress=rate.rows
        )


def _write_report(
    session: Session,
    model: LabelTree,
    measured: FileAssessment | None,
    facts: Any,
    page: Path,
    written: dict[str, Any],
) -> int:
    session.log("writing ...")
    write_label_page(page, facts)
    if "facts" in written:
        write_text(Path(written["facts"]), to_json(facts))
    if "markdown" in written:
        write_text(Path(written["markdown"]), labels_to_markdown(facts))
    lines = [str(model.summary()), *([] if measured is None else [str(measured)])]
    output = {name: part for name, part in facts.items() if name not in ("made", "use", "title")}
    session.result(output, "\n\n".join([*lines, ""]), written={"page": page, **written})
    return DONE
