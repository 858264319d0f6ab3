"""Pages, opened in the browser that tests share."""

import pytest

from discriminant.report.html import render
from tests.shared.javascript import Chromium


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a report; what went wrong is in `page.wrong`."""
    contexts = []

    def open_page(facts, width=1280, scheme="light", rendered=render):
        file = tmp_path / "report.html"
        file.write_text(rendered(facts), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.wrong = []
        page.on("console", lambda said: page.wrong.append(said.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith(("file:", "data:")) else page.wrong.append(asked.url)
            ),
        )
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def chromium(browser):
    """A browser page under a strict content security policy that evaluates modules."""
    with Chromium(browser) as engine:
        yield engine
