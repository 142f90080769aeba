"""Moving, deleting and editing single dead letters."""

import uuid

import pytest

from forq_trio.model.errors import (
    ContentTooLarge,
    DeadLettersOnly,
    InvalidAttributes,
    InvalidQueueName,
    MessageNotFound,
    OutOfRange,
)
from forq_trio.model.limits import CONTENT_BYTES_MAX, MOVE_BATCH_MAX
from support.actors import T0
from support.results import oks

from .workbench import DEAD, QUEUE, Workbench

UNKNOWN = str(uuid.UUID(int=7))
DAY_MS = 86_400_000


async def test_f15_a_redriven_message_starts_anew_where_it_came_from(bench: Workbench) -> None:
    first, second = await bench.fail("first", "second", attributes={"a": "1"}, priority=7)
    later = await bench.broker.produce(QUEUE, "later", priority=7)
    await bench.advance(60)
    assert oks(await bench.broker.redrive(DEAD, [first])) == [True]
    assert await bench.ids(DEAD) == [second]
    message = await bench.broker.message(QUEUE, first)
    assert (message.status, message.attempts, message.attributes) == ("ready", 0, {"a": "1"})
    assert (message.process_after, message.expires_after) == (T0 + 60_000, T0 + 60_000 + DAY_MS)
    assert (message.received_at, message.dead_lettered_at, message.source_attempts) == (T0, None, None)
    received = await bench.broker.receive(QUEUE, max_messages=2, wait_ms=0)
    assert [delivery.id for delivery in received] == [first, later.id]  # it kept its place


async def test_failures_outlive_a_redrive(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x", reason="first time")
    await bench.broker.redrive(DEAD, [message_id])
    again = await bench.broker.message(QUEUE, message_id)
    assert (again.attempts, again.failure_reason, again.source_queue) == (0, None, None)
    await bench.nack(await bench.broker.receive(QUEUE, wait_ms=0), reason="second time")
    await bench.all_dead(1)
    dead = await bench.broker.message(DEAD, message_id)
    assert [failure.reason for failure in dead.failures] == ["first time", "second time"]
    assert dead.last_error == "second time"


async def test_a_message_in_process_is_left_to_its_consumer(bench: Workbench) -> None:
    held, free = await bench.fail("held", "free")
    (delivery,) = await bench.broker.receive(DEAD, wait_ms=0)
    assert delivery.id == held
    assert oks(await bench.broker.redrive(DEAD, [held, free])) == [False, True]
    assert oks(await bench.broker.delete_dead_letters(DEAD, [held])) == [False]
    with pytest.raises(MessageNotFound):
        await bench.broker.resubmit(DEAD, held, remove=True)
    assert oks(await bench.broker.ack(DEAD, [delivery.receipt])) == [True]


async def test_a_refused_copy_removes_nothing(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x")
    with pytest.raises(ContentTooLarge):
        await bench.broker.resubmit(DEAD, message_id, content="x" * (CONTENT_BYTES_MAX + 1), remove=True)
    with pytest.raises(InvalidAttributes):
        await bench.broker.resubmit(DEAD, message_id, attributes={"": "x"}, remove=True)
    with pytest.raises(InvalidQueueName):
        await bench.broker.resubmit(DEAD, message_id, target="no queue", remove=True)
    with pytest.raises(MessageNotFound):
        await bench.broker.resubmit(DEAD, UNKNOWN, remove=True)
    assert await bench.ids(DEAD) == [message_id]


async def test_a_dead_letter_queue_by_setting(bench: Workbench) -> None:
    broker = bench.broker
    with pytest.raises(DeadLettersOnly):
        broker.known.check_dead_letter_queue("morgue")
    await broker.configure(QUEUE, dead_letter_queue="morgue")
    ids = await bench.fail("a", "b", dead="morgue")
    assert (await broker.message("morgue", ids[0])).source_queue == QUEUE
    assert oks(await broker.redrive("morgue", ids[:1])) == [True]
    task = await broker.redrive_tasks.start("morgue")
    await broker.redrive_tasks.wait(task.id)
    assert (bench.count("morgue"), bench.count(QUEUE)) == (0, 2)


async def test_other_queues_are_refused(bench: Workbench) -> None:
    broker = bench.broker
    sent = await broker.produce(QUEUE, "x")
    with pytest.raises(DeadLettersOnly):
        await broker.redrive(QUEUE, [sent.id], target="repair")
    with pytest.raises(DeadLettersOnly):
        await broker.delete_dead_letters(QUEUE, [sent.id])
    with pytest.raises(DeadLettersOnly):
        await broker.resubmit(QUEUE, sent.id, remove=True)
    with pytest.raises(DeadLettersOnly):
        await broker.redrive_tasks.start(QUEUE, target="repair")
    assert await bench.ids(QUEUE) == [sent.id]


async def test_bounds_of_a_move(bench: Workbench) -> None:
    for change in (bench.broker.redrive, bench.broker.delete_dead_letters):
        with pytest.raises(OutOfRange):
            await change(DEAD, [UNKNOWN] * (MOVE_BATCH_MAX + 1))
        codes = [result.code for result in await change(DEAD, ["nonsense", UNKNOWN])]
        assert codes == ["bad_request.messageId.invalid", "not_found.message"]
        assert await change(DEAD, []) == []
