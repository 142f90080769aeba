"""How much longer than usual do the slowest requests take? Sends and cycles in rounds, on a file that has grown.

What may delay a request is counted beside it: commits that waited long for the disk, checkpoints of the log, pauses of
the writer for them, and how much is written for each commit, to the log and to the database together. A server that
shows no such metrics is measured by its latencies alone.
"""

from collections import Counter
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from bench.load.generator import Series
from bench.scenarios.backlog import send_all
from bench.scenarios.closed import measure_cycle, measure_produce
from bench.scenarios.context import Context, Row, figures, merged
from bench.scenarios.idle import usage
from bench.targets.servers import Server

STORED_BYTES = 1_000
SLOW_COMMIT_SECONDS = 0.01  # a bound of the histogram of commits
WORKS = ("send", "cycle")
COUNTED = {
    "forq_commit_duration_seconds_count": "commits",
    "forq_checkpoint_duration_seconds_count": "checkpoints",
    "forq_checkpoint_duration_seconds_sum": "checkpoint_seconds",
    "forq_checkpoint_pause_seconds_count": "pauses",
    "forq_checkpoint_pause_seconds_sum": "pause_seconds",
}


class _Measured:
    """All rounds of one work over one number of connections."""

    def __init__(self) -> None:
        self.rounds: list[Series] = []
        self.seconds = 0.0
        self.counts: Counter[str] = Counter()

    def row(self, connections: int, work: str) -> Row:
        all_rounds = merged(work, self.rounds)
        row = {"connections": connections, "work": work, **figures(all_rounds, self.seconds)}
        row["p99_to_p50"] = _p99_to_p50(all_rounds)
        row["worst_round_p99_to_p50"] = max(map(_p99_to_p50, self.rounds))
        if commits := self.counts["commits"]:
            row |= {
                "commits": commits,
                "commits_over_10_ms": commits - self.counts["quick_commits"],
                "checkpoints": self.counts["checkpoints"],
                "checkpoints_ms": round(self.counts["checkpoint_seconds"] * 1_000, 1),
                "pauses": self.counts["pauses"],
                "pauses_ms": round(self.counts["pause_seconds"] * 1_000, 1),
                "kib_written_a_commit": round(self.counts["written_bytes"] / 1_024 / commits, 1),
            }
        return row


def tail(context: Context) -> list[Row]:
    """Sends and cycles on a file that has grown: p99 against p50, slow commits, checkpoints, pauses."""
    settings = context.settings
    measured = {(count, work): _Measured() for count in settings.connections for work in WORKS}
    with context.server() as server:
        larger = replace(context, settings=replace(settings, body_bytes=STORED_BYTES))
        send_all(larger, server, context.queue("stored"), settings.tail_messages)
        for _ in range(settings.rounds):
            for (connections, work), one in measured.items():
                _measure(context, server, connections, work, one)
    return [one.row(connections, work) for (connections, work), one in measured.items()]


def _measure(context: Context, server: Server, connections: int, work: str, into: _Measured) -> None:
    before = _counts(server)
    if work == "send":
        series, seconds = measure_produce(context, server, connections)
    else:
        steps, seconds = measure_cycle(context, server, connections)
        series = merged(work, steps)
    into.rounds.append(series)
    into.seconds += seconds
    into.counts.update(_counts(server))
    into.counts.subtract(before)


def _counts(server: Server) -> Counter[str]:
    """What the server has counted since its start, and what its process has written; nothing where neither is shown."""
    counts: Counter[str] = Counter()
    if server.metrics_key is None:
        return counts
    page = server.api.exchange(server.api.get("/metrics", server.metrics_key)).body.decode()
    for family in text_string_to_metric_families(page):
        for name, labels, value, *_ in family.samples:
            if name in COUNTED:
                counts[COUNTED[name]] += value
            elif name == "forq_commit_duration_seconds_bucket" and float(labels["le"]) == SLOW_COMMIT_SECONDS:
                counts["quick_commits"] += value
    if server.pid is not None:
        counts["written_bytes"] += usage(server.pid).written_bytes
    return counts


def _p99_to_p50(series: Series) -> float:
    return round(series.latency.percentile_ns(99) / max(series.latency.percentile_ns(50), 1), 1)
