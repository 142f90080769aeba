-- Shared statements with a text of their own for PostgreSQL. Each has the name, bindings and columns of the shared one.

-- columns: row
-- The members of `Row`, in their order.
seq, id, queue, status, receipt, attempts, max_attempts, expires_after, received_at, position, bytes, group_id,
failures, dead_letter_queue, source_queue, ttl_ms, processing_started_at, kind, priority;

-- columns: pending
-- The members of `Pending` behind those of `Row`, in their order.
key, attributes, mode, due, revision, offers, first_offer_at, max_wait_until, waiting_bytes,
waiting IS NOT NULL;

-- name: last_sequence
-- The highest sequence number ever given out.
SELECT greatest((SELECT last_seq FROM forgotten_sequence), coalesce((SELECT max(last_seq) FROM queue_counts), 0),
                coalesce((SELECT max(seq) FROM messages), 0));

-- name: save_counts
-- Messages by status of one queue, and the last sequence number given out, as of this batch: a row instead of the latest.
WITH latest AS (
    SELECT ctid AS place, made_by FROM queue_counts WHERE queue = $1 ORDER BY queue DESC, number DESC LIMIT 1
), gone AS (
    DELETE FROM queue_counts USING latest WHERE queue_counts.ctid = place
)
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, grouped, letting_go, updated_at, last_seq,
                          made_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, (SELECT made_by FROM latest));

-- name: queue
-- One queue.
SELECT ready, processing, failed, delayed, held, bytes FROM queue_counts WHERE queue = $1 ORDER BY queue DESC, number DESC LIMIT 1;

-- name: save_last_sequence
-- Keep the highest sequence number ever given out, where the counts of a queue are forgotten: a row instead of the latest.
WITH gone AS (
    DELETE FROM forgotten_sequence
    WHERE ctid = (SELECT ctid FROM forgotten_sequence ORDER BY last_seq DESC LIMIT 1) AND last_seq < $1
)
INSERT INTO forgotten_sequence VALUES ($1) ON CONFLICT DO NOTHING;

-- name: save_session
-- Store a session.
INSERT INTO ui_sessions (digest, key_name, key_digest, created_at, expires_at, last_used_at, client, agent)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (digest) DO UPDATE SET key_name = excluded.key_name, key_digest = excluded.key_digest,
    created_at = excluded.created_at, expires_at = excluded.expires_at, last_used_at = excluded.last_used_at,
    client = excluded.client, agent = excluded.agent;

-- name: last_of_group
-- The highest position of a message of this group and priority: one seek for each status.
SELECT max(position) FROM (
    SELECT (SELECT position FROM messages WHERE queue = $1 AND group_id = $2 AND status = statuses.value AND priority = $3
            ORDER BY queue DESC, group_id DESC, status DESC, priority, position DESC LIMIT 1) AS position
    FROM (VALUES (0), (1), (2), (3), (4)) AS statuses (value)) AS found;

-- name: count_in_process
-- How many messages of a group are processing, counted up to a bound. Worded so that no index of all processing ones fits.
SELECT count(*) FROM (
    SELECT 1 FROM messages WHERE queue = $1 AND group_id = $2 AND status BETWEEN 1 AND 1
    ORDER BY status, priority DESC, position, seq LIMIT $3) AS scanned;

-- name: first_delayed_of_group
-- The place in the claim order of the first delayed message of a group. Worded so that no index of all delayed ones fits.
SELECT -priority, position, seq FROM messages WHERE queue = $1 AND group_id = $2 AND status BETWEEN 3 AND 3
ORDER BY status, priority DESC, position, seq LIMIT 1;

-- name: select_held_of_group
-- The next held messages of a group, and their places in the claim order. Worded so that no index of all held ones fits.
SELECT seq, bytes, -priority, position, seq FROM messages WHERE queue = $1 AND group_id = $2 AND status BETWEEN 4 AND 4
ORDER BY status, priority DESC, position, seq LIMIT $3;

-- name: find_pending
-- The pending messages of these keys.
SELECT $row, $pending
FROM json_array_elements($2::json) AS wanted,
    LATERAL (SELECT * FROM messages WHERE queue = $1 AND kind = wanted ->> 0 AND key = wanted ->> 1 LIMIT 1) AS found
JOIN message_keys ON message = seq;

