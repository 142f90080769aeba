-- The key of a finished message, and its kind; NULL for one that had none, or that ended before these columns were there.
ALTER TABLE history ADD COLUMN key TEXT;
ALTER TABLE history ADD COLUMN kind TEXT;
