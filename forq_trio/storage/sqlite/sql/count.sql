-- name: messages
-- How many messages there are, in how many queues; works on Forq's table too.
SELECT count(*), count(DISTINCT queue) FROM messages;

-- name: moved
-- How many messages are in pages of leases only.
SELECT coalesce(sum(messages), 0) FROM moved_pages;
