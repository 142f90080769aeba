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
-- How many pages of the file are free.
PRAGMA freelist_count;

-- name: give_pages_back
-- Shorten the file by one page for each row that is read.
PRAGMA incremental_vacuum;

-- name: optimize
-- Refresh the planner's statistics where that is worthwhile.
PRAGMA optimize;
