-- The tables of the first release. Their versions begin with 23: so many steps of development led to these tables, and a
-- file that has had the last of them, whose checksum is this, has them already:
-- same as: b8d26a598b9966ef421522f0fec43dc84995393e3e54676510d3284e96e66770
--
-- Times are epoch milliseconds. Flags are 0 or 1. What is large comes last in its table: columns before it are read
-- without its overflow pages.

-- All messages but those of moved_pages, with Forq's columns and their meaning (docs/compatibility/forq.md).
--
-- Without AUTOINCREMENT, with which each send would write one more page: the highest sequence number is the maximum of this
-- table, of queue_counts and of forgotten_sequence.
CREATE TABLE messages (
    seq                   INTEGER PRIMARY KEY,           -- the order of arrival, never used twice: the sequence number
    id                    TEXT    NOT NULL,
    queue                 TEXT    NOT NULL,
    is_dlq                INTEGER NOT NULL DEFAULT 0,    -- the queue is a dead-letter queue by its name
    status                INTEGER NOT NULL DEFAULT 0,    -- 0 ready, 1 processing, 2 failed, 3 delayed, 4 held
    attempts              INTEGER NOT NULL DEFAULT 0,
    process_after         INTEGER NOT NULL,              -- when a delayed message becomes ready
    processing_started_at INTEGER,                       -- when it was claimed; NULL while it is not processing
    failure_reason        TEXT,                          -- of a failed message, and of a dead letter
    received_at           INTEGER NOT NULL,              -- when it was sent
    updated_at            INTEGER NOT NULL,
    expires_after         INTEGER NOT NULL,
    priority              INTEGER NOT NULL DEFAULT 100,
    position              INTEGER NOT NULL,              -- its place among ready ones of its priority; seq without groups
    lease_until           INTEGER,                       -- NULL while it is not processing
    receipt               INTEGER,                       -- the random token of its latest claim
    first_received_at     INTEGER,                       -- when it was claimed first
    bytes                 INTEGER NOT NULL DEFAULT 0,    -- of content and attributes: what counts against the queue's bound
    max_attempts          INTEGER,                       -- its own; NULL for what the queue says
    default_max_receives  INTEGER,                       -- deliveries that suffice where the claim's redrive policy names no bound
    ttl_ms                INTEGER,                       -- its own time to live; NULL for what the queue says
    group_id              TEXT,                          -- '' for one without a group among messages that have one
    attributes            TEXT,                          -- a JSON object
    dedup_id              TEXT,
    key                   TEXT,                          -- while it is pending: unique for its queue and kind
    kind                  TEXT,                          -- of a message that has a key, or had one (a dead letter)
    dead_letter_queue     TEXT,                          -- its own, '' to be deleted instead; NULL for what the queue says
    dead_lettered_at      INTEGER,                       -- when it was moved here
    source_queue          TEXT,                          -- where from
    source_attempts       INTEGER,                       -- after how many attempts
    last_error            TEXT,
    error_key             INTEGER,                       -- the same for errors that differ by numbers and ids only
    failures              TEXT,                          -- JSON: [[attempt, ended at, reason or null], …], the latest ones
    due_at                INTEGER GENERATED ALWAYS AS (  -- when the clock next changes it; never for a failed one
        CASE status
            WHEN 0 THEN expires_after
            WHEN 1 THEN lease_until
            WHEN 3 THEN min(process_after, expires_after)
            WHEN 4 THEN expires_after
        END
    ) VIRTUAL,
    content               TEXT    NOT NULL
);
CREATE UNIQUE INDEX messages_id ON messages (id);
-- The order of claims. Ready messages alone: a claim does not read what is delayed, leased, held or failed.
CREATE INDEX messages_claim ON messages (queue, priority DESC, position) WHERE status = 0;
-- What the timer waits for.
CREATE INDEX messages_due ON messages (due_at) WHERE due_at IS NOT NULL;
-- What sweeps move or delete.
CREATE INDEX messages_failed ON messages (is_dlq) WHERE status = 2;
-- Lists of a queue, and of its messages in one status, newest first: a page of a few among a million is found at once.
CREATE INDEX messages_queue ON messages (queue);
CREATE INDEX messages_in_flight ON messages (queue) WHERE status = 1;
CREATE INDEX messages_delayed ON messages (queue) WHERE status = 3;
-- Also those that become ready when the group limit of their queue changes.
CREATE INDEX messages_held ON messages (queue) WHERE status = 4;
-- The last position of a group, how many of it are processing, and which of its held messages is next.
CREATE INDEX messages_group ON messages (queue, group_id, status, priority DESC, position) WHERE group_id IS NOT NULL;
CREATE UNIQUE INDEX messages_key ON messages (queue, kind, key) WHERE key IS NOT NULL;

