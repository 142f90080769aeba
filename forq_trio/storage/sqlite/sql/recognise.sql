-- name: tables
-- The tables of a file, without SQLite's own.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\';

-- name: objects
-- Whether there is anything at all in a file.
SELECT 1 FROM sqlite_schema LIMIT 1;

-- name: columns
-- The columns of the table messages, a name that Forq's schema and ours share.
SELECT name FROM pragma_table_info('messages');

-- name: touch
-- Read both ends of the big table and all of a small one, which finds serious damage.
SELECT (SELECT min(seq) FROM messages), (SELECT max(seq) FROM messages), (SELECT count(*) FROM queue_counts);
