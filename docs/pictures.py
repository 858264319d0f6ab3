"""The pictures of the README and the guides: python docs/pictures.py [wine.html].

With a report, the pictures of the report are taken anew; without one, the picture of the studio.
Chromium opens the page as a reader would; a picture is cut to what it shows and reduced to 256
colours, which suffice for text and flat shades.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

_CHROMIUM = "/usr/bin/chromium"  # Debian's
_FOLDER = Path(__file__).parent / "_static"
_FIRST = {"x": 0, "y": 56, "width": 1120, "height": 640}  # below the margin


def keep(picture: bytes, name: str) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(_FOLDER / name, optimize=True)


def main(page: str) -> None:
    """Take both pictures of a report."""
    with open_tab(1120, 760) as tab:
        tab.goto(Path(page).resolve().as_uri())
        keep(tab.screenshot(clip=_FIRST), "report.png")
        box = tab.locator("#space").bounding_box()
        assert box is not None, "the report has no discriminant space"
        around = {"x": 12, "y": box["y"] - 24, "width": 1096, "height": 822}
        keep(tab.screenshot(clip=around, full_page=True), "space.png")


def take_studio() -> None:
    """Take the picture of the studio with the example `wine`."""
    command = [sys.executable, "-m", "discriminant", "studio", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[1]
            with open_tab(1200, 940) as tab:
                tab.goto(f"{url}&example=wine&model=rda&pooling=0.7&shrinkage=0.1")
                tab.locator("#best").wait_for()  # the plane is computed
                tab.wait_for_timeout(500)
                keep(tab.screenshot(), "studio.png")
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def open_tab(width: int, height: int) -> Iterator[Any]:
    """Open a page of Chromium."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        take_studio()
