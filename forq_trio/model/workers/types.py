"""Workers that report to the server: what each reports about itself, and what is known about it."""

from collections.abc import Callable
from heapq import nsmallest
from operator import attrgetter
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.checks import check_is_list, check_range, check_text
from forq_trio.model.errors import InvalidRequest
from forq_trio.model.messages.types import check_message_id, check_queue_name, is_message_id
from forq_trio.model.values import EpochMs, Uuid, bounded


class JobProgress(Struct, frozen=True, rename="camel"):
    """How far the handler of a message is, as it says itself."""

    percent: Annotated[int, bounded(0, limits.PROGRESS_PERCENT_MAX, "Of all that there is to do.")]
    text: str = ""  # what it has done, of at most 80 characters


class HeldMessage(Struct, frozen=True, rename="camel"):
    """A message that a worker has in process."""

    message_id: Uuid  # which one
    sequence: int  # of the message
    since: EpochMs  # when the worker got it
    attempt: int  # from 1
    lease_until: EpochMs  # when its lease ends
    progress: JobProgress | None = None  # null: its handler has not said how far it is


class WorkerQueue(Struct, frozen=True, rename="camel"):
    """What a worker does in one queue."""

    queue: str  # which one
    slots: int  # how many handlers may run
    busy: int = 0  # messages in process; with batches there may be more than slots
    handled: int = 0  # messages since its start
    failed: int = 0  # messages since its start, without those that it lost
    holds: tuple[HeldMessage, ...] = ()  # the messages in process, oldest first, at most 100


class WorkerReport(Struct, frozen=True, rename="camel"):
    """The report of a worker about itself."""

    id: Uuid  # a UUID that it made at its start
    name: str  # what it is called
    host: str  # on which machine it runs
    version: str  # of its program
    process: int  # its process id on the host
    started_at: EpochMs  # when it started
    queues: tuple[WorkerQueue, ...]  # what it does in each


class WorkerInfo(Struct, frozen=True, rename="camel"):
    """What is known about a worker."""

    report: WorkerReport  # the latest
    heard_at: EpochMs  # when it last reported
    handled_per_minute: int  # how many messages it handled in the last minute; 0 for a silent worker
    silent: bool  # nothing was heard for 15 seconds
    all_busy_since: EpochMs | None  # since when all of its slots are busy (epoch ms), None while one is free
    made_by: str  # the name of the token that it reports with, empty for the server's secret
    queue_per_minute: dict[str, int] = {}  # how many messages it handled in the last minute, by queue
    # since when all of its slots in a queue are busy (epoch ms); without queues that have a free slot
    queue_busy_since: dict[str, int] = {}

    def per_minute_of(self, queue: str) -> int:
        """How many messages of this queue it handled in the last minute."""
        return self.queue_per_minute.get(queue, 0)

    def part_of(self, queue: str) -> WorkerQueue | None:
        """The part of its report about this queue; None if it does not serve the queue."""
        return next((part for part in self.report.queues if part.queue == queue), None)

    def within(self, covers: Callable[[str], bool]) -> "WorkerInfo | None":
        """What is known about it in the queues for which `covers` is true; None if it serves none of them."""
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


class MessageHolder(Struct, frozen=True):
    """A worker that has a message in process."""

    worker: str  # its name
    held: HeldMessage  # what it says of the message


class QueueWorkers(Struct, frozen=True):
    """The workers of one queue."""

    workers: int = 0
    silent: int = 0  # how many of them are silent
    held: int = 0  # messages that the silent ones hold
    slots: int = 0  # of the others
    # since when all of these slots are busy (epoch ms); None while one is free, or if no worker answers
    busy_since: int | None = None


def check_worker_id(worker_id: str) -> str:
    """Return a worker's id in lower case. Raises InvalidRequest unless it is a UUID."""
    if not isinstance(worker_id, str) or not is_message_id(worker_id):
        raise InvalidRequest("the id of a worker is a UUID", field="id")
    return worker_id.lower()


def check_report(report: WorkerReport) -> WorkerReport:
    """Return the report with ids in lower case, and with the messages that it holds sorted by age and cut to the bound.

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
    if held.progress is not None:
        check_range("percent", held.progress.percent, 0, limits.PROGRESS_PERCENT_MAX)
        check_text("text", held.progress.text, 0, limits.PROGRESS_TEXT_LENGTH_MAX)
    return replace(held, message_id=check_message_id(held.message_id))
