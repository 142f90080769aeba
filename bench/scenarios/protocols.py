"""HTTP/2 against HTTP/1.1: requests a second, the same server, messages of 1 KiB, in interleaved rounds."""

from collections.abc import Iterator
from statistics import median

from bench.load.api import Api
from bench.load.generator import Conversation, Load, Series
from bench.load.http2 import Http2Api, Http2Load
from bench.scenarios.context import ENVELOPE_BYTES, Context, Row, merged, spread
from bench.scenarios.handoff import consuming, flooding
from bench.targets.servers import Server

PRODUCERS = CONSUMERS = 10
CONTENT = "x" * (1024 - ENVELOPE_BYTES)
HTTP_1 = "HTTP/1.1"


def protocols(context: Context) -> list[Row]:
    """Ten producers and ten consumers flat out over HTTP/1.1, over one connection of HTTP/2, and over twenty."""
    rounds: dict[str, list[Row]] = {}
    with context.server() as server:
        for _ in range(context.settings.rounds):
            for name, connections in (
                (HTTP_1, 0),
                ("HTTP/2, 1 connection", 1),
                ("HTTP/2, 20 connections", 20),
            ):
                rounds.setdefault(name, []).append(_round(context, server, connections))
    return [_summary(name, rows, rounds[HTTP_1]) for name, rows in rounds.items()]


def _round(context: Context, server: Server, connections: int) -> Row:
    """One measurement; over HTTP/1.1 if `connections` is 0."""
    settings = context.settings
    sent, received, acked, underway = (Series(name) for name in ("send", "receive", "ack", "handoff"))
    api: Api = Http2Api(server.api.url, server.api.key) if connections else server.api
    load = Http2Load(api, connections) if isinstance(api, Http2Api) else Load(api.address)
    with load:
        for conversation in _conversations(context, load, api, sent, received, acked, underway):
            load.add(conversation)
        seconds = load.run(
            settings.seconds, warm_up_seconds=settings.warm_up_seconds, answers_max=settings.answers_max
        )
    total = merged("all", [sent, received, acked])
    return {
        "requests": total.latency.count / seconds,
        "p50_ms": sent.latency.percentile_ns(50) / 1e6,
        "p99_ms": sent.latency.percentile_ns(99) / 1e6,
        "errors": dict(total.errors),
    }


def _conversations(
    context: Context,
    load: Load | Http2Load,
    api: Api,
    sent: Series,
    received: Series,
    acked: Series,
    underway: Series,
) -> Iterator[Conversation]:
    queue = context.queue("protocols")
    for _ in range(CONSUMERS):
        yield consuming(load, api, queue, received, acked, underway)
    for _ in range(PRODUCERS):
        yield flooding(api, queue, CONTENT, sent)


def _summary(name: str, rows: list[Row], first: list[Row]) -> Row:
    parts = spread([row["requests"] / other["requests"] for row, other in zip(rows, first, strict=True)])
    return {
        "protocol": name,
        "requests_per_second": round(median(row["requests"] for row in rows), 1),
        "ratio": parts["median"],
        "ratio_range": f"{parts['min']:.2f}-{parts['max']:.2f}",
        "send_p50_ms": round(median(row["p50_ms"] for row in rows), 3),
        "send_p99_ms": round(median(row["p99_ms"] for row in rows), 3),
        "errors": {status: count for row in rows for status, count in row["errors"].items()},
    }
