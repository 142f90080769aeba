-- Rows that most batches change: each change is a new row at the end of its key, which replaces the one before. Updated in
-- place, such a row gets a chain of versions that every later read walks, as long as an old snapshot is open anywhere.
ALTER TABLE queue_counts ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
ALTER TABLE queue_counts DROP CONSTRAINT queue_counts_pkey;
ALTER TABLE queue_counts ADD PRIMARY KEY (queue, number);

ALTER TABLE forgotten_sequence ADD PRIMARY KEY (last_seq);
