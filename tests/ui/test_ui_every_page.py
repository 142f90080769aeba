"""What holds for every page: anybody can use it, on any screen, and whatever a message says is shown and never run.

The pages are those that links lead to, one of each kind; a new page is looked at without being named here.
"""

import re
from urllib.parse import urlsplit

import pytest

from support.browser import DESKTOP, PHONE, axe, sideways_pixels, transferred_bytes, without_cache
from support.ui_http import MESSAGE_ID, crawl, logged_in

FIRST_PAINT_BYTES_MAX = 100_000
NARROW = {"viewport": {"width": 1024, "height": 768}}
VIEWS = {
    "light": DESKTOP,
    "dark": DESKTOP | {"color_scheme": "dark"},
    "narrow": NARROW,
    "phone": PHONE,
    "phone-dark": PHONE | {"color_scheme": "dark"},
}


@pytest.fixture(scope="session")
def pages(world) -> list[str]:
    """A path to each page of each kind, and all pages of the queues that an enemy writes to."""
    found: dict[str, str] = {}
    with logged_in(world.ui_url) as client:
        for path, answer in crawl(client):
            is_page = not is_stream(answer) and answer.is_success and "<html" in answer.text
            place = urlsplit(path).path
            shape = re.sub(r"^(/[a-z]+/)[^/]+", r"\1*", MESSAGE_ID.sub("ID", place))
            if is_page:
                found.setdefault(place if "guestbook" in place else shape, place)
    return sorted(found.values())


def is_stream(answer) -> bool:
    return answer.headers.get("Content-Type", "").startswith("text/event-stream")


@pytest.mark.parametrize("view", VIEWS)
def test_anybody_can_use_every_page(open_page, world, pages, view) -> None:
    page = open_page(world, **VIEWS[view])
    for path in pages:
        page.goto(path)
        axe(page)
        assert sideways_pixels(page) <= 0, path
        assert page.evaluate("window.hacked") is None, path


def test_the_first_paint_of_every_page_is_small(open_page, world, pages) -> None:
    page = without_cache(open_page(world))
    for path in pages:
        page.goto(path)
        assert 10_000 < transferred_bytes(page) < FIRST_PAINT_BYTES_MAX, path
