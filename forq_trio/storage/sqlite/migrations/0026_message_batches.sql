-- Message batches: what each waits for, and what it sends then. One that has ended is remembered for a while.
CREATE TABLE message_batches (
    number   INTEGER PRIMARY KEY,   -- a sequence number, so that none is used twice
    id       TEXT    NOT NULL UNIQUE,
    made_at  INTEGER NOT NULL,
    made_by  TEXT,                  -- the name of an access token; NULL for the server's secret
    size     INTEGER NOT NULL,      -- the bytes of what it sends
    due_at   INTEGER NOT NULL,      -- when it sends something, else when it expires, or is forgotten
    progress TEXT    NOT NULL,      -- JSON: what changes
    terms    TEXT    NOT NULL,      -- JSON: as it was opened, without the contents of what it sends
    sends    TEXT    NOT NULL       -- JSON: the same with them
);
CREATE INDEX message_batches_due ON message_batches (due_at, number);
CREATE INDEX message_batches_made_by ON message_batches (made_by, number) WHERE made_by IS NOT NULL;

-- The messages that are members of batches. The row goes with its message, or when the message of a batch that is gone ends.
CREATE TABLE batch_members (
    seq   INTEGER PRIMARY KEY,         -- of the message
    batch INTEGER NOT NULL,            -- the number of its batch
    dead  INTEGER NOT NULL DEFAULT 0   -- 1: it is a dead letter
);
