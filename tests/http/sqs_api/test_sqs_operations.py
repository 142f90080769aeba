"""The operations inside one process: what fails half way, what runs at the same time, what runs in place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
import trio

from forq_trio.broker.broker import Broker
from forq_trio.commit_policy import CommitPolicy
from forq_trio.http.message import Request
from forq_trio.http.sqs_api.attempts import Attempts
from forq_trio.http.sqs_api.caller import SqsCaller
from forq_trio.http.sqs_api.details import DetailChanges, stored_details_of
from forq_trio.http.sqs_api.errors import QUEUE_DOES_NOT_EXIST, SqsError
from forq_trio.http.sqs_api.explain import explain
from forq_trio.http.sqs_api.moves import SqsMoves
from forq_trio.http.sqs_api.names import SqsAccount, SqsQueue
from forq_trio.http.sqs_api.queues import SqsQueues
from forq_trio.http.sqs_api.receiving import SqsReceiving
from forq_trio.http.sqs_api.sending import SqsSending
from forq_trio.http.sqs_api.shapes import (
    CancelMoveTaskRequest,
    MoveTaskStarted,
    QueueUrlRequest,
    ReceiveMessageRequest,
    SendEntry,
    SendMessageBatchRequest,
    SendMessageRequest,
    StartMoveTaskRequest,
)
from forq_trio.in_place import TaskRequired, run_until_paused
from forq_trio.model import limits
from forq_trio.model.clock import machine_ms
from forq_trio.model.commands import Configure, ForgetQueue, Produce, Purge
from forq_trio.model.errors import Overloaded, QueueNotFound, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, QueueCounts
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.system import System, open_system
from oracle.engine import MemoryEngine
from oracle.reader import MemoryReader
from support.actors import ObservedEngine, TrioClock, in_a_thread, on_the_loop, tell_answers
from support.processes import WAIT_SECONDS_MAX

ACCOUNT = SqsAccount("000000000000", "us-east-1")
ARN = "arn:aws:sqs:us-east-1:000000000000:"


@asynccontextmanager
async def running(engine: Any = None, policy: CommitPolicy | None = None) -> AsyncIterator[System]:
    engine = engine or MemoryEngine(EngineSettings())
    async with open_system(engine, TrioClock(), policy=policy or on_the_loop()) as system:
        yield system


def caller() -> SqsCaller:
    request = Request("POST", "/", "", {}, b"", "127.0.0.1", lambda: nullcontext())
    return SqsCaller(request, ACCOUNT.region, ACCOUNT)


async def send_dead_letters(broker: Broker, count: int) -> None:
    await broker.produce_across([("q-dlq", NewMessage("x"))] * count)


# What fails half way


class UnreadableEngine(MemoryEngine):
    """Its messages can be claimed, but not looked at."""

    def open_reader(self) -> MemoryReader:
        def fail(queue: str, message_id: str) -> None:
            raise StorageUnavailable("disk I/O error")

        reader = super().open_reader()
        reader.message = fail
        return reader


async def test_what_was_claimed_is_released_if_its_source_cannot_be_read() -> None:
    async with running(UnreadableEngine(EngineSettings())) as system:
        broker = system.broker
        await send_dead_letters(broker, 1)
        asked = ReceiveMessageRequest("q-dlq", attribute_names=["All"])
        with pytest.raises(StorageUnavailable):
            await SqsReceiving(broker, None).receive(caller(), asked)
        await broker.healthcheck()  # the release was posted before
        assert broker.known.counts_of("q-dlq") == QueueCounts(ready=1, bytes=1)
        (found,) = await broker.receive("q-dlq")
        assert found.attempts == 1


async def test_a_message_that_is_gone_has_no_source() -> None:
    """It failed for the last time as soon as it was received, and moved on."""
    async with running() as system:
        broker = system.broker
        await broker.configure("q-dlq", max_attempts=1, dead_letter_queue="further")
        await send_dead_letters(broker, 1)
        asked = ReceiveMessageRequest("q-dlq", attribute_names=["All"], visibility_timeout=0)
        done = await SqsReceiving(broker, None).receive(caller(), asked)
        assert [each.body for each in done.result.messages] == ["x"]
        assert broker.known.counts_of("further").ready == 1


# In place


async def test_a_receive_without_visibility_asks_for_a_task_before_it_claims() -> None:
    async with running() as system:
        await system.broker.produce("q", "x")
        receive = SqsReceiving(system.broker, None).receive
        with pytest.raises(TaskRequired):
            run_until_paused(receive(caller(), ReceiveMessageRequest("q", visibility_timeout=0)))
        await system.broker.configure("q", lease_ms=0)
        with pytest.raises(TaskRequired):
            run_until_paused(receive(caller(), ReceiveMessageRequest("q")))
        assert (await system.broker.receive("q"))[0].attempts == 1


# At the same time


@asynccontextmanager
async def sent_to_after_each_purge(messages: int) -> AsyncIterator[System]:
    """A system with a queue to which somebody sends so many messages between each purge and what comes next."""
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with running(engine) as system:
        await system.broker.produce("q", "x")

        def send() -> None:
            if any(isinstance(command, Purge) for command in engine.batches[-1].commands):
                for _ in range(messages):
                    system.writer.post(Produce("q", NewMessage("y")))

        engine.after_answers = send
        tell_answers(engine, system.writer)
        yield system


async def test_a_queue_is_deleted_although_somebody_sends() -> None:
    async with sent_to_after_each_purge(3) as system:
        await SqsQueues(system.broker, DetailChanges(system.broker)).delete(caller(), QueueUrlRequest("q"))
        assert system.broker.known.queue_names() == []


async def test_a_queue_to_which_very_many_messages_are_sent_is_deleted_another_time(monkeypatch) -> None:
    monkeypatch.setattr(limits, "PURGE_BATCH_MAX", 2)
    async with sent_to_after_each_purge(3) as system:
        with pytest.raises(Overloaded, match="sent to the queue"):
            await SqsQueues(system.broker, DetailChanges(system.broker)).delete(
                caller(), QueueUrlRequest("q")
            )
        assert system.broker.known.counts_of("q").ready == 3


@pytest.mark.parametrize("batch", [False, True])
async def test_a_send_does_not_make_a_deleted_queue_again(batch: bool) -> None:
    """It finds the queue while the batch that forgets it is committed."""
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    refused: list[SqsError] = []
    async with running(engine, in_a_thread()) as system:
        await system.broker.produce("q", "x")

        async def send() -> None:
            sending, entry = SqsSending(system.broker, None), SendEntry("y", id="1")
            try:
                if batch:
                    await sending.send_batch(caller(), SendMessageBatchRequest("q", [entry]))
                else:
                    await sending.send_message(caller(), SendMessageRequest("y", queue_url="q"))
            except SqsError as error:
                refused.append(error)
            except QueueNotFound as error:
                refused.append(explain(error))

        async def send_meanwhile(nursery: trio.Nursery) -> None:
            nursery.start_soon(send)
            with trio.fail_after(WAIT_SECONDS_MAX):
                while not system.writer.inbox_calls:
                    await trio.lowlevel.checkpoint()

        def before_commit() -> None:
            if any(isinstance(command, ForgetQueue) for command in engine.batches[-1].commands):
                trio.from_thread.run(send_meanwhile, nursery)

        queues = SqsQueues(system.broker, DetailChanges(system.broker))
        async with trio.open_nursery() as nursery:
            engine.before_commit = before_commit
            await queues.delete(caller(), QueueUrlRequest("q"))
        assert [each.shape for each in refused] == [QUEUE_DOES_NOT_EXIST]
        assert system.broker.known.queue_names() == []


async def test_of_two_moves_that_start_at_once_one_does() -> None:
    async with running() as system:
        moves = SqsMoves(system.broker)
        await send_dead_letters(system.broker, 2)
        asked = StartMoveTaskRequest(f"{ARN}q-dlq", max_number_of_messages_per_second=1)
        outcomes: list[MoveTaskStarted | SqsError] = []

        async def start() -> None:
            try:
                outcomes.append(await moves.start(caller(), asked))
            except SqsError as error:
                outcomes.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            nursery.start_soon(start)
        (started,) = [each for each in outcomes if isinstance(each, MoveTaskStarted)]
        (refused,) = [each for each in outcomes if isinstance(each, SqsError)]
        assert "already a task running" in refused.message
        await moves.cancel(caller(), CancelMoveTaskRequest(started.task_handle))
        await start()
        assert isinstance(outcomes[-1], MoveTaskStarted)


async def test_a_task_that_moves_nothing_is_not_cancelled() -> None:
    async with running() as system:
        moves, tasks = SqsMoves(system.broker), system.broker.redrive_tasks
        await send_dead_letters(system.broker, 2)
        deletion = await tasks.start("q-dlq", action="delete", rate_per_second=1)
        with pytest.raises(SqsError, match="Task does not exist"):
            await moves.cancel(caller(), CancelMoveTaskRequest(deletion.id))
        assert tasks.get(deletion.id).state != "cancelled"
        await tasks.cancel(deletion.id)


# What the details of queues use


async def store_policy(changes: DetailChanges, queue: str, length: int, **settings: str) -> None:
    attributes = {"Policy": "x" * length}
    await changes.store(
        SqsQueue(queue, ACCOUNT.region, ACCOUNT), SettingsChange(**settings), attributes=attributes
    )


async def test_details_of_a_cancelled_change_that_is_stored_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQS_LONG_DETAILS_BYTES_MAX", 30_000)
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with running(engine) as system:
        changes = DetailChanges(system.broker)
        with trio.CancelScope() as scope:

            def cancel_the_change() -> None:
                if any(isinstance(each, Configure) for each in engine.batches[-1].commands):
                    scope.cancel()

            engine.before_commit = cancel_the_change
            await store_policy(changes, "a", 9_000)
        assert scope.cancelled_caught
        assert stored_details_of(system.broker, "a") is not None
        with pytest.raises(SqsError, match="too long together"):
            await store_policy(changes, "b", 25_000)
        await store_policy(changes, "a", 2_000)
        await store_policy(changes, "b", 25_000)


async def test_of_two_changes_at_once_of_which_one_fails_the_other_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SQS_LONG_DETAILS_BYTES_MAX", 40_000)
    async with running() as system:
        changes = DetailChanges(system.broker)
        await store_policy(changes, "z", 1_100)
        await system.broker.configure("b", dead_letter_queue="a")

        async def fail() -> None:
            with pytest.raises(SqsError, match="would come back"):
                await store_policy(changes, "a", 9_000, dead_letter_queue="b")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            await trio.lowlevel.checkpoint()  # so that it counts first
            nursery.start_soon(store_policy, changes, "a", 9_000)
        with pytest.raises(SqsError, match="too long together"):
            await store_policy(changes, "c", 35_000)
        await store_policy(changes, "c", 28_000)


# Attempts


async def receive_twice(broker: Broker, attempts: Attempts) -> list[Delivery]:
    """Two messages that an attempt got."""
    for content in ("a", "b"):
        await broker.produce("q", content)
    found = await broker.receive("q", max_messages=2)
    attempts.note("q", "one", found)
    return found


async def test_an_attempt_gets_the_same_as_often_as_it_is_tried() -> None:
    async with running() as system:
        attempts = Attempts(system.broker)
        found = await receive_twice(system.broker, attempts)
        for lease_ms in (60_000, None, 90_000):
            again = await attempts.again("q", "one", lease_ms)
            assert again is not None
            assert [each.receipt for each in again.deliveries] == [each.receipt for each in found]


async def test_attempts_count_each_of_their_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQS_ATTEMPTS_BYTES_MAX", 3_000)
    async with running() as system:
        attempts = Attempts(system.broker)
        await receive_twice(system.broker, attempts)
        await system.broker.produce("q", "c")
        attempts.note("q", "two", await system.broker.receive("q"))
        assert await attempts.again("q", "two", None) is not None
        assert await attempts.again("q", "one", None) is None


@pytest.mark.parametrize(("beyond_ms", "remembered"), [(0, True), (1, False)])
async def test_the_next_attempt_makes_one_that_is_too_old_be_forgotten(
    monkeypatch: pytest.MonkeyPatch, beyond_ms: int, remembered: bool
) -> None:
    now_ms = machine_ms()
    monkeypatch.setattr("forq_trio.http.sqs_api.attempts.machine_ms", lambda: now_ms)
    async with running() as system:
        attempts = Attempts(system.broker)
        await receive_twice(system.broker, attempts)
        now_ms += limits.DEDUPLICATION_WINDOW_MS_DEFAULT + beyond_ms
        await system.broker.produce("q", "c")
        attempts.note("q", "two", await system.broker.receive("q"))
        now_ms -= limits.MINUTE_MS  # back in its time
        assert (await attempts.again("q", "one", None) is not None) == remembered


@pytest.mark.parametrize("change", ["ack", "nack", "release", "extend"])
async def test_an_attempt_of_which_a_message_was_changed_changes_none(change: str) -> None:
    async with running() as system:
        attempts = Attempts(system.broker)
        first, second = await receive_twice(system.broker, attempts)
        options = {"lease_ms": 1_000} if change == "extend" else {}
        await getattr(system.broker, change)("q", second, **options)
        before = await system.broker.message("q", first.id)
        assert await attempts.again("q", "one", 60_000) is None
        assert await system.broker.message("q", first.id) == before
