"""The pictures of the README, taken anew from a report: python docs/pictures.py wine.html.

Chromium opens the page as a reader would; a picture is cut to what it shows and kept in 256
colours, which text and flat shades do not miss.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

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
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        tab = browser.new_page(viewport={"width": 1120, "height": 760}, color_scheme="light")
        tab.goto(Path(page).resolve().as_uri())
        keep(tab.screenshot(clip=_FIRST), "report.png")
        box = tab.locator("#space").bounding_box()
        assert box is not None, "the report has no discriminant space"
        around = {"x": 12, "y": box["y"] - 24, "width": 1096, "height": 822}
        keep(tab.screenshot(clip=around, full_page=True), "space.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
