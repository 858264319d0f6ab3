"""The site: it is built here as `make docs` builds it, and what comes out is looked at.

It is built once, from a copy of `docs`, so that nothing is left behind. A warning is an error, and
so is a script of the gallery that does not run.
"""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import discriminant
from tests.shared.paths import ROOT

MADE = shutil.ignore_patterns("_build", "auto_gallery", "reference", "__pycache__")
SECTIONS = (
    "start",
    "lectures/index",
    "how_to",
    "topics",
    "auto_gallery/index",
    "reference/index",
    "project",
)


def test_the_site_is_built_without_a_warning_whole_and_loads_nothing_from_elsewhere(tmp_path):
    site = built(tmp_path)
    pages = {page: Page(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    faults = {
        "public names without a page": unnamed(pages.values()),
        "loads from elsewhere": foreign(pages.values(), site.rglob("*.css")),
        "links that lead nowhere": astray(pages),
        "sections that the first page does not reach": unreached(pages[site / "index.html"]),
    }
    assert {what: found for what, found in faults.items() if found} == {}


def built(folder):
    """The folder of the pages, built from a copy."""
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=MADE)
    for page in ("CHANGELOG.md", "CONTRIBUTING.md"):  # which the site shows too
        shutil.copy(ROOT / page, folder)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "html"]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(HTMLParser):
    """What a page makes a browser fetch by itself, where its links lead, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.fetched, self.links, self.anchors = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors.add(found.get("id"))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        self.fetched += [found[name] for name in ("src", "srcset", "data") if found.get(name)]
        if tag == "link":
            self.fetched.append(found.get("href") or "")


def unnamed(pages):
    anchors = set().union(*(page.anchors for page in pages))
    return [name for name in discriminant.__all__ if f"discriminant.{name}" not in anchors]


def foreign(pages, styles):
    fetched = [url for page in pages for url in page.fetched]
    for style in styles:
        fetched += re.findall(r"(?:url\(|@import\s)\s*['\"]?([^'\")]+)", style.read_text())
    return [url for url in fetched if re.match(r"(https?:)?//", url)]


def astray(pages):
    return [
        (page.name, link)
        for page, found in pages.items()
        for link in found.links
        if not urlsplit(link).scheme and not leads_somewhere(page, urlsplit(link), pages)
    ]


def leads_somewhere(page, where, pages):
    target = Path(os.path.normpath(page.parent / unquote(where.path))) if where.path else page
    known = pages.get(target)
    return target.exists() and not (
        known and where.fragment and where.fragment not in known.anchors
    )


def unreached(first):
    return [name for name in SECTIONS if f"{name}.html" not in first.links]
