"""Bounds of workers that report to the server: the size of a report, how many are known, and for how long."""

from forq_trio.model.access.limits import KEY_SHARE
from forq_trio.model.bounds.units import KIB, MIB, MINUTE_MS, SECOND_MS

# The server's secret may use all of these. BYTES: in memory, as `known_workers` estimates them; an answer with all
# workers is no larger.
WORKERS_MAX = 2_000
WORKERS_PER_KEY_MAX = WORKERS_MAX // KEY_SHARE
WORKERS_BYTES_MAX = 8 * MIB
WORKERS_BYTES_PER_KEY_MAX = WORKERS_BYTES_MAX // KEY_SHARE

# A report. QUEUE_HOLDS: messages in process that it names of a queue; HOLDS: that are kept of all its queues.
WORKER_REPORT_BYTES_MAX = 512 * KIB
WORKER_QUEUES_MAX = 64
WORKER_QUEUE_HOLDS_MAX = 100
WORKER_HOLDS_MAX = 500
WORKER_NAME_LENGTH_MAX = 128
WORKER_HOST_LENGTH_MAX = 255
WORKER_VERSION_LENGTH_MAX = 64
PROGRESS_PERCENT_MAX = 100
PROGRESS_TEXT_LENGTH_MAX = 80
WORKER_COUNT_MAX = 10**15  # slots, busy and handled; no sum of them leaves 64 bits

# Withdrawn messages. NAMED: of one batch and queue, more are not named; KEPT: the latest, in memory.
WITHDRAWALS_NAMED_MAX = 100
WITHDRAWALS_KEPT_MAX = 1_000

# SILENT: nothing was heard for so long. GONE: how long it is listed at least. RATE: the length of "a minute" in rates.
WORKER_REPORT_SECONDS = 5
WORKER_SILENT_MS = 15 * SECOND_MS
WORKER_GONE_MS = MINUTE_MS
WORKER_RATE_MS = MINUTE_MS
WORKER_SAMPLES_MAX = 16
WORKER_TIME_MS_MAX = 253_402_300_799_999  # the end of the year 9999

assert WORKER_REPORT_SECONDS * SECOND_MS < WORKER_SILENT_MS < WORKER_GONE_MS
assert WORKER_SAMPLES_MAX * WORKER_REPORT_SECONDS * SECOND_MS > WORKER_RATE_MS
assert WORKER_QUEUE_HOLDS_MAX <= WORKER_HOLDS_MAX
assert WITHDRAWALS_NAMED_MAX < WITHDRAWALS_KEPT_MAX
