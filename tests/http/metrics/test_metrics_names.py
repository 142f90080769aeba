"""Names, labels and meanings of the series are a promise: written down here, in the docs, and nowhere changed."""

import re
from pathlib import Path

from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.model.budget import Budget
from forq_trio.model.consumers import ConsumerGauges
from forq_trio.model.database_state import DatabaseReading, DatabaseState
from forq_trio.model.holders import OWNER
from forq_trio.model.messages import QueueCounts
from forq_trio.model.processes import ProcessReport
from forq_trio.model.quotas import Quota
from forq_trio.model.schedules import SavedRun
from forq_trio.model.workers import WorkerGauges
from forq_trio.storage.engine import EVENT_KINDS, Event
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.gauges import Gauges
from forq_trio.telemetry.metric_names import COUNTERS, FAMILIES, KINDS_NOT_EXPOSED, OFFERS, STATES
from forq_trio.telemetry.rejections import Cause
from support.exposition import own_samples

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"

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
OURS = {
    "forq_queue_messages": ("gauge", "queue_name", "queue_type", "state"),
    "forq_queue_bytes": ("gauge", "queue_name", "queue_type"),
    "forq_queue_dead_letters": ("gauge", "queue_name", "queue_type"),
    "forq_queue_oldest_claimable_age_seconds": ("gauge", "queue_name", "queue_type"),
    "forq_queue_waiting_consumers": ("gauge", "queue_name", "queue_type"),
    "forq_queue_health": ("gauge", "queue_name", "queue_type", "level"),
    "forq_workers": ("gauge", "state"),
    "forq_worker_slots": ("gauge", "queue_name", "queue_type"),
    "forq_worker_slots_busy": ("gauge", "queue_name", "queue_type"),
    "forq_processes": ("gauge", "state"),
    "forq_process_info": ("gauge", "name", "process", "version"),
    "forq_database_oldest_snapshot_seconds": ("gauge",),
    "forq_database_dead_rows": ("gauge",),
    "forq_database_connections": ("gauge", "whose"),
    "forq_database_bytes": ("gauge",),
    "forq_consumer_lag_messages": ("gauge", "queue_name", "consumer"),
    "forq_consumer_open_messages": ("gauge", "queue_name", "consumer"),
    "forq_consumer_seconds_since_use": ("gauge", "queue_name", "consumer"),
    "forq_inbox_calls": ("gauge",),
    "forq_sends_refused": ("gauge", "cause"),
    "forq_log_bytes": ("gauge",),
    "forq_checkpoint_failed": ("gauge",),
    "forq_file_bytes": ("gauge",),
    "forq_file_free_bytes": ("gauge",),
    "forq_file_given_back_bytes_total": ("counter",),
    "forq_staged_bytes": ("gauge",),
    "forq_quota_used": ("gauge", "quota"),
    "forq_quota_limit": ("gauge", "quota"),
    "forq_quota_key_used": ("gauge", "quota"),
    "forq_quota_key_limit": ("gauge", "quota"),
    "forq_messages_offered_total": ("counter", "queue_name", "reason"),
    "forq_publications_total": ("counter",),
    "forq_sent_set_aside_total": ("counter",),
    "forq_sent_set_aside": ("gauge",),
    "forq_schedule_runs_total": ("counter", "result"),
    "forq_ui_connections": ("gauge",),
    "forq_ui_loop_seconds_total": ("counter", "share"),
    "forq_budget_used": ("gauge", "budget"),
    "forq_budget_refusals_total": ("counter", "budget", "share"),
    "forq_rejections_total": ("counter", "cause"),
    "forq_message_wait_seconds": ("histogram", "queue_name", "queue_type"),
    "forq_message_end_to_end_seconds": ("histogram", "queue_name", "queue_type"),
    "forq_message_handling_seconds": ("histogram", "queue_name", "queue_type"),
    "forq_commit_batch_calls": ("histogram",),
    "forq_commit_duration_seconds": ("histogram",),
    "forq_gate_wait_seconds": ("histogram",),
    "forq_process_lag_seconds": ("histogram",),
    "forq_checkpoint_duration_seconds": ("histogram",),
    "forq_checkpoint_pause_seconds": ("histogram",),
    "forq_schedule_lateness_seconds": ("histogram",),
    "forq_backup_last_success_timestamp_seconds": ("gauge",),
    "forq_backup_failed": ("gauge",),
    "forq_history_messages": ("gauge",),
    "forq_history_bytes": ("gauge",),
    "forq_events_stored_bytes": ("gauge",),
    "forq_events_first_id": ("gauge",),
    "forq_events_last_id": ("gauge",),
}
CAUSES = [
    *("overloaded", "queue_full", "stopping", "storage_unavailable", "storage_full", "storage_lost"),
    *("read_timeout", "unauthorized", "throttled", "forbidden", "too_large", "slow_request"),
]


