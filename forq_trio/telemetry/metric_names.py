"""All series of our own in /metrics: names, labels and meanings, closed and stable.

The counters and the depth are Forq's (contract F11) and do not change, nor do their help texts; those after them are
ours. A test compares docs/metrics.md with them.
"""

import msgspec

QUEUE_LABELS = ("queue_name", "queue_type")
CONSUMER_LABELS = ("queue_name", "consumer")
STATES = ("ready", "delayed", "processing", "held", "failed")
"""The values of the label `state`. A message is counted in one of them."""
KINDS_NOT_EXPOSED = frozenset({"released"})


class Family(msgspec.Struct, frozen=True):
    """Series of one name: type in Prometheus' sense, labels and what they mean. kind: of the events that it counts."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str
    kind: str = ""


PROCESS_LABELS = ("name", "process", "version")
FAMILIES: list[Family] = []
"""All families as they are declared below, which is the order of a scrape."""


def _family(type: str, name: str, meaning: str, *labels: str, kind: str = "") -> Family:
    family = Family(name, type, labels, meaning, kind)
    FAMILIES.append(family)
    return family


def _counter(name: str, meaning: str, *labels: str, kind: str = "") -> Family:
    return _family("counter", name, meaning, *labels, kind=kind)


def _gauge(name: str, meaning: str, *labels: str) -> Family:
    return _family("gauge", name, meaning, *labels)


def _histogram(name: str, meaning: str, *labels: str) -> Family:
    return _family("histogram", name, meaning, *labels)


COUNTERS = (
    _counter(
        "forq_messages_produced_total", "Messages stored for producers.", *QUEUE_LABELS, kind="produced"
    ),
    _counter("forq_messages_consumed_total", "Messages handed to consumers.", *QUEUE_LABELS, kind="consumed"),
    _counter("forq_messages_acked_total", "Messages acknowledged by consumers.", *QUEUE_LABELS, kind="acked"),
    _counter(
        "forq_messages_nacked_total",
        "Messages given back after a failed attempt.",
        *QUEUE_LABELS,
        kind="nacked",
    ),
    _counter(
        "forq_messages_requeued_total",
        "Messages moved from a dead-letter queue back to its queue by an administrator.",
        "queue_name",
        kind="requeued",
    ),
    _counter(
        "forq_messages_moved_to_dlq_total",
        "Messages moved to a dead-letter queue.",
        "queue_name",
        "reason",
        kind="moved_to_dlq",
    ),
    _counter(
        "forq_messages_stale_recovered_total",
        "Messages whose consumer let the lease run out, made ready again.",
        "queue_name",
        kind="stale_recovered",
    ),
    _counter(
        "forq_messages_cleanup_total",
        "Messages deleted from dead-letter queues.",
        "reason",
        kind="cleaned_up",
    ),
)
DEPTH = _gauge(
    "forq_queue_depth",
    "Messages a queue holds, in whatever state, refreshed every 30 seconds.",
    *QUEUE_LABELS,
)
MESSAGES = _gauge(
    "forq_queue_messages",
    "Messages a queue holds, by state, refreshed every 30 seconds.",
    *QUEUE_LABELS,
    "state",
)
BYTES = _gauge(
    "forq_queue_bytes",
    "Bytes of content and attributes a queue holds, refreshed every 30 seconds.",
    *QUEUE_LABELS,
)
DEAD_LETTERS = _gauge(
    "forq_queue_dead_letters",
    "Messages in the dead-letter queue of a queue, refreshed every 30 seconds.",
    *QUEUE_LABELS,
)
OLDEST_AGE = _gauge(
    "forq_queue_oldest_claimable_age_seconds",
    "How long the oldest ready message of a queue could have been claimed, refreshed every 30 seconds.",
    *QUEUE_LABELS,
)
WAITING = _gauge(
    "forq_queue_waiting_consumers", "Consumers that wait for a message of a queue, now.", *QUEUE_LABELS
)
HEALTH = _gauge(
    "forq_queue_health",
    "1 for the level of a queue's health; among other queues, how many have it.",
    *QUEUE_LABELS,
    "level",
)
WORKERS = _gauge("forq_workers", "Workers that are known, by state: busy, idle or silent, now.", "state")
WORKER_SLOTS = _gauge(
    "forq_worker_slots", "Slots of the workers of a queue, without silent ones, now.", *QUEUE_LABELS
)
WORKER_SLOTS_BUSY = _gauge(
    "forq_worker_slots_busy", "Slots of them that handle a message, now.", *QUEUE_LABELS
)
PROCESSES = _gauge(
    "forq_processes", "Server processes on the database, by state: running or silent, now.", "state"
)
PROCESS = _gauge(
    "forq_process_info", "1 for the process that answers: its host, its number and version.", *PROCESS_LABELS
)
DATABASE_SNAPSHOT = _gauge(
    "forq_database_oldest_snapshot_seconds",
    "How long the oldest snapshot keeps vacuum from removing dead rows, refreshed every 30 seconds; PostgreSQL only.",
)
DATABASE_DEAD_ROWS = _gauge(
    "forq_database_dead_rows", "Dead rows of messages, as PostgreSQL estimates them, every 30 seconds."
)
DATABASE_CONNECTIONS = _gauge(
    "forq_database_connections",
    "Connections to PostgreSQL, every 30 seconds: ours, all, and the limit.",
    "whose",
)
DATABASE_BYTES = _gauge("forq_database_bytes", "Bytes of the PostgreSQL database, every 30 seconds.")
DATABASE = (DATABASE_SNAPSHOT, DATABASE_DEAD_ROWS, DATABASE_CONNECTIONS, DATABASE_BYTES)
"""What has no series before the first look, after one that failed, and with other databases."""
CONSUMER_LAG = _gauge(
    "forq_consumer_lag_messages",
    "Messages that a consumer of a pipeline could lease, now; of the first 100 consumers.",
    *CONSUMER_LABELS,
)
CONSUMER_OPEN = _gauge(
    "forq_consumer_open_messages",
    "Messages of the lease of a consumer that is not settled, now.",
    *CONSUMER_LABELS,
)
CONSUMER_SECONDS = _gauge(
    "forq_consumer_seconds_since_use", "How long a consumer was not used, now.", *CONSUMER_LABELS
)
INBOX = _gauge("forq_inbox_calls", "Calls that wait to be taken into a commit, now.")
SENDS_REFUSED = _gauge(
    "forq_sends_refused", "1 while sends to all queues are refused for this cause, else 0.", "cause"
)
LOG_BYTES = _gauge("forq_log_bytes", "Bytes of the write-ahead log, now.")
CHECKPOINT_FAILED = _gauge("forq_checkpoint_failed", "1 while the latest checkpoint failed, else 0.")
FILE_BYTES = _gauge(
    "forq_file_bytes", "Bytes of the database file without its log, as of the last checkpoint."
)
FILE_FREE_BYTES = _gauge("forq_file_free_bytes", "Bytes of its free pages, as of the last checkpoint.")
GIVEN_BACK_BYTES = _counter(
    "forq_file_given_back_bytes_total", "Bytes that compactions gave back to the disk."
)
STAGED_BYTES = _gauge(
    "forq_staged_bytes", "Bytes that are staged and not yet in their queues, as they are stored, now."
)
QUOTA_USED = _gauge("forq_quota_used", "How much of a bound that all keys share is used, now.", "quota")
QUOTA_LIMIT = _gauge("forq_quota_limit", "The most that all together may use.", "quota")
QUOTA_KEY_USED = _gauge(
    "forq_quota_key_used", "How much of it the key with the most uses, a token or the secret, now.", "quota"
)
QUOTA_KEY_LIMIT = _gauge("forq_quota_key_limit", "The most that one key may use.", "quota")
OFFERS = _counter(
    "forq_messages_offered_total",
    "Offers of messages with a key; reason: created, updated or ignored.",
    "queue_name",
    "reason",
    kind="offered",
)
PUBLICATIONS = _counter("forq_publications_total", "Publications of stages.")
SENT_SET_ASIDE = _counter(
    "forq_sent_set_aside_total", "Messages of forq.send that were refused for good and set aside."
)
SET_ASIDE = _gauge(
    "forq_sent_set_aside",
    "Messages of forq.send that were refused and wait for somebody to decide, refreshed every 30 seconds.",
)
RUNS = _counter(
    "forq_schedule_runs_total", "Runs of schedules whose time came, by what became of them.", "result"
)
UI_CONNECTIONS = _gauge("forq_ui_connections", "Open connections to the admin UI, now.")
UI_LOOP_SECONDS = _counter(
    "forq_ui_loop_seconds_total",
    "Time of the event loop that the admin UI used, by the share of it that paid.",
    "share",
)
BUDGET_USED = _gauge("forq_budget_used", "How much of what all clients share is in use, now.", "budget")
BUDGET_REFUSALS = _counter(
    "forq_budget_refusals_total",
    "Refusals because the whole or somebody's share of it was used up.",
    "budget",
    "share",
)
REJECTIONS = _counter("forq_rejections_total", "Calls and requests that were refused.", "cause")
WAIT = _histogram(
    "forq_message_wait_seconds", "From when a message could be claimed until it was.", *QUEUE_LABELS
)
END_TO_END = _histogram(
    "forq_message_end_to_end_seconds",
    "From when a message was sent until it was acknowledged.",
    *QUEUE_LABELS,
)
HANDLING = _histogram(
    "forq_message_handling_seconds",
    "From when a message was claimed until it was acknowledged within its lease.",
    *QUEUE_LABELS,
)
COMMIT_CALLS = _histogram("forq_commit_batch_calls", "Calls that shared a commit.")
COMMIT_SECONDS = _histogram("forq_commit_duration_seconds", "How long a commit waited for the disk.")
GATE_SECONDS = _histogram(
    "forq_gate_wait_seconds", "How long a batch waited until no other process ran one; PostgreSQL only."
)
LAG_SECONDS = _histogram(
    "forq_process_lag_seconds", "How old the batches of other processes were when they were taken over."
)
CHECKPOINT_SECONDS = _histogram(
    "forq_checkpoint_duration_seconds", "How long a checkpoint of the write-ahead log took."
)
CHECKPOINT_PAUSE_SECONDS = _histogram(
    "forq_checkpoint_pause_seconds", "How long no commit could begin because of a checkpoint."
)
RUN_LATENESS = _histogram(
    "forq_schedule_lateness_seconds", "How much later than its time, with jitter, a run sent its message."
)
LAST_BACKUP = _gauge(
    "forq_backup_last_success_timestamp_seconds",
    "When the latest backup that the server made was begun, in Unix time; absent without one.",
)
BACKUP_FAILED = _gauge("forq_backup_failed", "1 while the latest backup failed, else 0.")
HISTORY_MESSAGES = _gauge(
    "forq_history_messages", "Finished messages that are kept, refreshed every 30 seconds."
)
HISTORY_BYTES = _gauge(
    "forq_history_bytes", "Bytes of content and attributes of finished messages, refreshed every 30 seconds."
)
EVENT_BYTES = _gauge("forq_events_stored_bytes", "Bytes that the kept lifecycle events take, now.")
FIRST_EVENT = _gauge("forq_events_first_id", "The id of the oldest lifecycle event that is kept.")
LAST_EVENT = _gauge("forq_events_last_id", "The id of the newest lifecycle event, 0 without one.")

OF_ALL_QUEUES = frozenset(each.kind for each in FAMILIES if each.kind and "queue_name" not in each.labels)
"""Kinds of events whose series do not name a queue: they sum queues that are gone, too."""