-- What a message with a key has beside its columns. Its `bytes` in `messages` have those of the waiting offer, too.
CREATE TABLE message_keys (
    message        INTEGER PRIMARY KEY,         -- its sequence number
    own_key        TEXT    NOT NULL,            -- its key, also of a dead letter
    mode           TEXT    NOT NULL,
    due            INTEGER NOT NULL,            -- as it was offered: process_after changes with each attempt
    revision       INTEGER NOT NULL,            -- grows with each change; a sequence number, so never used twice
    offers         INTEGER NOT NULL,
    first_offer_at INTEGER NOT NULL,
    last_offer_at  INTEGER NOT NULL,
    max_wait_until INTEGER,
    waiting_bytes  INTEGER NOT NULL DEFAULT 0,
    waiting        BLOB                         -- JSON: the offer that waits while the message is processing
);

-- Deduplication ids in their windows; they outlive their messages.
CREATE TABLE dedup (
    queue      TEXT    NOT NULL,
    dedup_id   TEXT    NOT NULL,
    id         TEXT    NOT NULL,  -- of the first message with it
    seq        INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (queue, dedup_id)
) WITHOUT ROWID;
CREATE INDEX dedup_expires ON dedup (expires_at);

-- How many messages each queue has, written in the transaction that changes them: nobody counts `messages`.
CREATE TABLE queue_counts (
    queue      TEXT    PRIMARY KEY,
    ready      INTEGER NOT NULL,
    processing INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    delayed    INTEGER NOT NULL,
    held       INTEGER NOT NULL DEFAULT 0,
    bytes      INTEGER NOT NULL DEFAULT 0,
    grouped    INTEGER NOT NULL DEFAULT 0,  -- messages with a group were sent to it
    letting_go INTEGER,                     -- the last held message made ready since its group limit changed; NULL when done
    last_seq   INTEGER NOT NULL DEFAULT 0,  -- the highest sequence number of all queues when this row was written
    updated_at INTEGER NOT NULL,
    made_by    TEXT                         -- the name of an access token; NULL for the server's secret
) WITHOUT ROWID;

-- One row: the highest sequence number when a queue was forgotten, and its row of queue_counts with it.
CREATE TABLE forgotten_sequence (last_seq INTEGER NOT NULL);
INSERT INTO forgotten_sequence VALUES (0);

