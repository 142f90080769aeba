-- A file at version 23, as the 23 steps before the first release made it: what sqlite_schema had. Never changed.
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = 1718579825;
PRAGMA user_version = 23;
CREATE TABLE made_with_autoincrement (a INTEGER PRIMARY KEY AUTOINCREMENT);
DROP TABLE made_with_autoincrement;
CREATE TABLE migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
);
CREATE TABLE queue_counts (
    queue      TEXT    PRIMARY KEY,
    ready      INTEGER NOT NULL,
    processing INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    delayed    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
, held INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, grouped INTEGER NOT NULL DEFAULT 0, letting_go INTEGER, last_seq INTEGER NOT NULL DEFAULT 0, made_by TEXT) WITHOUT ROWID;
CREATE TABLE dedup (
    queue      TEXT    NOT NULL,
    dedup_id   TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (queue, dedup_id)
) WITHOUT ROWID;
CREATE INDEX dedup_expires ON dedup (expires_at);
CREATE TABLE "messages" (
    seq                   INTEGER PRIMARY KEY,
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
, default_max_receives INTEGER, error_key INTEGER);
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_claim ON messages (queue, priority DESC, position) WHERE status = 0;
CREATE INDEX messages_due ON messages (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX messages_failed ON messages (is_dlq) WHERE status = 2;
CREATE INDEX messages_queue ON messages (queue);
CREATE UNIQUE INDEX messages_key ON messages (queue, kind, key) WHERE key IS NOT NULL;
CREATE INDEX messages_group ON messages (queue, group_id, status, priority DESC, position) WHERE group_id IS NOT NULL;
CREATE INDEX messages_held ON messages (queue) WHERE status = 4;
CREATE TABLE queues (
    queue      TEXT    PRIMARY KEY,
    settings   TEXT    NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
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
CREATE TABLE forgotten_sequence (last_seq INTEGER NOT NULL);
CREATE INDEX messages_in_flight ON messages (queue) WHERE status = 1;
CREATE INDEX messages_delayed ON messages (queue) WHERE status = 3;
CREATE TABLE ui_sessions (
    digest       TEXT    PRIMARY KEY,
    key_name     TEXT,
    key_digest   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    client       TEXT    NOT NULL,
    agent        TEXT    NOT NULL
) WITHOUT ROWID;
CREATE TABLE redrives (
    number INTEGER PRIMARY KEY,
    id     TEXT    NOT NULL UNIQUE,
    task   TEXT    NOT NULL
);
CREATE TABLE stages (
    id         INTEGER PRIMARY KEY,
    queue      TEXT    NOT NULL,
    stage      TEXT,
    pages      INTEGER NOT NULL,
    last_page  INTEGER NOT NULL,
    messages   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    turn      INTEGER,
    published  INTEGER NOT NULL DEFAULT 0
, made_by TEXT NOT NULL DEFAULT '?');
CREATE UNIQUE INDEX stages_name ON stages (queue, stage) WHERE stage IS NOT NULL;
CREATE INDEX stages_expire ON stages (expires_at) WHERE stage IS NOT NULL;
CREATE INDEX stages_work ON stages (published DESC, turn) WHERE turn IS NOT NULL;
CREATE INDEX stages_on_the_way ON stages (queue) WHERE published = 1;
CREATE TABLE staged_parts (
    stage_id INTEGER NOT NULL,
    page     INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    body     BLOB    NOT NULL
);
CREATE UNIQUE INDEX staged_parts_order ON staged_parts (stage_id, page, part);
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
, error_key INTEGER, key TEXT, kind TEXT);
CREATE INDEX history_queue ON history (queue);
CREATE INDEX history_message ON history (message_id);
CREATE TABLE history_ends (
    gone INTEGER NOT NULL,
    last INTEGER NOT NULL
);
CREATE TABLE consumers (
    queue    TEXT NOT NULL,
    name     TEXT NOT NULL,
    consumer TEXT NOT NULL,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;
CREATE TABLE consumers_forgotten (
    generation INTEGER NOT NULL
, number INTEGER NOT NULL DEFAULT 0);
CREATE TABLE consumer_pages (
    queue     TEXT    NOT NULL,
    consumer  TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    page      INTEGER NOT NULL,
    receipt   INTEGER NOT NULL,
    sequences TEXT    NOT NULL,
    body      BLOB    NOT NULL,
    PRIMARY KEY (queue, consumer, number, page)
);
CREATE TABLE events (
    id          INTEGER PRIMARY KEY,
    at          INTEGER,
    kind        INTEGER,
    queue       TEXT,
    seq         INTEGER,
    message_id  TEXT,
    attempt     INTEGER,
    reason      TEXT,
    target      TEXT,
    received_at INTEGER,
    duration_ms INTEGER,
    bytes       INTEGER,
    total       INTEGER
);
CREATE INDEX events_message ON events (message_id);
CREATE TABLE consumer_numbers (
    id       INTEGER PRIMARY KEY,
    consumer TEXT    NOT NULL UNIQUE,
    number   INTEGER NOT NULL
, acknowledged INTEGER);
CREATE TABLE apps (
    number       INTEGER PRIMARY KEY,
    app          TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    once         INTEGER NOT NULL,
    made_by      TEXT    NOT NULL,
    queues       TEXT    NOT NULL
);
CREATE INDEX apps_name ON apps (app);
CREATE INDEX apps_once ON apps (once);
CREATE INDEX apps_made_by ON apps (made_by, once);
CREATE INDEX stages_made_by ON stages (made_by, id) WHERE stage IS NOT NULL AND messages = 0;
CREATE TABLE rate_buckets (
    queue     TEXT    NOT NULL,
    group_id  TEXT    NOT NULL,
    count     INTEGER NOT NULL,
    period_ms INTEGER NOT NULL,
    full_at   INTEGER NOT NULL,
    full_ms   INTEGER NOT NULL,
    wake_at   INTEGER,
    PRIMARY KEY (queue, group_id)
) WITHOUT ROWID;
CREATE INDEX rate_buckets_wake ON rate_buckets (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX rate_buckets_full ON rate_buckets (full_ms);
CREATE TABLE schedules (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    made_at       INTEGER NOT NULL,
    made_by       TEXT,
    updated_at    INTEGER NOT NULL,
    paused_at     INTEGER,
    paused_by     TEXT,
    next_run      INTEGER,
    due_at        INTEGER,
    last_nominal  INTEGER,
    catching_up   INTEGER,
    last_sequence INTEGER,
    runs          INTEGER NOT NULL DEFAULT 0,
    definition    TEXT    NOT NULL
);
CREATE INDEX schedules_due ON schedules (due_at, name) WHERE due_at IS NOT NULL;
CREATE TABLE schedule_runs (
    schedule_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    run         TEXT    NOT NULL,
    PRIMARY KEY (schedule_id, number)
) WITHOUT ROWID;
CREATE TABLE message_keys (
    message        INTEGER PRIMARY KEY,
    own_key        TEXT    NOT NULL,
    mode           TEXT    NOT NULL,
    due            INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    offers         INTEGER NOT NULL,
    first_offer_at INTEGER NOT NULL,
    last_offer_at  INTEGER NOT NULL,
    max_wait_until INTEGER,
    waiting_bytes  INTEGER NOT NULL DEFAULT 0,
    waiting        BLOB
);
CREATE TABLE outboxes (
    outbox     TEXT    PRIMARY KEY NOT NULL,
    position   INTEGER NOT NULL,
    made_by    TEXT    NOT NULL,
    relayed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX schedules_made_by ON schedules (made_by, due_at, name);
CREATE TABLE moved_pages (
    queue       TEXT    NOT NULL,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    first_id    TEXT    NOT NULL,
    last_id     TEXT    NOT NULL,
    consumer    TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    page        INTEGER NOT NULL,
    receipt     INTEGER NOT NULL,
    leased_at   INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    messages    INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    rows        TEXT    NOT NULL,
    PRIMARY KEY (queue, first_seq)
);
CREATE UNIQUE INDEX moved_pages_page ON moved_pages (queue, consumer, number, page);
CREATE INDEX moved_pages_last ON moved_pages (queue, last_seq);
CREATE INDEX moved_pages_id ON moved_pages (queue, first_id);
INSERT INTO forgotten_sequence VALUES (0);
INSERT INTO history_ends VALUES (0, 0);
INSERT INTO consumers_forgotten VALUES (0, 0);
INSERT INTO migrations VALUES
    (1, 'messages', '01e48f6cf5f6a5de4dad685104c5aec3ad4897bc439477b895bf9b004b0046ef', 0),
    (2, 'queue_features', 'd5280b63e9a21cf9e6cfad4fb3c7908f82449bcb889b287799da37394e024bf9', 0),
    (3, 'default_max_receives', '48eebc8a74a0924bc896e72e6a15ed2d36e34324707c7cb04255db92c5e0c317', 0),
    (4, 'sequence', 'c932d35b44288d94752263b712a30d53f222a936e02fcfe12c1f11316bc229da', 0),
    (5, 'states', '71a0b6536636ba91e8e5867e8b67cdba12f34284ae760247ade57a0b29cdd273', 0),
    (6, 'redrives', 'd349282dc30a07a5b67242a10a6cae5215a8809097ebc8aeed7ffc0630f764a0', 0),
    (7, 'publishing', 'a9e8cfb0353a2baf33aaaede3151594a0d5feda4dd153b475d622a89f6e3cf53', 0),
    (8, 'history', 'b39a33986b81bdf4ab45d04ac1c585cc0f874e6dde3fed574426b3f52649fe02', 0),
    (9, 'consumers', '9482b15ee68a18c7d5f89d27b2cb973e15ebf3212b6954a5793fff2ab1b8b127', 0),
    (10, 'events', '8c531d0b9dff7a8fc815e60d63a2d56e661f2c22318fcc9c4bd97993b3006fe5', 0),
    (11, 'lease_numbers', '7f5fb3c30022112b2e353e8e080433f90ef8ed10e70dd7c5e40533106994353d', 0),
    (12, 'error_keys', '367f291750ce084d8be416187e4cfc47fe903cd088dc2c5133a7857d87b6ab8e', 0),
    (13, 'apps', 'd5e1022516e470fbb83540c02ef8c558f50645b011d81ff2b7189bb60c27ffa4', 0),
    (14, 'rates', '55d2d7ee5d1fb2b5b93876826675242a20e7863b29a4aa94ae8b10c9653c471a', 0),
    (15, 'redrive_members', 'f751ce513e5542dd45ddde657888d2783fd8548b1a95d934e81c2997b259ce18', 0),
    (16, 'queue_makers', '4166ca67c7061f25a2c81d1723679635c09f501737d4a94701354c57163ca460', 0),
    (17, 'schedules', '31340225e44a80f069ddc9549effdc6845f13a91daf717d1d6443f3dfd8a9a16', 0),
    (18, 'message_keys', '2603a7fc2e7a911521d5775face66f5219a0feee5003a0d84edc75fb6fac7b45', 0),
    (19, 'history_keys', 'bf0211311f9d0b7edb0d2f3992c841fbba82db3c3712336c443cb83c63ca381c', 0),
    (20, 'outboxes', '116a503cba43c41da159d899e99713544b19ebb719e52547c574388ea7aa9806', 0),
    (21, 'schedules_of_tokens', '80d1d973891169d6b37f79e9f94ab40a56a2d94b1fd9d3af4be846914ac16ecb', 0),
    (22, 'moved_pages', '770b42103f8eea7e5eb043810dc7effa1c4cbfe24c48b4b8a64e67948c401d45', 0),
    (23, 'acknowledged_numbers', 'b8d26a598b9966ef421522f0fec43dc84995393e3e54676510d3284e96e66770', 0);
