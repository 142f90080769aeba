"""`open_broker` under asyncio: trio runs as a guest in the loop."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
import trio

from forq_trio import Broker, Delivery, InvalidQueueName, OutOfRange, Stopping, StorageOpenError, open_broker
from forq_trio.delayed import DelayedQueue
from forq_trio.embedded.calls import EmbeddedCall
from forq_trio.store import CommitFailed, Store
from forq_trio.worker import Worker


async def parked(broker: Broker, queue: str) -> asyncio.Task[list[Delivery]]:
    """A task whose receive waits."""
    task = asyncio.create_task(broker.receive(queue))
    while not broker.known.waiting(queue):
        await broker.healthcheck()
    return task


def run_plainly(main: Coroutine[Any, Any, None]) -> None:
    """Like `asyncio.run`, which has a handler for Ctrl-C, without one."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(main)
    try:
        loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        loop.run_until_complete(asyncio.wait((task,)))
        raise
    finally:
        loop.close()


def in_broker(body: Callable[[Broker], Awaitable[None]]) -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            await body(broker)

    asyncio.run(main())


def test_messages_go_round() -> None:
    async def body(broker: Broker) -> None:
        assert isinstance(broker, Broker)
        await broker.produce("q", "one", priority=2)
        (delivery,) = await broker.receive("q", lease_ms=5_000)
        assert delivery.content == "one"
        assert (await broker.ack("q", delivery)).ok
        assert [each.queue for each in await broker.queues()] == ["q"]

    in_broker(body)


def test_errors_are_those_of_the_method() -> None:
    async def body(broker: Broker) -> None:
        with pytest.raises(InvalidQueueName):
            await broker.produce("not a name", "x")
        with pytest.raises(TypeError):
            await broker.produce("q", "x", colour="red")  # type: ignore[call-arg]

    in_broker(body)


def test_what_the_body_raises_comes_out_as_it_is() -> None:
    async def body(broker: Broker) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        in_broker(body)


def test_the_objects_that_a_broker_fronts_work_too() -> None:
    async def body(broker: Broker) -> None:
        await broker.produce("q", "one")
        assert (await broker.lists.count_keys("q")) == {}
        assert await broker.sessions.end_all() == 0
        assert broker.known.counts_of("q").ready == 1
        assert broker.redrive_tasks.all() == []

    in_broker(body)


def test_a_delayed_queue_works() -> None:
    async def body(broker: Broker) -> None:
        queue = await DelayedQueue.create(broker, "alarms", str)
        await queue.offer_or_update("tea", "ready", timedelta(0))
        envelope = await queue.poll()
        assert envelope.payload == "ready"
        await envelope.acknowledge()

    in_broker(body)


class HandClock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.ms


def test_a_worker_works_and_time_is_moved_by_hand() -> None:
    async def main() -> None:
        clock, done, got = HandClock(), [], asyncio.Event()
        async with open_broker("memory:", clock=clock) as broker:
            app = Worker(broker)

            @app.on("reminders")
            async def remind(text: str) -> None:
                done.append(text)
                got.set()

            await remind.later("tea", delay=3_600)
            assert await app.drain() == 0
            clock.ms += 3_600_000
            assert await app.drain() == 1
            async with app:
                got.clear()
                await app.send("reminders", "beside the body")
                await got.wait()
        assert done == ["tea", "beside the body"]

    asyncio.run(main())


def test_a_cancelled_receive_leaves_no_receiver() -> None:
    async def body(broker: Broker) -> None:
        receiver = await parked(broker, "q")
        receiver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiver
        assert broker.known.waiting("q") == 0

    in_broker(body)


def test_a_message_for_a_receiver_who_left_is_released_uncounted(monkeypatch) -> None:
    """The receiver is cancelled between the answer of the broker and its own next step."""

    async def body(broker: Broker) -> None:
        receiver = await parked(broker, "q")

        def finish_and_cancel(call: EmbeddedCall) -> None:
            finish(call)
            receiver.cancel()

        finish = EmbeddedCall._finish
        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedCall, "_finish", finish_and_cancel)
            await broker.produce("q", "one")
            with pytest.raises(asyncio.CancelledError):
                await receiver
        (delivery,) = await broker.receive("q", wait_ms=30_000)
        assert (delivery.content, delivery.attempts) == ("one", 1)

    in_broker(body)


