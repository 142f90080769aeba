-- The statements of readers about lifecycle events. SQLite makes the lines itself: meanwhile no thread waits for it.
--
-- The order of kinds is that of KINDS in storage/lifecycle.py. Values are cast because those of a damaged message may be
-- of any type.

-- name: event_range
-- The ids of the oldest and the newest event.
SELECT min(id), (SELECT max(id) FROM events) FROM events;

-- name: event_lines
-- The next events, of a queue or (NULL) of all: how many, the id of the last one, and all of them as NDJSON.
SELECT count(*), max(id), CAST(group_concat(json_object(
        'id', id, 'at', CAST(at AS INTEGER),
        'kind', CASE kind WHEN 0 THEN 'produced' WHEN 1 THEN 'delivered' WHEN 2 THEN 'acked' WHEN 3 THEN 'nacked'
            WHEN 4 THEN 'released' WHEN 5 THEN 'extended' WHEN 6 THEN 'lease_expired' WHEN 7 THEN 'dead_lettered'
            WHEN 8 THEN 'requeued' WHEN 9 THEN 'expired' WHEN 11 THEN 'cancelled' ELSE 'deleted' END,
        'queue', CAST(queue AS TEXT), 'messageId', CAST(message_id AS TEXT), 'sequence', CAST(seq AS INTEGER),
        'attempt', CAST(attempt AS INTEGER), 'reason', CAST(reason AS TEXT), 'target', CAST(target AS TEXT),
        'receivedAt', CAST(received_at AS INTEGER), 'durationMs', CAST(duration_ms AS INTEGER),
        'bytes', CAST(bytes AS INTEGER)) || char(10), '') AS BLOB)
FROM (SELECT * FROM events WHERE id > ?1 AND id <= ?2 AND (?3 IS NULL OR queue = ?3) ORDER BY id LIMIT ?4);

-- name: message_events
-- The latest events of a message as NDJSON, if one of them is of this queue.
SELECT CAST(group_concat(json_object(
        'id', id, 'at', CAST(at AS INTEGER),
        'kind', CASE kind WHEN 0 THEN 'produced' WHEN 1 THEN 'delivered' WHEN 2 THEN 'acked' WHEN 3 THEN 'nacked'
            WHEN 4 THEN 'released' WHEN 5 THEN 'extended' WHEN 6 THEN 'lease_expired' WHEN 7 THEN 'dead_lettered'
            WHEN 8 THEN 'requeued' WHEN 9 THEN 'expired' WHEN 11 THEN 'cancelled' ELSE 'deleted' END,
        'queue', CAST(queue AS TEXT), 'messageId', CAST(message_id AS TEXT), 'sequence', CAST(seq AS INTEGER),
        'attempt', CAST(attempt AS INTEGER), 'reason', CAST(reason AS TEXT), 'target', CAST(target AS TEXT),
        'receivedAt', CAST(received_at AS INTEGER), 'durationMs', CAST(duration_ms AS INTEGER),
        'bytes', CAST(bytes AS INTEGER)) || char(10), '') AS BLOB)
FROM (SELECT * FROM events WHERE message_id = ?1 AND id >= (SELECT min(id) FROM (
    SELECT id FROM events WHERE message_id = ?1 ORDER BY id DESC LIMIT ?3)) ORDER BY id)
WHERE EXISTS (SELECT 1 FROM events WHERE message_id = ?1 AND ?2 IN (queue, target));
