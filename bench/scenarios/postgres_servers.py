"""Two servers on one PostgreSQL database beside one: what a second machine in front of the database brings.

Both servers run all the time; the connections go to one of them, or to both in turn. All of them share one queue.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from bench.load.generator import Load, Series
from bench.scenarios.closed import cycling
from bench.scenarios.context import Context, Row, figures, merged, spread
from bench.scenarios.postgres import database_beside, postgres_url, promise
from bench.targets.servers import Server, forq_server_on

SERVERS = 2


def postgres_servers(context: Context) -> list[Row]:
    """Cycles of send, receive, ack over HTTP on one and on two servers that share a PostgreSQL database, in rounds."""
    url = postgres_url(context)
    if url is None:
        return []
    rows = []
    with ExitStack() as stack:
        database = stack.enter_context(database_beside(url))
        servers = [stack.enter_context(forq_server_on(database, context.durability)) for _ in range(SERVERS)]
        for connections in context.settings.connections:
            rates: dict[int, list[float]] = {}
            figured = {}
            for _ in range(context.settings.rounds):
                for used in range(1, SERVERS + 1):
                    series, seconds = _measure(context, servers[:used], connections)
                    rates.setdefault(used, []).append(series.latency.count / seconds)
                    figured[used] = figures(series, seconds)
            for used, row in figured.items():
                ratio = spread([one / alone for one, alone in zip(rates[used], rates[1], strict=True)])
                of_one = f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})"
                row["per_second"] = round(spread(rates[used])["median"], 1)
                rows.append(
                    {
                        "servers": used,
                        "connections": connections,
                        "of_one": of_one,
                        **row,
                        **promise(database),
                    }
                )
    return rows


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
