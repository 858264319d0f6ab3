"""Docstrings as they are written here, turned into what numpydoc and Sphinx read.

In our docstrings `x` is code, an indented paragraph is a formula, and |w| or coef_ mean what they
look like. In reStructuredText these would be a title, a quotation, a substitution and a link.
"""

import dataclasses
import inspect
import re

_FIELD = re.compile(r"^    (\w+): [^#\n]+#\s*(.+)$", flags=re.MULTILINE)


def rewrite(app, what, name, obj, options, lines):
    """Change the lines in place, before numpydoc does."""
    if not name.startswith("discriminant"):
        return
    text = "\n".join(lines)
    if what == "class" and dataclasses.is_dataclass(obj) and "Attributes\n---" not in text:
        text += fields_of(obj)
    lines[:] = "\n\n".join(paragraphs(text)).split("\n")


def paragraphs(text):
    """Each paragraph as prose, as a formula, or, of an example, as it is."""
    indent = 0
    for paragraph in re.split(r"\n\s*\n", text.rstrip()):
        own = min((depth(line) for line in paragraph.split("\n")), default=0)
        if ">>>" in paragraph:
            yield paragraph
        elif own > indent:
            yield f"{' ' * indent}::\n\n{paragraph}"
        else:
            yield prose(paragraph)
            indent = depth(paragraph.split("\n")[-1])


def depth(line):
    return len(line) - len(line.lstrip())


def prose(paragraph):
    """Backticks doubled, marks of reStructuredText escaped; names that numpydoc reads are left."""
    lines = paragraph.split("\n")
    following = [*lines[1:], ""]
    if not any(map(names_something, lines, following)):
        return marked(paragraph)  # as a whole: code may go on to the next line
    pairs = zip(lines, following, strict=True)
    return "\n".join(
        line if names_something(line, after) else marked(line) for line, after in pairs
    )


def names_something(line, after):
    """A heading, its underline, or the name of a parameter."""
    underlined = {"-"} in (set(line), set(after))
    return depth(line) == 0 and (underlined or depth(after) > 0)


def marked(text):
    if "``" in text or text.count("`") % 2:
        return text
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"([|*\\]|_(?!\w))", r"\\\1", piece) for piece in pieces[::2]]
    return "``".join(pieces)


def fields_of(cls):
    """The fields of a dataclass with the comments beside them."""
    try:
        found = _FIELD.findall(inspect.getsource(cls))
    except OSError:
        return ""
    if not found:
        return ""
    listed = "\n".join(f"{name}\n    {words}" for name, words in found)
    return f"\n\nAttributes\n----------\n{listed}"


def left_out(app, what, name, obj, skip, options):
    """What scikit-learn gives to every estimator is in its own pages."""
    target = getattr(obj, "fget", obj)
    strange = str(getattr(target, "__module__", "")).startswith("sklearn")
    return True if strange or re.fullmatch(r"set_\w+_request|metadata_routing", name) else None


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("autodoc-skip-member", left_out)
    return {"parallel_read_safe": True}
