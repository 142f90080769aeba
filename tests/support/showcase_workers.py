"""Workers of the showcase that make themselves known: some work, two are silent, all slots of one queue are busy."""

from dataclasses import dataclass
from time import time
from uuid import UUID

import trio

from forq_trio import AsyncForqClient
from forq_trio.model import limits
from forq_trio.model.workers.types import HeldMessage, WorkerQueue, WorkerReport

CHARGE = "orders.charge"
TAKEN = 7
TAKEN_LEASE_MS = 40 * limits.SECOND_MS
REPORTS_A_TURN = 6
SILENT_LEASE_MS = 20 * limits.MINUTE_MS


@dataclass(frozen=True)
class Plan:
    """A worker. busy: of `slots` in each queue; a_minute: what it handles.

    takes: it holds messages of CHARGE, and so is busy with them. reports: not only once.
    """

    name: str
    host: str
    version: str
    queues: tuple[str, ...]
    busy: int
    slots: int
    a_minute: int = 0
    takes: bool = False
    reports: bool = True


PLANS = (
    Plan("thumbs-2", "render-7f9c", "1.8.0", ("thumbnails",), 3, 16, reports=False),
    Plan("charge-worker-3", "ip-10-4-2-19", "2026.11.3", (CHARGE,), 8, 8, reports=False),
    Plan("mail-1", "ip-10-4-3-4", "5.2.1", ("emails", "emails.bulk"), 6, 6, 5_811),
    Plan("mail-2", "ip-10-4-3-5", "5.2.1", ("emails", "emails.bulk"), 6, 6, 5_790),
    Plan("audit-1", "ip-10-4-1-8", "1.0.4", ("audit.log",), 20, 32, 12_894),
    Plan("charge-worker-1", "ip-10-4-2-17", "2026.11.3", (CHARGE,), 7, 8, 640, takes=True),
    Plan("charge-worker-2", "ip-10-4-2-17", "2026.11.3", (CHARGE,), 8, 10, 662),
    Plan("events-1", "kafka-bridge-0", "2026.11.3", ("events.ingest",), 512, 1_024, 1_240_712),
    Plan("reindex-1", "ip-10-4-5-2", "3.3.0", ("search.reindex",), 0, 2),
)


async def make_known(client: AsyncForqClient, stop: trio.Event) -> None:
    """Report all of them until the event; the silent ones once, with a lease that keeps them listed."""
    begun_ms = _now_ms()
    taken: tuple[HeldMessage, ...] = ()
    receipts: list[str] = []
    first = True
    while not stop.is_set():
        if receipts:
            await client.ack(CHARGE, receipts)
        got = await client.receive(CHARGE, max_messages=TAKEN, lease_ms=TAKEN_LEASE_MS)
        receipts = [each.receipt for each in got]
        at_ms = _now_ms()
        taken = tuple(
            HeldMessage(each.id, each.sequence, at_ms, each.attempts, each.lease_until) for each in got
        )
        for _ in range(REPORTS_A_TURN):
            for number, plan in enumerate(PLANS, 1):
                if plan.reports or first:
                    await client.report_worker(_report(plan, number, begun_ms, taken))
            first = False
            with trio.move_on_after(limits.WORKER_REPORT_SECONDS):
                await stop.wait()


def _now_ms() -> int:
    return int(time() * limits.SECOND_MS)


def _report(plan: Plan, number: int, begun_ms: int, taken: tuple[HeldMessage, ...]) -> WorkerReport:
    handled = plan.a_minute * (_now_ms() - begun_ms) // limits.MINUTE_MS
    holds = taken if plan.takes else _holds(plan, number)
    busy = len(taken) if plan.takes else plan.busy
    queues = tuple(
        WorkerQueue(queue, plan.slots, busy, handled // len(plan.queues), 0, () if place else holds)
        for place, queue in enumerate(plan.queues)
    )
    started_ms = begun_ms - 147 * limits.HOUR_MS
    return WorkerReport(str(UUID(int=number)), plan.name, plan.host, plan.version, 4_117, started_ms, queues)


def _holds(plan: Plan, number: int) -> tuple[HeldMessage, ...]:
    """One message, which is not there: only its age and its lease are seen."""
    if not plan.busy:
        return ()
    since_ms = _now_ms() - 3_100 - 400 * number
    lease_ms = limits.MINUTE_MS if plan.reports else SILENT_LEASE_MS
    return (
        HeldMessage(str(UUID(int=10_000 + number)), 8_204_000 + number, since_ms, 1, since_ms + lease_ms),
    )
