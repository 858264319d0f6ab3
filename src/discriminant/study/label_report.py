"""The page of a label tree: what the model knows of its fit, and how good it is on other rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import cast

from discriminant.estimators.label_tree import LabelTree
from discriminant.redaction import redact_facts
from discriminant.report.facts import Made, UseFacts
from discriminant.report.label_facts import (
    LabelPageFacts,
    label_facts,
    labels_read,
    measured_section,
    tree_section,
)
from discriminant.report.using import use_section
from discriminant.study.label_assessing import LabelsAssessed
from discriminant.study.telling import versions, write_text

_NOT_SAID = ("progress", "checkpoint", "threads", "random_state", "beam", "trees", "tree")


def label_page_facts(
    model: LabelTree,
    *,
    source: str,
    title: str | None = None,
    measured: LabelsAssessed | None = None,
    test: str = "",
    seconds: Mapping[str, float] | None = None,
    file: str = "",
    command: str | None = None,
) -> LabelPageFacts:
    """All that the page says.

    Parameters
    ----------
    source
        What the model was made from: the name of a file.
    measured, test
        How good it is, and on which file.
    seconds
        What took how long.
    file
        The name of the file of the model, for those who use it.
    """
    summary = model.summary()
    kind = model.tree if isinstance(model.tree, str) else "given"
    found = None if measured is None else measured_section(test, measured.to_dict())
    made = Made(version=versions(), date=date.today().isoformat(), seed=_seed(model))
    if command:
        made["command"] = command
    facts = label_facts(
        title or f"{Path(source).name}: {len(model.classes_):,} labels",
        made=made,
        read=labels_read(source, summary, getattr(model, "label_rows_", None), model.classes_),
        tree=tree_section(summary, kind=kind, options=_options(model)),
        measured=found,
        seconds=seconds or {},
        use=_use(file) if file else None,
    )
    return cast(LabelPageFacts, redact_facts(facts))


def write_label_page(path: Path, facts: LabelPageFacts) -> None:
    """The page, whole or not at all."""
    from discriminant.report.label_page import render_labels

    write_text(path, render_labels(facts))


def _seed(model: LabelTree) -> int | None:
    return model.random_state if isinstance(model.random_state, int) else None


def _options(model: LabelTree) -> dict[str, object]:
    """Those that are not as they come."""
    plain = LabelTree().get_params()
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _NOT_SAID and value != plain[name]
    }


def _use(file: str) -> UseFacts | None:
    lines = [
        "import discriminant as dd",
        "",
        f"model = dd.load({file!r})",
        'rows = dd.read_xmc("new.txt").features         # or any sparse matrix',
        "codes, scores = model.predict_topk(rows, k=5)  # best first; -1 where there are no more",
        "model.classes_[codes[0]]                       # the labels of the first row",
    ]
    command = f"discriminant predict {_quoted(file)} new.txt --top 5 --out labels.csv"
    return use_section(file=file, python="\n".join(lines), command=command)


def _quoted(file: str) -> str:
    import shlex

    return shlex.quote(file)
