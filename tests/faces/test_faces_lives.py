"""When messages may be had, and for how long: delays, times to live and leases, of messages and of queues."""

from forq_trio import NewMessage
from forq_trio.model.limits import DAY_MS
from forq_trio.model.messages.types import QueueCounts
from support.actors import T0

from .face import NOBODY
from .words import MINUTE, SECOND, contents


async def test_a_delay_of_its_own(face) -> None:
    sent = await face.send("later", delay_ms=SECOND)
    await face.send("now", delay_ms=0)
    assert (await face.message(sent.id)).process_after == T0 + SECOND
    assert contents(await face.receive(most=2)) == ["now"]
    await face.advance(SECOND - 1)
    assert await face.has_nothing()
    await face.advance(1)
    assert contents(await face.receive(most=2)) == ["later"]


async def test_the_delay_of_the_queue(face) -> None:
    await face.send("before")
    await face.configure(delay_ms=SECOND)
    await face.send_many([NewMessage("as the queue has it"), NewMessage("at once", delay_ms=0)])
    await face.send("due", process_after=T0)
    assert contents(await face.receive(most=9)) == ["before", "at once", "due"]
    await face.advance(SECOND)
    assert (await face.take()).content == "as the queue has it"


async def test_a_life_of_its_own_begins_when_it_is_due(face) -> None:
    sent = await face.send("short", delay_ms=SECOND, ttl_ms=SECOND)
    view = await face.message(sent.id)
    assert (view.ttl_ms, view.expires_after) == (SECOND, T0 + 2 * SECOND)
    await face.advance(2 * SECOND - 1)
    assert await face.counts() == QueueCounts(ready=1)
    await face.advance(1)
    assert (await face.counts(), await face.counts("q-dlq")) == (NOBODY, QueueCounts(ready=1))
    assert (await face.message(sent.id, "q-dlq")).failure_reason == "message_expired"


async def test_the_life_a_queue_gives(face) -> None:
    await face.configure(ttl_ms=SECOND)
    await face.configure("q-dlq", ttl_ms=3 * SECOND)
    await face.send("short")
    await face.send("long", ttl_ms=MINUTE)
    await face.advance(SECOND)
    assert contents(await face.peek()) == ["long"]
    (dead,) = await face.peek("q-dlq")
    assert (dead.content, dead.expires_after, dead.ttl_ms) == ("short", T0 + 4 * SECOND, None)
    await face.advance(3 * SECOND)
    assert await face.counts("q-dlq") == NOBODY


async def test_a_changed_life_is_for_new_messages(face) -> None:
    sent = await face.send()
    await face.configure(ttl_ms=SECOND)
    assert (await face.message(sent.id)).expires_after == T0 + DAY_MS


async def test_the_lease_of_the_queue(face) -> None:
    await face.configure(lease_ms=SECOND)
    await face.send()
    assert (await face.take()).lease_until == T0 + SECOND
    await face.advance(SECOND)
    delivery = await face.take(lease_ms=2 * SECOND)
    assert (delivery.lease_until, delivery.attempts) == (T0 + 3 * SECOND, 2)
    await face.advance(2 * SECOND)
    await face.poll()
    await face.advance(SECOND)
    assert (await face.take()).attempts == 4


async def test_the_first_receive_is_remembered(face) -> None:
    sent = await face.send()
    assert (await face.message(sent.id)).first_received_at is None
    await face.advance(SECOND)
    delivery = await face.take()
    assert delivery.first_received_at == T0 + SECOND
    await face.advance(SECOND)
    await face.release(delivery.receipt)
    assert (await face.message(sent.id)).first_received_at == T0 + SECOND
    assert (await face.take()).first_received_at == T0 + SECOND


async def test_attributes_travel_with_the_message(face) -> None:
    attributes = {"colour": "röt", "k" * 64: "v" * 1_024, "empty": ""}
    sent = await face.send(attributes=attributes, group="g")
    await face.send("plain", group=None)
    assert (await face.message(sent.id)).attributes == attributes
    first, second = await face.receive(most=2)
    rich, plain = sorted((first, second), key=lambda delivery: delivery.sequence)
    assert (rich.attributes, rich.group) == (attributes, "g")
    assert (plain.attributes, plain.group) == ({}, None)
