-- The statements of the write connection. Each touches rows by a key or an index only (tests/storage_sqlite asserts it).

-- name: begin
-- Take the write lock at once: there is no second writer to wait for.
BEGIN IMMEDIATE;

-- name: commit
-- Make the batch durable.
COMMIT;

-- name: rollback
-- Forget the batch.
ROLLBACK;

-- name: last_sequence
-- The highest sequence number ever given out.
SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0),
           coalesce((SELECT max(seq) FROM messages), 0));

-- name: load_counts
-- Messages by status of every known queue.
SELECT queue, ready, processing, failed, delayed FROM queue_counts;

-- name: save_counts
-- Messages by status of one queue, as of this batch.
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, updated_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET ready = excluded.ready, processing = excluded.processing,
    failed = excluded.failed, delayed = excluded.delayed, updated_at = excluded.updated_at;

-- name: insert_message
-- Store a new message.
INSERT INTO messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after,
                      priority, position, dedup_id, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_dedup
-- The first message with a deduplication id, while its window lasts.
SELECT id, seq FROM dedup WHERE queue = ? AND dedup_id = ? AND expires_at > ?;

-- name: save_dedup
-- Open the window of a deduplication id.
INSERT INTO dedup (queue, dedup_id, id, seq, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (queue, dedup_id) DO UPDATE SET id = excluded.id, seq = excluded.seq, expires_at = excluded.expires_at;

-- name: expire_dedup
-- Drop deduplication ids whose window is over.
DELETE FROM dedup WHERE (queue, dedup_id) IN (
    SELECT queue, dedup_id FROM dedup WHERE expires_at <= ? ORDER BY expires_at LIMIT ?);

-- name: select_ready
-- The next messages of a queue in claim order.
SELECT seq, id, content, attempts, received_at FROM messages
WHERE queue = ? AND status = 0 ORDER BY priority DESC, position, seq LIMIT ?;

-- name: lease
-- Hand a ready message to a consumer.
UPDATE messages SET status = 1, attempts = ?, processing_started_at = ?, updated_at = ?, lease_until = ?, receipt = ?
WHERE seq = ?;

-- name: find_by_sequence
-- What settling needs to know of messages named by their receipts.
SELECT seq, id, queue, status, receipt, attempts, max_attempts, expires_after FROM messages
WHERE seq IN (SELECT value FROM json_each(?));

-- name: find_by_id
-- What settling needs to know of messages named by their ids.
SELECT seq, id, queue, status, receipt, attempts, max_attempts, expires_after FROM messages
WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_messages
-- Remove messages for good.
DELETE FROM messages WHERE seq IN (SELECT value FROM json_each(?));

-- name: give_back
-- A message comes back from its consumer: ready, delayed or failed.
UPDATE messages SET status = ?, attempts = ?, process_after = coalesce(?, process_after), receipt = ?,
    last_error = coalesce(?, last_error), processing_started_at = NULL, lease_until = NULL, updated_at = ?
WHERE seq = ?;

-- name: extend
-- Move the end of a lease (and take a message back into process whose lease just ended).
UPDATE messages SET status = 1, processing_started_at = coalesce(processing_started_at, ?), lease_until = ?,
    updated_at = ?
WHERE seq = ?;

-- name: next_due
-- When the clock next concerns any message.
SELECT due_at FROM messages WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: select_due
-- What fell due: delayed messages to promote, leases that ended, messages that expired.
SELECT seq, queue, status, attempts, max_attempts, receipt, expires_after FROM messages
WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, seq LIMIT ?;

-- name: promote
-- A delayed message becomes ready.
UPDATE messages SET status = 0, updated_at = ? WHERE seq = ?;

-- name: select_failed
-- Failed messages of standard (0) or dead-letter (1) queues.
SELECT seq, queue FROM messages WHERE status = 2 AND is_dlq = ? LIMIT ?;

-- name: dead_letter
-- Move a message to the dead-letter queue of its queue; its place in time stays.
UPDATE messages SET queue = ?, is_dlq = 1, status = 0, attempts = 0, process_after = ?, processing_started_at = NULL,
    lease_until = NULL, receipt = NULL, failure_reason = ?, source_queue = ?, updated_at = ?, expires_after = ?
WHERE seq = ?;

-- name: ping
-- A read on the write connection, inside its own write transaction.
SELECT max(seq) FROM messages;

-- name: optimize
-- Refresh the planner's statistics where it is worth it.
PRAGMA optimize;
