-- Queue settings, and what they need of a message. The table is made anew so that content stays its last column: what
-- stands before it is read without touching the overflow pages of a long one.
--
-- status             4 held: ready, but as many of its group are in process as may be
-- bytes              of content and attributes, what counts against the queue's bound
-- ttl_ms             the message's own time to live, NULL for the queue's
-- dead_letter_queue  where it goes when it fails or expires, '' to be deleted, NULL for what the queue says
-- dead_lettered_at, source_attempts   when it was moved here, and after how many attempts
-- failures           JSON: [[attempt, ended at, reason or null], ...], the latest ones
-- group_id           '' for a message without a group among messages that have one (see rules.group_position)
CREATE TABLE messages_2 (
    seq                   INTEGER PRIMARY KEY AUTOINCREMENT,
    id                    TEXT    NOT NULL,
    queue                 TEXT    NOT NULL,
    is_dlq                INTEGER NOT NULL DEFAULT 0,
    status                INTEGER NOT NULL DEFAULT 0,
    attempts              INTEGER NOT NULL DEFAULT 0,
    process_after         INTEGER NOT NULL,
    processing_started_at INTEGER,
    failure_reason        TEXT,
    received_at           INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    expires_after         INTEGER NOT NULL,
    priority              INTEGER NOT NULL DEFAULT 100,
    position              INTEGER NOT NULL,
    lease_until           INTEGER,
    receipt               INTEGER,
    first_received_at     INTEGER,
    bytes                 INTEGER NOT NULL DEFAULT 0,
    max_attempts          INTEGER,
    ttl_ms                INTEGER,
    group_id              TEXT,
    attributes            TEXT,
    dedup_id              TEXT,
    key                   TEXT,
    kind                  TEXT,
    dead_letter_queue     TEXT,
    dead_lettered_at      INTEGER,
    source_queue          TEXT,
    source_attempts       INTEGER,
    last_error            TEXT,
    failures              TEXT,
    due_at                INTEGER GENERATED ALWAYS AS (
        CASE status
            WHEN 0 THEN expires_after
            WHEN 1 THEN lease_until
            WHEN 3 THEN min(process_after, expires_after)
            WHEN 4 THEN expires_after
        END
    ) VIRTUAL,
    content               TEXT    NOT NULL
);

-- The highest number ever given out, which may be above that of any message left.
INSERT INTO sqlite_sequence (name, seq) SELECT 'messages_2', seq FROM sqlite_sequence WHERE name = 'messages';

INSERT INTO messages_2 (
    seq, id, queue, is_dlq, status, attempts, process_after, processing_started_at, failure_reason, received_at,
    updated_at, expires_after, priority, position, lease_until, receipt, attributes, dedup_id, group_id, key, kind,
    max_attempts, source_queue, last_error, bytes, content
)
SELECT
    seq, id, queue, is_dlq, status, attempts, process_after, processing_started_at, failure_reason, received_at,
    updated_at, expires_after, priority, position, lease_until, receipt, attributes, dedup_id, group_id, key, kind,
    max_attempts, source_queue, last_error, octet_length(content), content
FROM messages;

DROP TABLE messages;
ALTER TABLE messages_2 RENAME TO messages;

CREATE UNIQUE INDEX messages_id ON messages (id);

-- Exactly the claim order of ready rows, and nothing else: what is delayed, leased, held or failed costs a claim nothing.
CREATE INDEX messages_claim ON messages (queue, priority DESC, position) WHERE status = 0;

-- The due timer's order.
CREATE INDEX messages_due ON messages (due_at) WHERE due_at IS NOT NULL;

-- The sweeps' worklist; failed rows are few and short-lived.
CREATE INDEX messages_failed ON messages (is_dlq) WHERE status = 2;

-- Browsing one queue, newest first.
CREATE INDEX messages_queue ON messages (queue);

-- A keyed message is unique per queue and kind.
CREATE UNIQUE INDEX messages_key ON messages (queue, kind, key) WHERE key IS NOT NULL;

-- A group's last place, how many of it are in process, and which of those held goes next.
CREATE INDEX messages_group ON messages (queue, group_id, status, priority DESC, position) WHERE group_id IS NOT NULL;

-- What is to be let go when the bound of its groups changes.
CREATE INDEX messages_held ON messages (queue) WHERE status = 4;

-- grouped: messages with a group were sent to the queue. letting_go: the bound of its groups was changed, and all that are
-- held become ready, a part in each batch; the last one that did, NULL when that is not going on.
ALTER TABLE queue_counts ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue_counts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue_counts ADD COLUMN grouped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue_counts ADD COLUMN letting_go INTEGER;
UPDATE queue_counts SET bytes = (SELECT coalesce(sum(bytes), 0) FROM messages WHERE messages.queue = queue_counts.queue);

-- What is set for a queue, as JSON; a queue without a row is virtual.
CREATE TABLE queues (
    queue      TEXT    PRIMARY KEY,
    settings   TEXT    NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Access tokens: their hashes, never their texts. scopes: JSON list of words; queues: a glob.
CREATE TABLE tokens (
    name         TEXT    PRIMARY KEY,
    digest       TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,
    queues       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) WITHOUT ROWID;

CREATE UNIQUE INDEX tokens_digest ON tokens (digest);
