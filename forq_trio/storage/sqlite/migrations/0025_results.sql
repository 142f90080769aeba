-- What a consumer gave with its ack, and until when (epoch ms) its message is kept for that, even while the history
-- is off.
ALTER TABLE history ADD COLUMN result TEXT;
ALTER TABLE history ADD COLUMN kept_until INTEGER;
