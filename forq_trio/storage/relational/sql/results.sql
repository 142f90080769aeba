-- Statements about results: of the write connection, and of readers.

-- name: keep_with_result
-- Copy a message that is about to be removed, with its result.
INSERT INTO history (id, seq, message_id, queue, outcome, reason, finished_at, attempts, priority, received_at,
                     first_received_at, bytes, number, total, group_id, attributes, failure_reason, source_queue,
                     source_attempts, dead_lettered_at, last_error, error_key, failures, content, key, kind, result,
                     kept_until)
SELECT ?1, seq, id, queue, ?2, ?3, ?4, attempts, priority, received_at, first_received_at, ?5, ?6, ?7, group_id,
       attributes, failure_reason, source_queue, source_attempts, dead_lettered_at, last_error, error_key, failures, content,
       iif(kind IS NULL, NULL, (SELECT own_key FROM message_keys WHERE message = seq)), kind, ?8, ?9
FROM messages WHERE seq = ?10;

-- name: newest_without_result
-- The newest finished message that is stored because the history was on. Those after it are there for their results.
SELECT id FROM history WHERE id > ? AND kept_until IS NULL ORDER BY id DESC LIMIT 1;

-- name: stored_message
-- Where a message is that is stored, whatever its queue.
SELECT queue, attempts, last_error, source_queue, dead_lettered_at
FROM messages WHERE seq = CAST(substr(?1, 25) AS INTEGER) AND id = ?1
UNION ALL
SELECT queue, attempts, last_error, source_queue, dead_lettered_at
FROM messages INDEXED BY messages_id WHERE CAST(substr(id, 25) AS INTEGER) IS DISTINCT FROM seq AND id = ?1;

-- name: finished_from
-- The latest end of a message that was sent to a queue, and may have become a dead letter.
SELECT queue, outcome, attempts, result, last_error, finished_at
FROM history INDEXED BY history_message
WHERE message_id = ?1 AND (queue = ?2 OR source_queue = ?2) ORDER BY id DESC LIMIT 1;
