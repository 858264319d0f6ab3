"""What every page is asked in a browser."""


def overflow(page):
    """What was complained of while it was scrolled, and how wide it came out."""
    page.mouse.wheel(0, 4000)
    return page.wrong, page.evaluate("document.documentElement.scrollWidth")


def beyond_paper(page):
    """How many parts are wider than the page when it is printed."""
    page.emulate_media(media="print")
    return page.evaluate(
        "[...document.querySelectorAll('main *')]"
        ".filter(one => one.getBoundingClientRect().right > innerWidth + 1).length"
    )


def smallest_text(page):
    """Pixels of the smallest text in a figure, as it is shown."""
    return page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg.figure')].map(svg =>"
        " parseFloat(getComputedStyle(svg.querySelector('text')).fontSize)"
        " * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))"
    )