-- name: find_by_id
-- Messages named by their ids. The index of all ids is there as long as servers of an earlier version may need it.
SELECT $row
FROM messages
WHERE id = ANY (ARRAY(SELECT json_array_elements_text($1::json)));

-- name: find_stages
-- Stages that wait to be published, in the order of these queues and names; one that is not there has no pages.
SELECT stages.id, made_by, coalesce(pages, 0), coalesce(last_page, -1), coalesce(messages, 0), coalesce(bytes, 0)
FROM json_array_elements($1::json) WITH ORDINALITY AS wanted (value, place)
LEFT JOIN stages ON queue = value ->> 0 AND stage = value ->> 1
ORDER BY place;

-- name: grow_stage
-- One more page.
UPDATE stages SET pages = pages + 1, last_page = greatest(last_page, $2), messages = messages + $3, bytes = bytes + $4,
                  expires_at = $5, stored_bytes = stored_bytes + $6
WHERE id = $1;

-- name: error_groups
-- The first so many messages by reason and fingerprint, largest group first; those beyond so many groups by reason only.
WITH scanned AS (
    SELECT seq FROM messages WHERE queue = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3
), grouped AS (
    SELECT failure_reason AS reason, min(nullif(last_error, '')) AS error, count(*) AS size,
           max(coalesce(dead_lettered_at, received_at)) AS last_at,
           count(DISTINCT nullif(last_error, '')) AS errors
    FROM scanned JOIN messages ON messages.seq = scanned.seq GROUP BY failure_reason, error_key
), placed AS (
    SELECT reason, error, size, last_at, errors,
           row_number() OVER (ORDER BY size DESC, last_at DESC, reason NULLS FIRST, error NULLS FIRST) AS place
    FROM grouped
), named AS (
    SELECT CASE WHEN place <= $4 THEN place END AS own_place, place, reason, CASE WHEN place <= $4 THEN error END AS error,
           size, last_at, errors
    FROM placed
)
SELECT own_place IS NULL, reason, error, sum(size), max(last_at), sum(errors)
FROM named GROUP BY own_place, reason, error ORDER BY min(place);

-- name: list_failed
-- A page of the failed messages, newest first: the sequences. Failed messages of other queues are few.
SELECT seq FROM messages
WHERE is_dlq = (right($1, 4) = '-dlq')::integer AND status = 2 AND queue = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3;

-- name: rows
-- Messages as lists show them, in this order, with an excerpt of the content; match_at: its bytes before the text.
SELECT id, queue, seq, status, attempts, priority, received_at, process_after, updated_at, expires_after, lease_until,
       processing_started_at, group_id, max_attempts, failure_reason, last_error, source_queue, dead_lettered_at,
       source_attempts,
       bytes - iif(kind IS NULL, 0, coalesce((SELECT waiting_bytes FROM message_keys WHERE message = seq), 0)),
       iif(kind IS NULL, NULL, (
           SELECT json_build_array(own_key, kind, revision, mode, offers, first_offer_at, last_offer_at, max_wait_until)
           FROM message_keys WHERE message = seq)),
       least(before, $4) AS match_at,
       coalesce(substr(convert_to(content, 'UTF8'), (1 + greatest(before - $4, 0))::integer, $5::integer), '') AS excerpt
FROM (
    SELECT messages.*,
           CASE WHEN strpos(content, $2) > $3 THEN octet_length(left(content, strpos(content, $2) - 1)) ELSE 0 END::bigint
               AS before,
           place
    FROM json_array_elements_text($1::json) WITH ORDINALITY AS wanted (value, place)
    JOIN messages ON messages.seq = wanted.value::bigint
) AS found ORDER BY place;

-- name: export_end
-- The last message of a page: at most so many, and so many bytes, with so many for each line besides; at least one.
SELECT max(seq) FROM (
    SELECT seq, bytes, sum(bytes + $6) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS sum_bytes FROM (
        SELECT seq, bytes FROM messages WHERE queue = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4) AS first
) AS summed WHERE sum_bytes <= greatest($5, bytes + $6);

-- columns: origin
-- The members that only a dead letter's line has, with a comma before them.
CASE WHEN source_queue IS NULL THEN '' ELSE ',"sourceQueue":' || to_json(source_queue)
    || coalesce(',"sourceAttempts":' || source_attempts, '')
    || coalesce(',"failureReason":' || to_json(failure_reason), '')
    || coalesce(',"deadLetteredAt":' || dead_lettered_at, '') END;

