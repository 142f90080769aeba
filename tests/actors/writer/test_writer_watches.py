"""Watches: told that messages became ready, claiming none. What a peek that waits is built on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.commands import Ack, Pause
from forq_trio.model.messages.types import Receipt
from forq_trio.watches import EndingWatches, QueueSetWatches, Watches
from support.actors import elapse, running_writer
from support.words import claim, contents, send


class Watcher:
    """A task that waits for one round of a queue's watch. woken: its round came."""

    def __init__(self, nursery: trio.Nursery, writer, queue: str = "q") -> None:
        self.woken = False
        nursery.start_soon(self._watch, writer, queue)

    async def _watch(self, writer, queue: str) -> None:
        with writer.announced.ready.on(queue) as watcher:
            await watcher.wait()
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


async def test_what_happens_while_a_watcher_reads_ends_its_next_wait(engine) -> None:
    async with running_writer(engine) as writer:
        with writer.announced.ready.on("q") as watcher:
            watcher.mark()
            await writer.execute(send())
            await watcher.wait()
            watcher.mark()
            with trio.move_on_after(0) as missed:
                await watcher.wait()
            assert missed.cancelled_caught


async def test_nothing_is_kept_of_watchers_that_left(engine) -> None:
    async with running_writer(engine) as writer:
        with writer.announced.ready.on("q"):
            assert "q" in writer.announced.ready
        assert "q" not in writer.announced.ready


class Crowd:
    """Many watchers of a queue. Each wakes, reads until it may go on, and waits again; reading: how many read now."""

    def __init__(self, size: int) -> None:
        self.watches = Watches()
        self.reading = self.most = 0
        self.rounds = [0] * size
        self.gate = trio.Semaphore(0)
        self.scopes = [trio.CancelScope() for _ in range(size)]

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """All of them wait, until the body ends."""
        async with trio.open_nursery() as nursery:
            for n in range(len(self.scopes)):
                nursery.start_soon(self._watch, n)
            await wait_all_tasks_blocked()
            yield
            nursery.cancel_scope.cancel()

    async def _watch(self, n: int) -> None:
        with self.scopes[n], self.watches.on("q") as watcher:
            while True:
                watcher.mark()
                await watcher.wait()
                self.reading += 1
                self.most = max(self.most, self.reading)
                try:
                    await self.gate.acquire()
                finally:
                    self.reading -= 1
                self.rounds[n] += 1

    async def happens(self) -> None:
        self.watches.notify(["q"])
        await wait_all_tasks_blocked()

    async def let(self, count: int) -> None:
        """So many may go on, or come and go on."""
        for _ in range(count):
            self.gate.release()
        await wait_all_tasks_blocked()


async def test_of_many_watchers_a_few_are_awake_at_once_and_all_have_their_round(autojump_clock) -> None:
    size, most = 300, limits.WATCHERS_AWAKE_MAX
    crowd = Crowd(size)
    async with crowd.waiting():
        await crowd.happens()
        assert crowd.reading == most
        await crowd.let(10)
        assert (crowd.reading, sum(crowd.rounds)) == (most, 10)
        await crowd.let(size)
        assert crowd.rounds == [1] * size
        assert (crowd.reading, crowd.most) == (0, most)


async def test_watchers_that_are_cancelled_hold_up_nobody(autojump_clock) -> None:
    crowd = Crowd(100)
    async with crowd.waiting():
        crowd.watches.notify(["q"])
        for scope in crowd.scopes[:50]:  # some of them are awake, others wait
            scope.cancel()
        await wait_all_tasks_blocked()
        assert crowd.reading == limits.WATCHERS_AWAKE_MAX
        await crowd.let(50)
        assert crowd.rounds == [0] * 50 + [1] * 50
        crowd.watches.notify(["q"])
        await crowd.let(50)
        assert crowd.rounds == [0] * 50 + [2] * 50


async def test_what_happens_again_wakes_those_that_have_read_already(autojump_clock) -> None:
    crowd = Crowd(40)
    async with crowd.waiting():
        for _ in range(3):
            await crowd.happens()
        await crowd.let(1_000)
        assert min(crowd.rounds) >= 1
        assert max(crowd.rounds) <= 3
        before = list(crowd.rounds)
        await crowd.happens()
        assert crowd.rounds == [each + 1 for each in before]


async def test_draining_wakes_watchers_and_says_that_nothing_more_will_come(engine) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        watcher = Watcher(nursery, writer)
        await wait_all_tasks_blocked()
        assert not writer.announced.ready.closed
        writer.drain_receivers()
        await wait_all_tasks_blocked()
        assert watcher.woken
        assert writer.announced.ready.closed


async def test_one_watches_several_queues_and_nothing_is_kept_of_those_that_left(autojump_clock) -> None:
    watches, woken = QueueSetWatches(), []

    async def watch(*queues: str) -> None:
        with watches.on_any(queues) as watcher:
            await watcher.wait()
            woken.append(queues)

    async with trio.open_nursery() as nursery:
        for queues in (("a", "b"), ("b", "a"), ("b", "c"), ("c",)):
            nursery.start_soon(watch, *queues)
        await wait_all_tasks_blocked()
        watches.notify(["d"])
        await wait_all_tasks_blocked()
        assert woken == []
        watches.notify(["a", "d"])
        await wait_all_tasks_blocked()
        assert sorted(woken) == [("a", "b"), ("b", "a")]
        watches.notify_all()
    assert sorted(woken[2:]) == [("b", "c"), ("c",)]
    assert not watches
    assert watches._sets == {}


async def test_who_waits_for_an_end_looks_again_when_anything_may_have_happened(autojump_clock) -> None:
    watches = EndingWatches()
    with watches.on("id") as watcher:
        watches.notify_all()
        await watcher.wait()
        assert watches.ending("id") is None
