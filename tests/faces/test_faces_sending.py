"""Messages go in and come out: contract F1, F2, F3."""

import pytest

from forq_trio import ForqError, NewMessage
from forq_trio.model import limits
from support.actors import T0

from .face import CONTENT_TOO_LARGE, IN_PAST, QUEUE_INVALID, SENT_TO_DLQ, TOO_FAR
from .running import open_face
from .words import contents


async def test_f1_a_message_that_was_sent_can_be_seen_and_received(face) -> None:
    sent = await face.send("hello")
    assert (await face.message(sent.id)).content == "hello"
    delivery = await face.take()
    assert (delivery.id, delivery.sequence, delivery.content) == (sent.id, sent.sequence, "hello")
    assert (delivery.received_at, delivery.lease_until) == (T0, T0 + limits.LEASE_MS_DEFAULT)
    assert await face.has_nothing()


@pytest.mark.parametrize("durability", ["full", "normal"])
async def test_f1_what_was_answered_is_there_after_a_restart(kind, durability, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_face(kind, url, durability) as face:
        await face.send("ready")
        leased = await face.take()
        await face.send("delayed", process_after=T0 + 1_000)
        await face.send("done")
        await face.ack((await face.take()).receipt)
    async with open_face(kind, url, durability) as face:
        assert await face.has_nothing()
        assert await face.extend(leased.receipt, lease_ms=500) == [T0 + 500]
        await face.advance(1_000)
        assert contents(await face.receive(most=10)) == ["ready", "delayed"]


async def test_f3_first_in_first_out(face) -> None:
    """By arrival, whatever the order in which delayed messages were due, and a batch in its own order."""
    await face.send("1", process_after=T0 + 20)
    await face.send_many([NewMessage("2"), NewMessage("3", T0 + 10), NewMessage("4")])
    await face.send("5")
    await face.advance(20)
    assert contents(await face.receive(most=2)) == ["1", "2"]
    assert contents(await face.receive(most=10)) == ["3", "4", "5"]


async def test_f3_queues_do_not_mix(face) -> None:
    await face.send("a", "one")
    await face.send("b", "two")
    assert (await face.take("two")).content == "b"
    assert (await face.take("one")).content == "a"


async def test_f1_a_batch_is_answered_in_order_and_judged_one_by_one(face) -> None:
    too_large = "x" * (limits.CONTENT_BYTES_MAX + 1)
    ahead = T0 + limits.PROCESS_AFTER_AHEAD_MS_MAX
    results = await face.send_many(
        [
            NewMessage("first"),
            NewMessage(too_large),
            NewMessage("past", T0 - limits.PROCESS_AFTER_GRACE_MS - 1),
            NewMessage("second"),
            NewMessage("far", ahead + 1),
            NewMessage("third"),
        ]
    )
    assert [results[index] for index in (1, 2, 4)] == [CONTENT_TOO_LARGE, IN_PAST, TOO_FAR]
    stored = [results[index] for index in (0, 3, 5)]
    assert [message.sequence for message in stored] == [1, 2, 3]
    received = await face.receive(most=10)
    assert contents(received) == ["first", "second", "third"]
    assert [delivery.id for delivery in received] == [message.id for message in stored]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"content": "é" * (limits.CONTENT_BYTES_MAX // 2) + "x"}, CONTENT_TOO_LARGE),
        ({"process_after": T0 - limits.PROCESS_AFTER_GRACE_MS - 1}, IN_PAST),
        ({"process_after": T0 + limits.PROCESS_AFTER_AHEAD_MS_MAX + 1}, TOO_FAR),
        ({"queue": "no name"}, QUEUE_INVALID),
        ({"queue": "x" * 65}, QUEUE_INVALID),
        ({"queue": "q-dlq"}, SENT_TO_DLQ),
    ],
)
async def test_f1_f2_what_is_refused_is_not_stored(face, message, code) -> None:
    with pytest.raises(ForqError) as refusal:
        await face.send(**message)
    assert refusal.value.code == code
    assert (await face.send()).sequence == 1


async def test_f1_content_comes_back_as_it_was(face) -> None:
    longest = "é" * (limits.CONTENT_BYTES_MAX // 2)
    sent = ["", "\x00 \u2028 😀 \\u0000", longest]
    for content in sent:
        await face.send(content)
    assert contents(await face.receive(most=3)) == sent
