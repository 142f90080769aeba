"""An exposition as Prometheus' own parser reads it."""

from prometheus_client.parser import text_string_to_metric_families

from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.gauges import Gauges

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples_of(exposition: bytes) -> Samples:
    """Value by name and labels; a series that comes twice is an error."""
    samples: Samples = {}
    for family in text_string_to_metric_families(exposition.decode()):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in samples, f"{key} comes twice"
            samples[key] = sample.value
    return samples


def own_samples(counters: Counters, gauges: Gauges | None = None) -> Samples:
    """What they are rendered to, without the series about the process."""
    samples = samples_of(MetricsPage(counters, gauges or Gauges()).render())
    return {key: value for key, value in samples.items() if key[0].startswith("forq_")}


def of_queue(queue: str, **more: str) -> tuple[tuple[str, str], ...]:
    """The labels of a queue's series."""
    queue_type = "dlq" if queue.endswith("-dlq") else "regular"
    return tuple(sorted({"queue_name": queue, "queue_type": queue_type, **more}.items()))


def buckets(samples: Samples, name: str, labels: tuple[tuple[str, str], ...] = ()) -> dict[float, float]:
    """The cumulative buckets of one histogram by upper bound, in the order of the exposition."""
    found = {}
    for (sample, sample_labels), value in samples.items():
        rest = tuple(label for label in sample_labels if label[0] != "le")
        if sample == f"{name}_bucket" and rest == labels:
            found[float(dict(sample_labels)["le"])] = value
    return found
