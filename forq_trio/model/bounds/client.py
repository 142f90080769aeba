"""The bounds that a client has to know, or keeps itself."""

from forq_trio.model.limits import IDLE_SECONDS_MAX, KIB

# A client: its connections, and how much it takes of an answer's head and at a time.
CLIENT_CONNECTIONS_MAX = 100
CLIENT_CONNECTIONS_IDLE_MAX = 20
CLIENT_IDLE_SECONDS_MAX = 60.0
CLIENT_HEAD_BYTES_MAX = 64 * KIB
CLIENT_HEADERS_MAX = 100
CLIENT_INTERIM_ANSWERS_MAX = 10  # such as 100 Continue, which no request asks for
CLIENT_RECEIVE_BYTES = 64 * KIB
CLIENT_BYTES_PER_SECOND_MIN = 4 * KIB  # of a long request or answer; a line of 32 kbit/s
CLIENT_FRAMING_PER_BYTE_MAX = 8  # a chunk of one byte has 5 bytes beside it
SHARED_RECEIPT_LENGTH_MAX = 64

assert CLIENT_CONNECTIONS_IDLE_MAX <= CLIENT_CONNECTIONS_MAX
assert CLIENT_IDLE_SECONDS_MAX < IDLE_SECONDS_MAX  # so that no request meets a closing connection
