"""The list of queues in a browser: live without anything moving, sorted, filtered, by keyboard, on a phone."""

import re

import pytest
from playwright.sync_api import expect

from forq_trio import ForqClient
from forq_trio.model.access.types import Scope
from forq_trio.model.schedules.types import NewSchedule
from support.browser import axe, dark, focused, keyboard, sideways_pixels
from support.in_process_ui import in_process_ui
from support.real_server import SECRET
from support.ui_http import Markup, flat, logged_in
from support.workers import part, report

ROW = re.compile(
    r'<td class="c-name nm"><a href="/queue/([^"]+)".*? data-live="q:[^"]*:ready"[^>]*>([\d,]+)<'
)


def test_the_first_queue_appears_by_itself(page, client) -> None:
    page.goto("/")
    expect(page.locator("h1")).to_have_text("No queue yet")
    page.get_by_role("tab", name="Python").click()
    expect(page.locator("#how-python")).to_be_visible()
    expect(page.locator("#how-curl")).to_be_hidden()
    axe(page)
    client.produce("emails", "hello")
    expect(page.get_by_role("link", name="emails")).to_be_visible()
    expect(page.locator("h1")).to_have_text("The queue is healthy")


def test_numbers_change_in_place_and_nothing_moves(page, client, producer) -> None:
    for name in ("alpha", "beta", "live"):
        client.produce(name, "x")
    page.goto("/")
    cell = page.locator('[data-live="q:live:ready"]')
    before = int(cell.inner_text().replace(",", ""))
    row = page.locator("tr.row", has_text="beta").element_handle()
    link = page.get_by_role("link", name="beta")
    link.focus()
    expect(cell).not_to_have_text(f"{before:,}")
    client.produce("gamma", "x")
    expect(page.locator('[data-live="new-queues"]')).to_have_text("1 new queue")
    expect(page.get_by_role("link", name="gamma")).to_have_count(0)
    assert row.evaluate("row => row.isConnected")
    assert focused(page) == "a beta"
    keyboard(page, "r")
    expect(page.get_by_role("link", name="gamma")).to_be_visible()


@pytest.mark.tier2
def test_charts_of_a_young_server_show_what_there_is(page, client) -> None:
    client.produce("young", "x")
    for place in ("/", "/queue/young"):
        page.goto(place)
        ranges = page.get_by_role("group", name="Time of the charts").first
        expect(ranges.locator("[aria-current=true]")).to_have_text("10 min")
        ranges.get_by_role("link", name="1 h").click()
        page.wait_for_url("**?range=1h")
        expect(ranges.locator("[aria-current=true]")).to_have_text("1 h")
        ranges.get_by_role("link", name="10 min").click()
        page.wait_for_url(f"**{place}")


def test_pausing_really_pauses(page, client, producer) -> None:
    client.produce("live", "x")
    page.goto("/")
    cell = page.locator('[data-live="q:live:ready"]')
    expect(cell).not_to_have_text("1")
    keyboard(page, "p")
    expect(page.locator("#live-state")).to_have_text(re.compile("Paused"))
    text = cell.inner_text()
    stored = client.queue_stats("live").ready
    while client.queue_stats("live").ready < stored + 15:
        assert cell.inner_text() == text
    keyboard(page, "p")
    expect(cell).not_to_have_text(text)


def test_filter_sort_and_kind_are_in_the_url(world) -> None:
    with logged_in(world.ui_url) as http:

        def listed(**query: str) -> list[tuple[str, int]]:
            """Names and ready messages of the rows."""
            rows = ROW.findall(flat(http.get("/", params=query).text))
            return [(name, int(ready.replace(",", ""))) for name, ready in rows]

        links = Markup(http.get("/").text).links
        assert {"/?sort=ready&desc=1", "/?kind=dead"} <= set(links)
        orders = listed(q="orders*")
        assert orders
        assert all(name.startswith("orders") for name, _ in orders)
        ready = [count for _, count in listed(sort="ready", desc="1")]
        assert ready == sorted(ready, reverse=True)
        assert len(set(ready)) > 5
        assert http.get("/?sort=ready&desc=1").text.count('aria-sort="descending"') == 1
        assert Markup(http.get("/?sort=ready&desc=1").text).hidden.items() >= {
            ("sort", "ready"),
            ("desc", "1"),
        }
        dead = listed(kind="dead")
        assert dead
        assert all(name.endswith("-dlq") for name, _ in dead)
        assert "No queue has such a name" in http.get("/?q=nothing-is-called-so").text


