-- Messages with a key. These statements run only for them.

-- name: has_content
-- Whether this is the content of a message.
-- rows of: one thing
SELECT content = ?2 FROM messages WHERE seq = ?1;

-- name: insert_key
-- The key of a new message.
INSERT INTO message_keys (message, own_key, mode, due, revision, offers, first_offer_at, last_offer_at, max_wait_until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: note_offer
-- Count an offer that changed nothing.
UPDATE message_keys SET mode = ?, offers = offers + 1, last_offer_at = ? WHERE message = ?;

-- name: update_key
-- Store a changed offer; an offer that waited is gone.
UPDATE message_keys SET mode = ?, due = ?, revision = ?, offers = offers + 1, last_offer_at = ?, max_wait_until = ?,
    waiting_bytes = 0, waiting = NULL
WHERE message = ?;

-- name: update_message
-- Change a message as if it had just been sent; a receipt that it had ends.
UPDATE messages SET status = ?, process_after = ?, received_at = ?, updated_at = ?, expires_after = ?, priority = ?,
    position = ?, bytes = ?, max_attempts = ?, ttl_ms = ?, group_id = ?, attributes = ?, dead_letter_queue = ?,
    content = ?, attempts = 0, processing_started_at = NULL, lease_until = NULL, receipt = NULL,
    first_received_at = NULL, failures = NULL, last_error = NULL, error_key = NULL, default_max_receives = NULL
WHERE seq = ?;

-- name: reschedule_message
-- Move the due time of a message that is not in process; a receipt that it had ends.
UPDATE messages SET status = ?, process_after = ?, updated_at = ?, expires_after = ?, position = ?, receipt = NULL
WHERE seq = ?;

-- name: reschedule_key
-- Note the due time that a message was given.
UPDATE message_keys SET due = ?, revision = ? WHERE message = ?;

-- name: read_waiting
-- The offer that waits behind a message.
-- rows of: one thing
SELECT waiting FROM message_keys WHERE message = ?;

-- name: read_all_waiting
-- The offers that wait behind these messages.
-- rows of: one thing
SELECT message, own_key, waiting FROM message_keys
WHERE message IN (SELECT value FROM json_each(?)) AND waiting IS NOT NULL;

-- name: save_waiting
-- Store the offer that waits behind a message from now on; NULL for none.
UPDATE message_keys SET waiting_bytes = ?, waiting = ? WHERE message = ?;

-- name: resize_message
-- The bytes of a message, with those that wait behind it.
UPDATE messages SET bytes = ? WHERE seq = ?;

-- name: delete_keys
-- Remove the keys of messages that are removed.
DELETE FROM message_keys WHERE message IN (SELECT value FROM json_each(?));

-- name: own_key
-- The key that a message has or had.
SELECT own_key FROM message_keys WHERE message = ?;

-- name: is_pending
-- Whether a key is pending.
SELECT 1 FROM messages WHERE queue = ? AND kind = ? AND key = ?;

-- name: give_key
-- Give a message its key back, or take it away: without a kind it has none.
UPDATE messages SET key = ?, kind = ? WHERE seq = ?;
