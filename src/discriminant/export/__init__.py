"""Fitted models as SQL, ONNX or plain Python; nothing of this package is needed to run them."""

from __future__ import annotations

from typing import Any

TARGETS = ("sql", "onnx", "python")


def export(model: Any, to: str, path: Any = None, **options: Any) -> str | bytes:
    """A fitted model in another language.

    Parameters
    ----------
    model
        A fitted model of this package; `Encoded`, `Decision` and the like may stand around it.
    to
        'sql': one SELECT for DuckDB, PostgreSQL or SQLite; see `export.sql.to_sql`.
        'onnx': the bytes of a graph in double precision; see `export.onnx.to_onnx`.
        'python': the text of a file that needs nothing but Python; see `export.python.to_python`.
    path
        Where to write it as well: whole, or not at all.
    options
        For 'sql': table, dialect, keep. For 'onnx': inputs. For all: outputs, some of 'score',
        'log_odds', 'log_p', 'p', 'label', 'cost', 'action', 'value'.

    Examples
    --------
    >>> from discriminant import LDA
    >>> model = LDA().fit([[0.0], [1.0], [4.0], [5.0]], list("aabb"))
    >>> scope = {}
    >>> exec(export(model, "python", outputs=["label"]), scope)
    >>> scope["predict"]({"x0": 4.4})
    'b'
    """
    made = _made(model, to, options)
    if path is not None:
        from discriminant.table.files.atomic import atomic_write_bytes

        atomic_write_bytes(path, made.encode() if isinstance(made, str) else made)
    return made


def _made(model: Any, to: str, options: dict[str, Any]) -> str | bytes:
    from discriminant.errors.foreign_options import named_options

    if to == "sql":
        from discriminant.export.sql import to_sql

        return named_options(to_sql)(model, **options)
    if to == "onnx":
        from discriminant.export.onnx import to_onnx

        _check_onnx()
        return named_options(to_onnx)(model, **options)
    if to == "python":
        from discriminant.export.python import to_python

        return named_options(to_python)(model, **options)
    from discriminant.errors import ExportError

    raise ExportError.of_target(to, TARGETS)


def _check_onnx() -> None:
    from importlib import import_module

    from discriminant.errors import LibraryMissingError

    try:
        import_module("onnx")
    except ImportError:
        raise LibraryMissingError.of("onnx", what="An ONNX file", extra="onnx") from None
