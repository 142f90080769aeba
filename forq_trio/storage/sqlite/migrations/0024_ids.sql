-- Ids end with the sequence numbers of their messages, so only others need an index (storage/relational/ids.py).
DROP INDEX messages_id;
CREATE UNIQUE INDEX messages_id ON messages (id) WHERE CAST(substr(id, 25) AS INTEGER) IS DISTINCT FROM seq;
