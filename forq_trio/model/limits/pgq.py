"""Bounds of tables of pgq's layout: names, what one statement claims, stores or lists, and how long it may take."""

from forq_trio.model.limits.messages import PRODUCE_BATCH_MAX
from forq_trio.model.limits.units import MIB, SECOND_MS

# PostgreSQL cuts longer names off. The longest name of an index is the table's with 22 more bytes.
PGQ_NAME_BYTES_MAX = 63
PGQ_NEW_NAME_BYTES_MAX = PGQ_NAME_BYTES_MAX - len("_processed_at_null_idx")

# Of one claim; BYTES: of payloads and metadata as text. It has at least one message, however large.
PGQ_CLAIM_BYTES_MAX = 4 * MIB
PGQ_PUBLISH_MAX = PRODUCE_BATCH_MAX
PGQ_PUBLISH_BYTES_MAX = 64 * MIB
PGQ_LIST_MAX = 1_000
PGQ_LIST_PAYLOAD_CHARACTERS_MAX = 64 * 1024  # of each message that is listed
PGQ_STEP_MAX = 10_000  # rows that one statement of a purge or requeue changes

PGQ_COUNTED_MAX = 1_000_000  # messages that the counts of a queue read, of those that are not finished

PGQ_CONNECTIONS_MAX = 4
PGQ_CONNECT_SECONDS_MAX = 10
PGQ_STATEMENT_MS_MAX = 30 * SECOND_MS
PGQ_LOCK_MS_MAX = 2 * SECOND_MS  # for which a statement waits for somebody's lock

PGQ_ATTEMPTS_MAX_DEFAULT = 3
PGQ_POLLING_SECONDS_DEFAULT = 5.0

assert PGQ_CLAIM_BYTES_MAX <= PGQ_PUBLISH_BYTES_MAX
assert PGQ_LOCK_MS_MAX < PGQ_STATEMENT_MS_MAX
