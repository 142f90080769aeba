"""Bounds of tokens, sessions and logins, and of what one key may have."""

from forq_trio.model.bounds.units import DAY_MS
from forq_trio.model.publishing.limits import (
    APPS_MAX,
    CONSUMER_PAGES_BYTES_MAX,
    CONSUMERS_MAX,
    STAGED_BYTES_MAX,
    STAGES_MAX,
)
from forq_trio.model.queues.limits import QUEUES_MAX, REDRIVES_REMEMBERED_MAX, REDRIVES_RUNNING_MAX

# Access tokens.
TOKENS_MAX = 1_000
TOKEN_NAME_LENGTH_MAX = 64
TOKEN_QUEUES_LENGTH_MAX = 256
TOKEN_LIFE_DAYS_MAX = 3_660
TOKEN_USE_SAVE_SECONDS = 60.0

# Sessions of the admin UI.
SESSIONS_MAX = 1_000
SESSION_LIFE_MS = 7 * DAY_MS
SESSION_LOOK_SECONDS = 0.1  # between two looks for sessions of other servers
SESSION_CLIENT_LENGTH_MAX = 64
SESSION_AGENT_LENGTH_MAX = 256

# A one-time link to the admin UI.
LINK_TOKEN_BYTES = 16
LINK_SECONDS_MAX = 600.0

# The share that one key (an access token, or the server's secret) may have of the bounds for all keys.
KEY_SHARE = 4
KEY_SHARE_OF_FEW = 2  # of things that are large or few, such as one load, or the redrives of one person
QUEUES_A_TOKEN_MAX = QUEUES_MAX // KEY_SHARE  # the secret may make all
CONSUMERS_A_KEY_MAX = CONSUMERS_MAX // KEY_SHARE
CONSUMER_PAGES_BYTES_A_KEY_MAX = CONSUMER_PAGES_BYTES_MAX // KEY_SHARE_OF_FEW
STAGES_A_KEY_MAX = STAGES_MAX // KEY_SHARE
STAGED_BYTES_A_KEY_MAX = STAGED_BYTES_MAX // KEY_SHARE_OF_FEW
APPS_A_KEY_MAX = APPS_MAX // KEY_SHARE
REDRIVES_RUNNING_A_KEY_MAX = REDRIVES_RUNNING_MAX // KEY_SHARE_OF_FEW
REDRIVES_A_KEY_MAX = REDRIVES_REMEMBERED_MAX // KEY_SHARE_OF_FEW

# Authentication (Forq 1.0: 5 failures in 60 s lock a client's address out for 60 s).
AUTH_SECRET_LENGTH_MIN = 32
AUTH_FAILURES_MAX = 5
AUTH_WINDOW_SECONDS = 60.0
AUTH_TRACKED_CLIENTS_MAX = 10_000
AUTH_LOG_SECONDS = 1.0

assert 1 < KEY_SHARE_OF_FEW <= KEY_SHARE
