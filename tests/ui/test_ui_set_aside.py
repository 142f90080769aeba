"""Messages of forq.send that were set aside: the System page, the clients and the metrics of a server on PostgreSQL."""

import re
from collections.abc import Callable

import httpx
import psycopg
import pytest
from playwright.sync_api import expect

from forq_trio import ForqClient
from forq_trio.model.access.types import Scope
from support.browser import PHONE, axe
from support.in_process_ui import in_process_ui
from support.real_server import SECRET, real_server
from support.ui_http import Markup, logged_in, until

METRICS_SECRET = "metrics-" + SECRET
ROWS = [
    (
        number,
        "orders",
        f'{{"content": "<b>order {number}</b>"}}',
        "conflict.queues_full",
        "no new queue is made",
    )
    for number in range(1, 31)
]


CRAMPED = """() => [
    ...[...document.querySelectorAll('section.span3 > h2')].filter(h2 => h2.offsetHeight > 96),
    ...[...document.querySelectorAll('section.span3 > h2 .btn')].filter(
        each => each.getBoundingClientRect().top < each.closest('section').getBoundingClientRect().top),
    ...[...document.querySelectorAll('td.job-result')].filter(each => each.scrollWidth > each.clientWidth),
].map(each => each.textContent)"""
"""Headings in a column of words, buttons that are cut off, and results of jobs that cannot be read."""


def fill(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.cursor().executemany("INSERT INTO forq.sent_set_aside VALUES (%s, %s, %s, %s, %s)", ROWS)
        connection.execute("ALTER SEQUENCE forq.sent_id_seq RESTART 1000")


@pytest.fixture
def here(empty_tables):
    """The admin UI in this process."""
    with in_process_ui(empty_tables) as ui:
        fill(empty_tables)
        yield ui


@pytest.fixture
def server(empty_tables):
    more = {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": METRICS_SECRET, "FORQ_ENV": "local"}
    with real_server(empty_tables, ui=True, **more) as server:
        fill(empty_tables)
        with logged_in(server.ui_url) as browser:
            until(lambda: counted(browser, lambda: gauge(server) == str(len(ROWS))))
        yield server


def counted(admin: httpx.Client, holds: Callable[[], bool]) -> bool:
    """Count at once what is counted every 30 seconds. Whether it holds then: one under way may have counted before."""
    origin = str(admin.base_url).rstrip("/")
    headers = {"Origin": origin, "X-CSRF-Token": Markup(admin.get("/system").text).hidden["csrf"]}
    assert admin.post("/system/jobs/metrics.depth/run", headers=headers).status_code in (204, 303)
    return holds()


def gauge(server) -> str:
    text = httpx.get(f"{server.url}/metrics", headers={"X-API-Key": METRICS_SECRET}, verify=False).text
    return re.findall(r"^forq_sent_set_aside (\S+)$", text, re.MULTILINE)[0]


def test_they_are_shown_sent_again_and_deleted(server, open_page):
    assert gauge(server) == "30"
    page = open_page(server)
    page.goto("/system")
    expect(page.locator("h1 + .vd.warn")).to_have_text("30 messages of forq.send set aside")
    section = page.get_by_role("group", name="Set aside")
    expect(section.locator("tbody tr")).to_have_count(20)
    expect(section).to_contain_text("<b>order 1</b>")
    expect(section).to_contain_text("no new queue is made")
    axe(section)
    dialog = page.locator("#dialog")
    section.get_by_role("button", name="Send again: 1", exact=True).click()
    expect(dialog).to_contain_text("Send message 1 again?")
    axe(dialog)
    dialog.get_by_role("button", name="Send again").click()
    expect(page.locator("#toast")).to_have_text("1 message sent again")
    expect(page.locator("h1 + .vd.warn")).to_have_text("29 messages of forq.send set aside")
    section.get_by_role("button", name="Delete 2", exact=True).click()
    dialog.get_by_role("button", name="Keep it").click()
    section.get_by_role("button", name="Delete 2", exact=True).click()
    dialog.get_by_role("button", name="Delete message 2").click()
    expect(page.locator("#toast")).to_have_text("1 message deleted")
    with ForqClient(server.url, SECRET) as client:
        (sent,) = client.receive("orders", wait_ms=30_000)
        assert sent.content == "<b>order 1</b>"
        assert [each.id for each in client.set_aside(limit=2)] == [3, 4]
        assert [each.id for each in client.set_aside(after=29)] == [30]
        assert client.retry_set_aside([3, 3, 99]) == 1
        assert client.delete_set_aside([4, 5]) == 2
    page.goto("/system")
    section.get_by_role("button", name="Send all again").click()
    expect(dialog).to_contain_text("Send 25 messages again?")
    dialog.get_by_role("button", name="Send again").click()
    expect(page.locator("#toast")).to_have_text("25 messages sent again")
    expect(page.locator("h1 + .vd")).to_have_text("All is well")
    expect(section).to_have_count(0)
    assert gauge(server) == "0"


@pytest.mark.tier2
def test_they_fit_a_phone(server, open_page):
    phone = open_page(server, **PHONE)
    phone.goto("/system")
    axe(phone)
    assert phone.evaluate(CRAMPED) == []


def test_all_are_deleted_but_those_that_came_after_the_question(here, empty_tables):
    with logged_in(here.ui_url) as browser:
        asked = Markup(browser.get("/system/set-aside/delete").text)
        with psycopg.connect(empty_tables) as connection:
            connection.execute(
                "INSERT INTO forq.sent_set_aside SELECT 31, queue, message, code, reason FROM forq.sent_set_aside"
                " WHERE id = 30"
            )
        fields = {"csrf": asked.hidden["csrf"], "newest": asked.hidden["newest"]}
        answer = browser.post("/system/set-aside/delete", data=fields, headers={"Origin": here.ui_url})
        assert answer.status_code == 303
        for wrong in ({}, {"newest": "x"}, {"id": "-1"}, {"id": "9" * 30}):
            answer = browser.post(
                "/system/set-aside/delete",
                data=wrong | {"csrf": fields["csrf"]},
                headers={"Origin": here.ui_url},
            )
            assert answer.status_code == 400
    assert [each.id for each in here.call(here.broker.set_aside)] == [31]


def test_who_may_not_administer_sees_that_there_are_some_but_not_which(here):
    key = here.call(here.broker.create_token, "one", [Scope.BROWSE, Scope.REDRIVE]).token
    with logged_in(here.ui_url) as admin, logged_in(here.ui_url, key) as browser:
        wanted = "30 messages of forq.send set aside"  # a verdict is shared
        until(lambda: counted(admin, lambda: wanted in browser.get("/system").text))
        text = browser.get("/system").text
        assert "order 1" not in text
        headers = {"Origin": here.ui_url, "X-CSRF-Token": Markup(text).hidden["csrf"]}
        for path in ("retry", "delete"):
            assert browser.get(f"/system/set-aside/{path}").status_code == 403
            answer = browser.post(f"/system/set-aside/{path}", data={"id": "1"}, headers=headers)
            assert answer.status_code == 403
