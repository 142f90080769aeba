"""A message's page in a browser: views, copies, a button that asks, and what happens to it while it is open."""

import re

import pytest
from playwright.sync_api import expect

from support.browser import axe, confirm, keyboard, sideways_pixels

ENEMY = '{"<img src=x onerror=alert(1)>": "</pre><script>window.hacked = true</script>"}'


def test_a_dead_letter_is_looked_at_copied_edited_and_watched(page, client, guards) -> None:
    client.configure("orders", max_attempts=1)
    ids = []
    for content in (ENEMY, "second"):
        ids.append(client.produce("orders", content).id)
        (delivery,) = client.receive("orders", wait_ms=0)
        client.nack("orders", [delivery.receipt], reason=ENEMY)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/queue/orders-dlq/message/{ids[0]}")
    axe(page)
    page.get_by_role("link", name="Raw").click()
    expect(page.locator("pre.code.wrap")).to_have_text(ENEMY)
    expect(page).to_have_url(re.compile(r"\?view=raw$"))
    page.get_by_role("button", name="Copy content").click()
    expect(page.locator("#toast")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == ENEMY
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.locator("#toast")).to_contain_text("Copied: a command that sends a copy")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("curl ")
    assert "/queues/orders" in command
    keyboard(page, "e")
    field = page.locator("textarea[name=content]")
    expect(field).to_have_value(ENEMY)
    axe(page.locator("#dialog"))
    guards[page].expect(400, ".*/edit")
    page.locator("#dialog [name=target]").fill("no such name")
    page.get_by_role("button", name="Redrive edited message").click()
    expect(page.locator("#err-target")).to_be_visible()
    page.locator("#dialog [name=target]").fill("orders")
    field.fill("edited")
    page.get_by_role("button", name="Redrive edited message").click()
    expect(page.locator("pre.code")).to_contain_text("edited")
    expect(page.locator("h1")).to_contain_text("Message")
    page.goto(f"/queue/orders-dlq/message/{ids[1]}")
    client.redrive("orders-dlq", [ids[1]])
    expect(page.locator(".notice")).to_contain_text("not there any more")
    assert sideways_pixels(page) <= 0
    assert page.evaluate("window.hacked") is None


@pytest.mark.tier2
def test_a_message_in_flight_is_cancelled_in_a_dialog(page, client) -> None:
    sent = client.produce("orders", "takes long")
    client.receive("orders", wait_ms=0)
    page.goto(f"/queue/orders/message/{sent.id}")
    page.get_by_role("button", name="Cancel in flight…").click()
    axe(page.locator("#dialog"))
    page.get_by_role("button", name="Let it run").click()
    expect(page.locator("#dialog")).not_to_be_visible()
    assert client.message("orders", sent.id).status == "processing"
    page.get_by_role("button", name="Cancel in flight…").click()
    page.locator("#dialog").get_by_role("button", name="Cancel message").click()
    expect(page).to_have_url(re.compile("/queue/orders$"))
    expect(page.locator("#toast")).to_contain_text(f"Cancelled message {sent.sequence:,}")
    assert client.queue_stats("orders").total == 0
    assert sideways_pixels(page) <= 0


@pytest.mark.tier2
def test_a_message_that_waits_is_cancelled_after_a_question(page, client) -> None:
    sent = client.produce("orders", "by mistake", delay_ms=3_600_000)
    page.goto(f"/queue/orders/message/{sent.id}")
    axe(page)
    page.get_by_role("button", name="Cancel message…").click()
    confirm(page.get_by_role("button", name="Cancel this message?"))
    expect(page).to_have_url(re.compile("/queue/orders$"))
    expect(page.locator("#toast")).to_contain_text(f"Cancelled message {sent.sequence:,}")
    assert client.queue_stats("orders").total == 0
    assert sideways_pixels(page) <= 0
