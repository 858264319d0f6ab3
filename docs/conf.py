"""How the pages of `docs` become a site: `make docs` writes docs/_build/html.

Everything the site shows is in the site: no font, style or script is loaded from elsewhere.
"""

import re
import sys
from pathlib import Path

import discriminant
from discriminant.lectures import write_pages

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "discriminant"
author = "The discriminant developers"
copyright = author
release = version = discriminant.__version__

extensions = [
    "public_names",  # ours: the pages of the reference, from the names that are public
    "module_index",  # ours: the page "Where is what", from the docstrings of the modules
    "plain_docstrings",  # ours: docstrings as they are written, before numpydoc reads them
    "mathml",  # ours: formulas without a script
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
]
exclude_patterns = ["_build", "**/README.md", "**/GALLERY_HEADER.rst", "gallery"]

# Pages are Markdown. A heading can be linked to as code hosts do it: page.md#the-heading.
myst_heading_anchors = 3
highlight_language = "none"
html_math_renderer = "mathml"

# Reference
autosummary_generate = False  # public_names writes the pages
autodoc_typehints = "none"  # shapes are in the words; types are in the source
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Gallery: docs/gallery holds the scripts, docs/auto_gallery what they drew
if any((HERE / "gallery").glob("*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": "gallery",
        "gallery_dirs": "auto_gallery",
        "download_all_examples": False,
        "show_signature": False,
        "abort_on_example_error": True,
        "write_computation_times": False,  # that page would load scripts from elsewhere
        "remove_config_comments": True,
        "show_memory": False,
    }

# Look
html_theme = "pydata_sphinx_theme"
html_title = "discriminant"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": []}

# Links that work on a code host lead, here, to the pages that are made of what they lead to there.
OUTSIDE = {
    "../CHANGELOG.md": "changes.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../src/discriminant/__init__.py": "reference/index.rst",
    "../src/discriminant": "reference/modules.md",
    "gallery": "auto_gallery/index.rst",
}
# Live figures: a code host shows the text of the pages; here they are joined with their scripts.
LIVE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+src/discriminant/lectures/assets/(lecture_\d\.html(?:#\w+)?)\)"
)
LECTURES = "\n```{toctree}\n:hidden:\n:glob:\nlecture_*\nquestions\nitems\n```\n"


def adapt(app, name, source):
    """What pages need only here, so that a code host can show them too."""
    up = "../" * name.count("/")
    for link, page in OUTSIDE.items():
        source[0] = source[0].replace(f"]({up}{link})", f"]({up}{page})")
    live = "explore" if name.startswith("lectures/") else f"{up}lectures/explore"
    source[0] = LIVE.sub(rf'<a href="{live}/\2">\1</a>', source[0])
    source[0] = source[0].replace("\n\n```\n", "\n```\n")  # a session ends in an empty line
    if name == "lectures/index":
        source[0] += LECTURES


def write_live_figures(app, error):
    if error is None and app.builder.format == "html":
        write_pages(Path(app.outdir) / "lectures" / "explore", guide="../lecture_{}.html")


def setup(app):
    app.connect("source-read", adapt)
    app.connect("build-finished", write_live_figures)
