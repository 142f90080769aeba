-- Exports of queues and looks at publications, on the read-only connections. The lines are made here: SQLite runs
-- without the interpreter lock.

-- name: export_end
-- The last message of a page: at most so many, and so many bytes, with so many for each line besides; at least one.
SELECT max(seq) FROM (
    SELECT seq, bytes, sum(bytes + ?6) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS sum_bytes FROM (
        SELECT seq, bytes FROM messages INDEXED BY messages_queue
        WHERE queue = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4))
WHERE sum_bytes <= max(?5, bytes + ?6);

-- name: export_lines
-- The messages between two sequences, as lines of JSON.
SELECT CAST(group_concat(json_object(
    'id', id, 'queue', queue, 'sequence', seq, 'content', content, 'receivedAt', received_at, 'attempts', attempts,
    'priority', priority, 'group', nullif(group_id, ''),
    'attributes', json(iif(json_valid(attributes), attributes, NULL)),
    'state', CASE status WHEN 0 THEN 'ready' WHEN 1 THEN 'processing' WHEN 2 THEN 'failed' WHEN 3 THEN 'delayed'
             ELSE 'held' END) || char(10), '') AS BLOB)
FROM (SELECT * FROM messages INDEXED BY messages_queue WHERE queue = ? AND seq > ? AND seq <= ? ORDER BY seq);

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
