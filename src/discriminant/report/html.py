"""The report as one self-contained HTML page: no network, no fonts, no library.

The page carries one style sheet and one script, both allowed by their hashes and nothing else:

    default-src 'none'; style-src 'sha256-...'; script-src 'sha256-...'; img-src data:

so that the browser would not run markup that a name smuggles in. Names cannot do that: templates
escape what they print (autoescape; a missing fact is an error), SVG is built by
`svg.elements.element`, and the script reads JSON with every `<` written as \\u003c.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from discriminant import catalog
from discriminant.assessment.inference.summary import format_bytes
from discriminant.report import format
from discriminant.report.fact_types import Facts, plain
from discriminant.report.format import model_notes
from discriminant.report.overview import in_short, selected, tiles
from discriminant.report.svg import elements
from discriminant.report.svg.charts import (
    draw_coefficients,
    draw_coverage,
    draw_intervals,
    draw_roc,
    draw_space,
    draw_surface,
    shows_baseline,
)

_SENTENCE = 2000  # characters of a sentence
_TESTS = {
    "Wilks": "Wilks' lambda",
    "Pillai": "Pillai's trace",
    "Hotelling-Lawley": "Hotelling–Lawley trace",
    "Roy": "Roy's root",
}


def render(facts: Facts) -> str:
    """The page.

    Parameters
    ----------
    facts
        What `report.facts.facts` returned, or the same read back from JSON.
    """
    return framed(
        "template.html",
        facts,
        kicker="Classification report",
        embedded=embedded(facts),
        figures=_figures(facts),
        codes={row["label"]: k for k, row in enumerate(facts["read"]["classes"])},
        in_short=in_short(facts),
        tiles=tiles(facts),
        notes=model_notes(facts["comparison"]["models"]),
        tests=_TESTS,
        used=_used(),
        models=_models(facts),
        least_squares=selected(facts)["name"] == "least_squares",
        shows_baseline=shows_baseline(facts["comparison"]),
    )


def framed(template: str, facts: Any, *, embedded: str, **more: Any) -> str:
    """Render a template with style sheet, script and content security policy."""
    style, script = asset("style.css"), asset("script.js")
    page: str = _template(template).render(
        facts=facts,
        style=elements.Svg(style),
        script=elements.Svg(script),
        policy=policy(style, script),
        embedded=elements.Svg(embedded),
        symbols=elements.symbols(),
        explained=_explained(),
        **more,
    )
    return page


def asset(name: str) -> str:
    """Return the text of a packaged asset."""
    return files("discriminant.report").joinpath("assets", name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return the content security policy: only this style sheet and this script are allowed."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def embedded(facts: Facts) -> str:
    """Return the facts that the script needs, as JSON."""
    space, decision = facts.get("space"), facts.get("decision")
    found = {
        "space": None
        if space is None
        else {
            "labels": [format.shown(label) for label in space["labels"]],
            "codes": [int(point[2]) for point in space["points"]],
            "shown": [format.shown(name, 32) for name in space["shown"]],
            "values": space["values"],
        },
        "decision": None if decision is None else _decision(dict(decision)),
        "use": facts.get("use"),
    }
    return as_script(found)


def as_script(found: dict[str, Any]) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(plain(found), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _decision(decision: dict[str, Any]) -> dict[str, Any]:
    wanted = ("positive", "rows", "cost", "reject", "roc", "held", "confusion", "dials", "tie")
    found = {name: decision[name] for name in wanted if name in decision}
    actions = [format.shown(action) for action in decision["actions"]]
    labels = [format.shown(label) for label in decision["labels"]]
    own = [
        decision["labels"].index(action) if action in decision["labels"] else -1
        for action in decision["actions"]
    ]
    return found | {"actions": actions, "labels": labels, "own": own}


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _figures(facts: Facts) -> dict[str, elements.Svg]:
    """Draw every figure for which there are facts."""
    comparison = facts["comparison"]
    found = {"intervals": draw_intervals(comparison, weighted=facts["read"]["weighted"])}
    if "surface" in comparison:
        found["surface"] = draw_surface(comparison["surface"])
    if "space" in facts:
        found["space"] = draw_space(facts["space"])
    if "decision" in facts:
        decision = facts["decision"]
        at = decision["coverage"], decision["error"]
        found["coverage"] = draw_coverage(decision["risk_coverage"], at)
        if "roc" in decision:
            found["roc"] = draw_roc(decision["roc"])
    if "coefficients" in facts.get("matters", {}):
        codes = {row["label"]: k for k, row in enumerate(facts["read"]["classes"])}
        found["coefficients"] = draw_coefficients(facts["matters"]["coefficients"], codes)
    return found


def _explained() -> Callable[..., list[tuple[str, str]]]:
    """Return a function that defines terms, each only once per page."""
    meanings = json.loads(asset("terms.json"))
    done: set[str] = set()

    def explained(*terms: str) -> list[tuple[str, str]]:
        fresh = [term for term in terms if term not in done]
        done.update(fresh)
        return [(term, meanings[term]) for term in fresh]

    return explained


def _used() -> Callable[..., list[str]]:
    """Return a function that selects the terms that occur in a text."""

    def used(text: str, *terms: str) -> list[str]:
        return [term for term in terms if term in text]

    return used


def _models(facts: Facts) -> list[tuple[str, str]]:
    """Return the descriptions of the models."""
    meanings = {one.title: one.sentence for _, one in catalog.CANDIDATES}
    labels = [model["label"] for model in facts["comparison"]["models"]]
    return [(label, meanings[label]) for label in labels if label in meanings]


def sentence(text: object) -> str:
    """Return a sentence on one line, without invisible characters."""
    return format.shown(" ".join(str(text).split()), _SENTENCE)


def code(text: object) -> str:
    """Return lines of code without invisible characters."""
    return "\n".join(
        format.shown(line, _SENTENCE) if line else "" for line in str(text).split("\n")
    )


@cache
def _template(name: str) -> Any:
    """Return a compiled template."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    found = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {
        "shown": format.shown,
        "sentence": sentence,
        "code": code,
        "percent": format.percent,
        "number": format.number,
        "fixed": format.fixed,
        "chance": format.p_value,
        "whole": format.whole,
        "duration": format.duration,
        "bytes": format_bytes,
        "colour": elements.colour,
        "shape": elements.shape,
        "shade": shade,
        "column_type": column_type,
    }
    found.globals["counted"] = format.count_with_noun
    return found.get_template(name)


def column_type(kind: str) -> str:
    """Return the type of a column for the table of columns.

    >>> column_type("target"), column_type("number")
    ('target', 'number')
    """
    names = {"identifier": "excluded", "constant": "excluded", "dropped": "excluded"}
    return names.get(kind, format.shown(kind))


def shade(part: float, whole: float) -> str:
    """Return the CSS class for a share, in eleven steps.

    >>> shade(1, 4), shade(0, 0)
    ('w3', 'w0')
    """
    return f"w{min(int(10 * part / whole + 0.999), 10) if whole else 0}"
