"""Bounds of tables in pgq's layout: names, how much one statement claims, stores or lists, and how long it may take."""

from forq_trio.model.bounds.http import ATTRIBUTES_JSON_BYTES_MAX
from forq_trio.model.bounds.units import MIB, SECOND_MS
from forq_trio.model.bounds.writer import INBOX_CALLS_MAX
from forq_trio.model.messages.limits import PRODUCE_BATCH_MAX

# PostgreSQL cuts longer names off. The longest name of an index is the table's with 22 more bytes.
PGQ_NAME_BYTES_MAX = 63
PGQ_NEW_NAME_BYTES_MAX = PGQ_NAME_BYTES_MAX - len("_processed_at_null_idx")

# Of one claim; BYTES: of payloads and metadata as text. It has at least one message.
PGQ_CLAIM_BYTES_MAX = 4 * MIB
PGQ_PUBLISH_MAX = PRODUCE_BATCH_MAX
PGQ_PUBLISH_BYTES_MAX = 64 * MIB
PGQ_ROW_BYTES_MAX = (
    128 * MIB
)  # of a message that is read; the database's text has more spaces than what was published
PGQ_METADATA_BYTES_MAX = MIB  # of one that is read: no other thread runs while they are decoded
PGQ_PUBLISH_METADATA_BYTES_MAX = MIB // 2
PGQ_LIST_MAX = 1_000
PGQ_LIST_PAYLOAD_CHARACTERS_MAX = 64 * 1024  # of each message that is listed
PGQ_STEP_MAX = 10_000  # rows that one statement of a purge or requeue changes

PGQ_COUNTED_MAX = 1_000_000  # messages that the counts of a queue read, of those that are not finished

# Of the tables to which queues are bound: how often all are counted, how much longer than a count is the rest after it,
# and up to which time a count is so quick that none is remembered.
TABLES_COUNTED_SECONDS = 10.0
TABLE_COUNT_REST = 25
TABLE_COUNT_QUICK_SECONDS = 0.05

PGQ_STATEMENTS_CACHED_MAX = 8_192  # of a process: some of each table
PGQ_PLANNED_SECONDS = 5.0  # after so long the plans for partitioned tables are made anew
PGQ_LOOKS_A_SECOND_MAX = 20  # at tables for which somebody waits, in all: each has so many fewer

# Connections: of a consumer or server; of them at most so many of one queue at a server. Besides: of tables whose last
# call of the same kind took PGQ_SLOW_SECONDS; and of other calls that have taken so long, which leave theirs to others.
# A call waits PGQ_SHARE_SECONDS_MAX for one of its table's, and then PGQ_TURN_SECONDS_MAX for one of all.
PGQ_CONNECTIONS_MAX = 4
PGQ_TABLE_CONNECTIONS_MAX = 2
PGQ_CLAIM_CONNECTIONS_MAX = 3  # for claims, so that sends and settlements go on however many receivers wait
PGQ_SLOW_CONNECTIONS_MAX = 2
PGQ_LATE_CONNECTIONS_MAX = 8
PGQ_SLOW_SECONDS = 0.1
PGQ_SHARE_SECONDS_MAX = 5.0
PGQ_TURN_SECONDS_MAX = 30.0
BOUND_CALLS_MAX = INBOX_CALLS_MAX // 4  # calls that wait for one bound queue
PGQ_CONNECT_SECONDS_MAX = 10
PGQ_STATEMENT_MS_MAX = 30 * SECOND_MS
PGQ_ANSWER_SECONDS_MAX = 35.0  # a connection that sends no byte for so long counts as lost
PGQ_LOCK_MS_MAX = 2 * SECOND_MS  # how long a statement waits for another's lock

# A claim that took so long has walked past many due messages that others have claimed. For a moment the next claims
# begin where it found the first free one.
PGQ_LONG_WALK_SECONDS = 0.01
PGQ_WALKED_SECONDS = 1.0
PGQ_WALKS_MAX = 1_000  # remembered walks, one for each table and conditions

PGQ_ATTEMPTS_MAX_DEFAULT = 3
PGQ_POLLING_SECONDS_DEFAULT = 5.0

assert PGQ_CLAIM_BYTES_MAX <= PGQ_PUBLISH_BYTES_MAX < PGQ_ROW_BYTES_MAX
assert (
    ATTRIBUTES_JSON_BYTES_MAX <= PGQ_PUBLISH_METADATA_BYTES_MAX < PGQ_METADATA_BYTES_MAX < PGQ_ROW_BYTES_MAX
)
assert PGQ_CLAIM_CONNECTIONS_MAX < PGQ_CONNECTIONS_MAX
assert PGQ_TABLE_CONNECTIONS_MAX < PGQ_CONNECTIONS_MAX
assert PGQ_LOCK_MS_MAX < PGQ_STATEMENT_MS_MAX < PGQ_ANSWER_SECONDS_MAX * SECOND_MS
