"""fit --model label-tree: a file of sparse rows with label sets, or a table (--target)."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from discriminant import store
from discriminant.cli.door import DONE, Session
from discriminant.cli.options import costs, one_or_all
from discriminant.cli.studying import check_places, decided_as, opened
from discriminant.cli.unused import refuse_unused, was_given
from discriminant.errors import CommandError
from discriminant.estimators.label_options import check_options
from discriminant.estimators.label_tree import LabelTree
from discriminant.report.words import counted
from discriminant.study.label_files import is_xmc, one_file, read_labelled
from discriminant.study.sparse_or_table import refuse_sparse

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
        refuse_unused("sparse rows")
        return _fit_sparse(session, source, options, asked)
    refuse_unused("named model", "table of a label tree")
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
            session.say(_FROM_ONE)
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
    refuse_sparse(source)
    given = {"random_state": options["seed"], "standardize": True, **asked}
    if asked.get("tree") != "moments":
        given = {"checkpoint": options["checkpoint"], **given}
        options = {**options, "checkpoint": None}
    if not was_given("max_classes"):
        options = {**options, "max_classes": _MOST}
    model, cost, reject = LabelTree(**given), costs(options["cost"]), options["reject"]
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
    session.tell(
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
