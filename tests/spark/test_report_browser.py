"""The report in a browser: whatever reasons, names and sources say is text, in its place, and nothing of it runs."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from forq_trio.drawing.unseen import visible
from pyspark_forq.pipelines.report import facts
from pyspark_forq.pipelines.report.page import REASON_SHOWN_LENGTH_MAX, render
from spark.event_frames import SCHEMA, event
from support.browser import PHONE, axe, guarded_page, sideways_pixels
from support.showcase import ENEMIES
from support.ui_http import Markup

UNSEEN = "\u2028\u2029\x85line\x00\x01\x1b[31mred\x7f\u202eback\u200b\ufeff"
LONG = "x" * 100_000
EVIL = (*ENEMIES, "</style></title></td></table></details>", "&lt;b&gt;", UNSEEN, LONG)


@pytest.fixture(scope="module")
def html(spark) -> str:
    """A report whose every text is an enemy's."""
    rows = []
    for number, evil in enumerate(EVIL):
        queue, message = evil[:64], evil[:36]
        rows += [
            event(3 * number + 1, number, "produced", queue, message),
            event(3 * number + 2, number, "delivered", queue, message, attempt=1, ms=1),
            event(3 * number + 3, number, "nacked", queue, message, attempt=1, reason=evil, ms=1),
        ]
    rows.append(event(1000, 8000, "produced", "q"))
    found = facts.gather(spark.createDataFrame(rows, SCHEMA))
    return render(found, made_at_ms=0, source="".join(EVIL[:-1]) + "\udcff")


LAPTOP = {"viewport": {"width": 1280, "height": 800}}


@pytest.mark.parametrize("view", [{}, LAPTOP, PHONE], ids=["desktop", "laptop", "phone"])
def test_what_an_enemy_says_is_text_in_its_place(html, chromium, tmp_path, view) -> None:
    assert Markup(html).refused == ["<style>: style"]  # the page's own
    place = tmp_path / "report.html"
    place.write_text(html, encoding="utf-8")
    with chromium.awake() as browser, guarded_page(browser, place.as_uri(), **view) as (page, _):
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.goto(place.as_uri())
        for each in page.locator("details").all():
            each.evaluate("details => details.open = true")
        shown = [" ".join(text.split()) for text in page.locator(".two td.why:first-child").all_inner_texts()]
        flat = [" ".join(visible(" ".join(evil.split())).split()) for evil in EVIL]
        assert sorted(text[:60] for text in shown) == sorted(text[:60] for text in flat)
        assert max(len(text) for text in shown) == REASON_SHOWN_LENGTH_MAX
        titles = page.locator("summary b").all_text_contents()
        assert sorted(titles) == sorted([*(visible(evil[:64]) for evil in EVIL), "q"])
        assert "img" not in page.evaluate(
            "[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]"
        )
        assert page.evaluate("window.hacked") is None
        assert sideways_pixels(page) <= 0
        axe(page)
        assert dialogs == []
