-- Message batches, as in SQLite (migrations/0026_message_batches.sql there).
CREATE TABLE message_batches (
    number    bigint PRIMARY KEY,
    id        text COLLATE "C" NOT NULL UNIQUE,
    made_at   bigint NOT NULL,
    made_by   text COLLATE "C",
    size      bigint NOT NULL,
    due_at    bigint NOT NULL,
    counts_at bigint,
    is_over   bigint NOT NULL DEFAULT 0,
    digest    text NOT NULL,
    terms     text NOT NULL,
    progress  text NOT NULL
);
CREATE INDEX message_batches_due ON message_batches (due_at, number);
CREATE INDEX message_batches_counts ON message_batches (counts_at, number) WHERE counts_at IS NOT NULL;
CREATE INDEX message_batches_over ON message_batches (due_at, number) WHERE is_over = 1;
CREATE INDEX message_batches_made_by ON message_batches (made_by, number) WHERE made_by IS NOT NULL;

CREATE TABLE message_batch_sends (
    number bigint PRIMARY KEY,
    sends  text NOT NULL
);

CREATE TABLE batch_members (
    seq    bigint PRIMARY KEY,
    batch  bigint NOT NULL,
    state  text NOT NULL,
    became text
);
CREATE INDEX batch_members_became ON batch_members (batch) WHERE became IS NOT NULL;

-- A server of the version before does not count members, so it stops here: it knows no table of this name.
ALTER TABLE batches RENAME TO batches_2;
