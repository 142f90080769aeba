-- Statements about consumers and their pages that differ for PostgreSQL from relational/sql/consumers.sql.

-- name: save_consumer_numbers
-- Store the highest lease number of a consumer that is forgotten, and of those that were acknowledged.
INSERT INTO consumer_numbers (consumer, number, acknowledged) VALUES ($1, $2, $3)
ON CONFLICT (consumer) DO UPDATE SET number = excluded.number, acknowledged = excluded.acknowledged,
    id = nextval('consumer_numbers_id_seq');

-- name: moved_by_id
-- The moved pages that have messages of these ids, each once.
SELECT DISTINCT found.queue, consumer, number, page
FROM json_array_elements($1::json) AS wanted,
    LATERAL (SELECT * FROM moved_pages WHERE queue = wanted ->> 0 AND first_id <= wanted ->> 1
             ORDER BY queue DESC, first_id DESC LIMIT 1) AS found
WHERE strpos(rows, wanted ->> 1) > 0;

-- name: queues_of
-- The queue of each of these messages.
SELECT seq, queue FROM messages WHERE seq = ANY (translate($1, '[]', '{}')::bigint[])
UNION ALL
SELECT wanted, found.queue
FROM (SELECT DISTINCT queue FROM consumers) AS leasing, unnest(translate($1, '[]', '{}')::bigint[]) AS wanted,
    LATERAL (SELECT * FROM moved_pages WHERE moved_pages.queue = leasing.queue AND first_seq <= wanted
             ORDER BY queue DESC, first_seq DESC LIMIT 1) AS found
WHERE last_seq >= wanted
  AND EXISTS (SELECT 1 FROM json_array_elements(rows::json) AS moved WHERE (moved ->> 0)::bigint = wanted);