-- Settings of queues. A queue without a row has all defaults.
CREATE TABLE queues (
    queue      TEXT    PRIMARY KEY,
    settings   TEXT    NOT NULL,     -- a JSON object
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The tokens in the buckets of queues with a rate.
CREATE TABLE rate_buckets (
    queue     TEXT    NOT NULL,
    group_id  TEXT    NOT NULL,    -- the group that has the bucket; '' for that of the queue
    count     INTEGER NOT NULL,    -- tokens in a period. With another rate, the bucket no longer counts
    period_ms INTEGER NOT NULL,
    full_at   INTEGER NOT NULL,    -- when the bucket is full again, in parts of a millisecond: `count` of them make one
    full_ms   INTEGER NOT NULL,    -- the same, rounded up; then the row says nothing any more
    wake_at   INTEGER,             -- when a receiver that waits may get a token; NULL for none
    PRIMARY KEY (queue, group_id)
) WITHOUT ROWID;
CREATE INDEX rate_buckets_wake ON rate_buckets (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX rate_buckets_full ON rate_buckets (full_ms);

-- Access tokens: their hashes, never their texts.
CREATE TABLE tokens (
    name         TEXT    PRIMARY KEY,
    digest       TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,     -- a JSON list of words
    queues       TEXT    NOT NULL,     -- a glob
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_digest ON tokens (digest);

-- Sessions of the admin UI.
CREATE TABLE ui_sessions (
    digest       TEXT    PRIMARY KEY,  -- of the id, which is not stored
    key_name     TEXT,                 -- the access token of the login; NULL for the server's secret
    key_digest   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    client       TEXT    NOT NULL,     -- the address that logged in
    agent        TEXT    NOT NULL      -- what its browser says of itself
) WITHOUT ROWID;

-- Tasks over dead letters; all are in memory, too.
CREATE TABLE redrives (
    number INTEGER PRIMARY KEY,       -- the order in which they were stored first
    id     TEXT    NOT NULL UNIQUE,
    task   TEXT    NOT NULL           -- JSON: its members as callers see them, and its cursor
);

-- Schedules.
CREATE TABLE schedules (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    made_at       INTEGER NOT NULL,
    made_by       TEXT,                         -- the name of an access token; NULL for the server's secret
    updated_at    INTEGER NOT NULL,
    paused_at     INTEGER,                      -- NULL while it is not paused
    paused_by     TEXT,                         -- as made_by
    next_run      INTEGER,                      -- the nominal time of the next run; NULL while paused, and behind the last
    due_at        INTEGER,                      -- when that run is sent: later by its jitter
    last_nominal  INTEGER,                      -- the nominal time of the last run
    catching_up   INTEGER,                      -- missed runs up to this time are sent one after the other
    last_sequence INTEGER,                      -- of the last message that was sent
    runs          INTEGER NOT NULL DEFAULT 0,   -- how many there were so far
    definition    TEXT    NOT NULL              -- JSON: queue, content, options and timing, as saved
);
CREATE INDEX schedules_due ON schedules (due_at, name) WHERE due_at IS NOT NULL;
-- How many each token has made, and which of these is due next.
CREATE INDEX schedules_made_by ON schedules (made_by, due_at, name);

-- The latest runs of each schedule, numbered from 1.
CREATE TABLE schedule_runs (
    schedule_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    run         TEXT    NOT NULL,  -- JSON
    PRIMARY KEY (schedule_id, number)
) WITHOUT ROWID;

-- How far each outbox was relayed: stored in the transaction that stores its messages.
CREATE TABLE outboxes (
    outbox     TEXT    PRIMARY KEY NOT NULL,  -- its id, which the application's side made
    position   INTEGER NOT NULL,              -- the id, in the outbox, of its last message that is stored here
    made_by    TEXT    NOT NULL,              -- the token that relayed first; '' for the server's secret
    relayed_at INTEGER NOT NULL               -- when a message was relayed last
) WITHOUT ROWID;

-- Finished messages, in the order in which they ended, while the history is on.
CREATE TABLE history (
    id                INTEGER PRIMARY KEY,  -- never used twice
    seq               INTEGER NOT NULL,
    message_id        TEXT    NOT NULL,
    queue             TEXT    NOT NULL,
    outcome           TEXT    NOT NULL,     -- how it ended, such as acked or expired
    reason            TEXT,                 -- why it was discarded
    finished_at       INTEGER NOT NULL,
    attempts          INTEGER NOT NULL,
    priority          INTEGER NOT NULL,
    received_at       INTEGER NOT NULL,
    first_received_at INTEGER,
    bytes             INTEGER NOT NULL,
    number            INTEGER NOT NULL,     -- how many messages of its queue had ended, with it: it is shortened at its old
    total             INTEGER NOT NULL,     -- end only, so a difference says how many are left; total: the same of bytes
    group_id          TEXT,
    key               TEXT,
    kind              TEXT,
    attributes        TEXT,
    failure_reason    TEXT,
    source_queue      TEXT,
    source_attempts   INTEGER,
    dead_lettered_at  INTEGER,
    last_error        TEXT,
    error_key         INTEGER,
    failures          TEXT,
    content           TEXT    NOT NULL
);
CREATE INDEX history_queue ON history (queue);
CREATE INDEX history_message ON history (message_id);

-- One row.
CREATE TABLE history_ends (
    gone INTEGER NOT NULL,  -- the last id of the history that retention removed
    last INTEGER NOT NULL   -- the highest id when that was removed
);
INSERT INTO history_ends VALUES (0, 0);

-- Lifecycle events, in the order of commits. The newest is never removed: ids go on behind it. No column refuses a value:
-- what a damaged message has must not fail the batch that settles it.
CREATE TABLE events (
    id          INTEGER PRIMARY KEY,
    at          INTEGER,
    kind        INTEGER,
    queue       TEXT,                 -- where the message was
    seq         INTEGER,
    message_id  TEXT,
    attempt     INTEGER,
    reason      TEXT,
    target      TEXT,                 -- the queue that it went to; NULL where it stayed
    received_at INTEGER,
    duration_ms INTEGER,              -- how long it was ready, or how long its claim lasted
    bytes       INTEGER,              -- of content and attributes
    total       INTEGER               -- of all events before it: the bytes of a range are a difference
);
CREATE INDEX events_message ON events (message_id);

-- Stages: messages beside a queue, until they are published.
CREATE TABLE stages (
    id           INTEGER PRIMARY KEY,
    queue        TEXT    NOT NULL,
    stage        TEXT,                          -- its name; NULL once it is published or has ended: the name is free again
    made_by      TEXT    NOT NULL DEFAULT '?',  -- the name of an access token; '' for the server's secret
    pages        INTEGER NOT NULL,
    last_page    INTEGER NOT NULL,              -- the highest number of a page, from 0
    messages     INTEGER NOT NULL,              -- of those that are not in the queue yet
    bytes        INTEGER NOT NULL,              -- of their contents and attributes
    stored_bytes INTEGER NOT NULL,              -- of its parts
    expires_at   INTEGER NOT NULL,
    turn         INTEGER,                       -- the order in which stages enter queues, or are removed; NULL before
    published    INTEGER NOT NULL DEFAULT 0     -- 1: it enters its queue; 0: it is removed
);
CREATE UNIQUE INDEX stages_name ON stages (queue, stage) WHERE stage IS NOT NULL;
CREATE INDEX stages_expire ON stages (expires_at) WHERE stage IS NOT NULL;
-- What the next batches work on.
CREATE INDEX stages_work ON stages (published DESC, turn) WHERE turn IS NOT NULL;
-- What is on its way into a queue counts against its bounds.
CREATE INDEX stages_on_the_way ON stages (queue) WHERE published = 1;
-- An empty stage is the first to go when its key has used up its share.
CREATE INDEX stages_made_by ON stages (made_by, id) WHERE stage IS NOT NULL AND messages = 0;

-- A part of a page: as many messages as enter the queue in one batch.
CREATE TABLE staged_parts (
    stage_id INTEGER NOT NULL,
    page     INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    body     BLOB    NOT NULL   -- MessagePack
);
CREATE UNIQUE INDEX staged_parts_order ON staged_parts (stage_id, page, part);

-- The last version that each app published. An app belongs to the queues that it writes, so there may be several of a name.
CREATE TABLE apps (
    number       INTEGER PRIMARY KEY,  -- grows with every publication
    app          TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    once         INTEGER NOT NULL,     -- its name is used for one job only: it is forgotten before others
    made_by      TEXT    NOT NULL,     -- the token that published last; '' for the server's secret, '?' for an unknown one
    queues       TEXT    NOT NULL      -- a JSON list of the queues that it wrote
);
CREATE INDEX apps_name ON apps (app);
-- Those that published longest ago are forgotten first.
CREATE INDEX apps_once ON apps (once);
CREATE INDEX apps_made_by ON apps (made_by, once);

-- Consumers of pipelines; all are in memory, too.
CREATE TABLE consumers (
    queue    TEXT NOT NULL,
    name     TEXT NOT NULL,
    consumer TEXT NOT NULL,  -- JSON: its numbers, and what its leases have
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

-- Numbers of consumers that were forgotten: one that is made anew goes on behind those of its name.
CREATE TABLE consumer_numbers (
    id           INTEGER PRIMARY KEY,       -- grows with every row: the lowest are dropped where there are too many
    consumer     TEXT    NOT NULL UNIQUE,   -- queue/name
    number       INTEGER NOT NULL,          -- of its last lease
    acknowledged INTEGER                    -- of the last lease that it had acknowledged; NULL for `number`
);

-- One row.
CREATE TABLE consumers_forgotten (
    generation INTEGER NOT NULL,           -- the highest generation of consumers that were forgotten
    number     INTEGER NOT NULL DEFAULT 0  -- the highest number of dropped rows: names without a row go on behind it
);
INSERT INTO consumers_forgotten VALUES (0, 0);

-- Pages of leases.
CREATE TABLE consumer_pages (
    queue     TEXT    NOT NULL,
    consumer  TEXT    NOT NULL,
    number    INTEGER NOT NULL,  -- of the lease
    page      INTEGER NOT NULL,
    receipt   INTEGER NOT NULL,  -- of all its messages, while they are this lease's
    sequences TEXT    NOT NULL,  -- a JSON list of these messages
    body      BLOB    NOT NULL,  -- a line of JSON for each
    PRIMARY KEY (queue, consumer, number, page)
);

-- Pages that are the only copy of their messages, until these are settled or restored. No two of a queue overlap, by sequence
-- or by id.
CREATE TABLE moved_pages (
    queue       TEXT    NOT NULL,
    first_seq   INTEGER NOT NULL,  -- the lowest sequence number of its messages
    last_seq    INTEGER NOT NULL,
    first_id    TEXT    NOT NULL,  -- their lowest id
    last_id     TEXT    NOT NULL,
    consumer    TEXT    NOT NULL,
    number      INTEGER NOT NULL,  -- of the lease
    page        INTEGER NOT NULL,
    receipt     INTEGER NOT NULL,  -- as in consumer_pages
    leased_at   INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    messages    INTEGER NOT NULL,  -- how many there are
    bytes       INTEGER NOT NULL,  -- of them
    rows        TEXT    NOT NULL,  -- a JSON list of what the lines of their page do not say
    PRIMARY KEY (queue, first_seq)
);
CREATE UNIQUE INDEX moved_pages_page ON moved_pages (queue, consumer, number, page);
CREATE INDEX moved_pages_last ON moved_pages (queue, last_seq);
CREATE INDEX moved_pages_id ON moved_pages (queue, first_id);
