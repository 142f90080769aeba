"""The actor system: writer, readers, checkpointer and jobs around one engine, started and stopped in order.

    engine -> writer actor -> jobs            start
    jobs -> receivers answered -> inbox drained -> readers, engine closed      stop

`open_system` is what the server builds on; `open_broker` is the same for an application that embeds the queue.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import trio

from forq_trio import limits
from forq_trio.broker import Broker, check_range
from forq_trio.checkpointer import Checkpointer
from forq_trio.clock import Clock, SystemClock
from forq_trio.engines import open_engine
from forq_trio.jobs.cleanup import NUDGED_KINDS, cleanup_jobs
from forq_trio.jobs.maintenance import optimize_job
from forq_trio.jobs.metrics import depth_job
from forq_trio.jobs.supervisor import Job, supervise
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.tally import Tally
from forq_trio.writer_actor import WriterActor


@dataclass(frozen=True)
class System:
    """A running actor system."""

    engine: Engine
    writer: WriterActor
    broker: Broker
    tally: Tally


@asynccontextmanager
async def open_system(engine: Engine, clock: Clock) -> AsyncIterator[System]:
    """Run the actors around `engine` (which is closed at the end) while the body runs.

    Leaving the body stops in order: jobs, parked receivers (answered with nothing), every call that was sent, then
    the engine. What the body raises comes out as it is. A commit that fails cancels the body and comes out as
    CommitFailed inside an exception group.
    """
    tally = Tally()
    writer = WriterActor(engine, clock, tally)
    readers = ReaderPool(engine.open_reader, size=2 * (os.cpu_count() or 1) + 1)
    broker = Broker(writer, readers, clock)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        try:
            async with trio.open_nursery() as jobs:
                for job in _jobs(engine, writer, broker, tally):
                    jobs.start_soon(supervise, job, name=job.name)
                try:
                    yield System(engine, writer, broker, tally)
                except Exception as error:
                    failure = error
                jobs.cancel_scope.cancel()
        finally:
            # Only now: a job may have been in the middle of something that needs the engine.
            readers.close()
            writer.stop()
    if failure is not None:
        raise failure  # as it was raised: the nurseries would have put it into groups


def _jobs(engine: Engine, writer: WriterActor, broker: Broker, tally: Tally) -> list[Job]:
    sweeps = cleanup_jobs(broker)

    def nudge() -> None:
        for kind in NUDGED_KINDS:
            sweeps[kind].nudge()

    writer.on_failed_queued = nudge
    return [
        *sweeps.values(),
        optimize_job(broker),
        depth_job(broker, tally.refresh_depth),
        Checkpointer(engine, writer),
    ]


@asynccontextmanager
async def open_broker(
    url: str,
    *,
    durability: Literal["full", "normal"] = "full",
    queue_ttl_hours: int = limits.QUEUE_TTL_HOURS_DEFAULT,
    dlq_ttl_hours: int = limits.DLQ_TTL_HOURS_DEFAULT,
    clock: Clock | None = None,
) -> AsyncIterator[Broker]:
    """A queue inside this process: `async with open_broker("sqlite:///queue.db") as broker: ...`. No HTTP.

    url: `sqlite:///<path>` (created if missing) or `memory:`. durability: "full" fsyncs before a send is answered;
    "normal" may lose the last commits at a power cut, never at a crash. Only one process at a time may open a file.
    clock: the wall clock for messages, None for the system's.

    Raises StorageOpenError, OutOfRange. Leaving the block finishes what was sent. Cancelled, it finishes the
    commit under way and refuses the rest with Stopping.
    """
    settings = EngineSettings(
        queue_ttl_ms=check_range("queue_ttl_hours", queue_ttl_hours, 1, limits.TTL_HOURS_MAX)
        * limits.HOUR_MS,
        dlq_ttl_ms=check_range("dlq_ttl_hours", dlq_ttl_hours, 1, limits.TTL_HOURS_MAX) * limits.HOUR_MS,
    )
    engine = await trio.to_thread.run_sync(open_engine, url, settings, durability)
    async with open_system(engine, clock or SystemClock()) as system:
        yield system.broker
