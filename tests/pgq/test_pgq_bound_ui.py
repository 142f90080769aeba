"""Binding and unbinding in the admin UI: its dialogs, what they answer, and who may."""

from collections.abc import Iterator

import httpx
import pytest

from forq_trio import ForqClient, Scope
from support.real_server import SECRET, RealServer, real_server
from support.ui_http import Markup, logged_in

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(pgq_url) -> Iterator[RealServer]:
    with real_server(pgq_url, ui=True, FORQ_ENV="local") as server:
        yield server


@pytest.fixture
def client(server) -> Iterator[ForqClient]:
    with ForqClient(server.url, SECRET) as client:
        yield client


@pytest.fixture
def browser(server) -> Iterator[httpx.Client]:
    with logged_in(server.ui_url) as browser:
        browser.headers["Origin"] = server.ui_url
        yield browser


def filled(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """The answer to the form of a dialog."""
    hidden = Markup(browser.get(path).text).hidden
    return browser.post(path, data=hidden | fields)


def test_a_queue_is_bound_and_unbound(browser, client, table, rows) -> None:
    client.produce("ledger", "x")
    client.purge("ledger")
    assert "Bind to a table…" in browser.get("/queue/ledger").text
    assert filled(browser, "/queue/ledger/bind", table=table).status_code == 303
    assert client.bound_table("ledger").table == table
    page = browser.get("/queue/ledger").text
    assert "Bind to a table…" not in page
    assert "Unbind from the table…" in page
    assert "not known of a table" in page
    assert "<code>forq peek ledger</code>" in page
    rows.add({})
    assert client.queue_stats("ledger").ready == 1
    asked = browser.get("/queue/ledger/unbind").text
    assert "Unbind ledger?" in asked
    assert "EU" in asked
    assert filled(browser, "/queue/ledger/unbind").status_code == 303
    assert client.queue_stats("ledger").table is None
    assert len(rows.all()) == 1
    assert browser.get("/queue/ledger/unbind").status_code == 404


def test_a_queue_that_nobody_knows_is_bound(browser, client, table) -> None:
    assert "Bind it to a table…" in browser.get("/queue/newcomer").text
    assert filled(browser, "/queue/newcomer/bind", table=table).status_code == 303
    assert client.bound_table("newcomer").table == table
    client.delete_queue("newcomer")


def test_what_is_wrong_is_said_in_the_dialog(browser, client, table, rows) -> None:
    rows.run("ALTER TABLE {} DROP COLUMN error_detail, DROP COLUMN metadata")
    client.produce("filled", "x")
    for queue, typed, said in (
        ("fine", table, "lacks columns: error_detail, metadata; indexes on: metadata."),
        ("fine", "No/Such<b>", "There is no table &#39;No/Such&lt;b&gt;&#39; in the database."),
        ("fine", "x" * 64, "The name of a table is 1 to 63 bytes"),
        ("fine", "", "The name of a table is 1 to 63 bytes"),
    ):
        answer = filled(browser, f"/queue/{queue}/bind", table=typed)
        assert answer.status_code == 400
        assert said in answer.text, answer.text
        assert 'aria-invalid="true"' in answer.text
    assert client.queue_stats("filled").table is None


def test_settings_are_those_that_a_table_has(browser, client, table) -> None:
    client.bind("narrow", table)
    form = browser.get("/queue/narrow/settings").text
    assert 'name="lease_ms"' in form
    assert 'name="max_attempts"' in form
    assert 'name="delay_ms"' not in form
    assert 'name="back_off"' not in form
    assert filled(browser, "/queue/narrow/settings", lease_ms="9 s", max_attempts="4").status_code == 303
    assert client.settings("narrow").settings.lease_ms == 9_000
    assert client.bound_table("narrow").table == table
    client.unbind("narrow")


def test_a_token_of_some_queues_binds_none(server, client, table) -> None:
    made = client.create_token("few", scopes=[Scope.ADMIN, Scope.BROWSE], queues="own*")
    client.produce("own1", "x")
    with logged_in(server.ui_url, made.token) as browser:
        browser.headers["Origin"] = server.ui_url
        assert "Bind to a table…" not in browser.get("/queue/own1").text
        assert browser.get("/queue/own1/bind").status_code == 403
        hidden = Markup(browser.get("/queue/own1/purge").text).hidden
        assert browser.post("/queue/own1/bind", data=hidden | {"table": table}).status_code == 403
    client.revoke_token("few")
