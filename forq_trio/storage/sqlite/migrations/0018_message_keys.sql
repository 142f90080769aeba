-- Keys of messages. In `messages` the columns kind and key are of a pending message, and its index makes them unique; a
-- message that had a key and lost it (a dead letter) still has its kind.
--
-- message        the sequence of the message
-- own_key        its key, also after it was dead-lettered
-- due            when it was to be delivered, as offered: process_after changes with each attempt
-- revision       grows with each change; a sequence number, so it is never used twice
-- waiting        JSON: the offer that waits behind the message while it is in process, NULL for none
-- waiting_bytes  of content and attributes of that one; the message's own `bytes` has them, too
CREATE TABLE message_keys (
    message        INTEGER PRIMARY KEY,
    own_key        TEXT    NOT NULL,
    mode           TEXT    NOT NULL,
    due            INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    offers         INTEGER NOT NULL,
    first_offer_at INTEGER NOT NULL,
    last_offer_at  INTEGER NOT NULL,
    max_wait_until INTEGER,
    waiting_bytes  INTEGER NOT NULL DEFAULT 0,
    waiting        BLOB
);
