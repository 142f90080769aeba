"""The history of a queue in a browser: found, looked at, searched, and purged by its name."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import expect

from forq_trio.model.access.types import Scope
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.results.types import AckResult
from forq_trio.storage.engine import EngineSettings
from forq_trio.ui.pages.history import RESULT_LENGTH_MAX
from support.browser import keyboard
from support.in_process_ui import InProcessUi, in_process_ui
from support.ui_http import Markup, logged_in, until


@pytest.fixture(scope="module")
def keeping() -> Iterator[InProcessUi]:
    """One that keeps finished messages; each test has a queue of its own."""
    with in_process_ui(settings=EngineSettings(history=True)) as ui:
        yield ui


def finish(ui: InProcessUi, queue: str, *contents: str) -> int:
    """Send messages and ack them; the sequence of the first."""
    messages = [NewMessage(content, attributes={"k": "<v>"}) for content in contents]
    ui.call(ui.broker.produce_many, queue, messages)
    received = ui.call(ui.broker.receive, queue, max_messages=len(contents))
    ui.call(ui.broker.ack, queue, [delivery.receipt for delivery in received])
    return received[0].sequence


def test_finished_messages_are_looked_at_and_purged(keeping, open_page) -> None:
    broker, call = keeping.broker, keeping.call
    first = finish(keeping, "orders", "one <b>sofa</b>", "two chairs")
    call(broker.produce, "orders", "three tables")
    call(broker.purge, "orders")
    page = open_page(keeping)
    page.goto("/queue/orders")
    page.get_by_role("link", name="History 3").click()
    rows = page.locator("ol.ml a.mr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Deleted")
    page.get_by_role("link", name="Acked", exact=True).click()
    expect(rows).to_have_count(2)
    page.get_by_placeholder("Search content").fill("sofa")
    keyboard(page, "Enter")
    expect(rows).to_have_count(1)
    rows.first.click()
    expect(page.locator("pre.code")).to_contain_text("one <b>sofa</b>")
    expect(page.locator("h1")).to_contain_text(f"Message {first}")
    page.get_by_role("link", name="History", exact=True).click()
    page.get_by_role("button", name="Purge…").click()
    button = page.get_by_role("button", name="Purge 3 messages")
    assert button.is_disabled()
    page.locator("#dialog [name=name]").fill("orders")
    button.click()
    expect(page.locator("#toast")).to_contain_text("Purging 3 messages")
    # The page is as of its loading.
    until(lambda: call(broker.search_history, "orders").total == 0)
    page.get_by_role("link", name="Refresh").click()
    expect(page.locator("ol.ml")).to_contain_text("The history is empty.")


def test_a_finished_message_is_sent_again(keeping, open_page) -> None:
    broker, call = keeping.broker, keeping.call
    call(broker.produce, "wanted", "not wanted", attributes={"k": "<v>"})
    (delivery,) = call(broker.receive, "wanted")
    call(broker.discard, "wanted", [delivery.receipt], reason="no <b>such</b> customer")
    reader = call(broker.create_token, "viewer", [Scope.BROWSE]).token
    page = open_page(keeping)
    place = f"/queue/wanted/history/message/{delivery.id}"
    page.goto(place)
    expect(page.locator("main")).to_contain_text("no <b>such</b> customer")
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("link", name=f"Message {delivery.sequence + 1}").click()
    expect(page.locator("h1")).to_contain_text(f"Message {delivery.sequence + 1}")
    (again,) = call(broker.peek, "wanted")
    assert (again.content, again.attributes) == ("not wanted", {"k": "<v>"})
    with logged_in(keeping.ui_url, reader) as http:
        shown = http.get(place).text
        assert "no &lt;b&gt;such" in shown
        assert "Send again" not in shown
        form = {"csrf": Markup(http.get("/").text).hidden["csrf"]}
        assert http.post(f"{place}/requeue", data=form).status_code == 403


def test_who_may_only_browse_cannot_purge(keeping) -> None:
    broker, call = keeping.broker, keeping.call
    finish(keeping, "read", "a")
    token = call(broker.create_token, "reader", [Scope.BROWSE]).token
    with logged_in(keeping.ui_url, token) as http:
        shown = http.get("/queue/read/history")
        assert shown.status_code == 200
        assert "Purge…" not in shown.text
        assert http.get("/queue/read/history/purge").status_code == 403


def test_the_page_of_a_message_that_has_gone_leads_to_its_content(keeping) -> None:
    broker, call = keeping.broker, keeping.call
    with logged_in(keeping.ui_url) as browser:
        sent = call(broker.produce, "left", "a <b>")
        page = f"/queue/left/message/{sent.id}"
        assert browser.get(page).status_code == 200
        call(broker.purge, "left")
        gone = browser.get(page)
        assert gone.status_code == 404
        link = f"/queue/left/history/message/{sent.id}"
        assert f'href="{link}"' in gone.text
        assert "a &lt;b&gt;" in browser.get(link).text


def test_a_finished_message_has_its_key_and_kind(keeping) -> None:
    broker, call = keeping.broker, keeping.call
    with logged_in(keeping.ui_url) as browser:
        offered = call(broker.offer, "jobs", "customer/<4>", "x", kind="mail")
        call(broker.purge, "jobs")
        page = browser.get(f"/queue/jobs/history/message/{offered.id}").text
    assert "<dt>Key</dt><dd>customer/&lt;4&gt;</dd>" in page
    assert "<dt>Kind</dt><dd>mail</dd>" in page


def test_a_result_shows_with_its_finished_message(keeping) -> None:
    sent = keeping.call(keeping.broker.produce, "results", "x")
    (delivery,) = keeping.call(keeping.broker.receive, "results")
    result = AckResult(f"<i>{'r' * RESULT_LENGTH_MAX}")
    keeping.call(partial(keeping.broker.ack, "results", delivery, result=result))
    with logged_in(keeping.ui_url) as browser:
        text = browser.get(f"/queue/results/history/message/{sent.id}").text
    assert f"&lt;i&gt;{'r' * (RESULT_LENGTH_MAX - 3)}…" in text
    assert "Kept until" in text
    assert Markup(text).refused == []
