-- name: tables
-- The tables of a file, without SQLite's own.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\';

-- name: objects
-- Whether there is anything at all in a file.
SELECT 1 FROM sqlite_schema LIMIT 1;

-- name: columns
-- The columns of the table that Forq and we have by the same name.
SELECT name FROM pragma_table_info('messages');

-- name: touch
-- A look at both ends of the big table and at all of a small one: what is badly damaged shows here.
SELECT (SELECT min(seq) FROM messages), (SELECT max(seq) FROM messages), (SELECT count(*) FROM queue_counts);
