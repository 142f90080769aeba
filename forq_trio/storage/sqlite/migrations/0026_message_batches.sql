-- Message batches: what each waits for. One that has ended is remembered for a while.
CREATE TABLE message_batches (
    number    INTEGER PRIMARY KEY,   -- a sequence number, so that none is used twice
    id        TEXT    NOT NULL UNIQUE,
    made_at   INTEGER NOT NULL,
    made_by   TEXT,                  -- the name of an access token; NULL for the server's secret
    size      INTEGER NOT NULL,      -- the bytes of what it sends, as JSON
    due_at    INTEGER NOT NULL,      -- when it sends something, else when it expires, or is forgotten
    counts_at INTEGER,               -- when changes of its members that wait are counted; NULL: none waits
    is_over   INTEGER NOT NULL DEFAULT 0,  -- 1: it has ended and sent what it had to
    digest    TEXT    NOT NULL,      -- SHA-256 of how it was opened, to know the same call again
    terms     TEXT    NOT NULL,      -- JSON: how it was opened, without the contents of what it sends
    progress  TEXT    NOT NULL       -- JSON: what changes
);
CREATE INDEX message_batches_due ON message_batches (due_at, number);
CREATE INDEX message_batches_counts ON message_batches (counts_at, number) WHERE counts_at IS NOT NULL;
CREATE INDEX message_batches_over ON message_batches (due_at, number) WHERE is_over = 1;
CREATE INDEX message_batches_made_by ON message_batches (made_by, number) WHERE made_by IS NOT NULL;

-- What batches send, until they are over. Apart from them, because they change with each member.
CREATE TABLE message_batch_sends (
    number INTEGER PRIMARY KEY,      -- of the batch
    sends  TEXT    NOT NULL          -- JSON: how it was opened, with the contents
);

-- The members of batches: messages, and batches inside. The row goes with its message, or when a message of a batch that
-- is over changes.
CREATE TABLE batch_members (
    seq    INTEGER PRIMARY KEY,      -- of the message, or the number of the batch inside
    batch  INTEGER NOT NULL,         -- the number of its batch
    state  TEXT    NOT NULL,         -- as it is counted
    became TEXT                      -- as it is to be counted; NULL: nothing waits
);
CREATE INDEX batch_members_became ON batch_members (batch) WHERE became IS NOT NULL;
