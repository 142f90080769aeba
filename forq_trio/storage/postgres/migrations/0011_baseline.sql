-- The tables of the first release. Their versions begin with 11: so many steps of development led to these tables, and a
-- database that has had the last of them, whose checksum is this, has them already:
-- same as: ac1990a81733ca837e12ba5e0a3469d15b3a454a525611a3eaaf94afe5e299a2
--
-- The schema of SQLite explains tables and columns that are there, too. Indexes end with what orders their rows there.
-- Text that is ordered, or of which an index is read on from a value, is compared by bytes, as there.

CREATE TABLE messages (
    seq                   bigint PRIMARY KEY,
    id                    text NOT NULL,
    queue                 text COLLATE "C" NOT NULL,
    is_dlq                bigint NOT NULL DEFAULT 0,
    status                bigint NOT NULL DEFAULT 0,
    attempts              bigint NOT NULL DEFAULT 0,
    process_after         bigint NOT NULL,
    processing_started_at bigint,
    failure_reason        text COLLATE "C",
    received_at           bigint NOT NULL,
    updated_at            bigint NOT NULL,
    expires_after         bigint NOT NULL,
    priority              bigint NOT NULL DEFAULT 100,
    position              bigint NOT NULL,
    lease_until           bigint,
    receipt               bigint,
    first_received_at     bigint,
    bytes                 bigint NOT NULL DEFAULT 0,
    max_attempts          bigint,
    default_max_receives  bigint,
    ttl_ms                bigint,
    group_id              text COLLATE "C",
    attributes            text CHECK (strpos(attributes, '\u0000') = 0),  -- which jsonb cannot have
    dedup_id              text COLLATE "C",
    key                   text COLLATE "C",
    kind                  text COLLATE "C",
    dead_letter_queue     text,
    dead_lettered_at      bigint,
    source_queue          text,
    source_attempts       bigint,
    last_error            text COLLATE "C",
    error_key             bigint,
    failures              text,
    due_at                bigint GENERATED ALWAYS AS (
        CASE status
            WHEN 0 THEN expires_after
            WHEN 1 THEN lease_until
            WHEN 3 THEN least(process_after, expires_after)
            WHEN 4 THEN expires_after
        END
    ) STORED,
    content               text NOT NULL
);
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_claim ON messages (queue, priority DESC, position, seq) WHERE status = 0;
CREATE INDEX messages_due ON messages (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX messages_failed ON messages (is_dlq, seq) WHERE status = 2;
CREATE INDEX messages_queue ON messages (queue, seq);
CREATE INDEX messages_in_flight ON messages (queue, seq) WHERE status = 1;
CREATE INDEX messages_delayed ON messages (queue, seq) WHERE status = 3;
CREATE INDEX messages_held ON messages (queue, seq) WHERE status = 4;
CREATE INDEX messages_group ON messages (queue, group_id, status, priority DESC, position, seq) WHERE group_id IS NOT NULL;
CREATE UNIQUE INDEX messages_key ON messages (queue, kind, key) WHERE key IS NOT NULL;

CREATE TABLE message_keys (
    message        bigint PRIMARY KEY,
    own_key        text COLLATE "C" NOT NULL,
    mode           text NOT NULL,
    due            bigint NOT NULL,
    revision       bigint NOT NULL,
    offers         bigint NOT NULL,
    first_offer_at bigint NOT NULL,
    last_offer_at  bigint NOT NULL,
    max_wait_until bigint,
    waiting_bytes  bigint NOT NULL DEFAULT 0,
    waiting        bytea
);

CREATE TABLE dedup (
    queue      text COLLATE "C" NOT NULL,
    dedup_id   text COLLATE "C" NOT NULL,
    id         text NOT NULL,
    seq        bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (queue, dedup_id)
);
CREATE INDEX dedup_expires ON dedup (expires_at);

-- Most batches change rows of these two tables. Each change is a new row at the end of its key, which replaces the one before:
-- a row that is updated in place gets a chain of versions that every read walks, as long as an old snapshot is open anywhere.
CREATE TABLE queue_counts (
    queue      text COLLATE "C" NOT NULL,
    number     bigint GENERATED ALWAYS AS IDENTITY,  -- the row with the highest counts
    ready      bigint NOT NULL,
    processing bigint NOT NULL,
    failed     bigint NOT NULL,
    delayed    bigint NOT NULL,
    held       bigint NOT NULL DEFAULT 0,
    bytes      bigint NOT NULL DEFAULT 0,
    grouped    bigint NOT NULL DEFAULT 0,
    letting_go bigint,
    last_seq   bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL,
    made_by    text COLLATE "C",
    PRIMARY KEY (queue, number)
);

CREATE TABLE forgotten_sequence (last_seq bigint PRIMARY KEY);
INSERT INTO forgotten_sequence VALUES (0);

CREATE TABLE queues (
    queue      text COLLATE "C" PRIMARY KEY,
    settings   text NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE rate_buckets (
    queue     text COLLATE "C" NOT NULL,
    group_id  text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    period_ms bigint NOT NULL,
    full_at   bigint NOT NULL,
    full_ms   bigint NOT NULL,
    wake_at   bigint,
    PRIMARY KEY (queue, group_id)
);
CREATE INDEX rate_buckets_wake ON rate_buckets (wake_at, queue, group_id) WHERE wake_at IS NOT NULL;
CREATE INDEX rate_buckets_full ON rate_buckets (full_ms);

CREATE TABLE tokens (
    name         text COLLATE "C" PRIMARY KEY,
    digest       text NOT NULL,
    scopes       text NOT NULL,
    queues       text NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    last_used_at bigint
);
CREATE UNIQUE INDEX tokens_digest ON tokens (digest);

CREATE TABLE ui_sessions (
    digest       text PRIMARY KEY,
    key_name     text,
    key_digest   text NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint NOT NULL,
    last_used_at bigint NOT NULL,
    client       text NOT NULL,
    agent        text NOT NULL
);

CREATE TABLE redrives (
    number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id     text NOT NULL UNIQUE,
    task   text NOT NULL
);

CREATE TABLE schedules (
    id            bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE,
    made_at       bigint NOT NULL,
    made_by       text COLLATE "C",
    updated_at    bigint NOT NULL,
    paused_at     bigint,
    paused_by     text,
    next_run      bigint,
    due_at        bigint,
    last_nominal  bigint,
    catching_up   bigint,
    last_sequence bigint,
    runs          bigint NOT NULL DEFAULT 0,
    definition    text NOT NULL
);
CREATE INDEX schedules_due ON schedules (due_at, name) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_made_by ON schedules (made_by, due_at, name);

CREATE TABLE schedule_runs (
    schedule_id bigint NOT NULL,
    number      bigint NOT NULL,
    run         text NOT NULL,
    PRIMARY KEY (schedule_id, number)
);

CREATE TABLE outboxes (
    outbox     text COLLATE "C" PRIMARY KEY NOT NULL,
    position   bigint NOT NULL,
    made_by    text COLLATE "C" NOT NULL,
    relayed_at bigint NOT NULL
);

CREATE TABLE history (
    id                bigint PRIMARY KEY,
    seq               bigint NOT NULL,
    message_id        text NOT NULL,
    queue             text COLLATE "C" NOT NULL,
    outcome           text NOT NULL,
    reason            text COLLATE "C",
    finished_at       bigint NOT NULL,
    attempts          bigint NOT NULL,
    priority          bigint NOT NULL,
    received_at       bigint NOT NULL,
    first_received_at bigint,
    bytes             bigint NOT NULL,
    number            bigint NOT NULL,
    total             bigint NOT NULL,
    group_id          text COLLATE "C",
    key               text COLLATE "C",
    kind              text COLLATE "C",
    attributes        text,
    failure_reason    text COLLATE "C",
    source_queue      text,
    source_attempts   bigint,
    dead_lettered_at  bigint,
    last_error        text COLLATE "C",
    error_key         bigint,
    failures          text,
    content           text NOT NULL
);
CREATE INDEX history_queue ON history (queue, id);
CREATE INDEX history_message ON history (message_id, id);

CREATE TABLE history_ends (
    gone bigint NOT NULL,
    last bigint NOT NULL
);
INSERT INTO history_ends VALUES (0, 0);

CREATE TABLE events (
    id          bigint PRIMARY KEY,
    at          bigint,
    kind        bigint,
    queue       text COLLATE "C",
    seq         bigint,
    message_id  text,
    attempt     bigint,
    reason      text COLLATE "C",
    target      text COLLATE "C",
    received_at bigint,
    duration_ms bigint,
    bytes       bigint,
    total       bigint
);
CREATE INDEX events_message ON events (message_id, id);

CREATE TABLE stages (
    id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    queue        text COLLATE "C" NOT NULL,
    stage        text,
    made_by      text COLLATE "C" NOT NULL DEFAULT '?',
    pages        bigint NOT NULL,
    last_page    bigint NOT NULL,
    messages     bigint NOT NULL,
    bytes        bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    expires_at   bigint NOT NULL,
    turn         bigint,
    published    bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX stages_name ON stages (queue, stage) WHERE stage IS NOT NULL;
CREATE INDEX stages_expire ON stages (expires_at, id) WHERE stage IS NOT NULL;
CREATE INDEX stages_work ON stages (published DESC, turn) WHERE turn IS NOT NULL;
CREATE INDEX stages_on_the_way ON stages (queue) WHERE published = 1;
CREATE INDEX stages_made_by ON stages (made_by, id) WHERE stage IS NOT NULL AND messages = 0;

CREATE TABLE staged_parts (
    rowid    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage_id bigint NOT NULL,
    page     bigint NOT NULL,
    part     bigint NOT NULL,
    messages bigint NOT NULL,
    bytes    bigint NOT NULL,
    body     bytea NOT NULL
);
CREATE UNIQUE INDEX staged_parts_order ON staged_parts (stage_id, page, part);

CREATE TABLE apps (
    number       bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    app          text COLLATE "C" NOT NULL,
    version      bigint NOT NULL,
    published_at bigint NOT NULL,
    once         bigint NOT NULL,
    made_by      text COLLATE "C" NOT NULL,
    queues       text NOT NULL
);
CREATE INDEX apps_name ON apps (app);
CREATE INDEX apps_once ON apps (once, number);
CREATE INDEX apps_made_by ON apps (made_by, once, number);

CREATE TABLE consumers (
    queue    text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, name)
);

CREATE TABLE consumer_numbers (
    id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    consumer     text COLLATE "C" NOT NULL UNIQUE,
    number       bigint NOT NULL,
    acknowledged bigint
);

CREATE TABLE consumers_forgotten (
    generation bigint NOT NULL,
    number     bigint NOT NULL DEFAULT 0
);
INSERT INTO consumers_forgotten VALUES (0, 0);

CREATE TABLE consumer_pages (
    queue     text COLLATE "C" NOT NULL,
    consumer  text COLLATE "C" NOT NULL,
    number    bigint NOT NULL,
    page      bigint NOT NULL,
    receipt   bigint NOT NULL,
    sequences text NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (queue, consumer, number, page)
);

CREATE TABLE moved_pages (
    queue       text COLLATE "C" NOT NULL,
    first_seq   bigint NOT NULL,
    last_seq    bigint NOT NULL,
    first_id    text COLLATE "C" NOT NULL,
    last_id     text COLLATE "C" NOT NULL,
    consumer    text COLLATE "C" NOT NULL,
    number      bigint NOT NULL,
    page        bigint NOT NULL,
    receipt     bigint NOT NULL,
    leased_at   bigint NOT NULL,
    lease_until bigint NOT NULL,
    messages    bigint NOT NULL,
    bytes       bigint NOT NULL,
    rows        text NOT NULL,
    PRIMARY KEY (queue, first_seq)
);
CREATE UNIQUE INDEX moved_pages_page ON moved_pages (queue, consumer, number, page);
CREATE INDEX moved_pages_last ON moved_pages (queue, last_seq);
CREATE INDEX moved_pages_id ON moved_pages (queue, first_id);


-- What only PostgreSQL has: several processes on one database.

-- One batch at a time: it locks this table, which has no rows. Roles without rights can hold up each other kind of lock.
CREATE TABLE gate ();

-- What each of the latest batches changed of the memory of its process, so that others take it over.
CREATE TABLE batches (
    version bigint PRIMARY KEY,
    made_by text NOT NULL,       -- the process
    changed bytea NOT NULL
);

-- Server processes that make themselves known. Not logged: a crash of the database may forget them.
CREATE UNLOGGED TABLE processes (
    id       text PRIMARY KEY,
    name     text NOT NULL,
    address  text,
    heard_at bigint NOT NULL,
    state    text NOT NULL CHECK (octet_length(state) <= 16384)  -- JSON: what it reports, and which jobs it ran
);

-- A publication for all tables (of a blue/green upgrade, or of Debezium) refuses changes of rows that nothing identifies.
-- Tables of one row have no key:
ALTER TABLE history_ends REPLICA IDENTITY FULL;
ALTER TABLE consumers_forgotten REPLICA IDENTITY FULL;
ALTER TABLE gate REPLICA IDENTITY FULL;

-- Functions of SQLite that shared statements use.
CREATE FUNCTION iif(boolean, anycompatible, anycompatible) RETURNS anycompatible IMMUTABLE LANGUAGE sql
AS 'SELECT CASE WHEN $1 THEN $2 ELSE $3 END';
CREATE FUNCTION instr(text, text) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT strpos($1, $2)';
CREATE FUNCTION max(bigint, bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT greatest($1, $2)';
CREATE FUNCTION json_valid(text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 IS NOT NULL';
CREATE FUNCTION json_each(text) RETURNS TABLE (key text, value text) IMMUTABLE LANGUAGE sql
AS 'SELECT * FROM jsonb_each_text($1::jsonb)';


-- What applications send in their own transactions.

-- Messages that were sent; a batch moves those that are committed into their queues.
CREATE TABLE sent (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- in the order of sending, within each transaction and behind it
    queue   text COLLATE "C" NOT NULL,
    message text NOT NULL                                     -- a NewMessage as JSON
);
-- Messages that wait for their full queue do not hold up others: a batch finds those of the other queues.
CREATE INDEX sent_by_queue ON sent (queue, id);

-- Those that their queue refused, with code and sentence of the error.
CREATE TABLE sent_set_aside (
    id      bigint PRIMARY KEY,
    queue   text COLLATE "C" NOT NULL,
    message text NOT NULL,
    code    text NOT NULL,
    reason  text NOT NULL
);

-- An application's transaction notifies only while a server waits for what it sends: PostgreSQL commits transactions that
-- notify one after the other. The lock is that of the statement `await_sent`. It is tried for a moment, which fails for others
-- in that moment, too; so what is there is looked at, but only then: that costs much more.
CREATE FUNCTION tell_of_sent(queue text) RETURNS void LANGUAGE plpgsql AS $tell$
BEGIN
    IF pg_try_advisory_lock(1718579825, 3) AND pg_advisory_unlock(1718579825, 3) THEN
        RETURN;
    END IF;
    IF EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = 1718579825 AND objid = 3 AND objsubid = 2 AND mode = 'ShareLock'
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    THEN
        PERFORM pg_notify('forq', 'sent ' || queue);
    END IF;
END
$tell$;
REVOKE EXECUTE ON FUNCTION tell_of_sent FROM PUBLIC;

-- The right to call it is the right to send to every queue; nobody has it but our own role, until it is granted.
CREATE FUNCTION send(
    queue text,
    content text,
    process_after bigint DEFAULT NULL,
    delay_ms bigint DEFAULT NULL,
    priority bigint DEFAULT NULL,
    ttl_ms bigint DEFAULT NULL,
    attributes jsonb DEFAULT NULL,
    deduplication_id text DEFAULT NULL,
    deduplication_window_ms bigint DEFAULT NULL,
    "group" text DEFAULT NULL,
    max_attempts bigint DEFAULT NULL,
    dead_letter_queue text DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, forq, pg_temp AS $send$
#variable_conflict use_variable
DECLARE
    now_ms CONSTANT bigint := extract(epoch FROM clock_timestamp()) * 1000;
    year_ms CONSTANT bigint := 366 * 86400000::bigint;
    wrong text;
    sent_id bigint;
BEGIN
    wrong := CASE
        WHEN queue IS NULL OR queue COLLATE "C" !~ '^[A-Za-z0-9._-]{1,64}(-dlq)?$' OR queue IN ('.', '..')
            THEN 'the queue name is not 1-64 characters of A-Z a-z 0-9 . _ -'
        WHEN queue LIKE '%-dlq' THEN 'messages are not sent to a dead-letter queue'
        WHEN content IS NULL THEN 'content is text, not NULL'
        WHEN octet_length(convert_to(content, 'UTF8')) > 262144
            THEN format('the content has %s bytes of UTF-8; at most 262144 are allowed',
                        octet_length(convert_to(content, 'UTF8')))
        WHEN process_after IS NOT NULL AND delay_ms IS NOT NULL THEN 'process_after and a delay exclude each other'
        WHEN process_after < now_ms - 10000 THEN 'process_after lies more than 10 seconds in the past'
        WHEN process_after > now_ms + year_ms THEN 'process_after lies more than 366 days ahead'
        WHEN NOT delay_ms BETWEEN 0 AND year_ms
            THEN format('delay_ms must be between 0 and %s, not %s', year_ms, delay_ms)
        WHEN NOT priority BETWEEN 0 AND 1000 THEN format('priority must be between 0 and 1000, not %s', priority)
        WHEN NOT ttl_ms BETWEEN 1 AND year_ms THEN format('ttl_ms must be between 1 and %s, not %s', year_ms, ttl_ms)
        WHEN NOT char_length(deduplication_id) BETWEEN 1 AND 128 THEN 'deduplication_id has 1 to 128 characters'
        WHEN NOT deduplication_window_ms BETWEEN 1 AND 43200000
            THEN format('deduplication_window_ms must be between 1 and 43200000, not %s', deduplication_window_ms)
        WHEN NOT char_length("group") BETWEEN 1 AND 128 THEN 'group has 1 to 128 characters'
        WHEN NOT max_attempts BETWEEN 1 AND 1000000
            THEN format('max_attempts must be between 1 and 1000000, not %s', max_attempts)
        WHEN dead_letter_queue COLLATE "C" !~ '^([A-Za-z0-9._-]{1,64}(-dlq)?)?$' OR dead_letter_queue IN ('.', '..')
            THEN 'dead_letter_queue is not 1-64 characters of A-Z a-z 0-9 . _ -'
        WHEN jsonb_typeof(attributes) <> 'object' THEN 'attributes are an object of texts'
    END;
    IF wrong IS NULL AND attributes IS NOT NULL THEN
        SELECT CASE
            WHEN count(*) > 10 THEN format('there are %s attributes; at most 10 are allowed', count(*))
            WHEN NOT bool_and(jsonb_typeof(value) = 'string') THEN 'attributes are an object of texts'
            WHEN NOT bool_and(char_length(key) BETWEEN 1 AND 64) THEN 'attribute keys have 1 to 64 characters'
            WHEN NOT bool_and(char_length(value #>> '{}') <= 1024)
                THEN 'the values of attributes have at most 1024 characters'
        END INTO wrong FROM jsonb_each(attributes);
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'forq.send: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO forq.sent (queue, message) VALUES (queue, json_strip_nulls(json_build_object(
        'content', content, 'processAfter', coalesce(process_after, now_ms + delay_ms), 'priority', priority,
        'ttlMs', ttl_ms, 'attributes', attributes, 'deduplicationId', deduplication_id,
        'deduplicationWindowMs', deduplication_window_ms, 'group', "group", 'maxAttempts', max_attempts,
        'deadLetterQueue', dead_letter_queue))::text)
    RETURNING id INTO sent_id;
    PERFORM tell_of_sent(queue);
    RETURN sent_id;
END
$send$;
REVOKE EXECUTE ON FUNCTION send FROM PUBLIC;
GRANT USAGE ON SCHEMA forq TO PUBLIC;
