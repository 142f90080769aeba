-- The statements of the read-only connections.

-- name: begin_reading
-- Begin a snapshot: the next statements see one state.
BEGIN;

-- name: end_reading
-- End the snapshot.
ROLLBACK;

-- name: queues
-- All known queues by name.
SELECT queue, ready, delayed, processing, failed, held, bytes FROM queue_counts ORDER BY queue;

-- name: queue
-- One queue.
SELECT ready, delayed, processing, failed, held, bytes FROM queue_counts WHERE queue = ?;

-- name: oldest_ready
-- When the oldest ready message was received: the first and last of each priority, found by skipping along the index.
WITH RECURSIVE priorities (priority) AS (
    SELECT (SELECT priority FROM messages WHERE queue = ?1 AND status = 0 ORDER BY priority DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT messages.priority FROM messages
            WHERE queue = ?1 AND status = 0 AND messages.priority < priorities.priority
            ORDER BY messages.priority DESC LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
)
SELECT min(received_at) FROM messages WHERE seq IN (
    SELECT (SELECT seq FROM messages WHERE queue = ?1 AND status = 0 AND messages.priority = priorities.priority
            ORDER BY position LIMIT 1)
    FROM priorities WHERE priority IS NOT NULL
    UNION ALL
    SELECT (SELECT seq FROM messages WHERE queue = ?1 AND status = 0 AND messages.priority = priorities.priority
            ORDER BY position DESC LIMIT 1)
    FROM priorities WHERE priority IS NOT NULL);

-- name: message
-- One message by its id.
SELECT id, queue, seq, status, content, attempts, priority, received_at, process_after, updated_at, expires_after,
       processing_started_at, lease_until, failure_reason, source_queue, last_error, attributes, group_id,
       first_received_at, max_attempts, ttl_ms, dead_letter_queue, dead_lettered_at, source_attempts, failures, bytes
FROM messages WHERE id = ?2 AND queue = ?1;

-- name: peek
-- The next ready messages in claim order.
SELECT id, queue, seq, status, content, attempts, priority, received_at, process_after, updated_at, expires_after,
       processing_started_at, lease_until, failure_reason, source_queue, last_error, attributes, group_id,
       first_received_at, max_attempts, ttl_ms, dead_letter_queue, dead_lettered_at, source_attempts, failures, bytes
FROM messages WHERE queue = ? AND status = 0 ORDER BY priority DESC, position, seq LIMIT ?;

-- name: browse
-- A page of one queue, newest first.
SELECT id, queue, seq, status, content, attempts, priority, received_at, process_after, updated_at, expires_after,
       processing_started_at, lease_until, failure_reason, source_queue, last_error, attributes, group_id,
       first_received_at, max_attempts, ttl_ms, dead_letter_queue, dead_lettered_at, source_attempts, failures, bytes
FROM messages WHERE queue = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: scan
-- The columns that a search reads first: messages of one queue, newest first, without contents.
SELECT seq, failure_reason, coalesce(dead_lettered_at, received_at), attributes
FROM messages WHERE queue = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: has_text
-- Whether a message's content contains a text.
SELECT instr(content, ?2) > 0 FROM messages WHERE seq = ?1;

-- name: message_by_sequence
-- One message by its sequence number.
SELECT id, queue, seq, status, content, attempts, priority, received_at, process_after, updated_at, expires_after,
       processing_started_at, lease_until, failure_reason, source_queue, last_error, attributes, group_id,
       first_received_at, max_attempts, ttl_ms, dead_letter_queue, dead_lettered_at, source_attempts, failures, bytes
FROM messages WHERE seq = ?;

-- name: queues_of
-- The queue of each of these messages.
SELECT seq, queue FROM messages WHERE seq IN (SELECT value FROM json_each(?));
