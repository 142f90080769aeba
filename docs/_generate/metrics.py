"""The series of /metrics, and the causes of rejections."""

from collections.abc import Iterable, Iterator

from docs._generate.markdown import code, page, table, with_code
from forq_trio.telemetry.families import Family
from forq_trio.telemetry.rejections import Cause

SOURCE = "forq_trio/telemetry and the owners of each series"
LAST_OF_FORQ = "forq_queue_depth"
"""A scrape begins with the series that Forq has, too, of which this is the last."""

TOPICS = {
    "Queues and messages": (
        "forq_queue_",
        "forq_message",
        "forq_schedule_",
        "forq_publications_",
        "forq_sent_",
        "forq_outbox_",
    ),
    "Workers, processes and consumers": ("forq_worker", "forq_process", "forq_consumer_"),
    "Database and disk": (
        "forq_backup_",
        "forq_checkpoint_",
        "forq_commit_",
        "forq_database_",
        "forq_events_",
        "forq_file_",
        "forq_gate_",
        "forq_history_",
        "forq_log_",
        "forq_staged_",
    ),
    "Server": ("forq_",),
}
"""By heading how the names of its series begin; the first that fits counts."""


def pages() -> Iterator[tuple[str, str]]:
    from support.exposition import all_families

    yield "metrics.md", page("Series", SOURCE, *_blocks(all_families()))


def _blocks(families: list[Family]) -> Iterator[str]:
    yield (
        "Every series of `GET /metrics`, in the order of a scrape within each table. "
        "[Metrics](../metrics.md) explains the labels, and what to watch."
    )
    end = [family.name for family in families].index(LAST_OF_FORQ) + 1
    yield "## Series of Forq"
    yield _table(families[:end])
    ours: dict[str, list[Family]] = {topic: [] for topic in TOPICS}
    for family in families[end:]:
        topic = next(topic for topic, starts in TOPICS.items() if family.name.startswith(starts))
        ours[topic].append(family)
    for topic, found in ours.items():
        yield f"## {topic}"
        yield _table(found)
    yield "## Causes of rejections"
    yield "The label `cause` of `forq_rejections_total` is one of these."
    yield table(["cause", "when"], [[code(cause.value), cause.doc] for cause in Cause])


def _table(families: Iterable[Family]) -> str:
    rows = [
        [code(each.name), each.type, ", ".join(map(code, each.labels)), with_code(each.meaning)]
        for each in families
    ]
    return table(["name", "type", "labels", "meaning"], rows)
