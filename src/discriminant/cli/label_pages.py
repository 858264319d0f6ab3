"""report and assess of label trees: files of sparse rows with label sets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from discriminant import store
from discriminant.cli.door import DONE, Session
from discriminant.cli.label_trees import setting, trained
from discriminant.cli.options import one_or_all
from discriminant.cli.studying import check_places, stem_of
from discriminant.cli.unused import refuse_unused
from discriminant.estimators.label_tree import LabelTree
from discriminant.report.facts import to_json
from discriminant.report.label_markdown import labels_to_markdown
from discriminant.study.label_assessing import LabelsAssessed, assessed_labels
from discriminant.study.label_files import check_widths, one_file
from discriminant.study.label_report import label_page_facts, write_label_page
from discriminant.study.pace import Pace
from discriminant.study.telling import write_text


def report(session: Session, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Train on a file, measure on another if there is one, and write what was found."""
    refuse_unused("sparse rows", *(["no test file"] if options["test"] is None else []))
    if options["no_model"]:
        refuse_unused("no model file")
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
        session.tell(measured.to_dict(), str(measured))
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
        pace = Pace(shown)
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
    session.say("writing ...")
    write_label_page(page, facts)
    if "facts" in written:
        write_text(Path(written["facts"]), to_json(facts))
    if "markdown" in written:
        write_text(Path(written["markdown"]), labels_to_markdown(facts))
    lines = [str(model.summary()), *([] if measured is None else [str(measured)])]
    told = {name: part for name, part in facts.items() if name not in ("made", "use", "title")}
    session.tell(told, "\n\n".join([*lines, ""]), written={"page": page, **written})
    return DONE
