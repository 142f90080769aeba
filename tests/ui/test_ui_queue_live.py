"""A queue's messages in a browser while others send, claim and ack: what is shown stays where it is, and stays true."""

import re

import pytest
from playwright.sync_api import Page, expect

from forq_trio.model.messages.new_message import NewMessage
from support.browser import keyboard
from support.real_server import SECRET
from support.traffic import live_producer

SHORT_MS = 20_000
"""A lease that does not end before a busy machine has loaded the page, whose clock is then set forward by as much."""
TOPS = "rows => rows.map(row => [row.dataset.seq, row.getBoundingClientRect().top])"


def sequences(page: Page) -> list[int]:
    return page.locator("[data-seq]").evaluate_all("rows => rows.map(row => Number(row.dataset.seq))")


def test_rows_and_scroll_stay_while_messages_arrive_and_refresh_counts_them(page, ui, client) -> None:
    client.produce_many("live", [NewMessage(f"number {number}") for number in range(40)])
    page.goto("/queue/live")
    page.mouse.move(600, 600)
    page.mouse.wheel(0, 400)
    page.wait_for_function("scrollY === 400")
    rows = page.locator("[data-seq]")
    before = rows.evaluate_all(TOPS)
    refresh = page.locator("[data-new]")
    with live_producer(ui.url, SECRET, "live", per_second=20) as traffic:
        expect(refresh).to_have_text(re.compile(r"^\d+ new$"))
        assert rows.evaluate_all(TOPS) == before
    expect(refresh).to_have_text(f"{traffic.sent} new")
    assert rows.evaluate_all(TOPS) == before
    keyboard(page, "r")
    expect(page.locator("[data-seq]").first).not_to_have_attribute("data-seq", before[0][0])
    expect(refresh).to_have_text("")


def test_scrolling_shows_every_message_once_while_others_arrive(page, ui, client) -> None:
    sent = client.produce_many("live", [NewMessage(f"number {number}") for number in range(120)])
    page.goto("/queue/live")
    assert len(sequences(page)) == 50
    with live_producer(ui.url, SECRET, "live", per_second=20):
        for count in (100, 120):
            page.locator("#more").scroll_into_view_if_needed()
            expect(page.locator("[data-seq]")).to_have_count(count)
    expect(page.locator("#more")).to_have_text("All 120 shown")
    assert sequences(page) == sorted((message.sequence for message in sent), reverse=True)


def test_a_lease_counts_down_and_what_is_acked_elsewhere_is_struck_out(page, client) -> None:
    client.produce_many("orders", [NewMessage("x") for _ in range(2)])
    other, acked = (client.receive("orders", lease_ms=60_000)[0] for _ in range(2))
    page.goto("/queue/orders?state=processing")
    rows = {each.id: page.locator(f"[data-page$='{each.id}']") for each in (other, acked)}
    left = rows[other.id].locator("[data-left]")
    first = int(left.inner_text().removesuffix(" s"))
    expect(left).not_to_have_text(f"{first} s")
    assert int(left.inner_text().removesuffix(" s")) < first
    client.ack("orders", [acked.receipt])
    expect(rows[acked.id]).to_have_class("gone")
    expect(rows[acked.id]).to_contain_text("acked or moved")
    expect(rows[other.id]).not_to_have_class("gone")


@pytest.mark.tier2
def test_a_lease_that_ends_says_so(page, client) -> None:
    client.produce_many("orders", [NewMessage("x") for _ in range(2)])
    short, other = (client.receive("orders", lease_ms=lease)[0] for lease in (SHORT_MS, 60_000))
    page.goto("/queue/orders?state=processing")
    rows = {each.id: page.locator(f"[data-page$='{each.id}']") for each in (short, other)}
    left = rows[short.id].locator("[data-left]")
    expect(left).to_have_text(re.compile(r"^[\d.]+ s$"))
    # Only now: a page that is loaded with a clock of Playwright's may take the server's for another one.
    page.clock.install()
    page.clock.fast_forward(SHORT_MS)
    expect(left).to_have_text("ended")
    expect(rows[other.id].locator("[data-left]")).to_have_text(re.compile(r"^\d+ s$"))
    expect(rows[other.id]).not_to_have_class("gone")


@pytest.mark.tier2
def test_limits_appear_change_and_go_while_the_page_is_open(page, client) -> None:
    client.produce("limited", "x")
    page.goto("/queue/limited")
    limits = page.locator("[data-live='limits']")
    expect(page.locator("[data-live='tab:all']")).to_have_text("1")
    expect(limits).to_be_hidden()
    for most in (3, 5):
        client.configure("limited", in_flight_max=most)
        expect(limits).to_be_visible()
        expect(limits).to_contain_text(f"0 of {most}")
    client.configure("limited", in_flight_max=None)
    expect(limits).to_be_hidden()
    expect(limits).to_be_empty()


def test_the_line_of_a_limit_is_not_drawn_through_words(page, client) -> None:
    client.configure("rated", rate={"count": 1, "periodMs": 1_000})
    client.produce("rated", "x")
    page.goto("/queue/rated")
    since = page.locator("[data-chart='sent'] .since")
    expect(since).to_be_visible()
    colour = "element => getComputedStyle(element).backgroundColor"
    assert since.evaluate(colour) == page.locator("html").evaluate(colour)
