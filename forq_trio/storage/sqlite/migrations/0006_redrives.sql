-- Tasks over all dead letters that match a filter. There are few, and all are in memory, too.
--
-- number   grows in the order in which they were first stored
-- task     JSON: what was asked, the state, and how far it has come
CREATE TABLE redrives (
    number INTEGER PRIMARY KEY,
    id     TEXT    NOT NULL UNIQUE,
    task   TEXT    NOT NULL
);
