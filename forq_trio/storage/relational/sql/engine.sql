-- The statements of the write connection. Each touches rows by a key or an index only (tests/storage/sqlite asserts it).

-- columns: row
-- The members of `Row`, in their order.
seq, id, queue, status, receipt, attempts, max_attempts, expires_after, received_at, position, bytes, group_id,
failures, dead_letter_queue, source_queue, ttl_ms, processing_started_at, kind, priority;

-- columns: ready
-- What a claim reads of a message.
seq, id, content, attempts, received_at, priority, first_received_at, attributes, group_id, process_after, position,
CAST(bytes AS INTEGER) AS bytes, key, kind, max_attempts;

-- columns: pending
-- The members of `Pending` behind those of `Row`, in their order. Unlike IS NOT NULL, typeof does not read the waiting offer.
key, attributes, mode, due, revision, offers, first_offer_at, max_wait_until, waiting_bytes,
typeof(waiting) = 'blob';

-- name: last_sequence
-- The highest sequence number ever given out.
SELECT max((SELECT last_seq FROM forgotten_sequence), coalesce((SELECT max(last_seq) FROM queue_counts), 0),
           coalesce((SELECT max(seq) FROM messages), 0));

-- name: load_counts
-- Messages by status of every known queue; letting_go is its unhold cursor.
SELECT queue, grouped, letting_go, made_by, ready, processing, failed, delayed, held, bytes FROM queue_counts;

-- name: save_counts
-- Messages by status of one queue, and the last sequence number given out, as of this batch.
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, grouped, letting_go, updated_at,
                          last_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET ready = excluded.ready, processing = excluded.processing, failed = excluded.failed,
    delayed = excluded.delayed, held = excluded.held, bytes = excluded.bytes, grouped = excluded.grouped,
    letting_go = excluded.letting_go, updated_at = excluded.updated_at, last_seq = excluded.last_seq;

-- name: save_maker
-- The access token that made a queue.
UPDATE queue_counts SET made_by = ? WHERE queue = ?;

-- name: forget_counts
-- Forget an empty queue.
DELETE FROM queue_counts WHERE queue = ?;

-- name: save_last_sequence
-- Keep the highest sequence number ever given out, where the counts of a queue are forgotten.
UPDATE forgotten_sequence SET last_seq = ?;

-- name: load_settings
-- The settings of all queues.
SELECT queue, settings FROM queues;

-- name: save_settings
-- Store the settings of one queue.
INSERT INTO queues (queue, settings, updated_at) VALUES (?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at;

-- name: forget_settings
-- Remove the settings of one queue.
DELETE FROM queues WHERE queue = ?;

-- name: load_tokens
-- All access tokens.
SELECT name, scopes, queues, created_at, expires_at, last_used_at, digest FROM tokens;

-- name: save_token
-- Store a new access token.
INSERT INTO tokens (name, scopes, queues, created_at, expires_at, last_used_at, digest) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: revoke_token
-- Remove an access token.
DELETE FROM tokens WHERE name = ?;

-- name: note_token_use
-- Store when a token was last used.
UPDATE tokens SET last_used_at = ? WHERE name = ?;

-- name: load_sessions
-- All sessions of the admin UI.
SELECT digest, key_name, key_digest, created_at, expires_at, last_used_at, client, agent FROM ui_sessions;

-- name: save_session
-- Store a session.
INSERT OR REPLACE INTO ui_sessions (digest, key_name, key_digest, created_at, expires_at, last_used_at, client, agent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_session
-- Remove a session.
DELETE FROM ui_sessions WHERE digest = ?;

-- name: note_session_use
-- Store when a session was last used.
UPDATE ui_sessions SET last_used_at = ? WHERE digest = ?;

-- name: load_redrives
-- All tasks over dead letters, in the order in which they were first stored.
SELECT id, task FROM redrives ORDER BY number;

-- name: save_redrive
-- Store a task over dead letters, or change it.
INSERT INTO redrives (id, task) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET task = excluded.task;

-- name: forget_redrive
-- Forget a task over dead letters.
DELETE FROM redrives WHERE id = ?;

-- name: insert_plain
-- Store a message with only the plain columns: the first half of the bindings of insert_message.
INSERT INTO messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after, priority, position,
                      bytes, content)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: insert_leased
-- Store a message with the plain columns only that is claimed in the batch that sends it.
INSERT INTO messages (seq, id, queue, status, attempts, process_after, received_at, updated_at, first_received_at,
                      processing_started_at, expires_after, priority, position, bytes, lease_until, receipt, content)
VALUES (?1, ?2, ?3, 1, 1, ?4, ?5, ?5, ?5, ?5, ?6, ?7, ?1, ?8, ?9, ?10, ?11);

-- name: insert_message
-- Store a new message.
INSERT INTO messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after, priority, position,
                      bytes, content, is_dlq, max_attempts, default_max_receives, ttl_ms, group_id, attributes, dedup_id,
                      dead_letter_queue, kind, key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21);

