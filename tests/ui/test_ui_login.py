"""Who may come in, what a session is worth, and which requests are ours (contract F15)."""

import re
import socket
from hashlib import sha256

import httpx
import pytest
from playwright.sync_api import expect

from forq_trio import ForqClient
from forq_trio.model.limits import SESSIONS_A_KEY_MAX
from forq_trio.storage.open import SQLITE_PREFIX
from support.browser import axe
from support.in_process_ui import InProcessUi, in_process_ui
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, RealServer
from support.ui_http import Markup, logged_in

PATHS = ("/", "/system", "/queue/a", "/dead", "/live/overview", "/live/poll/overview", "/go?to=a")


def cookie(browser: httpx.Client) -> str:
    return browser.cookies["ForqSession"]


def csrf(browser: httpx.Client) -> str:
    return Markup(browser.get("/").text).hidden["csrf"]


def test_without_a_session_there_is_only_the_login(ui) -> None:
    with httpx.Client(base_url=ui.ui_url, verify=False) as stranger:
        for path in PATHS:
            answer = stranger.get(path)
            assert answer.status_code in (303, 401), path
            assert not answer.content
        assert stranger.get("/system").headers["Location"] == "/login?next=%2Fsystem"
        assert stranger.get("/", headers={"Cookie": "ForqSession=" + "x" * 43}).status_code == 303
        assert stranger.get("/", headers={"Cookie": "ForqSession=" + "x" * 9_000}).status_code == 303


def test_a_login_counts_at_once_at_another_server(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process_ui(database) as one, in_process_ui(database) as other:
        # It hears of nothing by itself.
        monkeypatch.setattr(other.broker._writer, "catch_up", lambda *_: None)
        with logged_in(one.ui_url) as browser:
            session = {"Cookie": f"ForqSession={cookie(browser)}"}
        assert httpx.get(other.ui_url, headers=session, verify=False).status_code == 200
        unknown = {"Cookie": "ForqSession=unknown"}
        assert httpx.get(other.ui_url, headers=unknown, verify=False).status_code == 303


def test_wrong_keys_are_refused_and_then_throttled() -> None:
    with in_process_ui() as own, httpx.Client(base_url=own.ui_url, verify=False) as guesser:

        def attempt(key: str) -> httpx.Response:
            fields = Markup(guesser.get("/login").text).hidden
            return guesser.post("/login", data=fields | {"key": key}, headers={"Origin": own.ui_url})

        for key in ("wrong", "", "ü" * 40, "x" * 5_000, "\0"):
            answer = attempt(key)
            assert answer.status_code == 403, key
            assert "neither the server’s secret nor a token" in answer.text
        answer = attempt("wrong")
        assert answer.status_code == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        answer = attempt(SECRET)
        assert answer.status_code == 303
        guesser.cookies.set("ForqSession", answer.cookies["ForqSession"])
        assert re.search(r"Key missing or wrong</dt><dd[^>]*>6<", guesser.get("/system").text)


def test_somebody_logs_in_by_the_form_and_out_by_the_menu(ui, open_page, guards) -> None:
    page = open_page(ui, key=None)
    page.goto("/system")
    field = page.get_by_label("Secret or token")
    guards[page].expect(403, "/login")
    field.fill("wrong")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("neither the server’s secret nor a token")
    axe(page)
    expect(field).to_be_focused()
    field.fill(SECRET)
    field.press("Enter")
    expect(page.locator("h1")).to_have_text("System")
    page.locator("summary.who").click()
    page.get_by_role("button", name="Log out").click()
    expect(field).to_be_visible()
    page.goto("/")
    expect(field).to_be_visible()


def test_a_token_needs_browse_and_sees_its_queues_alone(ui, client) -> None:
    client.produce("orders.new", "x")
    client.produce("emails", "x")
    producer = client.create_token("sender", ["produce"]).token
    looker = client.create_token("looker", ["browse"], "orders.*").token
    with httpx.Client(base_url=ui.ui_url, verify=False) as stranger:
        fields = Markup(stranger.get("/login").text).hidden | {"key": producer}
        for _ in range(6):  # is no failure that locks out
            answer = stranger.post("/login", data=fields, headers={"Origin": ui.ui_url})
            assert answer.status_code == 403
            assert "This token may not browse; logging in takes the scope browse." in answer.text
    with logged_in(ui.ui_url, looker) as browser:
        page = browser.get("/").text
        assert "orders.new" in page
        assert "emails" not in page
        assert "looker · read-only" in page
        assert browser.get("/system").status_code == 403
        client.revoke_token("looker")
        answer = browser.get("/")
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/login?ended=1"
        assert "Your session has ended." in browser.get("/login?ended=1").text
        assert "Your session has ended." not in browser.get("/login").text


def has_session(server: RealServer | InProcessUi, session: str) -> bool:
    answer = httpx.get(f"{server.ui_url}/", headers={"Cookie": f"ForqSession={session}"}, verify=False)
    assert answer.status_code in (200, 303)
    return answer.status_code == 200


def test_a_session_is_revoked_by_another(ui) -> None:
    with logged_in(ui.ui_url) as browser:
        session = cookie(browser)
    with logged_in(ui.ui_url) as other:
        path = f"/system/sessions/{sha256(session.encode()).hexdigest()}/end"
        assert path in other.get("/system").text
        assert has_session(ui, session)
        other.post(path, headers={"Origin": ui.ui_url, "X-CSRF-Token": csrf(other)})
        assert not has_session(ui, session)
        assert has_session(ui, cookie(other))


@pytest.mark.parametrize(
    ("secret", "survives"), [(SECRET, True), pytest.param(SECRET[::-1], False, marks=pytest.mark.tier2)]
)
def test_a_session_survives_a_restart_but_not_another_secret(tmp_path, secret, survives) -> None:
    database = f"{SQLITE_PREFIX}{tmp_path / 'forq.db'}"
    with in_process_ui(database) as server, logged_in(server.ui_url) as browser:
        session = cookie(browser)
    with in_process_ui(database, FORQ_AUTH_SECRET=secret) as server:
        assert has_session(server, session) == survives


def test_after_the_logout_the_cookie_is_worth_nothing(ui) -> None:
    with logged_in(ui.ui_url) as browser:
        session = cookie(browser)
        answer = browser.post("/logout", data={"csrf": csrf(browser)}, headers={"Origin": ui.ui_url})
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/login"
    assert (
        httpx.get(f"{ui.ui_url}/", headers={"Cookie": f"ForqSession={session}"}, verify=False).status_code
        == 303
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Referer": "http://evil.example/"},
        {"Origin": "{ui}", "X-CSRF-Token": "x" * 55},
        {"Origin": "http://evil.example", "X-CSRF-Token": "{csrf}"},
        {"X-CSRF-Token": "{csrf}"},
    ],
)
def test_a_request_from_elsewhere_changes_nothing(ui, client, headers) -> None:
    with logged_in(ui.ui_url) as browser:
        made = {
            name: value.replace("{ui}", ui.ui_url).replace("{csrf}", csrf(browser))
            for name, value in headers.items()
        }
        data = {"name": "mine", "scopes": "admin"}
        answer = browser.post("/system/tokens", data=data, headers=made)
        assert answer.status_code == 403
        is_ours = made.get("Origin") == ui.ui_url
        assert ("a proxy in front has to hand on Host" in answer.text) is not is_ours
        assert client.tokens() == []


