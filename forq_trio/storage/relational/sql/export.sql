-- Exports of queues and of the history, and reads of publications, on the read-only connections. The lines are made
-- here: SQLite runs without the interpreter lock.

-- name: export_end
-- The last message of a page: at most so many, and so many bytes, with so many for each line besides; at least one.
SELECT max(seq) FROM (
    SELECT seq, bytes, sum(bytes + ?6) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS sum_bytes FROM (
        SELECT seq, bytes FROM messages INDEXED BY messages_queue
        WHERE queue = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4))
WHERE sum_bytes <= max(?5, bytes + ?6);

-- columns: origin
-- The members that only a dead letter's line has, with a comma before them.
iif(source_queue IS NULL, '', ',"sourceQueue":' || json_quote(source_queue) || ',"sourceAttempts":'
    || json_quote(source_attempts) || ',"failureReason":' || json_quote(failure_reason) || ',"deadLetteredAt":'
    || json_quote(dead_lettered_at));

-- name: export_lines
-- The messages between two sequences, as lines of JSON.
SELECT CAST(group_concat(rtrim(json_object(
    'id', id, 'queue', queue, 'sequence', seq, 'content', content, 'receivedAt', received_at, 'attempts', attempts,
    'priority', priority, 'group', nullif(group_id, ''),
    'attributes', json(iif(json_valid(attributes), attributes, NULL)),
    'state', CASE status WHEN 0 THEN 'ready' WHEN 1 THEN 'processing' WHEN 2 THEN 'failed' WHEN 3 THEN 'delayed'
             ELSE 'held' END), '}') || $origin || '}' || char(10), '') AS BLOB)
FROM (SELECT * FROM messages INDEXED BY messages_queue WHERE queue = ? AND seq > ? AND seq <= ? ORDER BY seq);

-- name: history_lines
-- Finished messages, of a queue or (NULL) of all, with ids between two, as NDJSON; how many, and the last id.
WITH RECURSIVE page (id, number, size) AS (
    SELECT ?1, 0, 0
    UNION ALL
    SELECT history.id, page.number + 1, page.size + history.bytes + ?5
    FROM page CROSS JOIN history ON history.id = CASE WHEN ?6 IS NULL
        THEN (SELECT id FROM history WHERE id > page.id ORDER BY id LIMIT 1)
        ELSE (SELECT id FROM history INDEXED BY history_queue WHERE queue = ?6 AND id > page.id
              ORDER BY id LIMIT 1) END
    WHERE history.id <= ?2 AND page.number < ?3 AND (page.size + history.bytes + ?5 <= ?4 OR page.number = 0)
)
SELECT CAST(group_concat(line, '') AS BLOB), count(*), max(id) FROM (
    SELECT page.id, '{"id":' || json_quote(message_id) || ',"queue":' || json_quote(queue) || ',"sequence":' || seq
        || ',"receivedAt":' || received_at || ',"attempts":' || attempts || ',"priority":' || priority
        || iif(coalesce(group_id, '') = '', '', ',"group":' || json_quote(group_id))
        || iif(json_valid(attributes), ',"attributes":' || attributes, '')
        || iif(key IS NULL, '', ',"key":' || json_quote(key) || ',"kind":' || json_quote(kind)) || $origin
        || ',"historyId":' || page.id || ',"outcome":' || json_quote(outcome)
        || iif(reason IS NULL, '', ',"reason":' || json_quote(reason)) || ',"finishedAt":' || finished_at
        || ',"content":' || json_quote(content) || '}' || char(10) AS line
    FROM page CROSS JOIN history ON history.id = page.id
    WHERE page.number > 0
);

-- name: exported_behind
-- Whether a queue has a message between two sequences.
SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_queue WHERE queue = ? AND seq > ? AND seq <= ?);

-- name: newest
-- The newest message of a queue.
SELECT max(seq) FROM messages INDEXED BY messages_queue WHERE queue = ?;

-- name: export_bound
-- The message so many places behind the first one after a sequence.
SELECT seq FROM messages INDEXED BY messages_queue WHERE queue = ? AND seq > ? ORDER BY seq LIMIT 1 OFFSET ?;

-- name: apps_named
-- The apps of a name.
SELECT number, app, version, published_at, once, made_by, queues FROM apps WHERE app = ? ORDER BY number;

-- name: list_apps
-- Apps in the order in which they published last.
SELECT number, app, version, published_at, once, made_by, queues FROM apps WHERE number > ? ORDER BY number LIMIT ?;
