-- Message batches and their members: on the write connection.

-- columns: batch
-- A batch as `read_batch` reads it.
number, id, made_by, made_at, size, terms, progress;

-- name: load_message_batches
-- How many batches each token made, and the bytes of what they send; NULL: the server's secret.
SELECT made_by, is_over, count(*), CAST(sum(size) AS bigint) FROM message_batches GROUP BY made_by, is_over;

-- name: count_batch_members
-- How many members there are, up to a number.
SELECT count(*) FROM (SELECT 1 FROM batch_members LIMIT ?) AS page;

-- name: first_message_batch
-- The batch that is due first, from the first time at which one may be: PostgreSQL reads removed entries before that.
SELECT due_at, number FROM message_batches WHERE due_at >= ? ORDER BY due_at, number LIMIT 1;

-- name: first_count
-- When members that wait are counted next, from the first time at which they may be.
SELECT counts_at FROM message_batches WHERE counts_at >= ? ORDER BY counts_at, number LIMIT 1;

-- name: due_message_batch
-- The batch that is due for the longest time, from the first time on. It is not read yet: it may be damaged.
SELECT number, id FROM message_batches WHERE due_at BETWEEN ? AND ? ORDER BY due_at, number LIMIT 1;

-- name: message_batch_to_count
-- The batch whose members wait to be counted for the longest time, from the first time on. It is not read yet, either.
SELECT number, id FROM message_batches WHERE counts_at BETWEEN ? AND ? ORDER BY counts_at, number LIMIT 1;

-- name: oldest_message_batch
-- The batch that is over for the longest time, from the first time at which one may be due.
SELECT number, due_at FROM message_batches WHERE is_over = 1 AND counts_at IS NULL AND due_at >= ?
ORDER BY due_at, number LIMIT 1;

-- name: read_message_batch
-- A batch by its number.
SELECT $batch FROM message_batches WHERE number = ?;

-- name: damaged_message_batch
-- What is to be known of a batch that cannot be read, to remove it: if it is over, or was made so long ago.
SELECT made_by, size, is_over FROM message_batches WHERE number = ? AND (is_over = 1 OR made_at <= ?);

-- name: read_message_batches
-- Batches by their numbers.
SELECT $batch FROM message_batches WHERE number IN (SELECT value FROM json_each(?));

-- name: find_message_batch
-- A batch by its id.
SELECT $batch FROM message_batches WHERE id = ?;

-- name: message_batch_digest
-- The digest of how a batch was opened.
SELECT digest FROM message_batches WHERE number = ?;

-- name: list_message_batches
-- The batches below a number, the newest first.
SELECT $batch FROM message_batches WHERE number < ? ORDER BY number DESC LIMIT ?;

-- name: list_message_batches_of
-- The same of those that one token made.
SELECT $batch FROM message_batches WHERE made_by = ? AND number < ? ORDER BY number DESC LIMIT ?;

-- name: open_message_batch
-- Store a new batch.
INSERT INTO message_batches (number, id, made_by, made_at, size, digest, terms, progress, due_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: change_message_batch
-- Store how far a batch is.
UPDATE message_batches SET progress = ?, due_at = ?, is_over = ? WHERE number = ?;

-- name: set_counts_at
-- Set when the members of a batch that wait are counted.
UPDATE message_batches SET counts_at = ? WHERE number = ?;

-- name: await_counts
-- The same for batches of which no member waited before.
UPDATE message_batches SET counts_at = ? WHERE counts_at IS NULL AND number IN (SELECT value FROM json_each(?));

-- name: set_batch_due_at
-- Set when a batch that cannot be read is tried again.
UPDATE message_batches SET due_at = ? WHERE number = ?;

-- name: forget_message_batch
-- Remove a batch that is over.
DELETE FROM message_batches WHERE number = ?;

-- name: keep_sends
-- Store what a batch sends.
INSERT INTO message_batch_sends (number, sends) VALUES (?, ?);

-- name: read_sends
-- What a batch sends.
SELECT sends FROM message_batch_sends WHERE number = ?;

-- name: forget_sends
-- Remove what a batch sends: it is over.
DELETE FROM message_batch_sends WHERE number = ?;

-- name: add_batch_member
-- Note that a message, or a batch, is a member of a batch.
INSERT INTO batch_members (seq, batch, state) VALUES (?, ?, 'left');

-- name: replace_batch_member
-- Have a message take the place of a member.
UPDATE batch_members SET seq = ? WHERE seq = ?;

-- name: find_batch_members
-- Those of these messages and batches that are members. The batch's own columns are NULL if it is forgotten.
SELECT member.seq, member.batch, member.state, batch.is_over, batch.counts_at
FROM batch_members AS member LEFT JOIN message_batches AS batch ON batch.number = member.batch
WHERE member.seq IN (SELECT value FROM json_each(?));

-- name: members_to_count
-- The first members of a batch that wait to be counted.
SELECT seq, state, became FROM batch_members WHERE batch = ? AND became IS NOT NULL LIMIT ?;

-- name: await_count_of_members
-- Note what became of members, to be counted later.
UPDATE batch_members SET became = ? WHERE seq IN (SELECT value FROM json_each(?));

-- name: mark_batch_members
-- Note as what members are counted.
UPDATE batch_members SET state = ?, became = NULL WHERE seq IN (SELECT value FROM json_each(?));

-- name: forget_batch_members
-- Forget members that are gone, or whose batch is over.
DELETE FROM batch_members WHERE seq IN (SELECT value FROM json_each(?));
