"""A disk whose syncs take 200 ms: everybody waits for their own commit only, and nobody else for anybody's.

What is counted is syncs, and whether the loop answers while one lasts; how long it all takes says more about the
machine.
"""

import threading
import time

import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.clock import SystemClock
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.system import open_system
from reliability.disk.faulty import FaultyDisk

SYNC_SECONDS = 0.2
LOOP_SECONDS_MAX = 60.0
PRODUCERS = 100
ROUNDS = 5
# To close: the reserve is given back, the log is copied and cut, and the directory is told.
SYNCS_TO_CLOSE_MAX = 6


class SlowSyncs:
    """Makes each sync of `disk` last, and asks the loop for a sign of life meanwhile.

    answered: for each sync so far, whether the loop answered before it ended; one on the loop's own thread never is.
    """

    def __init__(self, disk: FaultyDisk) -> None:
        self.answered: list[bool] = []
        self._loop = trio.lowlevel.current_trio_token()
        self._loop_thread = threading.current_thread()
        disk.on_sync = self._sync

    def _sync(self) -> None:
        if threading.current_thread() is self._loop_thread:
            self.answered.append(False)
            threading.Event().wait(SYNC_SECONDS)  # nobody sets it: this disk is slow
            return
        ends = time.perf_counter() + SYNC_SECONDS
        sign_of_life = threading.Event()
        self._loop.run_sync_soon(sign_of_life.set)
        self.answered.append(sign_of_life.wait(LOOP_SECONDS_MAX))
        threading.Event().wait(max(ends - time.perf_counter(), 0))


async def produce(broker: Broker) -> None:
    for _ in range(ROUNDS):
        await broker.produce("orders", "x")


async def test_commits_leave_the_loop_and_are_shared(quick_path) -> None:
    delivered = []

    async def consume() -> None:
        delivered.extend(await broker.receive("polled", wait_ms=30_000))

    with FaultyDisk(with_syncs=True).in_use() as disk:
        engine = SqliteEngine(str(quick_path / "forq.db"), EngineSettings())
        async with open_system(engine, SystemClock()) as system:
            broker = system.broker
            syncs = SlowSyncs(disk)
            await broker.produce("orders", "the one that shows how slow the disk is")
            assert syncs.answered == [False], "nothing was known of the disk yet"
            syncs.answered.clear()
            async with trio.open_nursery() as workers:
                workers.start_soon(consume)
                for _ in range(PRODUCERS):
                    workers.start_soon(produce, broker)
                await broker.produce("polled", "hello")
            answered = list(syncs.answered)
            assert broker.known.counts()["orders"].ready == PRODUCERS * ROUNDS + 1
            syncs.answered.clear()
        assert len(syncs.answered) <= SYNCS_TO_CLOSE_MAX
    assert [delivery.content for delivery in delivered] == ["hello"]
    assert ROUNDS <= len(answered) < 4 * ROUNDS, "commits are not shared"
    assert all(answered), "the loop waited for a sync"
