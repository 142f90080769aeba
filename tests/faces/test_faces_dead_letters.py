"""How messages fail, where they go, and what is kept of it: attempts, back-off, targets, of messages and queues."""

from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import ExponentialBackOff
from support.actors import T0

from .face import NOBODY, SETTING_INVALID
from .words import MINUTE, SECOND, code_of, contents


async def fails_after(face, attempts: int, queue: str = "q") -> None:
    """The message of `queue` can be had so often, and then no more."""
    for attempt in range(1, attempts + 1):
        delivery = await face.take(queue)
        assert delivery.attempts == attempt
        await face.nack(delivery.receipt, delay_ms=0, queue=queue)
    await face.advance(0)
    assert await face.counts(queue) == NOBODY


async def test_attempts_of_a_message_and_of_a_queue(face) -> None:
    await face.configure(max_attempts=2)
    await face.send()
    await fails_after(face, 2)
    await face.send(max_attempts=3)
    await fails_after(face, 3)
    await face.send(max_attempts=1)
    await fails_after(face, 1)
    assert await face.counts("q-dlq") == QueueCounts(ready=3)


async def test_fewer_attempts_hold_for_what_is_there(face) -> None:
    await face.send()
    await face.configure(max_attempts=1)
    await fails_after(face, 1)


async def test_delays_by_attempt(face) -> None:
    await face.configure(back_off=(10, 30))
    await face.send()
    for delay_ms in (10, 30, 30):
        await face.nack((await face.take()).receipt)
        await face.advance(delay_ms - 1)
        assert await face.has_nothing()
        await face.advance(1)
    assert (await face.take()).attempts == 4


async def test_delays_by_a_formula(face) -> None:
    await face.configure(back_off=ExponentialBackOff(100, factor=3.0, max_ms=500))
    sent = await face.send()
    for delay_ms in (100, 300, 500, 500):
        now = (await face.message(sent.id)).process_after
        await face.nack((await face.take()).receipt)
        assert (await face.message(sent.id)).process_after == now + delay_ms
        await face.advance(delay_ms)


async def test_random_delays_stay_within_their_share(face) -> None:
    await face.configure(back_off=ExponentialBackOff(1_000, jitter=0.5))
    delays = set()
    for _ in range(20):
        sent = await face.send()
        await face.nack((await face.take()).receipt)
        delays.add((await face.message(sent.id)).process_after - T0)
    assert len(delays) > 5
    assert 500 <= min(delays) <= max(delays) <= 1_000


async def test_targets_of_messages_and_of_queues(face) -> None:
    await face.configure(dead_letter_queue="graveyard", max_attempts=1)
    await face.send("the queue's")
    await face.send("its own", dead_letter_queue="elsewhere")
    await face.send("none", dead_letter_queue="")
    for delivery in await face.receive(most=3):
        await face.nack(delivery.receipt)
    await face.advance(0)
    assert contents(await face.peek("graveyard")) == ["the queue's"]
    assert contents(await face.peek("elsewhere")) == ["its own"]
    assert await face.counts("q") == await face.counts("q-dlq") == NOBODY


async def test_a_queue_without_dead_letters(face) -> None:
    await face.configure(dead_letter_queue="")
    await face.send(max_attempts=1)
    await face.send(ttl_ms=SECOND)
    await face.nack((await face.take()).receipt)
    await face.advance(SECOND)
    assert await face.counts() == await face.counts("q-dlq") == NOBODY


async def test_dead_letters_may_not_go_round(face) -> None:
    await face.configure("a", dead_letter_queue="b")
    await face.configure("b", dead_letter_queue="c")
    code = SETTING_INVALID + "deadLetterQueue"
    assert await code_of(face.configure("c", dead_letter_queue="a")) == code
    assert await code_of(face.configure("c", dead_letter_queue="c")) == code
    assert await code_of(face.configure("c", dead_letter_queue="no name")) == code
    await face.configure("c", dead_letter_queue="d")


async def test_what_is_kept_of_a_dead_letter(face) -> None:
    sent = await face.send(max_attempts=3, attributes={"k": "v"}, group="g", priority=7)
    first = await face.take()
    await face.nack(first.receipt, delay_ms=0, reason="first")
    await face.take(lease_ms=SECOND)
    await face.advance(SECOND)
    await face.nack((await face.take()).receipt, reason="last")
    await face.advance(0)
    dead = await face.message(sent.id, "q-dlq")
    assert [(each.attempt, each.at, each.reason) for each in dead.failures] == [
        (1, T0, "first"),
        (2, T0 + SECOND, "lease ended"),
        (3, T0 + SECOND, "last"),
    ]
    assert (dead.failure_reason, dead.last_error) == ("max_attempts_reached", "last")
    assert (dead.source_queue, dead.source_attempts, dead.attempts) == ("q", 3, 0)
    assert (dead.dead_lettered_at, dead.received_at, dead.first_received_at) == (T0 + SECOND, T0, T0)
    assert (dead.attributes, dead.group, dead.priority) == ({"k": "v"}, "g", 7)
    assert dead.sequence == sent.sequence


async def test_the_latest_failures_are_kept(face) -> None:
    sent = await face.send(max_attempts=30)
    for attempt in range(25):
        await face.nack((await face.take()).receipt, delay_ms=0, reason=str(attempt))
    reasons = [failure.reason for failure in (await face.message(sent.id)).failures]
    assert reasons == [str(attempt) for attempt in range(5, 25)]


async def test_a_message_of_its_own_target_is_not_sent_round(face) -> None:
    """What fails again where its own target brought it, goes on as that queue has it."""
    await face.configure("elsewhere", max_attempts=1)
    await face.send(dead_letter_queue="elsewhere", ttl_ms=MINUTE)
    await face.advance(MINUTE)
    await face.nack((await face.take("elsewhere")).receipt, queue="elsewhere")
    await face.advance(0)
    assert await face.counts("elsewhere-dlq") == QueueCounts(ready=1)
