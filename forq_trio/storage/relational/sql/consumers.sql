-- Consumers of pipelines and the pages of their leases. The last statement is a reader's.

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

-- name: find_consumer_number
-- The highest lease number of a consumer that was forgotten.
SELECT number FROM consumer_numbers WHERE consumer = ?;

-- name: save_consumer_number
-- Store the highest lease number of a consumer that is forgotten.
REPLACE INTO consumer_numbers (consumer, number) VALUES (?, ?);

-- name: drop_consumer_numbers
-- Drop the lease numbers of those that were forgotten longest ago, all but so many.
DELETE FROM consumer_numbers WHERE id <= (SELECT id FROM consumer_numbers ORDER BY id DESC LIMIT 1 OFFSET ?)
RETURNING number;

-- name: lease_page
-- Lease ready messages to a consumer.
UPDATE messages SET status = 1, attempts = attempts + 1, first_received_at = coalesce(first_received_at, ?1),
    processing_started_at = ?1, updated_at = ?1, lease_until = ?2, receipt = ?3
WHERE seq IN (SELECT value FROM json_each(?4));

-- name: insert_page
-- Store a page of a lease.
INSERT INTO consumer_pages (queue, consumer, number, page, receipt, sequences, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: find_leased_page
-- Which messages a page has; the lines are not read.
SELECT receipt, sequences FROM consumer_pages WHERE queue = ? AND consumer = ? AND number = ? AND page = ?;

-- name: drop_page
-- Delete a page.
DELETE FROM consumer_pages WHERE queue = ? AND consumer = ? AND number = ? AND page = ?;

-- name: read_pages
-- The lines of pages of a lease.
SELECT page, body FROM consumer_pages WHERE queue = ? AND consumer = ? AND number = ? AND page >= ? ORDER BY page LIMIT ?;