def test_a_page_of_another_session_is_worth_nothing(ui, client) -> None:
    with logged_in(ui.ui_url) as one, logged_in(ui.ui_url) as other:
        headers = {"Origin": ui.ui_url, "X-CSRF-Token": csrf(one)}
        data = {"name": "mine", "scopes": "admin"}
        assert other.post("/system/tokens", data=data, headers=headers).status_code == 403
        assert one.post("/system/tokens", data=data, headers=headers).status_code == 200
        assert [token.name for token in client.tokens()] == ["mine"]


def test_names_that_were_not_configured_are_refused(ui) -> None:
    for host in ("evil.example", "localhost.evil.example:80", ""):
        answer = httpx.get(f"{ui.ui_url}/login", headers={"Host": host}, verify=False)
        assert answer.status_code in (400, 421), host
    assert httpx.get(f"{ui.ui_url}/login", headers={"Host": "10.1.2.3:99"}, verify=False).status_code == 200


BEHIND_A_PROXY = {"FORQ_ENV": "pro", "FORQ_UI_HOSTS": "queue.example"}


def test_a_login_without_its_cookie_says_why() -> None:
    """Browsers drop Secure cookies that come over plain HTTP, and so does httpx.

    Behind a proxy with TLS the browser's Origin has https, whatever the proxy speaks with us.
    """
    with (
        in_process_ui(**BEHIND_A_PROXY) as server,
        httpx.Client(base_url=server.ui_url, verify=False) as browser,
    ):
        page = browser.get("/login")
        fields = Markup(page.text).hidden | {"key": SECRET}
        for said in ({"Origin": server.ui_url}, {"Referer": f"{server.ui_url}/login"}):
            answer = browser.post("/login", data=fields, headers=said)
            assert answer.status_code == 403
            assert "this page came over plain HTTP" in answer.text
            assert "FORQ_ENV=local" in answer.text
            assert "too old" not in answer.text
        named = {"Host": "queue.example", "Origin": "https://queue.example"}
        answer = browser.post("/login", data=fields, headers=named)
        assert (answer.status_code, "allow this site to set cookies" in answer.text) == (403, True)
        assert "plain HTTP" not in answer.text
        kept = named | {"Cookie": page.headers["Set-Cookie"].partition(";")[0]}
        assert browser.post("/login", data=fields, headers=kept).status_code == 303
        other = named | {"Cookie": "ForqLogin=" + "x" * 22}
        answer = browser.post("/login", data=fields, headers=other)
        assert (answer.status_code, "too old" in answer.text) == (403, True)


