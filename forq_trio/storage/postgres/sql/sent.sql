-- Messages that applications sent with forq.send, and those of them that were set aside.

-- name: sent_page
-- The first messages that applications sent: at most so many, and not many more bytes; at least one.
SELECT id, queue, message, bytes FROM (
    SELECT *, sum(bytes) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
        SELECT *, octet_length(message) AS bytes FROM sent ORDER BY id LIMIT $1) AS first
) AS summed WHERE before < $2 ORDER BY id;

-- name: sent_page_of_queues
-- The same of so many queues behind a name: each but these, full or served, has the same share. First: the last name, how many.
WITH RECURSIVE queues (queue, number) AS (
    (SELECT queue, 1 FROM sent WHERE queue > $3 ORDER BY queue, id LIMIT 1)
    UNION ALL
    SELECT next.queue, number + 1 FROM queues, LATERAL (
        SELECT queue FROM sent WHERE sent.queue > queues.queue ORDER BY queue, id LIMIT 1) AS next
    WHERE number < $4
),
chosen AS MATERIALIZED (SELECT queue FROM queues WHERE queue <> ALL ($5::text[]))
SELECT NULL AS id, max(queue) AS queue, NULL AS message, count(*) AS bytes FROM queues
UNION ALL
(SELECT id, queue, message, bytes FROM (
    SELECT *, sum(bytes) OVER (ORDER BY place, id ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
        SELECT found.*, octet_length(found.message) AS bytes FROM chosen, LATERAL (
            SELECT *, row_number() OVER (ORDER BY id) AS place FROM sent WHERE sent.queue = chosen.queue ORDER BY id
            LIMIT (SELECT ($1 + count(*) - 1) / greatest(count(*), 1) FROM chosen)) AS found
        ORDER BY place, id LIMIT $1) AS first
) AS summed WHERE before < $2 ORDER BY id);

-- name: set_sent_aside
-- Copy a message that was refused, with the reason.
INSERT INTO sent_set_aside SELECT id, queue, message, $2, $3 FROM sent WHERE id = $1;

-- name: bound_set_aside
-- Remove all but the latest messages that were set aside.
DELETE FROM sent_set_aside WHERE id <= (SELECT id FROM sent_set_aside ORDER BY id DESC OFFSET $1 LIMIT 1);

-- name: list_set_aside
-- Messages that were set aside, behind an id: at most so many, and not many more bytes; at least one.
SELECT id, queue, message, code, reason FROM (
    SELECT *, sum(octet_length(message)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - octet_length(message) AS before
    FROM (SELECT * FROM sent_set_aside WHERE id > $1 ORDER BY id LIMIT $2) AS first
) AS summed WHERE before < $3 ORDER BY id;

-- name: count_set_aside
-- How many messages are set aside, and the highest id.
SELECT count(*), coalesce(max(id), 0) FROM sent_set_aside;

-- name: sent_figures
-- How many messages are set aside, how many wait (counted up to a bound), and the lowest id of these.
SELECT (SELECT count(*) FROM sent_set_aside), count(*), min(id) FROM (SELECT id FROM sent ORDER BY id LIMIT $1) AS first;

-- name: take_set_aside
-- Remove the first of these that have so many bytes, but at least one; and send them again where $3 is 1.
WITH taken AS (
    DELETE FROM sent_set_aside WHERE id IN (
        SELECT id FROM (
            SELECT id, sum(octet_length(message)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - octet_length(message)
                AS before
            FROM sent_set_aside WHERE id = ANY ($1::bigint[])
        ) AS summed WHERE before < $2)
    RETURNING id, queue, message
),
again AS (INSERT INTO sent (queue, message) SELECT queue, message FROM taken WHERE $3 = 1 ORDER BY id)
SELECT id, queue FROM taken ORDER BY id;

-- name: forget_sent
-- Remove messages that are in their queues, or set aside.
DELETE FROM sent WHERE id = ANY (translate($1, '[]', '{}')::bigint[]);
