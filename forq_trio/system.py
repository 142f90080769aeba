"""The actor system: writer, readers, checkpointer and jobs around one engine, started and stopped in order.

    start: engine -> writer actor -> jobs, redrives
    stop: jobs -> parked receivers answered -> inbox drained -> engine closed

`open_system` is what the server builds on; `open_broker` is the same for an application that embeds the queue.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import trio

from forq_trio.broker.backends import Backends
from forq_trio.broker.bound import BoundQueues
from forq_trio.broker.broker import Broker
from forq_trio.broker.metrics import BrokerMetrics
from forq_trio.broker.publishing import staged_families
from forq_trio.broker.quotas import quota_families
from forq_trio.commit_policy import CommitPolicy
from forq_trio.embedded.guest import in_asyncio
from forq_trio.jobs.backup import BackupJob
from forq_trio.jobs.backup_copy import BackupSettings
from forq_trio.jobs.board import REDRIVES, JobBoard, RunNow, of_all, own_runs
from forq_trio.jobs.checkpointer import Checkpointer, checkpoint_families
from forq_trio.jobs.cleanup import (
    INTERVAL_SECONDS,
    NUDGED_KINDS,
    cleanup_jobs,
    consumers_job,
    optimize_job,
    stages_job,
    uses_job,
)
from forq_trio.jobs.compaction import Compaction
from forq_trio.jobs.database_watch import DatabaseWatch, database_job
from forq_trio.jobs.disk_guard import DiskGuard, SendsAgain
from forq_trio.jobs.facts import SystemFacts, commit_facts, memory_bytes
from forq_trio.jobs.file_watch import FileWatch
from forq_trio.jobs.housekeeping import Housekeeping
from forq_trio.jobs.metrics import QueueGauges, Sampler, gauges_job
from forq_trio.jobs.outbox_gauges import OutboxGauges
from forq_trio.jobs.peers import Peers
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.retention import BytesBound, BytesWatch, Retention, retention_job
from forq_trio.jobs.runs import JobReport, Runs
from forq_trio.jobs.supervisor import SupervisedJob, supervise
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.commands import SweepKind
from forq_trio.model.logs.types import LogName
from forq_trio.model.server.database_urls import OtherUrls
from forq_trio.model.version import installed_version
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.monitor import Monitor
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import NO_DURABILITY, Engine, EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.store import store_of
from forq_trio.telemetry.budgets import budget_families
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import ReadFamilies
from forq_trio.telemetry.histogram import milliseconds_p99
from forq_trio.writer_actor import WriterActor
from forq_trio.writer_families import call_families, log_families, parked_families


@dataclass(frozen=True)
class System:
    """A running actor system."""

    engine: Engine
    writer: WriterActor
    broker: Broker
    counters: Counters
    jobs: JobBoard
    backups: BackupJob
    clock: Clock
    started_at: int  # epoch ms
    housekeeping: Housekeeping  # the jobs that the writer tells of its progress
    compaction: Compaction
    database: DatabaseWatch
    monitor: Monitor
    queue_gauges: QueueGauges
    outbox_gauges: OutboxGauges = field(default_factory=OutboxGauges)

    def reports(self) -> list[JobReport]:
        """The latest run of each job, in any process."""
        return of_all(self.jobs.reports(), self.broker.known_processes.all() if self.engine.listen else ())

    def facts(self, connections: int | None = None) -> SystemFacts:
        """Facts about the server as of now: a few system calls, no query. connections: how many are open to the API."""
        now_ms = self.clock.now_ms()
        engine = self.engine.facts()
        checkpointer, guard = self.housekeeping.checkpointer, self.housekeeping.disk_guard
        return SystemFacts(
            version=installed_version() or "unknown",
            now_ms=now_ms,
            started_at=self.started_at,
            memory_bytes=memory_bytes(),
            connections=connections,
            inbox_calls=self.writer.inbox_calls,
            engine=engine,
            commits=commit_facts(self.counters, now_ms, self.started_at),
            sends_refused=self.writer.storage.sends_refused,
            files_problem=self.writer.storage.files_problem,
            log_held=checkpointer is not None and checkpointer.held and not self.backups.runs.running,
            space=None if guard is None else guard.facts(),
            processes=self.broker.known_processes.all() if engine.shared else (),
            database=self.database.state,
            set_aside=self.queue_gauges.set_aside,
            gate_counts=tuple(self.counters.gate_seconds.hour.counts(now_ms)),
        )

    def owners(self, served: ReadFamilies | None = None) -> list[ReadFamilies]:
        """Whose families the metrics show, in their order. served: what a server tells of itself; None without one."""
        broker, counters, writer = self.broker, self.counters, self.writer
        return [
            counters.queues.families,
            counters.count_families,
            self.queue_gauges.families,
            partial(parked_families, writer, counters),
            self.monitor.families,
            partial(broker.known_workers.families, counters.queues.key),
            broker.known_processes.families,
            self.database.families,
            broker.leases.families,
            partial(call_families, writer),
            partial(checkpoint_families, self.housekeeping.checkpointer),
            self.compaction.families,
            partial(staged_families, writer),
            partial(quota_families, writer, broker.redrive_tasks),
            counters.send_families,
            self.queue_gauges.sent_families,
            self.outbox_gauges.families,
            counters.runs.families,
            served or partial(budget_families, writer.budgets),
            counters.families,
            self.backups.families,
            partial(log_families, writer),
        ]


@asynccontextmanager
async def open_system(
    engine: Engine,
    clock: Clock | None = None,
    *,
    reader_pool_size: int | None = None,
    sweep_seconds: Mapping[SweepKind, float] = INTERVAL_SECONDS,
    policy: CommitPolicy | None = None,
    disk_reserve_bytes: int = 0,
    backup: BackupSettings | None = None,
    monitored: bool = False,
    history: Retention | None = None,
    events: Retention | None = None,
) -> AsyncIterator[System]:
    """Run the actors around `engine` (which is closed at the end) while the body runs.

    clock: None for that of the engine. reader_pool_size: None means two connections per core and one more.
    sweep_seconds: how often each sweep runs. policy: where commits run; None to measure and decide. disk_reserve_bytes:
    see `disk_guard`. backup: None for backups only on request, beside the database. history, events: the retention of
    the two logs; None: off. monitored: take a sample every second; if not, the monitor knows, and costs, nothing.

    Leaving the body stops in this order: jobs, parked receivers (answered with nothing), every call that was sent, then
    the engine. An exception of the body is passed on as it is. A failed commit cancels the body and raises
    CommitFailed, inside a group.
    """
    clock = clock or engine.clock()
    counters = Counters()
    housekeeping = Housekeeping()
    writer = WriterActor(store_of(engine, policy), clock, counters, housekeeping)
    size = reader_pool_size or 2 * (os.cpu_count() or 1) + 1
    readers = ReaderPool(engine.open_reader, size=size, on_rejected=counters.record_rejection)
    guards = _guards(engine, writer, clock, counters, housekeeping, disk_reserve_bytes)
    checkpointer = housekeeping.checkpointer
    compaction = Compaction(writer, clock, engine.facts, _hurry(checkpointer))
    backends = _backends(engine, writer, readers, counters)
    broker = Broker(writer, readers, clock, compaction, backends)
    guards += _of_shared_databases(engine, writer, broker)
    if (tables := backends.tables) is not None:
        guards += [tables, tables.counted] if monitored else [tables]
    ages = Ages(broker.known, readers, counters, clock)
    monitor = Monitor(
        broker.known, counters, ages, trio.current_time, clock, workers=broker.known_workers.in_queue
    )
    queue_gauges = QueueGauges(
        broker.known, ages, counters, broker.lists.sent_figures if engine.listen is not None else None
    )
    periodic = _periodic_jobs(writer, broker, queue_gauges, housekeeping, sweep_seconds)
    database = DatabaseWatch(readers)
    periodic += [] if engine.listen is None else [database_job(database)]
    periodic += _retention_jobs(writer, clock, history, events, housekeeping)
    backups = BackupJob(engine, writer, clock, backup or BackupSettings(), _hurry(checkpointer))
    board = _board(periodic, checkpointer, backups, compaction, broker, clock)
    _report(broker, counters, board, clock)
    system = System(
        engine=engine,
        writer=writer,
        broker=broker,
        counters=counters,
        jobs=board,
        backups=backups,
        clock=clock,
        started_at=clock.now_ms(),
        housekeeping=housekeeping,
        compaction=compaction,
        database=database,
        monitor=monitor,
        queue_gauges=queue_gauges,
    )
    sampler = [Sampler(monitor)] if monitored else []
    async with _running(system, readers, backends, [*guards, backups, compaction, *sampler], periodic):
        yield system


def _report(broker: Broker, counters: Counters, board: JobBoard, clock: Clock) -> None:
    """Tell `known_processes` where to read what this process reports about itself."""
    processes, tasks = broker.known_processes, broker.redrive_tasks
    processes.last_batch_at = lambda: counters.commits.last_at
    processes.gate_wait_ms = lambda: milliseconds_p99(counters.gate_seconds.hour, clock.now_ms())
    processes.lag_ms = lambda: milliseconds_p99(counters.lag_seconds.hour, clock.now_ms())
    processes.running = lambda: [
        each.title for each in board.reports() if each.running and (each.name != REDRIVES or tasks.walks_here)
    ]
    processes.ran = lambda: own_runs(board.reports())


@asynccontextmanager
async def _running(
    system: System,
    readers: ReaderPool,
    backends: Backends,
    others: Sequence[SupervisedJob],
    periodic: Sequence[Periodic],
) -> AsyncIterator[None]:
    """Run the writer, the jobs and the redrive tasks while the body runs."""
    broker, writer = system.broker, system.writer
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        try:
            async with trio.open_nursery() as jobs:
                for job in others:
                    jobs.start_soon(supervise, job, name=job.name)
                for each in periodic:
                    jobs.start_soon(supervise, each, each.pause, name=each.name)
                await jobs.start(broker.redrive_tasks.run)
                try:
                    yield
                except Exception as error:
                    failure = error
                jobs.cancel_scope.cancel()
        finally:
            system.jobs.close()
            # After the jobs, because one of them may have needed the readers until now.
            readers.close()
            backends.close()
            broker.keys.uses.post()
            broker.sessions.uses.post()
            writer.stop()
    if failure is not None:
        raise failure  # outside of the nurseries, which would put it into groups


def _of_shared_databases(engine: Engine, writer: WriterActor, broker: Broker) -> list[SupervisedJob]:
    """The jobs for a database that others use, too. Also tells those parts of the broker that it is shared."""
    broker.redrive_tasks.shared = broker.sessions.shared = broker.known.shared = engine.listen is not None
    jobs: list[SupervisedJob] = []
    if engine.listen is not None:
        jobs.append(Peers(engine.listen, writer, broker.known_processes))
    return jobs


def _backends(engine: Engine, writer: WriterActor, readers: ReaderPool, counters: Counters) -> Backends:
    if engine.tables_urls is None:
        return Backends(writer, readers)
    from forq_trio.pgq import tables  # loads psycopg

    options = tables.TableOptions(table_connections_max=limits.PGQ_TABLE_CONNECTIONS_MAX)
    url, listen_url = engine.tables_urls
    bound = BoundQueues(writer, tables.Tables(url, options, listen_url), counters)
    return Backends(writer, readers, bound)


def _periodic_jobs(
    writer: WriterActor,
    broker: Broker,
    gauges: QueueGauges,
    housekeeping: Housekeeping,
    sweep_seconds: Mapping[SweepKind, float],
) -> list[Periodic]:
    """The jobs that run at intervals; `housekeeping` gets those that the writer tells of its progress."""
    sweeps = cleanup_jobs(writer, sweep_seconds)
    housekeeping.failed_sweeps = [sweeps[kind] for kind in NUDGED_KINDS]
    return [
        *sweeps.values(),
        gauges_job(gauges),
        uses_job(broker),
        consumers_job(broker.leases),
        stages_job(writer),
        optimize_job(writer),
    ]


def _retention_jobs(
    writer: WriterActor,
    clock: Clock,
    history: Retention | None,
    events: Retention | None,
    housekeeping: Housekeeping,
) -> list[Periodic]:
    """The jobs that remove old events and finished messages; `housekeeping` notices when a log has too many bytes."""
    retention: dict[LogName, Retention] = {"history": history or Retention(), "events": events or Retention()}
    bounds = {
        log: BytesBound(
            each.mib_max * limits.MIB, lambda: writer.storage.sends_refused, grows=log == "history"
        )
        for log, each in retention.items()
    }
    jobs: dict[LogName, tuple[Periodic, BytesBound]] = {
        log: (retention_job(writer, clock, log, each, bounds[log]), bounds[log])
        for log, each in retention.items()
    }
    housekeeping.retention = BytesWatch(writer.snapshot, jobs)
    if housekeeping.disk_guard is not None:
        housekeeping.disk_guard.give_way = housekeeping.retention.give_way
    return [job for job, _ in jobs.values()]


def _guards(
    engine: Engine,
    writer: WriterActor,
    clock: Clock,
    counters: Counters,
    housekeeping: Housekeeping,
    disk_reserve_bytes: int,
) -> list[SupervisedJob]:
    """The jobs that look after the database's files; `housekeeping` gets those that hear of the writer's progress."""
    if engine.log is None:
        return [SendsAgain(writer)]
    reserve_bytes = 0 if engine.durability == NO_DURABILITY else disk_reserve_bytes
    guard = housekeeping.disk_guard = DiskGuard(engine.log, writer, clock, counters, reserve_bytes)
    checkpointer = housekeeping.checkpointer = Checkpointer(engine.log, writer, counters, guard.checkpointed)
    guard.checkpoint_soon = checkpointer.hurry
    return [guard, FileWatch(engine.log.files_problem, writer, checkpointer), checkpointer]


def _hurry(checkpointer: Checkpointer | None) -> Callable[[], None]:
    return checkpointer.hurry if checkpointer is not None else lambda: None


def _board(
    periodic: Sequence[Periodic],
    checkpointer: Checkpointer | None,
    backups: BackupJob,
    compaction: Compaction,
    broker: Broker,
    clock: Clock,
) -> JobBoard:
    """The jobs as the admin UI shows them."""
    jobs: list[tuple[Runs, RunNow | None]] = [(job.runs, job.run_now) for job in periodic]
    if checkpointer is not None:
        jobs.append((checkpointer.runs, checkpointer.run_now))
    if backups.directory is not None:
        jobs.append((backups.runs, backups.run_now))
    jobs.append((compaction.runs, compaction.run_now))
    return JobBoard(jobs, broker.redrive_tasks.all, clock)


@asynccontextmanager
async def open_broker(
    url: str,
    *,
    durability: Literal["full", "normal"] = "full",
    queue_ttl_hours: int = limits.QUEUE_TTL_HOURS_DEFAULT,
    dlq_ttl_hours: int = limits.DLQ_TTL_HOURS_DEFAULT,
    disk_reserve_mb: int = limits.DISK_RESERVE_MIB_DEFAULT,
    history: bool = False,
    history_hours: int = limits.RETENTION_HOURS_DEFAULT,
    history_max_mib: int = limits.RETENTION_MIB_DEFAULT,
    events: bool = False,
    events_hours: int = limits.RETENTION_HOURS_DEFAULT,
    events_max_mib: int = limits.RETENTION_MIB_DEFAULT,
    outbox: str | os.PathLike[str] | None = None,
    listen_url: str | None = None,
    replica_url: str | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Broker]:
    """A queue inside this process: `async with open_broker("sqlite:///queue.db") as broker: ...`. No HTTP.

    url: `sqlite:///<path>` (created if missing), `memory:` for a temporary database, or `postgresql://…`
    (docs/postgres.md), which several processes may open. durability: "full" fsyncs
    before a send is answered; "normal" may lose the last commits at a power cut, never at a crash. Only one process at
    a time may open a file. disk_reserve_mb: MiB of disk that sends leave free, and as much again for the reserve file
    beside the database, so that all other calls work when the disk is full; 0 for neither. history: store finished
    messages for `history_hours`, at most `history_max_mib` MiB of them. events: store lifecycle events for
    `events_hours`, at most `events_max_mib` MiB of them. outbox: an application's database, whose outbox is relayed
    into this queue (docs/outbox.md). listen_url: of the same PostgreSQL database, if `url` leads to a connection pool.
    replica_url: of a streaming replica for reads (docs/postgres.md). clock: the wall clock for messages, None for the
    system's.

    Raises StorageOpenError, OutOfRange; NoOutbox and OutboxOlder, which cancel the body; RuntimeError if neither trio
    nor asyncio runs. Leaving the block finishes what was sent. Cancelled under trio, it finishes the running commit and
    refuses the rest with Stopping. Under asyncio the broker is for tasks of the running loop, and cancelled it finishes
    what was sent. A failed commit cancels the body and raises CommitFailed, under trio inside a group, under asyncio as
    it is.
    """
    settings = EngineSettings(
        queue_ttl_ms=check_range("queue_ttl_hours", queue_ttl_hours, 1, limits.TTL_HOURS_MAX)
        * limits.HOUR_MS,
        dlq_ttl_ms=check_range("dlq_ttl_hours", dlq_ttl_hours, 1, limits.TTL_HOURS_MAX) * limits.HOUR_MS,
        history=history,
        events=events,
        in_process=True,
    )
    of_history = Retention(
        check_range("history_hours", history_hours, 1, limits.TTL_HOURS_MAX),
        check_range("history_max_mib", history_max_mib, 1, limits.RETENTION_MIB_MAX),
    )
    of_events = Retention(
        check_range("events_hours", events_hours, 1, limits.EVENTS_HOURS_MAX),
        check_range("events_max_mib", events_max_mib, 1, limits.RETENTION_MIB_MAX),
    )
    reserve_mib = check_range("disk_reserve_mb", disk_reserve_mb, 0, limits.DISK_RESERVE_MIB_MAX)
    if reserve_mib:
        check_range("disk_reserve_mb", reserve_mib, limits.DISK_RESERVE_MIB_MIN, limits.DISK_RESERVE_MIB_MAX)
        if history:
            least = limits.DISK_RESERVE_MIB_MIN_WITH_HISTORY
            check_range("disk_reserve_mb with history", reserve_mib, least, limits.DISK_RESERVE_MIB_MAX)
    opening = partial(
        _open_in_trio,
        partial(open_engine, url, settings, durability, OtherUrls(listen_url, replica_url)),
        clock,
        disk_reserve_bytes=reserve_mib * limits.MIB,
        history=of_history,
        events=of_events,
        outbox=outbox,
    )
    async with opening() if trio.lowlevel.in_trio_task() else in_asyncio(opening) as broker:
        yield broker


@asynccontextmanager
async def _open_in_trio(
    opening: Callable[[], Engine],
    clock: Clock | None,
    *,
    disk_reserve_bytes: int,
    history: Retention,
    events: Retention,
    outbox: str | os.PathLike[str] | None,
) -> AsyncIterator[Broker]:
    engine = await trio.to_thread.run_sync(opening)
    async with (
        open_system(
            engine, clock, disk_reserve_bytes=disk_reserve_bytes, history=history, events=events
        ) as system,
        nullcontext() if outbox is None else _relay(outbox, system),
    ):
        system.broker.metrics = BrokerMetrics(system.owners(), system.writer)
        yield system.broker


def _relay(outbox: str | os.PathLike[str], system: System) -> AbstractAsyncContextManager[object]:
    from forq_trio.outbox.relay import Relay  # loads anyio, which other brokers do without

    relay = Relay(outbox, system.broker)
    system.outbox_gauges.backlog = relay.backlog
    return relay
