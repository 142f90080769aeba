"""Prometheus metrics of a worker: `measure(app)`. Needs the extra `metrics` (docs/worker-deployment.md)."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from forq_trio.model.extras import needing
from forq_trio.model.traces import sampled_trace
from forq_trio.worker.jobs import Job

with needing("metrics", "forq_trio.worker.metrics"):
    from prometheus_client import REGISTRY, CollectorRegistry, Histogram
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from forq_trio.worker.app import Worker
    from forq_trio.worker.handlers import CallNext

OUTCOMES = ("handled", "failed", "discarded", "dead", "lost")


def measure(worker: "Worker", registry: CollectorRegistry = REGISTRY) -> None:
    """Add the series of a worker to a registry. Raises ValueError if those of another worker are in it.

    The buckets of `forq_handler_seconds` have the traces of messages as exemplars, which OpenMetrics shows.
    """
    seconds = Histogram(
        "forq_handler_seconds",
        "How long calls of handlers take.",
        ["queue_name"],
        buckets=(0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1_800),
        registry=registry,
    )
    registry.register(_OfStats(worker))

    @worker.middleware
    async def timed(job: Job, call_next: "CallNext") -> object:
        started = time.perf_counter()
        try:
            return await call_next()
        finally:
            trace = sampled_trace(job.attributes)
            exemplar = None if trace is None else {"trace_id": trace}
            seconds.labels(job.queue).observe(time.perf_counter() - started, exemplar)


class _OfStats(Collector):
    """Series of `Worker.stats`, and of what the worker relays."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker

    def describe(self) -> list[Metric]:
        """Return no names, so that the registry does not collect in order to learn them."""
        return []

    def collect(self) -> Iterator[Metric]:
        ended = CounterMetricFamily(
            "forq_handler_messages", "Messages by what became of them.", labels=["queue_name", "outcome"]
        )
        running = GaugeMetricFamily("forq_handler_running", "Messages in handlers.", labels=["queue_name"])
        slots = GaugeMetricFamily(
            "forq_handler_slots", "Messages that may be in handlers.", labels=["queue_name"]
        )
        for queue, stats in tuple(self._worker.stats.items()):
            for outcome in OUTCOMES:
                ended.add_metric([queue, outcome], getattr(stats, outcome))
            running.add_metric([queue], stats.running)
            slots.add_metric([queue], stats.slots)
        relayed = self._worker.relayed
        return iter((ended, running, slots, *(() if relayed is None else relayed.metrics(GaugeMetricFamily))))
