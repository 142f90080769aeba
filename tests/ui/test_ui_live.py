"""Live updates in a browser when something comes between: a session that ends, a server that is away, a hidden tab."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Request, expect

from forq_trio import ForqClient
from support.browser import hide
from support.real_server import SECRET, real_server
from support.ui_http import Markup, logged_in


def streams_of(page: Page) -> list[str]:
    """What becomes of the streams of pages of a queue from now on."""
    notes: list[str] = []

    def note(what: str) -> Callable[[Request], None]:
        return lambda request: notes.append(what) if "/live/queue" in request.url else None

    page.on("request", note("begins"))
    page.on("requestfailed", note("ends"))
    return notes


def test_a_page_whose_session_is_ended_goes_to_the_login(ui, open_page, guards, client, producer) -> None:
    client.produce("live", "x")
    token = client.create_token("leaver", ["browse"])
    page = open_page(ui, key=token.token)
    guards[page].expect(401, "/(live|queue)/.*")
    page.goto("/queue/live")
    expect(page.locator("[data-new]")).to_have_text(re.compile(r"^\d+ new$"))
    with logged_in(ui.ui_url) as admin:
        text = admin.get("/system").text
        path = re.search(
            r'leaver.*?action="(/system/sessions/\w+/end)"', text.partition('id="sessions"')[2], re.S
        )[1]
        headers = {"Origin": ui.ui_url, "X-CSRF-Token": Markup(text).hidden["csrf"]}
        assert admin.post(path, headers=headers).status_code in (200, 204, 303)
    expect(page.get_by_label("Secret or token")).to_be_visible()


def test_a_hidden_tab_follows_nothing_until_it_is_shown(page, client) -> None:
    client.produce("live", "x")
    notes = streams_of(page)
    page.goto("/queue/live")
    cell = page.locator("[data-live='tab:all']")
    client.produce("live", "x")
    expect(cell).to_have_text("2")
    assert notes == ["begins"]
    hide(page, True)
    client.produce("live", "x")
    with pytest.raises(AssertionError):
        expect(cell).to_have_text("3", timeout=2_500)
    assert notes == ["begins", "ends"]
    hide(page, False)
    expect(cell).to_have_text("3")
    assert notes == ["begins", "ends", "begins"]


@pytest.mark.tier2
def test_a_server_that_is_away_is_said_to_be_and_followed_again_when_it_is_back(
    tmp_path, open_page, guards
) -> None:
    database = tmp_path / "forq.db"
    with real_server(database, ui=True, FORQ_ENV="local") as server:
        with ForqClient(server.url, SECRET) as client:
            client.produce("live", "x")
        page = open_page(server)
        page.goto("/queue/live")
        state = page.locator("#live-state")
        expect(page.locator("[data-live='tab:all']")).to_have_text("1")
        guards[page].server_may_be_away = True
        assert server.stop() == 0
    page.wait_for_event("requestfailed", lambda request: "/live/poll/queue" in request.url)
    expect(state).to_have_text(re.compile(r"^Not live since \d"))
    streams = streams_of(page)
    expect(page.locator("html")).to_have_class(re.compile("is-lost"))
    with real_server(database, ui=True, FORQ_ENV="local", FORQ_UI_ADDR=server.ui_address) as again:
        expect(state).to_have_text("Live", timeout=30_000)
        with ForqClient(again.url, SECRET) as client:
            client.produce("live", "x")
        expect(page.locator("[data-live='tab:all']")).to_have_text("2")
        assert "begins" in streams
        page.close()
