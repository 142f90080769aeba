-- name: create
-- The record of the schema's steps, made with the first of them.
CREATE TABLE IF NOT EXISTS migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
);

-- name: applied
-- What the file has had, in order.
SELECT version, name, checksum FROM migrations ORDER BY version;

-- name: record
-- One step done; the time is for people who look, nothing depends on it.
INSERT INTO migrations (version, name, checksum, applied_at)
VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER));
