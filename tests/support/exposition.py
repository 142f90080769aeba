"""An exposition as Prometheus' own parser reads it."""

from collections.abc import Iterator

import trio
from prometheus_client.parser import text_string_to_metric_families

from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.storage.engine import EngineSettings
from forq_trio.system import System, open_system
from forq_trio.telemetry.budgets import budget_families
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import Family, ReadFamilies
from forq_trio.ui.families import ui_families
from oracle.engine import MemoryEngine
from support.actors import on_the_loop

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


def of_counters(counters: Counters) -> list[ReadFamilies]:
    """Who has the families of what is counted."""
    return [
        counters.queues.families,
        counters.count_families,
        counters.send_families,
        counters.runs.families,
        counters.families,
    ]


def own_samples(counters: Counters, *others: ReadFamilies) -> Samples:
    """What they and the others are rendered to, without the series about the process."""
    return samples_shown([*of_counters(counters), *others])


def samples_shown(owners: list[ReadFamilies]) -> Samples:
    """What the families of these are rendered to, without the series about the process."""
    samples = samples_of(MetricsPage(owners).render())
    return {key: value for key, value in samples.items() if key[0].startswith("forq_")}


def owners_without_server(system: System) -> list[ReadFamilies]:
    """Whose families a server shows on this system, without what it serves."""

    def served() -> Iterator[Family]:
        yield from ui_families(None)
        yield from budget_families(system.writer.budgets)

    return system.owners(served)


def all_families() -> list[Family]:
    """Those that a server shows, in their order."""

    async def read() -> list[Family]:
        async with open_system(MemoryEngine(EngineSettings()), policy=on_the_loop()) as system:
            return [family for families in owners_without_server(system) for family in families()]

    return trio.run(read)


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
