-- Shared statements for many tuples of bindings at once: each binding is an array. An UPDATE names its row last, and looks
-- it up for each tuple: a join could also walk the table, which seems cheap if it was empty when it was analyzed.

-- name: insert_plain
-- Store messages with the plain columns only, in order of arrival.
INSERT INTO messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after, priority, position,
                      bytes, content)
SELECT a, b, c, d, e, f, f, g, h, a, i, j
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::text[]) AS given (a, b, c, d, e, f, g, h, i, j);

-- name: insert_leased
-- Store messages with the plain columns only that are claimed in the batch that sends them.
INSERT INTO messages (seq, id, queue, status, attempts, process_after, received_at, updated_at, first_received_at,
                      processing_started_at, expires_after, priority, position, bytes, lease_until, receipt, content)
SELECT a, b, c, 1, 1, d, e, e, e, e, f, g, a, h, i, j, k
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[]) AS given (a, b, c, d, e, f, g, h, i, j, k);

-- name: insert_message
-- Store new messages.
INSERT INTO messages (seq, id, queue, is_dlq, status, process_after, received_at, updated_at, bytes, expires_after,
                      priority, position, max_attempts, default_max_receives, ttl_ms, group_id, attributes, dedup_id,
                      dead_letter_queue, kind, key, content)
SELECT *
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[]) AS given;

-- name: lease
-- Lease ready messages to consumers.
UPDATE messages SET status = 1, attempts = a, first_received_at = b, processing_started_at = c, updated_at = d,
    lease_until = e, receipt = f
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS given (a, b, c, d, e, f, g),
    LATERAL (SELECT ctid AS place FROM messages WHERE seq = g LIMIT 1) AS found
WHERE messages.ctid = place;

-- name: give_back
-- Give messages back from their consumers: ready, delayed or failed.
UPDATE messages SET status = a, attempts = b, process_after = coalesce(c, process_after), receipt = d,
    last_error = coalesce(e, last_error), error_key = coalesce(f, error_key), failures = coalesce(g, failures),
    processing_started_at = NULL, lease_until = NULL, updated_at = h
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::bigint[],
            $9::bigint[]) AS given (a, b, c, d, e, f, g, h, i),
    LATERAL (SELECT ctid AS place FROM messages WHERE seq = i LIMIT 1) AS found
WHERE messages.ctid = place;

-- name: insert_event
-- Store events.
INSERT INTO events (id, at, kind, queue, seq, message_id, attempt, reason, target, received_at, duration_ms, bytes, total)
SELECT *
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::text[],
            $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]) AS given;
