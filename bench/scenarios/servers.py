"""Servers that people would take instead, beside ours: the same messages over as many connections, in turns."""

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from bench.load.generator import Conversation, Load, Series
from bench.scenarios.closed import measure_cycle, measure_produce
from bench.scenarios.context import Context, Row, merged
from bench.targets.queue_servers import QUEUE_SERVERS, QueueServer, queue_server
from bench.targets.servers import ServerError

Measure = Callable[[int], tuple[list[Series], float]]


class _Measured(NamedTuple):
    """A server under load. send, cycle: measure it over a number of connections."""

    name: str
    durability: str
    settled_by: str
    send: Measure
    cycle: Measure


def servers(context: Context) -> list[Row]:
    """Send, then send + take + settle, beside other queue servers that sync before they answer, in turns; medians."""
    with ExitStack() as stack:
        ours = stack.enter_context(context.server())

        def send(connections: int) -> tuple[list[Series], float]:
            series, seconds = measure_produce(context, ours, connections)
            return [series], seconds

        cycle = partial(measure_cycle, context, ours)
        measured = [_Measured(ours.name, ours.durability, "ack, fenced by receipt; lease", send, cycle)]
        for kind in QUEUE_SERVERS:
            try:
                other = stack.enter_context(queue_server(kind, context.data_dir))
            except ServerError as missing:
                context.say(f"SKIPPED {kind.name}: {missing}")
                continue
            measured.append(_of(context, other))
        return [row for count in context.settings.connections for row in _in_turns(context, measured, count)]


def _of(context: Context, other: QueueServer) -> _Measured:
    content = b"x" * context.settings.body_bytes

    def send(connections: int) -> tuple[list[Series], float]:
        queue, series = context.queue("servers"), Series("send")
        return _drive(context, other, [series], lambda: other.producing(queue, content, series), connections)

    def cycle(connections: int) -> tuple[list[Series], float]:
        queue, steps = context.queue("servers"), [Series("send"), Series("take"), Series("settle")]
        return _drive(context, other, steps, lambda: other.cycling(queue, content, steps), connections)

    return _Measured(other.title, other.durability, other.settled_by, send, cycle)


def _drive(
    context: Context,
    other: QueueServer,
    steps: list[Series],
    conversation: Callable[[], Conversation],
    connections: int,
) -> tuple[list[Series], float]:
    settings = context.settings
    with Load(other.address, scan=other.scan) as load:
        load.add_all(conversation() for _ in range(connections))
        return steps, load.run(settings.seconds, warm_up_seconds=settings.warm_up_seconds)


def _in_turns(context: Context, measured: list[_Measured], connections: int) -> list[Row]:
    """A row for each server, from as many rounds in which each has its turn."""
    rates: dict[tuple[str, str], list[float]] = {}
    p99s: dict[str, list[float]] = {}
    for _ in range(context.settings.rounds):
        for one in measured:
            for work, measure in (("send", one.send), ("cycle", one.cycle)):
                steps, seconds = measure(connections)
                total = merged(work, steps)
                if total.errors:
                    raise ServerError(f"{one.name} answers with errors: {dict(total.errors)}")
                rates.setdefault((one.name, work), []).append(total.latency.count / seconds)
                if work == "send":
                    p99s.setdefault(one.name, []).append(total.latency.percentile_ns(99) / 1e6)
    return [
        {
            "connections": connections,
            "server": one.name,
            "send_per_second": round(statistics.median(rates[one.name, "send"]), 1),
            "send_p99_ms": round(statistics.median(p99s[one.name]), 2),
            "cycle_requests_per_second": round(statistics.median(rates[one.name, "cycle"]), 1),
            "durability": one.durability,
            "settled_by": one.settled_by,
        }
        for one in measured
    ]
