-- Positions of outboxes.

-- name: find_outbox
-- How far an outbox was relayed, and whose it is.
-- rows of: one thing
SELECT position, made_by FROM outboxes WHERE outbox = ?;

-- name: count_outboxes
-- How many outboxes each key made; it reads OUTBOXES_MAX rows, so a batch runs it once.
SELECT made_by, count(*) FROM outboxes GROUP BY made_by;

-- name: save_outbox
-- Store the position up to which an outbox was relayed.
INSERT INTO outboxes (outbox, position, made_by, relayed_at) VALUES (?, ?, ?, ?)
ON CONFLICT (outbox) DO UPDATE SET position = excluded.position, relayed_at = excluded.relayed_at;
