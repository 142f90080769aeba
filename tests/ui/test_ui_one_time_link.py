"""The one-time link to the admin UI: it logs in once, soon, by a script, and is in no log."""

import io
import json

import httpx
import pytest
from playwright.sync_api import expect

from forq_trio.model.limits import AUTH_FAILURES_MAX, LINK_SECONDS_MAX
from forq_trio.telemetry import log
from forq_trio.ui.one_time_link import OneTimeLink
from support.browser import axe, guarded_page
from support.in_process_ui import InProcessUi, in_process_ui
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET
from support.ui_http import Markup


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def attempt(ui: InProcessUi, token: str, key: str = "") -> httpx.Response:
    """Post it as the script does, from a browser without cookies."""
    with httpx.Client(base_url=ui.ui_url, verify=False, timeout=WAIT_SECONDS_MAX) as visitor:
        fields = Markup(visitor.get("/login").text).hidden | {"link": token, "key": key}
        return visitor.post("/login", data=fields, headers={"Origin": ui.ui_url})


def test_it_logs_in_once_and_wrong_ones_do_not_use_it_up() -> None:
    link = OneTimeLink()
    with in_process_ui(link=link) as ui:
        for wrong in ("wrong", link.token[:-1], f"{link.token}x", "ü" * 22):
            answer = attempt(ui, wrong)
            assert (answer.status_code, "This link has been used, or is too old." in answer.text) == (
                403,
                True,
            )
        answer = attempt(ui, link.token)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")
        with httpx.Client(base_url=ui.ui_url, verify=False, cookies=answer.cookies) as visitor:
            assert "secret · admin" in visitor.get("/").text
        assert attempt(ui, link.token).status_code == 403
        assert attempt(ui, "", SECRET).status_code == 303


def test_it_ends() -> None:
    clock = Clock()
    early, late = OneTimeLink(clock), OneTimeLink(clock)
    clock.seconds += LINK_SECONDS_MAX - 1
    assert early.use(early.token)
    clock.seconds += 1
    assert not late.use(late.token)
    with in_process_ui(link=late) as ui:
        assert attempt(ui, late.token).status_code == 403


def test_a_server_that_was_started_without_one_knows_none() -> None:
    with in_process_ui() as ui:
        page = httpx.get(f"{ui.ui_url}/login", verify=False).text
        assert "link.js" not in page
        assert 'name="link"' not in page
        assert attempt(ui, "x" * 22).status_code == 403
        assert attempt(ui, "").status_code == 403


def test_whoever_fetches_the_address_ahead_does_not_use_it_up() -> None:
    """Requests have no part of an address behind its #: of a GET it cannot depend."""
    link = OneTimeLink()
    with in_process_ui(link=link) as ui:
        for method in ("GET", "HEAD", "GET"):
            assert httpx.request(method, link.url(ui.ui_url), verify=False).status_code in (200, 405)
        assert httpx.get(f"{ui.ui_url}/login?link={link.token}", verify=False).status_code == 200
        assert attempt(ui, link.token).status_code == 303


def test_no_log_has_it(monkeypatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(log, "_logger", log._logger)
    log.configure("debug", "json", written)
    link = OneTimeLink()
    with in_process_ui(link=link) as ui:
        assert attempt(ui, link.token).status_code == 303
        for _ in range(AUTH_FAILURES_MAX):
            attempt(ui, link.token)
    events = [json.loads(line)["event"] for line in written.getvalue().splitlines()]
    assert "auth.throttled" in events
    assert link.token not in written.getvalue()


def test_a_browser_follows_it_and_forgets_it(chromium) -> None:
    link = OneTimeLink()
    with in_process_ui(link=link) as ui, chromium.awake() as browser:
        with guarded_page(browser, ui.ui_url) as (page, _):
            page.goto(link.url(""))
            page.wait_for_url(f"{ui.ui_url}/")
            expect(page.locator("h1").first).to_be_visible()
            page.go_back()
            assert link.token not in page.url
        with guarded_page(browser, ui.ui_url) as (page, guard):
            guard.expect(403, "/login")
            page.goto(link.url(""))
            expect(page.get_by_role("alert")).to_contain_text("This link has been used, or is too old.")
            assert page.url == f"{ui.ui_url}/login"
            axe(page)
            page.locator("input[type=password]").fill(SECRET)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(f"{ui.ui_url}/")


@pytest.fixture(autouse=True)
def logging_as_before(monkeypatch) -> None:
    """`log.configure` sets up the log of its process, which here is the tests'."""
    import logging

    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers[:])
    monkeypatch.setattr(root, "level", root.level)
