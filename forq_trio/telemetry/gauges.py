"""The gauges of /metrics: where each value is read at a scrape."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import NamedTuple

from forq_trio.model.budget import Budget
from forq_trio.model.consumers import ConsumerGauges
from forq_trio.model.database_state import DatabaseState
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log
from forq_trio.model.processes import ProcessReport
from forq_trio.model.quotas import Quota
from forq_trio.model.workers import WorkerGauges
from forq_trio.telemetry.queue_counters import QueueKey


class FileSpace(NamedTuple):
    """Bytes of the database file, of its free pages, and those that compactions gave back since the start."""

    file_bytes: int = 0
    free_bytes: int = 0
    given_back_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Gauges:
    """Where each gauge is read; without a source it is zero, or has no series."""

    parked: Mapping[str, Sized] = field(default_factory=dict)  # the parked receivers by queue
    inbox_calls: Callable[[], int] = lambda: 0  # how many calls wait
    sends_refused: Callable[[], SendsRefused | None] = lambda: None  # why sends are, if they are
    log_bytes: Callable[[], int] = lambda: 0  # of the write-ahead log
    checkpoint_failed: Callable[[], bool] = lambda: False  # the latest one did
    file_space: Callable[[], FileSpace] = FileSpace  # of the database's file
    staged_bytes: Callable[[], int] = lambda: 0  # see `Staging`
    event_log: Callable[[], Log] = Log  # which lifecycle events are stored
    history: Callable[[], HistoryCounts] = HistoryCounts  # finished messages that are stored
    dead_letters: Callable[[], Mapping[QueueKey, int]] = dict  # messages in each queue's dead-letter queue
    # for how long the oldest ready message could have been claimed (queues without one are left out)
    oldest_seconds: Callable[[], Mapping[QueueKey, float]] = dict
    set_aside: Callable[[], int] = lambda: 0  # messages of forq.send: all as of the last refresh
    health: Callable[[], Mapping[str, str]] = dict  # the level of each queue
    consumers: Callable[[], Sequence[ConsumerGauges]] = list  # of pipelines, the first ones by queue and name
    workers: Callable[[], WorkerGauges] = WorkerGauges  # those that are known
    processes: Callable[[], Mapping[str, int]] = dict  # on the database, by state
    process: Callable[[], ProcessReport | None] = lambda: None  # this one
    database: Callable[[], DatabaseState | None] = lambda: None  # what was last seen of its server
    quotas: Callable[[], Sequence[Quota]] = list  # those of which each key has a share
    # when the latest backup that is there was made, epoch ms
    last_backup_at: Callable[[], int | None] = lambda: None
    backup_failed: Callable[[], bool] = lambda: False  # the latest did not succeed
    budgets: Callable[[], Mapping[str, Budget]] = dict  # what the clients of the API share
    # this and the next: how many are open to the admin UI, and what it used of the event loop's time by share
    ui_connections: Callable[[], int] = lambda: 0
    ui_loop_seconds: Callable[[], Mapping[str, float]] = dict
