"""Bounds of database files, the write-ahead log, backups, disk space and reads."""

from forq_trio.model.bounds.units import KIB, MIB

# Checkpoints of the write-ahead log, in pages of 4 KiB.
LOG_PAGE_BYTES = 4 * KIB
CHECKPOINT_PAGES = 2_000
CHECKPOINT_PAUSE_PAGES = 16_000
CHECKPOINT_REST_PAGES = 100
CHECKPOINT_FULL_DISK_PAGES = 200
CHECKPOINT_PASSES_MAX = 8
CHECKPOINT_IDLE_SECONDS = 5.0
# an idle log that is longer is shortened; below that it stays, because overwriting is quicker than appending
LOG_KEPT_BYTES = 96 * MIB
WRITE_BACK_PAGES_MIN = 200  # fewer are synced at once
WRITE_BACK_BYTES = MIB
WRITE_BACK_RANGES_MAX = 256

# SQLite files.
PAGE_CACHE_BYTES = 64 * MIB
LOG_BYTES_KEPT_MAX = 64 * MIB
BUSY_WAIT_MS_MAX = 1_000
ANALYSIS_ROWS_MAX = 1_000
BACKUP_STEP_PAGES = 256
BACKUP_SYNC_PAGES = 4_096
BACKUP_CHECK_STEPS = 1_000
CHECK_PROBLEMS_MAX = 20
LOG_INDEX_BYTES = 512 * KIB
# Backups that the server makes.
BACKUP_EVERY_HOURS_MAX = 24 * 366
BACKUP_KEEP_DEFAULT = 7
BACKUP_KEEP_MAX = 1_000
BACKUP_RETRY_SECONDS = 600.0
BACKUP_LOOK_SECONDS_MAX = 60.0

# Disk space: the size of the reserve file, and as much again that sends leave free. Below SHORT the log starts over
# early.
DISK_RESERVE_MIB_DEFAULT = 64
DISK_RESERVE_MIB_MIN = 8  # where there is one
DISK_RESERVE_MIB_MIN_WITH_HISTORY = 32  # an ack copies the content before it frees its pages
DISK_RESERVE_MIB_MAX = 1024 * 1024
DISK_LOOK_SECONDS = 2.0
DISK_LOOK_SHARE = 4
DISK_REOPEN_BYTES = MIB
DISK_SHORT_BYTES = 128 * MIB
FILES_LOOK_SECONDS = 2.0

# Readers.
LIST_PAGE_MAX = 100
LIST_PAGE_DEFAULT = 50
PREVIEW_LENGTH_MAX = 200
# characters before a match from which a preview begins near it, and how many of them it shows
PREVIEW_MATCH_LATE = 150
PREVIEW_LEAD = 50
ERROR_GROUPS_MAX = 200
ERROR_TEXTS_MAX = 3
WAITS_OF_A_STEP_MAX = 64  # for a database over the network, while the gate is held: 0.13 s if it is 2 ms away
READ_DEADLINE_SECONDS = 5.0
READ_INTERRUPT_SECONDS = 0.01
READER_POOL_SIZE_MAX = 64
READS_WAITING_MAX = 500  # of one caller; the same bound holds for long reads
LONG_READS_WAITING_MAX = 50
BROWSE_PAGE_MAX = 100
BROWSE_PAGE_BYTES_MAX = 4 * MIB  # of content, attributes and reasons; a page has at least one message
QUEUES_PAGE_MAX = 1_000
EXPORT_PAGE_MAX = 10_000
EXPORT_PARTITIONS_MAX = 1_000
EXPORT_PARTITIONS_DEFAULT = 8
# A page of `forq move` is one commit. BYTES: it ends with the row that reaches them; FETCH: read ahead.
MOVE_PAGE_ROWS_MAX = 1_000
MOVE_PAGE_BYTES = 4 * MIB
MOVE_FETCH_ROWS = 16
MOVE_KEYS_TOLD_MAX = 10

assert LIST_PAGE_DEFAULT <= LIST_PAGE_MAX
assert PREVIEW_LEAD <= PREVIEW_MATCH_LATE < PREVIEW_LENGTH_MAX
assert min(DISK_RESERVE_MIB_DEFAULT * MIB, DISK_SHORT_BYTES) >= CHECKPOINT_PAUSE_PAGES * LOG_PAGE_BYTES
assert BACKUP_STEP_PAGES <= BACKUP_SYNC_PAGES
assert BACKUP_KEEP_DEFAULT <= BACKUP_KEEP_MAX
assert LOG_KEPT_BYTES > CHECKPOINT_PAUSE_PAGES * LOG_PAGE_BYTES
assert CHECKPOINT_FULL_DISK_PAGES * LOG_PAGE_BYTES < DISK_REOPEN_BYTES
assert DISK_LOOK_SHARE * CHECKPOINT_PAGES * LOG_PAGE_BYTES <= DISK_SHORT_BYTES
assert CHECKPOINT_REST_PAGES < WRITE_BACK_PAGES_MIN < CHECKPOINT_PAGES < CHECKPOINT_PAUSE_PAGES
