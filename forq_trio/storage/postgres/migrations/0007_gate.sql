-- One batch at a time: its lock is that of a table of ours (connection.sql). It was an advisory one, which any role may take.
CREATE TABLE gate ();
-- A process that knows only the other lock must not write any more.
ALTER TABLE batches RENAME COLUMN changes TO shipped;
