"""The report in a browser: whatever reasons, names and sources say is text, in its place, and nothing of it runs."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from forq_trio.drawing.unseen import visible
from pyspark_forq.pipelines.report.look import REASON_SHOWN_LENGTH_MAX
from pyspark_forq.pipelines.report.queue_page import DIRECTORY, page_name
from pyspark_forq.pipelines.report.write import report
from spark.event_frames import SCHEMA, event
from support.browser import PHONE, axe, guarded_page, sideways_pixels
from support.showcase import ENEMIES
from support.ui_http import Markup

UNSEEN = "\u2028\u2029\x85line\x00\x01\x1b[31mred\x7f\u202eback\u200b\ufeff"
LONG = "x" * 100_000
WIDE = "W" * 68
EVIL = (*ENEMIES, "</style></title></td></table></details>", "&lt;b&gt;", UNSEEN, LONG, WIDE)
PATHS = ("../../up", "a/b", ".hidden", "CON", "nul.txt")
LONG_MS = 35_940_000  # 9 h 59 min: as wide as times get


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory) -> Path:
    """The directory of a report whose every text is an enemy's."""
    rows = []
    for number, evil in enumerate((*EVIL, *PATHS)):
        queue, message = evil[:68], evil[:36]
        first = 5 * number
        rows += [
            event(first + 1, number, "produced", queue, message),
            event(first + 2, number, "delivered", queue, message, attempt=1, ms=LONG_MS),
            event(first + 3, number, "nacked", queue, message, attempt=1, reason=evil, ms=LONG_MS),
            event(first + 4, number, "produced", queue, f"{message}2"),
            event(first + 5, number, "acked", queue, f"{message}2", attempt=1, ms=LONG_MS, received=-35_940),
        ]
    rows.append(event(1000, 8000, "produced", "q"))
    place = tmp_path_factory.mktemp("report")
    source = "".join(EVIL[:-2]) + "\udcff"
    done = report(spark.createDataFrame(rows, SCHEMA), place, source=source, queue_pages=True)
    assert done.queue_pages == len({evil[:68] for evil in EVIL}) + len(PATHS) + 1
    return place


LAPTOP = {"viewport": {"width": 1280, "height": 800}}
VIEWS = pytest.mark.parametrize("view", [{}, LAPTOP, PHONE], ids=["desktop", "laptop", "phone"])


@pytest.mark.tier2
@VIEWS
def test_what_an_enemy_says_is_text_in_its_place(made, chromium, view) -> None:
    place = made / "report.html"
    assert Markup(place.read_text("utf-8")).refused == ["<style>: style"]  # the page's own
    with chromium.awake() as browser, guarded_page(browser, place.as_uri(), **view) as (page, _):
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.goto(place.as_uri())
        for each in page.locator("details").all():
            each.evaluate("details => details.open = true")
        shown = [" ".join(text.split()) for text in page.locator(".two td.why:first-child").all_inner_texts()]
        flat = [" ".join(visible(" ".join(evil.split())).split()) for evil in (*EVIL, *PATHS)]
        assert sorted(text[:60] for text in shown) == sorted(text[:60] for text in flat)
        assert max(len(text) for text in shown) == REASON_SHOWN_LENGTH_MAX
        titles = page.locator("summary b").all_text_contents()
        assert sorted(titles) == sorted([*(visible(evil[:68]) for evil in (*EVIL, *PATHS)), "q"])
        assert "img" not in page.evaluate(
            "[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]"
        )
        assert page.evaluate("window.hacked") is None
        assert sideways_pixels(page) <= 0
        axe(page)
        assert dialogs == []


@pytest.mark.tier2
@VIEWS
def test_the_page_of_a_queue_is_where_its_link_leads(made, chromium, view) -> None:
    """Each has its own file beside the report, and lies nowhere else."""
    names = [*(evil[:68] for evil in (*EVIL, *PATHS)), "q"]
    pages = sorted(path.name for path in (made / DIRECTORY).iterdir())
    assert pages == sorted(page_name(name) for name in names)
    assert len({name.lower() for name in pages}) == len(names)
    index = made / "report.html"
    with chromium.awake() as browser, guarded_page(browser, index.as_uri(), **view) as (page, _):
        page.goto(index.as_uri())
        links = page.locator("td.name a").evaluate_all("links => links.map(a => [a.textContent, a.href])")
        assert len(links) >= len(names)
        for title, link in links[: len(names)]:
            page.goto(link)
            assert page.locator("h1").text_content() == title
            assert sideways_pixels(page) <= 0, title
            assert page.evaluate("window.hacked") is None
            assert "img" not in page.evaluate("[...document.querySelectorAll('*')].map(e => e.localName)")
        assert sorted(title for title, _ in links[: len(names)]) == sorted(map(visible, names))
        axe(page)
        page.get_by_text("All queues").click()
        assert page.locator("h1").text_content() != title


@pytest.mark.tier2
def test_pages_of_queues_that_are_not_shown_now_are_removed(spark, tmp_path) -> None:
    stays = tmp_path / DIRECTORY / "notes.html"
    events = [spark.createDataFrame([event(1, 0, "produced", name)], SCHEMA) for name in ("one", "Two")]
    assert report(events[0], tmp_path, queue_pages=True).queue_pages == 1
    stays.write_text("mine")
    report(events[1], tmp_path, queue_pages=True)
    assert sorted(stays.parent.iterdir()) == sorted([stays, stays.with_name(page_name("Two"))])
    assert f'href="{DIRECTORY}/{page_name("Two")}"' in (tmp_path / "report.html").read_text()
    assert report(events[1], tmp_path).queue_pages == 0
    assert list(stays.parent.iterdir()) == [stays]
    assert DIRECTORY not in (tmp_path / "report.html").read_text()
