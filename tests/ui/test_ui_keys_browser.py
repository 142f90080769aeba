"""Messages with a key in a browser: found by the beginning of a key, rescheduled, dropped, and what comes after one."""

import re

import pytest
from playwright.sync_api import Page, expect

from forq_trio import ForqClient
from support.browser import axe, confirm, sideways_pixels

ATTACK = '"><img src=x onerror="window.hacked = true">'
HOUR_MS = 3_600_000


def search(page: Page, wanted: str) -> None:
    page.goto("/queue/sync?state=delayed")
    page.locator("[data-filter]").fill(wanted)
    page.locator("[data-filter]").press("Enter")


def test_a_key_is_found_opened_rescheduled_and_dropped(page, client) -> None:
    for key in ("customer/41", "customer/4155", ATTACK, "other"):
        client.offer(
            "sync", key, ATTACK, kind=ATTACK, mode="debounce", delay_ms=HOUR_MS, max_wait_ms=2 * HOUR_MS
        )
    search(page, "key:customer/41*")
    expect(page.locator("#found")).to_contain_text("Found 2 of 4 keys, by their index: all were searched.")
    expect(page.locator("mark")).to_have_text(["customer/41", "customer/41"])
    expect(page.locator("[data-due]").first).to_have_text(re.compile("^59 min$|^1 h$"))
    axe(page)
    page.locator("[data-opens]").first.click()
    opened = page.locator(".open")
    expect(opened).to_contain_text("debounced: 1 h after the last offer")
    axe(opened)
    opened.get_by_role("button", name="Reschedule…").click()
    page.locator("#dialog [name=delay]").fill("2 d")
    axe(page.locator("#dialog"))
    page.locator("#dialog").get_by_role("button", name="Reschedule").click()
    expect(page.locator("#toast")).to_contain_text("due in 2 d")
    search(page, f"key:{ATTACK}")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.locator("[data-opens]").click()
    page.get_by_role("button", name="Drop message").click()
    confirm(page.get_by_role("button", name="Drop it?"))
    expect(page.locator("#toast")).to_contain_text("Dropped message")
    assert not client.contains_key("sync", ATTACK, ATTACK)
    assert sideways_pixels(page) <= 0
    assert page.evaluate("window.hacked") is None


def in_flight(client: ForqClient) -> str:
    made = client.offer("sync", "k", '{"fields": ["email"]}')
    client.receive("sync", wait_ms=0)
    client.offer("sync", "k", '{"fields": ["email", "<b>plan</b>"]}', mode="onceMore", delay_ms=HOUR_MS)
    return made.id


@pytest.mark.tier2
def test_what_comes_after_a_message_is_watched_and_dropped_on_a_phone(phone, client) -> None:
    phone.goto(f"/queue/sync/message/{in_flight(client)}")
    expect(phone.locator(".nx1 mark")).to_have_text('"<b>plan</b>"')
    axe(phone)
    assert sideways_pixels(phone) <= 0
    client.offer("sync", "k", "another", mode="onceMore", delay_ms=HOUR_MS)
    expect(phone.locator(".notice")).to_contain_text("It has changed since this page was made.")
    phone.get_by_role("button", name="Show it as it is now").click()
    expect(phone.locator(".nx1")).to_contain_text("another")
    phone.get_by_role("button", name="Drop what comes after").click()
    confirm(phone.get_by_role("button", name="Drop it?"))
    expect(phone.locator(".nx1")).to_have_count(0)
    found = client.keyed_message("sync", "k")
    assert found is not None
    assert found.once_more is None


@pytest.mark.tier2
def test_messages_of_a_kind_are_dropped_once_the_name_was_typed(page, client) -> None:
    for kind in ("one", "two"):
        client.offer("sync", "k", "x", kind=kind, delay_ms=HOUR_MS)
    page.goto("/queue/sync")
    page.locator("summary[aria-label=More]").click()
    page.get_by_role("button", name="Drop messages with a key…").click()
    dialog = page.locator("#dialog")
    dialog.get_by_role("link", name="Keys of the kind two").click()
    expect(dialog).to_contain_text("All messages with a key of the kind two are deleted")
    axe(dialog)
    expect(dialog.get_by_role("button", name="Drop 1 message")).to_be_disabled()
    dialog.locator("[name=name]").fill("sync")
    dialog.get_by_role("button", name="Drop 1 message").click()
    expect(page.locator("#toast")).to_contain_text("Dropped 1 message")
    assert client.contains_key("sync", "k", "one")
    assert not client.contains_key("sync", "k", "two")


@pytest.mark.tier2
def test_a_message_is_sent_with_a_key(page, client) -> None:
    client.produce("sync", "x")
    page.goto("/queue/sync")
    page.get_by_role("button", name="Send message").click()
    dialog = page.locator("#dialog")
    dialog.locator("[name=content]").fill("{}")
    dialog.get_by_text("With a key").click()
    dialog.locator("[name=key]").fill("a/../b")
    dialog.locator("[name=mode]").select_option("debounce")
    dialog.locator("[name=delay]").fill("1 h")
    axe(dialog)
    dialog.get_by_role("button", name="Send message").click()
    expect(page.locator("#toast")).to_contain_text("Sent message")
    assert client.contains_key("sync", "a/../b")
