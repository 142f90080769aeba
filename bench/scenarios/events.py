"""What lifecycle events cost, and how fast they are read: the same cycles with and without, in interleaved rounds."""

from collections.abc import Mapping
from contextlib import ExitStack
from statistics import median
from time import perf_counter

import httpx

from bench.scenarios.closed import measure_cycle
from bench.scenarios.context import Context, Row, spread
from bench.targets.servers import KEY, Server, forq_server
from forq_trio.model.error_answers import LAST_HEADER, NEXT_HEADER

SETTINGS: Mapping[str, Mapping[str, str]] = {"off": {}, "on": {"FORQ_EVENTS": "on"}}


def events(context: Context) -> list[Row]:
    """Send, receive, ack with lifecycle events off and on, in interleaved rounds; then one client reads them all."""
    settings = context.settings
    rows: list[Row] = []
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(forq_server(context.data_dir, context.durability, more))
            for name, more in SETTINGS.items()
        }
        for connections in settings.connections:
            rates: dict[str, list[float]] = {name: [] for name in servers}
            for _ in range(settings.rounds):
                for name, server in servers.items():
                    steps, seconds = measure_cycle(context, server, connections)
                    rates[name].append(sum(step.latency.count for step in steps) / seconds)
            cost = 1 - median(rates["on"]) / median(rates["off"])
            for name, values in rates.items():
                percent = round(100 * cost, 1) if name == "on" else 0.0
                rows.append(
                    {"connections": connections, "events": name, **spread(values), "cost_percent": percent}
                )
        rows.append(_reading(servers["on"]))
    return rows


def _reading(server: Server) -> Row:
    """One client reads all events, in pages of 10,000, and does nothing with them."""
    read = after = 0
    with httpx.Client(base_url=server.api.url, headers={"X-API-Key": KEY}) as client:
        started = perf_counter()
        while True:
            page = client.get("/api/v1/events", params={"after": after})
            page.raise_for_status()
            read += page.content.count(b"\n")
            after = int(page.headers[NEXT_HEADER])
            if after >= int(page.headers[LAST_HEADER]):
                break
        seconds = perf_counter() - started
    return {"connections": 1, "events": "read", "median": round(read / seconds, 1), "count": read}
