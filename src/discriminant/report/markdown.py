"""Markdown report, for a notebook, an issue tracker or a terminal.

In names, every character that is markup in Markdown or HTML is escaped by a backslash, so that a
name can neither open a link or a tag nor break a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from discriminant.report.fact_types import (
    ComparisonFacts,
    DecisionFacts,
    Facts,
    MattersFacts,
    Provenance,
    ReadFacts,
    SpaceFacts,
    UseFacts,
)
from discriminant.report.format import (
    count_with_noun,
    duration,
    fixed,
    model_notes,
    number,
    p_value,
    percent,
    shown,
    whole,
)
from discriminant.report.overview import in_short
from discriminant.report.verdict import shown_comparison

_MARKUP = frozenset("\\`*_[]<>#!|&~$^@")
_MAX_ROWS = 30  # largest number of rows of a table


def to_markdown(facts: Facts) -> str:
    """Return the report as Markdown."""
    parts = [
        f"# {escape_name(facts['title'])}",
        *(escape_sentence(line) for line in in_short(facts)),
    ]
    parts += _read(facts["read"]) + _comparison(shown_comparison(facts))
    if "space" in facts:
        parts += _space(facts["space"])
    if "decision" in facts:
        parts += _decision(facts["decision"])
    if "matters" in facts:
        parts += _matters(facts["matters"])
    return join_parts(parts, facts["made"], facts.get("use"))


def join_parts(parts: list[str], provenance: Provenance, use: UseFacts | None) -> str:
    """Join the sections to one text; append how to use the model, and the provenance."""
    texts = [*parts, *([] if use is None else _use(use))]
    texts.append(f"Created by discriminant {escape_name(provenance['version'])}.")
    if "command" in provenance:
        texts.append(fenced(provenance["command"]))
    return "\n\n".join(part for part in texts if part) + "\n"


def markdown_to_text(markdown: str) -> str:
    """Convert Markdown written by this module to plain text with aligned tables.

    >>> print(markdown_to_text("| Step | p |\\n| --- | ---: |\\n| \\\\+ a\\\\_b | 0.5 |"))
    Step       p
    + a_b    0.5
    """
    lines: list[str] = []
    rows: list[list[str]] = []
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip()[1:-1])
            rows.append([_unescaped(cell.strip()) for cell in cells])
            continue
        if rows:
            head, _, *body = rows
            lines += _aligned([head, *body])
            rows = []
        if line.startswith("#"):
            title = _unescaped(line.lstrip("# "))
            lines += [title, "-" * len(title)]
        else:
            lines.append(_unescaped(line))
    return "\n".join(lines).strip()


def _aligned(rows: list[list[str]]) -> list[str]:
    """Return the lines of a table with names aligned left and numbers aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("   ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


def _unescaped(text: str) -> str:
    return re.sub(r"\\([^A-Za-z0-9\s])", r"\1", text)


def escape_name(name: object, longest: int = 60) -> str:
    """Return a name with all markup escaped.

    >>> escape_name("<b>|[x](y)")
    '\\\\<b\\\\>\\\\|\\\\[x\\\\](y)'
    """
    return _escaped(shown(name, longest))


def escape_sentence(text: object) -> str:
    """Return a sentence on one line with all markup escaped."""
    return _escaped(shown(" ".join(str(text).split()), 2000))


def _escaped(text: str) -> str:
    escaped = "".join("\\" + c if c in _MARKUP else c for c in text)
    return escaped.replace("://", ":\\/\\/").replace("www.", "www\\.")  # these would become links


def fenced(code: str, language: str = "") -> str:
    """Return code in a fence that is longer than any fence within the code."""
    longest, run = 2, 0
    for char in code:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    lines = "\n".join(shown(line, 2000) if line else "" for line in code.split("\n"))
    return f"{fence}{language}\n{lines}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column has names and whose other columns have numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    body = list(rows)
    text = "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *body[:_MAX_ROWS]])
    more = len(body) - _MAX_ROWS
    return text + (f"\n\nand {more} more." if more > 0 else "")


def _bullets(lines: Iterable[object]) -> str:
    return "\n".join(f"- {escape_sentence(line)}" for line in lines)


def _read(read: ReadFacts) -> list[str]:
    total = sum(row["weight"] for row in read["classes"]) or 1.0
    columns = [
        [
            escape_name(column["name"]),
            escape_name(column["kind"]),
            str(column["features"]),
            str(column["missing"]),
        ]
        for column in read["columns"]
    ]
    classes = [
        [
            escape_name(row["label"]),
            whole(row["rows"]),
            *([whole(row["weight"])] if read["weighted"] else []),
            percent(row["weight"] / total),
        ]
        for row in read["classes"]
    ]
    head = ["Class", "Rows", *(["Weight"] if read["weighted"] else []), "Share"]
    return [
        "## Data",
        f"{count_with_noun(read['rows'], 'row')} of {escape_name(read['source'], 90)}, "
        f"{count_with_noun(read['features'], 'feature')}.",
        "Shares here and below refer to weight, not to numbers of rows."
        if read["weighted"]
        else "",
        table(head, classes),
        _bullets([*read["said"], *read["warnings"]]),
        table(["Column", "Type", "Features", "Missing"], columns),
    ]


def _comparison(comparison: ComparisonFacts) -> list[str]:
    head = ["Model", "Error", "Interval", "AUC", "Log loss", "Brier", "Calibration", "Time"]
    rows = [
        [
            escape_name(model["label"]) + (" (selected)" if model["chosen"] else ""),
            percent(model["error"]),
            f"{percent(model['error_low'])} to {percent(model['error_high'])}",
            fixed(model["auc"], 3),
            fixed(model["log_loss"], 3),
            fixed(model["brier"], 3),
            percent(model["calibration"]),
            duration(model["seconds"]),
        ]
        for model in comparison["models"]
    ]
    notes = model_notes(comparison["models"])
    if "note" in comparison:
        notes.insert(0, comparison["note"])
    return [
        "## Model comparison",
        escape_sentence(comparison["why"]),
        escape_sentence(f"Evaluated on held-out rows: {comparison['folds']}."),
        table(head, rows),
        _bullets(notes),
    ]


def _space(space: SpaceFacts) -> list[str]:
    structure = space["structure"]
    loadings = [
        [escape_name(feature), *(fixed(value) for value in line)]
        for feature, line in zip(structure["features"], structure["loadings"], strict=True)
    ]
    directions = [
        [str(j + 1), fixed(row["correlation"], 3), percent(row["share"]), p_value(row["p"])]
        for j, row in enumerate(space["canonical"])
    ]
    tests = [
        [test["name"], number(test["value"], 4), number(test["f"]), p_value(test["p"])]
        for test in space["tests"]
    ]
    width = len(loadings[0]) if loadings else 1
    head = ["Feature", *(f"Direction {j}" for j in range(1, width))]
    return [
        "## Discriminant space",
        table(head, loadings) if loadings else "",
        table(["Direction", "Canonical correlation", "Share", "p"], directions),
        table(["Test of equal means", "Value", "F", "p"], tests) if tests else "",
        escape_sentence(space["calls_for"]) if space["calls_for"] else "",
        _bullets(space["notes"]),
    ]


def _decision(decision: DecisionFacts) -> list[str]:
    names = [*decision["actions"], "rejected"]
    rows = [
        [escape_name(names[a]), *(whole(cell) for cell in line)]
        for a, line in enumerate(decision["confusion"])
    ]
    classes = [
        [
            escape_name(row["label"]),
            whole(row["rows"]),
            percent(row["recall"]),
            percent(row["precision"]),
            fixed(row["auc"], 3),
        ]
        for row in decision["by_class"]
    ]
    wide = len(decision["labels"]) > _MAX_ROWS
    head = ["Decided, by true class", *(escape_name(label) for label in decision["labels"])]
    what, hundred, size = (
        ("the weight", "a weight of 100", "Weight")
        if decision["weighted"]
        else ("the rows", "100 rows", "Rows")
    )
    cost = f"Cost of {hundred}: {number(100 * (decision['mean_cost'] or 0.0))}."
    return [
        "## Decisions",
        *([decision["drawn"]] if "drawn" in decision else []),
        *([decision["repeated"]] if "repeated" in decision else []),
        f"Decided: {percent(decision['coverage'])} of {what}. "
        f"Wrong: {percent(decision['error'])} of {what} decided. {cost}",
        "" if wide else table(head, rows),
        table(["Class", size, "Recall", "Precision", "AUC"], classes),
    ]


def _matters(matters: MattersFacts) -> list[str]:
    parts = ["## What matters", _bullets(finding["text"] for finding in matters["findings"])]
    if "coefficients" in matters:
        coefficients = matters["coefficients"]
        rows = [
            [
                escape_name(row["feature"]),
                escape_name(row["of"] or ""),
                fixed(row["value"], 3),
                f"{fixed(row['low'], 3)} to {fixed(row['high'], 3)}",
            ]
            for row in coefficients["rows"]
        ]
        parts.append(escape_sentence(f"By {coefficients['title']}: the {coefficients['unit']}."))
        parts.append(table(["Feature", "Class", "Coefficient", "95% interval"], rows))
    if "stepwise" in matters:
        steps = [
            [
                ("\\+ " if step["entered"] else "\\- ")
                + escape_name(step["entered"] or step["removed"]),
                number(step["f"]),
                p_value(step["p"]),
                number(step["wilks"]),
            ]
            for step in matters["stepwise"]["steps"]
        ]
        parts.append(table(["Step", "Partial F", "p", "Wilks' lambda"], steps))
        later = matters["stepwise"]["left_out"]
        parts.append(f"{count_with_noun(later, 'later step')} left out." if later else "")
    return parts


def _use(use: UseFacts) -> list[str]:
    parts = ["## Using the model"]
    if "file" in use:
        parts.append(f"The model is in {escape_name(use['file'], 120)}.")
    languages = {"command": "sh", "python": "python", "sql": "sql"}
    return parts + [fenced(str(use[k]), v) for k, v in languages.items() if k in use]  # type: ignore[literal-required]
