-- As in SQLite: what a consumer gave with its ack, and until when the message is kept for that.
ALTER TABLE history ADD COLUMN result text, ADD COLUMN kept_until bigint;