-- name: export_lines
-- The messages between two sequences, as lines of JSON.
SELECT convert_to(string_agg(rtrim(row_to_json(line)::text, '}') || $origin || '}' || chr(10), '' ORDER BY seq), 'UTF8')
FROM messages CROSS JOIN LATERAL (
    SELECT id, messages.queue, seq AS sequence, content, received_at AS "receivedAt", attempts, priority,
           nullif(group_id, '') AS "group", attributes::json,
           CASE status WHEN 0 THEN 'ready' WHEN 1 THEN 'processing' WHEN 2 THEN 'failed' WHEN 3 THEN 'delayed'
               ELSE 'held' END AS state) AS line
WHERE messages.queue = $1 AND seq > $2 AND seq <= $3;

-- name: load_history_ends
-- The last id that retention removed, and the highest id ever given.
SELECT gone, greatest(last, coalesce((SELECT max(id) FROM history), 0)) FROM history_ends;

-- name: history_ends
-- The ids that are kept, except those of queues whose history was purged: behind what retention removed, and highest.
SELECT gone + 1, greatest(last, coalesce((SELECT max(id) FROM history), 0)) FROM history_ends;

-- name: history_lines
-- Finished messages, of a queue or (NULL) of all, with ids between two, as NDJSON; how many, and the last id.
WITH first AS (
    SELECT * FROM history WHERE id > $1 AND id <= $2 AND ($6::text IS NULL OR queue = $6) ORDER BY id LIMIT $3
), summed AS (
    SELECT *, sum(bytes + $5) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS size FROM first
)
SELECT convert_to(string_agg('{"id":' || to_json(message_id) || ',"queue":' || to_json(queue) || ',"sequence":' || seq
        || ',"receivedAt":' || received_at || ',"attempts":' || attempts || ',"priority":' || priority
        || CASE WHEN coalesce(group_id, '') = '' THEN '' ELSE ',"group":' || to_json(group_id) END
        || coalesce(',"attributes":' || attributes, '')
        || CASE WHEN key IS NULL THEN '' ELSE ',"key":' || to_json(key) || ',"kind":' || to_json(kind) END || $origin
        || ',"historyId":' || id || ',"outcome":' || to_json(outcome)
        || CASE WHEN reason IS NULL THEN '' ELSE ',"reason":' || to_json(reason) END || ',"finishedAt":' || finished_at
        || ',"content":' || to_json(content) || '}' || chr(10), '' ORDER BY id), 'UTF8'), count(*), max(id)
FROM summed WHERE size <= greatest($4, bytes + $5);

-- columns: event_line
-- A MessageEvent as a line of NDJSON, a value for each member in its order.
(SELECT row_to_json(line)::text || chr(10) FROM (SELECT id, at,
    CASE kind WHEN 0 THEN 'produced' WHEN 1 THEN 'delivered' WHEN 2 THEN 'acked' WHEN 3 THEN 'nacked'
        WHEN 4 THEN 'released' WHEN 5 THEN 'extended' WHEN 6 THEN 'lease_expired' WHEN 7 THEN 'dead_lettered'
        WHEN 8 THEN 'requeued' WHEN 9 THEN 'expired' WHEN 11 THEN 'cancelled' WHEN 12 THEN 'updated'
        ELSE 'deleted' END AS kind,
    queue, message_id AS "messageId", seq AS sequence, attempt, reason, target, received_at AS "receivedAt",
    duration_ms AS "durationMs", bytes) AS line);

-- name: event_lines
-- The next events, of a queue or (NULL) of all: how many, the id of the last one, and all of them as NDJSON.
SELECT count(*), max(id), convert_to(string_agg($event_line, '' ORDER BY id), 'UTF8')
FROM (SELECT * FROM events WHERE id > $1 AND id <= $2 AND ($3::text IS NULL OR queue = $3) ORDER BY id LIMIT $4) AS event;

-- name: message_events
-- The latest events of a message as NDJSON, if one of them is of this queue.
SELECT convert_to(string_agg($event_line, '' ORDER BY id), 'UTF8')
FROM (SELECT * FROM events WHERE message_id = $1 ORDER BY id DESC LIMIT $3) AS event
WHERE EXISTS (SELECT 1 FROM events WHERE message_id = $1 AND $2 IN (queue, target));
