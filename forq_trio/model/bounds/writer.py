"""Bounds of the writer and of jobs."""

from forq_trio.model.bounds.units import MIB, SECOND_MS

# The writer actor.
INBOX_CALLS_MAX = 4_096
INBOX_FULL_WAIT_SECONDS = 0.25
COMMIT_CALLS_MAX = 512
COMMIT_MESSAGES_MAX = 4_096
LONE_SEND_WEIGHT = 4
"""How many messages could be sent together in the time that one takes if it is stored alone (offered, or relayed)."""
COMMIT_BYTES_MAX = 4 * MIB  # of messages sent
COMMIT_CHANGES_MAX = 8 * COMMIT_MESSAGES_MAX
STEP_SHARE = 4  # while others call, a step of long work is cut to one part in so many
STEP_SHARE_SECONDS = 1.0  # after the last call of others
STEP_SHARE_CALLS_MAX = 64  # in a batch; with more calls, steps have their full length
STEP_BYTES_MAX = 4 * MIB
REWRITE_BYTES_MAX = MIB  # of messages that are settled, moved or freed: contents may be written again
DEFERRED_CLAIM_SECONDS = 1.0
PARKED_RECEIVERS_MAX = 20_000
RECEIVERS_OFFERED_MAX = 512
WATCHERS_AWAKE_MAX = 32  # tasks that wait for messages of a queue without a claim, or for its events
DUE_BATCH_MAX = 500
FAILED_MOVED_MAX = DUE_BATCH_MAX  # in the batch in which they fail; the others are left for a sweep
UNHOLD_READ_MAX = (
    4 * DUE_BATCH_MAX
)  # held messages of queues or groups that are read at once, to make some ready
DUE_RETRY_MS = SECOND_MS
SWEEP_BATCH_MAX = 1_000
COMMIT_INLINE_SECONDS_MAX = 0.004
CLOCK_CHECK_SECONDS_MAX = 30.0
PEERS_LOOK_SECONDS = 1.0
"""How often a process looks for changes of others to the same database even without a notice."""
PEERS_LOOK_SECONDS_POOLED = 0.1
"""The same through a connection pool, where no notice can arrive."""
WAKE_AWAITED_SECONDS = 1.0
"""For how long after the last wait an application still notifies in its transactions (model/wake_ups.py)."""
WAKE_NOTICES_MAX = 20
"""The most notices of applications in a second; above it they send none for WAKE_QUIET_SECONDS, and processes look."""
WAKE_QUIET_SECONDS = 10.0
WAKE_LOOK_SECONDS = 0.02
"""The time between looks in that case, and between getting the lock and the second look."""
WAKE_UNTOLD_SECONDS = 0.1
"""The time between looks if applications cannot be told that somebody waits."""
assert WAKE_LOOK_SECONDS < WAKE_UNTOLD_SECONDS < WAKE_AWAITED_SECONDS < WAKE_QUIET_SECONDS
REPLICA_WAIT_SECONDS = 0.2
"""How long a read waits for a replica to have what this process knows; then it goes to the primary."""
REPLICA_AWAY_SECONDS = 5.0
"""How long reads pass over a replica that cannot be used, or is behind."""
assert PEERS_LOOK_SECONDS_POOLED < PEERS_LOOK_SECONDS
assert REPLICA_WAIT_SECONDS < REPLICA_AWAY_SECONDS
STORAGE_RETRY_SECONDS = 1.0
OVERLOAD_LOG_SECONDS = 10.0

# Jobs, and logs of events.
JOB_RESTART_SECONDS_MIN = 1.0
JOB_RESTART_SECONDS_MAX = 60.0
LOG_FIELD_LENGTH_MAX = 2_000

# The process: allocations between garbage collections, and how many of a generation before the next older one.
COLLECTOR_THRESHOLDS = (50_000, 20, 50)

assert STEP_SHARE_CALLS_MAX < COMMIT_CALLS_MAX
assert COMMIT_CALLS_MAX <= INBOX_CALLS_MAX
assert RECEIVERS_OFFERED_MAX <= PARKED_RECEIVERS_MAX
assert JOB_RESTART_SECONDS_MIN <= JOB_RESTART_SECONDS_MAX
