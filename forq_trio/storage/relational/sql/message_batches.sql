-- Message batches and their members: on the write connection.

-- columns: batch
-- A batch as `read_batch` reads it.
number, id, made_by, made_at, size, terms, progress;

-- name: load_message_batches
-- How many batches each token made, and the bytes of what they send; NULL: the server's secret.
SELECT made_by, count(*), CAST(sum(size) AS bigint) FROM message_batches GROUP BY made_by;

-- name: count_batch_members
-- How many messages are members; it reads them all, so it runs at the start alone.
SELECT count(*) FROM batch_members;

-- name: next_message_batch
-- When the next batch is due; no row for never.
SELECT due_at FROM message_batches ORDER BY due_at, number LIMIT 1;

-- name: due_message_batch
-- The batch that is due for the longest time. It is not read yet: it may be damaged.
SELECT number, id FROM message_batches WHERE due_at <= ? ORDER BY due_at, number LIMIT 1;

-- name: read_message_batch
-- A batch by its number.
SELECT $batch FROM message_batches WHERE number = ?;

-- name: read_message_batches
-- Batches by their numbers.
SELECT $batch FROM message_batches WHERE number IN (SELECT value FROM json_each(?));

-- name: find_message_batch
-- A batch by its id.
SELECT $batch FROM message_batches WHERE id = ?;

-- name: message_batch_sends
-- What a batch sends, with the contents.
SELECT sends FROM message_batches WHERE number = ?;

-- name: list_message_batches
-- The batches below a number, the newest first.
SELECT $batch FROM message_batches WHERE number < ? ORDER BY number DESC LIMIT ?;

-- name: list_message_batches_of
-- The same of those that one token made.
SELECT $batch FROM message_batches WHERE made_by = ? AND number < ? ORDER BY number DESC LIMIT ?;

-- name: open_message_batch
-- Store a new batch.
INSERT INTO message_batches (number, id, made_by, made_at, size, terms, progress, sends, due_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: change_message_batch
-- Store how far a batch is.
UPDATE message_batches SET progress = ?, due_at = ? WHERE number = ?;

-- name: retry_message_batch
-- Set the time at which a batch that cannot be read is tried again.
UPDATE message_batches SET due_at = ? WHERE number = ?;

-- name: forget_message_batch
-- Remove a batch that has ended.
DELETE FROM message_batches WHERE number = ?;

-- name: add_batch_member
-- Note that a message is a member of a batch.
INSERT INTO batch_members (seq, batch, dead) VALUES (?, ?, 0);

-- name: find_batch_members
-- Those of these messages that are members.
SELECT seq, batch, dead FROM batch_members WHERE seq IN (SELECT value FROM json_each(?));

-- name: mark_batch_member
-- Note whether a member is a dead letter.
UPDATE batch_members SET dead = ? WHERE seq = ?;

-- name: forget_batch_members
-- Forget members whose messages are gone, or whose batch is.
DELETE FROM batch_members WHERE seq IN (SELECT value FROM json_each(?));
