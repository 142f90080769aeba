"""The workers that reported lately. Kept in memory: a restarted server learns of them with their next reports.

A worker that falls silent is listed for at least a minute, and until its leases have ended and others get its messages.
Those are the leases that it reported, and none counts for longer than a lease may last. When a bound is reached, the
workers that have been silent for longest are dropped first: nobody waits twelve hours for the place of a dead one.
"""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.budget import Budget
from forq_trio.model.clock import Clock
from forq_trio.model.errors import Forbidden, TooManyWorkers
from forq_trio.model.workers.types import (
    MessageHolder,
    QueueWorkers,
    WorkerInfo,
    WorkerQueue,
    WorkerReport,
    check_report,
    check_worker_id,
)
from forq_trio.telemetry.families import Family, QueueKey, by_label, by_queue, gauge

# Estimates of the bytes in memory, apart from texts.
_WORKER_BYTES = 2_000
_QUEUE_BYTES = 500 + 8 * limits.WORKER_SAMPLES_MAX
_HOLD_BYTES = 320
_PROGRESS_BYTES = 120


class _Entry(Struct):
    """The entry of a worker."""

    info: WorkerInfo
    key: str  # the name of its key
    leases_until: int  # when the last of its leases ends (epoch ms)
    bytes: int
    # how many messages it had handled at times of the last minute: (time, number of each of its queues)
    samples: "deque[tuple[int, array[int]]]"


