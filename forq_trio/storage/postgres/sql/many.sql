-- Shared statements for many tuples of bindings at once: each binding is an array. An UPDATE names its row last, and looks
-- it up for each tuple: a join could also walk the table, which seems cheap if it was empty when it was analyzed. What is read
-- for each tuple comes behind its place among them.

-- name: insert_plain
-- Store messages with the plain columns only.
INSERT INTO messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after, priority, position,
                      bytes, content)
SELECT a, b, c, d, e, f, f, g, h, i, j, k
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[]) AS given (a, b, c, d, e, f, g, h, i, j, k);

-- name: insert_leased
-- Store messages with the plain columns only that are claimed in the batch that sends them.
INSERT INTO messages (seq, id, queue, status, attempts, process_after, received_at, updated_at, first_received_at,
                      processing_started_at, expires_after, priority, position, bytes, lease_until, receipt, content)
SELECT a, b, c, 1, 1, d, e, e, e, e, f, g, a, h, i, j, k
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[]) AS given (a, b, c, d, e, f, g, h, i, j, k);

-- name: insert_message
-- Store new messages.
INSERT INTO messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after, priority, position,
                      bytes, content, is_dlq, max_attempts, default_max_receives, ttl_ms, group_id, attributes, dedup_id,
                      dead_letter_queue, kind, key)
SELECT a, b, c, d, e, f, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[])
    AS given (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);

-- name: lease
-- Lease ready messages to consumers.
UPDATE messages SET status = 1, attempts = a, first_received_at = b, processing_started_at = c, updated_at = d,
    lease_until = e, receipt = f
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS given (a, b, c, d, e, f, g),
    LATERAL (SELECT ctid AS place FROM messages WHERE seq = g LIMIT 1) AS found
WHERE messages.ctid = place;

-- name: return_message
-- Give messages back from their consumers: ready, delayed or failed.
UPDATE messages SET status = a, attempts = b, process_after = coalesce(c, process_after), receipt = d,
    last_error = coalesce(e, last_error), error_key = coalesce(f, error_key), failures = coalesce(g, failures),
    max_attempts = coalesce(h, max_attempts), processing_started_at = NULL, lease_until = NULL, updated_at = i
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::bigint[],
            $9::bigint[], $10::bigint[]) AS given (a, b, c, d, e, f, g, h, i, j),
    LATERAL (SELECT ctid AS place FROM messages WHERE seq = j LIMIT 1) AS found
WHERE messages.ctid = place;

-- name: insert_event
-- Store events.
INSERT INTO events (id, at, kind, queue, seq, message_id, attempt, reason, target, received_at, duration_ms, bytes, total)
SELECT *
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::text[],
            $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]) AS given;

-- name: save_counts
-- Messages by status of queues, and the last sequence number given out: of each a row instead of the latest.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                         $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
        AS given (a, b, c, d, e, f, g, h, i, j, k)
    LEFT JOIN LATERAL (SELECT ctid AS place, made_by FROM queue_counts WHERE queue = a ORDER BY queue DESC, number DESC LIMIT 1)
        AS latest ON true
), gone AS (
    DELETE FROM queue_counts USING given WHERE queue_counts.ctid = place
)
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, grouped, letting_go, updated_at, last_seq,
                          made_by)
SELECT a, b, c, d, e, f, g, h, i, j, k, made_by FROM given;

-- name: find_dedup
-- The first messages with deduplication ids, while their windows last.
SELECT place, found.id, found.seq
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (a, b, c, place),
    LATERAL (SELECT id, seq FROM dedup WHERE queue = a AND dedup_id = b AND expires_at > c LIMIT 1) AS found;

