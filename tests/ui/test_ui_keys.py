"""Messages with a key over HTTP: what lists and pages show of them, what each action does, and who may do it."""

import json
import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from forq_trio import ForqClient
from support.ui_http import Markup, flat, logged_in

HX = {"HX-Request": "true"}
HOUR_MS = 3_600_000
ODD_KEYS = (
    "..",
    "a/../b",
    "/",
    "100%",
    "%2F",
    'it\'s "quoted"',
    "<b>bold</b>",
    "Zoë 李雷",
    "a_b",
    "&amp;",
    "x" * 200,
)


@pytest.fixture
def browser(ui, client) -> Iterator[httpx.Client]:
    with logged_in(ui.ui_url) as opened:
        yield opened


def post(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form as our scripts do."""
    csrf = Markup(browser.get("/").text).hidden["csrf"]
    headers = HX | {"Origin": str(browser.base_url).rstrip("/"), "X-CSRF-Token": csrf}
    return browser.post(path, data=fields, headers=headers)


def toast(answer: httpx.Response) -> str:
    assert answer.status_code == 204, answer.text
    return json.loads(answer.headers["HX-Trigger"])["forq:done"]["toast"]


def revision_of(client: ForqClient, key: str, kind: str = "") -> str:
    found = client.keyed_message("sync", key, kind)
    assert found is not None
    assert found.message.keyed is not None
    return str(found.message.keyed.revision)


def in_flight_with_one_more(client: ForqClient) -> str:
    """The id of a message in flight behind which an offer waits."""
    made = client.offer("sync", "customer/1", '{"a":1,"fields":["email"]}', kind="crm")
    client.receive("sync", wait_ms=0)
    client.offer(
        "sync",
        "customer/1",
        '{"a":1,"fields":["email","<plan>"]}',
        kind="crm",
        mode="onceMore",
        delay_ms=HOUR_MS,
    )
    return made.id


def test_a_queue_with_keys_shows_them_and_how_they_wait(browser, client) -> None:
    modes = {
        "debounce": "debounced",
        "createIfAbsent": "first wins",
        "create": "at its time",
        "onceMore": "one more",
    }
    for mode in modes:
        client.offer("sync", f"customer/{mode}", "<x>", mode=mode, delay_ms=HOUR_MS)
    for content in "12":
        client.offer("sync", "customer/updated", content, delay_ms=HOUR_MS)
    client.produce("sync", "plain", delay_ms=HOUR_MS)
    page = browser.get("/queue/sync", params={"state": "delayed"}).text
    for heading in ("<span>Key</span>", "<span>Kept</span>", ">Offers</span>", "Due in"):
        assert heading in page
    for word in (*modes.values(), "newest wins"):
        assert f">{word}</span>" in page
    assert "<span>Attempt</span>" not in page
    assert "&lt;x&gt;" in page
    assert re.search(r"<dt>Keys</dt><dd[^>]*>5</dd>", page)
    assert "At most one message waits for each key." in page
    assert ">Offered</span>" in page
    client.produce("plain", "x")
    plain = browser.get("/queue/plain").text
    assert "<span>Key</span>" not in plain
    assert "<dt>Keys</dt>" not in plain
    assert ">Sent</span>" in plain


@pytest.mark.parametrize("key", ODD_KEYS)
def test_any_key_is_shown_found_and_dropped_as_it_is(browser, client, key) -> None:
    made = client.offer("sync", key, "content", kind="<odd> & 'kind'", delay_ms=HOUR_MS)
    other = client.offer("sync", f"{key[:199]}2", "other", kind="<odd> & 'kind'", delay_ms=HOUR_MS)
    exactly = browser.get("/queue/sync/rows", params={"q": f"key:{key}"}).text
    assert f'data-seq="{made.sequence}"' in exactly
    assert f'data-seq="{other.sequence}"' not in exactly
    begins = browser.get("/queue/sync/rows", params={"q": f"key:{key[:199]}*"}).text
    assert f'data-seq="{made.sequence}"' in begins
    assert f'data-seq="{other.sequence}"' in begins
    page = browser.get(f"/queue/sync/message/{made.id}").text
    assert "<b>bold" not in page
    assert "<odd>" not in page
    assert f"{key} " in unescape(flat(page))
    answer = post(browser, f"/queue/sync/message/{made.id}/drop", revision=str(made.revision))
    assert toast(answer) == f"Dropped message {made.sequence:,}"
    assert not client.contains_key("sync", key, "<odd> & 'kind'")
    assert client.queue_stats("sync").total == 1


def test_a_search_by_key_says_that_the_index_knows_all(browser, client) -> None:
    for number in range(120):
        client.offer("sync", f"customer/{41 if number < 110 else 42}{number:03}", "x", delay_ms=HOUR_MS)
    page = browser.get("/queue/sync", params={"state": "delayed", "q": "key:customer/42*"}).text
    assert "Found <b>10</b> of <b>120</b> keys, by their index: all were searched." in flat(page)
    assert page.count("<mark>customer/42</mark>") == 10
    assert "Remove filter key" in page
    first = browser.get("/queue/sync", params={"q": "key:customer/41*"}).text
    assert "Found <b>100</b> so far of <b>120</b> keys, by their index." in first
    following = unescape(re.search(r'hx-get="([^"]*/rows[^"]*cursor[^"]*)"', first)[1])
    rest = browser.get(following, headers=HX).text
    assert rest.count("data-row") == 10
    assert "Found <b>110</b> of <b>120</b> keys, by their index: all were searched." in rest
    ready = browser.get("/queue/sync", params={"state": "ready", "q": "key:customer/42*"}).text
    assert "data-row" not in ready
    assert "No message matches." in ready


def test_the_page_and_the_row_tell_the_key(browser, client) -> None:
    for content in "123":
        made = client.offer(
            "sync",
            "customer/1",
            content,
            kind="crm",
            mode="debounce",
            delay_ms=HOUR_MS,
            max_wait_ms=3 * HOUR_MS,
        )
    path = f"/queue/sync/message/{made.id}"
    for text in map(flat, (browser.get(path).text, browser.get(path, params={"part": "1"}, headers=HX).text)):
        for words in (
            "customer/1 ",
            "crm",
            "debounced: 1 h after the last offer",
            "3 h after the first offer",
            "<dd>3, the first ",
            "Deliver now",
            "Reschedule…",
            "Drop message",
        ):
            assert words in text
        assert "Cancel message" not in text
    assert "unique by key and kind in sync" in browser.get(path).text
    assert "the last of 3 offers" in browser.get(path).text


def test_a_message_is_rescheduled_and_delivered_now(browser, client) -> None:
    made = client.offer("sync", "k", "content", delay_ms=HOUR_MS)
    path = f"/queue/sync/message/{made.id}"
    dialog = browser.get(f"{path}/reschedule", headers=HX).text
    assert "Its content and its offers stay as they are." in dialog
    revision = Markup(dialog).hidden["revision"]
    for delay, error in (("soon", "e-delay"), ("400 d", "e-delay")):
        answer = post(browser, f"{path}/reschedule", delay=delay, revision=revision)
        assert answer.status_code == 400
        assert f'id="{error}"' in answer.text
        assert f'value="{delay}"' in answer.text
    answer = post(browser, f"{path}/reschedule", delay="2 d", revision=revision)
    assert toast(answer) == f"Rescheduled message {made.sequence:,}: due in 2 d"
    moved = client.message("sync", made.id)
    assert moved.process_after - made.process_after > 46 * HOUR_MS
    assert moved.content == "content"
    assert toast(post(browser, f"{path}/deliver")) == f"Message {made.sequence:,} is due now"
    (delivery,) = client.receive("sync", wait_ms=0)
    assert (delivery.key, delivery.content) == ("k", "content")
    assert post(browser, f"{path}/deliver").status_code == 400


def test_what_was_offered_since_the_page_was_made_is_not_dropped_or_moved(browser, client) -> None:
    made = client.offer("sync", "k", "1", delay_ms=HOUR_MS)
    path, old = f"/queue/sync/message/{made.id}", str(made.revision)
    client.offer("sync", "k", "2", delay_ms=HOUR_MS)
    refused = post(browser, f"{path}/drop", revision=old)
    assert refused.status_code == 400
    assert "It was offered anew since the page was made: look at it again." in refused.text
    answer = post(browser, f"{path}/reschedule", revision=old, delay="1 s")
    assert answer.status_code == 400
    assert "offered anew since" in answer.text
    assert client.message("sync", made.id).content == "2"
    assert toast(post(browser, f"{path}/drop", revision=revision_of(client, "k"))).startswith("Dropped")
    assert client.queue_stats("sync").total == 0


def test_what_comes_after_is_shown_with_what_differs_and_moved_and_dropped_alone(browser, client) -> None:
    message_id = in_flight_with_one_more(client)
    path = f"/queue/sync/message/{message_id}"
    page = flat(browser.get(path).text)
    for words in (
        "one more after this",
        "One more after this",
        '<mark><span class="s">"&lt;plan&gt;"</span></mark>',
        "differs in <code>fields</code>",
        "Reschedule what comes after…",
        "Drop what comes after",
        "A message in flight cannot be moved or deleted here. What comes after it can.",
        "Offered, waits as one more",
    ):
        assert words in page
    for words in ("Deliver now", "Drop message", "Cancel message"):
        assert words not in page
    dialog = browser.get(f"{path}/reschedule", params={"after": "1"}, headers=HX).text
    assert "What comes after message" in dialog
    hidden = Markup(dialog).hidden
    answer = post(browser, f"{path}/reschedule", delay="2 h", after="1", revision=hidden["revision"])
    assert "what comes after" in toast(answer)
    after = client.keyed_message("sync", "customer/1", "crm").once_more
    assert after.process_after > client.message("sync", message_id).process_after + HOUR_MS
    answer = post(browser, f"{path}/drop", after="1", revision=str(after.revision))
    assert toast(answer).startswith("Dropped what comes after message")
    assert client.keyed_message("sync", "customer/1", "crm").once_more is None
    assert client.queue_stats("sync").processing == 1
    assert post(browser, f"{path}/drop", after="1", revision="1").status_code == 404
    assert browser.get(f"{path}/reschedule", params={"after": "1"}, headers=HX).status_code == 404


def test_all_messages_of_a_kind_are_dropped_once_the_name_was_typed(browser, client) -> None:
    for number in range(12):
        client.offer("sync", f"k{number}", "x", kind="a&b", delay_ms=HOUR_MS)
    client.offer("sync", "k", "x", kind="other", delay_ms=HOUR_MS)
    client.produce("sync", "no key")
    dialog = browser.get("/queue/sync/keys/drop", params={"kind": "a&b"}, headers=HX).text
    assert "Drop 12 messages" in flat(dialog)
    assert "kind=a%26b" in browser.get("/queue/sync/keys/drop", params={"kind": "other"}, headers=HX).text
    hidden = {name: Markup(dialog).hidden[name] for name in ("kind", "count")}
    wrong = post(browser, "/queue/sync/keys/drop", name="synk", **hidden)
    assert wrong.status_code == 400
    assert "This is not the name of the queue." in wrong.text
    client.offer("sync", "k100", "x", kind="a&b", delay_ms=HOUR_MS)
    stale = post(browser, "/queue/sync/keys/drop", name="sync", **hidden)
    assert stale.status_code == 400
    assert "Drop 13 messages" in flat(stale.text)
    answer = post(browser, "/queue/sync/keys/drop", name="sync", **hidden | {"count": "13"})
    assert toast(answer) == "Dropped 13 messages"
    assert client.queue_stats("sync").total == 2


def test_a_message_is_offered_from_the_form(browser, client) -> None:
    fields = {
        "content": "one",
        "key": "a/b",
        "kind": "k",
        "mode": "debounce",
        "delay": "1 h",
        "max_wait": "2 h",
    }
    assert toast(post(browser, "/queue/sync/send", **fields)).startswith("Sent message")
    assert "updated" in toast(post(browser, "/queue/sync/send", **fields | {"content": "two"}))
    found = client.keyed_message("sync", "a/b", "k").message
    assert (found.content, found.keyed.mode, found.keyed.offers) == ("two", "debounce", 2)
    assert found.keyed.max_wait_until is not None
    refusals = {
        "delay": fields | {"delay": ""},
        "deduplication_id": fields | {"deduplication_id": "x"},
        "key": fields | {"key": "x" * 201},
        "kind": {"content": "x", "kind": "k"},
        "max_wait": fields | {"mode": "create"},
        "mode": fields | {"mode": "worst"},
    }
    for name, refused in refusals.items():
        answer = post(browser, "/queue/sync/send", **refused)
        assert answer.status_code == 400
        assert f'id="e-{name}"' in answer.text, name
    exists = post(browser, "/queue/sync/send", content="x", key="a/b", kind="k", mode="create")
    assert exists.status_code == 400
    assert "pending" in exists.text
    assert client.queue_stats("sync").total == 1


def test_rights(ui, client) -> None:
    waiting = client.offer("sync", "k", "x", delay_ms=HOUR_MS)
    path = f"/queue/sync/message/{waiting.id}"
    reader = client.create_token("reader", ["browse"], "*")
    canceller = client.create_token("canceller", ["browse", "cancel"], "sync")
    with logged_in(ui.ui_url, reader.token) as browser:
        page = browser.get(path).text
        assert "Rescheduling and dropping take the scope cancel." in page
        assert "Deliver now" not in page
        for action in ("deliver", "drop", "reschedule"):
            assert post(browser, f"{path}/{action}", revision="1", delay="1 s").status_code == 403
        assert browser.get(f"{path}/reschedule", headers=HX).status_code == 403
        assert "Drop messages with a key" not in browser.get("/queue/sync").text
        assert post(browser, "/queue/sync/keys/drop", name="sync", kind="", count="1").status_code == 403
    with logged_in(ui.ui_url, canceller.token) as browser:
        assert "Drop message" in browser.get(path).text
        assert post(browser, "/queue/sync/keys/drop", name="sync", kind="", count="1").status_code == 403
        assert toast(post(browser, f"{path}/drop", revision=str(waiting.revision))).startswith("Dropped")


def test_a_dead_letter_tells_the_key_that_it_had(browser, client) -> None:
    client.configure("sync", max_attempts=1)
    made = client.offer("sync", "k", "x", kind="crm")
    (delivery,) = client.receive("sync", wait_ms=0)
    client.nack("sync", [delivery.receipt])
    path = f"/queue/sync-dlq/message/{made.id}"
    page = browser.get(path).text
    assert "its key is free for another message" in page
    assert "Deliver now" not in page
    assert post(browser, f"{path}/deliver").status_code == 404
    assert post(browser, f"{path}/drop", revision=str(made.revision)).status_code == 404
