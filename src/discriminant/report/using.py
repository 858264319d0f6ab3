"""Section 6: how to use the model that was saved."""

from __future__ import annotations

from discriminant.report.facts import UseFacts


def use_section(
    *, file: str = "", python: str = "", sql: str = "", command: str = ""
) -> UseFacts | None:
    """File, code and command, those that there are; without Python code, what loads the file."""
    if file and not python:
        python = python_code(file)
    parts = {"file": file, "python": python, "sql": sql, "command": command}
    found = {name: text for name, text in parts.items() if text}
    return UseFacts(**found) if found else None  # type: ignore[typeddict-item]


def python_code(file: str, *, decides: bool = False, likeliest: object = "") -> str:
    """What loads the file and asks the model.

    Parameters
    ----------
    decides
        Whether it has costs or a reject option.
    likeliest
        A label, to list the rows that are most likely of this class; '': none. None where the
        model gives no probabilities.
    """
    lines = ["import discriminant as dd", "", f"model = dd.load({file!r})"]
    if decides:
        lines.append("model.decide(rows)           # what to do: a class, or passing the row on")
    lines.append("model.predict(rows)          # the class of each row")
    if likeliest is not None:
        lines.append("model.predict_proba(rows)    # and how probable every class is")
    if likeliest not in (None, ""):
        lines += [
            "",
            f"place = model.classes_.tolist().index({likeliest!r})",
            "order = model.predict_proba(rows)[:, place].argsort()[::-1]",
            f"order[:20]                   # places of the 20 rows most likely {likeliest!r}",
        ]
    return "\n".join(lines)