-- name: save_dedup
-- Start the windows of deduplication ids.
INSERT INTO dedup (queue, dedup_id, id, seq, expires_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS given
ON CONFLICT (queue, dedup_id) DO UPDATE SET id = excluded.id, seq = excluded.seq, expires_at = excluded.expires_at;

-- name: last_of_group
-- The highest positions of messages of groups and priorities: for each one seek for each status.
SELECT place, (SELECT max(position) FROM (
    SELECT (SELECT position FROM messages WHERE queue = a AND group_id = b AND status = statuses.value AND priority = c
            ORDER BY queue DESC, group_id DESC, status DESC, priority, position DESC LIMIT 1) AS position
    FROM (VALUES (0), (1), (2), (3), (4)) AS statuses (value)) AS found)
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (a, b, c, place);

-- name: count_in_process
-- How many messages of groups are processing, each counted up to a bound.
SELECT place, (SELECT count(*) FROM (
    SELECT 1 FROM messages WHERE queue = a AND group_id = b AND status BETWEEN 1 AND 1
    ORDER BY status, priority DESC, position, seq LIMIT c) AS scanned)
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (a, b, c, place);

-- name: first_delayed_of_group
-- The places in the claim order of the first delayed messages of groups.
SELECT place, found.*
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (a, b, place),
    LATERAL (SELECT -priority, position, seq FROM messages
             WHERE queue = a AND group_id = b AND status BETWEEN 3 AND 3
             ORDER BY status, priority DESC, position, seq LIMIT 1) AS found (first, position, last);

-- name: select_held_of_group
-- The next held messages of groups, and their places in the claim order.
SELECT place, found.*
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (a, b, c, place),
    LATERAL (SELECT seq, bytes, -priority, position, seq FROM messages
             WHERE queue = a AND group_id = b AND status BETWEEN 4 AND 4
             ORDER BY status, priority DESC, position, seq LIMIT c) AS found (seq, bytes, first, position, last)
ORDER BY place, first, position, seq;

-- name: find_bucket
-- When the buckets of queues or groups are full again, if they have these rates.
SELECT place, full_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS given (a, b, c, d, place)
JOIN rate_buckets ON queue = a AND group_id = b AND count = c AND period_ms = d;

-- name: save_bucket
-- Store when buckets of queues or groups are full again, after tokens were taken.
INSERT INTO rate_buckets (queue, group_id, count, period_ms, full_at, full_ms)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) AS given
ON CONFLICT (queue, group_id) DO UPDATE SET count = excluded.count, period_ms = excluded.period_ms,
    full_at = excluded.full_at, full_ms = excluded.full_ms;

-- columns: ready
-- What a claim reads of a message.
seq, id, content, attempts, received_at, priority, first_received_at, attributes, group_id, process_after, position,
bytes, key, kind, max_attempts;

-- name: select_drawn
-- Ready messages by their sequences, for a shuffle: the first ones, as many bytes as a step has.
SELECT number, $ready FROM (
    SELECT number, found.*, sum(bytes) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM unnest($1::bigint[]) WITH ORDINALITY AS given (a, number),
        LATERAL (SELECT * FROM messages WHERE seq = a AND status = 0 LIMIT 1) AS found
) AS summed WHERE before < :step_bytes ORDER BY number;

-- name: select_ready_behind
-- The next messages of queues; those of queues behind as many bytes as a step has are left out.
SELECT number, CASE WHEN fits THEN seq END, CASE WHEN fits THEN id END, CASE WHEN fits THEN content END,
       CASE WHEN fits THEN attempts END, CASE WHEN fits THEN received_at END, CASE WHEN fits THEN priority END,
       CASE WHEN fits THEN first_received_at END, CASE WHEN fits THEN attributes END, CASE WHEN fits THEN group_id END,
       CASE WHEN fits THEN process_after END, CASE WHEN fits THEN position END, CASE WHEN fits THEN bytes END,
       CASE WHEN fits THEN key END, CASE WHEN fits THEN kind END, CASE WHEN fits THEN max_attempts END
FROM (
    SELECT *, sum(bytes) OVER (ORDER BY number) <= :step_bytes AS fits
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) WITH ORDINALITY
        AS given (a, b, c, d, e, f, number),
    LATERAL (
        (SELECT * FROM messages WHERE seq = ANY (translate(b, '[]', '{}')::bigint[]) AND queue || '' = a AND status + 0 = 0)
        UNION ALL
        (SELECT * FROM messages WHERE queue = a AND status = 0 AND priority = c AND (position, seq) > (d, e)
         ORDER BY position, seq LIMIT f)
        UNION ALL
        (SELECT * FROM messages WHERE queue = a AND status = 0 AND priority < c
         ORDER BY priority DESC, position, seq LIMIT f)
        LIMIT f) AS found
) AS summed ORDER BY number, summed.priority DESC, summed.position, summed.seq;
