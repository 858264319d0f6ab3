"""Section 6: how to use the model that was saved."""

from __future__ import annotations

from discriminant.report.facts import UseFacts


def use_section(
    *, file: str = "", python: str = "", sql: str = "", command: str = ""
) -> UseFacts | None:
    """File, code and command, those that there are; without Python code, what loads the file."""
    if file and not python:
        python = (
            "import discriminant as dd\n\n"
            f"model = dd.load({file!r})\n"
            "model.predict(rows)          # the class of each row\n"
            "model.predict_proba(rows)    # and how probable every class is"
        )
    parts = {"file": file, "python": python, "sql": sql, "command": command}
    found = {name: text for name, text in parts.items() if text}
    return UseFacts(**found) if found else None  # type: ignore[typeddict-item]
