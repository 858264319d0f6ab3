"""The site: it is built here as `make docs` builds it, and what comes out is looked at.

Built from a copy of `docs`, so that nothing is left behind. The gallery's scripts are set in pages
but not run: each of them is run by a test of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import discriminant

ROOT = Path(__file__).parent.parent
MADE = shutil.ignore_patterns("_build", "auto_gallery", "reference", "__pycache__")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=MADE)
    for page in ("CHANGELOG.md", "CONTRIBUTING.md"):  # which the site shows too
        shutil.copy(ROOT / page, folder)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
    command += ["-D", "plot_gallery=0", "docs", "html"]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Loads(HTMLParser):
    """What a page makes a browser fetch by itself, and where its links lead."""

    def __init__(self, page):
        super().__init__()
        self.fetched, self.links, self.ids = [], [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        self.fetched += [found[name] for name in ("src", "data-src") if found.get(name)]
        if tag == "link" and "canonical" not in found.get("rel", ""):
            self.fetched.append(found.get("href") or "")


@pytest.fixture(scope="module")
def pages(site):
    return {page: Loads(page) for page in site.rglob("*.html") if "_static" not in page.parts}


def test_every_public_name_is_on_a_page_of_the_reference(pages):
    told = set().union(*(page.ids for page in pages.values()))
    names = {f"discriminant.{name}" for name in discriminant.__all__}
    assert sorted(names - told) == []


def test_no_page_loads_anything_from_elsewhere(site, pages):
    fetched = [url for page in pages.values() for url in page.fetched]
    styles = [path.read_text() for path in site.rglob("*.css")]
    fetched += [url for text in styles for url in re.findall(r"url\(['\"]?([^'\")]+)", text)]
    fetched += [url for text in styles for url in re.findall(r"@import\s+['\"]([^'\"]+)", text)]
    assert [url for url in fetched if re.match(r"(https?:)?//", url)] == []


def test_every_link_within_the_site_leads_somewhere(pages):
    astray = []
    for page, found in pages.items():
        for link in found.links:
            where = urlsplit(link)
            if where.scheme or where.netloc:
                continue
            target = (page.parent / unquote(where.path)).resolve() if where.path else page.resolve()
            known = pages.get(target)
            if not target.exists() or (
                known and where.fragment and where.fragment not in known.ids
            ):
                astray.append((page.name, link))
    assert astray == []


def test_every_section_is_reached_from_the_first_page(site):
    first = (site / "index.html").read_text()
    sections = ("start", "guide", "how_to", "topics", "auto_gallery/index", "reference/index")
    assert [name for name in (*sections, "project") if f'href="{name}.html' not in first] == []
