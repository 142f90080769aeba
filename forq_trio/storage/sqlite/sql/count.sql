-- name: messages
-- How many messages there are, in how many queues; works on Forq's table too.
SELECT count(*), count(DISTINCT queue) FROM messages;

-- name: messages_and_moved
-- The same with those that are in pages of leases only.
SELECT coalesce(sum(messages), 0), count(DISTINCT queue) FROM (
    SELECT queue, count(*) AS messages FROM messages GROUP BY queue
    UNION ALL SELECT queue, sum(messages) FROM moved_pages GROUP BY queue);
