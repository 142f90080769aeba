"""The queue's page in a browser: it scrolls, says what is new and what is gone, and its dialogs keep what was typed."""

import re

from forq_trio.client.types import NewMessage
from support.browser import axe


def test_a_queue_is_looked_at_changed_and_purged(page, ui, client, guards) -> None:
    client.produce_many("orders", [NewMessage(f"number {number}") for number in range(60)])
    page.goto("/queue/orders")
    rows = page.locator("[data-seq]")
    assert rows.count() == 50
    page.locator("#more").scroll_into_view_if_needed()
    page.get_by_text("All 60 shown").wait_for()
    assert rows.count() == 60
    page.get_by_role("button", name="Edit settings").click()
    axe(page)
    guards[page].expect(400, "/queue/orders/settings")
    page.locator("#f-lease_ms").fill("soon")
    page.locator("#f-max_attempts").fill("7")
    page.get_by_role("button", name="Save settings").click()
    page.locator("#e-lease_ms").wait_for()
    page.locator("#f-lease_ms").fill("45 s")
    page.get_by_role("button", name="Save settings").click()
    page.get_by_text("Saved the settings of orders").wait_for()
    settings = client.settings("orders").settings
    assert (settings.lease_ms, settings.max_attempts) == (45_000, 7)
    client.produce("orders", "more")
    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name="Purge…").click()
    button = page.get_by_role("button", name=re.compile("Purge 61 messages"))
    assert button.is_disabled()
    page.locator("#dialog [name=name]").fill("orders")
    button.click()
    page.get_by_text("61 messages removed").wait_for()
    assert client.queue_stats("orders").total == 0
