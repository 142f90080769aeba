-- The statements of readers about the two logs. SQLite makes the lines itself, so that no other thread waits meanwhile.
--
-- The order of kinds is that of KINDS in model/events.py. Values of events are cast because those of a damaged message
-- may be of any type.

-- name: history_ends
-- The ids that are kept, except those of queues whose history was purged: behind what retention removed, and highest.
SELECT gone + 1, max(last, coalesce((SELECT max(id) FROM history), 0)) FROM history_ends;

-- name: history_next
-- The first id of the history, of a queue or (NULL) of all, above one.
SELECT CASE WHEN ?2 IS NULL THEN (SELECT min(id) FROM history WHERE id > ?1)
            ELSE (SELECT min(id) FROM history INDEXED BY history_queue WHERE queue = ?2 AND id > ?1) END;

-- name: find_finished
-- The newest finished messages of a queue that match, of the first so many; the content is looked at last.
WITH scanned AS (
    SELECT id FROM history INDEXED BY history_queue WHERE queue = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3
)
SELECT history.id
FROM scanned CROSS JOIN history ON history.id = scanned.id
WHERE (?5 IS NULL OR outcome = ?5)
  AND (?6 IS NULL OR reason = ?6)
  AND (?7 IS NULL OR finished_at >= ?7)
  AND (?8 IS NULL OR finished_at <= ?8)
  AND (?9 IS NULL OR coalesce(last_error, '') = ?9)
  AND (?12 IS NULL OR error_key = ?12)
  AND (?10 IS NULL OR NOT EXISTS (
      SELECT 1 FROM json_each(?10) AS wanted WHERE NOT EXISTS (
          SELECT 1 FROM json_each(iif(json_valid(attributes), attributes, '{}')) AS had
          WHERE had.key = wanted.key AND had.value = wanted.value)))
  AND (?11 IS NULL OR instr(content, ?11) > 0)
LIMIT ?4;

-- name: scanned_finished
-- How many finished messages of a queue a search looked at, and the oldest of them.
SELECT count(*), min(id) FROM (
    SELECT id FROM history INDEXED BY history_queue WHERE queue = ? AND id < ? AND id > ? ORDER BY id DESC LIMIT ?
) AS scanned;

-- name: finished_below
-- Whether a queue has finished messages below an id.
SELECT max(id) FROM history INDEXED BY history_queue WHERE queue = ? AND id < ?;

-- name: count_finished
-- How many finished messages of a queue are kept: it is only shortened at its old end, so their numbers have no gaps.
SELECT (SELECT number FROM history INDEXED BY history_queue WHERE queue = ?1 ORDER BY id DESC LIMIT 1)
     - (SELECT number FROM history INDEXED BY history_queue WHERE queue = ?1 ORDER BY id LIMIT 1) + 1;

-- columns: finished_message
-- The members of FinishedMessage in their order.
id, message_id, queue, seq, outcome, reason, finished_at, content, attempts, priority, received_at,
first_received_at, last_error, attributes, group_id, failure_reason, source_queue, source_attempts,
dead_lettered_at, failures, bytes, key, kind, result, kept_until;

-- name: finished_by_id
-- One finished message by its id in the history.
SELECT $finished_message FROM history WHERE id = ?;

-- name: finished
-- One finished message of a queue by its own id.
SELECT $finished_message FROM history INDEXED BY history_message WHERE message_id = ? AND queue = ?;

-- name: event_range
-- The ids of the oldest and the newest event.
SELECT min(id), (SELECT max(id) FROM events) FROM events;

-- columns: event_line
-- A MessageEvent as a line of NDJSON, a value for each member in its order.
json_object(
    'id', id, 'at', CAST(at AS INTEGER),
    'kind', CASE kind WHEN 0 THEN 'produced' WHEN 1 THEN 'delivered' WHEN 2 THEN 'acked' WHEN 3 THEN 'nacked'
        WHEN 4 THEN 'released' WHEN 5 THEN 'extended' WHEN 6 THEN 'lease_expired' WHEN 7 THEN 'dead_lettered'
        WHEN 8 THEN 'requeued' WHEN 9 THEN 'expired' WHEN 11 THEN 'cancelled' WHEN 12 THEN 'updated'
        ELSE 'deleted' END,
    'queue', CAST(queue AS TEXT), 'messageId', CAST(message_id AS TEXT), 'sequence', CAST(seq AS INTEGER),
    'attempt', CAST(attempt AS INTEGER), 'reason', CAST(reason AS TEXT), 'target', CAST(target AS TEXT),
    'receivedAt', CAST(received_at AS INTEGER), 'durationMs', CAST(duration_ms AS INTEGER),
    'bytes', CAST(bytes AS INTEGER)) || char(10);

-- name: event_lines
-- The next events, of a queue or (NULL) of all: how many, the id of the last one, and all of them as NDJSON.
SELECT count(*), max(id), CAST(group_concat($event_line, '') AS BLOB)
FROM (SELECT * FROM events WHERE id > ?1 AND id <= ?2 AND (?3 IS NULL OR queue = ?3) ORDER BY id LIMIT ?4);

-- name: message_events
-- The latest events of a message as NDJSON, if one of them is of this queue.
SELECT CAST(group_concat($event_line, '') AS BLOB)
FROM (SELECT * FROM events WHERE message_id = ?1 AND id >= (SELECT min(id) FROM (
    SELECT id FROM events WHERE message_id = ?1 ORDER BY id DESC LIMIT ?3)) ORDER BY id)
WHERE EXISTS (SELECT 1 FROM events WHERE message_id = ?1 AND ?2 IN (queue, target));
