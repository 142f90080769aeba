-- Statements of `forq move` that only SQLite has.

-- name: tables
-- All tables but SQLite's own.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid;

-- name: columns
-- The stored columns of a table: name, type, and their place in the primary key, from 1.
SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid;

-- name: unique_columns
-- The columns of an index that makes all rows of a table differ.
SELECT part.name FROM (
    SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial ORDER BY seq LIMIT 1
) AS first, pragma_index_info(first.name) AS part ORDER BY part.seqno;

-- name: insert
-- A row.
INSERT INTO {table} ({columns}) VALUES ({behind});

-- name: unstorable
-- The keys of some rows with text that PostgreSQL cannot store.
SELECT {key} FROM {table} WHERE {condition} LIMIT {limit};

-- name: has_zero
-- A text with the character U+0000.
instr({column}, char(0));

-- name: has_escaped_zero
-- A text with that character as JSON writes it.
instr({column}, '\u0000');

-- name: leased_with_zero
-- The lines of leases that are the only copy of their messages, and may have that character in one.
SELECT body FROM moved_pages JOIN consumer_pages USING (queue, consumer, number, page)
WHERE instr(body, CAST('\u0000' AS BLOB)) ORDER BY queue, first_seq;

-- name: staged_with_zero
-- The parts of stages that may have that character in a message.
SELECT stage_id, page, part, body FROM staged_parts WHERE instr(body, x'00') ORDER BY 1, 2, 3;

-- name: waiting_with_zero
-- The offers that wait behind a message, and may have that character.
SELECT message, waiting FROM message_keys WHERE instr(waiting, CAST('\u0000' AS BLOB)) ORDER BY message;
