"""Keyed messages through the clients, against a real server: what comes back, and what is raised."""

from collections.abc import Callable
from typing import Any

import pytest

from forq_trio import (
    ForqError,
    InvalidContent,
    InvalidKey,
    InvalidKind,
    KeyExists,
    Offered,
    Offering,
    WrongPhrase,
)
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.model import limits
from support.fake_transport import answer_of

from .conftest import Call, calls_of

HOUR_MS = 3_600_000
ODD_KEYS = [
    "a/b/../c",
    "..",
    ".",
    "%2F",
    "%252F",
    "%",
    "a b+c&d=e?f#g;h",
    "'\"_%\\",
    "käse-日本語-😀",
    "\t\n\x7f",
    "k" * limits.KEY_LENGTH_MAX,
    "😀" * limits.KEY_LENGTH_MAX,
]


def test_d08_any_key_names_its_message_and_no_other(call: Call, queue: str):
    for key in ODD_KEYS:
        offered = call("offer", queue, key, "m", kind="a/b ü", delay_ms=HOUR_MS)
        assert (offered.outcome, offered.once_more) == ("created", False)
        found = call("keyed_message", queue, key, "a/b ü")
        keyed = found.message.keyed
        assert (found.message.id, keyed.key, keyed.kind) == (offered.id, key, "a/b ü")
        assert call("contains_key", queue, key) is False  # of another kind
        again = call("offer", queue, key, "n", kind="a/b ü", delay_ms=0)
        assert (again.outcome, again.id, again.revision > offered.revision) == ("updated", offered.id, True)
        (delivery,) = call("receive", queue)
        assert (delivery.key, delivery.kind, delivery.content) == (key, "a/b ü", "n")
        assert call("drop_key", queue, key, "a/b ü") is True
        assert call("drop_key", queue, key, "a/b ü") is False
    assert call("queue_stats", queue).total == 0


def test_d08_a_key_that_is_none_is_refused_before_anything_is_sent():
    """By every method: a transport that is asked for anything fails this test."""

    def fail(request: ClientRequest) -> HttpAnswer:
        raise AssertionError(f"{request.method} {request.path} was sent")

    with calls_of("sync", "http://forq", handler=fail) as call:
        for key in ("", "k" * (limits.KEY_LENGTH_MAX + 1), "a\0b", "\udc80"):
            for name, arguments in (
                ("offer", ("m",)),
                ("keyed_message", ()),
                ("contains_key", ()),
                ("drop_key", ()),
                ("ack_revision", (1,)),
                ("reschedule_key", ()),
            ):
                with pytest.raises(InvalidKey) as caught:
                    call(name, "q", key, *arguments)
                assert caught.value.field == "key"
        with pytest.raises(InvalidKind):
            call("keyed_message", "q", "k", "x" * (limits.KIND_LENGTH_MAX + 1))


def test_the_longest_key_and_kind_are_sent(call: Call, queue: str):
    assert call("contains_key", queue, "k" * limits.KEY_LENGTH_MAX, "x" * limits.KIND_LENGTH_MAX) is False


def test_text_is_wanted_where_text_is_wanted(call: Call, queue: str):
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: call("offer", queue, 5, "m"), "key is text"),
        (lambda: call("offer", queue, "k", b"m"), "content is text"),
        (lambda: call("offer", queue, "k", "m", kind=5), "kind is text"),
        (lambda: call("offer_many", queue, [{"key": "k"}]), "an Offering, not dict"),
        (lambda: call("offer", queue, "k", "m", deduplication_id="d"), "deduplication_id"),
    ]
    for attempt, says in wrong:
        with pytest.raises(TypeError, match=says):
            attempt()
    with pytest.raises(InvalidContent):
        call("offer", queue, "k", "\udc80")


def test_what_waits_behind_the_message_in_process_is_named_by_an_option(call: Call, queue: str):
    call("offer", queue, "k", "a")
    (delivery,) = call("receive", queue)
    waiting = call("offer", queue, "k", "b", mode="onceMore")
    moved = call("reschedule_key", queue, "k", delay_ms=HOUR_MS, once_more=True)
    assert moved.process_after >= waiting.process_after + HOUR_MS
    assert call("reschedule_key", queue, "k", process_after=waiting.process_after, once_more=True).once_more
    assert call("drop_key", queue, "k", once_more=True) is True
    assert call("drop_key", queue, "k", once_more=True) is False
    assert call("keyed_message", queue, "k").once_more is None
    assert call("ack", queue, delivery).ok


def test_the_keys_of_a_queue(call: Call, queue: str):
    """A batch, a page, an ack by revision and a drop of all by the blocking client; the rest of it is said in faces."""
    offers = [Offering("1", key="a"), Offering("2", key="a", mode="create"), Offering("3", key="b", kind="z")]
    stored, refused, other = call("offer_many", queue, offers)
    assert isinstance(stored, Offered)
    assert isinstance(refused, KeyExists)
    assert other.outcome == "created"
    page = call("keyed_messages", queue, limit=1)
    rest = call("keyed_messages", queue, after=page.next)
    assert [each.keyed.key for each in (*page.messages, *rest.messages)] == ["a", "b"]
    assert [each.keyed.key for each in call("keyed_messages", queue, kind="z").messages] == ["b"]
    assert call("ack_revision", queue, "a", stored.revision, "other kind") is False
    assert call("ack_revision", queue, "a", stored.revision) is True
    with pytest.raises(WrongPhrase):
        call("drop_keys", queue, "z", confirm="yes")
    assert call("drop_keys", queue, "z", confirm=queue) == 1


def test_an_answer_that_says_less_than_it_should_is_none_of_forqs():
    for results in (
        [{"outcome": "created", "id": "x"}],
        [{}],
        [],
        [{"outcome": "eaten", "id": "x", "sequence": 1, "processAfter": 1, "revision": 1}],
    ):
        answer = answer_of(json={"results": results})
        with (
            calls_of("sync", "http://forq", handler=lambda request, answer=answer: answer) as call,
            pytest.raises(ForqError) as caught,
        ):
            call("offer_many", "q", [Offering("m", key="k")])
        assert caught.value.code == "client.protocol"


def test_a_path_keeps_dots_and_slashes_away_from_proxies():
    asked = []

    def handle(request: ClientRequest) -> HttpAnswer:
        asked.append(request.path)
        return answer_of(204)

    with calls_of("sync", "http://forq", handler=handle) as call:
        for key in (".", "..", "...", "a/../b", "%2E"):
            assert call("drop_key", "q", key) is True
    ends = [path.removeprefix("/api/v1/queues/q/keys/") for path in asked]
    assert ends == ["%2E", "%2E%2E", "...", "a%2F..%2Fb", "%252E"]
