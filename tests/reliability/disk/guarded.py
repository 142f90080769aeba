"""A writer with the jobs that watch its disk, whose size is what a test says."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from forq_trio.jobs.checkpointer import Checkpointer
from forq_trio.jobs.disk_guard import DiskGuard
from forq_trio.jobs.housekeeping import Housekeeping
from forq_trio.jobs.retention import BytesBound, BytesWatch, Retention, retention_job
from forq_trio.model import limits
from forq_trio.model.commands import LeaseMessages, MoveBack, OpenConsumer, SettleLease
from forq_trio.model.consumers.types import PipelineConsumer, Settling
from forq_trio.model.errors import StorageFull
from forq_trio.model.limits import KIB, MIB
from forq_trio.model.logs.types import LogName
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from support.actors import TrioClock, all_idle, running_writer, until
from support.words import ack, claim, send

KEEP = 4 * MIB
LOGS: tuple[LogName, ...] = ("history", "events")
DISK = 24 * MIB
BODY = 100 * KIB
IDLE_MS = limits.CONSUMER_IDLE_SECONDS_MIN * limits.SECOND_MS


class Server:
    """A writer with its guard and checkpointer. low: the least that was free beside the reserve file.
    ids: of the messages that filled the disk."""

    def __init__(self, directory: Path, settings: EngineSettings | None = None) -> None:
        self.directory = directory
        self.low = DISK
        self.ids: list[str] = []
        self.writer: WriterActor
        self.counters = Counters()
        self.guard: DiskGuard
        self.house = Housekeeping()
        self.engine = SqliteEngine(str(directory / "forq.db"), settings or EngineSettings())

    def free_bytes(self, _directory: Path) -> int:
        taken = sum(entry.stat().st_size for entry in os.scandir(self.directory))
        self.low = min(self.low, DISK - taken)
        return DISK - taken

    def reserve_bytes(self) -> int:
        return os.path.getsize(self.engine.log.reserve_path)

    async def start(self, nursery: trio.Nursery, keep_bytes: int = KEEP) -> None:
        self.guard = self.house.disk_guard = DiskGuard(
            self.engine.log, self.writer, TrioClock(), self.counters, keep_bytes, self.free_bytes
        )
        nursery.start_soon(self.guard.run)
        await until(
            lambda: self.guard._reserve.exists is bool(keep_bytes) and not self.writer.storage.sends_refused
        )

    def checkpoints(self, nursery: trio.Nursery) -> None:
        checkpointer = Checkpointer(self.engine.log, self.writer, self.counters, self.guard.checkpointed)
        self.house.checkpointer = checkpointer
        self.guard.checkpoint_soon = checkpointer.hurry
        nursery.start_soon(checkpointer.run)

    def retain(self, nursery: trio.Nursery) -> None:
        """Run the jobs that shorten the logs, which give way to sends."""
        bounds = {
            log: BytesBound(64 * MIB, lambda: self.writer.storage.sends_refused, grows=log == "history")
            for log in LOGS
        }
        jobs = {
            log: (retention_job(self.writer, TrioClock(), log, Retention(), bounds[log]), bounds[log])
            for log in LOGS
        }
        self.house.retention = BytesWatch(self.writer.snapshot, jobs)
        self.guard.give_way = self.house.retention.give_way
        for job, _ in jobs.values():
            nursery.start_soon(job.run)

    async def fill(self, **fields: Any) -> int:
        """Send until it is refused; returns how many were stored."""
        stored = 0
        while True:
            try:
                self.ids.append((await self.writer.execute(send(BODY * "x", **fields))).id)
            except StorageFull:
                return stored
            stored += 1
            self.free_bytes(self.directory)
            await all_idle()

    async def consume(self, count: int) -> None:
        for _ in range(count):
            (held,) = await self.writer.execute(claim(most=1))
            assert await self.writer.execute(ack(held)) == (True,)
        await all_idle()

    async def lease(self, number: int = 1) -> PipelineConsumer:
        """Lease all that is ready to a consumer."""
        if number == 1:
            await self.writer.execute(OpenConsumer("q", "spark", IDLE_MS))
        step = LeaseMessages("q", "spark", 1, number, 10_000, limits.CONSUMER_LEASE_BYTES_MAX)
        while True:
            consumer = await self.writer.execute(step)
            self.free_bytes(self.directory)
            if consumer.open is None or consumer.complete:
                return consumer
            await all_idle()

    async def settle(self, how: Settling) -> None:
        step = SettleLease("q", "spark", None, 1, how)
        while (await self.writer.execute(step)).open is not None:
            self.free_bytes(self.directory)
            await self.house.checkpointer.run_now()

    async def move_back(self) -> None:
        """What a read of all leased messages does."""
        try:
            await self.writer.execute(MoveBack("q", 0, limits.SEQUENCE_MAX))
        finally:
            self.free_bytes(self.directory)
            await all_idle()


@asynccontextmanager
async def watched(
    directory: Path, settings: EngineSettings | None = None
) -> AsyncIterator[tuple[Server, trio.Nursery]]:
    """A server with guard and checkpoints, and the nursery of its jobs, which end with the body."""
    server = Server(directory, settings)
    async with (
        running_writer(server.engine, listener=server.house) as server.writer,
        trio.open_nursery() as nursery,
    ):
        await server.start(nursery)
        server.checkpoints(nursery)
        yield server, nursery
        nursery.cancel_scope.cancel()