def table_rows(text: str) -> list[list[str]]:
    """The cells of all table rows that begin with something in backquotes."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def full_tally() -> tuple[Counters, Gauges]:
    """Counters and gauges that have something of everything."""
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
    budget = Budget(1)
    budget.change(OWNER, 2)
    counters.commits.record(3, 0.001, 0)
    counters.runs.record(
        [SavedRun(nominal=1, result="missed", runs=4, at=9), SavedRun(nominal=2, result="sent", at=9)]
    )
    assert counters.runs.by_result == {"sent": 1, "skipped": 0, "missed": 4, "refused": 0}
    gauges = Gauges(
        dead_letters=lambda: {counters.queues.key("q"): 9},
        oldest_seconds=lambda: {counters.queues.key("q"): 1.5},
        health=lambda: {"q": "fine"},
        consumers=lambda: [ConsumerGauges("q", "k", 1, 2, 3.0)],
        workers=lambda: WorkerGauges(slots={"q": (4, 3)}),
        processes=lambda: {"running": 2, "silent": 1},
        process=lambda: ProcessReport(id="i", name="host", process=7, version="1.0", started_at=0),
        database=lambda: DatabaseState(DatabaseReading(3, 2, 100, 0, 7, None, 8, ()), None),
        ui_loop_seconds=lambda: {"keyless": 0.5},
        quotas=lambda: [Quota("apps", 3, 9, 2, 4)],
        budgets=lambda: {"bodies": budget},
        last_backup_at=lambda: 1_700_000_000_000,
    )
    return counters, gauges


def test_f11_forqs_own_series_are_byte_for_byte_what_they_were() -> None:
    assert MetricsPage(*full_tally()).render().decode().startswith(FORQ)


def test_our_names_and_labels_stay() -> None:
    ours = {family.name: (family.type, *family.labels) for family in FAMILIES[len(COUNTERS) + 1 :]}
    assert ours == OURS
    assert STATES == ("ready", "delayed", "processing", "held", "failed")
    assert [cause.value for cause in Cause] == CAUSES


def test_what_is_exposed_is_what_the_tables_say() -> None:
    exposed: dict[str, set[tuple[str, ...]]] = {}
    for name, labels in own_samples(*full_tally()):
        family = re.sub("_(bucket|sum|count)$", "", name)
        exposed.setdefault(family, set()).add(tuple(label for label, _ in labels if label != "le"))
    assert exposed == {family.name: {tuple(sorted(family.labels))} for family in FAMILIES}


def test_f11_every_kind_of_event_is_exposed_or_left_out_on_purpose() -> None:
    assert {counter.kind for counter in COUNTERS} | {OFFERS.kind} | KINDS_NOT_EXPOSED == set(EVENT_KINDS)


def test_every_series_and_every_cause_is_documented() -> None:
    text = DOCS.read_text()
    series, causes = text.split("`cause` is one of:")
    assert table_rows(series) == [
        [f"`{family.name}`", family.type, ", ".join(f"`{label}`" for label in family.labels), family.meaning]
        for family in FAMILIES
    ]
    assert table_rows(causes) == [[f"`{cause.value}`", cause.doc] for cause in Cause]
    for state in STATES:
        assert f"`{state}`" in series


def test_the_docs_name_no_series_that_is_not_there() -> None:
    named = set(re.findall(r"\bforq_[a-z_]+\b", DOCS.read_text()))
    known = {family.name for family in FAMILIES}
    known |= {f"{family.name}_bucket" for family in FAMILIES if family.type == "histogram"}
    assert named <= known
