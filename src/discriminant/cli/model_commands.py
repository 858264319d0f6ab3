"""Commands that use a saved model: predict, assess and export."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from discriminant import store
from discriminant.assessment.assessment import Assessment
from discriminant.assessment.evaluate import (
    encoding_of,
    evaluate,
    evaluate_source,
    match_spelling,
)
from discriminant.cli.label_tree import is_of_sparse_rows, set_first_feature
from discriminant.cli.options import (
    CSV_STYLE,
    one_or_all,
    parse_costs,
    reject_inapplicable,
    source_arguments,
    split_names,
)
from discriminant.cli.session import DONE, Session
from discriminant.cli.study_commands import check_outputs, with_decision
from discriminant.errors import CommandError, TargetError, capture_warnings
from discriminant.estimators.meta.decision import Decision
from discriminant.export import export as export_model
from discriminant.report.format import count_with_noun, number, percent
from discriminant.study.data_source import is_partitioned, open_partitions, resolve_database
from discriminant.study.predict import PredictedRows, check_suffix, predict_file
from discriminant.study.progress import ProgressRate
from discriminant.study.row_explanation import explain_rows
from discriminant.study.training_overlap import training_share
from discriminant.table.column_cells import encode_label_cells
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding
from discriminant.table.load import read_frame
from discriminant.table.partitioned_source import with_read_options

_TRAINING = 0.05  # share of training rows among assessed rows above which a warning is printed
_LOG_ROWS = 1_000_000  # rows between two lines of progress


def predict(session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Predict every row of a file or database table, and write the predictions to a file."""
    out = options["out"]
    if out == "-":
        return _to_stdout(session, path, source, options)
    check_suffix(out)
    check_outputs(source, out)
    check_outputs(path, out)
    done = _predict(session, path, source, out, options)
    facts = {"rows": done.rows, "counts": done.counts, "columns": list(done.columns)}
    session.result(facts, _class_counts(done), written={"predictions": out})
    return DONE


def _to_stdout(
    session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]
) -> int:
    """Print only the predictions to stdout, as CSV, after all rows are predicted."""
    if session.as_json:
        raise CommandError("--out - and --json both write to stdout: use only one of them.")
    with TemporaryDirectory() as folder:
        csv_file = os.path.join(folder, "predictions.csv")
        done = _predict(session, path, source, csv_file, options)
        with open(csv_file, encoding="utf-8", newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    session.log(_class_counts(done))
    return DONE


def _class_counts(done: PredictedRows) -> str:
    counts = Counter(done.counts).most_common(20)
    lines = [f"  {name}: {count_with_noun(n, 'row')}" for name, n in counts]
    return "\n".join([f"{count_with_noun(done.rows, 'row')}:", *lines])


def _predict(
    session: Session, path: str, source: tuple[str, ...], out: str, options: dict[str, Any]
) -> PredictedRows:
    model, _ = load_model(path, options)
    reject_inapplicable("sparse rows" if is_of_sparse_rows(model) else "table")
    if not hasattr(model, "predict_topk"):
        reject_inapplicable("no label tree")
    if out.endswith((".parquet", ".arrow", ".feather")):
        reject_inapplicable("binary output")
    _set_policies(model, unseen=options["unseen"], texts=options["missing_text"])
    set_first_feature(model, source, options)
    session.log("predicting ...")
    with session.progress() as show:
        return predict_file(
            model,
            resolve_database(one_or_all(source), options["table"], options["query"]),
            out,
            prefix=options["prefix"],
            probabilities=not options["no_probabilities"],
            safe=not options["raw_csv"],
            k=options["top"],
            progress=_row_progress(session, show),
            **{name: options[name] for name in CSV_STYLE},
        )


def _set_policies(model: Any, *, unseen: str | None, texts: tuple[str, ...]) -> None:
    """Replace the options of a fitted model for unseen categories and texts of missing cells."""
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
        known = ("",) if before is None else before
        encoding = replace(encoding, missing_texts=tuple(dict.fromkeys((*known, *texts))))
    model.encoding_ = encoding


def _row_progress(
    session: Session, show: Callable[[str, int, int], None]
) -> Callable[[int, int], None]:
    """Return a progress callback: a bar on a terminal, elsewhere one line per million rows."""
    logged = [0]

    def shown(rows: int, of: int) -> None:
        if sys.stderr.isatty():
            show(count_with_noun(rows, "row"), rows, of)
        elif rows // _LOG_ROWS > logged[0]:
            logged[0] = rows // _LOG_ROWS
            session.log(f"{rows:,} rows" + (f" of {of:,}" if of else ""))

    return shown


def assess(session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]) -> int:
    """Evaluate a model on labelled rows."""
    model, encoding = load_model(path, options)
    reject_inapplicable("sparse rows" if is_of_sparse_rows(model) else "table")
    set_first_feature(model, source, options)
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
        return _assess_partitions(session, model, encoding, given, target, place, options)
    session.log("reading ...")
    whole, _ = read_frame(given, encoding=encoding, target=target)
    frame = whole.drop_unlabelled(target)
    if len(frame) < len(whole):
        left_out = count_with_noun(len(whole) - len(frame), "row")
        session.warn(f"{left_out} of {len(whole):,} without a label cannot be assessed: left out.")
    labels, codes = encode_label_cells(frame[target])
    truth = match_spelling(labels, model.classes_)[codes]
    assessment = evaluate(model, frame, truth, unseen=options["unknown"])
    costs, cost_line = _mean_cost(model, assessment)
    facts = {"rows": len(frame), **assessment.to_dict(), **costs}
    share = _training_share(model, encoding, frame)
    if share is not None:
        facts["training_share"] = share
        if share > _TRAINING:
            session.warn(
                f"About {percent(share)} of these rows were used to fit the model, so the figures "
                "are better than for new rows. Assess the model on rows that it has not seen, or "
                "read the held-out figures of its report."
            )
    session.result(facts, f"{assessment}{cost_line}")
    return DONE


