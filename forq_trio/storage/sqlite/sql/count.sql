-- name: messages
-- How many messages there are, in how many queues; works on Forq's table too.
SELECT count(*), count(DISTINCT queue) FROM messages;
