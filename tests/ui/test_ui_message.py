"""A message's page over HTTP: what it shows, who may do what with it, and that it gives away nothing that runs."""

import html
import json
import os
import subprocess

import httpx
import pytest

from forq_trio import ForqClient
from forq_trio.model.clock import machine_ms
from forq_trio.model.limits import CONTENT_BYTES_MAX
from support.real_server import SECRET
from support.ui_http import Markup, flat, logged_in, until

HX = {"HX-Request": "true"}
SHELL_ATTACKS = (
    'it\'s $HOME `id` $(id) "quoted" \\ !! %s \r\n\t',
    "'; touch /tmp/hacked; '",
    "END\n'END'\nEND",
    "@/etc/passwd",
    "\0\u202e\u2028\x1b[2J Zoë 李雷 🙂 \U000e0041",
    "a'" * (CONTENT_BYTES_MAX // 2),
    "!$PATH\n" * 20_000,
)


def dead_letter(client: ForqClient, queue: str, content: str, reason: str = "no stock") -> str:
    """The id of a new dead letter of a queue."""
    client.configure(queue, max_attempts=1)
    sent = client.produce(queue, content, attributes={"tenant": "acme"}, priority=500)
    (delivery,) = client.receive(queue, wait_ms=0)
    client.nack(queue, [delivery.receipt], reason=reason)
    return sent.id


def post(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form as our scripts do."""
    csrf = Markup(browser.get("/").text).hidden["csrf"]
    headers = HX | {"Origin": str(browser.base_url).rstrip("/"), "X-CSRF-Token": csrf}
    return browser.post(path, data=fields, headers=headers)


def test_the_page_and_the_row_show_the_message(ui, client) -> None:
    sent = client.produce("orders", '{"n":90071992547409931,"x":"<b>"}', attributes={"a<": "&b"}, group="<g>")
    path = f"/queue/orders/message/{sent.id}"
    with logged_in(ui.ui_url) as browser:
        for text in (browser.get(path).text, browser.get(path, params={"part": "1"}, headers=HX).text):
            for shown in (
                sent.id,
                '<span class="n">90071992547409931</span>',
                "&lt;b&gt;",
                "a&lt;",
                "&amp;b",
                "&lt;g&gt;",
            ):
                assert shown in text
            assert "Send edited copy" in text
            assert "Delete" not in text
        part = browser.get(path, params={"part": "content", "view": "hex", "in": "place"}, headers=HX).text
        assert "000000  7b 22 6e" in part
        assert "<html" not in part


def test_the_content_is_a_file_that_nothing_interprets(ui, client) -> None:
    texts = {"<script>1</script>\r\n\ufeffZoë": "txt", '{"a": 1}': "json", "\x89PNG\0\1\2\3\4": "bin"}
    sent = {client.produce("files", text): (text, name) for text, name in texts.items()}
    with logged_in(ui.ui_url) as browser:
        for message, (text, name) in sent.items():
            answer = browser.get(f"/queue/files/message/{message.id}/content")
            assert answer.content == text.encode()
            assert (
                answer.headers["Content-Disposition"]
                == f'attachment; filename="message-{message.sequence}.{name}"'
            )
            assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            wanted = "application/octet-stream" if name == "bin" else "text/plain; charset=utf-8"
            assert answer.headers["Content-Type"] == wanted


def test_the_command_sends_the_same_message_again_whatever_it_says(ui, client, tmp_path) -> None:
    sent = [client.produce("shell", text, attributes={"it's": text[:99]}) for text in SHELL_ATTACKS]
    with logged_in(ui.ui_url) as browser:
        commands = [browser.get(f"/queue/shell/message/{message.id}/curl").text for message in sent]
    client.receive("shell", max_messages=len(sent), wait_ms=0)
    script = tmp_path / "send.sh"
    script.write_text("\n".join(commands), encoding="utf-8")
    environment = os.environ | {"FORQ_AUTH_SECRET": SECRET}
    done = subprocess.run(
        ["bash", str(script)], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("HTTP/1.1 204") == len(sent), done.stdout + done.stderr
    again = client.receive("shell", max_messages=100, wait_ms=0)
    assert [delivery.content for delivery in again] == list(SHELL_ATTACKS)
    assert [delivery.attributes for delivery in again] == [{"it's": text[:99]} for text in SHELL_ATTACKS]


def test_a_dead_letter_is_redriven_edited_and_deleted(ui, client) -> None:
    first, second, third = (dead_letter(client, "orders", text) for text in ("one", "two\r\nlines", "three"))
    base = "/queue/orders-dlq/message"
    with logged_in(ui.ui_url) as browser:
        assert "Why it is dead" in browser.get(f"{base}/{first}").text
        answer = post(browser, f"{base}/{first}/redrive", **{"in": "page"})
        assert json.loads(answer.headers["HX-Trigger"])["forq:done"]["go"] == f"/queue/orders/message/{first}"
        assert client.message("orders", first).status == "ready"
        dialog = browser.get(f"{base}/{second}/edit", headers=HX).text
        assert "two\r\nlines" in dialog.replace("\n", "\r\n").replace("\r\r", "\r")
        fields = {"target": "orders", "content": "two\r\nlines, edited", "attributes": "tenant: globex\nx: y"}
        answer = post(browser, f"{base}/{second}/edit", **fields)
        link = json.loads(answer.headers["HX-Trigger"])["forq:done"]["href"]
        copy = client.message("orders", link.rpartition("/")[2])
        assert (copy.content, copy.priority) == ("two\r\nlines, edited", 500)
        assert copy.attributes == {"tenant": "globex", "x": "y"}
        assert post(browser, f"{base}/{third}/delete").status_code == 204
        for gone in (first, second, third):
            answer = browser.get(f"{base}/{gone}")
            assert answer.status_code == 404
            assert "not there any more" in answer.text
            assert post(browser, f"{base}/{gone}/redrive").status_code == 404


def test_a_message_that_waits_is_cancelled(ui, client) -> None:
    waiting = client.produce("orders", "waits")
    taken = client.produce("taken", "is in flight")
    client.receive("taken", wait_ms=0)
    base = "/queue/orders/message"
    with logged_in(ui.ui_url) as browser:
        for shown in (
            browser.get(f"{base}/{waiting.id}").text,
            browser.get(f"{base}/{waiting.id}", params={"part": "1"}, headers=HX).text,
        ):
            assert "Cancel message…" in shown
        assert "Cancel message…" not in browser.get(f"/queue/taken/message/{taken.id}").text
        refused = post(browser, f"/queue/taken/message/{taken.id}/cancel")
        assert refused.status_code == 400
        assert "in flight" in refused.text
        answer = post(browser, f"{base}/{waiting.id}/cancel", **{"in": "page"})
        assert json.loads(answer.headers["HX-Trigger"])["forq:done"]["go"] == "/queue/orders"
        assert browser.get(f"{base}/{waiting.id}").status_code == 404
        assert client.queue_stats("orders").total == 0


def test_a_message_in_flight_is_cancelled_after_a_dialog(ui, client) -> None:
    sent = client.produce("orders", "one")
    (held,) = client.receive("orders", wait_ms=0)
    path = f"/queue/orders/message/{sent.id}"
    with logged_in(ui.ui_url) as browser:
        for params in ({}, {"part": "1"}):
            assert "Cancel in flight…" in browser.get(path, params=params, headers=HX if params else {}).text
        dialog = browser.get(f"{path}/cancel-running", params={"in": "page"}, headers=HX).text
        assert f"Cancel message {sent.sequence:,} in flight?" in dialog
        assert 'name="in" value="page"' in dialog
        answer = post(browser, f"{path}/cancel-running", **{"in": "page", "reason": "x" * 1_025})
        assert answer.status_code == 400
        assert "1,024" in answer.text or "1024" in answer.text
        answer = post(browser, f"{path}/cancel-running", **{"in": "page", "reason": " called off "})
        assert json.loads(answer.headers["HX-Trigger"])["forq:done"]["go"] == "/queue/orders"
        assert browser.get(path).status_code == 404
        assert post(browser, f"{path}/cancel-running").status_code == 404
    assert not client.ack("orders", [held.receipt])[0].ok
    (told,) = client.withdrawn(["orders"], held.received_at, wait_ms=0).messages
    assert (told.message_id, told.how, told.reason) == (sent.id, "cancelled", "called off")


def test_a_form_that_is_not_valid_comes_back_with_what_was_typed(ui, client) -> None:
    message_id = dead_letter(client, "orders", "one")
    with logged_in(ui.ui_url) as browser:
        path = f"/queue/orders-dlq/message/{message_id}/edit"
        fields = {"target": "no such name", "content": "<typed>", "attributes": "no colon"}
        answer = post(browser, path, **fields)
        assert answer.status_code == 400
        for text in ("&lt;typed&gt;", "no colon", "line 1 is not", 'aria-describedby="err-target"'):
            assert text in answer.text
        too_long = "é" * (CONTENT_BYTES_MAX // 2 + 1)
        answer = post(browser, path, target="orders", content=too_long, attributes="")
        assert answer.status_code == 400
        assert 'id="err-content"' in answer.text
        answer = post(browser, path, target="orders", content=too_long[2:], attributes="")
        assert answer.status_code == 204, answer.text[:300]


def test_a_copy_of_any_message_is_sent(ui, client) -> None:
    sent = client.produce("orders", "one", priority=7, group="g", attributes={"a": "b"}, max_attempts=3)
    (held,) = client.receive("orders", wait_ms=0)
    with logged_in(ui.ui_url) as browser:
        path = f"/queue/orders/message/{sent.id}"
        page = browser.get(path).text
        assert "A message in flight cannot be moved or deleted." in page
        assert "data-until" in page
        assert post(browser, f"{path}/delete").status_code == 400
        fields = {"target": "orders.copy", "content": "two", "attributes": "a: b"}
        assert post(browser, f"{path}/copy", **fields).status_code == 204
    (copy,) = client.receive("orders.copy", wait_ms=0)
    assert (copy.content, copy.priority, copy.group, copy.attributes) == ("two", 7, "g", {"a": "b"})
    assert client.ack("orders", [held.receipt])[0].ok


def test_rights(ui, client) -> None:
    message_id = dead_letter(client, "orders", "one")
    sent = client.produce("orders", "two")
    tokens = {
        "reader": client.create_token("reader", ["browse"], "*"),
        "other": client.create_token("other", ["browse", "redrive", "produce"], "emails*"),
        "operator": client.create_token("operator", ["browse", "redrive"], "orders*"),
    }
    dead, alive = f"/queue/orders-dlq/message/{message_id}", f"/queue/orders/message/{sent.id}"
    actions = [f"{dead}/redrive", f"{dead}/delete", f"{dead}/edit", f"{alive}/copy"]
    with logged_in(ui.ui_url, tokens["reader"].token) as browser:
        page = browser.get(dead).text
        assert "Redriving and deleting take the scope redrive." in page
        assert "data-edit" not in page
        assert "/redrive" not in page
        assert "Send edited copy" not in browser.get(alive).text
        for action in actions:
            answer = post(browser, action, target="orders", content="x", attributes="")
            assert answer.status_code == 403, action
        assert browser.get(f"{dead}/edit", headers=HX).status_code == 403
    with logged_in(ui.ui_url, tokens["other"].token) as browser:
        live = f"/live/poll/message?queue=orders&id={sent.id}"
        for path in (
            dead,
            alive,
            f"{alive}/content",
            f"{alive}/curl",
            f"{alive}?part=1",
            f"{alive}/copy",
            live,
        ):
            assert browser.get(path, headers=HX).status_code == 403, path
    with logged_in(ui.ui_url, tokens["operator"].token) as browser:
        assert "data-edit" in browser.get(dead).text
        answer = post(browser, f"{dead}/edit", target="emails", content="x", attributes="")
        assert answer.status_code == 403
        assert post(browser, f"{dead}/redrive").status_code == 204
    assert client.message("orders", message_id).status == "ready"


def test_a_message_that_was_released_has_no_delay_in_its_timeline(ui, client) -> None:
    sent = client.produce("orders", "one")
    (delivery,) = client.receive("orders", wait_ms=0)
    until(lambda: machine_ms() > delivery.first_received_at)
    client.release("orders", [delivery.receipt])
    with logged_in(ui.ui_url) as browser:
        page = flat(browser.get(f"/queue/orders/message/{sent.id}").text)
    assert "<b>Due again</b>" in page
    assert "its consumer gave it back" in page
    assert "delay of" not in page.lower()


def test_an_open_page_is_told_what_became_of_the_message(ui, client) -> None:
    sent = client.produce("orders", "one")
    with logged_in(ui.ui_url) as browser:
        page = browser.get(f"/queue/orders/message/{sent.id}").text
        live = html.unescape(page.partition('data-live-path="')[2].partition('"')[0])

        def notice() -> str:
            return browser.get(live.replace("/live/", "/live/poll/"), headers=HX).json()["message:notice"]

        assert "callout" not in notice()
        (delivery,) = client.receive("orders", wait_ms=0)
        until(lambda: "It has changed" in notice())
        client.ack("orders", [delivery.receipt])
        until(lambda: "not there any more" in notice())


@pytest.mark.parametrize("id_", ["nothing", "0199164b-4dea-78d9-9b4c-c699d5037962"])
def test_an_id_that_is_none(ui, id_) -> None:
    with logged_in(ui.ui_url) as browser:
        assert browser.get(f"/queue/orders/message/{id_}").status_code in (400, 404)


def test_a_message_that_failed_for_good_is_found_where_it_went(ui, client) -> None:
    message_id = dead_letter(client, "orders", "one")
    with logged_in(ui.ui_url) as browser:
        answer = browser.get(f"/queue/orders/message/{message_id}")
    assert answer.status_code == 404
    assert f"/queue/orders-dlq/message/{message_id}" in answer.text
