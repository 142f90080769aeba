"""What a change costs: the server of this checkout beside that of another one, both on SQLite.

Processor time of the server for the same number of cycles: other programs on the machine change it less than the time
that passes. Both servers run all the time, and are measured in turns.
"""

import os
from pathlib import Path

from bench.load.generator import Load, Series
from bench.scenarios.backlog import STEPS, cycles
from bench.scenarios.context import Context, Row, merged, spread
from bench.scenarios.pipelines import cpu_seconds
from bench.targets.servers import Server, ServerError, forq_server

CHECKOUT = "FORQ_BENCH_CHECKOUT"
CONNECTIONS = (1, 10)
SECONDS_MAX = 600.0


def checkouts(context: Context) -> list[Row]:
    """Processor time of a cycle in microseconds beside the server of another checkout, in interleaved rounds."""
    other = os.environ.get(CHECKOUT)
    if other is None:
        context.say(f"SKIPPED: {CHECKOUT} names no checkout")
        return []
    rows = []
    data_dir, durability = context.data_dir, context.durability
    with (
        forq_server(data_dir, durability) as this,
        forq_server(data_dir, durability, checkout=Path(other)) as that,
    ):
        for connections in CONNECTIONS:
            taken: dict[str, list[float]] = {"this": [], "other": []}
            for number in range(context.settings.rounds):
                for name, server in (("this", this), ("other", that))[:: 1 if number % 2 else -1]:
                    taken[name].append(_cycle_us(context, server, connections))
            ratios = [ours / theirs for ours, theirs in zip(*taken.values(), strict=True)]
            medians = {f"{name}_us": round(spread(each)["median"]) for name, each in taken.items()}
            rows.append({"connections": connections, **medians, **spread(ratios)})
    return rows


def _cycle_us(context: Context, server: Server, connections: int) -> float:
    """Processor time of the server for a cycle, of so many."""
    queue, steps = context.queue("checkouts"), {name: Series(name) for name in STEPS}
    count = context.settings.checkout_cycles // connections
    with Load(server.api.address) as load:
        load.add_all(cycles(server.api, queue, context.content, steps, count) for _ in range(connections))
        before = cpu_seconds(server)
        load.run(SECONDS_MAX)
        seconds = cpu_seconds(server) - before
    errors = merged("all requests", list(steps.values())).errors
    if errors:
        raise ServerError(f"a cycle was answered {dict(errors)}")
    return seconds * 1e6 / (count * connections)
