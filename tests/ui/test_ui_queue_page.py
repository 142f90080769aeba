"""The queue's page in a browser: it scrolls, says what is new and what is gone, and its dialogs keep what was typed."""

import re

from playwright.sync_api import expect

from forq_trio.model.messages.new_message import NewMessage
from support.browser import axe


def test_a_queue_is_looked_at_changed_and_purged(page, ui, open_page, client, guards) -> None:
    client.produce_many("orders", [NewMessage(f"number {number}") for number in range(60)])
    page.goto("/queue/orders")
    page.get_by_role("button", name="Edit settings").click()
    axe(page.locator("#dialog"))
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
    page.get_by_role("button", name="Pause queue").click()
    expect(page.get_by_role("button", name="Resume queue")).to_be_visible()
    assert client.queue_stats("orders").paused
    page.get_by_role("button", name="Resume queue").click()
    expect(page.get_by_role("button", name="Pause queue")).to_be_visible()
    assert not client.queue_stats("orders").paused
    other = open_page(ui)
    other.goto("/queue/orders")
    client.produce("orders", "more")
    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name="Purge…").click()
    button = page.get_by_role("button", name=re.compile("Purge 61 messages"))
    assert button.is_disabled()
    page.locator("#dialog [name=name]").fill("orders")
    button.click()
    for each in (page, other):
        expect(each.locator("[data-live=purge]")).to_contain_text("61 messages removed")
    assert client.queue_stats("orders").total == 0
    page.reload()
    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name="Delete queue…").click()
    page.locator("#dialog [name=name]").fill("orders")
    page.get_by_role("button", name="Delete queue", exact=True).click()
    expect(page.locator("h1")).to_have_text("No queue yet")


def test_a_message_is_sent_by_the_dialog_which_keeps_what_cannot_be_sent(page, client, guards) -> None:
    client.produce("orders", "first")
    page.goto("/queue/orders")
    page.get_by_role("button", name="Send message").click()
    content = page.get_by_label("Content", exact=True)
    content.fill('{"n": 1,}')
    expect(page.locator("[data-json-hint]")).to_have_text("It is no valid JSON; it is sent as it is.")
    content.fill('{"n": 1}')
    expect(page.locator("[data-json-hint]")).to_have_text("It is valid JSON.")
    page.get_by_label("Priority").fill("high")
    guards[page].expect(400, "/queue/orders/send")
    page.locator("#dialog [type=submit]").click()
    expect(page.locator("#e-priority")).to_be_visible()
    expect(content).to_have_value('{"n": 1}')
    axe(page.locator("#dialog"))
    page.get_by_label("Priority").fill("500")
    page.locator("#dialog [type=submit]").click()
    page.locator("#toast a").click()
    expect(page.locator("pre.code")).to_contain_text('"n"')
    (first,) = client.receive("orders", wait_ms=0)
    assert (first.content, first.priority) == ('{"n": 1}', 500)
