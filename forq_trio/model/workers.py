"""Workers that make themselves known: what one reports about itself, and what is known of it."""

from collections.abc import Callable
from heapq import nsmallest
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.checks import check_is_list, check_range, check_text
from forq_trio.model.errors import InvalidRequest
from forq_trio.model.messages import check_message_id, check_queue_name, is_message_id
from forq_trio.model.values import EpochMs


class HeldMessage(Struct, frozen=True, rename="camel"):
    """A message that a worker has in process."""

    message_id: str
    sequence: int
    since: EpochMs  # when it got it
    attempt: int  # from 1
    lease_until: EpochMs


class WorkerQueue(Struct, frozen=True, rename="camel"):
    """What a worker does in one queue."""

    queue: str
    slots: int  # how many handlers may run
    busy: int = 0  # messages in process, which a batch may let be more than slots
    handled: int = 0  # this and the next: since its start
    failed: int = 0
    # the messages in process, those for longest first, at most WORKER_QUEUE_HOLDS_MAX
    holds: tuple[HeldMessage, ...] = ()


class WorkerReport(Struct, frozen=True, rename="camel"):
    """What a worker says of itself."""

    id: str  # a UUID that it made at its start
    name: str
    host: str
    version: str
    process: int  # its number on the host
    started_at: EpochMs
    queues: tuple[WorkerQueue, ...]


class WorkerInfo(Struct, frozen=True, rename="camel"):
    """What is known of a worker."""

    report: WorkerReport
    heard_at: EpochMs  # when it last reported
    handled_per_minute: int  # how many messages it handled in the last minute, 0 of a silent one
    silent: bool  # nothing was heard for WORKER_SILENT_MS
    all_busy_since: EpochMs | None  # since when all of its slots are busy, None while one is free
    made_by: str  # the name of the token that it reports with, "" for the server's secret
    queue_per_minute: dict[str, int] = {}  # what it handled in the last minute, by queue
    # since when all of its slots in a queue are busy, without the queues that have a free one
    queue_busy_since: dict[str, int] = {}

    def per_minute_of(self, queue: str) -> int:
        """How many messages of this queue it handled in the last minute."""
        return self.queue_per_minute.get(queue, 0)

    def part_of(self, queue: str) -> WorkerQueue | None:
        """What it does in this queue; None if it does not serve it."""
        return next((part for part in self.report.queues if part.queue == queue), None)

    def within(self, covers: Callable[[str], bool]) -> "WorkerInfo | None":
        """What is known of it in the queues that `covers` is true of; None if it serves none of them."""
        parts = tuple(part for part in self.report.queues if covers(part.queue))
        if len(parts) == len(self.report.queues):
            return self
        if not parts:
            return None
        names = [part.queue for part in parts]
        busy_since = {queue: at for queue, at in self.queue_busy_since.items() if queue in names}
        per_minute = {queue: self.per_minute_of(queue) for queue in names}
        return replace(
            self,
            report=replace(self.report, queues=parts),
            handled_per_minute=sum(per_minute.values()),
            all_busy_since=max(busy_since.values()) if len(busy_since) == len(names) else None,
            queue_per_minute=per_minute,
            queue_busy_since=busy_since,
        )


class WorkerGauges(Struct, frozen=True):
    """The metrics of workers."""

    # how many are in each
    states: dict[str, int] = field(default_factory=lambda: {"busy": 0, "idle": 0, "silent": 0})
    slots: dict[str, tuple[int, int]] = {}  # of those that answer, in all and busy, by queue


class QueueWorkers(Struct, frozen=True):
    """The workers of one queue."""

    workers: int = 0
    silent: int = 0  # how many of them are
    held: int = 0  # messages that these named
    slots: int = 0  # of the others
    # since when all of these slots are busy (epoch ms), None while one is free or nobody answers
    busy_since: int | None = None


def check_worker_id(worker_id: str) -> str:
    """Return it in small letters, or raise InvalidRequest unless it is a UUID."""
    if not isinstance(worker_id, str) or not is_message_id(worker_id):
        raise InvalidRequest("the id of a worker is a UUID", field="id")
    return worker_id.lower()


def check_report(report: WorkerReport) -> WorkerReport:
    """Return the report with its ids in small letters, the messages that it holds by their age, and not more than kept.

    Raises InvalidRequest, OutOfRange, InvalidContent, InvalidQueueName or MalformedMessageId unless it is valid.
    """
    check_text("name", report.name, 1, limits.WORKER_NAME_LENGTH_MAX)
    check_text("host", report.host, 0, limits.WORKER_HOST_LENGTH_MAX)
    check_text("version", report.version, 0, limits.WORKER_VERSION_LENGTH_MAX)
    check_range("process", report.process, 0, limits.WORKER_COUNT_MAX)
    check_range("started_at", report.started_at, 0, limits.WORKER_TIME_MS_MAX)
    check_is_list("queues", report.queues)
    check_range("number of queues", len(report.queues), 1, limits.WORKER_QUEUES_MAX, "queues")
    if len({each.queue for each in report.queues}) < len(report.queues):
        raise InvalidRequest("a queue is named twice", field="queues")
    parts: list[WorkerQueue] = []
    left = limits.WORKER_HOLDS_MAX
    for each in report.queues:
        parts.append(_checked_queue(each, left))
        left -= len(parts[-1].holds)
    return replace(report, id=check_worker_id(report.id), queues=tuple(parts))


def _checked_queue(part: WorkerQueue, holds_max: int) -> WorkerQueue:
    check_queue_name(part.queue)
    for name in ("slots", "busy", "handled", "failed"):
        check_range(name, getattr(part, name), 0, limits.WORKER_COUNT_MAX)
    check_range("number of holds", len(part.holds), 0, limits.WORKER_QUEUE_HOLDS_MAX, "holds")
    for held in part.holds:
        check_range("since", held.since, 0, limits.WORKER_TIME_MS_MAX)
    oldest = nsmallest(holds_max, part.holds, key=attrgetter("since"))
    return replace(part, holds=tuple(map(_checked_hold, oldest)))


def _checked_hold(held: HeldMessage) -> HeldMessage:
    check_range("sequence", held.sequence, 0, limits.SEQUENCE_MAX)
    check_range("attempt", held.attempt, 0, limits.WORKER_COUNT_MAX)
    check_range("lease_until", held.lease_until, 0, limits.WORKER_TIME_MS_MAX)
    return replace(held, message_id=check_message_id(held.message_id))
