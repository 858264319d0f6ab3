"""fit --model label-tree: a file of sparse rows with label sets, or a table (--target).

report and assess of label trees: files of sparse rows with label sets.
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
from discriminant.cli.study_commands import check_places, decided_as, opened, stem_of
from discriminant.errors import CommandError
from discriminant.extreme.files import (
    LabelsAssessed,
    assessed_labels,
    check_widths,
    is_xmc,
    one_file,
    read_labelled,
)
from discriminant.extreme.label_tree import LabelTree, check_options
from discriminant.extreme.report import label_page_facts, labels_to_markdown, write_label_page
from discriminant.report.fact_types import to_json
from discriminant.report.format import counted
from discriminant.study.predict import ProgressRate
from discriminant.study.report import write_text
from discriminant.study.sources import reject_sparse_file

_SCALED = " Rows were brought to length one (--with unit_rows=false leaves them as they are)."
_FROM_ONE = (
    "There is no feature 0, so features were taken to count from 1, as svmlight has it; if they "
    "count from 0, say --first 0. The model remembers which."
)
_MOST = 10_000_000  # classes of a table, unless it is said


def fit(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """A label tree of all rows: of a table, if it is said which column has the labels."""
    check_places(source, options["out"])
    asked = dict(setting(text) for text in options["settings"])
    if options["target"] is None:
        reject_inapplicable("sparse rows")
        return _fit_sparse(session, source, options, asked)
    reject_inapplicable("named model", "table of a label tree")
    return _fit_table(session, source, options, asked)


def _fit_sparse(
    session: Session, source: tuple[str, ...], options: dict[str, Any], asked: dict[str, Any]
) -> int:
    """To label sets, or to one label for each row, of a file of sparse rows."""
    model, rows, _ = trained(session, source, options, asked)
    store.save(model, options["out"])
    return _tell(session, model, rows, options["out"])


def trained(
    session: Session, source: tuple[str, ...], options: dict[str, Any], asked: dict[str, Any]
) -> tuple[LabelTree, int, dict[str, float]]:
    """A model of sparse rows, brought to length one unless that is said; their number; seconds."""
    given = {"random_state": options["seed"], "checkpoint": options["checkpoint"]}
    given = given if asked.get("tree") == "moments" else {**given, "unit_rows": True}
    model = LabelTree(**{**given, **asked})
    check_options(model)  # before a large file is read
    with session.progress() as shown:
        shown("reading", 0, 1)
        began = time.perf_counter()
        first = first_feature(source, options)
        read = read_labelled(one_or_all(source), first="auto" if first is None else first)
        reading = time.perf_counter() - began
        shown("training", 0, 1)
        if sys.stderr.isatty():
            model.progress = lambda done, of: shown("training", done, of)
        model.fit(read.features, read.labels)
    if not is_xmc(one_file(one_or_all(source))):
        _remember(model, read.first)
        if first is None and read.first == 1:
            session.log(_FROM_ONE)
    training = time.perf_counter() - began - reading
    return model, len(read), {"reading": reading, "training": training}


def first_feature(source: tuple[str, ...], options: dict[str, Any]) -> Any:
    """What --first says that the first feature is called: 0 or 1; None if it says nothing."""
    if options["first"] is None:
        return None
    path = one_file(one_or_all(source))
    if is_xmc(path):
        raise CommandError(
            f"--first is of svmlight, and {path} is XMC text, which counts from 0: leave it out."
        )
    return int(options["first"])


def say_first(model: Any, source: tuple[str, ...], options: dict[str, Any]) -> None:
    """Let a model read a file as --first says, if it says something."""
    if options["first"] is None:
        return
    _remember(model, first_feature(source, options))


def _remember(model: Any, first: int) -> None:
    model.first_feature_ = first  # saved with it


def _fit_table(
    session: Session, source: tuple[str, ...], options: dict[str, Any], asked: dict[str, Any]
) -> int:
    """To a table of one label for each row, whose columns may be of any units and kinds.

    A checkpoint is of whatever takes the time: of sums, if the tree is made of moments.
    """
    reject_sparse_file(source)
    given = {"random_state": options["seed"], "standardize": True, **asked}
    if asked.get("tree") != "moments":
        given = {"checkpoint": options["checkpoint"], **given}
        options = {**options, "checkpoint": None}
    if not is_passed("max_classes"):
        options = {**options, "max_classes": _MOST}
    model, cost, reject = LabelTree(**given), parse_costs(options["cost"]), options["reject"]
    with opened(session, source, {**options, "folds": 2}) as found:
        made: Any = found.fitted(model)
        decided = cost is not None or reject is not None
        store.save(
            decided_as(made, "label-tree", cost, reject) if decided else made, options["out"]
        )
    return _tell(session, made.estimator_, len(found.rows), options["out"])


def is_of_sparse_rows(model: Any) -> bool:
    """Whether a model is a label tree that answers files of sparse rows."""
    return isinstance(model, LabelTree) and not hasattr(model, "feature_names_in_")


def _tell(session: Session, model: LabelTree, rows: int, out: Any) -> int:
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
        f"{counted(len(model.forest_.trees), 'tree')} over {labels:,} labels, "
        f"{model.n_weights_:,} weights.{_SCALED if model.unit_rows else ''}",
        written={"model": out},
    )
    return DONE


def setting(text: str) -> tuple[str, Any]:
    """An option and its value: a number or a word."""
    name, found, value = text.partition("=")
    if not found:
        raise CommandError(f"--with {text}: write OPTION=VALUE, such as --with arity=32.")
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):  # also too many digits, too many brackets
        return name.strip(), value


def report(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Train on a file, measure on another if there is one, and write what was found."""
    reject_inapplicable("sparse rows", *(["no test file"] if options["test"] is None else []))
    if options["no_model"]:
        reject_inapplicable("no model file")
    page = Path(options["out"] or f"{stem_of(source, None)}.html")
    file = None if options["no_model"] else Path(options["save"] or page.with_suffix(".model"))
    read_from = source if options["test"] is None else (*source, options["test"])
    extra = {name: options[name] for name in ("facts", "markdown") if options[name]}
    check_places(read_from, page, file, *extra.values())
    asked = dict(setting(text) for text in options["settings"])
    if options["test"] is not None:
        check_widths(one_file(one_or_all(source)), one_file(options["test"]))
    model, _, seconds = trained(session, source, options, asked)
    measured = None
    if file is not None:
        store.save(model, file)
    if options["test"] is not None:
        began = time.perf_counter()
        measured = _measured(session, model, options["test"], options)
        seconds["measuring"] = time.perf_counter() - began
    facts = label_page_facts(
        model,
        source=Path(one_file(one_or_all(source))).name,
        title=options["title"],
        measured=measured,
        test=Path(options["test"] or "").name,
        seconds=seconds,
        file="" if file is None else file.name,
        command=session.command,
    )
    return _written(session, model, measured, facts, page, {"model": file, **extra})


