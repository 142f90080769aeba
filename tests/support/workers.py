"""Reports of workers."""

from forq_trio.model.workers.types import HeldMessage, WorkerQueue, WorkerReport


def worker_id(number: int = 1) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def held(number: int = 1, *, since: int = 0, lease_until: int = 0) -> HeldMessage:
    return HeldMessage(worker_id(number), number, since, 1, lease_until)


def part(
    queue: str = "q", slots: int = 4, busy: int = 0, handled: int = 0, holds: tuple[HeldMessage, ...] = ()
) -> WorkerQueue:
    return WorkerQueue(queue, slots, busy=busy, handled=handled, holds=holds)


def report(number: int = 1, *parts: WorkerQueue, name: str = "w", started_at: int = 0) -> WorkerReport:
    return WorkerReport(worker_id(number), name, "host", "1.0", 7, started_at, parts or (part(),))
