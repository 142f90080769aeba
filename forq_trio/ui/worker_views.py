"""How pages show workers: the rows by worker and by queue, and the verdict in words.

If a viewer may see only some of a worker's queues, the rows are about those queues.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.workers.types import HeldMessage, WorkerInfo, WorkerQueue

GROUPS = ("Silent", "All slots busy", "Working", "Idle")
GROUP_NOTES = {
    "Silent": "nothing heard for 15 s; listed until their leases have ended",
    "All slots busy": "for more than 5 min",
}
BUSY_MS = 5 * limits.MINUTE_MS
"""How long all slots have to be busy before that needs attention."""


class WorkerRow(Struct, frozen=True):
    """A worker, as far as the viewer may see it.

    busy, slots, handled (in the last minute): over `queues`. Times are epoch ms.
    """

    id: str
    name: str
    host: str
    version: str
    queues: tuple[str, ...]
    busy: int
    slots: int
    handled: int
    oldest_at: int | None  # since when it has had its oldest message in process; None without one
    heard_at: int
    group: str
    leases_until: int = 0  # when its last lease ends; 0 without one. Known only of silent workers

    @property
    def silent(self) -> bool:
        return self.group == GROUPS[0]

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Silent ones first, the longest one before the others; then by name."""
        return GROUPS.index(self.group), self.heard_at if self.silent else 0, self.name, self.id

    def matches(self, text: str) -> bool:
        wanted = text.lower()
        return any(wanted in each.lower() for each in (self.name, self.host, *self.queues))


class QueueLine(Struct):
    """A queue with the workers that serve it.

    busy_since: since when all slots of all workers that answer have been busy; None if one is free.
    """

    queue: str
    workers: int = 0
    silent: int = 0
    busy: int = 0
    slots: int = 0
    handled: int = 0
    oldest_at: int | None = None
    busy_since: int | None = None
    all_busy: bool = True

    def add(self, row: WorkerRow, part: WorkerQueue, info: WorkerInfo) -> None:
        busy_since = info.queue_busy_since.get(self.queue)
        self.workers += 1
        self.silent += row.silent
        self.busy += part.busy
        self.slots += part.slots
        self.handled += info.per_minute_of(self.queue)
        self.oldest_at = _older(self.oldest_at, part.holds)
        if row.silent:
            return
        if busy_since is None:
            self.all_busy = False
        else:
            self.busy_since = max(busy_since, self.busy_since or 0)

    def busy_for(self, now_ms: int) -> int | None:
        """For how many ms all slots have been busy, if that is long enough to say; else None."""
        if not self.all_busy or self.busy_since is None or now_ms - self.busy_since < BUSY_MS:
            return None
        return now_ms - self.busy_since


class WorkerTotals(Struct):
    """Totals of all workers that a viewer may see.

    held: how many messages silent workers have in process, until `leases_until` (epoch ms).
    """

    workers: int = 0
    silent: int = 0
    busy: int = 0
    slots: int = 0
    handled: int = 0
    held: int = 0
    leases_until: int = 0
    oldest_at: int | None = None
    oldest_name: str = ""

    def add(self, row: WorkerRow) -> None:
        self.workers += 1
        self.busy += row.busy
        self.slots += row.slots
        self.handled += row.handled
        if row.oldest_at is not None and (self.oldest_at is None or row.oldest_at < self.oldest_at):
            self.oldest_at, self.oldest_name = row.oldest_at, row.name
        if row.silent:
            self.silent += 1
            self.held += row.busy
            self.leases_until = max(self.leases_until, row.leases_until)


class Verdict(Struct, frozen=True):
    """The first line of the page, and whether it needs attention."""

    level: str
    text: str


def row_of(info: WorkerInfo, now_ms: int) -> WorkerRow:
    """The row of a worker."""
    report = info.report
    busy = sum(part.busy for part in report.queues)
    oldest: int | None = None
    for part in report.queues:
        oldest = _older(oldest, part.holds)
    ends = [held.lease_until for part in report.queues for held in part.holds] if info.silent else []
    return WorkerRow(
        report.id,
        report.name,
        report.host,
        report.version,
        tuple(part.queue for part in report.queues),
        busy,
        sum(part.slots for part in report.queues),
        info.handled_per_minute,
        oldest,
        info.heard_at,
        _group(info, busy, now_ms),
        max(ends, default=0),
    )


def _group(info: WorkerInfo, busy: int, now_ms: int) -> str:
    if info.silent:
        return GROUPS[0]
    if info.all_busy_since is not None and now_ms - info.all_busy_since >= BUSY_MS:
        return GROUPS[1]
    return GROUPS[2 if busy else 3]


def _older(oldest: int | None, holds: Sequence[HeldMessage]) -> int | None:
    """The earlier of this moment and the one since when the first of these is held."""
    if not holds:
        return oldest
    since = holds[0].since
    return since if oldest is None else min(oldest, since)


def verdict(totals: WorkerTotals, lines: Iterable[QueueLine], now_ms: int) -> Verdict:
    """Silent workers, else a queue whose slots are all busy, else that all answer."""
    if totals.silent:
        verb = "is" if totals.silent == 1 else "are"
        of = format.plural(totals.workers, "worker")
        return Verdict("attention", f"{format.whole(totals.silent)} of {of} {verb} silent")
    for line in busiest(lines, now_ms):
        return Verdict("attention", f"All {format.plural(line.slots, 'slot')} of {line.queue} are busy")
    if totals.workers == 1:
        return Verdict("fine", "The worker answers")
    return Verdict("fine", f"All {format.plural(totals.workers, 'worker')} answer")


def busiest(lines: Iterable[QueueLine], now_ms: int) -> list[QueueLine]:
    """The queues whose slots have all been busy for long, the one for longest first."""
    found = [(now_ms - since, line) for line in lines if (since := line.busy_for(now_ms)) is not None]
    return [line for _, line in sorted(found, key=lambda each: (each[0], each[1].queue))]


def held_words(totals: WorkerTotals, now_ms: int) -> str:
    """A sentence about the messages that silent workers have in process; "" if there are none."""
    if not totals.silent:
        return ""
    pronoun, verb = ("It", "holds") if totals.silent == 1 else ("They", "hold")
    if not totals.held:
        return f"{pronoun} {verb} no message."
    left = totals.leases_until - now_ms
    ends = f"ends in {format.duration(left)}, then others get them" if left > 0 else "has ended"
    return f"{pronoun} {verb} {format.plural(totals.held, 'message')}; the last of their leases {ends}."
