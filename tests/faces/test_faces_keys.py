"""Keyed messages: the same over every face, in simulated time (contract D)."""

import pytest

from forq_trio import (
    ForqError,
    InvalidKey,
    InvalidKind,
    InvalidRequest,
    KeyExists,
    KeyNotFound,
    MessageInFlight,
    Offered,
    Offering,
    OutOfRange,
    ProduceToDeadLetterQueue,
    QueueFull,
    QueueNotFound,
    WrongPhrase,
)
from forq_trio.model import limits

from .face import Face

MINUTE_MS = 60_000


async def offer(face: Face, content: str, key: str = "k", **more) -> Offered:
    return await face.methods.offer("q", key, content, **more)


async def test_d01_to_d05_created_ignored_updated(face: Face):
    first = await offer(face, "a", delay_ms=MINUTE_MS, mode="createIfAbsent")
    assert (first.outcome, await face.has_nothing()) == ("created", True)
    assert (await offer(face, "b", mode="createIfAbsent")).outcome == "ignored"
    same = await offer(face, "a", process_after=first.process_after)
    assert (same.outcome, same.id, same.revision) == ("ignored", first.id, first.revision)
    later = await offer(face, "a", process_after=first.process_after + 1)
    assert (later.outcome, later.id, later.process_after) == ("updated", first.id, first.process_after + 1)
    with pytest.raises(KeyExists):
        await offer(face, "c", mode="create")
    await face.advance(MINUTE_MS)
    assert await face.has_nothing()
    await face.advance(1)
    delivery = await face.take()
    assert (delivery.content, delivery.key, delivery.kind) == ("a", "k", "")
    assert await face.ack(delivery.receipt) == [True]
    assert (await offer(face, "c", mode="create")).outcome == "created"


async def test_d06_d07_and_d25_while_it_is_in_process(face: Face):
    await offer(face, "a")
    first = await face.take()
    assert (await offer(face, "a")).outcome == "ignored"
    assert (await offer(face, "b")).outcome == "updated"
    assert await face.ack(first.receipt) == [False]
    second = await face.take()
    assert (second.content, second.attempts, second.sequence) == ("b", 1, first.sequence)
    assert await face.ack(second.receipt) == [True]
    assert await face.methods.contains_key("q", "k") is False


async def test_d18_a_waiting_consumer_gets_what_is_offered(face: Face):
    await offer(face, "m", delay_ms=MINUTE_MS)
    await face.methods.reschedule_key("q", "k", delay_ms=0)
    assert (await face.take_when_there()).content == "m"


async def test_a_debounced_offer_is_due_when_no_other_came_or_at_its_bound(face: Face):
    debounce = {"mode": "debounce", "delay_ms": MINUTE_MS}
    await offer(face, "1", **debounce)
    await face.advance(MINUTE_MS - 1)
    assert (await offer(face, "2", **debounce)).outcome == "updated"
    await face.advance(MINUTE_MS - 1)
    assert await face.has_nothing()
    await face.advance(1)
    assert (await face.take()).content == "2"
    await offer(face, "1", "bound", max_wait_ms=90_000, **debounce)
    await face.advance(50_000)
    await offer(face, "2", "bound", max_wait_ms=90_000, **debounce)
    await face.advance(39_999)
    assert await face.has_nothing()
    await face.advance(1)
    assert (await face.take()).content == "2"


async def test_what_waits_is_delivered_after_the_one_in_process(face: Face):
    await offer(face, "a")
    first = await face.take()
    waiting = await offer(face, "b", mode="onceMore", delay_ms=MINUTE_MS)
    assert (waiting.once_more, waiting.id) == (True, first.id)
    found = await face.methods.keyed_message("q", "k")
    assert found is not None
    assert found.once_more is not None
    assert (found.message.content, found.once_more.content) == ("a", "b")
    with pytest.raises(MessageInFlight):
        await face.methods.reschedule_key("q", "k", delay_ms=1)
    assert await face.ack(first.receipt) == [True]
    assert await face.has_nothing()
    await face.advance(MINUTE_MS)
    assert (await face.take()).content == "b"


async def test_d10_to_d15_a_batch_is_in_sequence(face: Face):
    results = await face.methods.offer_many(
        "q",
        [
            Offering("1", key="a"),
            Offering("2", key="a"),
            Offering("2", key="a"),
            Offering("3", key="a", mode="create"),
            Offering("4", key=""),
            Offering("5", key="b", kind="other"),
        ],
    )
    told = [each.outcome if isinstance(each, Offered) else each.code for each in results]
    assert told == [
        "created",
        "updated",
        "ignored",
        "conflict.key_exists",
        "bad_request.key.invalid",
        "created",
    ]
    fields = [each.field for each in results if isinstance(each, ForqError)]
    assert fields == [None, "key"]
    assert await face.methods.offer_many("q", []) == []


