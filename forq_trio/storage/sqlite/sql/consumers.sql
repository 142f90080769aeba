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

-- name: load_forgotten_generation
-- The highest generation of the consumers that were forgotten.
SELECT generation FROM consumers_forgotten;

-- name: save_forgotten_generation
-- Store the highest generation of the consumers that were forgotten.
UPDATE consumers_forgotten SET generation = ?;

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
