"""Watches: told that messages became ready, claiming none. What a peek that waits is built on."""

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.commands import Ack, Pause
from forq_trio.model.messages import Receipt
from support.actors import elapse, running_writer
from support.words import claim, contents, send


class Watcher:
    """A task that waits for one round of a queue's watch. woken: its round came."""

    def __init__(self, nursery: trio.Nursery, writer, queue: str = "q") -> None:
        self.woken = False
        nursery.start_soon(self._watch, writer, queue)

    async def _watch(self, writer, queue: str) -> None:
        with writer.watches.on(queue) as watch:
            await watch.event.wait()
            self.woken = True


async def test_a_commit_that_makes_a_message_ready_wakes_all_watchers_of_its_queue_alone(engine) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        watchers = [Watcher(nursery, writer) for _ in range(3)]
        elsewhere = Watcher(nursery, writer, "other")
        await wait_all_tasks_blocked()
        await writer.execute(send())
        await wait_all_tasks_blocked()
        assert [watcher.woken for watcher in watchers] == [True, True, True]
        assert not elsewhere.woken
        nursery.cancel_scope.cancel()


async def test_what_makes_nothing_ready_wakes_nobody(engine) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        watcher = Watcher(nursery, writer)
        await wait_all_tasks_blocked()
        (delivery,) = await writer.execute(claim())
        await writer.execute(Ack("q", (Receipt.parse(delivery.receipt),)))
        await wait_all_tasks_blocked()
        assert not watcher.woken
        nursery.cancel_scope.cancel()


async def test_a_watch_takes_no_message_from_a_parked_receiver(engine) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        watcher = Watcher(nursery, writer)
        received: list[str] = []

        async def receive() -> None:
            received.extend(contents(await writer.execute(claim(30_000))))

        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        await writer.execute(send("for the receiver"))
        await wait_all_tasks_blocked()
        assert received == ["for the receiver"]
        assert watcher.woken


async def test_time_and_the_end_of_a_pause_wake_watchers(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(send(delay_ms=5_000))
        delayed = Watcher(nursery, writer)
        await elapse(4.9)
        assert not delayed.woken
        await elapse(0.2)
        assert delayed.woken

        await writer.execute(Pause("q", paused=True))
        paused = Watcher(nursery, writer)
        await wait_all_tasks_blocked()
        assert not paused.woken
        await writer.execute(Pause("q", paused=False))
        await wait_all_tasks_blocked()
        assert paused.woken


async def test_a_round_ends_with_its_commit_and_nothing_is_kept_of_watchers_that_left(engine) -> None:
    async with running_writer(engine) as writer:
        with writer.watches.on("q") as watch:
            first = watch.event
            await writer.execute(send())
            assert first.is_set()
            assert not watch.event.is_set()
        with writer.watches.on("q") as again:
            assert again is not watch


async def test_draining_wakes_watchers_and_says_that_nothing_more_will_come(engine) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        watcher = Watcher(nursery, writer)
        await wait_all_tasks_blocked()
        assert not writer.watches.closed
        writer.drain_receivers()
        await wait_all_tasks_blocked()
        assert watcher.woken
        assert writer.watches.closed
