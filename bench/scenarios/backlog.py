"""Does what is stored slow down what is done? Send, claim and ack beside a large backlog and on an empty queue.

The loaded and the empty server run side by side and are measured in turns. A running server given by URL is measured
before the backlog is stored and after.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from time import perf_counter_ns

from bench.load.api import Api, decode_batch, decode_message
from bench.load.generator import Conversation, Load, Request, Series
from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.targets.servers import METRICS_KEY, Server, ServerError

STEPS = ("send", "claim", "ack")
STORE_BATCH = 1_000
CLAIM_BATCH = 100
STORE_CONNECTIONS = 4
STORE_SECONDS_MAX = 1_800.0
DAY_MS = 86_400_000
LEASE_MS = 12 * 3_600_000


def backlog(context: Context) -> list[Row]:
    """p50 of send, claim and ack with a backlog against an empty queue, and of GET /queues and /metrics."""
    settings = context.settings
    queue = context.queue("backlog")
    empty_rounds: list[dict[str, float]] = []
    loaded_rounds: list[dict[str, float]] = []
    with ExitStack() as stack:
        loaded = stack.enter_context(context.server())
        empty = loaded if context.remote else stack.enter_context(context.server())
        if context.remote:
            empty_rounds = [measure_steps(context, empty, queue) for _ in range(settings.rounds)]
        seconds = _store(context, loaded, queue)
        for _ in range(settings.rounds):
            if not context.remote:
                empty_rounds.append(measure_steps(context, empty, queue))
            loaded_rounds.append(measure_steps(context, loaded, queue))
        rows = [compare_steps(step, empty_rounds, loaded_rounds) for step in STEPS]
        rows += _pages(context, empty, loaded, queue)
    stored = f"{settings.backlog_ready:,} + {settings.backlog_delayed:,} + {settings.backlog_in_flight:,}"
    context.say(f"stored {stored} messages (ready, delayed, in flight) in {seconds:.0f} s")
    return rows


def cycles(api: Api, queue: str, content: str, steps: dict[str, Series], count: int) -> Conversation:
    """So many cycles of STEPS."""
    for _ in range(count):
        yield Request(api.send(queue, content), steps["send"])
        response = yield Request(api.receive(queue), steps["claim"])
        if response.status == 200:
            yield Request(api.ack(queue, decode_message(response.body)), steps["ack"])


def measure_steps(context: Context, server: Server, queue: str) -> dict[str, float]:
    """p50 in milliseconds of each of STEPS, over one connection."""
    steps = {name: Series(name) for name in STEPS}
    with Load(server.api.address) as load:
        load.add(cycles(server.api, queue, context.content, steps, context.settings.backlog_samples))
        load.run(STORE_SECONDS_MAX)
    for name, series in steps.items():
        if series.errors or not series.latency.count:
            raise ServerError(f"{name} beside a backlog was answered {dict(series.errors)}")
    return {name: series.latency.percentile_ns(50) / 1e6 for name, series in steps.items()}


def compare_steps(step: str, empty: list[dict[str, float]], loaded: list[dict[str, float]]) -> Row:
    empty_ms = statistics.median(one[step] for one in empty)
    loaded_ms = statistics.median(one[step] for one in loaded)
    return {
        "step": step,
        "empty_p50_ms": round(empty_ms, 4),
        "loaded_p50_ms": round(loaded_ms, 4),
        "loaded_to_empty": round(loaded_ms / empty_ms, 3),
    }


def _pages(context: Context, empty: Server, loaded: Server, queue: str) -> list[Row]:
    """The same comparison for the pages that tell how much there is."""
    rows = []
    for name in ("GET /queues", "GET /queues/{queue}", "GET /metrics"):
        row: Row = {"step": name}
        for state, server in (("empty", empty), ("loaded", loaded)):
            payload = {
                "GET /queues": server.api.queues(),
                "GET /queues/{queue}": server.api.queue(queue),
                "GET /metrics": server.api.get("/metrics", server.metrics_key or METRICS_KEY),
            }[name]
            taken = _time_page(server.api, payload, context.settings.backlog_page_samples)
            row[f"{state}_p50_ms"] = None if taken is None else round(taken, 4)
        if row["empty_p50_ms"] and row["loaded_p50_ms"]:
            row["loaded_to_empty"] = round(row["loaded_p50_ms"] / row["empty_p50_ms"], 3)
        rows.append(row)
    return rows


def _time_page(api: Api, payload: bytes, samples: int) -> float | None:
    """p50 in milliseconds; None from a server that has no such page."""
    times = Histogram()
    for _ in range(samples):
        started_ns = perf_counter_ns()
        if api.exchange(payload).status != 200:
            return None
        times.record(perf_counter_ns() - started_ns)
    return times.percentile_ns(50) / 1e6


def _store(context: Context, server: Server, queue: str) -> float:
    """Store the backlog: first those that are then claimed, so that the ready ones stay; return the seconds taken."""
    settings, started = context.settings, time.monotonic()
    send_all(context, server, queue, settings.backlog_in_flight)
    claimed = run_all(
        server,
        Series("claim"),
        (
            server.api.receive_batch(queue, min(CLAIM_BATCH, left), 0, LEASE_MS)
            for left in range(settings.backlog_in_flight, 0, -CLAIM_BATCH)
        ),
    )
    if claimed != settings.backlog_in_flight:
        raise ServerError(f"claimed {claimed} of {settings.backlog_in_flight} messages for the backlog")
    send_all(context, server, queue, settings.backlog_ready)
    send_all(context, server, queue, settings.backlog_delayed, time.time_ns() // 1_000_000 + DAY_MS)
    return time.monotonic() - started


def send_all(context: Context, server: Server, queue: str, count: int, due_ms: int | None = None) -> None:
    whole = server.api.send_batch(queue, [context.content] * STORE_BATCH, due_ms)
    rest = server.api.send_batch(queue, [context.content] * (count % STORE_BATCH), due_ms)
    batches = [*repeat(whole, count // STORE_BATCH), *([rest] if count % STORE_BATCH else [])]
    run_all(server, Series("store"), iter(batches))


def run_all(server: Server, series: Series, payloads: Iterator[bytes]) -> int:
    """Send all requests over a few connections; return how many messages were received on the way."""
    received = 0

    def working() -> Conversation:
        nonlocal received
        for payload in payloads:
            response = yield Request(payload, series)
            if b'"receipt"' in response.body:
                received += len(decode_batch(response.body))

    with Load(server.api.address) as load:
        load.add_all(working() for _ in range(STORE_CONNECTIONS))
        load.run(STORE_SECONDS_MAX)
        if series.errors or load.open_connections:
            raise ServerError(f"storing the backlog was answered {dict(series.errors) or 'too slowly'}")
    return received
