"""The gauges of /metrics: what is read at each scrape, from whom it is a fact of."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from forq_trio.model.consumers import ConsumerGauges
from forq_trio.model.database_state import DatabaseState
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log
from forq_trio.model.processes import ProcessReport
from forq_trio.model.quotas import Quota
from forq_trio.model.workers import WorkerGauges
from forq_trio.telemetry.queue_counters import QueueKey


class BudgetGauge(Protocol):
    """How much of something that all clients share is in use, and how often it was refused, by whose share."""

    @property
    def used(self) -> int: ...

    @property
    def refused(self) -> Mapping[str, int]: ...


class FileSpace(NamedTuple):
    """Bytes of the database file, of its free pages, and those that compactions gave back since the start."""

    file_bytes: int = 0
    free_bytes: int = 0
    given_back_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Gauges:
    """Where each gauge is read; without a source it is zero, or has no series.

    parked: the parked receivers by queue. inbox_calls: how many calls wait. sends_refused: why sends are, if they are.
    log_bytes: of the write-ahead log. checkpoint_failed: the latest one did. file_space: of the database's file.
    staged_bytes: see `Staging`. event_log: which lifecycle events are stored. history: finished messages that are
    stored. dead_letters: messages in each queue's dead-letter queue; oldest_seconds: for how long the oldest ready
    message could have been claimed (queues without one are left out); set_aside: messages of forq.send: all as of
    the last refresh. health: the level of each queue. consumers: of pipelines, the first ones by queue and name.
    workers: those that are known. processes: on the database, by state. process: this one. database: what was last
    seen of its server. quotas: those of which each key has a share. last_backup_at: when the latest backup that is
    there was made, epoch ms; backup_failed: the latest did not succeed. budgets: what the clients of the API share.
    ui_connections, ui_loop_seconds: how many are open to the admin UI, and what it used of the event loop's time by
    share.
    """

    parked: Mapping[str, Sized] = field(default_factory=dict)
    inbox_calls: Callable[[], int] = lambda: 0
    sends_refused: Callable[[], SendsRefused | None] = lambda: None
    log_bytes: Callable[[], int] = lambda: 0
    checkpoint_failed: Callable[[], bool] = lambda: False
    file_space: Callable[[], FileSpace] = FileSpace
    staged_bytes: Callable[[], int] = lambda: 0
    event_log: Callable[[], Log] = Log
    history: Callable[[], HistoryCounts] = HistoryCounts
    dead_letters: Callable[[], Mapping[QueueKey, int]] = dict
    oldest_seconds: Callable[[], Mapping[QueueKey, float]] = dict
    set_aside: Callable[[], int] = lambda: 0
    health: Callable[[], Mapping[str, str]] = dict
    consumers: Callable[[], Sequence[ConsumerGauges]] = list
    workers: Callable[[], WorkerGauges] = WorkerGauges
    processes: Callable[[], Mapping[str, int]] = dict
    process: Callable[[], ProcessReport | None] = lambda: None
    database: Callable[[], DatabaseState | None] = lambda: None
    quotas: Callable[[], Sequence[Quota]] = list
    last_backup_at: Callable[[], int | None] = lambda: None
    backup_failed: Callable[[], bool] = lambda: False
    budgets: Callable[[], Mapping[str, BudgetGauge]] = dict
    ui_connections: Callable[[], int] = lambda: 0
    ui_loop_seconds: Callable[[], Mapping[str, float]] = dict
