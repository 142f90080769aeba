-- Finished messages, in the order in which they ended; filled only while the history is on. Content is the last column:
-- what stands before it is read without touching the overflow pages of a long one.
--
-- id             never used twice
-- outcome        acked, discarded, expired, deleted; reason: why it was discarded
-- number, total  how many messages of its queue had ended by then, and their bytes, itself included: since the history
--                of a queue is only shortened at its old end, how much of it is kept is a subtraction
CREATE TABLE history (
    id                INTEGER PRIMARY KEY,
    seq               INTEGER NOT NULL,
    message_id        TEXT    NOT NULL,
    queue             TEXT    NOT NULL,
    outcome           TEXT    NOT NULL,
    reason            TEXT,
    finished_at       INTEGER NOT NULL,
    attempts          INTEGER NOT NULL,
    priority          INTEGER NOT NULL,
    received_at       INTEGER NOT NULL,
    first_received_at INTEGER,
    bytes             INTEGER NOT NULL,
    number            INTEGER NOT NULL,
    total             INTEGER NOT NULL,
    group_id          TEXT,
    attributes        TEXT,
    failure_reason    TEXT,
    source_queue      TEXT,
    source_attempts   INTEGER,
    dead_lettered_at  INTEGER,
    last_error        TEXT,
    failures          TEXT,
    content           TEXT    NOT NULL
);

-- The history of one queue, newest first; and one message of it.
CREATE INDEX history_queue ON history (queue);
CREATE INDEX history_message ON history (message_id);

-- One row. gone: the last id that retention removed. last: the highest id ever given, as of the last removal.
CREATE TABLE history_ends (
    gone INTEGER NOT NULL,
    last INTEGER NOT NULL
);
INSERT INTO history_ends (gone, last) VALUES (0, 0);
