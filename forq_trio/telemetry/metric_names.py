"""All series of our own in /metrics: names, labels and meanings, closed and stable.

The counters and the depth are Forq's (contract F11) and do not change, nor do their help texts; those after them are
ours. A test compares docs/metrics.md with these tables.
"""

import msgspec

QUEUE_LABELS = ("queue_name", "queue_type")


class Family(msgspec.Struct, frozen=True):
    """Series of one name: type in Prometheus' sense, labels and what they mean."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


class Counter(msgspec.Struct, frozen=True):
    """A counter of F11: its name, the kind of event it counts, its labels and what it means."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def family(self) -> Family:
        return Family(self.name, "counter", self.labels, self.meaning)


COUNTERS = (
    Counter("forq_messages_produced_total", "produced", QUEUE_LABELS, "Messages stored for producers."),
    Counter("forq_messages_consumed_total", "consumed", QUEUE_LABELS, "Messages handed to consumers."),
    Counter("forq_messages_acked_total", "acked", QUEUE_LABELS, "Messages acknowledged by consumers."),
    Counter(
        "forq_messages_nacked_total", "nacked", QUEUE_LABELS, "Messages given back after a failed attempt."
    ),
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
DEPTH = Family(
    "forq_queue_depth",
    "gauge",
    QUEUE_LABELS,
    "Messages a queue holds, in whatever state, refreshed every 30 seconds.",
)

MESSAGES = Family(
    "forq_queue_messages",
    "gauge",
    (*QUEUE_LABELS, "state"),
    "Messages a queue holds, by state, refreshed every 30 seconds.",
)
BYTES = Family(
    "forq_queue_bytes",
    "gauge",
    QUEUE_LABELS,
    "Bytes of content and attributes a queue holds, refreshed every 30 seconds.",
)
DEAD_LETTERS = Family(
    "forq_queue_dead_letters",
    "gauge",
    QUEUE_LABELS,
    "Messages in the dead-letter queue of a queue, refreshed every 30 seconds.",
)
OLDEST_AGE = Family(
    "forq_queue_oldest_claimable_age_seconds",
    "gauge",
    QUEUE_LABELS,
    "How long the oldest ready message of a queue could have been claimed, refreshed every 30 seconds.",
)
WAITING = Family(
    "forq_queue_waiting_consumers",
    "gauge",
    QUEUE_LABELS,
    "Consumers that wait for a message of a queue, now.",
)
HEALTH = Family(
    "forq_queue_health",
    "gauge",
    (*QUEUE_LABELS, "level"),
    "1 for the level of a queue's health; among other queues, how many have it.",
)
CONSUMER_LABELS = ("queue_name", "consumer")
CONSUMER_LAG = Family(
    "forq_consumer_lag_messages",
    "gauge",
    CONSUMER_LABELS,
    "Messages that a consumer of a pipeline could lease, now; of the first 100 consumers.",
)
CONSUMER_OPEN = Family(
    "forq_consumer_open_messages",
    "gauge",
    CONSUMER_LABELS,
    "Messages of the lease of a consumer that is not settled, now.",
)
CONSUMER_SECONDS = Family(
    "forq_consumer_seconds_since_use", "gauge", CONSUMER_LABELS, "How long a consumer was not used, now."
)
INBOX = Family("forq_inbox_calls", "gauge", (), "Calls that wait to be taken into a commit, now.")
SENDS_REFUSED = Family(
    "forq_sends_refused",
    "gauge",
    ("cause",),
    "1 while sends to all queues are refused for this cause, else 0.",
)
LOG_BYTES = Family("forq_log_bytes", "gauge", (), "Bytes of the write-ahead log, now.")
CHECKPOINT_FAILED = Family(
    "forq_checkpoint_failed", "gauge", (), "1 while the latest checkpoint failed, else 0."
)
FILE_BYTES = Family(
    "forq_file_bytes", "gauge", (), "Bytes of the database file without its log, as of the last checkpoint."
)
FILE_FREE_BYTES = Family(
    "forq_file_free_bytes", "gauge", (), "Bytes of its free pages, as of the last checkpoint."
)
GIVEN_BACK_BYTES = Family(
    "forq_file_given_back_bytes_total", "counter", (), "Bytes that compactions gave back to the disk."
)
STAGED_BYTES = Family(
    "forq_staged_bytes",
    "gauge",
    (),
    "Bytes that are staged and not yet in their queues, as they are stored, now.",
)
QUOTA_USED = Family(
    "forq_quota_used", "gauge", ("quota",), "How much of a bound that all keys share is used, now."
)
QUOTA_LIMIT = Family("forq_quota_limit", "gauge", ("quota",), "The most that all together may use.")
QUOTA_KEY_USED = Family(
    "forq_quota_key_used",
    "gauge",
    ("quota",),
    "How much of it the key with the most uses, a token or the secret, now.",
)
QUOTA_KEY_LIMIT = Family("forq_quota_key_limit", "gauge", ("quota",), "The most that one key may use.")
PUBLICATIONS = Family("forq_publications_total", "counter", (), "Publications of stages.")
UI_CONNECTIONS = Family("forq_ui_connections", "gauge", (), "Open connections to the admin UI, now.")
UI_LOOP_SECONDS = Family(
    "forq_ui_loop_seconds_total",
    "counter",
    ("share",),
    "Time of the event loop that the admin UI used, by the share of it that paid.",
)
BUDGET_USED = Family(
    "forq_budget_used", "gauge", ("budget",), "How much of what all clients share is in use, now."
)
BUDGET_REFUSALS = Family(
    "forq_budget_refusals_total",
    "counter",
    ("budget", "share"),
    "Refusals because the whole or somebody's share of it was used up.",
)
REJECTIONS = Family("forq_rejections_total", "counter", ("cause",), "Calls and requests that were refused.")
WAIT = Family(
    "forq_message_wait_seconds",
    "histogram",
    QUEUE_LABELS,
    "From when a message could be claimed until it was.",
)
END_TO_END = Family(
    "forq_message_end_to_end_seconds",
    "histogram",
    QUEUE_LABELS,
    "From when a message was sent until it was acknowledged.",
)
HANDLING = Family(
    "forq_message_handling_seconds",
    "histogram",
    QUEUE_LABELS,
    "From when a message was claimed until it was acknowledged within its lease.",
)
COMMIT_CALLS = Family("forq_commit_batch_calls", "histogram", (), "Calls that shared a commit.")
COMMIT_SECONDS = Family(
    "forq_commit_duration_seconds", "histogram", (), "How long a commit waited for the disk."
)
CHECKPOINT_SECONDS = Family(
    "forq_checkpoint_duration_seconds", "histogram", (), "How long a checkpoint of the write-ahead log took."
)
CHECKPOINT_PAUSE_SECONDS = Family(
    "forq_checkpoint_pause_seconds",
    "histogram",
    (),
    "How long no commit could begin because of a checkpoint.",
)
LAST_BACKUP = Family(
    "forq_backup_last_success_timestamp_seconds",
    "gauge",
    (),
    "When the latest backup that the server made was begun, in Unix time; absent without one.",
)
BACKUP_FAILED = Family("forq_backup_failed", "gauge", (), "1 while the latest backup failed, else 0.")
EVENT_BYTES = Family(
    "forq_events_stored_bytes", "gauge", (), "Bytes that the kept lifecycle events take, now."
)
FIRST_EVENT = Family(
    "forq_events_first_id", "gauge", (), "The id of the oldest lifecycle event that is kept."
)
LAST_EVENT = Family(
    "forq_events_last_id", "gauge", (), "The id of the newest lifecycle event, 0 without one."
)

HISTORY_MESSAGES = Family(
    "forq_history_messages", "gauge", (), "Finished messages that are kept, refreshed every 30 seconds."
)
HISTORY_BYTES = Family(
    "forq_history_bytes",
    "gauge",
    (),
    "Bytes of content and attributes of finished messages, refreshed every 30 seconds.",
)

FAMILIES = (
    *(counter.family for counter in COUNTERS),
    DEPTH,
    MESSAGES,
    BYTES,
    DEAD_LETTERS,
    OLDEST_AGE,
    WAITING,
    HEALTH,
    CONSUMER_LAG,
    CONSUMER_OPEN,
    CONSUMER_SECONDS,
    INBOX,
    SENDS_REFUSED,
    LOG_BYTES,
    CHECKPOINT_FAILED,
    FILE_BYTES,
    FILE_FREE_BYTES,
    GIVEN_BACK_BYTES,
    STAGED_BYTES,
    QUOTA_USED,
    QUOTA_LIMIT,
    QUOTA_KEY_USED,
    QUOTA_KEY_LIMIT,
    PUBLICATIONS,
    UI_CONNECTIONS,
    UI_LOOP_SECONDS,
    BUDGET_USED,
    BUDGET_REFUSALS,
    REJECTIONS,
    WAIT,
    END_TO_END,
    HANDLING,
    COMMIT_CALLS,
    COMMIT_SECONDS,
    CHECKPOINT_SECONDS,
    CHECKPOINT_PAUSE_SECONDS,
    LAST_BACKUP,
    BACKUP_FAILED,
    HISTORY_MESSAGES,
    HISTORY_BYTES,
    EVENT_BYTES,
    FIRST_EVENT,
    LAST_EVENT,
)
"""All families, in the order of a scrape."""

STATES = ("ready", "delayed", "processing", "held", "failed")
"""The values of the label `state`. A message is counted in one of them."""
