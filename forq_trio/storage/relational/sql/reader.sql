-- The statements of the read-only connections.

-- columns: counts
-- The members of `QueueCounts`, in their order.
ready, processing, failed, delayed, held, bytes;

-- columns: message_info
-- The members of `MessageInfo`, in their order.
id, queue, seq, status, content, attempts, priority, received_at, process_after, updated_at, expires_after,
processing_started_at, lease_until, failure_reason, source_queue, last_error, attributes, group_id,
first_received_at, max_attempts, ttl_ms, dead_letter_queue, dead_lettered_at, source_attempts, failures,
bytes - iif(kind IS NULL, 0, coalesce((SELECT waiting_bytes FROM message_keys WHERE message = seq), 0)),
iif(kind IS NULL, NULL, (
    SELECT json_array(own_key, kind, revision, mode, offers, first_offer_at, last_offer_at, max_wait_until)
    FROM message_keys WHERE message = seq));

-- condition: matching
-- The conditions of a filter on a message; the content is read last.
(?5 IS NULL OR failure_reason = ?5)
  AND (?6 IS NULL OR coalesce(dead_lettered_at, received_at) >= ?6)
  AND (?7 IS NULL OR coalesce(dead_lettered_at, received_at) <= ?7)
  AND (?8 IS NULL OR coalesce(last_error, '') = ?8)
  AND (?12 IS NULL OR status = ?12)
  AND (?11 IS NULL OR error_key = ?11)
  AND (?9 IS NULL OR NOT EXISTS (
      SELECT 1 FROM json_each(?9) AS wanted WHERE NOT EXISTS (
          SELECT 1 FROM json_each(iif(json_valid(attributes), attributes, '{}')) AS had
          WHERE had.key = wanted.key AND had.value = wanted.value)))
  AND (?10 IS NULL OR instr(content, ?10) > 0);

-- name: queues
-- All known queues by name.
SELECT queue, $counts FROM queue_counts ORDER BY queue;

-- name: queue
-- One queue.
SELECT $counts FROM queue_counts WHERE queue = ?;

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
-- One message by its id, which ends with its sequence number or is in the index of all others.
SELECT $message_info
FROM messages WHERE seq = CAST(substr(?2, 25) AS INTEGER) AND id = ?2 AND queue = ?1
UNION ALL
SELECT $message_info
FROM messages INDEXED BY messages_id WHERE CAST(substr(id, 25) AS INTEGER) IS DISTINCT FROM seq AND id = ?2 AND queue = ?1;

-- name: keyed_message
-- The pending message of a key.
SELECT $message_info
FROM messages WHERE queue = ? AND kind = ? AND key = ?;

-- name: waiting
-- The offer that waits behind a message.
SELECT waiting FROM message_keys WHERE message = ? AND waiting IS NOT NULL;

-- name: next_kind
-- The first kind of keys in a queue, from this one on.
SELECT kind FROM messages INDEXED BY messages_key
WHERE queue = ? AND key IS NOT NULL AND kind >= ? ORDER BY kind LIMIT 1;

-- name: count_keys
-- The pending messages with a key, of the first so many, by kind.
SELECT kind, count(*) FROM (
    SELECT kind FROM messages INDEXED BY messages_key WHERE queue = ? AND key IS NOT NULL ORDER BY kind LIMIT ?
) AS scanned GROUP BY kind;

-- name: keyed_messages
-- The pending messages with keys of a kind behind one key, between two.
-- rows: the first may be enough
SELECT $message_info
FROM messages INDEXED BY messages_key
WHERE queue = ? AND kind = ? AND key > ? AND key >= ? AND key <= ? ORDER BY key LIMIT ?;

-- name: peek
-- The next ready messages in claim order.
-- rows: the first may be enough
SELECT $message_info
FROM messages WHERE queue = ? AND status = 0 ORDER BY priority DESC, position, seq LIMIT ?;

-- name: browse
-- A page of one queue, newest first.
-- rows: the first may be enough
SELECT $message_info
FROM messages WHERE queue = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: find
-- The newest messages of a queue that match, of the first so many.
WITH scanned AS (
    SELECT seq FROM messages INDEXED BY messages_queue
    WHERE queue = ?1 AND seq < ?2 AND seq > ?3 ORDER BY seq DESC LIMIT ?4
)
SELECT messages.seq
FROM scanned CROSS JOIN messages ON messages.seq = scanned.seq
WHERE $matching
LIMIT ?13;

-- name: count_matching
-- How many messages match of the first so many of a queue, and how many of these are in process.
WITH scanned AS (
    SELECT seq FROM messages INDEXED BY messages_queue
    WHERE queue = ?1 AND seq < ?2 AND seq > ?3 ORDER BY seq DESC LIMIT ?4
)
SELECT count(*), count(*) FILTER (WHERE status = 1)
FROM scanned CROSS JOIN messages ON messages.seq = scanned.seq
WHERE $matching;

-- name: scanned
-- How many messages a search looked at, and the oldest of them: those between two sequences, or the first so many.
SELECT count(*), min(seq) FROM (
    SELECT seq FROM messages INDEXED BY messages_queue
    WHERE queue = ? AND seq < ? AND seq > ? ORDER BY seq DESC LIMIT ?) AS scanned;

