"""Export of fitted models to SQL, ONNX, Python or JavaScript, which run without this package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

TARGETS = ("sql", "onnx", "python", "javascript")


def export(model: Any, to: str, path: Any = None, **options: Any) -> str | bytes:
    """Export a fitted model to another language.

    Parameters
    ----------
    model : estimator
        A fitted model of this package, also inside `Encoded`, `Decision` and other wrappers.
    to : {'sql', 'onnx', 'python', 'javascript'}
        Target language: 'sql' returns one SELECT for DuckDB, PostgreSQL or SQLite, see
        `export.sql.to_sql`; 'onnx' the bytes of a graph in double precision, see
        `export.onnx.to_onnx`; 'python' the text of a file that needs only Python, see
        `export.python.to_python`; 'javascript' the text of an ES module for browsers and Node.js,
        see `export.javascript.to_javascript`.
    path : path-like, optional
        File to which the result is also written, atomically.
    **options
        `table` (default 'rows'), `dialect` and `keep` for 'sql'; `inputs` for 'onnx'; `outputs` for
        all, any of 'score', 'log_odds', 'log_p', 'p', 'label', 'cost', 'action', 'value'.

    Returns
    -------
    str or bytes
        The text, or for 'onnx' the bytes, of the exported model.

    Examples
    --------
    >>> from discriminant import LDA
    >>> model = LDA().fit([[0.0], [1.0], [4.0], [5.0]], list("aabb"))
    >>> scope = {}
    >>> exec(export(model, "python", outputs=["label"]), scope)
    >>> scope["predict"]({"x0": 4.4})
    'b'
    """
    from discriminant.errors import ExportError, LibraryMissingError
    from discriminant.errors.foreign_options import named_options

    if to not in TARGETS:
        raise ExportError.of_target(to, TARGETS)
    if to == "onnx":
        try:
            import_module("onnx")
        except ImportError:
            raise LibraryMissingError.of("onnx", what="An ONNX file", extra="onnx") from None
    if to == "sql":
        options = {"table": "rows", **options}
    write = getattr(import_module(f"discriminant.export.{to}"), f"to_{to}")
    exported: str | bytes = named_options(write)(model, **options)
    if path is not None:
        from discriminant.table.files.atomic import atomic_write_bytes

        atomic_write_bytes(path, exported.encode() if isinstance(exported, str) else exported)
    return exported
