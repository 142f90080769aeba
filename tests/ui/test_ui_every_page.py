"""What holds for every page: anybody can use it, on any screen, and whatever a message says is shown and never run.

The pages are those that links lead to, one of each kind; a new page is looked at without being named here.
"""

import re
from urllib.parse import urlsplit

import pytest

from support.browser import DESKTOP, PHONE, axe, sideways_pixels, transferred_bytes, without_cache
from support.ui_http import ENEMYS, is_stream, kind_of

FIRST_PAINT_BYTES_MAX = 100_000
NARROW = {"viewport": {"width": 1024, "height": 768}}
VIEWS = {
    "light": DESKTOP,
    "dark": DESKTOP | {"color_scheme": "dark", "reduced_motion": "no-preference"},
    "narrow": NARROW,
    "phone": PHONE,
    "phone-dark": PHONE | {"color_scheme": "dark"},
}
QUICK = ("light",)
QUEUE_OR_SCHEDULE = re.compile(r"^(/(?:queue|dead|schedules)/)[^/]+")


@pytest.fixture
def pages(answers) -> list[str]:
    """A path to each page of each kind, and to all pages of the queues that an enemy writes to."""
    found = {
        kind_of(path).partition("?")[0]: urlsplit(path).path
        for path, answer in answers.items()
        if answer.is_success and not is_stream(answer) and "<html" in answer.text
    }
    return sorted(found.values())


def one_of_each(pages: list[str]) -> list[str]:
    """Of pages of queues, and of schedules, that are made alike one: an enemy's, where there is one."""
    found: dict[str, str] = {}
    for path in pages:
        alike = QUEUE_OR_SCHEDULE.sub(r"\1*", kind_of(path))
        if alike not in found or re.match(rf"/(?:queue|dead)/{ENEMYS}(?:/|$)|/schedules/enemy(?:/|$)", path):
            found[alike] = path
    return sorted(found.values())


@pytest.mark.timeout(300)  # some forty pages
@pytest.mark.parametrize(
    "view", [each if each in QUICK else pytest.param(each, marks=pytest.mark.tier2) for each in VIEWS]
)
def test_anybody_can_use_every_page(open_page, world, pages, view) -> None:
    page = open_page(world, **VIEWS[view])
    for path in one_of_each(pages) if view in QUICK else pages:
        page.goto(path)
        axe(page)
        assert sideways_pixels(page) <= 0, path
        assert page.evaluate("window.hacked") is None, path


@pytest.mark.tier2
def test_the_first_paint_of_every_page_is_small(open_page, world, pages) -> None:
    page = without_cache(open_page(world))
    for path in pages:
        page.goto(path)
        assert 50_000 < transferred_bytes(page) < FIRST_PAINT_BYTES_MAX, path
