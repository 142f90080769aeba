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

-- name: count_free_pages
-- Pages of the file that hold nothing.
PRAGMA freelist_count;

-- name: give_pages_back
-- A row for each page that the file becomes shorter by; as many as are read.
PRAGMA incremental_vacuum;

-- name: optimize
-- Refresh the planner's statistics where it is worth it.
PRAGMA optimize;
