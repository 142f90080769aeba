"""The metrics of embedded brokers for prometheus-client: `REGISTRY.register(BrokerCollector(broker))`.

Needs the extra `metrics` (docs/telemetry.md). The families are those of a server's /metrics, from the same
declarations, without those of what only a server has.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import repeat

from forq_trio.model.extras import needing
from forq_trio.model.limits import SECOND_MS
from forq_trio.telemetry.families import Family
from forq_trio.telemetry.histogram import Histogram
from forq_trio.telemetry.metrics_text import bucket_bounds, declaration

with needing("embed", "forq_trio.embedded.metrics"):
    from forq_trio.broker.broker import Broker
    from forq_trio.broker.metrics import BrokerMetrics
    from forq_trio.broker.of_thread import OfThread, inner_of

with needing("metrics", "forq_trio.embedded.metrics"):
    from prometheus_client.core import Exemplar, Metric
    from prometheus_client.registry import Collector

_LABEL = re.compile(r'\b(\w+)="([^"]*)"')


class BrokerCollector(Collector):
    """The series of an embedded broker; or of several, whose names are in the label `broker`.

    A registry takes one collector of brokers (ValueError for a second one). It may be collected in any thread; that
    waits until trio's thread has a moment. A broker that is closed has no series. Raises ValueError for the broker of a
    server.
    """

    def __init__(self, brokers: "Broker | OfThread | Mapping[str, Broker | OfThread]") -> None:
        named = brokers if isinstance(brokers, Mapping) else {"": brokers}
        self._metrics = {name: _metrics_of(broker) for name, broker in named.items()}

    def describe(self) -> Iterator[Metric]:
        """What a registry takes the names from."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """All families as of now."""
        found: dict[str, Metric] = {}
        for broker, metrics in self._metrics.items():
            families = metrics.read()
            names = {family.name for family in families}
            for family in families:
                if family.name not in found:
                    name, kind = declaration(family, names)
                    found[family.name] = Metric(name, family.meaning, kind)
                _add_series(found[family.name], family, {"broker": broker} if broker else {})
        return iter(found.values())


def _metrics_of(broker: "Broker | OfThread") -> BrokerMetrics:
    metrics: BrokerMetrics | None = inner_of(broker).metrics
    if metrics is None:
        raise ValueError("this broker belongs to a server, which has its metrics at /metrics")
    return metrics


def _add_series(metric: Metric, family: Family, more: dict[str, str]) -> None:
    """Add the series of a family. more: labels that all of them get."""
    for labels, value in family.series:
        metric.add_sample(family.name, more | dict(_LABEL.findall(labels)), float(value))
    for labels, histogram in family.histograms:
        _add_histogram(metric, family, histogram, more | dict(_LABEL.findall(labels)))


def _add_histogram(metric: Metric, family: Family, histogram: Histogram, labels: dict[str, str]) -> None:
    name, divisor = family.name, family.divisor
    bounds, counts = bucket_bounds(histogram, divisor, openmetrics=True), histogram.cumulative()
    for bound, count, noted in zip(bounds, counts, histogram.exemplars or repeat(None), strict=False):
        exemplar = noted and Exemplar(
            {"trace_id": noted.trace_id}, noted.value / divisor, noted.at_ms / SECOND_MS
        )
        metric.add_sample(f"{name}_bucket", labels | {"le": bound}, count, exemplar=exemplar)
    metric.add_sample(f"{name}_sum", labels, histogram.sum / divisor)
    metric.add_sample(f"{name}_count", labels, counts[-1])