def test_leaving_answers_those_who_wait_and_refuses_later_calls() -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            receiver = await parked(broker, "q")
        assert await receiver == []
        with pytest.raises(Stopping, match="closed"):
            await broker.produce("q", "late")

    asyncio.run(main())


def test_a_cancelled_block_keeps_what_was_sent(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"

    async def block(sent: asyncio.Event) -> None:
        async with open_broker(url) as broker:
            await broker.produce("q", "kept")
            sent.set()
            await asyncio.Future()

    async def main() -> None:
        sent = asyncio.Event()
        task = asyncio.create_task(block(sent))
        await sent.wait()
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        async with open_broker(url) as broker:
            assert (await broker.queue_stats("q")).ready == 1

    asyncio.run(main())


@pytest.mark.parametrize("run", [asyncio.run, run_plainly])
def test_ctrl_c_finishes_what_was_sent(tmp_path, run) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"

    async def main() -> None:
        async with open_broker(url) as broker:
            await broker.produce("q", "kept")
            signal.raise_signal(signal.SIGINT)
            await asyncio.Future()

    async def look() -> int:
        async with open_broker(url) as broker:
            return (await broker.queue_stats("q")).ready

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert asyncio.run(look()) == 1


def test_cancelled_while_it_opens_it_closes_the_file(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"

    async def block() -> None:
        async with open_broker(url):
            raise AssertionError("opened")

    async def main() -> None:
        task = asyncio.create_task(block())
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.wait((task,))
        assert task.cancelled()
        async with open_broker(url) as broker:
            await broker.healthcheck()

    asyncio.run(main())


def test_brokers_of_one_loop_share_a_guest_run() -> None:
    async def main() -> None:
        async with open_broker("memory:") as first:
            async with open_broker("memory:") as second:
                await second.produce("q", "second")
                assert await first.receive("q", wait_ms=0) == []
            await first.produce("q", "first")
        async with open_broker("memory:") as third:
            assert await third.receive("q", wait_ms=0) == []

    asyncio.run(main())


def test_what_cannot_be_opened_is_refused_without_groups(tmp_path) -> None:
    (tmp_path / "queue.db").write_text("no database" * 100)

    async def main() -> None:
        with pytest.raises(StorageOpenError):
            async with open_broker(f"sqlite:///{tmp_path}/queue.db"):
                raise AssertionError("opened")
        with pytest.raises(OutOfRange):
            async with open_broker("memory:", history_hours=0):
                raise AssertionError("opened")

    asyncio.run(main())


def test_a_failed_commit_cancels_the_body_and_ends_the_block(monkeypatch) -> None:
    async def fail(*_: object) -> None:
        raise CommitFailed("the disk went away")

    async def body(broker: Broker) -> None:
        monkeypatch.setattr(Store, "_commit", fail)
        sender = asyncio.create_task(broker.produce("q", "lost"))
        await asyncio.wait((sender,))
        assert sender.exception() is not None
        await asyncio.Future()

    async def main() -> None:
        with pytest.raises(CommitFailed, match="the disk went away"):
            async with open_broker("memory:") as broker:
                await body(broker)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(main())


def test_another_loop_is_refused() -> None:
    async def in_another(broker: Broker) -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            await broker.healthcheck()

    async def body(broker: Broker) -> None:
        await asyncio.to_thread(lambda: asyncio.run(in_another(broker)))
        await asyncio.to_thread(trio.run, in_another, broker)

    in_broker(body)


async def test_on_trio_nothing_is_bridged() -> None:
    async with open_broker("memory:") as broker:
        assert type(broker) is Broker


def test_without_a_loop_it_says_what_to_use() -> None:
    with pytest.raises(RuntimeError, match=r"trio or asyncio; .* open_blocking_broker"):
        open_broker("memory:").__aenter__().send(None)  # type: ignore[attr-defined]
