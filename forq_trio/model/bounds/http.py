"""Bounds of HTTP: connections, requests, answers, the budgets that all clients share, and the dialects."""

from forq_trio.model.bounds.units import KIB, MIB
from forq_trio.model.messages.limits import CONTENT_BYTES_MAX, STORED_BYTES_MAX

# Budgets that all clients of a server share (model/budget.py). SHARE: how many times as much as is free one
# token may use; KEYLESS_PART: the part of all for requests without a key; CONNECTION_PART: for one connection.
BUDGET_SHARE = 2
BUDGET_KEYLESS_PART = 4
BODIES_CONNECTION_PART, CONNECTIONS_ADDRESS_PART = 8, 2
KEYLESS_CONNECTION_SECONDS = 1.0  # before a new connection may replace one without a key
ANSWERS_CONNECTION_PART = 4

# HTTP.
HEADER_BYTES_MAX = 16 * KIB
URI_BYTES_MAX = 8 * KIB
HEADERS_MAX = 100
BODY_BYTES_MAX = 8 * MIB
BODIES_BYTES_MAX = 512 * MIB
READ_SLICE_BYTES = 64 * KIB  # of JSON that is decoded between two checkpoints
ATTRIBUTES_JSON_BYTES_MAX = 192 * KIB  # JSON may write one character as twelve: \ud83d\ude00
ANSWERS_BYTES_MAX = 256 * MIB
SHORT_ANSWER_BYTES_MAX = 16 * KIB
SEND_PORTION_BYTES = 64 * KIB
SEND_NOW_BYTES_MAX = 128 * KIB  # in one pass of the event loop
SEND_BODY_BYTES_MAX = 6 * CONTENT_BYTES_MAX + 64 * KIB  # JSON may write one byte of content as six: \u0000
HEADER_SECONDS_MAX = 10.0
BODY_SECONDS_MAX = 45.0
IDLE_SECONDS_MAX = 300.0
SEND_SECONDS_MAX = 45.0
CONNECTIONS_MAX = 10_000
SOCKETS_READY_MAX = 128  # that receive or send once, in one pass of the event loop
WAITS_ENDED_MAX = 32  # in one pass of the event loop, because the client left or the time is over
OPEN_FILES_BESIDE_MAX = 256  # readers (three files each), writer, checkpointer, listeners, log
PIPELINED_REQUESTS_MAX = 64
REQUESTS_AT_ONCE_MAX = 8  # of one connection that are answered in one pass of the event loop
RECEIVE_CHUNK_BYTES = 64 * KIB
RECEIVE_TRIES_MAX = 4
LINGER_SECONDS_MAX = 2.0
ACCEPT_BACKLOG = 1_024
SHUTDOWN_SECONDS_MAX = 10.0
SHUTDOWN_IDLE_SECONDS = 0.25
HEALTH_SECONDS_MAX = 3.0  # checkers often wait for five
PEEK_DEFAULT = 10
RETRY_SECONDS = 1
ERROR_FIELD_LENGTH_MAX = 100
ERROR_MESSAGE_LENGTH_MAX = 300
ERROR_HEADER_BYTES_MAX = 400

# HTTP/2, for a connection. ALLOWANCE: of the frames that http/transport/http2/frame_allowance.py counts. PORTION: what
# the one connection that may parse a full portion parses between two checkpoints. FREE: what any other may parse.
# UNSENT: how much may wait to be sent while more is received.
HTTP2_STREAMS_MAX = 250
HTTP2_CLOSED_STREAMS_MAX = 500
HTTP2_CONNECTION_WINDOW_BYTES = MIB
HTTP2_PORTION_FRAMES_MAX = 64
HTTP2_FREE_FRAMES_MAX = 32
HTTP2_FREE_BLOCK_BYTES_MAX = KIB
HTTP2_UNSENT_BYTES_MAX = 128 * KIB
HTTP2_ALLOWANCE_FRAMES_MAX = 1_000
HTTP2_ALLOWANCE_FRAMES_PER_SECOND = 100.0
HTTP2_ALLOWANCE_FRAMES_PER_ANSWER = 8
HTTP2_ALLOWANCE_FRAMES_PER_DATA_FRAME = 4
HTTP2_ALLOWANCE_FRAMES_PER_KEYLESS = 8
# HTTP/2, for a stream. LENGTH: the number in Content-Length.
HTTP2_STREAM_WINDOW_BYTES = 256 * KIB
HTTP2_LENGTH_DIGITS_MAX = 18
# HTTP/2, for a header block. BLOCK: as it is sent. LIST: decoded, with 32 bytes more for each field. TABLE SIZES:
# changes of the table's size at its start (RFC 7541 section 4.2).
HTTP2_HEADER_BLOCK_BYTES_MAX = 20 * KIB
HTTP2_HEADER_LIST_BYTES_MAX = 20 * KIB
HTTP2_TABLE_SIZES_MAX = 2

