"""fit --model label-tree: a file of sparse rows with label sets, from the command line."""

from __future__ import annotations

import json
import sys
from typing import Any

from discriminant import store
from discriminant.cli.door import DONE, Session
from discriminant.cli.options import one_or_all
from discriminant.cli.studying import check_places
from discriminant.errors import CommandError
from discriminant.estimators.label_tree import LabelTree
from discriminant.report.words import counted
from discriminant.study.label_files import read_labelled


def fit(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """A label tree of all rows."""
    check_places(source, options["out"])
    asked = dict(_setting(text) for text in options["settings"])
    model = LabelTree(
        **{"random_state": options["seed"], "checkpoint": options["checkpoint"], **asked}
    )
    with session.progress() as shown:
        shown("reading", 0, 1)
        read = read_labelled(one_or_all(source))
        shown("training", 0, 1)
        if sys.stderr.isatty():
            model.progress = lambda done, of: shown("training", done, of)
        model.fit(read.features, read.labels)
    store.save(model, options["out"])
    rows, labels = len(read), len(model.classes_)
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
        f"{model.n_weights_:,} weights.",
        written={"model": options["out"]},
    )
    return DONE


def _setting(text: str) -> tuple[str, Any]:
    """An option and its value: a number or a word."""
    name, found, value = text.partition("=")
    if not found:
        raise CommandError(f"--with {text}: write OPTION=VALUE, such as --with arity=32.")
    try:
        return name.strip(), json.loads(value)
    except json.JSONDecodeError:
        return name.strip(), value
