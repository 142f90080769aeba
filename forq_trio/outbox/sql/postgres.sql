-- Statements for the PostgreSQL database of a queue. forq_trio/outbox/postgres.py reads this file.

-- name: send
-- Send a message once the transaction commits.
SELECT forq.send(queue => %s::text, content => %s::text, process_after => %s::bigint, delay_ms => %s::bigint,
                 priority => %s::bigint, ttl_ms => %s::bigint, attributes => %s::jsonb, deduplication_id => %s::text,
                 deduplication_window_ms => %s::bigint, "group" => %s::text, max_attempts => %s::bigint,
                 dead_letter_queue => %s::text);

-- name: list_set_aside
-- The messages that were set aside, behind an id.
SELECT id, queue, message, code, reason FROM forq.sent_set_aside WHERE id > %s ORDER BY id LIMIT %s;

-- name: forget_set_aside
-- Delete messages that were set aside.
DELETE FROM forq.sent_set_aside WHERE id = ANY (%s);

-- name: retry_set_aside
-- Add messages that were set aside again, with new ids.
WITH again AS (DELETE FROM forq.sent_set_aside WHERE id = ANY (%s) RETURNING id, queue, message)
INSERT INTO forq.sent (queue, message) SELECT queue, message FROM again ORDER BY id;
