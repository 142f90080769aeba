-- The highest lease numbers of consumers that were forgotten: one that is made anew goes on behind its name's. What was
-- forgotten before this version is not known.
--
-- id         grows with every row: those with the lowest ones are dropped where there are too many
-- consumer   queue/name
CREATE TABLE consumer_numbers (
    id       INTEGER PRIMARY KEY,
    consumer TEXT    NOT NULL UNIQUE,
    number   INTEGER NOT NULL
);

-- The highest number among the rows that were dropped: every name without a row goes on behind it.
ALTER TABLE consumers_forgotten ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
