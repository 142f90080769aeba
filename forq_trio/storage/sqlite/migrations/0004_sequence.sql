-- The highest sequence number given out is kept in the counts, which every batch that changes a message writes anyway: with
-- AUTOINCREMENT each send wrote a page for it alone. It is the maximum of these two columns, and of the messages' own.
--
-- queue_counts.last_seq         the highest number given out when the row was written
-- forgotten_sequence.last_seq   the highest number given out when a queue was forgotten, and its row with it; one row
ALTER TABLE queue_counts ADD COLUMN last_seq INTEGER NOT NULL DEFAULT 0;

CREATE TABLE forgotten_sequence (last_seq INTEGER NOT NULL);
INSERT INTO forgotten_sequence (last_seq) SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages';

-- Rows are stored in the same way with and without it, so the table does not have to be copied for that.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ' AUTOINCREMENT', '') WHERE type = 'table' AND name = 'messages';
PRAGMA writable_schema = RESET;
DELETE FROM sqlite_sequence WHERE name = 'messages';
