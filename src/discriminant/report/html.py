"""HTML report: one self-contained page without network access, fonts or libraries.

The page contains one style sheet and one script. Its content security policy allows these two by
their hashes, and nothing else:

    default-src 'none'; style-src 'sha256-...'; script-src 'sha256-...'; img-src data:

With this policy, the browser does not run a script injected through a name. Names are escaped in
any case: by the templates (autoescape; a missing fact is an error), by `svg.element`, and
in the JSON for the script, where every `<` is written as \\u003c.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from discriminant import catalog
from discriminant.assessment.intervals import wilson
from discriminant.assessment.printed_results import format_bytes
from discriminant.report import format, svg
from discriminant.report.fact_types import (
    CheckFacts,
    Facts,
    FindingFacts,
    ModelFacts,
    SpaceFacts,
    UnequalCostFacts,
    plain,
)
from discriminant.report.format import model_notes
from discriminant.report.overview import result, tiles
from discriminant.report.svg import (
    draw_calibration,
    draw_card,
    draw_coefficients,
    draw_coverage,
    draw_intervals,
    draw_learning_curve,
    draw_recalls,
    draw_roc,
    draw_space,
    draw_strip,
    draw_surface,
    shows_baseline,
)
from discriminant.report.verdict import (
    SHORT_RULES,
    baseline_log_loss,
    guess_cost,
    other_reasons,
    selected,
    shown_comparison,
    verdict_of,
    warning_checks,
)

_NOTES = 5  # largest number of notes of the data checks on the first screen
_SENTENCE = 2000  # largest number of characters of a sentence
_ENDS_SCRIPT = re.compile(r"</?script|<!--", re.IGNORECASE)
_TESTS = {
    "Wilks": "Wilks' lambda",
    "Pillai": "Pillai's trace",
    "Hotelling-Lawley": "Hotelling–Lawley trace",
    "Roy": "Roy's root",
}


def render(facts: Facts) -> str:
    """Return the page.

    Parameters
    ----------
    facts : Facts
        Result of `fact_types.facts`, also after a round trip through JSON.

    Returns
    -------
    str
        A complete HTML document.
    """
    facts = Facts(**{**facts, "comparison": shown_comparison(facts)})
    codes = {row["label"]: k for k, row in enumerate(facts["read"]["classes"])}
    return framed(
        "template.html",
        facts,
        kicker="Classification report",
        embedded=embedded(facts),
        model_script=_model_script(facts),
        figures=_figures(facts, codes),
        codes=codes,
        verdict=facts.get("verdict") or verdict_of(facts),
        warnings=warning_checks(facts),
        check_notes=_check_notes(facts),
        other_reasons=other_reasons(facts),
        findings=_first_findings(facts),
        in_short=result(facts),
        tiles=tiles(facts),
        short_rules=SHORT_RULES,
        guess_loss=baseline_log_loss(facts),
        notes=model_notes(facts["comparison"]["models"]),
        tests=_TESTS,
        used=lambda text, *terms: [term for term in terms if term in text],
        models=_models(facts),
        meanings=dict(_models(facts)),
        rarest=_class_to_collect(facts),
        least_squares=selected(facts)["name"] == "least_squares",
        shows_baseline=shows_baseline(facts["comparison"]),
    )


def _check_notes(facts: Facts) -> list[CheckFacts]:
    """Return the notes of the data checks that the top of the page shows."""
    return [check for check in facts.get("checks", []) if check["severity"] == "note"][:_NOTES]


def _first_findings(facts: Facts) -> list[FindingFacts]:
    """Return the findings for the top of the page, without those that data checks also report."""
    kinds = {check["kind"] for check in [*warning_checks(facts), *_check_notes(facts)]}
    findings = facts["matters"]["findings"] if "matters" in facts else []
    kinds.add("warning")  # of a single compared model: in the section on what matters
    return [finding for finding in findings if finding["kind"] not in kinds]


def framed(template: str, facts: Any, *, embedded: str, model_script: str = "", **more: Any) -> str:
    """Render a template with the style sheet, the scripts and the content security policy."""
    style, script = asset("style.css"), asset("script.js")
    page: str = _template(template).render(
        facts=facts,
        style=svg.Svg(style),
        script=svg.Svg(script),
        policy=policy(style, *filter(None, [model_script, script])),
        embedded=svg.Svg(embedded),
        model_script=svg.Svg(model_script),
        symbols=svg.symbols(),
        explained=_explained(),
        next_section=count(1).__next__,
        **more,
    )
    return page


def asset(name: str) -> str:
    """Return the text of a packaged asset."""
    return files("discriminant.report").joinpath("assets", name).read_text(encoding="utf-8")


def policy(style: str, *scripts: str) -> str:
    """Return the content security policy: only this style sheet and these scripts are allowed."""
    digests = " ".join(f"'{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {digests}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _model_script(facts: Facts) -> str:
    """Return the code of the model, or no code if it would end its script element."""
    code = facts["one_row"]["javascript"] if "one_row" in facts else ""
    return "" if _ENDS_SCRIPT.search(code) else code


def _one_row(one_row: dict[str, Any]) -> dict[str, Any]:
    return one_row | {
        "javascript": "",
        "classes": [format.shown(label) for label in one_row["classes"]],
        "fields": [
            field | {"title": format.shown(field["name"], 40)} for field in one_row["fields"]
        ],
    }


def embedded(facts: Facts) -> str:
    """Return the facts that the script needs, as JSON."""
    space, decision, one_row = facts.get("space"), facts.get("decision"), facts.get("one_row")
    content = {
        "space": None if space is None else _space(space),
        "cards": [
            {"name": format.shown(card["name"], 40), "bins": card["bins"], "counts": card["counts"]}
            | {"names": [svg.bin_name(card, b) for b in range(len(card["counts"][0]))]}
            for card in facts.get("columns", [])
        ],
        "strips": {
            f"{i}-{j}": {
                "name": format.shown(strip["feature"], 40),
                "bins": strip["bins"],
                "names": [svg.bin_name(strip, b) for b in range(len(strip["counts"][0]))],
                "codes": pair["codes"],
            }
            for i, pair in enumerate(facts["pairs"]["pairs"] if "pairs" in facts else [])
            for j, strip in enumerate(pair["strips"])
        },
        "decision": None if decision is None else _decision(dict(decision)),
        "one_row": None if one_row is None else _one_row(dict(one_row)),
        "use": facts.get("use"),
    }
    return as_script(content)


def _space(space: SpaceFacts) -> dict[str, Any]:
    left_out = ("structure", "canonical", "tests", "box_m", "notes", "bins")
    return {name: value for name, value in space.items() if name not in left_out} | {
        "labels": [format.shown(label) for label in space["labels"]],
        "shown": [format.shown(name, 32) for name in space["shown"]],
        "boundaries": format.shown(space["boundaries"]),
    }


def as_script(content: dict[str, Any]) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(plain(content), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _decision(decision: dict[str, Any]) -> dict[str, Any]:
    names = ("positive", "rows", "cost", "reject", "roc", "held", "confusion", "dials", "tie")
    actions, labels = decision["actions"], decision["labels"]
    return {name: decision[name] for name in names if name in decision} | {
        "actions": [format.shown(action) for action in actions],
        "labels": [format.shown(label) for label in labels],
        "own": [labels.index(action) if action in labels else -1 for action in actions],
    }


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _figures(facts: Facts, codes: dict[str, int]) -> dict[str, Any]:
    """Draw every figure whose facts are present."""
    comparison = facts["comparison"]
    figures: dict[str, Any] = {
        "intervals": draw_intervals(comparison, weighted=facts["read"]["weighted"])
    }
    if "surface" in comparison:
        figures["surface"] = draw_surface(comparison["surface"])
    if "space" in facts:
        figures["space"] = draw_space(facts["space"])
    if "pairs" in facts:
        figures["strips"] = [
            [draw_strip(strip, pair["codes"]) for strip in pair["strips"]]
            for pair in facts["pairs"]["pairs"]
        ]
    if "calibration" in facts:
        figures["calibration"] = draw_calibration(facts["calibration"])
    if "learning_curve" in comparison:
        figures["learning"] = draw_learning_curve(comparison["learning_curve"])
    if "columns" in facts:
        figures["cards"] = [draw_card(card) for card in facts["columns"]]
    if "decision" in facts:
        decision = facts["decision"]
        at = decision["coverage"], decision["error"]
        figures["recalls"] = draw_recalls(decision)
        figures["coverage"] = draw_coverage(decision["risk_coverage"], at)
        if "roc" in decision:
            figures["roc"] = draw_roc(decision["roc"])
    if "coefficients" in facts.get("matters", {}):
        figures["coefficients"] = draw_coefficients(facts["matters"]["coefficients"], codes)
    return figures


def _explained() -> Callable[..., list[tuple[str, str]]]:
    """Return a function that looks up terms and omits those that it has already returned."""
    definitions = json.loads(asset("terms.json"))
    defined: set[str] = set()

    def explained(*terms: str) -> list[tuple[str, str]]:
        new = [term for term in terms if term not in defined]
        defined.update(new)
        return [(term, definitions[term]) for term in new]

    return explained


def _class_to_collect(facts: Facts) -> dict[str, Any] | None:
    """Return the class with the lowest recall if it has fewer rows than the average class."""
    if "decision" not in facts:
        return None
    classes = [row for row in facts["decision"]["by_class"] if row["recall"] is not None]
    if len(classes) < 2:
        return None
    lowest = min(classes, key=lambda row: (float(row["recall"]), float(row["rows"])))
    average = sum(row["rows"] for row in classes) / len(classes)
    return lowest if lowest["rows"] < 0.8 * average else None


def _models(facts: Facts) -> list[tuple[str, str]]:
    """Return the descriptions of the models."""
    descriptions = {entry.title: entry.sentence for _, entry in catalog.CANDIDATES}
    labels = [model["label"] for model in facts["comparison"]["models"]]
    return [(label, descriptions[label]) for label in labels if label in descriptions]


def sentence(text: object) -> str:
    """Return a text as a single line without invisible characters."""
    return format.shown(" ".join(str(text).split()), _SENTENCE)


def code(text: object) -> str:
    """Return lines of code without invisible characters."""
    return "\n".join(
        format.shown(line, _SENTENCE) if line else "" for line in str(text).split("\n")
    )


_SYNTAX: dict[str, Any] = {  # options that change the code of a compiled template
    "autoescape": True,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
}


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(asset),
        undefined=StrictUndefined,
        bytecode_cache=_bytecode_cache(),
        **_SYNTAX,
    )
    environment.filters |= {
        "shown": format.shown,
        "sentence": sentence,
        "code": code,
        "percent": format.percent,
        "number": format.number,
        "axis_number": format.axis_number,
        "fixed": format.fixed,
        "loss": format.loss,
        "area": format.area,
        "first_sentence": first_sentence,
        "best_first": best_first,
        "after_first_sentence": lambda text: text.removeprefix(first_sentence(text)).strip(),
        "chance": format.p_value,
        "whole": format.whole,
        "duration": format.duration,
        "bytes": format_bytes,
        "colour": svg.colour,
        "shape": svg.shape,
        "shade": shade,
        "column_type": column_type,
        "column_sums": lambda table: [sum(column) for column in zip(*table, strict=True)],
        "share_of": lambda rate, rows: "–" if rate is None else format.share(rate * rows, rows),
        "wilson_interval": wilson_interval,
        "spaced": lambda values, most: range(0, len(values), max(1, len(values) // most)),
        "guess_cost": guess_cost,
        "saving": saving,
        "dearer": lambda rows: any(row["cost"] > row["cost_before"] * (1 + 1e-9) for row in rows),
        "after_level": after_level,
        "bin_name": svg.bin_name,
        "recall_axis_start": svg.recall_axis_start,
    }
    environment.globals["counted"] = format.count_with_noun
    environment.globals["visible_borders"] = svg.visible_borders
    return environment.get_template(name)


def _bytecode_cache() -> Any:
    """Return a cache of compiled templates on disk; None if there is no private folder for it.

    Compiling the templates takes longer than filling them in. Jinja compiles a template again if
    its text or the Python version has changed; the file names depend on its version and options.
    """
    from jinja2 import FileSystemBytecodeCache

    class BytecodeCache(FileSystemBytecodeCache):
        def load_bytecode(self, bucket: Any) -> None:
            try:
                super().load_bytecode(bucket)
            except Exception:  # a damaged file of any kind: compile the template again
                bucket.reset()

        def dump_bytecode(self, bucket: Any) -> None:
            with suppress(OSError):  # a full or read-only disk
                super().dump_bytecode(bucket)

    folder = _private_folder()
    if folder is None:
        return None
    compiler = repr((version("jinja2"), sorted(_SYNTAX.items())))
    digest = hashlib.sha256(compiler.encode()).hexdigest()[:16]
    return BytecodeCache(str(folder), f"{digest}-%s.cache")


def _private_folder() -> Path | None:
    """Return a cache folder that no other user can write to, because its content is run as code."""
    if not hasattr(os, "getuid"):  # on Windows, modes do not show who can write
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base).absolute() / "discriminant" / "templates"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
        return None
    private = status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if private else None


def best_first(models: Sequence[ModelFacts]) -> list[ModelFacts]:
    """Return the models sorted by log loss, then those without a log loss sorted by error.

    >>> rows = [{"log_loss": None, "error": 0.1}, {"log_loss": 0.3, "error": 0.2}]
    >>> [one["log_loss"] for one in best_first(rows)]
    [0.3, None]
    """

    def key(model: ModelFacts) -> tuple[bool, float, float]:
        log_loss = model["log_loss"]
        return log_loss is None, log_loss or 0.0, model["error"] or 0.0

    return sorted(models, key=key)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text.

    >>> first_sentence("Class b is rare: 0.1% of all rows. Look at recall.")
    'Class b is rare: 0.1% of all rows.'
    """
    return re.split(r"(?<=[.!?])\s+(?=[A-Z“])", text, maxsplit=1)[0]


