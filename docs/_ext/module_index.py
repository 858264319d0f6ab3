"""The page "Where is what": every module of the package with the first sentence of its docstring.

It is written to docs/reference/modules.md before Sphinx reads its sources, so a module that is
new, moved or renamed is on the page without an edit.
"""

import ast
import re
from pathlib import Path

import discriminant

PACKAGE = Path(discriminant.__file__).parent
ABOUT = """# Where is what

Every module of the package, by folder, with the first sentence of its docstring. Only the names in
the [reference](index.rst) are public.
"""


def first_line(path):
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def folders(package=PACKAGE):
    """{folder: its modules} of a package, each folder before those inside it."""
    inits = sorted(package.rglob("__init__.py"), key=lambda init: init.parent.parts)
    return {
        init.parent: sorted(path for path in init.parent.glob("*.py") if path != init)
        for init in inits
    }


def page(package=PACKAGE):
    """The Markdown of the page."""
    parts = [ABOUT]
    for folder, modules in folders(package).items():
        place = folder.relative_to(package)
        title = f"`{place.as_posix()}/`" if place.parts else f"`{package.name}`"
        parts.append(f"{'##' if len(place.parts) < 2 else '###'} {title}\n")
        parts.append(f"{escaped(first_line(folder / '__init__.py'))}\n")
        if modules:
            parts.append("\n".join(entry(path) for path in modules) + "\n")
    return "\n".join(parts)


def entry(path):
    return f"- `{path.name}`: {escaped(first_line(path))}"


def escaped(text):
    """Text with the signs of Markdown escaped, except in spans of code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([\\*_<>\[\]|])", r"\\\1", piece)
        for piece in pieces
    )


def write_page(app, config):
    """Write the page if it has changed, so that builds stay quick."""
    path = Path(app.srcdir) / "reference" / "modules.md"
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != page():
        path.write_text(page())


def setup(app):
    app.connect("config-inited", write_page)  # before Sphinx looks which pages there are
    return {"parallel_read_safe": True}
