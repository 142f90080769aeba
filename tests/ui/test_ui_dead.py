"""The workbench in a browser: what is found, ticked, redriven and deleted, and how it is asked before."""

import re

import pytest
from playwright.sync_api import Locator, expect

from forq_trio.model.messages.new_message import NewMessage
from support.browser import confirm, keyboard

MOVED = re.compile(r"([1-9][\d,]*) moved")


def moved(band: Locator) -> int:
    """How many messages its task has moved, as it says."""
    return int(MOVED.search(band.inner_text())[1].replace(",", ""))


def fill(client, name="orders", count=60):
    """A queue whose messages have all failed; every third one because of a timeout."""
    client.configure(name, max_attempts=1)
    client.produce_many(name, [NewMessage(f'{{"order": {number}}}') for number in range(count)])
    taken = client.receive(name, max_messages=count, wait_ms=0)
    client.nack(name, [each.receipt for each in taken[::3]], reason="timeout")
    client.nack(name, [each.receipt for place, each in enumerate(taken) if place % 3], reason="410 Gone")
    return f"{name}-dlq"


def test_a_group_is_chosen_searched_and_redriven_and_the_band_tells_of_it(ui, page, client):
    queue = fill(client)
    page.goto(f"{ui.ui_url}/dead")
    page.get_by_role("link", name=queue).click()
    page.locator("#groups").get_by_text("410 Gone").click()
    expect(page.locator("#bound")).to_contain_text("Found 40. Searched all 60")
    keyboard(page, "f")
    page.keyboard.type('"order"')
    keyboard(page, "Enter")
    expect(page.locator("mark").first).to_have_text('"order"')
    expect(page.locator(".chip")).to_have_count(2)
    page.get_by_role("button", name="Redrive all…").click()
    expect(page.locator("#dialog")).to_contain_text("All 60 messages of the queue, whatever the filter shows")
    keyboard(page, "Escape")
    page.locator("#bound").get_by_role("button", name="Select these").click()
    expect(page.locator("[data-selected]")).to_contain_text("All 40 that match, as of")
    page.get_by_role("button", name="Redrive…").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("How many a second").fill("2")
    dialog.get_by_role("button", name="Redrive 40 messages").click()
    band = page.locator(".task")
    expect(band).to_contain_text('Redriving “410 Gone”, attempts used up, those with “"order"” back to where')
    expect(band).to_contain_text(MOVED)
    page.reload()
    before = moved(band)
    expect(band).not_to_contain_text(f"{before} moved")
    band.get_by_role("button", name="Pause").click()
    expect(band).to_contain_text("Paused:")
    (task,) = client.redrives(queue)
    assert (task.state, task.rate_per_second) == ("paused", 2)
    band.get_by_role("button", name="Resume").click()
    expect(band).not_to_contain_text("Paused:")
    expect(band).not_to_contain_text(f"{task.moved} moved")
    assert moved(band) > task.moved > before > 0
    assert int(band.locator("progress").get_attribute("value")) > 0
    band.get_by_role("button", name="Cancel").click()
    expect(band).to_contain_text("Cancelled:")
    assert 0 < client.queue_stats("orders").ready < 40
    band.get_by_role("button", name="Dismiss").click()
    expect(band).to_have_count(0)


@pytest.mark.tier2
def test_a_few_are_deleted_by_a_button_that_asks_and_all_by_typing_the_name(ui, page, client):
    queue = fill(client)
    page.goto(f"{ui.ui_url}/dead/{queue}")
    expect(page.locator("[data-select]")).to_have_count(50)
    page.locator("#rows-more").scroll_into_view_if_needed()
    expect(page.locator("[data-select]")).to_have_count(60)
    for place in range(2):
        page.locator("[data-select]").nth(place).check()
    page.locator("[data-few]").dblclick()  # only asks
    expect(page.locator("[data-few]")).to_have_text("Delete 2 messages?")
    assert client.queue_stats(queue).total == 60
    confirm(page.locator("[data-few]"))
    expect(page.locator("#toast")).to_contain_text("Deleted 2 messages")
    expect(page.locator("h1 + .lede")).to_contain_text("58 dead letters")
    page.get_by_role("button", name="Delete all…").click()
    button = page.locator("#dialog [data-confirm]")
    expect(button).to_be_disabled()
    page.locator("#dialog [name=name]").fill(queue)
    button.click()
    expect(page.locator("#toast")).to_contain_text("Deleting 58 messages")


def test_a_message_that_is_redriven_in_the_list_is_struck_out_and_counts_follow(ui, page, client):
    queue = fill(client, "lamps", 6)
    page.goto(f"{ui.ui_url}/dead/{queue}?reason=max_attempts_reached")
    expect(page.locator("#bound")).to_contain_text("Found 6.")
    expect(page.locator("#groups")).to_contain_text("All 6")
    rows = page.locator("[data-list] > [data-seq]")
    first, second = rows.nth(0), rows.nth(1)
    first.locator("[data-select]").check()
    first.locator(".seq").click()
    page.locator(".open [data-message]").get_by_role("button", name="Redrive", exact=True).click()
    expect(page.locator("#toast")).to_contain_text("Redriven to lamps")
    expect(first).to_have_class(re.compile(r"\bgone\b"))
    expect(first.locator(".gone-word")).to_have_text("redriven")
    expect(first.locator("[type=checkbox]")).to_be_disabled()
    expect(page.locator("[data-list] .open button")).to_have_count(0)
    expect(first.locator(".seq")).to_be_focused()
    expect(page.locator("h1 + .lede")).to_contain_text("5 dead letters")
    expect(page.locator("#bound")).to_contain_text("Found 5.")
    expect(page.locator("#groups")).to_contain_text("All 5")
    expect(page.locator("[data-selection-bar]")).to_have_class(re.compile("is-empty"))
    second.locator(".seq").click()
    page.locator(".open [data-message]").get_by_role("button", name="Delete…").click()
    confirm(page.locator(".open [data-message]").get_by_role("button", name="Delete this message?"))
    expect(second.locator(".gone-word")).to_have_text("deleted")
    expect(page.locator("#bound")).to_contain_text("Found 4.")
    page.get_by_role("button", name="Redrive all…").click()
    expect(page.locator("#dialog")).to_contain_text("Redrive 4 messages?")
    keyboard(page, "Escape")
    client.redrive(queue, [client.search_dead_letters(queue).messages[-1].id])
    expect(rows.nth(5).locator(".gone-word")).to_have_text("gone")
    assert client.queue_stats("lamps").ready == 2