# Sasquatch's figures (contract S), in its own units: seconds and KiB.
SASQUATCH_BATCH_MAX = 10
SASQUATCH_RECEIVES_MAX = 10
SASQUATCH_SECONDS_MAX = 43_200
SASQUATCH_POISON_RECEIVES_MAX = 1_000
SASQUATCH_WAIT_SECONDS_MAX = 20
SASQUATCH_RETENTION_SECONDS_MIN = 60
SASQUATCH_RETENTION_SECONDS_MAX = 1_209_600
SASQUATCH_MESSAGE_KIB_MAX = 10_240
SASQUATCH_REQUEST_KIB_MAX = 102_400
SASQUATCH_OVERHEAD_BYTES = 256 * KIB  # of a message besides its body: attributes, as JSON with escapes
SASQUATCH_INTERVAL_SECONDS_MAX = 86_400

# Amazon's SQS, and what its dialect remembers.
SQS_MESSAGE_BYTES_MAX = MIB  # body and attributes of a message, or of all messages of a batch
SQS_ATTRIBUTE_BYTES_MAX = 8 * KIB  # of a queue, such as its policy
SQS_TAGS_MAX = 50  # of a queue
SQS_DETAIL_BYTES = 128  # of an attribute or tag of a queue in memory, besides its texts
SQS_DETAILS_BYTES_MAX = 128 * KIB  # attributes and tags of a queue, as they are stored
SQS_SHORT_DETAILS_BYTES = KIB  # attributes and tags of a queue that do not count
SQS_LONG_DETAILS_BYTES_MAX = 64 * MIB  # of all queues whose are longer
SQS_TRACE_LENGTH_MAX = 1_024
SQS_URL_LENGTH_MAX = 2_048
SQS_BATCH_MAX = 10  # messages of a request
SQS_ATTRIBUTES_MAX = 10  # of a message
SQS_ATTRIBUTE_NAMES_MAX = 256  # of attributes that a receive asks for
SQS_VISIBILITY_SECONDS_MAX, SQS_WAIT_SECONDS_MAX, SQS_DELAY_SECONDS_MAX = 43_200, 20, 900
SQS_RECEIVES_MAX = 1_000  # of a message, before it moves to the dead-letter queue
SQS_SOURCES_MAX = 10  # queues that a dead-letter queue allows by name
SQS_IN_FLIGHT_MAX = 120_000  # messages of a queue
SQS_RATE_MAX = 500  # messages that a move task moves a second
SQS_QUEUES_MAX = 1_000  # of a page
SQS_QUEUES_LOOKED_AT = 500  # between two checkpoints
SQS_DELETE_TRIES = 5  # of a queue to which very many messages are sent meanwhile
SQS_XML_BYTES_MAX = 64 * MIB  # of long answers while they are made
SQS_ATTEMPTS_BYTES_MAX = 32 * MIB  # of the messages of receives that can be repeated

assert 10 * (SASQUATCH_MESSAGE_KIB_MAX * KIB + SASQUATCH_OVERHEAD_BYTES) < BODIES_BYTES_MAX
assert 6 * SQS_MESSAGE_BYTES_MAX < BODY_BYTES_MAX
assert 4 * SQS_MESSAGE_BYTES_MAX <= 3 * STORED_BYTES_MAX  # base64 makes bytes longer by a third
assert URI_BYTES_MAX <= HEADER_BYTES_MAX <= RECEIVE_CHUNK_BYTES
assert SHUTDOWN_IDLE_SECONDS < SHUTDOWN_SECONDS_MAX
assert ERROR_FIELD_LENGTH_MAX < ERROR_MESSAGE_LENGTH_MAX <= ERROR_HEADER_BYTES_MAX
assert min(HTTP2_HEADER_BLOCK_BYTES_MAX, HTTP2_HEADER_LIST_BYTES_MAX) > HEADER_BYTES_MAX
assert HTTP2_STREAMS_MAX < HTTP2_CLOSED_STREAMS_MAX
assert HTTP2_STREAM_WINDOW_BYTES <= HTTP2_CONNECTION_WINDOW_BYTES
assert SEND_PORTION_BYTES < HTTP2_UNSENT_BYTES_MAX
