"""The reference: a page for every public name, grouped by where it lives in the house.

The pages are written before Sphinx reads its sources, from `discriminant.__all__` and from what
`discriminant.errors` and `discriminant.decision` offer. So a new name has its page without anybody
writing one. What is in no group below ends in the last one.
"""

import importlib
import importlib.util
import inspect
from pathlib import Path

import discriminant

# A group: the file, its title, what it is about, and the rooms whose names belong to it.
GROUPS = (
    ("study", "From a table to a page", "A table in, a comparison, a page and a model out.",
     ("study", "table")),
    ("estimators", "Estimators", "Classifiers and regressions with scikit-learn's interface.",
     ("estimators",)),
    ("moments", "Moments", "The sums that everything else is made from.",
     ("engines", "moments")),
    ("deciding", "Priors and decisions", "From a posterior to an action.",
     ("decision", "posterior")),
    ("assessment", "How good is it", "Held-out rows, measures, intervals and tests.",
     ("assessment",)),
    ("files", "Files and export",
     "Models and moments in files; models as SQL, ONNX, Python and JavaScript.",
     ("store", "export")),
    ("plots", "Plots", "Figures with matplotlib (the extra ``plot``).", ("report",)),
    ("other", "Other names", "What belongs to no group above.", ()),
)  # fmt: skip
STRANGERS = ("BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin", "Exception")
MORE = ("decision",)  # rooms with names of their own beside the public ones


def homes():
    """{dotted name: room} of every public name."""
    found = {f"discriminant.{name}": home.split(".")[0] for name, home in top_names().items()}
    for room in MORE:
        taken = {name.rpartition(".")[2] for name in found}
        found |= {f"discriminant.{room}.{name}": room for name in sorted(offered(room) - taken)}
    return found


def top_names():
    return {name: discriminant._HOMES[name] for name in discriminant.__all__}


def offered(room):
    """Names that a room offers: its __all__, or what its __init__ imports or makes."""
    if importlib.util.find_spec(f"discriminant.{room}") is None:
        return set()
    module = importlib.import_module(f"discriminant.{room}")
    names = getattr(module, "__all__", None) or [n for n in vars(module) if ours(module, n)]
    return set(names)


def ours(module, name):
    found = getattr(module, name)
    from_us = getattr(found, "__module__", "").startswith(module.__name__)
    return not name.startswith("_") and from_us and not inspect.ismodule(found)


def error_names():
    """Every error and warning."""
    errors = importlib.import_module("discriminant.errors")
    found = [n for n in vars(errors) if inspect.isclass(getattr(errors, n))]
    return sorted(n for n in found if issubclass(getattr(errors, n), Exception))


def grouped():
    """[(file, title, about, names)] of the groups that have any."""
    rooms, home = [set(group[3]) for group in GROUPS], homes()
    known = set().union(*rooms)
    pages = []
    for (file, title, about, _), mine in zip(GROUPS, rooms, strict=True):
        names = [n for n, room in home.items() if room in mine or (not mine and room not in known)]
        if names:
            pages.append((file, title, about, names))
    return pages


def page(title, about, names):
    """A group: a table of its names, and the pages of each."""
    files = "\n".join(f"   {file_of(name)}" for name in names)
    return (
        f"{titled(title, '=')}{about}\n\n{listing(names)}\n.. toctree::\n   :hidden:\n\n{files}\n"
    )


def titled(title, mark):
    return f"{title}\n{mark * len(title)}\n\n"


def listing(names):
    listed = "\n".join(f"   ~{name}" for name in names)
    return f".. autosummary::\n\n{listed}\n"


def file_of(name):
    """Where a name has its page; none differs by capitals only, as some disks ignore these."""
    return f"{name}_class" if name.lower() in {n for n in homes() if n != name} else name


def thing(name):
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module), own)


def name_page(name):
    """What a name is, with all it can do; of estimators less what scikit-learn gives to all."""
    module, _, own = name.rpartition(".")
    found = thing(name)
    kind = "autodata"
    options = ""
    if inspect.isclass(found):
        kind = "autoclass"
        options = f"\n   :members:\n   :inherited-members: {', '.join(STRANGERS)}"
    elif callable(found):
        kind = "autofunction"
    return f"{titled(own, '=')}.. currentmodule:: {module}\n\n.. {kind}:: {own}{options}\n"


def errors_page(names):
    about = (
        "Each can be caught or silenced by its name in ``discriminant.errors``. A message names\n"
        "the row, column or class, the number, and the way out.\n\n"
    )
    body = "\n\n".join(f".. autoexception:: {name}" for name in names)
    place = ".. currentmodule:: discriminant.errors\n\n"
    return f"{titled('Errors and warnings', '=')}{about}{place}{body}\n"


def index_page(pages):
    """All names at a glance."""
    parts = [
        titled("Reference", "="),
        "Every public name, on a page of its own. Whatever is not listed here may change.\n\n",
    ]
    parts += [
        f"{titled(title, '-')}{about}\n\n{listing(names)}\n" for _, title, about, names in pages
    ]
    parts += [titled("Errors and warnings", "-"), ":doc:`All of them <errors>`, by name.\n\n"]
    files = "\n".join(f"   {file}" for file, *_ in pages)
    return "".join([*parts, f".. toctree::\n   :hidden:\n\n{files}\n   errors\n"])


def texts():
    """{file: text} of all pages."""
    pages = grouped()
    found = {file: page(title, about, names) for file, title, about, names in pages}
    found |= {file_of(name): name_page(name) for *_, names in pages for name in names}
    return found | {"index": index_page(pages), "errors": errors_page(error_names())}


def write_pages(app, config):
    """Write docs/reference, leaving alone what has not changed, so that builds stay quick."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    wanted = {folder / f"{name}.rst": text for name, text in texts().items()}
    for path in set(folder.glob("*.rst")) - set(wanted):
        path.unlink()  # of a name that is no more
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app):
    app.connect("config-inited", write_pages)  # before Sphinx looks which pages there are
    return {"parallel_read_safe": True}
