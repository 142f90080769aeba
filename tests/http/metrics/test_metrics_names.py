"""Names, labels and meanings of the series are a promise: docs/reference/metrics.md, compared with the code."""

import re
from pathlib import Path

import pytest

from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.model.budget import Share
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.schedules.types import SavedRun
from forq_trio.model.server.database_state import DatabaseReading, DatabaseState
from forq_trio.storage.engine import EVENT_KINDS, EngineSettings, Event
from forq_trio.system import open_system
from forq_trio.telemetry.counters import STATES, Counters
from forq_trio.telemetry.families import Family
from forq_trio.telemetry.queue_counters import COUNTED, NOT_COUNTED
from forq_trio.telemetry.rejections import Cause
from oracle.engine import MemoryEngine
from support.actors import elapse, on_the_loop
from support.exposition import all_families, of_counters, owners_without_server, samples_shown
from support.workers import part, report

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
GUIDE = REFERENCE.parents[1] / "metrics.md"

FORQ = """\
# HELP forq_messages_produced_total Messages stored for producers.
# TYPE forq_messages_produced_total counter
forq_messages_produced_total{queue_name="q",queue_type="regular"} 7
# HELP forq_messages_consumed_total Messages handed to consumers.
# TYPE forq_messages_consumed_total counter
forq_messages_consumed_total{queue_name="q",queue_type="regular"} 6
# HELP forq_messages_acked_total Messages acknowledged by consumers.
# TYPE forq_messages_acked_total counter
forq_messages_acked_total{queue_name="q-dlq",queue_type="dlq"} 5
# HELP forq_messages_nacked_total Messages given back after a failed attempt.
# TYPE forq_messages_nacked_total counter
forq_messages_nacked_total{queue_name="q",queue_type="regular"} 4
# HELP forq_messages_requeued_total Messages moved from a dead-letter queue back to its queue by an administrator.
# TYPE forq_messages_requeued_total counter
forq_messages_requeued_total{queue_name="q"} 3
# HELP forq_messages_moved_to_dlq_total Messages moved to a dead-letter queue.
# TYPE forq_messages_moved_to_dlq_total counter
forq_messages_moved_to_dlq_total{queue_name="q",reason="failed"} 2
# HELP forq_messages_stale_recovered_total Messages whose consumer let the lease run out, made ready again.
# TYPE forq_messages_stale_recovered_total counter
forq_messages_stale_recovered_total{queue_name="q"} 1
# HELP forq_messages_cleanup_total Messages deleted from dead-letter queues.
# TYPE forq_messages_cleanup_total counter
forq_messages_cleanup_total{reason="expired"} 8
# HELP forq_queue_depth Messages a queue holds, in whatever state, refreshed every 30 seconds.
# TYPE forq_queue_depth gauge
forq_queue_depth{queue_name="q",queue_type="regular"} 15
"""


