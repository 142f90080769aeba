"""The columns of what is read and written, without Spark, so that the reference can be made of them anywhere."""

from typing import NamedTuple

LEASE = "lease"
"""The column that identifies the lease in which a message was read; its text is unique, even among servers."""


class Column(NamedTuple):
    """A column. says: what it means, or of one that is written what a message without it gets."""

    name: str
    type: str  # in Spark's words
    says: str = ""


MESSAGES = (
    Column("id", "string"),
    Column("queue", "string"),
    Column("sequence", "bigint", "grows in the order of arrival in the queue"),
    Column("content", "string"),
    Column("priority", "int"),
    Column("attempts", "int", "deliveries so far, with that of the lease"),
    Column("received_at", "timestamp", "when it was sent"),
    Column("group", "string", "null without one"),
)
ATTRIBUTES = (Column("attributes", "map<string,string>", "null without any"),)
OF_MODE = {
    "consume": (Column(LEASE, "string", "consumer, number and time of the lease, for `write_once`"),),
    "snapshot": (Column("state", "string", "`ready`, `delayed`, `processing`, `held`, `failed`"),),
    "history": (
        Column("history_id", "bigint", "1, 2, 3 … in the order in which messages ended"),
        Column("outcome", "string", "`acked`, `discarded`, `expired`, `deleted`, `cancelled`"),
        Column("reason", "string", "of what was discarded"),
        Column("finished_at", "timestamp", "when it ended"),
    ),
}
"""What messages have in addition, by the mode of the read."""
ORIGIN = (
    Column("source_queue", "string", "of a dead letter: the queue it came from; null of others"),
    Column("source_attempts", "int", "how often it was delivered there"),
    Column(
        "failure_reason", "string", "why it moved: `max_attempts_reached`, `message_expired`, `queue_full`"
    ),
    Column("dead_lettered_at", "timestamp", "when it moved"),
)
EVENTS = (
    Column("id", "bigint", "1, 2, 3 … in the order of commits"),
    Column("at", "timestamp", "when it happened"),
    Column("kind", "string"),
    Column("queue", "string", "where the message was"),
    Column("message_id", "string"),
    Column("sequence", "bigint", "of the message"),
    Column("attempt", "int", "which delivery"),
    Column("reason", "string"),
    Column("target", "string", "the queue that it moved to"),
    Column("received_at", "timestamp", "when the message was sent"),
    Column("duration_ms", "bigint", "may be below zero where a clock was set back"),
    Column("bytes", "bigint", "of content and attributes"),
)
COLUMNS = {
    column.name: column
    for column in (
        Column("content", "string", "needed"),
        Column("priority", "int", "100"),
        Column("delay_ms", "bigint", "the queue's"),
        Column("ttl_ms", "bigint", "the queue's"),
        Column("process_after", "timestamp", "at once"),
        Column("attributes", "map<string,string>", "none"),
        Column("group", "string", "none"),
        Column("deduplication_id", "string", "no deduplication"),
        Column("max_attempts", "int", "the queue's"),
        Column("queue", "string", "option `queue`"),
    )
}
"""Those that a data frame may have that is written: a row is a message, its columns are the members."""
