-- Consumers of pipelines, the pages of their leases, and reads that need them. Only this file and `forq check` read pages.

-- name: load_consumers
-- All consumers.
SELECT queue, name, consumer FROM consumers;

-- name: save_consumer
-- Store a consumer, or change it.
INSERT INTO consumers (queue, name, consumer) VALUES (?, ?, ?)
ON CONFLICT (queue, name) DO UPDATE SET consumer = excluded.consumer;

-- name: forget_consumer
-- Forget a consumer.
DELETE FROM consumers WHERE queue = ? AND name = ?;

-- name: load_forgotten_consumers
-- The highest generation of the consumers that were forgotten, and the number behind which unknown names begin.
SELECT generation, number FROM consumers_forgotten;

-- name: save_forgotten_consumers
-- Store the highest generation of the consumers that were forgotten, and the number behind which unknown names begin.
UPDATE consumers_forgotten SET generation = ?, number = ?;

-- name: find_consumer_numbers
-- The highest lease number of a consumer that was forgotten, and of those that were acknowledged.
-- rows of: one thing
SELECT number, coalesce(acknowledged, number) FROM consumer_numbers WHERE consumer = ?;

-- name: save_consumer_numbers
-- Store the highest lease number of a consumer that is forgotten, and of those that were acknowledged.
REPLACE INTO consumer_numbers (consumer, number, acknowledged) VALUES (?, ?, ?);

-- name: drop_consumer_numbers
-- Drop the lease numbers of those that were forgotten longest ago, all but so many.
DELETE FROM consumer_numbers WHERE id <= (SELECT id FROM consumer_numbers ORDER BY id DESC LIMIT 1 OFFSET ?)
RETURNING number;

-- name: lease_page
-- Lease ready messages to a consumer.
UPDATE messages SET status = 1, attempts = attempts + 1, first_received_at = coalesce(first_received_at, ?1),
    processing_started_at = ?1, updated_at = ?1, lease_until = ?2, receipt = ?3
WHERE seq IN (SELECT value FROM json_each(?4));

-- condition: plain
-- A message has nothing but its content, attributes, priority and times.
group_id IS NULL AND kind IS NULL AND dedup_id IS NULL AND ttl_ms IS NULL AND max_attempts IS NULL
  AND default_max_receives IS NULL AND dead_letter_queue IS NULL AND failures IS NULL AND failure_reason IS NULL
  AND last_error IS NULL AND source_queue IS NULL AND dead_lettered_at IS NULL;

-- name: move_messages
-- Remove the plain ones of these ready messages, which their page has.
DELETE FROM messages WHERE seq IN (SELECT value FROM json_each(?)) AND $plain
RETURNING seq, expires_after;

-- name: move_range
-- Remove the plain ones of the messages from a sequence up to another, all of which are ready and in their page.
DELETE FROM messages WHERE seq BETWEEN ? AND ? AND $plain
RETURNING seq, expires_after;

-- name: insert_moved
-- Note that messages are moved into a page.
INSERT INTO moved_pages (queue, first_seq, last_seq, first_id, last_id, consumer, number, page, receipt, leased_at,
                         lease_until, messages, bytes, rows)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: last_moved
-- The last moved messages of a queue.
-- rows of: one thing
SELECT last_seq, last_id FROM moved_pages WHERE queue = ? ORDER BY first_seq DESC LIMIT 1;

-- name: drop_moved
-- Note that the messages of a page are no longer moved: they were acknowledged, or are back in the table.
DELETE FROM moved_pages WHERE queue = ? AND consumer = ? AND number = ? AND page = ?;

-- name: move_back
-- Put a moved message back into the table, leased as it was.
INSERT INTO messages (seq, id, queue, is_dlq, status, attempts, process_after, received_at, updated_at, first_received_at,
                      processing_started_at, expires_after, priority, position, bytes, lease_until, receipt, attributes,
                      content)
VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9, ?8, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);

-- name: moved_by_id
-- The moved pages that have messages of these ids, each once.
WITH wanted (of_queue, of_id) AS (SELECT value ->> 0, value ->> 1 FROM json_each(?))
SELECT DISTINCT queue, consumer, number, page
FROM wanted CROSS JOIN moved_pages ON queue = of_queue AND first_seq = (
    SELECT first_seq FROM moved_pages WHERE queue = of_queue AND first_id <= of_id ORDER BY first_id DESC LIMIT 1)
WHERE instr(rows, of_id) > 0;

-- name: moved_id
-- The page that has the message of an id, by its first and last sequence.
SELECT first_seq, last_seq
FROM (SELECT * FROM moved_pages WHERE queue = ?1 AND first_id <= ?2 ORDER BY first_id DESC LIMIT 1) AS page
WHERE instr(rows, ?2) > 0;

-- name: newest_moved
-- The last moved pages of a queue that begin before a sequence, newest first.
-- rows of: one thing
SELECT first_seq, last_seq, messages, consumer, number, page
FROM moved_pages WHERE queue = ? AND first_seq < ? ORDER BY first_seq DESC LIMIT ?;

-- name: oldest_moved
-- The first moved pages of a queue that end behind a sequence.
-- rows of: one thing
SELECT first_seq, last_seq, messages, consumer, number, page
FROM moved_pages WHERE queue = ? AND last_seq > ? ORDER BY last_seq LIMIT ?;

-- name: insert_page
-- Store a page of a lease.
INSERT INTO consumer_pages (queue, consumer, number, page, receipt, sequences, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: find_leased_page
-- Which messages a page has, and which of them are moved; the lines are not read.
-- rows of: one thing
SELECT consumer_pages.receipt, sequences, leased_at, lease_until, rows
FROM consumer_pages LEFT JOIN moved_pages USING (queue, consumer, number, page)
WHERE queue = ? AND consumer = ? AND number = ? AND page = ?;

-- name: page_body
-- The lines of a page.
-- rows of: one thing
SELECT body FROM consumer_pages WHERE queue = ? AND consumer = ? AND number = ? AND page = ?;

-- name: drop_page
-- Delete a page.
DELETE FROM consumer_pages WHERE queue = ? AND consumer = ? AND number = ? AND page = ?;

-- name: read_pages
-- The lines of pages of a lease.
-- rows: the first may be enough
SELECT page, body FROM consumer_pages WHERE queue = ? AND consumer = ? AND number = ? AND page >= ? ORDER BY page LIMIT ?;

-- name: queues_of
-- The queue of each of these messages.
SELECT seq, queue FROM messages WHERE seq IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT wanted.value, moved_pages.queue
FROM (SELECT DISTINCT queue FROM consumers) AS leasing CROSS JOIN json_each(?1) AS wanted
CROSS JOIN moved_pages ON moved_pages.queue = leasing.queue AND first_seq = (
    SELECT first_seq FROM moved_pages AS page WHERE page.queue = leasing.queue AND first_seq <= wanted.value
    ORDER BY first_seq DESC LIMIT 1)
WHERE last_seq >= wanted.value
  AND EXISTS (SELECT 1 FROM json_each(rows) AS moved WHERE moved.value ->> 0 = wanted.value);

-- name: bounds_with_moved
-- The last message of each part of a queue, of so many messages each, where pages have some; a page is in one part.
SELECT max(seq) FROM (
    SELECT seq, (sum(messages) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - 1) / ?2 AS part FROM (
        SELECT seq, 1 AS messages FROM messages INDEXED BY messages_queue WHERE queue = ?1
        UNION ALL SELECT last_seq, messages FROM moved_pages WHERE queue = ?1) AS places) AS placed
GROUP BY part ORDER BY part;
