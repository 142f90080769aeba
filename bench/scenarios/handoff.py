"""From a producer to a waiting consumer: how long a message takes when a consumer already long-polls for it.

The content starts with the time at which the message was meant to be sent. The consumer is in the same process, so both
use the same clock.
"""

from time import perf_counter_ns

from bench.load.api import Api, decode_message
from bench.load.generator import Conversation, Load, Request, Series
from bench.load.http2 import Http2Load
from bench.scenarios.context import Context, Row, figures, merged
from bench.targets.servers import Server

STAMP_DIGITS = 20
WAKE_UPS_PER_SECOND = 20


class Arrivals:
    """An open loop's timetable: moments `rate` to the second, shared by all producers, from the first one asked for."""

    def __init__(self, rate: float) -> None:
        self._interval_ns = int(1e9 / rate)
        self._next_ns = 0

    def next_ns(self) -> int:
        due_ns = self._next_ns or perf_counter_ns()
        self._next_ns = due_ns + self._interval_ns
        return due_ns


def stamped(due_ns: int, content: str) -> str:
    """`content` with its first characters replaced by a moment."""
    return f"{due_ns:0{STAMP_DIGITS}d}{content[STAMP_DIGITS:]}"


def pacing(api: Api, queue: str, content: str, arrivals: Arrivals, series: Series) -> Conversation:
    """Send a stamped message at each moment of the timetable that no other producer has taken."""
    while True:
        due_ns = arrivals.next_ns()
        yield Request(api.send(queue, stamped(due_ns, content)), series, due_ns)


def flooding(api: Api, queue: str, content: str, series: Series) -> Conversation:
    """Send stamped messages one after the other."""
    while True:
        yield Request(api.send(queue, stamped(perf_counter_ns(), content)), series)


def consuming(
    load: Load | Http2Load, api: Api, queue: str, received: Series, acked: Series, underway: Series
) -> Conversation:
    """Long-poll and ack for ever; `underway` takes the time from the stamp to the answer of the poll."""
    receive = Request(api.receive(queue), received)
    while True:
        response = yield receive
        if response.status != 200:
            continue
        message = decode_message(response.body)
        sent_ns = int(message.content[:STAMP_DIGITS])
        if sent_ns >= load.record_from_ns:
            underway.latency.record(perf_counter_ns() - sent_ns)
        yield Request(api.ack(queue, message), acked)


def _measure(
    context: Context,
    server: Server,
    consumers: int,
    producers: int,
    rate: float | None,
    receiving: Server | None = None,
) -> Row:
    """One measurement. receiving: the server of the consumers; None for that of the producers."""
    polled = (receiving or server).api
    settings, queue = context.settings, context.queue("handoff")
    sent, received, acked, underway = (Series(name) for name in ("send", "receive", "ack", "handoff"))
    arrivals = Arrivals(rate) if rate else None
    with Load(server.api.address) as load:
        for _ in range(consumers):
            load.add(consuming(load, polled, queue, received, acked, underway), polled.address)
        for _ in range(producers):
            if arrivals:
                load.add(pacing(server.api, queue, context.content, arrivals, sent))
            else:
                load.add(flooding(server.api, queue, context.content, sent))
        seconds = load.run(
            settings.handoff_seconds,
            warm_up_seconds=settings.warm_up_seconds,
            answers_max=settings.answers_max,
        )
    row = figures(underway, seconds)
    row["errors"] = dict(merged("all", [sent, received, acked]).errors)
    return {
        "consumers": consumers,
        "producers": producers,
        "load": f"{rate:g}/s" if rate else "flat out",
        "sent_per_second": round(sent.latency.count / seconds, 1),
        "received_per_second": row.pop("per_second"),
        **row,
    }


def one_to_one(context: Context) -> list[Row]:
    """One producer at 100 messages a second, one long-polling consumer: send to received."""
    with context.server() as server:
        return [_measure(context, server, 1, 1, context.settings.producer_rate)]


def wake_up(context: Context, sending: Server, receiving: Server) -> Row:
    """From a send to one server to a consumer that waits at another, or the same: so seldom that it always waits."""
    return _measure(context, sending, 1, 1, WAKE_UPS_PER_SECOND, receiving)


def ten_to_ten(context: Context) -> list[Row]:
    """Ten producers, ten consumers: at 100 messages a second each, then flat out."""
    return _crowd(context, consumers=10, producers=10)


def forty_to_twenty(context: Context) -> list[Row]:
    """Forty consumers, twenty producers: at 100 messages a second each, then flat out."""
    return _crowd(context, consumers=40, producers=20)


def _crowd(context: Context, consumers: int, producers: int) -> list[Row]:
    with context.server() as server:
        return [
            _measure(context, server, consumers, producers, rate)
            for rate in (producers * context.settings.producer_rate, None)
        ]


def paced(context: Context) -> list[Row]:
    """Send at a fixed rate, time counted from when each send was due: what callers see, stalls included."""
    settings = context.settings
    rows: list[Row] = []
    with context.server() as server:
        for rate in settings.paced_rates:
            series, queue, arrivals = Series("send"), context.queue("paced"), Arrivals(rate)
            with Load(server.api.address) as load:
                for _ in range(settings.paced_connections):
                    load.add(pacing(server.api, queue, context.content, arrivals, series))
                seconds = load.run(
                    settings.seconds,
                    warm_up_seconds=settings.warm_up_seconds,
                    answers_max=settings.answers_max,
                )
            rows.append({"rate": rate, "connections": settings.paced_connections, **figures(series, seconds)})
    return rows