class KnownWorkers:
    """The known workers, bounded by WORKERS_MAX and WORKERS_BYTES_MAX, with a share of both for each access token."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_at = clock.now_ms()
        self._entries: dict[str, _Entry] = {}
        self._of_queue: dict[str, dict[str, None]] = {}
        self._of_key: Counter[str] = Counter()
        self._bytes_of_key: Counter[str] = Counter()
        self._swept_at = 0
        self.polls = Budget(limits.WORKERS_MAX)
        """The waits for withdrawn messages, one of each worker."""

    @property
    def began_at(self) -> int:
        """When this process began (epoch ms; now, if the clock was set back): it does not know what was before."""
        self._began_at = min(self._began_at, self._clock.now_ms())
        return self._began_at

    @property
    def count(self) -> int:
        """How many workers are known, including silent ones."""
        self._sweep(self._clock.now_ms())
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """An estimate of the memory that they use."""
        return self._bytes_of_key.total()

    def report(self, report: WorkerReport, *, key: Key = SECRET) -> None:
        """Take the report of a worker, the first one or a later one.

        Raises the errors of `check_report`, Forbidden if the worker reported with another key before, and
        TooManyWorkers beyond the bounds. If there are not enough bytes, silent workers are forgotten; if that does not
        help, the messages that the worker holds are left out.
        """
        report = check_report(report)
        now_ms = self._clock.now_ms()
        self._sweep(now_ms)
        before = self._entries.get(report.id)
        if before is not None and before.key != key.name:
            raise Forbidden("another key made this worker known")
        leases_until = _leases_until(report, now_ms)
        if before is None:
            self._make_place(key.name, now_ms)
        used = 0 if before is None else before.bytes
        size = _bytes_of(report)
        if not self._make_space(key.name, size - used, report.id, now_ms):
            report = replace(report, queues=tuple(replace(part, holds=()) for part in report.queues))
            size = _bytes_of(report)
            if size > used and not self._make_space(key.name, size - used, report.id, now_ms):
                raise TooManyWorkers("the workers that are known use all of the memory that they may")
        entry = _Entry(_first(report, key.name, now_ms), key.name, leases_until, size, deque())
        if before is not None:
            self._remove(report.id, before)
            _go_on(entry, before)
        _sample(entry, now_ms)
        self._add(report.id, entry)

    def forget(self, worker_id: str, *, key: Key = SECRET) -> None:
        """Forget a worker that has ended; nothing happens if it is not known. Raises InvalidRequest and Forbidden."""
        worker_id = check_worker_id(worker_id)
        entry = self._entries.get(worker_id)
        if entry is None:
            return
        if key.name not in (entry.key, SECRET.name):
            raise Forbidden("another key made this worker known")
        self._remove(worker_id, entry)

    def find(self, worker_id: str) -> WorkerInfo | None:
        """What is known about a worker; None if it is not known."""
        found = self._infos([worker_id.lower()])
        return found[0] if found else None

    def all(self) -> list[WorkerInfo]:
        """All known workers."""
        return self._infos(self._entries)

    def of(self, queue: str) -> list[WorkerInfo]:
        """The workers that serve this queue."""
        return self._infos(self._of_queue.get(queue, ()))

    def holder_of(self, queue: str, message_id: str, attempt: int) -> MessageHolder | None:
        """The worker that answers and has a message in process; None if none names this attempt."""
        for info in self.of(queue):
            part = None if info.silent else info.part_of(queue)
            for held in () if part is None else part.holds:
                if held.message_id == message_id and held.attempt == attempt:
                    return MessageHolder(info.report.name, held)
        return None

    def in_queue(self, queue: str) -> QueueWorkers:
        """The workers of this queue in numbers."""
        known = self.of(queue) if queue in self._of_queue else []
        parts = [(info, part) for info in known if (part := info.part_of(queue)) is not None]
        answering = [(info, part) for info, part in parts if not info.silent]
        since = [info.queue_busy_since.get(queue) for info, _ in answering]
        full = [at for at in since if at is not None]
        return QueueWorkers(
            len(parts),
            silent=len(parts) - len(answering),
            held=sum(len(part.holds) for info, part in parts if info.silent),
            slots=sum(part.slots for _, part in answering),
            busy_since=max(full) if full and len(full) == len(since) else None,
        )

    def families(self, key: Callable[[str], QueueKey]) -> Iterator[Family]:
        """The metrics of all. key: the label of a queue."""
        states = {"busy": 0, "idle": 0, "silent": 0}
        slots: Counter[QueueKey] = Counter()
        slots_busy: Counter[QueueKey] = Counter()
        for info in self.all():
            if info.silent:
                states["silent"] += 1
                continue
            states["busy" if any(part.busy for part in info.report.queues) else "idle"] += 1
            for part in info.report.queues:
                queue = key(part.queue)
                slots[queue] += part.slots
                slots_busy[queue] += min(part.busy, part.slots)
        yield gauge(
            "forq_workers",
            "Workers that are known, by state: busy, idle or silent, now.",
            by_label("state", states),
        )
        yield gauge(
            "forq_worker_slots", "Slots of the workers of a queue, without silent ones, now.", by_queue(slots)
        )
        yield gauge(
            "forq_worker_slots_busy", "Slots of them that handle a message, now.", by_queue(slots_busy)
        )

    def queues(self) -> list[str]:
        """The queues that any worker serves."""
        self._sweep(self._clock.now_ms())
        return list(self._of_queue)

    def _infos(self, ids: Iterable[str]) -> list[WorkerInfo]:
        now_ms = self._clock.now_ms()
        ids = list(ids)
        self._sweep(now_ms)
        return [_seen(entry, now_ms) for each in ids if (entry := self._entries.get(each)) is not None]

    def _make_place(self, key: str, now_ms: int) -> None:
        """Make place for one more worker by forgetting a silent one if needed. Raises TooManyWorkers."""
        share = limits.WORKERS_MAX if key == SECRET.name else limits.WORKERS_PER_KEY_MAX
        is_share_used = self._of_key[key] >= share
        if not is_share_used and len(self._entries) < limits.WORKERS_MAX:
            return
        own, others = self._silent(key, now_ms)
        line = own or ([] if is_share_used else others)
        if not line:
            raise TooManyWorkers(
                f"at most {share} workers of a key are known, and {limits.WORKERS_MAX} in all"
            )
        self._remove(line[0], self._entries[line[0]])

    def _make_space(self, key: str, more: int, worker_id: str, now_ms: int) -> bool:
        """Whether this worker may use `more` bytes more, after forgetting silent workers if needed."""
        silent: tuple[list[str], list[str]] | None = None  # found once, the next to go come last
        while True:
            is_in_share = (
                key == SECRET.name or self._bytes_of_key[key] + more <= limits.WORKERS_BYTES_PER_KEY_MAX
            )
            if is_in_share and self.bytes + more <= limits.WORKERS_BYTES_MAX:
                return True
            if silent is None:
                own, others = self._silent(key, now_ms, but=worker_id)
                silent = own[::-1], others[::-1]
            line = silent[0] or (silent[1] if is_in_share else [])
            if not line:
                return False
            found = line.pop()
            self._remove(found, self._entries[found])

    def _silent(self, key: str, now_ms: int, but: str = "") -> tuple[list[str], list[str]]:
        """The silent workers of the key, and those of others: first those that have been silent for longest.

        Entries are in the order of their last reports.
        """
        silent = [each for each, entry in self._entries.items() if each != but and _is_silent(entry, now_ms)]
        own = [each for each in silent if self._entries[each].key == key]
        return own, [each for each in silent if self._entries[each].key != key]

    def _sweep(self, now_ms: int) -> None:
        """Forget workers that have long been silent and hold nothing any more; runs at most once a second."""
        if 0 <= now_ms - self._swept_at < limits.SECOND_MS:
            return
        self._swept_at = now_ms
        gone = [
            (worker_id, entry)
            for worker_id, entry in self._entries.items()
            if now_ms - entry.info.heard_at >= limits.WORKER_GONE_MS and entry.leases_until <= now_ms
        ]
        for worker_id, entry in gone:
            self._remove(worker_id, entry)

    def _add(self, worker_id: str, entry: _Entry) -> None:
        self._entries[worker_id] = entry
        self._of_key[entry.key] += 1
        self._bytes_of_key[entry.key] += entry.bytes
        for part in entry.info.report.queues:
            self._of_queue.setdefault(part.queue, {})[worker_id] = None

    def _remove(self, worker_id: str, entry: _Entry) -> None:
        del self._entries[worker_id]
        self._of_key[entry.key] -= 1
        self._bytes_of_key[entry.key] -= entry.bytes
        if not self._of_key[entry.key]:
            del self._of_key[entry.key], self._bytes_of_key[entry.key]
        for part in entry.info.report.queues:
            members = self._of_queue[part.queue]
            del members[worker_id]
            if not members:
                del self._of_queue[part.queue]


def _first(report: WorkerReport, key: str, now_ms: int) -> WorkerInfo:
    """What is known about a worker from one report."""
    return WorkerInfo(
        report,
        heard_at=now_ms,
        handled_per_minute=0,
        silent=False,
        all_busy_since=now_ms if all(map(_is_full, report.queues)) else None,
        made_by=key,
        queue_busy_since={part.queue: now_ms for part in report.queues if _is_full(part)},
    )


def _go_on(entry: _Entry, before: _Entry) -> None:
    """Carry over the times since when slots are busy, and the samples of the last minute."""
    info, earlier = entry.info, before.info
    if earlier.report.queues and _names(earlier) == _names(info):
        entry.samples = before.samples
    busy_since = {
        queue: earlier.queue_busy_since.get(queue, at) for queue, at in info.queue_busy_since.items()
    }
    all_since = info.all_busy_since
    if all_since is not None and earlier.all_busy_since is not None:
        all_since = earlier.all_busy_since
    entry.info = replace(info, queue_busy_since=busy_since, all_busy_since=all_since)


def _sample(entry: _Entry, now_ms: int) -> None:
    """Count the messages handled in the last minute. A number that became smaller started over."""
    report, samples = entry.info.report, entry.samples
    handled = array("q", [part.handled for part in report.queues])
    while samples and not 0 <= now_ms - samples[0][0] <= limits.WORKER_RATE_MS:
        samples.popleft()
    if not samples and 0 <= now_ms - report.started_at <= limits.WORKER_RATE_MS:
        samples.append((report.started_at, array("q", [0] * len(handled))))
    since = samples[0][1] if samples else handled
    per_minute = {
        part.queue: max(0, now - then) for part, now, then in zip(report.queues, handled, since, strict=True)
    }
    if not samples or now_ms - samples[-1][0] >= limits.WORKER_RATE_MS // limits.WORKER_SAMPLES_MAX:
        samples.append((now_ms, handled))
    entry.info = replace(entry.info, queue_per_minute=per_minute, handled_per_minute=sum(per_minute.values()))


def _seen(entry: _Entry, now_ms: int) -> WorkerInfo:
    """What is known about a worker at this time."""
    if not _is_silent(entry, now_ms):
        return entry.info
    return replace(entry.info, silent=True, handled_per_minute=0, queue_per_minute={})


def _is_silent(entry: _Entry, now_ms: int) -> bool:
    return now_ms - entry.info.heard_at >= limits.WORKER_SILENT_MS


def _is_full(part: WorkerQueue) -> bool:
    return 0 < part.slots <= part.busy


def _names(info: WorkerInfo) -> list[str]:
    return [part.queue for part in info.report.queues]


def _leases_until(report: WorkerReport, now_ms: int) -> int:
    ends = (held.lease_until for part in report.queues for held in part.holds)
    return min(max(ends, default=0), now_ms + limits.LEASE_MS_MAX)


def _bytes_of(report: WorkerReport) -> int:
    texts = 4 * (len(report.name) + len(report.host) + len(report.version))
    parts = sum(_QUEUE_BYTES + len(part.queue) + _HOLD_BYTES * len(part.holds) for part in report.queues)
    told = (held.progress for part in report.queues for held in part.holds)
    parts += sum(_PROGRESS_BYTES + 4 * len(progress.text) for progress in told if progress is not None)
    return _WORKER_BYTES + texts + parts
