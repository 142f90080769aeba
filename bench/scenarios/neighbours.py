"""How long others wait while one client asks for as much as it may, or one setting is changed on a full queue.

A task sends small messages to a queue of its own, one after the other, and notes how long each took. Beside it run the
heaviest requests, one after the other. Everything goes through a Broker in this process, with fsync as in `forq serve`;
"alone" is the same task with nothing beside it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter_ns

import trio

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.scenarios.embedded import broker_on_disk
from bench.scenarios.settings import Settings
from forq_trio import Broker, NewMessage, Overflow, QueueFull
from forq_trio.model import limits

LARGEST = "x" * limits.CONTENT_BYTES_MAX
LARGE_MESSAGES = 100
CONCURRENT = 20
SENDS = 200
GROUPS = 1_000


def neighbours(context: Context) -> list[Row]:
    """Sends of one client beside the heaviest requests and settings of another: p50, p99 and the longest, in ms."""
    return trio.run(_neighbours, context)


async def _neighbours(context: Context) -> list[Row]:
    rows = []
    stored = context.settings.backlog_ready
    for work in WORKS:
        async with broker_on_disk(context.data_dir, context.durability) as broker:
            await _store(broker, "full", [NewMessage("small")] * stored)
            run = await work(broker, context.settings)
            times = Histogram()
            async with sending(broker, times):
                await run()
        summary = times.summary()
        name = (work.__doc__ or "").rstrip(".")
        rows.append({"beside": name, "stored": stored, "sends": summary.pop("count"), **summary})
    return rows


@asynccontextmanager
async def sending(broker: Broker, times: Histogram) -> AsyncIterator[None]:
    """Send to a queue of its own, one message after the other, while the body runs."""

    async def send() -> None:
        while True:
            started_ns = perf_counter_ns()
            await broker.produce("others", "hello")
            times.record(perf_counter_ns() - started_ns)
            await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        yield
        nursery.cancel_scope.cancel()


async def _store(broker: Broker, queue: str, messages: list[NewMessage]) -> None:
    size = 16 if messages and len(messages[0].content) > limits.KIB else limits.PRODUCE_BATCH_MAX
    for start in range(0, len(messages), size):
        await broker.produce_many(queue, messages[start : start + size])


Run = Callable[[], Awaitable[None]]
Work = Callable[[Broker, Settings], Awaitable[Run]]


async def _at_once(tasks: int, work: Run) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(work)


async def _send_until_refused(broker: Broker) -> None:
    for _ in range(SENDS):
        try:
            await broker.produce("full", "one more")
        except QueueFull:
            continue


async def nothing(broker: Broker, settings: Settings) -> Run:
    """Nothing."""

    async def run() -> None:
        await trio.sleep(settings.alone_seconds)

    return run


async def lowered_bound(broker: Broker, settings: Settings) -> Run:
    """A bound lowered to a hundredth of what is stored, dropping the oldest, and sends into it."""

    async def run() -> None:
        await broker.configure(
            "full", max_messages=max(settings.backlog_ready // 100, 1), overflow=Overflow.DROP_OLDEST
        )
        await _at_once(CONCURRENT, lambda: _send_until_refused(broker))

    return run


async def lowered_to_dead_letters(broker: Broker, settings: Settings) -> Run:
    """The same, moving them to the dead-letter queue."""

    async def run() -> None:
        await broker.configure(
            "full", max_messages=max(settings.backlog_ready // 100, 1), overflow=Overflow.DEAD_LETTER
        )
        await _at_once(CONCURRENT, lambda: _send_until_refused(broker))

    return run


async def refused_sends(broker: Broker, settings: Settings) -> Run:
    """Sends that are refused, into a queue whose bytes are taken by messages in process."""
    await broker.produce("full", LARGEST, priority=limits.PRIORITY_MAX)
    await broker.receive("full", wait_ms=0)
    size = settings.backlog_ready * len("small") + len(LARGEST)
    await broker.configure("full", max_bytes=size, overflow=Overflow.DROP_OLDEST)

    async def send() -> None:
        for _ in range(SENDS // 10):
            try:
                await broker.produce("full", LARGEST[:-1])
            except QueueFull:
                continue

    return lambda: _at_once(CONCURRENT, send)


async def large_receives(broker: Broker, settings: Settings) -> Run:
    """20 receives of 100 messages of 256 KiB at once."""
    await _store(broker, "large", [NewMessage(LARGEST)] * (CONCURRENT * LARGE_MESSAGES // 4))

    async def receive() -> None:
        await broker.receive("large", max_messages=LARGE_MESSAGES, wait_ms=0)

    return lambda: _at_once(CONCURRENT, receive)


async def large_nacks(broker: Broker, settings: Settings) -> Run:
    """Nacks of 200 messages of 256 KiB at once."""
    await _store(broker, "large", [NewMessage(LARGEST)] * (2 * LARGE_MESSAGES))
    receipts: list[str] = []
    while deliveries := await broker.receive("large", max_messages=LARGE_MESSAGES, wait_ms=0):
        receipts += [delivery.receipt for delivery in deliveries]

    async def run() -> None:
        await broker.nack("large", receipts)

    return run


async def large_sends(broker: Broker, settings: Settings) -> Run:
    """20 batches of 15 messages of 256 KiB at once."""

    async def send() -> None:
        await broker.produce_many("large", [NewMessage(LARGEST)] * 15)

    return lambda: _at_once(CONCURRENT, send)


async def large_purge(broker: Broker, settings: Settings) -> Run:
    """A purge of messages of 256 KiB."""
    await _store(broker, "large", [NewMessage(LARGEST)] * (CONCURRENT * LARGE_MESSAGES // 4))

    async def run() -> None:
        await broker.purge("large")

    return run


async def lifted_group_limit(broker: Broker, settings: Settings) -> Run:
    """A group limit that is lifted while a twentieth of what is stored is held for it."""
    await broker.configure("grouped", group_in_flight_max=1)
    await _store(
        broker,
        "grouped",
        [NewMessage("small", group=f"g{n % GROUPS}") for n in range(settings.backlog_ready // 20)],
    )
    while await broker.receive("grouped", max_messages=LARGE_MESSAGES, wait_ms=0):
        pass

    async def run() -> None:
        await broker.configure("grouped", group_in_flight_max=None)
        while await broker.receive("grouped", max_messages=LARGE_MESSAGES, wait_ms=0):
            pass

    return run


async def shuffled_receives(broker: Broker, settings: Settings) -> Run:
    """20 shuffled receives of 100 messages at once."""

    async def receive() -> None:
        await broker.receive("full", max_messages=LARGE_MESSAGES, shuffle=True, wait_ms=0)

    return lambda: _at_once(CONCURRENT, receive)


async def receives_by_attributes(broker: Broker, settings: Settings) -> Run:
    """Receives with 20 conditions that match nothing of what is stored."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(CONCURRENT):
                nursery.start_soon(partial(broker.receive, "full", where={"region": str(number)}))
            await broker.receive("full", where={"region": "0"}, wait_ms=settings.walk_ms)
            nursery.cancel_scope.cancel()

    return run


WORKS: tuple[Work, ...] = (
    nothing,
    lowered_bound,
    lowered_to_dead_letters,
    refused_sends,
    large_receives,
    large_nacks,
    large_sends,
    large_purge,
    lifted_group_limit,
    shuffled_receives,
    receives_by_attributes,
)
