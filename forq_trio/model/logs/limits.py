"""Bounds of the two logs: lifecycle events, and the history of finished messages."""

from forq_trio.model.bounds.units import KIB, MIB

# The two logs: lifecycle events, and the history of finished messages.
LOG_PAGE_MAX = 10_000
LOG_PAGE_DEFAULT = 1_000
RETENTION_HOURS_DEFAULT = 168
RETENTION_MIB_DEFAULT = 1_024
RETENTION_MIB_MAX = 1024 * 1024
# a log is trimmed at once when it exceeds its bound by one part in so many
RETENTION_SLACK_SHARE = 16
RETENTION_STEPS_MAX = 32  # steps that one command takes if a log is far above its bound

# The history. STEP: how many messages or bytes one command removes. LINE: a line of a page, besides the content.
HISTORY_STEP_MESSAGES = 200
HISTORY_STEP_BYTES = 512 * KIB
HISTORY_LINE_BYTES = 300
HISTORY_TRIM_SECONDS = 60.0

# Lifecycle events. SCAN: how many one read looks at.
EVENTS_HOURS_MAX = 24 * 3_660
EVENTS_TRIMMED_MAX = 1_000
EVENTS_TRIM_SECONDS = 30.0
EVENTS_SLICE = 1_000
EVENTS_SCAN_MAX = 200_000
EVENT_LINES_BYTES_MAX = 4 * MIB
MESSAGE_EVENTS_MAX = 1_000

assert LOG_PAGE_DEFAULT <= LOG_PAGE_MAX