-- name: join_rounds
-- Give the last ready message of a priority the group of later messages without one.
UPDATE messages SET group_id = '' WHERE group_id IS NULL AND seq = (
    SELECT seq FROM messages WHERE queue = ? AND status = 0 AND priority = ? ORDER BY position DESC, seq DESC LIMIT 1);

-- name: last_of_group
-- The highest position of a message of this group and priority: one seek for each status.
SELECT max(position) FROM (
    SELECT (SELECT position FROM messages WHERE queue = ?1 AND group_id = ?2 AND status = statuses.value AND priority = ?3
            ORDER BY position DESC LIMIT 1) AS position
    FROM json_each('[0, 1, 2, 3, 4]') AS statuses);

-- name: next_priority
-- The lowest priority above this one that ready messages of the queue have.
SELECT priority FROM messages WHERE queue = ? AND status = 0 AND priority > ? ORDER BY priority LIMIT 1;

-- name: ready_newest_last
-- The ready messages of a priority, by position.
-- rows: the first may be enough
SELECT $row
FROM messages WHERE queue = ? AND status = 0 AND priority = ? ORDER BY position, seq;

-- name: ready_newest_first
-- The ready messages of a priority, by position backwards.
-- rows: the first may be enough
SELECT $row
FROM messages WHERE queue = ? AND status = 0 AND priority = ? ORDER BY position DESC, seq DESC;

-- name: find_dedup
-- The first message with a deduplication id, while its window lasts.
SELECT id, seq FROM dedup WHERE queue = ? AND dedup_id = ? AND expires_at > ?;

