"""What each feature of the queue costs against the plain path, and whether it stays flat with much stored.

Everything goes through a Broker in this process, on a database with fsync as in `forq serve`: HTTP would hide the
differences. Plain and feature take turns, so that a machine that changes its pace changes it for both.
"""

import statistics
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter_ns
from typing import Any

import trio

from bench.scenarios.context import Context, Row
from bench.scenarios.embedded import broker_on_disk
from forq_trio import Broker, NewMessage, Overflow, RedrivePolicy, SettingsOptions

STEPS = ("send", "claim", "ack")
GROUPS = 100
GROUPS_STORED = 1_000
PRIORITIES = 5
STORE_BATCH = 1_000
_numbers = count()


@dataclass(frozen=True)
class Feature:
    """A way to use the queue.

    message: the members of the i-th message; receive: arguments of every receive; sends: batches sent for each one
    that is received, more than one to keep a queue full.
    """

    name: str
    message: Callable[[int], dict[str, Any]] = lambda _: {}
    settings: SettingsOptions | None = None
    receive: dict[str, Any] = field(default_factory=dict)
    queue_suffix: str = ""
    sends: int = 1


PLAIN = Feature("plain")


def features_of(batch_messages: int) -> list[Feature]:
    """All features; batch_messages: how many messages of a queue exist at once, for the bounds."""
    return [
        PLAIN,
        Feature("priority", lambda i: {"priority": 100 * (i % PRIORITIES)}),
        Feature("last in, first out", queue_suffix="_lifo"),
        Feature("time to live", lambda _: {"ttl_ms": 3_600_000}),
        Feature(
            "attributes", lambda i: {"attributes": {"source": "bench", "trace": str(i), "kind": "order"}}
        ),
        Feature("deduplication", lambda _: {"deduplication_id": f"id-{next(_numbers)}"}),
        Feature("own attempts, own dead letters", lambda _: {"max_attempts": 3, "dead_letter_queue": "bad"}),
        Feature(f"{GROUPS} groups", lambda i: {"group": f"tenant-{i % GROUPS}"}),
        Feature(
            f"{GROUPS} groups, at most 10 each in process",
            lambda i: {"group": f"tenant-{i % GROUPS}"},
            {"group_in_flight_max": 10},
        ),
        Feature("bound on messages and bytes", settings={"max_messages": 10**6, "max_bytes": 10**9}),
        Feature(
            "full, dropping the oldest",
            settings={"max_messages": batch_messages, "overflow": Overflow.DROP_OLDEST},
        ),
        Feature("back-off, lease, attempts of the queue", settings={"lease_ms": 60_000, "max_attempts": 9}),
        Feature("shuffle", receive={"shuffle": True}),
        Feature("a consumer's own bound on deliveries", receive={"redrive_policy": RedrivePolicy(4)}),
    ]


def features(context: Context) -> list[Row]:
    """Messages a second of each feature in batches of 100, sent, received and acked, against the plain path."""
    return trio.run(_features, context)


async def _features(context: Context) -> list[Row]:
    settings = context.settings
    async with broker_on_disk(context.data_dir, context.durability) as broker:
        rows = []
        for feature in features_of(settings.batch_messages):
            plain, other = await _prepare(broker, PLAIN), await _prepare(broker, feature)
            pairs = []
            for _ in range(settings.rounds):
                pairs.append([await _round(context, broker, *plain), await _round(context, broker, *other)])
            rows.append(_compare(feature.name, pairs, "plain"))
        return rows


def features_stored(context: Context) -> list[Row]:
    """Claims, sends and acks in a queue that holds many messages of groups and priorities, against an empty one."""
    return trio.run(_features_stored, context)


async def _features_stored(context: Context) -> list[Row]:
    settings = context.settings
    size = settings.batch_messages

    def mixed(i: int) -> dict[str, Any]:
        return {"group": f"tenant-{i % GROUPS_STORED}", "priority": 100 * (i % PRIORITIES)}

    ways = [
        Feature("groups and priorities", mixed),
        Feature("groups, at most 10 each in process", mixed, {"group_in_flight_max": 10}),
        Feature("groups, at random", mixed, receive={"shuffle": True}),
        Feature(
            "full, dropping the oldest",
            mixed,
            {"max_messages": max(settings.backlog_ready, size), "overflow": Overflow.DROP_OLDEST},
            sends=2,
        ),
    ]
    async with broker_on_disk(context.data_dir, context.durability) as broker:
        rows = []
        for way in ways:
            empty, loaded = await _prepare(broker, way), await _prepare(broker, way)
            await _store(broker, loaded[1], way, context.content, settings.backlog_ready)
            pairs = []
            for _ in range(settings.rounds):
                pairs.append([await _round(context, broker, *empty), await _round(context, broker, *loaded)])
            rows.append(_compare(way.name, pairs, "empty"))
            await broker.purge(loaded[1])
        return rows


async def _prepare(broker: Broker, feature: Feature) -> tuple[Feature, str]:
    queue = f"bench-feature-{next(_numbers)}{feature.queue_suffix}"
    if feature.settings is not None:
        await broker.configure(queue, **feature.settings)
    return feature, queue


async def _store(broker: Broker, queue: str, feature: Feature, content: str, messages: int) -> None:
    for start in range(0, messages, STORE_BATCH):
        numbers = range(start, min(start + STORE_BATCH, messages))
        await broker.produce_many(queue, [NewMessage(content, **feature.message(i)) for i in numbers])


async def _round(context: Context, broker: Broker, feature: Feature, queue: str) -> dict[str, float]:
    """Microseconds a message of each step, over as many cycles as the set says."""
    size = context.settings.batch_messages
    spent = dict.fromkeys(STEPS, 0)
    messages = 0
    while messages < context.settings.feature_messages:
        batch = [NewMessage(context.content, **feature.message(i)) for i in range(size)]
        for _ in range(feature.sends):
            async with _timed(spent, "send"):
                await broker.produce_many(queue, batch)
        async with _timed(spent, "claim"):
            deliveries = await broker.receive(queue, max_messages=size, wait_ms=0, **feature.receive)
        async with _timed(spent, "ack"):
            await broker.ack(queue, [delivery.receipt for delivery in deliveries])
        messages += len(deliveries)
    spent["send"] //= feature.sends
    return {step: nanoseconds / messages / 1e3 for step, nanoseconds in spent.items()}


@asynccontextmanager
async def _timed(spent: dict[str, int], step: str) -> AsyncIterator[None]:
    started_ns = perf_counter_ns()
    yield
    spent[step] += perf_counter_ns() - started_ns


def _compare(name: str, pairs: Sequence[Sequence[dict[str, float]]], base: str) -> Row:
    """The rate of whole cycles, and the cost of each step as a multiple of the base's: medians of rounds."""
    microseconds = statistics.median(sum(other.values()) for _, other in pairs)
    row: Row = {"feature": name, "messages_per_second": round(1e6 / microseconds, 1)}
    for step in STEPS:
        row[f"{step}_to_{base}"] = round(
            statistics.median(other[step] / one[step] for one, other in pairs), 3
        )
    whole = statistics.median(sum(other.values()) / sum(one.values()) for one, other in pairs)
    row[f"cycle_to_{base}"] = round(whole, 3)
    return row
