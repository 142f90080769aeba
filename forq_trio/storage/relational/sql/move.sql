-- The statements of `forq move` for both engines. The names are those of our own tables and columns, quoted; key: with
-- the collation that orders texts by bytes; behind: a binding for each column of the key.

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
-- Store the position at the beginning of the move.
INSERT INTO moving (position) VALUES ({behind});

-- name: position
-- How far the move has come.
SELECT position FROM moving;

-- name: save_position
-- Store how far the move has come.
UPDATE moving SET position = {behind};

-- name: remove_mark
-- Remove the mark: the move has ended.
DROP TABLE moving;