async def test_d33_to_d35_removals(face: Face):
    first = await offer(face, "a")
    delivery = await face.take()
    second = await offer(face, "b")
    assert await face.methods.ack_revision("q", "k", first.revision) is False
    assert await face.methods.ack_revision("q", "k", second.revision) is True
    assert await face.ack(delivery.receipt) == [False]
    await offer(face, "c")
    held = await face.take()
    assert await face.methods.drop_key("q", "k") is True
    assert await face.methods.drop_key("q", "k") is False
    assert await face.ack(held.receipt) == [False]
    for key in ("x", "y"):
        await offer(face, "m", key, kind="z")
    await face.send("without a key")
    with pytest.raises(WrongPhrase):
        await face.methods.drop_keys("q", "z", confirm="yes")
    assert (await face.counts()).total == 3
    assert await face.methods.drop_keys("q", "z", confirm="q") == 2
    assert (await face.counts()).total == 1


async def test_a_message_has_its_key_wherever_it_is_seen(face: Face):
    await offer(face, "m", "a", kind="mail")
    await face.send("plain")
    found = await face.methods.keyed_message("q", "a", "mail")
    shown = await face.methods.peek("q", limit=2)
    taken = await face.receive(most=2)
    for seen in ([found.message], shown, taken):
        assert (seen[0].key, seen[0].kind) == ("a", "mail")
    for seen in (shown, taken):
        assert (seen[1].key, seen[1].kind) == (None, "")


async def test_pages_of_keys(face: Face):
    for key in ("b", "a/2", "a/1", "a_"):
        await offer(face, key, key)
    page = await face.methods.keyed_messages("q", prefix="a/", limit=1)
    rest = await face.methods.keyed_messages("q", prefix="a/", after=page.next)
    assert [each.content for each in (*page.messages, *rest.messages)] == ["a/1", "a/2"]
    assert rest.next is None


async def test_a_page_of_keys_that_ends_with_its_kind_goes_on_with_the_next(face: Face):
    for kind in ("", "y", "z"):
        await offer(face, f"of {kind}", kind=kind)
    found, after = [], None
    for _ in range(3):
        page = await face.methods.keyed_messages("q", after=after, limit=1)
        found += [each.content for each in page.messages]
        after = page.next
    assert (found, after) == (["of ", "of y", "of z"], None)


REFUSED = [
    ("offer", ("q", "", "m"), {}, InvalidKey, "key"),
    ("offer", ("q", "k" * (limits.KEY_LENGTH_MAX + 1), "m"), {}, InvalidKey, "key"),
    ("offer", ("q", "a\0", "m"), {}, InvalidKey, "key"),
    ("offer", ("q", "\udc80", "m"), {}, InvalidKey, "key"),
    ("offer", ("q", "k", "m"), {"kind": "k" * (limits.KIND_LENGTH_MAX + 1)}, InvalidKind, "kind"),
    ("offer", ("q", "k", "m"), {"kind": "\0"}, InvalidKind, "kind"),
    ("offer", ("q", "k", "m"), {"mode": "debounce"}, InvalidRequest, "delay_ms"),
    ("offer", ("q", "k", "m"), {"max_wait_ms": 1}, InvalidRequest, "max_wait_ms"),
    (
        "offer",
        ("q", "k", "m"),
        {"mode": "debounce", "delay_ms": 1, "max_wait_ms": 0},
        OutOfRange,
        "max_wait_ms",
    ),
    ("offer", ("q", "k", "m"), {"mode": "upsert"}, InvalidRequest, "mode"),
    ("offer", ("q-dlq", "k", "m"), {}, ProduceToDeadLetterQueue, None),
    ("reschedule_key", ("q", "k"), {"delay_ms": 1}, KeyNotFound, None),
    ("reschedule_key", ("q", "k"), {}, InvalidRequest, "process_after"),
    ("reschedule_key", ("q", "k"), {"delay_ms": 1, "process_after": 1}, ForqError, "process_after"),
    ("ack_revision", ("q", "k", 0), {}, OutOfRange, "revision"),
    ("drop_keys", ("nobody", ""), {"confirm": "nobody"}, QueueNotFound, None),
    *(
        ("keyed_messages", ("q",), {"after": after}, OutOfRange, "after")
        for after in ("x", "5", "null", '"ab"', '["a"]', '{"a": 1, "b": 2}', '["\\ud800", "a"]', '["", ""]')
    ),
    ("keyed_messages", ("q",), {"limit": 101}, OutOfRange, "limit"),
]
"""A method, its arguments and options, and the error that answers them, with the field that it names."""


async def test_every_face_refuses_the_same(face: Face):
    for name, arguments, options, error, field in REFUSED:
        with pytest.raises(error) as caught:
            await getattr(face.methods, name)(*arguments, **options)
        assert field is None or caught.value.field == field, (name, arguments, options)
    assert await face.queues() == []


async def test_a_full_queue_takes_no_new_key(face: Face):
    await face.configure(max_messages=1)
    await offer(face, "a")
    with pytest.raises(QueueFull):
        await offer(face, "b", "other")
    assert (await offer(face, "b")).outcome == "updated"
