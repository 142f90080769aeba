-- What both engines run for `forq move`. The names are those of our own tables and columns, quoted; key: with what
-- orders it by bytes; behind: a binding for each column of the key.

-- name: rows
-- All rows in the order of their key.
SELECT {columns} FROM {table} ORDER BY {key};

-- name: rows_behind
-- The rows behind a key.
SELECT {columns} FROM {table} WHERE ({key}) > ({behind}) ORDER BY {key};

-- name: only_row
-- The row of a table that has one.
SELECT {columns} FROM {table};

-- name: has_rows
-- Whether there is a row.
SELECT 1 FROM {table} LIMIT 1;

-- name: empty
-- Remove the row of a table that has one.
DELETE FROM {table};

-- name: mark
-- The mark: one row, how far the move has come, as JSON.
CREATE TABLE moving (position TEXT NOT NULL);

-- name: first_position
-- The move begins.
INSERT INTO moving (position) VALUES ({behind});

-- name: position
-- How far the move has come.
SELECT position FROM moving;

-- name: save_position
-- The move has come so far.
UPDATE moving SET position = {behind};

-- name: remove_mark
-- The move has ended.
DROP TABLE moving;