-- name: next_scanned
-- The newest message between two sequences.
SELECT max(seq) FROM messages WHERE queue = ? AND seq < ? AND seq > ?;

-- name: came_at
-- When a message was dead-lettered, else received.
SELECT coalesce(dead_lettered_at, received_at) FROM messages WHERE seq = ?;

-- name: error_groups
-- The first so many messages by reason and fingerprint, largest group first; those beyond so many groups by reason only.
WITH scanned AS (
    SELECT seq FROM messages INDEXED BY messages_queue WHERE queue = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3
), grouped AS (
    SELECT failure_reason AS reason, min(nullif(last_error, '')) AS error, count(*) AS size,
           max(coalesce(dead_lettered_at, received_at)) AS last_at,
           count(DISTINCT nullif(last_error, '')) AS errors
    FROM scanned CROSS JOIN messages ON messages.seq = scanned.seq GROUP BY failure_reason, error_key
), placed AS (
    SELECT reason, error, size, last_at, errors,
           row_number() OVER (ORDER BY size DESC, last_at DESC, reason, error) AS place
    FROM grouped
)
SELECT place > ?4, reason, iif(place > ?4, NULL, error), sum(size), max(last_at), sum(errors)
FROM placed GROUP BY iif(place > ?4, NULL, place), iif(place > ?4, reason, NULL) ORDER BY min(place);

-- name: error_texts
-- The errors of one fingerprint in the first so many messages, the most frequent first; with how many there are in all.
WITH scanned AS (
    SELECT seq FROM messages INDEXED BY messages_queue WHERE queue = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3
)
SELECT last_error, count(*) AS size, count(*) OVER ()
FROM scanned CROSS JOIN messages ON messages.seq = scanned.seq
WHERE error_key = ?4 AND (?5 IS NULL OR failure_reason = ?5)
GROUP BY last_error ORDER BY size DESC, last_error LIMIT ?6;

-- name: list_all
-- A page of one queue, newest first: the sequences.
SELECT seq FROM messages INDEXED BY messages_queue WHERE queue = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: list_processing
-- A page of the messages in flight, newest first: the sequences.
SELECT seq FROM messages INDEXED BY messages_in_flight
WHERE queue = ? AND status = 1 AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: list_delayed
-- A page of the delayed messages, newest first: the sequences.
SELECT seq FROM messages INDEXED BY messages_delayed
WHERE queue = ? AND status = 3 AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: list_held
-- A page of the held messages, newest first: the sequences.
SELECT seq FROM messages INDEXED BY messages_held
WHERE queue = ? AND status = 4 AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: list_failed
-- A page of the failed messages, newest first: the sequences. Failed messages of other queues are few.
SELECT seq FROM messages INDEXED BY messages_failed
WHERE is_dlq = (substr(?1, -4) = '-dlq') AND status = 2 AND queue = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3;

-- name: list_ready_at
-- Ready messages of a priority and position, behind a sequence.
SELECT seq, priority, position FROM messages INDEXED BY messages_claim
WHERE queue = ? AND status = 0 AND priority = ? AND position = ? AND seq > ? ORDER BY seq LIMIT ?;

-- name: list_ready_behind
-- Ready messages of a priority in claim order, behind a position.
SELECT seq, priority, position FROM messages INDEXED BY messages_claim
WHERE queue = ? AND status = 0 AND priority = ? AND position > ? ORDER BY position, seq LIMIT ?;

-- name: list_ready_below
-- Ready messages in claim order, those below a priority.
SELECT seq, priority, position FROM messages INDEXED BY messages_claim
WHERE queue = ? AND status = 0 AND priority < ? ORDER BY priority DESC, position, seq LIMIT ?;

-- name: rows
-- Messages as lists show them, in this order, with an excerpt of the content; match_at: its bytes before the text.
SELECT id, queue, seq, status, attempts, priority, received_at, process_after, updated_at, expires_after, lease_until,
       processing_started_at, group_id, max_attempts, failure_reason, last_error, source_queue, dead_lettered_at,
       source_attempts,
       bytes - iif(kind IS NULL, 0, coalesce((SELECT waiting_bytes FROM message_keys WHERE message = seq), 0)),
       iif(kind IS NULL, NULL, (
           SELECT json_array(own_key, kind, revision, mode, offers, first_offer_at, last_offer_at, max_wait_until)
           FROM message_keys WHERE message = seq)),
       min(before, ?4) AS match_at,
       coalesce(substr(CAST(content AS BLOB), 1 + max(before - ?4, 0), ?5), x'') AS excerpt
FROM (
    SELECT messages.*,
           iif(instr(content, ?2) > ?3, instr(CAST(content AS BLOB), CAST(?2 AS BLOB)) - 1, 0) AS before
    FROM json_each(?1) AS wanted CROSS JOIN messages ON messages.seq = wanted.value
);

-- name: message_by_sequence
-- One message by its sequence number.
SELECT $message_info
FROM messages WHERE seq = ?;
