"""Bounds of server processes that share a database: the size of a report, how many are listed, and for how long."""

from forq_trio.model.bounds.units import KIB, MINUTE_MS, SECOND_MS

# SILENT: nothing was heard for so long. LOST: for so long that it is a problem. GONE: for so long that it is no longer
# listed.
PROCESS_REPORT_SECONDS = 5
PROCESS_SILENT_MS = 15 * SECOND_MS
PROCESS_LOST_MS = 30 * SECOND_MS
PROCESS_GONE_MS = 5 * MINUTE_MS

# STATE: a report as it is stored; the table has the same bound.
PROCESSES_MAX = 100
PROCESS_STATE_BYTES_MAX = 16 * KIB
PROCESS_NAME_LENGTH_MAX = 128
PROCESS_VERSION_LENGTH_MAX = 64
PROCESS_JOBS_MAX = 20
PROCESS_JOB_LENGTH_MAX = 40
PROCESS_RESULT_LENGTH_MAX = 80
PROCESS_SECRETS_COMPARED_MAX = 8  # at each report: others wait for the next one

# How often a process reads the state of the database, how many snapshots it reads, and when an old one is a problem.
DATABASE_LOOK_SECONDS = 30
SNAPSHOT_KEEPERS_MAX = 100
SNAPSHOT_HELD_MS = MINUTE_MS

assert 2 * PROCESS_REPORT_SECONDS * SECOND_MS < PROCESS_SILENT_MS < PROCESS_LOST_MS < PROCESS_GONE_MS
# 6 by JSON's escapes, 4 by UTF-8; 640 and 100 for numbers, names of members, and the check of the secret.
assert (
    6 * (PROCESS_NAME_LENGTH_MAX + PROCESS_VERSION_LENGTH_MAX)
    + PROCESS_JOBS_MAX * (2 * PROCESS_JOB_LENGTH_MAX + 4 * PROCESS_RESULT_LENGTH_MAX + 100)
    + 640
    < PROCESS_STATE_BYTES_MAX
)
