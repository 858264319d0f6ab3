"""predict, assess and export: what is done with a saved model."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from discriminant import store
from discriminant.assessment.evaluate import as_known, evaluate, evaluate_source
from discriminant.cli.label_tree import is_of_sparse_rows, say_first
from discriminant.cli.options import (
    CSV_STYLE,
    one_or_all,
    parse_costs,
    reject_inapplicable,
    source_arguments,
    split_names,
)
from discriminant.cli.session import DONE, Session
from discriminant.cli.study_commands import check_places, decided_as
from discriminant.errors import CommandError, TargetError
from discriminant.estimators.meta.decision import Decision
from discriminant.export import export as exported
from discriminant.report.format import counted
from discriminant.study.predict import PredictedRows, ProgressRate, encoding_of, predict_file
from discriminant.study.sources import is_partitioned, open_partitions, resolve_database
from discriminant.table.column_types import Wishes
from discriminant.table.encoding import Encoding
from discriminant.table.files.csv_dialect import MISSING as MISSING_TEXTS
from discriminant.table.labels import label_codes
from discriminant.table.open import read_frame
from discriminant.table.partitioned import reading_as

_OFTEN = 1_000_000  # rows


def predict(session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """File to file, or a table to a file."""
    out = options["out"]
    if out == "-":
        return _to_stdout(session, path, source, options)
    check_places(source, out)
    check_places(path, out)
    done = _predicted(session, path, source, out, options)
    found = {"rows": done.rows, "counts": done.counts, "columns": list(done.columns)}
    session.result(found, _counted(done), written={"answers": out})
    return DONE


def _to_stdout(
    session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]
) -> int:
    """A CSV and nothing else on stdout, once all rows are answered."""
    if session.as_json:
        raise CommandError("--out - writes the rows to stdout, and so does --json: leave one out.")
    with TemporaryDirectory() as folder:
        place = os.path.join(folder, "answers.csv")
        done = _predicted(session, path, source, place, options)
        with open(place, encoding="utf-8", newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    session.log(_counted(done))
    return DONE


def _counted(done: PredictedRows) -> str:
    most = Counter(done.counts).most_common(20)
    lines = [f"  {name}: {counted(n, 'row')}" for name, n in most]
    return "\n".join([f"{counted(done.rows, 'row')}:", *lines])


def _predicted(
    session: Session, path: str, source: tuple[str, ...], out: str, options: dict[str, Any]
) -> PredictedRows:
    model, _ = loaded(path, options)
    reject_inapplicable("sparse rows" if is_of_sparse_rows(model) else "table")
    if not hasattr(model, "predict_topk"):
        reject_inapplicable("no label tree")
    if out.endswith((".parquet", ".arrow", ".feather")):
        reject_inapplicable("binary output")
    _choose(model, unseen=options["unseen"], texts=options["missing_text"])
    say_first(model, source, options)
    session.log("reading and deciding ...")
    with session.progress() as show:
        return predict_file(
            model,
            resolve_database(one_or_all(source), options["table"], options["query"]),
            out,
            prefix=options["prefix"],
            probabilities=not options["no_probabilities"],
            safe=not options["raw_csv"],
            k=options["top"],
            progress=_showing(session, show),
            **{name: options[name] for name in CSV_STYLE},
        )


def _choose(model: Any, *, unseen: str | None, texts: tuple[str, ...]) -> None:
    """Other policies than those of the fit, where they can still be chosen."""
    while model is not None and not hasattr(model, "encoding_"):
        model = getattr(model, "estimator_", None)
    if model is None:
        reject_inapplicable("no encoding")
        return
    encoding = model.encoding_
    if unseen is not None:
        encoding = replace(encoding, unseen=unseen)
    if texts:
        before = encoding.missing_texts
        known = ("", *sorted(MISSING_TEXTS)) if before is None else before
        encoding = replace(encoding, missing_texts=tuple(dict.fromkeys((*known, *texts))))
    model.encoding_ = encoding


def _showing(session: Session, show: Callable[[str, int, int], None]) -> Callable[[int, int], None]:
    """A bar on a terminal; elsewhere a line for every million rows."""
    told = [0]

    def shown(rows: int, of: int) -> None:
        if sys.stderr.isatty():
            show(f"{rows:,} rows", rows, of)
        elif rows // _OFTEN > told[0]:
            told[0] = rows // _OFTEN
            session.log(f"{rows:,} rows" + (f" of {of:,}" if of else ""))

    return shown


def assess(session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """On rows of known classes."""
    model, encoding = loaded(path, options)
    reject_inapplicable("sparse rows" if is_of_sparse_rows(model) else "table")
    say_first(model, source, options)
    if is_of_sparse_rows(model):
        from discriminant.cli.label_tree import assess as assess_labels

        return assess_labels(session, model, path, source, options)
    if encoding is None:
        raise CommandError.needs_columns(path, type(model).__name__)
    target = options["target"] or encoding.target
    if target is None:
        raise TargetError.no_column("--target", [], None, what="target")
    given, place = one_or_all(source), source_arguments(options)
    if is_partitioned(given, **place):
        return _assessed(session, model, encoding, given, target, place, options)
    session.log("reading ...")
    frame, _ = read_frame(given, encoding=encoding, target=target)
    labels, codes = label_codes(frame[target])
    truth = as_known(labels, model.classes_)[codes]
    found = evaluate(model, frame, truth, unseen=options["unknown"])
    session.result({"rows": len(frame), **found.to_dict()}, str(found))
    return DONE


def _assessed(
    session: Session,
    model: Any,
    encoding: Encoding,
    given: Any,
    target: str,
    place: dict[str, Any],
    options: dict[str, Any],
) -> int:
    """Rows in parts: one pass, and only sums come back."""
    with session.progress() as shown:
        pace = ProgressRate(shown)
        pace("reading", 0, 1)
        source = open_partitions(given, progress=pace.rows, **place)
        wishes = Wishes(target, missing_texts=encoding.missing_texts)
        found = evaluate_source(
            model, reading_as(source, wishes, encoding), target=target, unseen=options["unknown"]
        )
    area = found.auc
    more = {} if area is None else {"auc": area.to_dict()}
    text = str(found) if area is None else f"{found}\nAUC: {area.value:.4f}"
    session.result({"rows": int(found.rows.sum()), **found.to_dict(), **more}, text)
    return DONE


def export(session: Session, path: str, options: dict[str, Any]) -> int:
    """As SQL, ONNX or Python."""
    to, out = options["to"], options["out"]
    if out is not None:
        check_places(path, out)
    if to == "onnx" and out is None:
        raise CommandError("ONNX is bytes, which a terminal cannot show. Name a file with --out.")
    model = store.load(path)
    if not hasattr(model, "predict"):
        raise CommandError.not_a_model(path, type(model).__name__)
    more: dict[str, Any] = {"outputs": split_names(options["outputs"])}
    if to == "sql":
        more |= {name: options[name] for name in ("table", "dialect", "keep")}
    else:
        reject_inapplicable("no SQL")
    made = exported(model, to, out, **more)
    if out is not None:
        size = len(made.encode() if isinstance(made, str) else made)
        session.result({"to": to, "bytes": size}, f"{size:,} bytes of {to}.", written={to: out})
    elif session.as_json:
        session.result({"to": to, "text": made}, "")
    else:
        print(made)
    return DONE


def loaded(path: str, options: dict[str, Any]) -> tuple[Any, Encoding]:
    """A model from a file, with other costs if any are asked for."""
    model = store.load(path)
    if not hasattr(model, "predict"):
        raise CommandError.not_a_model(path, type(model).__name__)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    if cost is not None or reject is not None:
        if is_of_sparse_rows(model):
            reject_inapplicable("sparse rows")
        inner = model.estimator_ if isinstance(model, Decision) else model
        model = decided_as(inner, path, cost, reject)
    found = encoding_of(model)
    if found is None and not hasattr(model, "predict_topk"):
        raise CommandError.needs_columns(path, type(model).__name__)
    return model, found
