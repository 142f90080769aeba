-- The statements of the write connection about the two logs. Each touches rows by a key or an index only.

-- name: keep_finished
-- Copy a message that is about to be removed.
INSERT INTO history (id, seq, message_id, queue, outcome, reason, finished_at, attempts, priority, received_at,
                     first_received_at, bytes, number, total, group_id, attributes, failure_reason, source_queue,
                     source_attempts, dead_lettered_at, last_error, error_key, failures, content, key, kind)
SELECT ?1, seq, id, queue, ?2, ?3, ?4, attempts, priority, received_at, first_received_at, bytes, ?5, ?6, group_id,
       attributes, failure_reason, source_queue, source_attempts, dead_lettered_at, last_error, error_key, failures, content,
       iif(kind IS NULL, NULL, (SELECT own_key FROM message_keys WHERE message = seq)), kind
FROM messages WHERE seq = ?7;

-- name: load_history
-- The history of every queue: skips along the index from queue to queue, and reads both ends of each.
WITH RECURSIVE queues (queue) AS (
    SELECT (SELECT queue FROM history ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT history.queue FROM history WHERE history.queue > queues.queue ORDER BY history.queue LIMIT 1)
    FROM queues WHERE queues.queue IS NOT NULL
)
SELECT queues.queue, newest.number, newest.total, newest.number - oldest.number + 1,
       newest.total - oldest.total + oldest.bytes
FROM queues
CROSS JOIN history AS newest
    ON newest.id = (SELECT id FROM history INDEXED BY history_queue WHERE history.queue = queues.queue
                    ORDER BY id DESC LIMIT 1)
CROSS JOIN history AS oldest
    ON oldest.id = (SELECT id FROM history INDEXED BY history_queue WHERE history.queue = queues.queue
                    ORDER BY id LIMIT 1)
WHERE queues.queue IS NOT NULL;

-- name: load_history_ends
-- The last id that retention removed, and the highest id ever given.
SELECT gone, max(last, coalesce((SELECT max(id) FROM history), 0)) FROM history_ends;

-- name: save_history_ends
-- Store the last id that retention removed, and the highest id ever given.
UPDATE history_ends SET gone = ?, last = ?;

-- name: oldest_finished
-- The oldest finished messages, from the first id that may be there: PostgreSQL reads those before that were removed.
SELECT id, queue, bytes, finished_at, kept_until FROM history WHERE id >= ? ORDER BY id LIMIT ?;

-- name: oldest_finished_of_queue
-- The oldest finished messages of a queue, up to an id.
-- rows of: one thing
SELECT id, queue, bytes, finished_at, kept_until FROM history INDEXED BY history_queue
WHERE queue = ? AND id <= ? ORDER BY id LIMIT ?;

-- name: forget_finished
-- Remove finished messages.
DELETE FROM history WHERE id IN (SELECT value FROM json_each(?));

-- name: insert_event
-- Store an event.
INSERT INTO events (id, at, kind, queue, seq, message_id, attempt, reason, target, received_at, duration_ms, bytes, total)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: first_event
-- The oldest event, from the first id that may be there, with the bytes of those before it.
SELECT id, total FROM events WHERE id >= ? ORDER BY id LIMIT 1;

-- name: last_event
-- The newest event, with what its own bytes follow from.
SELECT id, total, queue, reason, target FROM events WHERE id > 0 ORDER BY id DESC LIMIT 1;

-- name: first_event_to_keep
-- Of the oldest events, the first that is new enough while those from it on are not too many bytes.
SELECT id FROM (SELECT id, at, total FROM events WHERE id >= ?6 ORDER BY id LIMIT ?1) AS scanned
WHERE (at BETWEEN ?2 AND ?5 AND total >= ?3) OR id = ?4 LIMIT 1;

-- name: delete_events
-- Remove the events from the first one up to one that stays.
DELETE FROM events WHERE id >= ? AND id < ?;