def table_rows(text: str) -> list[list[str]]:
    """The cells of all table rows that begin with something in backquotes."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def full_tally() -> Counters:
    """Counters that have something of everything."""
    counters = Counters()
    counters.queues.record(
        [
            Event("produced", "q", 7),
            Event("consumed", "q", 6),
            Event("acked", "q-dlq", 5),
            Event("nacked", "q", 4),
            Event("requeued", "q", 3),
            Event("moved_to_dlq", "q", 2, "failed"),
            Event("stale_recovered", "q", 1),
            Event("cleaned_up", "q-dlq", 8, "expired"),
            Event("offered", "q", 9, "updated"),
        ]
    )
    counters.refresh_counts({"q": QueueCounts(1, 2, 3, 4, 5, 600)})
    counters.durations.record({("wait", "q"): [1], ("end_to_end", "q"): [2], ("handling", "q"): [1]})
    counters.commits.record(3, 0.001, 0)
    counters.runs.record(
        [SavedRun(nominal=1, result="missed", runs=4, at=9), SavedRun(nominal=2, result="sent", at=9)]
    )
    assert counters.runs.by_result == {"sent": 1, "skipped": 0, "missed": 4, "refused": 0}
    return counters


@pytest.fixture(scope="module")
def families() -> list[Family]:
    return all_families()


def test_f11_forqs_own_series_are_byte_for_byte_what_they_were() -> None:
    assert MetricsPage(of_counters(full_tally())).render().decode().startswith(FORQ)


async def test_series_have_the_labels_of_their_family(autojump_clock) -> None:
    async with open_system(MemoryEngine(EngineSettings()), policy=on_the_loop(), monitored=True) as system:
        broker = system.broker
        await broker.produce("q", "x")
        await broker.open_consumer("q", "sink")
        broker.known_workers.report(report(1, part("q")))
        await elapse(10)
        system.counters.refresh_counts({"q": QueueCounts(1)})
        system.queue_gauges.dead_letters = {("q", False): 9}
        system.queue_gauges.oldest_seconds = {("q", False): 1.5}
        system.writer.budgets["inbox"].refuse(Share.ALL)
        system.backups.last_made_at = 1_700_000_000_000
        system.database.state = DatabaseState(DatabaseReading(3, 2, 100, 0, 7, None, 8, ()), None)
        of_system = [
            owner for owner in owners_without_server(system) if owner not in of_counters(system.counters)
        ]
        owners = [*of_counters(full_tally()), *of_system]
        exposed: dict[str, set[tuple[str, ...]]] = {}
        for name, labels in samples_shown(owners):
            family = re.sub("_(bucket|sum|count)$", "", name)
            exposed.setdefault(family, set()).add(tuple(label for label, _ in labels if label != "le"))
        declared = {
            family.name: {tuple(sorted(family.labels))} for families in owners for family in families()
        }
    del declared["forq_ui_loop_seconds_total"]  # no UI is served
    del declared["forq_disk_free_bytes"]  # there is no file
    del declared["forq_outbox_waiting"], declared["forq_outbox_waiting_seconds"]  # it relays none
    assert exposed == declared


def test_f11_every_kind_of_event_is_exposed_or_left_out_on_purpose() -> None:
    assert COUNTED.keys() | NOT_COUNTED == set(EVENT_KINDS)


def test_every_series_and_every_cause_is_documented(families: list[Family]) -> None:
    series, causes = REFERENCE.read_text(encoding="utf-8").split("\n## Causes of rejections\n")
    rows = [[*row[:3], row[3].replace("`", "")] for row in table_rows(series)]
    declared = [
        [f"`{family.name}`", family.type, ", ".join(f"`{label}`" for label in family.labels), family.meaning]
        for family in families
    ]
    assert sorted(rows) == sorted(declared)
    forqs = re.findall(r"^# TYPE (\w+)", FORQ, re.MULTILINE)
    tables = [[row[0].strip("`") for row in table_rows(text)] for text in series.split("\n## ")[1:]]
    assert tables[0] == forqs
    order = [family.name for family in families]
    assert [sorted(names, key=order.index) for names in tables] == tables
    assert table_rows(causes) == [[f"`{cause.value}`", cause.doc] for cause in Cause]


def test_every_label_is_explained(families: list[Family]) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    labels = {label for family in families for label in family.labels}
    by_meaning = {"consumer", "whose", "name", "process", "version"}  # the meaning of their series says it
    assert {label for label in labels - by_meaning if f"| `{label}`" not in text} == set()
    assert STATES == ("ready", "delayed", "processing", "held", "failed")
    for state in STATES:
        assert f"`{state}`" in text


def test_the_docs_name_no_series_that_is_not_there(families: list[Family]) -> None:
    named = {
        name
        for page in (GUIDE, REFERENCE)
        for name in re.findall(r"\bforq_[a-z_]+\b", page.read_text(encoding="utf-8"))
    }
    known = {family.name for family in families}
    known |= {f"{family.name}_bucket" for family in families if family.type == "histogram"}
    assert named - {"forq_trio"} <= known
