-- Statements of the write connection that only SQLite has.

-- name: begin
-- Take the write lock at once: there is no second writer to wait for.
BEGIN IMMEDIATE;

-- name: commit
-- Make the batch durable.
COMMIT;

-- name: rollback
-- Undo the batch.
ROLLBACK;

-- name: end_leases
-- End the leases with a mark of another process: what follows is what follows the end of any lease.
UPDATE messages INDEXED BY messages_in_flight SET lease_until = processing_started_at
WHERE status = 1 AND receipt BETWEEN ?1 AND ?2 AND receipt NOT BETWEEN ?3 AND ?3 + ?4 - 1;

-- name: count_free_pages
-- How many pages of the file are free.
PRAGMA freelist_count;

-- name: give_pages_back
-- Shorten the file by one page for each row that is read.
PRAGMA incremental_vacuum;

-- name: optimize
-- Refresh the planner's statistics where that is worthwhile.
PRAGMA optimize;
