-- name: create
-- The record of applied migrations, made with the first of them.
CREATE TABLE IF NOT EXISTS migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
);

-- name: applied
-- The applied migrations, in order.
SELECT version, name, checksum FROM migrations ORDER BY version;

-- name: record
-- Record a migration as applied; the time is for people only.
INSERT INTO migrations (version, name, checksum, applied_at)
VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER));
