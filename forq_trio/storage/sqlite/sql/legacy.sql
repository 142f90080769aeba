-- Statements of the one migration that starts from a database of Forq's own.

-- name: unknown
-- How many messages have a status that Forq's guide does not have.
SELECT count(*) FROM messages WHERE status NOT IN (0, 1, 2);

-- name: set_aside
-- Rename the old table, with its indexes, so that ours can have the name.
ALTER TABLE messages RENAME TO forq_messages;

-- name: copy
-- Every message, in the order Forq claims them. Forq's receipt is when it claimed the message (F4). Only ids are sorted: contents may be larger than memory.
INSERT INTO messages (
    seq, id, queue, is_dlq, status, attempts, process_after, processing_started_at, failure_reason,
    received_at, updated_at, expires_after, position, lease_until, receipt, bytes, content
)
SELECT
    arrival.seq, old.id, old.queue, substr(old.queue, -4) = '-dlq',
    CASE WHEN old.status = 0 AND old.process_after > unixepoch('subsec') * 1000 THEN 3 ELSE old.status END,
    old.attempts, old.process_after, old.processing_started_at, old.failure_reason,
    old.received_at, old.updated_at, old.expires_after, arrival.seq,
    CASE WHEN old.status = 1 THEN coalesce(old.processing_started_at, old.updated_at) + :lease_ms END,
    CASE WHEN old.status = 1 THEN old.processing_started_at END,
    octet_length(old.content), old.content
FROM (SELECT id, row_number() OVER (ORDER BY received_at, id) AS seq FROM forq_messages) AS arrival
CROSS JOIN forq_messages AS old ON old.id = arrival.id;

-- name: lost
-- How many messages were not copied.
SELECT (SELECT count(*) FROM forq_messages) - (SELECT count(*) FROM messages);

-- name: count
-- Compute the counts of every queue from the table.
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, bytes, updated_at, last_seq)
SELECT
    queue,
    count(*) FILTER (WHERE status = 0),
    count(*) FILTER (WHERE status = 1),
    count(*) FILTER (WHERE status = 2),
    count(*) FILTER (WHERE status = 3),
    sum(bytes),
    max(updated_at),
    max(seq)
FROM messages GROUP BY queue;

-- name: drop
-- The old table, and the record of Forq's migrations, so that Forq refuses the file from now on.
DROP TABLE forq_messages;
DROP TABLE IF EXISTS schema_migrations;