def _mean_cost(model: Any, assessment: Assessment) -> tuple[dict[str, float], str]:
    """Return the mean cost of a model with costs or a reject option, as a fact and as a line."""
    if not isinstance(model, Decision) or (model.cost is None and model.reject is None):
        return {}, ""
    equal = 1.0 - np.eye(len(model.classes_))
    cost = assessment.cost(equal if model.cost is None else model.cost, reject=model.reject)
    return {"mean_cost": cost}, f"\nMean cost of a decision: {number(cost)}"


def _training_share(model: Any, encoding: Encoding, frame: Any) -> float | None:
    """Return the share of these rows that were used to fit the model; None if it is not known."""
    inner = model.estimator_ if isinstance(model, Decision) else model
    sketch = getattr(inner, "training_rows_", None)
    if sketch is None:
        return None
    with capture_warnings():
        return training_share(sketch, encoding.encode_rows(frame).features)


def _assess_partitions(
    session: Session,
    model: Any,
    encoding: Encoding,
    given: Any,
    target: str,
    place: dict[str, Any],
    options: dict[str, Any],
) -> int:
    """Evaluate a model on a partitioned table in one pass, which returns only sums."""
    with session.progress() as shown:
        rate = ProgressRate(shown)
        rate("reading", 0, 1)
        source = open_partitions(given, progress=rate.rows, **place)
        assessment = evaluate_source(
            model,
            with_read_options(
                source, ReadOptions(target, missing_texts=encoding.missing_texts), encoding
            ),
            target=target,
            unseen=options["unknown"],
        )
    area = assessment.auc
    more = {} if area is None else {"auc": area.to_dict()}
    text = str(assessment) if area is None else f"{assessment}\nAUC: {area.value:.4f}"
    costs, cost_line = _mean_cost(model, assessment)
    facts = {"rows": int(assessment.rows.sum()), **assessment.to_dict(), **more, **costs}
    session.result(facts, f"{text}{cost_line}")
    return DONE


def explain_row(
    session: Session, path: str, source: tuple[str, ...], options: dict[str, Any]
) -> int:
    """Explain the predictions for the first rows of a file."""
    model, encoding = load_model(path, options)
    if encoding is None:
        raise CommandError.needs_columns(path, type(model).__name__)
    frame, _ = read_frame(one_or_all(source), encoding=encoding)
    explanation = explain_rows(model, frame, encoding, most=options["rows"])
    session.result(explanation.to_dict(), str(explanation))
    return DONE


def export(session: Session, path: str, options: dict[str, Any]) -> int:
    """Export a model as SQL, ONNX, Python or JavaScript."""
    to, out = options["to"], options["out"]
    if out is not None:
        check_outputs(path, out)
    if to == "onnx" and out is None:
        raise CommandError("ONNX is a binary format and cannot be printed. Name a file with --out.")
    model = store.load(path)
    if not hasattr(model, "predict"):
        raise CommandError.not_a_model(path, type(model).__name__)
    arguments: dict[str, Any] = {"outputs": split_names(options["outputs"])}
    if to == "sql":
        arguments |= {name: options[name] for name in ("table", "dialect", "keep")}
    else:
        reject_inapplicable("no SQL")
    exported = export_model(model, to, out, **arguments)
    if out is not None:
        size = len(exported.encode() if isinstance(exported, str) else exported)
        session.result({"to": to, "bytes": size}, f"{size:,} bytes of {to}.", written={to: out})
    elif session.as_json:
        session.result({"to": to, "text": exported}, "")
    else:
        print(exported)
    return DONE


def load_model(path: str, options: dict[str, Any]) -> tuple[Any, Encoding]:
    """Load a model and its encoding; apply the costs of the command line, if any, to the model."""
    model = store.load(path)
    if not hasattr(model, "predict"):
        raise CommandError.not_a_model(path, type(model).__name__)
    cost, reject = parse_costs(options["cost"]), options["reject"]
    if cost is not None or reject is not None:
        if is_of_sparse_rows(model):
            reject_inapplicable("sparse rows")
        inner = model.estimator_ if isinstance(model, Decision) else model
        model = with_decision(inner, path, cost, reject)
    encoding = encoding_of(model)
    if encoding is None and not hasattr(model, "predict_topk"):
        raise CommandError.needs_columns(path, type(model).__name__)
    return model, encoding
