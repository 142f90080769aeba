-- Snapshots of the read-only connections.

-- name: begin_reading
-- Begin a snapshot: the next statements see one state.
BEGIN;

-- name: end_reading
-- End the snapshot.
ROLLBACK;