def test_rows_are_reached_and_opened_by_keys(world_page) -> None:
    page = world_page
    page.goto("/")
    names = page.locator("tbody .c-name a").all_inner_texts()
    keyboard(page, "j")
    keyboard(page, "j")
    assert focused(page) == f"a {names[1]}"
    keyboard(page, "k")
    assert focused(page) == f"a {names[0]}"
    keyboard(page, "?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    keyboard(page, "Escape")
    keyboard(page, "g s")
    page.wait_for_url("**/system")


def test_the_theme_is_chosen_and_stays(world_page) -> None:
    page = world_page
    page.goto("/dead")
    for theme in ("dark", "light"):
        with page.expect_response("**/theme"):
            page.get_by_role("button", name="Switch between light and dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    dark(page)
    axe(page)


@pytest.mark.tier2
def test_a_chart_tells_its_values_by_pointer_and_keys(page, client, producer) -> None:
    client.produce("live", "x")
    page.goto("/?range=10m")
    chart = page.locator('[data-chart="ready"]')
    expect(chart.locator(".lg b")).not_to_have_text("0")
    chart.focus()
    keyboard(page, "ArrowLeft")
    expect(chart.locator("h2")).not_to_have_text("Ready messages")
    keyboard(page, "Tab")
    expect(chart.locator("h2")).to_have_text("Ready messages")


TEXTS_IN_TWO_LINES = """
[...document.querySelectorAll(".brand, .bar .nav a")].filter(each =>
    [...each.childNodes].some(node => {
        const range = document.createRange();
        range.selectNode(node);
        return node.nodeType === Node.TEXT_NODE && node.data.trim() && range.getClientRects().length > 1;
    })).map(each => each.innerText)
"""
WIDTHS = (1440, 1281, 1280, 1200, 1181, 1180, 1081, 1080, 1024, 901, 900, 800, 761)


def test_the_header_is_one_line_at_every_width(open_page) -> None:
    """With large numbers, a warning and a long name. At 1,200 pixels the brand and "Dead letters" took two lines."""
    with in_process_ui() as ui:
        broker = ui.broker
        for number in range(120):
            ui.call(broker.produce, f"orders.{number}", "x")
            ui.call(
                broker.save_schedule, f"s{number}", NewSchedule(queue="orders.1", content="x", every="1h")
            )
            ui.call(broker.report_worker, report(number, part("orders.1")))
        name = "production-operations-team-of-europe"
        for key in (ui.call(broker.create_token, name, list(Scope)).token, SECRET):
            page = open_page(ui, key=key)
            page.goto("/dead")  # which has no table of queues below the header
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 600})
                assert page.evaluate(TEXTS_IN_TWO_LINES) == [], width
                assert sideways_pixels(page) <= 0, width
            page.close()


def test_on_a_phone_it_fits(phone, client: ForqClient) -> None:
    client.produce("a-queue-with-a-name-that-is-as-long-as-it-may-be-" + "x" * 14, "x")
    phone.goto("/")
    assert sideways_pixels(phone) == 0
    expect(phone.get_by_role("navigation", name="Main, below")).to_be_visible()
    axe(phone)


@pytest.mark.tier2
def test_where_events_do_not_get_through_it_polls(ui, open_page, client, producer) -> None:
    client.produce("live", "x")
    page = open_page(ui)
    page.route(re.compile(r"/live/(?!poll)"), lambda route: route.abort("aborted"))
    page.goto("/")
    cell = page.locator('[data-live="q:live:ready"]')
    text = cell.inner_text()
    expect(cell).not_to_have_text(text, timeout=30_000)
