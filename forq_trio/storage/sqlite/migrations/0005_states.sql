-- Lists of the messages in one status, newest first: a page of those in flight, or delayed, is found at once among a
-- million others. Held messages have messages_held, failed ones messages_failed.
CREATE INDEX messages_in_flight ON messages (queue) WHERE status = 1;
CREATE INDEX messages_delayed ON messages (queue) WHERE status = 3;

-- Sessions of the admin UI: the hash of each id, never the id.
--
-- key_name, key_digest   the access token that was shown at the login, and its hash; key_name is NULL for the server's
--                        own secret
-- client, agent          where the login came from: the address, and what the browser says of itself
CREATE TABLE ui_sessions (
    digest       TEXT    PRIMARY KEY,
    key_name     TEXT,
    key_digest   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    client       TEXT    NOT NULL,
    agent        TEXT    NOT NULL
) WITHOUT ROWID;
