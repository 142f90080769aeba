"""Servers on a PostgreSQL database: one beside a server on SQLite, one beside two, and messages from one to another.

All of them run all the time; the connections go to those that are measured, in turns. All of them share one queue.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bench.load.generator import Load, Series
from bench.scenarios.closed import cycling, measure_cycle, measure_produce
from bench.scenarios.context import Context, Row, figures, merged, spread
from bench.scenarios.handoff import wake_up
from bench.scenarios.postgres import database_beside, postgres_url, promise
from bench.targets.servers import Server, forq_server_on

SERVERS = 2


@contextmanager
def _servers(context: Context, url: str, count: int) -> Iterator[tuple[list[Server], Row]]:
    """So many servers on a new database, and what a commit there survives."""
    with ExitStack() as stack:
        database = stack.enter_context(database_beside(url))
        servers = [stack.enter_context(forq_server_on(database, context.durability)) for _ in range(count)]
        yield servers, promise(database)


def postgres_ratio(context: Context) -> list[Row]:
    """Send and cycle over HTTP on PostgreSQL as a part of what SQLite does, in interleaved rounds; medians."""
    url = postgres_url(context)
    if url is None:
        return []
    rows = []
    with _servers(context, url, 1) as ((postgres,), promised), context.server() as sqlite:
        engines = {"sqlite": sqlite, "postgres": postgres}
        for connections in context.settings.connections:
            rates: dict[str, dict[str, list[float]]] = {"send": {}, "cycle": {}}
            for _ in range(context.settings.rounds):
                for engine, server in engines.items():
                    series, seconds = measure_produce(context, server, connections)
                    rates["send"].setdefault(engine, []).append(series.latency.count / seconds)
                    steps, seconds = measure_cycle(context, server, connections)
                    answers = sum(step.latency.count for step in steps)
                    rates["cycle"].setdefault(engine, []).append(answers / seconds)
            for work, by_engine in rates.items():
                medians = {
                    f"{engine}_per_second": round(spread(by_engine[engine])["median"], 1)
                    for engine in engines
                }
                of_sqlite = _parts(by_engine["postgres"], by_engine["sqlite"])
                rows.append(
                    {"connections": connections, "work": work, **medians, "of_sqlite": of_sqlite, **promised}
                )
    return rows


def postgres_wake_up(context: Context) -> list[Row]:
    """From a send to a long poll that waits, on the same server and on another one of the database."""
    url = postgres_url(context)
    if url is None:
        return []
    with _servers(context, url, SERVERS) as (servers, promised):
        return [
            {"servers": used, **wake_up(context, servers[0], servers[used - 1]), **promised}
            for used in range(1, SERVERS + 1)
        ]


def postgres_servers(context: Context) -> list[Row]:
    """Cycles of send, receive, ack over HTTP on one and on two servers that share a PostgreSQL database, in rounds."""
    url = postgres_url(context)
    if url is None:
        return []
    rows = []
    with _servers(context, url, SERVERS) as (servers, promised):
        for connections in context.settings.connections:
            rates: dict[int, list[float]] = {}
            figured = {}
            for _ in range(context.settings.rounds):
                for used in range(1, SERVERS + 1):
                    series, seconds = _measure(context, servers[:used], connections)
                    rates.setdefault(used, []).append(series.latency.count / seconds)
                    figured[used] = figures(series, seconds)
            for used, row in figured.items():
                row["per_second"] = round(spread(rates[used])["median"], 1)
                of_one = _parts(rates[used], rates[1])
                rows.append(
                    {"servers": used, "connections": connections, "of_one": of_one, **row, **promised}
                )
    return rows


def _parts(rates: Sequence[float], others: Sequence[float]) -> str:
    """The ratios of rates to others, round by round: the median, the least and the greatest."""
    parts = spread([rate / other for rate, other in zip(rates, others, strict=True)])
    return f"{parts['median']:.2f} ({parts['min']:.2f}-{parts['max']:.2f})"


def _measure(context: Context, servers: Sequence[Server], connections: int) -> tuple[Series, float]:
    """All requests of a round, over connections that are spread over these servers."""
    settings = context.settings
    steps, queue = [Series("send"), Series("receive"), Series("ack")], context.queue("servers")
    with Load(servers[0].api.address) as load:
        for number in range(connections):
            api = servers[number % len(servers)].api
            load.add(cycling(api, queue, context.content, *steps), api.address)
        seconds = load.run(
            settings.seconds, warm_up_seconds=settings.warm_up_seconds, answers_max=settings.answers_max
        )
    return merged("all requests", steps), seconds
