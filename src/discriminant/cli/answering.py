"""predict, assess and export: what is done with a saved model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from discriminant import store
from discriminant.assessment.evaluation import evaluate
from discriminant.cli.door import DONE, Session
from discriminant.cli.options import costs
from discriminant.cli.sheets import Sheet
from discriminant.cli.studying import check_places, decided_as
from discriminant.errors import CommandError, LabelError, TargetError
from discriminant.export import export as exported
from discriminant.report.words import counted
from discriminant.table.encoding import Encoding
from discriminant.table.opening import read_frame


def predict(session: Session, path: str, source: str, options: dict[str, Any]) -> int:
    """File to file."""
    out = options["out"]
    check_places(source, out)
    check_places(path, out)
    model, encoding = loaded(path, options)
    session.say("reading ...")
    frame, format = read_frame(source, encoding=encoding)
    session.say(f"deciding about {len(frame):,} rows ...")
    added = _answers(model, frame, options)
    sheet = Sheet(frame, format, safe=not options["raw_csv"])
    clash = [name for name in added if name in sheet.names]
    if clash:
        raise CommandError.taken_column(source, clash)
    sheet.write(Path(out), added)
    counts = Counter(added[f"{options['prefix']}{'decision' if _decides(model) else 'predicted'}"])
    found = {"rows": len(frame), "counts": dict(counts), "columns": list(added)}
    lines = [f"  {name}: {counted(n, 'row')}" for name, n in counts.most_common(20)]
    text = "\n".join([f"{counted(len(frame), 'row')}:", *lines])
    session.tell(found, text, written={"answers": out})
    return DONE


def _answers(model: Any, frame: Any, options: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns to add: class, decision, probabilities."""
    prefix = options["prefix"]
    found: dict[str, list[Any]] = {f"{prefix}predicted": [str(v) for v in model.predict(frame)]}
    if _decides(model):
        found[f"{prefix}decision"] = [str(v) for v in model.decide(frame)]
    if hasattr(model, "predict_proba") and not options["no_probabilities"]:
        p = np.asarray(model.predict_proba(frame))
        for k, label in enumerate(model.classes_.tolist()):
            found[f"{prefix}p({label})"] = p[:, k].tolist()
    return found


def _decides(model: Any) -> bool:
    """Whether it may decide for something else than the most probable class."""
    costly = any(getattr(model, name, None) is not None for name in ("cost", "reject", "outlier"))
    rejects = encoding_of(model).unseen == "reject"
    return costly or rejects


def assess(session: Session, path: str, source: str, options: dict[str, Any]) -> int:
    """On rows of known classes."""
    model, encoding = loaded(path, options)
    target = options["target"] or encoding.target
    if target is None:
        raise TargetError.no_column("--target", [], None, what="target")
    session.say("reading ...")
    frame, _ = read_frame(source, encoding=encoding, target=target)
    cells = frame[target].as_text()
    if cells.gaps:
        raise LabelError.missing(np.flatnonzero(cells.missing).tolist())
    truth = np.asarray(cells.levels, dtype=object)[cells.values]
    own = {str(label): label for label in model.classes_.tolist()}
    truth = np.array([own.get(label, label) for label in truth.tolist()])
    found = evaluate(model, frame, truth, unseen=options["unknown"])
    session.tell({"rows": len(frame), **found.to_dict()}, str(found))
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
    more = {"table": options["table"], "dialect": options["dialect"]} if to == "sql" else {}
    made = exported(model, to, out, **more)
    if out is not None:
        size = len(made.encode() if isinstance(made, str) else made)
        session.tell({"to": to, "bytes": size}, f"{size:,} bytes of {to}.", written={to: out})
    elif session.as_json:
        session.tell({"to": to, "text": made}, "")
    else:
        print(made)
    return DONE


def loaded(path: str, options: dict[str, Any]) -> tuple[Any, Encoding]:
    """A model from a file, with other costs if any are asked for."""
    model = store.load(path)
    if not hasattr(model, "predict"):
        raise CommandError.not_a_model(path, type(model).__name__)
    cost, reject = costs(options["cost"]), options["reject"]
    if cost is not None or reject is not None:
        inner = model.estimator_ if hasattr(model, "cost") else model
        model = decided_as(inner, path, cost, reject)
    found = encoding_of(model)
    if found is None:
        raise CommandError.needs_columns(path, type(model).__name__)
    return model, found


def encoding_of(model: Any) -> Any:
    """What the model knows of columns, however deep inside; None if nothing."""
    while model is not None:
        if hasattr(model, "encoding_"):
            return model.encoding_
        model = getattr(model, "estimator_", None)
    return None
