"""What open pages of the admin UI cost the API: sends and cycles with and without them, in interleaved rounds."""

from contextlib import nullcontext
from statistics import median

from bench.load.dashboards import dashboards as open_dashboards
from bench.scenarios.closed import measure_cycle, measure_produce
from bench.scenarios.context import Context, Row, merged
from bench.scenarios.idle import usage
from bench.targets.servers import Server

WORKS = ("send", "cycle")


def dashboards(context: Context) -> list[Row]:
    """Sends and cycles beside 0, 1 and many open pages of the admin UI."""
    settings = context.settings
    counts = (0, 1, settings.dashboards)
    rounds: dict[tuple[str, int], list[Row]] = {(work, count): [] for work in WORKS for count in counts}
    with context.server() as server:
        assert server.ui is not None
        for queue in range(settings.dashboard_queues):
            server.api.exchange(server.api.send(f"dashboards-{queue}", context.content))
        for _ in range(settings.rounds):
            for (work, count), rows in rounds.items():
                rows.append(_round(context, server, work, count))
    return [_summary(work, count, rows, rounds[work, 0]) for (work, count), rows in rounds.items()]


def _round(context: Context, server: Server, work: str, count: int) -> Row:
    pages = open_dashboards(f"http://{server.ui}", server.api.key, count) if count else nullcontext()
    with pages:
        before = usage(server.pid)
        connections = max(context.settings.connections[:3])
        if work == "send":
            series, seconds = measure_produce(context, server, connections)
        else:
            steps, seconds = measure_cycle(context, server, connections)
            series = merged(work, steps)
        after = usage(server.pid)
    return {
        "requests": series.latency.count / seconds,
        "p50_ms": series.latency.percentile_ns(50) / 1e6,
        "p99_ms": series.latency.percentile_ns(99) / 1e6,
        "cpu_share": (after.cpu_seconds - before.cpu_seconds) / seconds,
        "errors": sum(series.errors.values()),
    }


def _summary(work: str, count: int, rows: list[Row], without: list[Row]) -> Row:
    """Medians; the ratio is of pairs of the same round."""
    ratios = [row["requests"] / other["requests"] for row, other in zip(rows, without, strict=True)]
    return {
        "work": work,
        "dashboards": count,
        "requests_per_second": round(median(row["requests"] for row in rows)),
        "ratio_to_none": round(median(ratios), 3),
        "p50_ms": round(median(row["p50_ms"] for row in rows), 2),
        "p99_ms": round(median(row["p99_ms"] for row in rows), 2),
        "errors": sum(row["errors"] for row in rows),
    }
