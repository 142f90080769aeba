-- The history, read.

-- name: history_ends
-- The ids that are kept, except those of queues whose history was purged: behind what retention removed, and highest.
SELECT gone + 1, max(last, coalesce((SELECT max(id) FROM history), 0)) FROM history_ends;

-- name: history_page
-- Finished messages with ids between two, oldest first, as lines of JSON; how many, and the last id.
WITH RECURSIVE page (id, number, size) AS (
    SELECT id, 1, bytes + ?5 FROM (SELECT id, bytes FROM history WHERE id > ?1 ORDER BY id LIMIT 1)
    WHERE id <= ?2
    UNION ALL
    SELECT history.id, page.number + 1, page.size + history.bytes + ?5
    FROM page CROSS JOIN history ON history.id = (SELECT id FROM history WHERE id > page.id ORDER BY id LIMIT 1)
    WHERE history.id <= ?2 AND page.number < ?3 AND page.size + history.bytes + ?5 <= ?4
)
SELECT CAST(group_concat(line, '') AS BLOB), count(*), max(id) FROM (
    SELECT page.id, '{"id":' || json_quote(message_id) || ',"queue":' || json_quote(queue) || ',"sequence":' || seq
        || ',"receivedAt":' || received_at || ',"attempts":' || attempts || ',"priority":' || priority
        || iif(coalesce(group_id, '') = '', '', ',"group":' || json_quote(group_id))
        || iif(json_valid(attributes), ',"attributes":' || attributes, '')
        || ',"historyId":' || page.id || ',"outcome":' || json_quote(outcome)
        || iif(reason IS NULL, '', ',"reason":' || json_quote(reason)) || ',"finishedAt":' || finished_at
        || ',"content":' || json_quote(content) || '}' || char(10) AS line
    FROM page CROSS JOIN history ON history.id = page.id
);

-- name: history_page_of_queue
-- history_page, of one queue.
WITH RECURSIVE page (id, number, size) AS (
    SELECT id, 1, bytes + ?5 FROM (
        SELECT id, bytes FROM history INDEXED BY history_queue WHERE queue = ?6 AND id > ?1 ORDER BY id LIMIT 1
    )
    WHERE id <= ?2
    UNION ALL
    SELECT history.id, page.number + 1, page.size + history.bytes + ?5
    FROM page
    CROSS JOIN history ON history.id = (
        SELECT id FROM history INDEXED BY history_queue WHERE queue = ?6 AND id > page.id ORDER BY id LIMIT 1
    )
    WHERE history.id <= ?2 AND page.number < ?3 AND page.size + history.bytes + ?5 <= ?4
)
SELECT CAST(group_concat(line, '') AS BLOB), count(*), max(id) FROM (
    SELECT page.id, '{"id":' || json_quote(message_id) || ',"queue":' || json_quote(queue) || ',"sequence":' || seq
        || ',"receivedAt":' || received_at || ',"attempts":' || attempts || ',"priority":' || priority
        || iif(coalesce(group_id, '') = '', '', ',"group":' || json_quote(group_id))
        || iif(json_valid(attributes), ',"attributes":' || attributes, '')
        || ',"historyId":' || page.id || ',"outcome":' || json_quote(outcome)
        || iif(reason IS NULL, '', ',"reason":' || json_quote(reason)) || ',"finishedAt":' || finished_at
        || ',"content":' || json_quote(content) || '}' || char(10) AS line
    FROM page CROSS JOIN history ON history.id = page.id
);

-- name: history_next
-- The first id of the history above one.
SELECT min(id) FROM history WHERE id > ?;

-- name: history_next_of_queue
-- The first id of the history of a queue above one.
SELECT min(id) FROM history INDEXED BY history_queue WHERE queue = ? AND id > ?;

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
    SELECT id FROM history INDEXED BY history_queue WHERE queue = ? AND id < ? AND id > ? ORDER BY id DESC LIMIT ?);

-- name: finished_below
-- Whether a queue has finished messages below an id.
SELECT max(id) FROM history INDEXED BY history_queue WHERE queue = ? AND id < ?;

-- name: count_finished
-- How many finished messages of a queue are kept: it is only shortened at its old end, so their numbers have no gaps.
SELECT (SELECT number FROM history INDEXED BY history_queue WHERE queue = ?1 ORDER BY id DESC LIMIT 1)
     - (SELECT number FROM history INDEXED BY history_queue WHERE queue = ?1 ORDER BY id LIMIT 1) + 1;

-- name: finished_by_id
-- One finished message by its id in the history.
SELECT id, message_id, queue, seq, outcome, reason, finished_at, content, attempts, priority, received_at,
       first_received_at, last_error, attributes, group_id, failure_reason, source_queue, source_attempts,
       dead_lettered_at, failures, bytes
FROM history WHERE id = ?;

-- name: finished
-- One finished message of a queue by its own id.
SELECT id, message_id, queue, seq, outcome, reason, finished_at, content, attempts, priority, received_at,
       first_received_at, last_error, attributes, group_id, failure_reason, source_queue, source_attempts,
       dead_lettered_at, failures, bytes
FROM history INDEXED BY history_message WHERE message_id = ? AND queue = ?;
