"""How long others wait while many schedules are due, and how late these are.

A task sends small messages to a queue of its own, one after the other, and notes how long each took; beside it runs of
schedules are due, spread over a minute or all at one instant. Everything goes through a Broker in this process, with
fsync as in `forq serve`. The wall clock is set forward to the first run once all schedules are stored.
"""

from time import perf_counter_ns, time_ns

import trio

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.scenarios.embedded import broker_on_disk
from bench.scenarios.neighbours import sending
from forq_trio import Broker
from forq_trio.model.limits import HOUR_MS, SCHEDULES_PAGE_MAX
from forq_trio.model.schedules.types import NewSchedule

TASKS = 256
MILLION = 1_000_000
QUEUE = "scheduled"


class MovedClock:
    """The wall clock, as far ahead as it was set."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return time_ns() // MILLION + self.ahead_ms


def schedules(context: Context) -> list[Row]:
    """Sends of one client beside schedules that are due within a minute, and all at once; and how late those are."""
    return trio.run(_schedules, context)


async def _schedules(context: Context) -> list[Row]:
    count, spread_ms = context.settings.schedules, context.settings.schedules_spread_ms
    return [
        await _measure(context, "nothing", 0, 0),
        await _measure(context, f"schedules that are due within {spread_ms // 1_000} s", count, spread_ms),
        await _measure(context, "schedules that are due at one instant", count, 0),
    ]


async def _measure(context: Context, name: str, count: int, spread_ms: int) -> Row:
    clock, times = MovedClock(), Histogram()
    async with broker_on_disk(context.data_dir, context.durability, clock) as broker:
        first = clock.now_ms() + 10 * HOUR_MS
        await _store(broker, [first + n * spread_ms // max(count, 1) for n in range(count)])
        clock.ahead_ms = first - time_ns() // MILLION
        started_ns = perf_counter_ns()
        async with sending(broker, times):
            await trio.sleep(context.settings.alone_seconds)
            while count and broker.known.counts_of(QUEUE).total < count:  # noqa: ASYNC110 (it is looked at from outside)
                await trio.sleep(0.02)
        seconds = (perf_counter_ns() - started_ns) / 1e9
        summary = times.summary()
        row: Row = {"beside": name, "schedules": count, "sends": summary.pop("count"), **summary}
        if count:
            row |= {"runs_per_second": round(count / seconds, 1), "latest_ms": await _latest(broker)}
    return row


async def _store(broker: Broker, starts: list[int]) -> None:
    """A schedule for each of these times, at which it runs."""
    waiting = iter(enumerate(starts))

    async def save() -> None:
        for n, start in waiting:
            new = NewSchedule(queue=QUEUE, content="hello", every="366d", start=start)
            await broker.save_schedule(f"s{n}", new)

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(save)


async def _latest(broker: Broker) -> int:
    """How many milliseconds after its time the latest run was sent."""
    latest, after = 0, ""
    while True:
        page = await broker.schedules(after=after, limit=SCHEDULES_PAGE_MAX)
        latest = max(
            [latest, *(each.last_run.late_ms for each in page.schedules if each.last_run is not None)]
        )
        if page.next is None:
            return latest
        after = page.next
