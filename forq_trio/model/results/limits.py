"""Bounds of results."""

from forq_trio.model.bounds.units import DAY_MS, HOUR_MS, KIB, MIB

RESULT_BYTES_MAX = 64 * KIB
RESULTS_BYTES_MAX = MIB  # that one ack stores, where its receipts share a result
RESULT_STORED_MS_DEFAULT = HOUR_MS
RESULT_STORED_MS_MAX = 7 * DAY_MS
RESULTS_STORED_MAX = 100_000  # finished messages that are stored for their results alone; then the oldest go

assert RESULT_BYTES_MAX <= RESULTS_BYTES_MAX
