"""The System page of servers that share a database: who they are, and which of them fell silent."""

import re
import signal
from collections.abc import Iterator
from functools import partial

import httpx
import psycopg
import pytest
from playwright.sync_api import expect

from forq_trio import ForqClient
from forq_trio.model import limits
from support.browser import PHONE, axe
from support.in_process_ui import InProcessUi, in_process_ui
from support.real_server import SECRET, RealServer, real_server
from support.ui_http import crawl, is_stream, logged_in, until

SAY_NOTHING_FOR = """
UPDATE forq.processes
SET heard_at = heard_at - %s, name = 'forq-d', state = regexp_replace(state, '"name":"[^"]*"', '"name":"forq-d"')
WHERE state LIKE %s
"""


@pytest.fixture
def two(empty_tables) -> Iterator[tuple[RealServer, RealServer]]:
    """Two servers on one database."""
    with (
        real_server(empty_tables, ui=True, FORQ_ENV="local") as a,
        real_server(empty_tables, ui=True, FORQ_ENV="local") as b,
    ):
        yield a, b


def test_each_of_two_servers_lists_both(two) -> None:
    processes = [str(each.process.pid) for each in two]

    def lists_both(http: httpx.Client) -> bool:
        text = http.get("/system").text
        listed = text.partition('aria-label="Processes"')[2].partition("</section>")[0]
        return "those of this process, one of 2" in text and all(pid in listed for pid in processes)

    for each in two:
        with logged_in(each.ui_url) as http:
            until(partial(lists_both, http))


@pytest.mark.tier2
def test_servers_on_one_database_and_one_that_was_killed(two, empty_tables, open_page) -> None:
    a, b = two
    page, phone = open_page(a), open_page(a, **PHONE)
    for each in (page, phone):
        each.goto("/system")
    section = page.get_by_role("group", name="Processes")
    expect(section.locator("tbody tr")).to_have_count(2)
    here = section.locator("tr", has_text="this page")
    expect(here).to_contain_text(str(a.process.pid))
    expect(here).to_contain_text("local")
    expect(page.locator("h1 + .vd")).to_have_text("All is well")
    expect(section.locator("th")).to_contain_text(["Gate wait, p99", "Lag, p99", "Up for"])
    page.reload()  # the foot is as of the page
    expect(page.locator("footer")).to_contain_text("PostgreSQL, durability full")
    expect(page.locator("footer")).to_contain_text("those of this process, one of 2")
    expect(page.get_by_role("heading", name="Gate")).to_be_visible()
    expect(page.get_by_text("Write-ahead log")).to_have_count(0)
    jobs = page.get_by_role("group", name="Jobs")
    ran_on = jobs.locator("tr", has_text="Look at the database").locator("td").nth(2)
    expect(ran_on).to_have_text(re.compile(rf" ({a.process.pid}|{b.process.pid})$"))
    with ForqClient(a.url, SECRET) as client, logged_in(a.ui_url) as http:
        client.produce("orders", "one sofa")
        client.receive("orders", wait_ms=0)
        pages = (answer for _, answer in crawl(http) if not is_stream(answer))
        answers = [answer for answer in pages if "<footer" in answer.text]
        assert len(answers) > 5
        for answer in answers:
            assert "those of this process, one of 2" in answer.text, answer.url
    b.process.send_signal(signal.SIGKILL)
    b.process.wait()
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        for aged_ms, level in ((16_000, "warn"), (30_000, "bad")):
            connection.execute(SAY_NOTHING_FOR, [aged_ms, f'%"process":{b.process.pid},%'])
            verdict = page.locator(f"h1 + .vd.{level}")
            expect(verdict).to_have_text("1 of 2 processes does not answer", timeout=20_000)
    first = section.locator("tbody tr").first
    expect(first).to_contain_text(re.compile(rf"forq-d {b.process.pid}.* ago", re.DOTALL))
    expect(page.locator(".why:visible")).to_contain_text(f"forq-d ({b.process.pid}) was last heard at")
    expect(page.locator(".why:visible")).to_contain_text("1 message in all is in process")
    expect(phone.get_by_role("group", name="Processes").locator(".vd.bad")).to_be_visible()
    for each in (page, phone):
        axe(each)


@pytest.fixture
def here(empty_tables) -> Iterator[InProcessUi]:
    """The admin UI in this process; its pages are closed before it."""
    with in_process_ui(empty_tables) as ui:
        yield ui


@pytest.mark.parametrize("view", [{}, pytest.param(PHONE, marks=pytest.mark.tier2)], ids=["desktop", "phone"])
def test_the_database_is_shown_and_who_holds_a_snapshot(
    here, empty_tables, open_page, monkeypatch, view
) -> None:
    page = open_page(here, **view)
    page.goto("/system")
    look = page.get_by_role("button", name="Run now: Look at the database")
    look.click()
    block = page.locator("section", has=page.get_by_role("heading", name="Database"))
    expect(block).to_contain_text(re.compile(r"Connections\s*\d+ of 100, \d+ ours"))
    expect(block).to_contain_text(re.compile(r"Oldest snapshot\s*none"))
    expect(block).to_contain_text(re.compile(r"Dead rows\s*\d+"))
    expect(block).to_contain_text(re.compile(r"Size\s*[0-9.]+ MiB"))
    expect(page.locator("h1 + .vd")).to_have_text("All is well")
    monkeypatch.setattr(limits, "SNAPSHOT_HELD_MS", 0)
    with psycopg.connect(empty_tables, application_name="<i>dumps") as dumps:
        dumps.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        dumps.execute("SELECT 'not to be shown'")
        look.click()
        expect(block.locator(".vd.warn")).to_contain_text("<i>dumps")
        expect(page.locator("h1 + .vd.warn")).to_contain_text("old, vacuum cannot work")
        why = f"held by <i>dumps (pid {dumps.info.backend_pid}), idle in transaction."
        expect(page.locator(".why:visible")).to_contain_text(why)
        assert "not to be shown" not in page.content()
        axe(block)
    look.click()
    expect(page.locator("h1 + .vd")).to_have_text("All is well")


def test_one_server_shows_no_processes(world) -> None:
    with logged_in(world.ui_url) as client:
        text = client.get("/system").text
    assert 'aria-label="Processes" hidden=""></section>' in text
    assert "Served by" not in text


@pytest.fixture
def differing(empty_tables) -> Iterator[tuple[RealServer, RealServer]]:
    """Two servers on one database, the second one with a secret of its own."""
    other = "another-secret-of-the-second-server"
    with (
        real_server(empty_tables, ui=True, FORQ_ENV="local") as a,
        real_server(empty_tables, ui=True, FORQ_ENV="local", FORQ_AUTH_SECRET=other) as b,
    ):
        yield a, b


@pytest.mark.tier2
def test_servers_with_different_secrets_say_so(differing, open_page) -> None:
    a, b = differing
    for each in differing:
        about = f"{each.url}/healthcheck?verbose"
        until(lambda about=about: httpx.get(about, verify=False).json()["otherSecrets"] == 1)
    page = open_page(a)
    page.goto("/system")
    expect(page.locator("h1 + .vd")).to_have_text("1 of 2 processes has another FORQ_AUTH_SECRET")
    expect(page.locator(".why", has_text="another FORQ_AUTH_SECRET")).to_contain_text(str(b.process.pid))
    row = page.get_by_role("group", name="Processes").locator("tr", has_text="other secret")
    expect(row).to_contain_text(str(b.process.pid))
    axe(page)
