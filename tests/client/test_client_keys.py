"""Keyed messages through the clients, against a real server: what comes back, and what is raised."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from forq_trio import (
    ForqError,
    InvalidContent,
    InvalidKey,
    InvalidKind,
    InvalidRequest,
    KeyedMessage,
    KeyExists,
    KeyNotFound,
    MessageInFlight,
    Offered,
    Offering,
    OutOfRange,
    ProduceToDeadLetterQueue,
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


@pytest.mark.parametrize("key", ODD_KEYS)
def test_d08_any_key_names_its_message_and_no_other(call: Call, queue: str, key: str):
    offered = call("offer", queue, key, "m", kind="a/b ü", delay_ms=HOUR_MS)
    assert (offered.outcome, offered.once_more) == ("created", False)
    found = call("keyed_message", queue, key, "a/b ü")
    assert (found.message.id, found.message.keyed.key, found.message.keyed.kind) == (offered.id, key, "a/b ü")
    assert call("contains_key", queue, key) is False  # of another kind
    again = call("offer", queue, key, "n", kind="a/b ü", delay_ms=0)
    assert (again.outcome, again.id, again.revision > offered.revision) == ("updated", offered.id, True)
    (delivery,) = call("receive", queue)
    assert (delivery.key, delivery.kind, delivery.content) == (key, "a/b ü", "n")
    assert call("drop_key", queue, key, "a/b ü") is True
    assert call("drop_key", queue, key, "a/b ü") is False
    assert call("queue_stats", queue).total == 0


@pytest.mark.parametrize("key", ["", "k" * (limits.KEY_LENGTH_MAX + 1), "a\0b", "\udc80"])
def test_d08_a_key_that_is_none_is_refused_before_anything_is_sent(call: Call, queue: str, key: str):
    for name, arguments in (
        ("offer", ("m",)),
        ("keyed_message", ()),
        ("contains_key", ()),
        ("drop_key", ()),
        ("ack_revision", (1,)),
        ("reschedule_key", ()),
    ):
        with pytest.raises(InvalidKey) as caught:
            call(name, queue, key, *arguments)
        assert caught.value.field == "key"
    with pytest.raises(InvalidKind):
        call("keyed_message", queue, "k", "x" * (limits.KIND_LENGTH_MAX + 1))
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


def test_d01_to_d05_what_becomes_of_an_offer(call: Call, queue: str):
    first = call("offer", queue, "k", "a", mode="createIfAbsent", delay_ms=HOUR_MS)
    assert call("offer", queue, "k", "b", mode="createIfAbsent", delay_ms=0).outcome == "ignored"
    assert call("keyed_message", queue, "k").message.content == "a"
    with pytest.raises(KeyExists):
        call("offer", queue, "k", "b", mode="create")
    same = call("offer", queue, "k", "a", process_after=first.process_after)
    assert same == msgspec.structs.replace(first, outcome="ignored")
    changed = call("offer", queue, "k", "b", process_after=first.process_after + 1)
    assert (changed.outcome, changed.process_after) == ("updated", first.process_after + 1)
    found = call("keyed_message", queue, "k")
    assert isinstance(found, KeyedMessage)
    assert found.once_more is None
    assert (found.message.keyed.revision, found.message.keyed.mode) == (changed.revision, "createOrUpdate")
    assert call("keyed_message", queue, "other") is None


def test_d06_and_d07_an_offer_while_the_message_is_in_process(call: Call, queue: str):
    first = call("offer", queue, "k", "a")
    (delivery,) = call("receive", queue)
    assert call("offer", queue, "k", "a").outcome == "ignored"
    changed = call("offer", queue, "k", "b")
    assert (changed.outcome, changed.id, changed.sequence) == ("updated", first.id, first.sequence)
    (refused,) = call("ack", queue, [delivery])
    assert refused.code == "not_found.message"
    (again,) = call("receive", queue)
    assert (again.content, again.attempts, again.sequence) == ("b", 1, first.sequence)
    assert call("ack", queue, again).ok
    assert call("contains_key", queue, "k") is False


def test_an_offer_waits_behind_the_message_in_process(call: Call, queue: str):
    first = call("offer", queue, "k", "a")
    (delivery,) = call("receive", queue)
    waiting = call("offer", queue, "k", "b", mode="onceMore")
    assert (waiting.once_more, waiting.id) == (True, first.id)
    found = call("keyed_message", queue, "k")
    assert (found.message.content, found.once_more.content) == ("a", "b")
    with pytest.raises(MessageInFlight):
        call("reschedule_key", queue, "k", delay_ms=HOUR_MS)
    moved = call("reschedule_key", queue, "k", delay_ms=HOUR_MS, once_more=True)
    assert moved.process_after >= waiting.process_after + HOUR_MS
    assert call("reschedule_key", queue, "k", process_after=waiting.process_after, once_more=True).once_more
    assert call("ack", queue, delivery).ok
    (following,) = call("receive", queue)
    assert (following.content, following.key, following.attempts) == ("b", "k", 1)
    assert following.id != first.id
    call("offer", queue, "k", "c", mode="onceMore")
    assert call("drop_key", queue, "k", once_more=True) is True
    assert call("drop_key", queue, "k", once_more=True) is False
    assert call("keyed_message", queue, "k").once_more is None


def test_debounce_moves_the_due_time_up_to_a_bound(call: Call, queue: str):
    first = call("offer", queue, "k", "a", mode="debounce", delay_ms=HOUR_MS, max_wait_ms=HOUR_MS)
    bound = call("keyed_message", queue, "k").message.keyed.max_wait_until
    last = call("offer", queue, "k", "b", mode="debounce", delay_ms=2 * HOUR_MS, max_wait_ms=HOUR_MS)
    assert first.process_after <= last.process_after == bound
    with pytest.raises(InvalidRequest) as caught:
        call("offer", queue, "k", "b", mode="debounce")
    assert caught.value.field == "delayMs"
    with pytest.raises(InvalidRequest) as caught:
        call("offer", queue, "k", "b", max_wait_ms=1)
    assert caught.value.field == "maxWaitMs"
    for out in (0, limits.MAX_WAIT_MS_MAX + 1):
        with pytest.raises(OutOfRange) as caught:
            call("offer", queue, "k", "b", mode="debounce", delay_ms=1, max_wait_ms=out)
        assert caught.value.field == "maxWaitMs"


def test_d10_to_d16_a_batch_has_a_result_for_each(call: Call, queue: str):
    existing = call("offer", queue, "b", "old", delay_ms=HOUR_MS)
    offers = [
        Offering("1", key="a"),
        Offering("2", key="b"),
        Offering("3", key="b", mode="createIfAbsent"),
        Offering("4", key="a", mode="create"),
        Offering("5", key=""),
        Offering("6", key="c", kind="k"),
    ]
    results = call("offer_many", queue, offers)
    told = [each.outcome if isinstance(each, Offered) else each.code for each in results]
    assert told == [
        "created",
        "updated",
        "ignored",
        "conflict.key_exists",
        "bad_request.key.invalid",
        "created",
    ]
    assert results[1].id == results[2].id == existing.id
    assert isinstance(results[3], KeyExists)
    assert results[4].field == "key"
    assert call("offer_many", queue, []) == []
    with pytest.raises(OutOfRange):
        call("offer_many", queue, [Offering("m", key="k")] * (limits.OFFER_BATCH_MAX + 1))
    with pytest.raises(ProduceToDeadLetterQueue):
        call("offer_many", f"{queue}-dlq", offers)


def test_keys_are_listed_by_kind_and_key(call: Call, queue: str):
    for key in ("b/2", "a", "b/1", "b/3", "c%"):
        call("offer", queue, key, key)
    call("offer", queue, "b/0", "x", kind="z")
    call("produce", queue, "no key")
    page = call("keyed_messages", queue, prefix="b/", limit=2)
    assert [each.keyed.key for each in page.messages] == ["b/1", "b/2"]
    rest = call("keyed_messages", queue, prefix="b/", after=page.next)
    assert [(each.keyed.kind, each.keyed.key) for each in rest.messages] == [("", "b/3"), ("z", "b/0")]
    assert [each.keyed.key for each in call("keyed_messages", queue, kind="z").messages] == ["b/0"]
    assert call("keyed_messages", queue, prefix="_").messages == []
    with pytest.raises(OutOfRange):
        call("keyed_messages", queue, after="nonsense")
    for out in (0, 101):
        with pytest.raises(OutOfRange):
            call("keyed_messages", queue, limit=out)


def test_d33_a_revision_is_acknowledged_only_if_it_is_the_latest(call: Call, queue: str):
    first = call("offer", queue, "k", "a")
    (delivery,) = call("receive", queue)  # does not matter
    second = call("offer", queue, "k", "b")
    assert call("ack_revision", queue, "k", first.revision) is False
    assert call("ack_revision", queue, "k", second.revision, "other kind") is False
    assert call("ack_revision", queue, "k", second.revision) is True
    assert call("ack_revision", queue, "k", second.revision) is False
    assert call("ack", queue, [delivery])[0].ok is False
    for out in (0, limits.SEQUENCE_MAX + 1):
        with pytest.raises(OutOfRange):
            call("ack_revision", queue, "k", out)


def test_d35_all_keys_of_a_kind_are_dropped_only_with_the_phrase(call: Call, queue: str):
    for kind in ("", "a"):
        for key in ("k", "l"):
            call("offer", queue, key, "m", kind=kind)
    call("produce", queue, "no key")
    for phrase in ("", "yes", queue.upper()):
        with pytest.raises(WrongPhrase):
            call("drop_keys", queue, "a", confirm=phrase)
    assert call("queue_stats", queue).total == 5
    assert call("drop_keys", queue, "a", confirm=queue) == 2
    assert call("drop_keys", queue, "a", confirm=queue) == 0
    assert call("queue_stats", queue).total == 3


def test_only_a_due_time_that_may_be_is_given(call: Call, queue: str):
    with pytest.raises(KeyNotFound):
        call("reschedule_key", queue, "k", delay_ms=1)
    call("offer", queue, "k", "m", delay_ms=HOUR_MS)
    for times in ({}, {"delay_ms": 1, "process_after": 1}, {"process_after": 1}, {"delay_ms": -1}):
        with pytest.raises(ForqError) as caught:
            call("reschedule_key", queue, "k", **times)
        assert caught.value.code.startswith("bad_request.")
    for delay_ms in (limits.DELAY_MS_MAX, 1, 0):
        call("reschedule_key", queue, "k", delay_ms=delay_ms)
    (delivery,) = call("receive", queue, wait_ms=30_000)
    assert delivery.content == "m"


@pytest.mark.parametrize(
    "answer",
    [
        {"results": [{"outcome": "created", "id": "x"}]},
        {"results": [{}]},
        {"results": []},
        {"results": [{"outcome": "eaten", "id": "x", "sequence": 1, "processAfter": 1, "revision": 1}]},
    ],
)
def test_an_answer_that_says_less_than_it_should_is_none_of_forqs(kind: str, answer: dict[str, Any]):
    def handle(request: ClientRequest) -> HttpAnswer:
        return answer_of(json=answer)

    with calls_of(kind, "http://forq", handler=handle) as call, pytest.raises(ForqError) as caught:
        call("offer_many", "q", [Offering("m", key="k")])
    assert caught.value.code == "client.protocol"


def test_a_path_keeps_dots_and_slashes_away_from_proxies(kind: str):
    asked = []

    def handle(request: ClientRequest) -> HttpAnswer:
        asked.append(request.path)
        return answer_of(204)

    with calls_of(kind, "http://forq", handler=handle) as call:
        for key in (".", "..", "...", "a/../b", "%2E"):
            assert call("drop_key", "q", key) is True
    ends = [path.removeprefix("/api/v1/queues/q/keys/") for path in asked]
    assert ends == ["%2E", "%2E%2E", "...", "a%2F..%2Fb", "%252E"]
