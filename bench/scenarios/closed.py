"""Closed loops: as fast as a number of connections can go, each waiting for its answer before it goes on."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from bench.load.api import Api, decode_batch, decode_message
from bench.load.generator import Conversation, Request, Series
from bench.scenarios.context import Context, Row, drive, figures, merged, spread
from bench.targets.servers import Server, script_server

Conversations = Callable[[], Iterator[Conversation]]


def producing(api: Api, queue: str, content: str, series: Series) -> Conversation:
    """Send the same message for ever."""
    request = Request(api.send(queue, content), series)
    while True:
        yield request


def cycling(
    api: Api, queue: str, content: str, sent: Series, received: Series, acked: Series
) -> Conversation:
    """Send, receive, ack by id (fenced where the server gives receipts), for ever.

    It may receive a message of another connection. Each connection sends before it receives, so there is always one.
    """
    send = Request(api.send(queue, content), sent)
    receive = Request(api.receive(queue), received)
    while True:
        yield send
        response = yield receive
        if response.status == 200:
            yield Request(api.ack(queue, decode_message(response.body)), acked)


def measure_produce(context: Context, server: Server, connections: int) -> tuple[Series, float]:
    series, queue = Series("send"), context.queue("produce")
    conversations = (producing(server.api, queue, context.content, series) for _ in range(connections))
    return series, drive(context, server, conversations)


def measure_cycle(context: Context, server: Server, connections: int) -> tuple[list[Series], float]:
    steps, queue = [Series("send"), Series("receive"), Series("ack")], context.queue("cycle")
    conversations = (cycling(server.api, queue, context.content, *steps) for _ in range(connections))
    return steps, drive(context, server, conversations)


def produce(context: Context) -> list[Row]:
    """Send single messages."""
    rows = []
    with context.server() as server:
        for connections in context.settings.connections:
            series, seconds = measure_produce(context, server, connections)
            rows.append({"connections": connections, **figures(series, seconds)})
    return rows


def cycle(context: Context) -> list[Row]:
    """Send, receive, ack: requests per second, and the latency of each step."""
    rows: list[Row] = []
    with context.server() as server:
        for connections in context.settings.connections:
            steps, seconds = measure_cycle(context, server, connections)
            for series in (merged("all requests", steps), *steps):
                rows.append({"connections": connections, "step": series.name, **figures(series, seconds)})
    return rows


def ceiling(context: Context) -> list[Row]:
    """The same sends against servers without a queue: a bare loop, and our transport answering 204."""
    rows = []
    for script in ("bare_204.py", "noop_server.py"):
        with script_server(script) as server:
            for connections in context.settings.connections:
                series, seconds = measure_produce(context, server, connections)
                rows.append({"server": server.name, "connections": connections, **figures(series, seconds)})
    return rows


def batch(context: Context) -> list[Row]:
    """Batches: send 100 messages a request, then receive up to 100 and ack them; messages per second."""
    rows: list[Row] = []
    size = context.settings.batch_messages
    with context.server() as server:
        for connections in context.settings.batch_connections:
            queue = context.queue("batch")
            sent, received, acked = Series("send"), Series("receive"), Series("ack")
            request = Request(server.api.send_batch(queue, [context.content] * size), sent)
            seconds = drive(context, server, (repeat(request) for _ in range(connections)))
            rows.append(_batch_row(connections, [sent], seconds, size))
            drains = (_draining(server.api, queue, size, received, acked) for _ in range(connections))
            # No warm-up, because it would use up the messages.
            seconds = drive(context, server, drains, warm_up=False)
            rows.append(_batch_row(connections, [received, acked], seconds, size))
    return rows


def repeat(request: Request) -> Conversation:
    """The same request for ever."""
    while True:
        yield request


def _draining(api: Api, queue: str, size: int, received: Series, acked: Series) -> Conversation:
    """Receive and ack until the queue is empty."""
    receive = Request(api.receive_batch(queue, size, wait_ms=0), received)
    while True:
        response = yield receive
        messages = decode_batch(response.body) if response.status == 200 else []
        if not messages:
            return
        yield Request(api.ack_batch(queue, messages), acked)


def _batch_row(connections: int, steps: list[Series], seconds: float, size: int) -> Row:
    last = figures(steps[-1], seconds)
    rate = round(last.pop("per_second") * size, 1)
    name = " + ".join(series.name for series in steps)
    return {"connections": connections, "step": name, "messages_per_second": rate, **last}


def ratio(context: Context) -> list[Row]:
    """Send and cycle as a part of what a bare loop answering 204 does, in interleaved rounds; medians."""
    settings = context.settings
    rows = []
    with ExitStack() as stack:
        bare = stack.enter_context(script_server("bare_204.py"))
        noop = stack.enter_context(script_server("noop_server.py"))
        ours = stack.enter_context(context.server())
        for connections in settings.connections:
            rates: dict[str, list[float]] = {"bare": [], "noop": [], "send": [], "cycle": []}
            tails = []
            for _ in range(settings.rounds):
                for name, server in (("bare", bare), ("noop", noop), ("send", ours)):
                    series, seconds = measure_produce(context, server, connections)
                    rates[name].append(series.latency.count / seconds)
                tails.append(series.latency.percentile_ns(99) / max(series.latency.percentile_ns(50), 1))
                steps, seconds = measure_cycle(context, ours, connections)
                rates["cycle"].append(sum(step.latency.count for step in steps) / seconds)
            rows.append(_ratio_row(connections, rates, tails))
    return rows


def _ratio_row(connections: int, rates: dict[str, list[float]], tails: list[float]) -> Row:
    row: Row = {"connections": connections}
    for name, values in rates.items():
        row[f"{name}_per_second"] = round(statistics.median(values), 1)
    for name in ("noop", "send", "cycle"):
        parts = spread([one / bare for one, bare in zip(rates[name], rates["bare"], strict=True)])
        row[f"{name}_ratio"] = parts["median"]
        row[f"{name}_ratio_range"] = f"{parts['min']:.2f}-{parts['max']:.2f}"
    row["send_p99_to_p50"] = round(statistics.median(tails), 1)
    return row
