"""Bounds of the admin UI."""

from forq_trio.model.bounds.units import KIB, MIB

# The admin UI.
UI_CONNECTIONS_MAX = 1_600
# those without a session; the next three: of one address, session, access token
UI_KEYLESS_CONNECTIONS_MAX = 400
UI_CONNECTIONS_AN_ADDRESS_MAX = 64
UI_CONNECTIONS_A_SESSION_MAX = 100
UI_CONNECTIONS_A_TOKEN_MAX = 300
UI_SHARE_MAX = 0.20  # of the event loop's time, for sessions while the loop is busy
UI_BURST_SECONDS = 0.5
UI_REQUESTS_AT_ONCE = 8
UI_KEYLESS_SHARE_MAX = 0.05  # of the event loop's time, for all that shows no session
UI_KEYLESS_BURST_SECONDS = 0.1  # also of UI_ARRIVALS_SHARE_MAX
UI_ARRIVALS_SHARE_MAX = 0.03  # for new connections, and for reading heads until their session is known
# requests of one session or address that wait; fewer than its connections, so that some can be replaced
UI_WAITING_MAX = 32
UI_WAIT_SECONDS_MAX = 10.0
UI_REFUSE_SECONDS = 2.0  # the delay of a refusal, so that its client does not ask again at once
UI_CONNECTION_SECONDS = 0.000_2  # the event loop's time that a connection takes besides what is measured
UI_FIELDS_MAX = 100  # of a head, a query, cookies, and of a form without a session
UI_RECEIVES_MAX = 24  # the pieces in which a request without a session may arrive
UI_HEAD_BYTES_MAX = 20 * KIB
UI_HEAD_SECONDS_MAX = 10.0
UI_PORTION_BYTES = 256  # parsed at once, which bounds how many requests are parsed ahead
UI_AHEAD_BYTES_MAX = 64 * KIB  # read while a request is answered
UI_BODY_BYTES_MAX = MIB  # a message's content as a form, where each byte may take three
UI_BODY_SECONDS_MAX = 30.0
UI_BODIES_BYTES_MAX = 32 * MIB  # of all bodies that are read or worked on
UI_LOGIN_BYTES_MAX = 8 * KIB  # of a body without a session
UI_FORM_FIELDS_MAX = 2_000
UI_FORM_INLINE_BYTES_MAX = 32 * KIB  # longer ones are read in a thread
SESSIONS_A_KEY_MAX = 100
UI_SEND_SECONDS_MAX = 30.0
UI_IDLE_SECONDS_MAX = 60.0
UI_KEYLESS_IDLE_SECONDS_MAX = 15.0
UI_CLOSE_SECONDS_MAX = 1.0
UI_HANDSHAKE_SECONDS_MAX = 10.0
SESSION_ID_LENGTH_MAX = 64
PRESENT_MAX = 200  # messages of a list that a page asks about at once
LIST_ROWS_MAX = 2_000  # rows that one page loads; the next ones are on another page
PURGES_RUNNING_MAX = 16
PURGES_REMEMBERED_MAX = 100
PURGE_SHOWN_SECONDS = 60.0
LIVE_READERS_MAX = 1_000
LIVE_VIEWS_MAX = 200
LIVE_VIEWS_A_SESSION_MAX = 32  # different views at once; the same bound holds for an access token
LIVE_VIEWS_A_TOKEN_MAX = 64
LIVE_SHARE_MAX = 0.04  # of the event loop's time
LIVE_PUSH_SECONDS = 0.000_15  # what handing a change to one dashboard takes
LIVE_SECONDS_MIN = 1.0  # between two renderings of a view
LIVE_SECONDS_MAX = 30.0  # of a pause, however long rendering took
LIVE_BEAT_SECONDS = 10.0
LIVE_POLL_SECONDS = 12.0
ROW_LISTS_MAX = 256
KEY_COUNTS_MAX = 1_000  # queues whose number of keys is remembered
KEYS_COUNTED_MAX = 100_000
KEY_KINDS_MAX = 20  # in which a key is looked for

assert LIVE_VIEWS_A_SESSION_MAX <= LIVE_VIEWS_A_TOKEN_MAX < LIVE_VIEWS_MAX // 2
assert LIVE_READERS_MAX < UI_CONNECTIONS_MAX - UI_KEYLESS_CONNECTIONS_MAX
assert UI_WAITING_MAX < UI_CONNECTIONS_AN_ADDRESS_MAX < UI_KEYLESS_CONNECTIONS_MAX
assert UI_CONNECTIONS_A_SESSION_MAX <= UI_CONNECTIONS_A_TOKEN_MAX < LIVE_READERS_MAX
assert UI_KEYLESS_CONNECTIONS_MAX * UI_LOGIN_BYTES_MAX <= UI_BODIES_BYTES_MAX // 4  # they have no budget
