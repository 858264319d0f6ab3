"""Section 6 of the report: how to use the saved model."""

from __future__ import annotations

from discriminant.report.fact_types import UseFacts


def use_section(
    *, file: str = "", python: str = "", sql: str = "", command: str = ""
) -> UseFacts | None:
    """Return the file of the model, and the code and the command that use it, if they are given.

    By default the code is Python code that loads the file.
    """
    if file and not python:
        python = python_code(file)
    parts = {"file": file, "python": python, "sql": sql, "command": command}
    present = {name: text for name, text in parts.items() if text}
    return UseFacts(**present) if present else None  # type: ignore[typeddict-item]


def python_code(file: str, *, decides: bool = False, likeliest: object = "") -> str:
    """Return Python code that loads the model and predicts.

    Parameters
    ----------
    decides
        Whether the model has costs or a reject option.
    likeliest
        Label whose most probable rows the code lists (default: no list); None if the model gives no
        probabilities.
    """
    lines = [
        "import discriminant as dd",
        "import pandas as pd",
        "",
        f"model = dd.load({file!r})",
        'rows = pd.read_csv("new.csv") # a data frame with the columns of the table, in any order',
    ]
    if decides:
        lines.append("model.decide(rows)           # least-cost action: a class, or reject")
    lines.append("model.predict(rows)          # predicted class of each row")
    if likeliest is not None:
        lines.append("model.predict_proba(rows)    # class probabilities")
    if likeliest not in (None, ""):
        lines += [
            "",
            f"column = model.classes_.tolist().index({likeliest!r})",
            "order = model.predict_proba(rows)[:, column].argsort()[::-1]",
            f"order[:20]                   # the 20 rows most likely to be {likeliest!r}",
        ]
    return "\n".join(lines)
