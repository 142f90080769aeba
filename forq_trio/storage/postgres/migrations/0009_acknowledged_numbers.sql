-- How far a consumer that was forgotten had acknowledged (the SQLite engine's migration explains it).
ALTER TABLE consumer_numbers ADD COLUMN acknowledged bigint;