def column_type(kind: str) -> str:
    """Return the type of a column as shown in the table of columns.

    >>> column_type("target"), column_type("number")
    ('target', 'number')
    """
    names = {"identifier": "excluded", "constant": "excluded", "dropped": "excluded"}
    return names.get(kind, format.shown(kind))


def wilson_interval(rate: float | None, rows: float) -> str:
    """Return Wilson's 95% interval of a rate.

    >>> wilson_interval(0.8, 10.0), wilson_interval(None, 0.0)
    ('49% to 94%', '–')
    """
    if rate is None:
        return "–"
    low, high = (float(end) for end in wilson((np.array(rate * rows), np.array(rows))))
    return f"{format.percent(low, 0)} to {format.percent(high, 0)}"


def saving(row: UnequalCostFacts) -> str:
    """Return whether decisions cost less than guessing, with the difference for 100 rows.

    >>> saving({"guess": 0.5, "cost": 0.3, "saved_low": 0.1, "saved_high": 0.3})
    'yes: 20.0 (10.0 to 30.0)'
    >>> saving({"guess": 0.5, "cost": 0.5, "saved_low": 0.0, "saved_high": 0.0})
    'no: 0'
    >>> saving({"guess": 0.5, "cost": 0.48, "saved_low": -0.02, "saved_high": 0.06})
    'not clearly: 2.00 (−2.00 to 6.00)'
    """
    saved = row["guess"] - row["cost"]
    low, high = row["saved_low"], row["saved_high"]
    difference = format.number(100 * saved if abs(saved) > 1e-12 else 0.0)
    if low is None or high is None:
        return f"{'yes' if saved > 0 else 'no'}: {difference}"
    if low == high == 0:
        return f"no: {difference}"
    clear = "yes" if low > 0 else "no" if saved <= 0 else "not clearly"
    return f"{clear}: {difference} ({format.number(100 * low)} to {format.number(100 * high)})"


def after_level(text: str) -> str:
    """Return the text of a verdict without its first words, which the page shows separately.

    >>> after_level("Use it with care, because x."), after_level("Use it. On held-out rows.")
    (', because x.', 'On held-out rows.')
    """
    for level in ("Use it with care", "Do not use it:", "Use it."):
        if text.startswith(level):
            return text.removeprefix(level).strip()
    return text


def shade(part: float, whole: float) -> str:
    """Return the CSS class for a share, in eleven steps.

    >>> shade(1, 4), shade(0, 0)
    ('w3', 'w0')
    """
    return f"w{min(int(10 * part / whole + 0.999), 10) if whole else 0}"
