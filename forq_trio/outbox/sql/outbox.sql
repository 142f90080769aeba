-- The tables of an outbox in an application's database. forq_trio/outbox/table.py reads this file.

-- name: create_outbox
-- Messages that wait for the relay. AUTOINCREMENT: an id is never given twice, and ids grow in the order of commit.
CREATE TABLE IF NOT EXISTS forq_outbox (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    queue   TEXT    NOT NULL,
    message TEXT    NOT NULL
);

-- name: create_set_aside
-- Messages that the server refused for good, with code and sentence of the error.
CREATE TABLE IF NOT EXISTS forq_outbox_set_aside (
    id      INTEGER PRIMARY KEY,
    queue   TEXT    NOT NULL,
    message TEXT    NOT NULL,
    code    TEXT    NOT NULL,
    reason  TEXT    NOT NULL
);

-- name: create_identity
-- The id under which the server stores how far this outbox was relayed: one row.
CREATE TABLE IF NOT EXISTS forq_outbox_id (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    outbox TEXT    NOT NULL
);

-- name: make_identity
-- Give the outbox an id, if it has none.
INSERT INTO forq_outbox_id (one, outbox) VALUES (1, ?) ON CONFLICT (one) DO NOTHING;

-- name: change_identity
-- Give the outbox another id.
UPDATE forq_outbox_id SET outbox = ?;

-- name: find_identity
-- The id of the outbox.
SELECT outbox FROM forq_outbox_id;

-- name: add
-- A message of the application.
INSERT INTO forq_outbox (queue, message) VALUES (?, ?);

-- name: next_page
-- The next messages behind a position.
SELECT id, queue, message FROM forq_outbox WHERE id > ? ORDER BY id LIMIT ?;

-- name: remove_relayed
-- Remove the messages up to a position, which the server has.
DELETE FROM forq_outbox WHERE id <= ?;

-- name: last_id
-- The highest id that was ever given.
SELECT seq FROM sqlite_sequence WHERE name = 'forq_outbox';

-- name: set_aside
-- Note a message that was refused, with the reason.
INSERT OR REPLACE INTO forq_outbox_set_aside (id, queue, message, code, reason) VALUES (?, ?, ?, ?, ?);

-- name: find_one
-- A message that is to be set aside.
SELECT queue, message FROM forq_outbox WHERE id = ?;

-- name: remove_one
-- Remove a message that was set aside.
DELETE FROM forq_outbox WHERE id = ?;

-- name: list_set_aside
-- The messages that were set aside, behind an id.
SELECT id, queue, message, code, reason FROM forq_outbox_set_aside WHERE id > ? ORDER BY id LIMIT ?;

-- name: retry_set_aside
-- Add a message that was set aside again, with a new id.
INSERT INTO forq_outbox (queue, message) SELECT queue, message FROM forq_outbox_set_aside WHERE id = ?;

-- name: forget_set_aside
-- Forget a message that was set aside.
DELETE FROM forq_outbox_set_aside WHERE id = ?;
