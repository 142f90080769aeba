-- Schedules and their runs: on the write connection, and for readers.

-- columns: schedule
-- A schedule as `read_schedule` reads it.
name, definition, made_at, made_by, updated_at, paused_at, paused_by, next_run, due_at, last_nominal, catching_up,
last_sequence, runs;

-- name: load_schedules
-- How many schedules each token made; NULL: the server's secret.
SELECT made_by, count(*) FROM schedules GROUP BY made_by;

-- name: next_schedule
-- When the next run is due; no row for never.
SELECT due_at FROM schedules WHERE due_at IS NOT NULL ORDER BY due_at, name LIMIT 1;

-- name: due_schedule
-- The schedule that is due for the longest time. It is not read yet: it may be damaged.
SELECT id, name FROM schedules WHERE due_at <= ? ORDER BY due_at, name LIMIT 1;

-- name: due_schedule_of
-- The same of those that one token made; NULL: the server's secret.
SELECT id, name FROM schedules INDEXED BY schedules_made_by WHERE made_by IS ? AND due_at <= ?
ORDER BY due_at, name LIMIT 1;

-- name: next_maker
-- The token, by name, that comes after this one among those that made schedules.
SELECT made_by FROM schedules WHERE made_by > ? ORDER BY made_by LIMIT 1;

-- name: read_schedule
-- A schedule by its id.
SELECT $schedule FROM schedules WHERE id = ?;

-- name: retry_schedule
-- Set the time at which a schedule that cannot be run is tried again.
UPDATE schedules SET due_at = ? WHERE id = ?;

-- name: find_schedule
-- A schedule by name.
-- rows of: one thing
SELECT id, $schedule FROM schedules WHERE name = ?;

-- name: save_schedule
-- Store a new schedule, or replace the one of the same name.
INSERT INTO schedules ($schedule) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, updated_at = excluded.updated_at,
    paused_at = excluded.paused_at, paused_by = excluded.paused_by, next_run = excluded.next_run,
    due_at = excluded.due_at, catching_up = excluded.catching_up;

-- name: change_schedule
-- Store a schedule that was paused or resumed, or that ran.
UPDATE schedules SET paused_at = ?, paused_by = ?, next_run = ?, due_at = ?, last_nominal = ?, catching_up = ?,
    last_sequence = ?, runs = ?
WHERE id = ?;

-- name: add_run
-- Store the result of a run. The number of a record that moves behind it is free.
INSERT INTO schedule_runs (schedule_id, number, run) VALUES (?, ?, ?)
ON CONFLICT (schedule_id, number) DO UPDATE SET run = excluded.run;

-- name: forget_runs
-- Forget the runs up to a number.
DELETE FROM schedule_runs WHERE schedule_id = ? AND number <= ?;

-- name: delete_schedule
-- Remove a schedule.
DELETE FROM schedules WHERE id = ?;

-- name: runs_of_schedule
-- The latest runs of a schedule, newest first.
-- rows of: one thing
SELECT run FROM schedule_runs WHERE schedule_id = ? ORDER BY number DESC LIMIT ?;

-- name: id_in_queue
-- The id of a message that is still in this queue.
SELECT id FROM messages WHERE seq = ? AND queue = ?;

-- name: schedule_of_queue
-- A schedule whose runs name this queue: it reads them all, so it is for rare questions.
SELECT name FROM schedules WHERE definition ->> 'queue' = ?1 OR definition ->> 'deadLetterQueue' = ?1 LIMIT 1;

-- name: list_schedules
-- Schedules by name, behind this one, each with its last run.
-- rows: the first may be enough
SELECT (SELECT run FROM schedule_runs WHERE schedule_id = schedules.id ORDER BY number DESC LIMIT 1),
       $schedule
FROM schedules WHERE name > ? ORDER BY name LIMIT ?;
