-- The statements of the write connection about lifecycle events.

-- name: insert_event
-- Store an event.
INSERT INTO events (id, at, kind, queue, seq, message_id, attempt, reason, target, received_at, duration_ms, bytes, total)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: first_event
-- The oldest event, with the bytes of those before it.
SELECT id, total FROM events WHERE id > 0 ORDER BY id LIMIT 1;

-- name: last_event
-- The newest event, with what its own bytes follow from.
SELECT id, total, queue, reason, target FROM events WHERE id > 0 ORDER BY id DESC LIMIT 1;

-- name: first_event_to_keep
-- Of the oldest events, the first that is new enough while those from it on are not too many bytes.
SELECT id FROM (SELECT id, at, total FROM events WHERE id > 0 ORDER BY id LIMIT ?1)
WHERE (at BETWEEN ?2 AND ?5 AND total >= ?3) OR id = ?4 LIMIT 1;

-- name: delete_events
-- Remove the events before this one.
DELETE FROM events WHERE id < ?;