def test_under_a_base_path_every_link_and_cookie_has_it() -> None:
    host = {"Host": "queue.example"}
    with (
        in_process_ui(FORQ_UI_BASE_PATH="/forq", **BEHIND_A_PROXY) as server,
        httpx.Client(base_url=server.ui_url, headers=host, verify=False) as browser,
    ):
        for prefix in ("", "/forq"):  # a proxy that cuts it off, and one that leaves it on
            answer = browser.get(f"{prefix}/login")
            assert answer.status_code == 200
            assert {link.split("/")[1] for link in Markup(answer.text).links} == {"forq"}
            (set_cookie,) = answer.headers.get_list("set-cookie")
            assert "Path=/forq/" in set_cookie
            assert "Secure" in set_cookie
            assert answer.headers["Strict-Transport-Security"]
        assert browser.get("/forq/system").headers["Location"].startswith("/forq/login")


@pytest.mark.parametrize(
    "next_page", ["//evil.example", "/\\evil.example", "http://evil.example", "/\r\nX: 1"]
)
def test_the_login_leads_to_our_own_pages_alone(ui, next_page) -> None:
    with httpx.Client(base_url=ui.ui_url, verify=False) as browser:
        fields = Markup(browser.get("/login", params={"next": next_page}).text).hidden
        assert fields["next"] == ""
        answer = browser.post(
            "/login", data=fields | {"key": SECRET, "next": next_page}, headers={"Origin": ui.ui_url}
        )
        assert answer.headers["Location"] == "/"


def test_the_connection_is_of_http_1_alone(ui) -> None:
    host, _, port = ui.ui_url.removeprefix("http://").partition(":")
    for opening, status in (
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
        (
            b"GET /login HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade, close\r\n"
            b"HTTP2-Settings: AAAA\r\n\r\n",
            b"200",
        ),
    ):
        with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS_MAX) as stream:
            stream.sendall(opening)
            received = b""
            while data := stream.recv(65_536):
                received += data
            assert received.startswith(b"HTTP/1.1 " + status)
            assert b"\0\0" not in received  # no frame


def test_upgrades_to_websockets_are_declined(ui) -> None:
    host, _, port = ui.ui_url.removeprefix("http://").partition(":")
    upgrade = (
        b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    for _ in range(40):
        with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS_MAX) as stream:
            stream.sendall(upgrade)
            assert stream.recv(100).startswith(b"HTTP/1.1 303")
    assert httpx.get(f"{ui.ui_url}/login", verify=False).status_code == 200
    assert ui.process.poll() is None


@pytest.mark.tier2
def test_many_sessions_of_one_token_end_no_others(own) -> None:
    with ForqClient(own.url, SECRET) as client:
        key = client.create_token("greedy", ["browse"]).token
    with logged_in(own.ui_url) as admin:
        with httpx.Client(base_url=own.ui_url, verify=False) as greedy:
            fields = Markup(greedy.get("/login").text).hidden
            nonce = greedy.cookies["ForqLogin"]
            for _ in range(SESSIONS_A_KEY_MAX + 5):
                greedy.cookies = {"ForqLogin": nonce}
                answer = greedy.post("/login", data=fields | {"key": key}, headers={"Origin": own.ui_url})
                assert answer.status_code == 303
        assert admin.get("/").status_code == 200
        assert f'Sessions <span class="note">{SESSIONS_A_KEY_MAX + 1}</span>' in admin.get("/system").text


def test_a_client_of_the_api_is_not_logged_in(ui, client: ForqClient) -> None:
    answer = httpx.get(f"{ui.ui_url}/", headers={"X-API-Key": SECRET}, verify=False)
    assert answer.status_code == 303
