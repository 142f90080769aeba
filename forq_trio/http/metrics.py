"""`GET /metrics` (contract F11) in Prometheus' text format.

The queue's own series are written here, straight from the tally: with 1,000 queues there are thousands of them,
and a general-purpose encoder takes longer than a scrape may hold up the event loop. Queue names need no escaping
(they are letters, digits, dots, dashes and underscores). The series about the process come from prometheus_client.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest

from forq_trio.http.message import Request, Response
from forq_trio.http.router import Answer, Gate, Operation, Route
from forq_trio.tally import Series, Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counter(msgspec.Struct, frozen=True):
    """A counter of F11: its name, the kind of event it counts, its labels and what it means."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


_BY_QUEUE = ("queue_name", "queue_type")
COUNTERS = (
    Counter("forq_messages_produced_total", "produced", _BY_QUEUE, "Messages stored for producers."),
    Counter("forq_messages_consumed_total", "consumed", _BY_QUEUE, "Messages handed to consumers."),
    Counter("forq_messages_acked_total", "acked", _BY_QUEUE, "Messages acknowledged by consumers."),
    Counter("forq_messages_nacked_total", "nacked", _BY_QUEUE, "Messages given back after a failed attempt."),
    Counter(
        "forq_messages_requeued_total",
        "requeued",
        ("queue_name",),
        "Messages moved from a dead-letter queue back to its queue by an administrator.",
    ),
    Counter(
        "forq_messages_moved_to_dlq_total",
        "moved_to_dlq",
        ("queue_name", "reason"),
        "Messages moved to a dead-letter queue.",
    ),
    Counter(
        "forq_messages_stale_recovered_total",
        "stale_recovered",
        ("queue_name",),
        "Messages whose consumer let the lease run out, made ready again.",
    ),
    Counter(
        "forq_messages_cleanup_total", "cleaned_up", ("reason",), "Messages deleted from dead-letter queues."
    ),
)
KINDS_NOT_EXPOSED = frozenset({"released"})
DEPTH = "forq_queue_depth"
DEPTH_LABELS = _BY_QUEUE
DEPTH_MEANING = "Messages a queue holds, in whatever state, refreshed every 30 seconds."


class Metrics:
    """Renders the tally and the process's own series; holds no counters itself."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._labels: dict[Series, str] = {}
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)

    def render(self) -> bytes:
        """The whole exposition."""
        text = "".join((*self._counter_lines(), *self._depth_lines()))
        return text.encode() + generate_latest(self._process)

    def _counter_lines(self) -> Iterator[str]:
        by_kind: dict[str, list[Series]] = defaultdict(list)
        for series in self._tally.series():
            by_kind[series.kind].append(series)
        for counter in COUNTERS:
            yield _heading(counter.name, "counter", counter.meaning)
            sums: dict[str, int] = {}
            for series in by_kind[counter.kind]:
                labels = self._labels.get(series)
                if labels is None:
                    labels = self._labels[series] = _labels(counter.labels, series)
                sums[labels] = sums.get(labels, 0) + series.count
            for labels, count in sums.items():
                yield f"{counter.name}{{{labels}}} {count}\n"

    def _depth_lines(self) -> Iterator[str]:
        yield _heading(DEPTH, "gauge", DEPTH_MEANING)
        for (queue, is_dlq), depth in self._tally.depths.items():
            yield f'{DEPTH}{{queue_name="{queue}",queue_type="{_queue_type(is_dlq)}"}} {depth}\n'

    async def scrape(self, request: Request) -> Response:
        """Answer a scrape; does not wait for anything."""
        return Response(200, self.render(), CONTENT_TYPE.encode())

    def routes(self, gate: Gate) -> list[Route]:
        """The metrics' only route, behind `gate`."""
        operation = Operation(
            name="metrics",
            tag="Operation",
            summary="Counters and gauges for Prometheus",
            description="Served only with FORQ_METRICS_ENABLED=true. The key is FORQ_METRICS_AUTH_SECRET.",
            answers=(Answer(200, "The series, in Prometheus' text format.", str, CONTENT_TYPE),),
        )
        return [Route("GET", "/metrics", self.scrape, operation, gate)]


def _heading(name: str, kind: str, meaning: str) -> str:
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"


def _queue_type(is_dlq: bool) -> str:
    return "dlq" if is_dlq else "regular"


def _labels(names: tuple[str, ...], series: Series) -> str:
    if names == _BY_QUEUE:
        return f'queue_name="{series.queue}",queue_type="{_queue_type(series.is_dlq)}"'
    values = {"queue_name": series.queue, "reason": series.reason}
    return ",".join(f'{name}="{values[name]}"' for name in names)
