"""Bounds of queues, of work on dead letters, and of what the monitor shows."""

from forq_trio.model.bounds.units import DAY_MS, MIB, MINUTE_MS, SECOND_MS

# Queues. A back-off is a list of delays or a formula. CLAIM_FILTERED_MAX: messages that the claims of one batch set to
# held, move or remove. EVICTED_MAX: those that a send looks at. SET_ASIDE: due messages that could not be settled.
QUEUES_MAX = 100_000
QUEUES_LOOKED_AT_MAX = 10_000  # for one page
BACKOFF_STEPS_MAX = 100
BACKOFF_FACTOR_MAX = 100
DEAD_LETTER_STEPS_MAX = 16  # queues from a queue to the end of its dead letters
QUEUE_MESSAGES_MAX = 1_000_000_000
QUEUE_BYTES_MAX = 2**50
GROUP_IN_FLIGHT_MAX = 1_000
IN_FLIGHT_MAX = 1_000_000
RATE_COUNT_MAX = 1_000_000
RATE_PERIOD_MS_MAX = 31 * DAY_MS
CLAIM_FILTERED_MAX = 1_000
CLAIM_SCAN_MAX = 2_000  # messages that claims by attributes look at in a batch
CLAIM_SCAN_BYTES_MAX = MIB  # of their attributes
CLAIM_SCAN_PAGE = 200
CLAIM_SCANS_MAX = 10_000  # (queue, conditions) whose scans are in memory
HEADS_MAX = 10_000  # queues whose head is in memory (storage/relational/heads.py)
HEAD_MESSAGES_MAX = 512  # in the head of one queue
WHERE_LENGTH_MAX = 2_048  # characters of all names and values
EVICTED_MAX = 1_000
SET_ASIDE_MESSAGES_MAX = 10_000
SET_ASIDE_RETRY_MS = 10 * MINUTE_MS
PURGE_BATCH_MAX = 1_000
RULES_CACHED_MAX = 10_000
ROUNDS_CACHED_MAX = 100_000

# The dead-letter workbench.
MOVE_BATCH_MAX = 1_000
SEARCH_SCAN_MAX = 10_000
SEARCH_PAGE_MAX = 100
REDRIVES_RUNNING_MAX = 16
REDRIVES_REMEMBERED_MAX = 100
REDRIVE_PAGE_MAX = 50
REDRIVE_CURSOR_SECONDS = 1
REDRIVE_ERROR_LENGTH_MAX = 1_000
REDRIVE_RATE_MAX = 10_000
REDRIVE_STEPS_PER_SECOND = 10
REDRIVE_RETRIES_MAX = 5
REDRIVE_ALIVE_SECONDS = 1  # how often a walk reports that it is alive, if other processes could take over
REDRIVE_SILENT_MS = 5 * SECOND_MS  # then another process takes its task over
SEARCH_TEXT_LENGTH_MAX = 1_024
SEARCH_PAGE_DEFAULT = 50
SEARCH_AGE_MS_MAX = 3_660 * DAY_MS
SEQUENCE_MAX = 2**63 - 1

# Metrics. How many queues have a label or histograms; a queue that is gone leaves its place to one that has none.
METRIC_QUEUES_MAX = 1_000
METRIC_CONSUMERS_MAX = 100
HISTOGRAM_QUEUES_MAX = 100
METRIC_QUEUES_READ_MAX = 50

# The monitor. SERIES_QUEUES_MAX: queues that it watches, with history, health and ages. Reasons: of the nacks of a
# queue in a minute, and for how many minutes. AGES_READ_MAX: queues whose age one call reads.
SERIES_QUEUES_MAX = 2_000
NACK_REASONS_MAX = 8
NACK_REASON_LENGTH_MAX = 200
NACK_REASONS_MINUTES = 6
AGES_READ_MAX = 100

assert SEARCH_PAGE_DEFAULT <= SEARCH_PAGE_MAX <= SEARCH_SCAN_MAX
assert REDRIVES_RUNNING_MAX <= REDRIVES_REMEMBERED_MAX
assert 3 * REDRIVE_ALIVE_SECONDS * SECOND_MS < REDRIVE_SILENT_MS
assert METRIC_QUEUES_READ_MAX <= AGES_READ_MAX
assert HISTOGRAM_QUEUES_MAX <= METRIC_QUEUES_MAX < SERIES_QUEUES_MAX
