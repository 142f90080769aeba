"""The System page: facts, jobs, backups, tokens, sessions; and who may see and do what."""

import re

import pytest
from msgspec.structs import replace
from playwright.sync_api import expect

from forq_trio.model.limits import MIB
from forq_trio.model.server.compaction import CompactionInfo
from forq_trio.ui.pages.system import CompactionView, compaction_view
from support.browser import axe
from support.real_server import SECRET
from support.ui_http import Markup, logged_in


def test_tokens_are_made_shown_once_and_revoked(page, client, guards) -> None:
    page.goto("/system")
    page.get_by_role("button", name="New token").click()
    guards[page].expect(400, "/system/tokens")
    page.get_by_label("Name").fill("not a name")
    page.get_by_role("button", name="Make token").click()
    expect(page.locator(".err")).to_have_text(re.compile("1 to 64 characters"))
    assert page.get_by_label("Name").input_value() == "not a name"
    page.get_by_label("Name").fill("ops")
    page.get_by_label("Ends after").fill("90")
    page.get_by_role("button", name="Make token").click()
    text = page.locator("#token-text").inner_text()
    assert text.startswith("forq_")
    axe(page)
    page.get_by_role("link", name="Done").click()
    row = page.locator("tr", has_text="ops").first
    expect(row).to_contain_text("browse")
    assert text not in page.content()
    (token,) = client.tokens()
    assert (token.name, [str(scope) for scope in token.scopes]) == ("ops", ["browse"])
    page.get_by_role("button", name="Revoke ops").click()
    page.locator("#dialog").get_by_role("button", name="Revoke ops").click()
    expect(page.get_by_text("ops is revoked")).to_be_visible()
    assert client.tokens() == []


def test_a_backup_is_made_and_shown(page, client) -> None:
    client.produce("a", "x")
    page.goto("/system")
    state = page.locator("[data-live='sys:backup']")
    expect(state).to_contain_text("There is no backup in it.")
    page.get_by_role("button", name="Back up now").click()
    expect(page.locator("#toast")).to_have_text("The backup has begun")
    expect(state).to_contain_text(re.compile("forq-.*[.]db"))
    expect(state).to_contain_text("Ended ")
    expect(page.get_by_text("There is no backup in it.")).to_have_count(0)
    page.reload()
    expect(page.locator("#backups td").first).to_contain_text("forq-")


def test_a_job_is_run_and_tells_its_result(page) -> None:
    page.goto("/system")
    page.get_by_role("button", name="Run now: Expire messages").click()
    expect(page.get_by_text("Expire messages: nothing to do")).to_be_visible()
    expect(page.locator("[data-live='job:sweep.expired:last']")).to_contain_text("ago")


def test_secrets_are_masked(ui) -> None:
    with logged_in(ui.ui_url) as browser:
        text = browser.get("/system").text
    assert SECRET not in text
    assert "FORQ_AUTH_SECRET" in text
    assert "********" in text


@pytest.mark.parametrize("scope", ["browse", "redrive"])
def test_who_may_not_administer_sees_facts_alone(ui, client, scope) -> None:
    key = client.create_token("one", ["browse", scope]).token
    with logged_in(ui.ui_url, key) as browser:
        text = browser.get("/system").text
        assert "Wait for the disk" in text
        for hidden in ("FORQ_DB_PATH", "New token", "Back up now", "Run now", "End all"):
            assert hidden not in text
        headers = {"Origin": ui.ui_url, "X-CSRF-Token": Markup(text).hidden["csrf"]}
        for path in (
            "/system/tokens",
            "/system/tokens/one/revoke",
            "/system/backup",
            "/system/sessions/end",
            "/system/jobs/sweep.expired/run",
            f"/system/sessions/{'0' * 64}/end",
        ):
            assert browser.post(path, headers=headers).status_code == 403, path
        for path in ("/system/tokens/new", "/system/tokens/one/revoke", "/system/sessions/end"):
            assert browser.get(path).status_code == 403, path
    assert [token.name for token in client.tokens()] == ["one"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "", "scopes": "browse"}, "name"),
        ({"name": "a b", "scopes": "browse"}, "name"),
        ({"name": "a"}, "scopes"),
        ({"name": "a", "scopes": "everything"}, "scopes"),
        ({"name": "a", "scopes": "browse", "queues": "no spaces"}, "queues"),
        ({"name": "a", "scopes": "browse", "days": "0"}, "days"),
        ({"name": "a", "scopes": "browse", "days": "soon"}, "days"),
        ({"name": "a", "scopes": "browse", "days": "99999"}, "days"),
    ],
)
def test_a_token_that_cannot_be_made_is_told_beside_its_field(ui, client, fields, field) -> None:
    with logged_in(ui.ui_url) as browser:
        csrf = Markup(browser.get("/").text).hidden["csrf"]
        answer = browser.post(
            "/system/tokens",
            data=fields | {"csrf": csrf},
            headers={"Origin": ui.ui_url, "HX-Request": "true"},
        )
        assert answer.status_code == 400
        assert f'id="e-{field}"' in answer.text
    assert client.tokens() == []


def test_free_space_is_offered_to_be_given_back_and_the_band_says_how_far_it_is() -> None:
    """Where 64 MiB and a tenth of the file are free; while one is active, and for ten minutes after its end."""
    much = CompactionInfo(file_bytes=640 * MIB, free_bytes=64 * MIB)
    assert compaction_view(much, 0) == CompactionView(much, shown=False, offered=True)
    for less in (replace(much, free_bytes=64 * MIB - 1), replace(much, file_bytes=641 * MIB)):
        assert not compaction_view(less, 0).offered
    assert not compaction_view(replace(much, possible=False), 0).offered
    for state in ("running", "paused"):
        assert compaction_view(replace(much, state=state), 0) == CompactionView(
            replace(much, state=state), shown=True, offered=False
        )
    ended = replace(much, state="stopped", finished_at=1_000)
    assert compaction_view(ended, 600_999).shown
    assert not compaction_view(ended, 601_000).shown


def test_a_compaction_is_begun_and_told_on_the_page(ui, client) -> None:
    client.produce("a", "x" * 200_000)
    client.purge("a")
    with logged_in(ui.ui_url) as browser:
        page = browser.get("/system").text
        assert "of it free pages" in page
        assert "/system/compaction/start" not in page
        fields = {"csrf": Markup(page).hidden["csrf"]}
        for verb in ("start", "pause", "stop"):
            answer = browser.post(
                f"/system/compaction/{verb}", data=fields, headers={"Origin": ui.ui_url, "HX-Request": "true"}
            )
            assert answer.status_code in (200, 204), answer.text
        page = browser.get("/system").text
        assert "given back</span>" in page
        assert "by the secret" in page
    (token,) = [client.create_token("looks", ["browse"])]
    with logged_in(ui.ui_url, token.token) as browser:
        fields = {"csrf": Markup(browser.get("/system").text).hidden["csrf"]}
        answer = browser.post("/system/compaction/start", data=fields, headers={"Origin": ui.ui_url})
        assert answer.status_code == 403