-- name: save_dedup
-- Start the window of a deduplication id.
INSERT INTO dedup (queue, dedup_id, id, seq, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (queue, dedup_id) DO UPDATE SET id = excluded.id, seq = excluded.seq, expires_at = excluded.expires_at;

-- name: dedup_of_queue
-- The first deduplication ids of a queue.
-- rows of: one thing
SELECT dedup_id FROM dedup WHERE queue = ? ORDER BY queue, dedup_id LIMIT ?;

-- name: forget_dedup
-- Forget the deduplication ids of a queue, up to one.
DELETE FROM dedup WHERE queue = ? AND dedup_id <= ?;

-- name: expire_dedup
-- Drop deduplication ids whose window is over.
DELETE FROM dedup WHERE (queue, dedup_id) IN (
    SELECT queue, dedup_id FROM dedup WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
RETURNING 1;

-- name: select_ready
-- The next messages of a queue in claim order.
SELECT $ready
FROM messages
WHERE queue = ? AND status = 0 ORDER BY priority DESC, position, seq LIMIT ?;

-- name: select_ready_but
-- The next messages of a queue in claim order, but these.
SELECT $ready
FROM messages
WHERE queue = ? AND status = 0 AND seq NOT IN (SELECT value FROM json_each(?))
ORDER BY priority DESC, position, seq LIMIT ?;

-- name: select_to_match
-- Attributes of the ready messages below a priority, in claim order.
-- rows of: one thing
SELECT seq, priority, position, attributes
FROM messages WHERE queue = ? AND status = 0 AND priority < ? ORDER BY priority DESC, position, seq LIMIT ?;

-- name: select_to_match_at
-- Attributes of the ready messages of a priority behind a place, in claim order.
-- rows of: one thing
SELECT seq, priority, position, attributes
FROM messages WHERE queue = ? AND status = 0 AND priority = ? AND (position, seq) > (?, ?) ORDER BY position, seq LIMIT ?;

-- name: select_drawn
-- A ready message by its sequence, for a shuffle.
-- rows of: one thing
SELECT $ready
FROM messages WHERE seq = ? AND status = 0;

-- name: count_in_process
-- How many messages of a group are processing, counted up to a bound.
-- rows of: one thing
SELECT count(*) FROM (SELECT 1 FROM messages WHERE queue = ? AND group_id = ? AND status = 1 LIMIT ?) AS scanned;

-- name: first_delayed_of_group
-- The place in the claim order of the first delayed message of a group.
-- rows of: one thing
SELECT -priority, position, seq FROM messages WHERE queue = ? AND group_id = ? AND status = 3 ORDER BY priority DESC, position, seq LIMIT 1;

-- name: hold
-- Set a ready message to held.
UPDATE messages SET status = 4, updated_at = ? WHERE seq = ?;

-- name: select_held_of_group
-- The next held messages of a group, and their places in the claim order.
-- rows of: one thing
SELECT seq, bytes, -priority, position, seq FROM messages WHERE queue = ? AND group_id = ? AND status = 4 ORDER BY priority DESC, position, seq LIMIT ?;

-- name: held_groups
-- The groups of a queue that have held messages, by skipping along the index; with EXISTS PostgreSQL joins all with all.
WITH RECURSIVE groups (group_id) AS (
    SELECT (SELECT group_id FROM messages WHERE queue = ?1 AND group_id > '' ORDER BY group_id LIMIT 1)
    UNION ALL
    SELECT (SELECT group_id FROM messages WHERE queue = ?1 AND messages.group_id > groups.group_id
            ORDER BY group_id LIMIT 1)
    FROM groups WHERE groups.group_id IS NOT NULL
)
SELECT group_id FROM groups WHERE group_id IS NOT NULL AND (
    SELECT 1 FROM messages WHERE queue = ?1 AND messages.group_id = groups.group_id AND status = 4 LIMIT 1) IS NOT NULL;

-- name: select_held
-- Held messages of a queue, by sequence.
-- rows of: one thing
SELECT seq, bytes, -priority, position, seq FROM messages INDEXED BY messages_held WHERE queue = ? AND status = 4 AND seq > ? ORDER BY seq LIMIT ?;

-- name: unhold
-- Make a held message ready.
UPDATE messages SET status = 0, updated_at = ? WHERE seq = ?;

-- name: lease
-- Lease a ready message to a consumer.
UPDATE messages SET status = 1, attempts = ?, first_received_at = ?, processing_started_at = ?, updated_at = ?,
    lease_until = ?, receipt = ?
WHERE seq = ?;

-- name: find_by_sequence
-- Messages named by their receipts.
-- rows of: one thing
SELECT $row
FROM messages
WHERE seq IN (SELECT value FROM json_each(?));

-- name: find_one_by_sequence
-- What find_by_sequence returns for one message, which is faster than a list of one.
SELECT $row
FROM messages WHERE seq = ?;

-- name: find_pending
-- The pending messages of these keys.
-- rows of: one thing
WITH wanted (of_kind, of_key) AS (SELECT value ->> 0, value ->> 1 FROM json_each(?2))
SELECT $row, $pending
FROM wanted CROSS JOIN messages ON queue = ?1 AND kind = of_kind AND key = of_key
CROSS JOIN message_keys ON message = seq;

-- name: select_of_kind
-- The first messages of a queue that have keys of a kind, by key, up to a sequence.
-- rows of: one thing
SELECT $row
FROM messages INDEXED BY messages_key WHERE queue = ? AND kind = ? AND key IS NOT NULL AND seq <= ? ORDER BY key LIMIT ?;

-- name: find_default_max_receives
-- The bound on deliveries of a message for a claim that names none.
-- rows of: one thing
SELECT default_max_receives FROM messages WHERE seq = ?;

-- name: find_by_id
-- Messages named by their ids, which end with their sequence numbers or are in the index of all others.
-- rows of: one thing
SELECT $row
FROM messages
WHERE seq IN (SELECT CAST(substr(value, 25) AS INTEGER) FROM json_each(?1)) AND id IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT $row
FROM messages INDEXED BY messages_id
WHERE CAST(substr(id, 25) AS INTEGER) IS DISTINCT FROM seq AND id IN (SELECT value FROM json_each(?1));

-- name: delete_message
-- Remove one message for good.
DELETE FROM messages WHERE seq = ?;

-- name: delete_messages
-- Remove messages for good.
DELETE FROM messages WHERE seq IN (SELECT value FROM json_each(?));

-- name: return_message
-- Give a message back from its consumer: ready, delayed or failed.
UPDATE messages SET status = ?, attempts = ?, process_after = coalesce(?, process_after), receipt = ?,
    last_error = coalesce(?, last_error), error_key = coalesce(?, error_key), failures = coalesce(?, failures),
    max_attempts = coalesce(?, max_attempts), processing_started_at = NULL, lease_until = NULL, updated_at = ?
WHERE seq = ?;

-- name: note_last_error
-- Note why a consumer discards a message.
UPDATE messages SET last_error = ?, error_key = ? WHERE seq = ?;

-- name: extend
-- Move the end of the lease of a processing message; its status is left alone, or SQLite would write its index anew.
UPDATE messages SET processing_started_at = coalesce(processing_started_at, ?), lease_until = ?, updated_at = ?
WHERE seq = ?;

-- name: extend_ended
-- Make a message whose lease has ended processing again.
UPDATE messages SET status = 1, processing_started_at = coalesce(processing_started_at, ?), lease_until = ?,
    updated_at = ?
WHERE seq = ?;

-- name: next_due
-- The next due times of all messages, from a time on. In a damaged row that time may be text, which SQLite orders behind numbers.
SELECT due_at FROM messages WHERE due_at >= ? AND due_at <= 9223372036854775807 ORDER BY due_at LIMIT ?;

-- name: next_due_but
-- The next due times of all messages but these, from a time on.
SELECT due_at FROM messages
WHERE due_at >= ? AND due_at <= 9223372036854775807 AND seq NOT IN (SELECT value FROM json_each(?))
ORDER BY due_at LIMIT ?;

-- name: select_due
-- Messages that are due from a time on: delayed ones to promote, leases that ended, messages that expired.
SELECT $row
FROM messages
WHERE due_at >= ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?;

-- name: select_due_but
-- Messages that are due from a time on, but these.
SELECT $row
FROM messages
WHERE due_at >= ? AND due_at <= ? AND seq NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at, seq LIMIT ?;

-- name: promote
-- Make a delayed message ready.
UPDATE messages SET status = 0, updated_at = ? WHERE seq = ?;

-- name: select_failed
-- Failed messages of standard (0) or dead-letter (1) queues.
SELECT $row
FROM messages WHERE status = 2 AND is_dlq = ? LIMIT ?;

-- name: select_failed_but
-- Failed messages of standard (0) or dead-letter (1) queues, but these.
SELECT $row
FROM messages WHERE status = 2 AND is_dlq = ? AND seq NOT IN (SELECT value FROM json_each(?)) LIMIT ?;

-- name: dead_letter
-- Move a message to a dead-letter queue.
UPDATE messages SET queue = ?, is_dlq = ?, key = NULL, status = 0, attempts = 0, position = ?, process_after = ?,
    processing_started_at = NULL, lease_until = NULL, receipt = NULL, failure_reason = ?, source_queue = ?,
    source_attempts = ?, dead_lettered_at = ?, dead_letter_queue = ?, updated_at = ?, expires_after = ?
WHERE seq = ?;

-- name: redrive
-- Move a dead letter to a queue: as if it had just been sent, but with its position and its failures.
UPDATE messages SET queue = ?, is_dlq = ?, key = NULL, status = 0, attempts = 0, position = ?, process_after = ?,
    updated_at = ?,
    expires_after = ?, receipt = NULL, failure_reason = NULL, source_queue = NULL, source_attempts = NULL,
    dead_lettered_at = NULL
WHERE seq = ?;

-- name: read_message
-- The columns of a copy that are not in `Row`.
-- rows of: one thing
SELECT priority, default_max_receives, attributes, content FROM messages WHERE seq = ?;

-- name: select_purged
-- The first messages of a queue, up to a sequence.
-- rows of: one thing
SELECT $row
FROM messages WHERE queue = ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: ping
-- A read on the write connection, inside the transaction of the batch.
-- rows of: one thing
SELECT max(seq) FROM messages;
