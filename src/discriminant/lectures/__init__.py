"""Pages with figures to try out, one for each of the five lectures (docs/lectures).

A page is a single HTML file that fits models in the browser by moments.js. It needs no server and
no network, so it also opens from a folder. Its modules are joined into one script, because browsers
load no modules from files: each module becomes a function that returns its exports,

    const module_figures = (() => { ...; return { Plane, Explorable }; })();

The content security policy allows this script and the style sheet only, as in reports.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

TITLES = {
    1: "One direction, many classes",
    2: "Assessing classifiers, Fisher step by step",
    3: "Masking, LDA, QDA and regularisation",
    4: "Discriminants, decisions, densities, logistic regression",
    5: "Regression, codes and rare classes",
}
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:class|function|const) (\w+))", re.MULTILINE)
_HEADING = re.compile(r'<section id="([\w-]+)">\s*<h2>(.*?)</h2>')


def page(lecture: int, *, guide: str | None = None) -> str:
    """Return the page of a lecture.

    Parameters
    ----------
    lecture
        Number of the lecture, 1 to 5.
    guide
        Address of the written guide to the lecture; the page links to it.

    Returns
    -------
    str
        A complete HTML document. Pages link to each other as `lecture_1.html` and so on.
    """
    from discriminant.report import html as report

    style = report.asset("style.css") + asset("style.css")
    script = script_of(f"lecture_{lecture}")
    body = asset(f"lecture_{lecture}.html")
    sections = "".join(f'<a href="#{name}">{title}</a>\n' for name, title in _HEADING.findall(body))
    current = {lecture: ' aria-current="page"'}
    others = "".join(
        f'<a href="lecture_{n}.html"{current.get(n, "")}>Lecture {n}</a>\n' for n in TITLES
    )
    written = "" if guide is None else f'<a href="{escape(guide)}">Guide to this lecture</a>\n'
    fields = {
        "policy": report.policy(style, script),
        "style": style,
        "lecture": str(lecture),
        "title": TITLES[lecture],
        "pages": written + others,
        "sections": sections,
        "body": body,
        "script": script,
    }
    template = asset("page.html")
    return re.sub(r"\{\{ (\w+) \}\}", lambda field: fields[field[1]], template)


def write_pages(folder: str | Path, *, guide: str | None = None) -> list[Path]:
    """Write the five pages to a folder, which is created if needed.

    Parameters
    ----------
    folder
        Where to write `lecture_1.html` to `lecture_5.html`.
    guide
        Address of the guides, in which `{}` stands for the number of the lecture.

    Returns
    -------
    list of Path
        The files.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for lecture in TITLES:
        file = folder / f"lecture_{lecture}.html"
        text = page(lecture, guide=None if guide is None else guide.format(lecture))
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


@cache
def script_of(module: str) -> str:
    """Return a module and those it imports as one script, dependencies first."""
    parts: dict[str, str] = {}
    _collect(module, parts)
    return "".join(parts.values())


def _collect(module: str, parts: dict[str, str]) -> None:
    if module in parts:
        return
    from discriminant.report import html as report

    source = report.asset("moments.js") if module == "moments" else asset(f"{module}.js")
    for _, imported in _IMPORT.findall(source):
        _collect(imported, parts)
    exports = ", ".join(_EXPORT.findall(source))
    body = _IMPORT.sub(lambda each: f"const {{{each[1]}}} = module_{each[2]};\n", source)
    body = _EXPORT.sub("", body)
    parts[module] = (
        f'const module_{module} = (() => {{\n"use strict";\n{body}return {{ {exports} }};\n}})();\n'
    )


def asset(name: str) -> str:
    """Return the text of a packaged asset."""
    return files("discriminant.lectures").joinpath("assets", name).read_text(encoding="utf-8")