def assess(
    session: Session, model: LabelTree, path: str, source: tuple[str, ...], options: dict[str, Any]
) -> int:
    """Measure a saved label tree on a file, and write a page of it if one is asked for."""
    page = None if options["page"] is None else Path(options["page"])
    check_places((path, *source), page)
    measured = _measured(session, model, one_or_all(source), options)
    if page is None:
        session.result(measured.to_dict(), str(measured))
        return DONE
    facts = label_page_facts(
        model,
        source=Path(path).name,
        measured=measured,
        test=Path(one_file(one_or_all(source))).name,
        file=Path(path).name,
        command=session.command,
    )
    return _written(session, model, measured, facts, page, {})


def _measured(
    session: Session, model: LabelTree, source: Any, options: dict[str, Any]
) -> LabelsAssessed:
    with session.progress() as shown:
        pace = ProgressRate(shown)
        pace("measuring", 0, 1)
        return assessed_labels(
            model, source, k=options["top"], unknown=options["unknown"], told=pace.rows
        )


def _written(
    session: Session,
    model: LabelTree,
    measured: LabelsAssessed | None,
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
    told = {name: part for name, part in facts.items() if name not in ("made", "use", "title")}
    session.result(told, "\n\n".join([*lines, ""]), written={"page": page, **written})
    return DONE
