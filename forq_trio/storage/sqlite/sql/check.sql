-- The invariants of every file after every commit. Each statement but the first returns a sentence per violation. The
-- columns of a row are compared with each other, and counts with the rows they count.

-- name: count_stored
-- How many messages there are, in the table and in pages of leases, in how many queues.
SELECT coalesce(sum(messages), 0), count(DISTINCT queue) FROM (
    SELECT queue, count(*) AS messages FROM messages GROUP BY queue
    UNION ALL SELECT queue, sum(messages) FROM moved_pages GROUP BY queue);

-- name: status
-- A status is one of ours.
SELECT printf('message %d has the unknown status %s', seq, status)
FROM messages WHERE status NOT IN (0, 1, 2, 3, 4);

-- name: lease
-- A processing message has a lease, and no other has.
SELECT printf('message %d has status %d and %s', seq, status, iif(lease_until IS NULL, 'no lease', 'a lease'))
FROM messages WHERE (status = 1) <> (lease_until IS NOT NULL);

-- name: dead_letter
-- is_dlq follows from the name of the queue.
SELECT printf('message %d of queue %s is marked is_dlq = %s', seq, queue, is_dlq)
FROM messages WHERE is_dlq <> (substr(queue, -4) = '-dlq');

-- name: size
-- The bytes of a message are at least those of its content.
SELECT printf('message %d of %d bytes is counted as %d', seq, octet_length(content), bytes)
FROM messages LEFT JOIN message_keys ON kind IS NOT NULL AND message = seq
WHERE bytes - coalesce(waiting_bytes, 0) < octet_length(content)
   OR (attributes IS NULL AND bytes - coalesce(waiting_bytes, 0) <> octet_length(content));

-- name: keys
-- A message has a kind where it has a row of keys, and its key is that of the row.
SELECT printf('message %d and its key do not belong together', coalesce(seq, message))
FROM (SELECT seq, kind, key FROM messages WHERE kind IS NOT NULL) FULL JOIN message_keys ON message = seq
WHERE seq IS NULL OR message IS NULL OR (key IS NOT NULL AND key <> own_key);

-- name: settings
-- The settings of a queue are a JSON object.
SELECT printf('the settings of queue %s cannot be read', queue)
FROM queues WHERE NOT json_valid(settings) OR json_type(settings) <> 'object';

-- name: sequence
-- Sequence numbers are positive and none is above the last one given out, so that none is given out again.
SELECT printf('message %d is not among the sequence numbers given out', seq)
FROM messages
WHERE seq < 1 OR seq > (SELECT max(last_seq) FROM (SELECT last_seq FROM queue_counts UNION ALL SELECT last_seq FROM forgotten_sequence));

-- name: types
-- Columns that are compared as numbers hold numbers, and content is text.
SELECT printf('message %d has a column of the wrong type', seq)
FROM messages
WHERE typeof(position) <> 'integer' OR typeof(priority) <> 'integer' OR typeof(attempts) <> 'integer'
   OR typeof(process_after) <> 'integer' OR typeof(expires_after) <> 'integer' OR typeof(content) <> 'text'
   OR typeof(received_at) <> 'integer' OR typeof(bytes) <> 'integer' OR typeof(lease_until) NOT IN ('integer', 'null');

-- name: counts
-- The maintained counts are those of the table.
SELECT printf(
    'queue %s holds %d ready, %d processing, %d failed, %d delayed, %d held, %d bytes '
    || 'but is counted as %d, %d, %d, %d, %d, %d',
    queue, stored.ready, stored.processing, stored.failed, stored.delayed, stored.held, stored.bytes,
    counted.ready, counted.processing, counted.failed, counted.delayed, counted.held, counted.bytes
)
FROM queue_counts AS counted
FULL JOIN (
    SELECT
        queue,
        sum(number) FILTER (WHERE status = 0) AS ready,
        sum(number) FILTER (WHERE status = 1) AS processing,
        sum(number) FILTER (WHERE status = 2) AS failed,
        sum(number) FILTER (WHERE status = 3) AS delayed,
        sum(number) FILTER (WHERE status = 4) AS held,
        sum(bytes) AS bytes
    FROM (SELECT queue, status, 1 AS number, bytes FROM messages
          UNION ALL SELECT queue, 1, messages, bytes FROM moved_pages)
    GROUP BY queue
) AS stored USING (queue)
WHERE coalesce(counted.ready, 0) <> coalesce(stored.ready, 0)
   OR coalesce(counted.processing, 0) <> coalesce(stored.processing, 0)
   OR coalesce(counted.failed, 0) <> coalesce(stored.failed, 0)
   OR coalesce(counted.delayed, 0) <> coalesce(stored.delayed, 0)
   OR coalesce(counted.held, 0) <> coalesce(stored.held, 0)
   OR coalesce(counted.bytes, 0) <> coalesce(stored.bytes, 0);

-- name: moved
-- Messages that are moved have their page, and are not in the table.
SELECT printf('page %d of lease %d of consumer %s of queue %s has no lines of its messages', page, number, consumer, queue)
FROM moved_pages LEFT JOIN consumer_pages USING (queue, consumer, number, page)
WHERE body IS NULL OR json_array_length(rows) <> messages
UNION ALL
SELECT printf('message %d is in the table and in a page', seq)
FROM moved_pages, json_each(rows) JOIN messages ON seq = json_each.value ->> 0;

-- name: deduplication
-- A deduplication id has the sequence of a message that was stored, and an end.
SELECT printf('the deduplication id %s of queue %s names no message that ever was', dedup_id, queue)
FROM dedup
WHERE seq < 1 OR expires_at < 1 OR id = ''
   OR seq > (SELECT max(last_seq) FROM (SELECT last_seq FROM queue_counts UNION ALL SELECT last_seq FROM forgotten_sequence));
