"""What a key costs: offers against sends, a storm of offers on one key, and claims beside many keyed messages."""

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

from bench.load.api import decode_message
from bench.load.generator import Conversation, Request, Series
from bench.scenarios.backlog import DAY_MS, STEPS, STORE_BATCH, compare_steps, measure_steps, run_all
from bench.scenarios.closed import measure_produce, repeat
from bench.scenarios.context import Context, Row, drive, figures
from bench.targets.servers import Server

STORM_CONNECTIONS = 64
STORM_DELAY_MS = 100
STORM_WAIT_MS_MAX = 500


def keys(context: Context) -> list[Row]:
    """Offers of new keys and of one that is pending, alone and 100 a batch, against sends; and a debounce storm."""
    settings = context.settings
    size = settings.batch_messages
    rows = []
    with context.server() as server:
        for connections in settings.connections:
            rows += _alone(context, server, connections)
        for connections in settings.batch_connections:
            rows.append(_batches(context, server, connections, size))
        rows.append(_storm(context, server))
    return rows


def _alone(context: Context, server: Server, connections: int) -> list[Row]:
    """Single offers and single sends in alternating rounds."""
    names = ("a new key", "an update", "an identical offer")
    sends: list[float] = []
    offers: dict[str, list[Series]] = {name: [] for name in names}
    rates: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(context.settings.rounds):
        series, seconds = measure_produce(context, server, connections)
        sends.append(series.latency.count / seconds)
        for name in names:
            series, seconds = _offering(context, server, connections, name)
            offers[name].append(series)
            rates[name].append(series.latency.count / seconds)
    rows = []
    for name in names:
        ratios = [offer / send for offer, send in zip(rates[name], sends, strict=True)]
        last = figures(offers[name][-1], 1.0)
        last["per_second"] = round(statistics.median(rates[name]), 1)
        rows.append(
            {
                "offers": name,
                "connections": connections,
                **last,
                "to_sends": round(statistics.median(ratios), 3),
            }
        )
    return rows


def _offering(context: Context, server: Server, connections: int, name: str) -> tuple[Series, float]:
    series, queue = Series(name), context.queue("keys")
    numbers = count()

    def conversation(connection: int) -> Conversation:
        while True:
            number = next(numbers)
            key = f"key-{number}" if name == "a new key" else f"key-{connection}"
            content = f"{number:010}" + context.content[10:] if name == "an update" else context.content
            yield Request(server.api.offer(queue, key, content), series)

    return series, drive(context, server, map(conversation, range(connections)))


def _batches(context: Context, server: Server, connections: int, size: int) -> Row:
    """Batches of new keys against batches of sends, in alternating rounds; messages a second."""
    rates: list[float] = []
    ratios = []
    offered = Series("offers")
    for _ in range(context.settings.rounds):
        sent, offered = Series("sends"), Series("offers")
        request = Request(server.api.send_batch(context.queue("batch"), [context.content] * size), sent)
        seconds = drive(context, server, (repeat(request) for _ in range(connections)))
        sends = sent.latency.count / seconds
        queue, numbers = context.queue("keys"), count()
        batches = (_new_keys(context, server, queue, size, numbers, offered) for _ in range(connections))
        seconds = drive(context, server, batches)
        offers = offered.latency.count / seconds
        rates.append(offers * size)
        ratios.append(offers / sends)
    return {
        "offers": f"{size} new keys a batch",
        "connections": connections,
        **figures(offered, 1.0),
        "per_second": round(statistics.median(rates), 1),
        "to_sends": round(statistics.median(ratios), 3),
    }


def _new_keys(
    context: Context, server: Server, queue: str, size: int, numbers: Iterator[int], series: Series
) -> Conversation:
    while True:
        batch = [f"key-{next(numbers)}" for _ in range(size)]
        yield Request(server.api.offer_batch(queue, batch, context.content), series)


def _storm(context: Context, server: Server) -> Row:
    """Many clients that debounce one key, while one consumer receives and acks what becomes due."""
    offered, received, queue = Series("offer"), Series("receive"), context.queue("storm")
    handled = 0

    def offer() -> Conversation:
        while True:
            members = {"mode": "debounce", "delayMs": STORM_DELAY_MS, "maxWaitMs": STORM_WAIT_MS_MAX}
            yield Request(server.api.offer(queue, "one", context.content, **members), offered)

    def consume() -> Conversation:
        nonlocal handled
        while True:
            response = yield Request(server.api.receive(queue), received)
            if response.status == 200:
                handled += 1
                yield Request(server.api.ack(queue, decode_message(response.body)), received)

    storm = [*(offer() for _ in range(STORM_CONNECTIONS)), consume()]
    seconds = drive(context, server, storm)
    return {
        "offers": f"debounced on one key, at most {STORM_WAIT_MS_MAX} ms",
        "connections": STORM_CONNECTIONS,
        **figures(offered, seconds),
        "handled_a_second": round(handled / seconds, 1),
    }


def keys_stored(context: Context) -> list[Row]:
    """p50 of send, claim and ack with as many keyed messages as the backlog has delayed ones, against none."""
    settings = context.settings
    queue = context.queue("keys-stored")
    due_ms = time.time_ns() // 1_000_000 + DAY_MS
    with ExitStack() as stack:
        loaded = stack.enter_context(context.server())
        empty = stack.enter_context(context.server())
        stored = Series("store")
        batches = (
            loaded.api.offer_batch(
                queue,
                [f"key-{n}" for n in range(start, min(start + STORE_BATCH, settings.backlog_delayed))],
                context.content,
                due_ms,
            )
            for start in range(0, settings.backlog_delayed, STORE_BATCH)
        )
        started = time.monotonic()
        run_all(loaded, stored, batches)
        seconds = time.monotonic() - started
        rounds = [
            (measure_steps(context, empty, queue), measure_steps(context, loaded, queue))
            for _ in range(settings.rounds)
        ]
    context.say(f"stored {settings.backlog_delayed:,} keyed delayed messages in {seconds:.0f} s")
    return [compare_steps(step, [e for e, _ in rounds], [full for _, full in rounds]) for step in STEPS]
