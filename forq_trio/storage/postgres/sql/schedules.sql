-- Statements about schedules that differ for PostgreSQL from relational/sql/schedules.sql.

-- name: schedule_of_queue
-- A schedule whose runs name this queue.
SELECT name FROM schedules WHERE $1 IN (definition::json ->> 'queue', definition::json ->> 'deadLetterQueue') LIMIT 1;

-- name: due_schedule_of
-- The schedule of a token that is due for the longest time; NULL: of the server's secret. IS takes no index here.
SELECT id, name FROM (
    (SELECT id, name FROM schedules WHERE made_by = $1 AND due_at <= $2 ORDER BY due_at, name LIMIT 1)
    UNION ALL
    (SELECT id, name FROM schedules WHERE made_by IS NULL AND $1 IS NULL AND due_at <= $2 ORDER BY due_at, name LIMIT 1)
) AS found LIMIT 1;
