"""The bounds that a client has to know, or keeps itself."""

from forq_trio.model.limits import ANSWERS_BYTES_MAX as ANSWERS_BYTES_MAX
from forq_trio.model.limits import APPS_PAGE_MAX as APPS_PAGE_MAX
from forq_trio.model.limits import BROWSE_PAGE_MAX as BROWSE_PAGE_MAX
from forq_trio.model.limits import CONSUMER_LEASE_MESSAGES_DEFAULT as CONSUMER_LEASE_MESSAGES_DEFAULT
from forq_trio.model.limits import EXPORT_PAGE_MAX as EXPORT_PAGE_MAX
from forq_trio.model.limits import EXPORT_PARTITIONS_DEFAULT as EXPORT_PARTITIONS_DEFAULT
from forq_trio.model.limits import IDLE_SECONDS_MAX, KIB
from forq_trio.model.limits import LOG_PAGE_DEFAULT as LOG_PAGE_DEFAULT
from forq_trio.model.limits import NEXT_RUNS_DEFAULT as NEXT_RUNS_DEFAULT
from forq_trio.model.limits import PRODUCE_BATCH_BYTES_MAX as PRODUCE_BATCH_BYTES_MAX
from forq_trio.model.limits import PRODUCE_BATCH_MAX as PRODUCE_BATCH_MAX
from forq_trio.model.limits import RECEIPTS_BATCH_MAX as RECEIPTS_BATCH_MAX
from forq_trio.model.limits import RUNS_SHOWN_DEFAULT as RUNS_SHOWN_DEFAULT
from forq_trio.model.limits import SCHEDULES_PAGE_DEFAULT as SCHEDULES_PAGE_DEFAULT
from forq_trio.model.limits import STAGE_PAGE_BYTES_MAX as STAGE_PAGE_BYTES_MAX
from forq_trio.model.limits import STAGE_PAGE_MESSAGES_MAX as STAGE_PAGE_MESSAGES_MAX
from forq_trio.model.limits import WAIT_MS_MAX as WAIT_MS_MAX

# A client: its connections, and how much it takes of an answer's head and at a time.
CLIENT_CONNECTIONS_MAX = 100
CLIENT_CONNECTIONS_IDLE_MAX = 20
CLIENT_IDLE_SECONDS_MAX = 60.0
CLIENT_HEAD_BYTES_MAX = 64 * KIB
CLIENT_HEADERS_MAX = 100
CLIENT_RECEIVE_BYTES = 64 * KIB
CLIENT_BYTES_PER_SECOND_MIN = 4 * KIB  # of a long request or answer; a line of 32 kbit/s
CLIENT_FRAMING_PER_BYTE_MAX = 8  # a chunk of one byte has 5 bytes beside it
SHARED_RECEIPT_LENGTH_MAX = 64

assert CLIENT_CONNECTIONS_IDLE_MAX <= CLIENT_CONNECTIONS_MAX
assert CLIENT_IDLE_SECONDS_MAX < IDLE_SECONDS_MAX  # so that no request meets a closing connection
