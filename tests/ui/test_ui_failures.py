"""What cannot be done is said where it was asked for; what was typed is not lost; long names fit."""

import re

import pytest
from playwright.sync_api import expect

from support.browser import keyboard, sideways_pixels

LONG = "orders." + "abcdefghi" * 6 + "xyz"  # 64 characters


def test_an_action_that_is_not_done_says_so_in_its_place(page, client, guards) -> None:
    client.produce("orders", "x")
    page.goto("/queue/orders")
    guards[page].server_may_be_away = True
    guards[page].expect(503, "/queue/orders/pause")
    page.route("**/queue/orders/*", lambda route: route.abort("connectionrefused"))
    failure = page.locator("[data-failure]")
    for name in ("Send message", "Pause queue"):
        page.get_by_role("button", name=name).click()
        expect(failure).to_have_text("Not done: the server does not answer.")
    part = "<div class='callout bad' role='alert'><p>The inbox is full.</p></div>"
    page.route("**/queue/orders/pause", lambda route: route.fulfill(status=503, body=part))
    page.get_by_role("button", name="Pause queue").click()
    expect(failure).to_have_text("The inbox is full.")
    page.unroute_all()
    page.get_by_role("button", name="Pause queue").click()
    expect(page.get_by_role("button", name="Resume queue")).to_be_visible()
    expect(failure).to_have_count(0)


def test_what_was_typed_into_a_dialog_is_kept(page, client, guards) -> None:
    client.produce("orders", "x")
    page.goto("/queue/orders")
    page.get_by_role("button", name="Send message").click()
    page.locator("#f-content").fill("[1]")
    expect(page.locator("[data-json-hint]")).to_have_text("It is valid JSON.")
    box = page.locator("#f-content").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] - 4)
    page.mouse.down()
    page.mouse.move(
        box["x"] + box["width"] - 4, box["y"] + box["height"] + 40
    )  # a style that the browser sets
    page.mouse.up()
    page.locator("#f-delay").fill("soon")
    guards[page].expect(400, "/queue/orders/send")
    page.locator("#dialog").get_by_role("button", name="Send message").click()
    expect(page.locator("#e-delay")).to_be_visible()
    expect(page.locator("#f-delay")).to_be_focused()
    expect(page.locator("[data-json-hint]")).to_have_text("It is valid JSON.")
    keyboard(page, "Escape")
    expect(page.locator("#dialog [data-warning]")).to_have_text(
        "Press Esc again to throw away what you typed"
    )
    keyboard(page, "Escape")
    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Send message")).to_be_focused()
    keyboard(page, "f")
    page.keyboard.type("word")
    keyboard(page, "Escape")
    assert page.locator("[data-filter]").input_value() == "word"
    assert not page.locator("[data-filter]").evaluate("field => field === document.activeElement")


def test_a_dialog_that_was_closed_takes_the_focus_from_nobody(page, client) -> None:
    """The browser tells the page some time later, when the next key may have moved the focus."""
    client.produce("orders", "x")
    page.goto("/queue/orders")
    page.get_by_role("button", name="Send message").click()
    expect(page.locator("#f-content")).to_be_focused()
    assert page.evaluate(
        """async () => {
            const dialog = document.getElementById("dialog");
            const told = new Promise((resolve) => dialog.addEventListener("close", resolve));
            dialog.close();
            document.querySelector("[data-filter]").focus();
            await told;
            return document.activeElement.matches("[data-filter]");
        }"""
    )


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.tier2), 390])
def test_the_longest_names_do_not_widen_a_page(ui, open_page, client, width) -> None:
    client.configure(LONG[:60], max_attempts=1)
    ids = [client.produce(name, "x").id for name in (LONG, LONG[:60], LONG[:60])]
    (delivery,) = client.receive(LONG[:60], wait_ms=0)
    client.nack(LONG[:60], [delivery.receipt], reason="r" * 200)
    page = open_page(ui, viewport={"width": width, "height": 844})
    dead = f"{LONG[:60]}-dlq"
    for path in (
        "/",
        f"/queue/{LONG}",
        f"/queue/{LONG}/message/{ids[0]}",
        "/dead",
        f"/dead/{dead}",
        f"/queue/{dead}/message/{ids[1]}",
    ):
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        assert sideways_pixels(page) <= 0, path
        inside = page.locator(".fig.wide dd, .chart-top")
        widths = inside.evaluate_all("all => all.map(each => each.scrollWidth - each.clientWidth)")
        assert path == "/" or max(widths, default=0) <= 1, path


def test_without_scripts_a_page_says_what_it_does_not_do(ui, open_page) -> None:
    page = open_page(ui, java_script_enabled=False)
    page.goto("/")
    expect(
        page.get_by_text(re.compile("Without JavaScript this page does not update itself"))
    ).to_be_visible()
    expect(page.locator("#live-state")).to_be_hidden()
