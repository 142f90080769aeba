-- What holds in every file at every commit. Each statement returns a sentence per breach. A row is checked for what
-- its own columns say about each other, queues and sums for what is kept twice.

-- name: status
-- A status is one of ours.
SELECT printf('message %d has the unknown status %s', seq, status)
FROM messages WHERE status NOT IN (0, 1, 2, 3, 4);

-- name: lease
-- A lease is held by a message in process, and by no other.
SELECT printf('message %d has status %d and %s', seq, status, iif(lease_until IS NULL, 'no lease', 'a lease'))
FROM messages WHERE (status = 1) <> (lease_until IS NOT NULL);

-- name: dead_letter
-- The mark of a dead-letter queue is its name.
SELECT printf('message %d of queue %s is marked is_dlq = %s', seq, queue, is_dlq)
FROM messages WHERE is_dlq <> (substr(queue, -4) = '-dlq');

-- name: size
-- What a message counts against its queue's bound is at least its content.
SELECT printf('message %d of %d bytes is counted as %d', seq, octet_length(content), bytes)
FROM messages WHERE bytes < octet_length(content) OR (attributes IS NULL AND bytes <> octet_length(content));

-- name: settings
-- What is set for a queue is a JSON object, and so is what is kept as JSON of a message.
SELECT printf('the settings of queue %s cannot be read', queue)
FROM queues WHERE NOT json_valid(settings) OR json_type(settings) <> 'object';

-- name: sequence
-- Sequence numbers are positive and none is above the last one given out, so that none is given out again.
SELECT printf('message %d is not among the sequence numbers given out', seq)
FROM messages
WHERE seq < 1 OR seq > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages');

-- name: types
-- Columns that are compared as numbers hold numbers, and content is text.
SELECT printf('message %d has a column of the wrong type', seq)
FROM messages
WHERE typeof(position) <> 'integer' OR typeof(priority) <> 'integer' OR typeof(attempts) <> 'integer'
   OR typeof(process_after) <> 'integer' OR typeof(expires_after) <> 'integer' OR typeof(content) <> 'text'
   OR typeof(received_at) <> 'integer' OR typeof(bytes) <> 'integer' OR typeof(lease_until) NOT IN ('integer', 'null');

-- name: counts
-- The counts that are kept beside the table are the table's.
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
        count(*) FILTER (WHERE status = 0) AS ready,
        count(*) FILTER (WHERE status = 1) AS processing,
        count(*) FILTER (WHERE status = 2) AS failed,
        count(*) FILTER (WHERE status = 3) AS delayed,
        count(*) FILTER (WHERE status = 4) AS held,
        sum(bytes) AS bytes
    FROM messages GROUP BY queue
) AS stored USING (queue)
WHERE coalesce(counted.ready, 0) <> coalesce(stored.ready, 0)
   OR coalesce(counted.processing, 0) <> coalesce(stored.processing, 0)
   OR coalesce(counted.failed, 0) <> coalesce(stored.failed, 0)
   OR coalesce(counted.delayed, 0) <> coalesce(stored.delayed, 0)
   OR coalesce(counted.held, 0) <> coalesce(stored.held, 0)
   OR coalesce(counted.bytes, 0) <> coalesce(stored.bytes, 0);

-- name: deduplication
-- An entry names a message that was given a sequence number, and ends.
SELECT printf('the deduplication id %s of queue %s names no message that ever was', dedup_id, queue)
FROM dedup
WHERE seq < 1 OR expires_at < 1 OR id = ''
   OR seq > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages');
