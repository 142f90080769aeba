-- The name of the access token that made a queue, NULL for the server's secret, and where it was not stored.
ALTER TABLE queue_counts ADD COLUMN made_by TEXT;
