-- The one table of messages, with Forq's columns and their meaning kept (contract F), and what our rules add.
--
-- seq           arrival order, never reused, public as the sequence number
-- status        0 ready, 1 processing, 2 failed, 3 delayed
-- position      claim order within a priority (for a standard queue: seq)
-- due_at        when the clock next concerns the row: ready -> it expires, processing -> its lease ends,
--               delayed -> it becomes ready or expires; never for a failed one
-- receipt       the random token of the latest claim
-- content       last, so that the other columns are read without touching its overflow pages
CREATE TABLE messages (
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
    attributes            TEXT,
    dedup_id              TEXT,
    group_id              TEXT,
    key                   TEXT,
    kind                  TEXT,
    max_attempts          INTEGER,
    source_queue          TEXT,
    last_error            TEXT,
    due_at                INTEGER GENERATED ALWAYS AS (
        CASE status WHEN 0 THEN expires_after WHEN 1 THEN lease_until WHEN 3 THEN min(process_after, expires_after) END
    ) VIRTUAL,
    content               TEXT    NOT NULL
);

CREATE UNIQUE INDEX messages_id ON messages (id);

-- Exactly the claim order of ready rows, and nothing else: what is delayed, leased or failed costs a claim nothing.
CREATE INDEX messages_claim ON messages (queue, priority DESC, position) WHERE status = 0;

-- The due timer's order.
CREATE INDEX messages_due ON messages (due_at) WHERE due_at IS NOT NULL;

-- The sweeps' worklist; failed rows are few and short-lived.
CREATE INDEX messages_failed ON messages (is_dlq) WHERE status = 2;

-- Browsing one queue, newest first.
CREATE INDEX messages_queue ON messages (queue);

-- A keyed message is unique per queue and kind.
CREATE UNIQUE INDEX messages_key ON messages (queue, kind, key) WHERE key IS NOT NULL;

-- Messages by status, kept in the transaction that changes them, so that nobody ever counts the table above.
CREATE TABLE queue_counts (
    queue      TEXT    PRIMARY KEY,
    ready      INTEGER NOT NULL,
    processing INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    delayed    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Deduplication ids within their window; they outlive the message they name.
CREATE TABLE dedup (
    queue      TEXT    NOT NULL,
    dedup_id   TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (queue, dedup_id)
) WITHOUT ROWID;

CREATE INDEX dedup_expires ON dedup (expires_at);
