-- Positions of outboxes.

-- name: find_outbox
-- How far an outbox was relayed, and whose it is.
-- rows of: one thing
SELECT position, made_by FROM outboxes WHERE outbox = ?;

-- name: count_outboxes
-- How many outboxes there are, and how many of them a key made.
SELECT count(*), count(CASE WHEN made_by = ? THEN 1 END) FROM outboxes;

-- name: save_outbox
-- An outbox was relayed up to this position.
INSERT INTO outboxes (outbox, position, made_by, relayed_at) VALUES (?, ?, ?, ?)
ON CONFLICT (outbox) DO UPDATE SET position = excluded.position, relayed_at = excluded.relayed_at;
