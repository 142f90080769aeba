-- A database at version 11, as the 11 steps before the first release made it: what pg_dump wrote. Never changed.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA forq;
CREATE FUNCTION forq.iif(boolean, anycompatible, anycompatible) RETURNS anycompatible
    LANGUAGE sql IMMUTABLE
    AS $_$SELECT CASE WHEN $1 THEN $2 ELSE $3 END$_$;
CREATE FUNCTION forq.instr(text, text) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $_$SELECT strpos($1, $2)$_$;
CREATE FUNCTION forq.json_each(text) RETURNS TABLE(key text, value text)
    LANGUAGE sql IMMUTABLE
    AS $_$SELECT * FROM jsonb_each_text($1::jsonb)$_$;
CREATE FUNCTION forq.json_valid(text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$SELECT $1 IS NOT NULL$_$;
CREATE FUNCTION forq.max(bigint, bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $_$SELECT greatest($1, $2)$_$;
CREATE FUNCTION forq.send(queue text, content text, process_after bigint DEFAULT NULL::bigint, delay_ms bigint DEFAULT NULL::bigint, priority bigint DEFAULT NULL::bigint, ttl_ms bigint DEFAULT NULL::bigint, attributes jsonb DEFAULT NULL::jsonb, deduplication_id text DEFAULT NULL::text, deduplication_window_ms bigint DEFAULT NULL::bigint, "group" text DEFAULT NULL::text, max_attempts bigint DEFAULT NULL::bigint, dead_letter_queue text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'forq', 'pg_temp'
    AS $_$
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
$_$;
CREATE FUNCTION forq.tell_of_sent(queue text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE forq.apps (
    number bigint NOT NULL,
    app text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    published_at bigint NOT NULL,
    once bigint NOT NULL,
    made_by text NOT NULL COLLATE pg_catalog."C",
    queues text NOT NULL
);
ALTER TABLE forq.apps ALTER COLUMN number ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME forq.apps_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.batches (
    version bigint NOT NULL,
    made_by text NOT NULL,
    changed bytea NOT NULL
);
CREATE TABLE forq.consumer_numbers (
    id bigint NOT NULL,
    consumer text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    acknowledged bigint
);
ALTER TABLE forq.consumer_numbers ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME forq.consumer_numbers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.consumer_pages (
    queue text NOT NULL COLLATE pg_catalog."C",
    consumer text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    page bigint NOT NULL,
    receipt bigint NOT NULL,
    sequences text NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE forq.consumers (
    queue text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    consumer text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE forq.consumers_forgotten (
    generation bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL
);
ALTER TABLE ONLY forq.consumers_forgotten REPLICA IDENTITY FULL;
CREATE TABLE forq.dedup (
    queue text NOT NULL COLLATE pg_catalog."C",
    dedup_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL,
    seq bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE forq.events (
    id bigint NOT NULL,
    at bigint,
    kind bigint,
    queue text COLLATE pg_catalog."C",
    seq bigint,
    message_id text,
    attempt bigint,
    reason text COLLATE pg_catalog."C",
    target text COLLATE pg_catalog."C",
    received_at bigint,
    duration_ms bigint,
    bytes bigint,
    total bigint
);
CREATE TABLE forq.forgotten_sequence (
    last_seq bigint NOT NULL
);
CREATE TABLE forq.gate (
);
ALTER TABLE ONLY forq.gate REPLICA IDENTITY FULL;
CREATE TABLE forq.history (
    id bigint NOT NULL,
    seq bigint NOT NULL,
    message_id text NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL,
    reason text COLLATE pg_catalog."C",
    finished_at bigint NOT NULL,
    attempts bigint NOT NULL,
    priority bigint NOT NULL,
    received_at bigint NOT NULL,
    first_received_at bigint,
    bytes bigint NOT NULL,
    number bigint NOT NULL,
    total bigint NOT NULL,
    group_id text COLLATE pg_catalog."C",
    attributes text,
    failure_reason text COLLATE pg_catalog."C",
    source_queue text,
    source_attempts bigint,
    dead_lettered_at bigint,
    last_error text COLLATE pg_catalog."C",
    failures text,
    content text NOT NULL,
    error_key bigint,
    key text COLLATE pg_catalog."C",
    kind text COLLATE pg_catalog."C"
);
CREATE TABLE forq.history_ends (
    gone bigint NOT NULL,
    last bigint NOT NULL
);
ALTER TABLE ONLY forq.history_ends REPLICA IDENTITY FULL;
CREATE TABLE forq.message_keys (
    message bigint NOT NULL,
    own_key text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL,
    due bigint NOT NULL,
    revision bigint NOT NULL,
    offers bigint NOT NULL,
    first_offer_at bigint NOT NULL,
    last_offer_at bigint NOT NULL,
    max_wait_until bigint,
    waiting_bytes bigint DEFAULT 0 NOT NULL,
    waiting bytea
);
CREATE TABLE forq.messages (
    seq bigint NOT NULL,
    id text NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    is_dlq bigint DEFAULT 0 NOT NULL,
    status bigint DEFAULT 0 NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    process_after bigint NOT NULL,
    processing_started_at bigint,
    failure_reason text COLLATE pg_catalog."C",
    received_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_after bigint NOT NULL,
    priority bigint DEFAULT 100 NOT NULL,
    "position" bigint NOT NULL,
    lease_until bigint,
    receipt bigint,
    first_received_at bigint,
    bytes bigint DEFAULT 0 NOT NULL,
    max_attempts bigint,
    ttl_ms bigint,
    group_id text COLLATE pg_catalog."C",
    attributes text,
    dedup_id text COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    kind text COLLATE pg_catalog."C",
    dead_letter_queue text,
    dead_lettered_at bigint,
    source_queue text,
    source_attempts bigint,
    last_error text COLLATE pg_catalog."C",
    failures text,
    due_at bigint GENERATED ALWAYS AS (
CASE status
    WHEN 0 THEN expires_after
    WHEN 1 THEN lease_until
    WHEN 3 THEN LEAST(process_after, expires_after)
    WHEN 4 THEN expires_after
    ELSE NULL::bigint
END) STORED,
    content text NOT NULL,
    default_max_receives bigint,
    error_key bigint,
    CONSTRAINT messages_attributes_check CHECK ((strpos(attributes, '\u0000'::text) = 0))
);
CREATE TABLE forq.migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE forq.moved_pages (
    queue text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    first_id text NOT NULL COLLATE pg_catalog."C",
    last_id text NOT NULL COLLATE pg_catalog."C",
    consumer text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    page bigint NOT NULL,
    receipt bigint NOT NULL,
    leased_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    messages bigint NOT NULL,
    bytes bigint NOT NULL,
    rows text NOT NULL
);
CREATE TABLE forq.outboxes (
    outbox text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    made_by text NOT NULL COLLATE pg_catalog."C",
    relayed_at bigint NOT NULL
);
CREATE UNLOGGED TABLE forq.processes (
    id text NOT NULL,
    name text NOT NULL,
    address text,
    heard_at bigint NOT NULL,
    state text NOT NULL,
    CONSTRAINT processes_state_check CHECK ((octet_length(state) <= 16384))
);
CREATE TABLE forq.queue_counts (
    queue text NOT NULL COLLATE pg_catalog."C",
    ready bigint NOT NULL,
    processing bigint NOT NULL,
    failed bigint NOT NULL,
    delayed bigint NOT NULL,
    updated_at bigint NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    grouped bigint DEFAULT 0 NOT NULL,
    letting_go bigint,
    last_seq bigint DEFAULT 0 NOT NULL,
    made_by text COLLATE pg_catalog."C",
    number bigint NOT NULL
);
ALTER TABLE forq.queue_counts ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME forq.queue_counts_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.queues (
    queue text NOT NULL COLLATE pg_catalog."C",
    settings text NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE forq.rate_buckets (
    queue text NOT NULL COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    period_ms bigint NOT NULL,
    full_at bigint NOT NULL,
    full_ms bigint NOT NULL,
    wake_at bigint
);
CREATE TABLE forq.redrives (
    number bigint NOT NULL,
    id text NOT NULL,
    task text NOT NULL
);
ALTER TABLE forq.redrives ALTER COLUMN number ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME forq.redrives_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.schedule_runs (
    schedule_id bigint NOT NULL,
    number bigint NOT NULL,
    run text NOT NULL
);
CREATE TABLE forq.schedules (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    made_at bigint NOT NULL,
    made_by text COLLATE pg_catalog."C",
    updated_at bigint NOT NULL,
    paused_at bigint,
    paused_by text,
    next_run bigint,
    due_at bigint,
    last_nominal bigint,
    catching_up bigint,
    last_sequence bigint,
    runs bigint DEFAULT 0 NOT NULL,
    definition text NOT NULL
);
ALTER TABLE forq.schedules ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME forq.schedules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.sent (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    message text NOT NULL
);
ALTER TABLE forq.sent ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME forq.sent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.sent_set_aside (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    message text NOT NULL,
    code text NOT NULL,
    reason text NOT NULL
);
CREATE TABLE forq.staged_parts (
    rowid bigint NOT NULL,
    stage_id bigint NOT NULL,
    page bigint NOT NULL,
    part bigint NOT NULL,
    messages bigint NOT NULL,
    bytes bigint NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE forq.staged_parts ALTER COLUMN rowid ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME forq.staged_parts_rowid_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.stages (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    stage text,
    pages bigint NOT NULL,
    last_page bigint NOT NULL,
    messages bigint NOT NULL,
    bytes bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    expires_at bigint NOT NULL,
    turn bigint,
    published bigint DEFAULT 0 NOT NULL,
    made_by text DEFAULT '?'::text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE forq.stages ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME forq.stages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE forq.tokens (
    name text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL,
    scopes text NOT NULL,
    queues text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint
);
CREATE TABLE forq.ui_sessions (
    digest text NOT NULL,
    key_name text,
    key_digest text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    client text NOT NULL,
    agent text NOT NULL
);
INSERT INTO forq.consumers_forgotten VALUES (0, 0);
INSERT INTO forq.forgotten_sequence VALUES (0);
INSERT INTO forq.history_ends VALUES (0, 0);
INSERT INTO forq.migrations VALUES (1, 'tables', 'd2a1d9791e54842ff8b73d61a47f6b2f23956ba6d57d58697cae0a8f47c62c5b', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (2, 'processes', '467ea908e52228a5d0855d10b129424ea9b89ffc4059c0382a61894af08d7b40', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (3, 'send', '94bc3983708ae8b7ba7898e42ba0ada0385c1b770339d3efdec79945f47fa3ca', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (4, 'sent_by_queue', '17d3aa4ddaed14e66a3c440affdc973d91b44e84674a5ecd7173ab1bb6c7bca3', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (5, 'latest_rows', '77fe7c1f54e94302c4dec1761df65a8e7037d7f614098b849e63ff7c3620a099', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (6, 'runs_of_jobs', '4591921bccf3217ff08b5dda5a45ad2a4a5cece1ae187c0e328a794bb8c1649d', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (7, 'gate', '383c7389f542501ca486b5679297b3ea8204947f132fd097516541029a52b7df', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (8, 'moved_pages', '85865fd9f50600b5eb8786212240edf3c894617b91f70a7e069fbf26f5bb1cb9', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (9, 'acknowledged_numbers', '95d2effe7309c9efc8ff3fd55a002f9fe813b0c583022ecfa060f2d25415a66d', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (10, 'tell_who_waits', '123bb51c6d5472e277c7940354315ee61dc3935566a4f21b94018b5609d75adb', '2026-11-01 00:00:00+00');
INSERT INTO forq.migrations VALUES (11, 'replica_identities', 'ac1990a81733ca837e12ba5e0a3469d15b3a454a525611a3eaaf94afe5e299a2', '2026-11-01 00:00:00+00');
SELECT pg_catalog.setval('forq.apps_number_seq', 1, false);
SELECT pg_catalog.setval('forq.consumer_numbers_id_seq', 1, false);
SELECT pg_catalog.setval('forq.queue_counts_number_seq', 1, false);
SELECT pg_catalog.setval('forq.redrives_number_seq', 1, false);
SELECT pg_catalog.setval('forq.schedules_id_seq', 1, false);
SELECT pg_catalog.setval('forq.sent_id_seq', 1, false);
SELECT pg_catalog.setval('forq.staged_parts_rowid_seq', 1, false);
SELECT pg_catalog.setval('forq.stages_id_seq', 1, false);
ALTER TABLE ONLY forq.apps
    ADD CONSTRAINT apps_pkey PRIMARY KEY (number);
ALTER TABLE ONLY forq.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (version);
ALTER TABLE ONLY forq.consumer_numbers
    ADD CONSTRAINT consumer_numbers_consumer_key UNIQUE (consumer);
ALTER TABLE ONLY forq.consumer_numbers
    ADD CONSTRAINT consumer_numbers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.consumer_pages
    ADD CONSTRAINT consumer_pages_pkey PRIMARY KEY (queue, consumer, number, page);
ALTER TABLE ONLY forq.consumers
    ADD CONSTRAINT consumers_pkey PRIMARY KEY (queue, name);
ALTER TABLE ONLY forq.dedup
    ADD CONSTRAINT dedup_pkey PRIMARY KEY (queue, dedup_id);
ALTER TABLE ONLY forq.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.forgotten_sequence
    ADD CONSTRAINT forgotten_sequence_pkey PRIMARY KEY (last_seq);
ALTER TABLE ONLY forq.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.message_keys
    ADD CONSTRAINT message_keys_pkey PRIMARY KEY (message);
ALTER TABLE ONLY forq.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY forq.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY forq.moved_pages
    ADD CONSTRAINT moved_pages_pkey PRIMARY KEY (queue, first_seq);
ALTER TABLE ONLY forq.outboxes
    ADD CONSTRAINT outboxes_pkey PRIMARY KEY (outbox);
ALTER TABLE ONLY forq.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.queue_counts
    ADD CONSTRAINT queue_counts_pkey PRIMARY KEY (queue, number);
ALTER TABLE ONLY forq.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (queue);
ALTER TABLE ONLY forq.rate_buckets
    ADD CONSTRAINT rate_buckets_pkey PRIMARY KEY (queue, group_id);
ALTER TABLE ONLY forq.redrives
    ADD CONSTRAINT redrives_id_key UNIQUE (id);
ALTER TABLE ONLY forq.redrives
    ADD CONSTRAINT redrives_pkey PRIMARY KEY (number);
ALTER TABLE ONLY forq.schedule_runs
    ADD CONSTRAINT schedule_runs_pkey PRIMARY KEY (schedule_id, number);
ALTER TABLE ONLY forq.schedules
    ADD CONSTRAINT schedules_name_key UNIQUE (name);
ALTER TABLE ONLY forq.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.sent
    ADD CONSTRAINT sent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.sent_set_aside
    ADD CONSTRAINT sent_set_aside_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.staged_parts
    ADD CONSTRAINT staged_parts_pkey PRIMARY KEY (rowid);
ALTER TABLE ONLY forq.stages
    ADD CONSTRAINT stages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY forq.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (name);
ALTER TABLE ONLY forq.ui_sessions
    ADD CONSTRAINT ui_sessions_pkey PRIMARY KEY (digest);
CREATE INDEX apps_made_by ON forq.apps USING btree (made_by, once, number);
CREATE INDEX apps_name ON forq.apps USING btree (app);
CREATE INDEX apps_once ON forq.apps USING btree (once, number);
CREATE INDEX dedup_expires ON forq.dedup USING btree (expires_at);
CREATE INDEX events_message ON forq.events USING btree (message_id, id);
CREATE INDEX history_message ON forq.history USING btree (message_id, id);
CREATE INDEX history_queue ON forq.history USING btree (queue, id);
CREATE INDEX messages_claim ON forq.messages USING btree (queue, priority DESC, "position", seq) WHERE (status = 0);
CREATE INDEX messages_delayed ON forq.messages USING btree (queue, seq) WHERE (status = 3);
CREATE INDEX messages_due ON forq.messages USING btree (due_at, seq) WHERE (due_at IS NOT NULL);
CREATE INDEX messages_failed ON forq.messages USING btree (is_dlq, seq) WHERE (status = 2);
CREATE INDEX messages_group ON forq.messages USING btree (queue, group_id, status, priority DESC, "position", seq) WHERE (group_id IS NOT NULL);
CREATE INDEX messages_held ON forq.messages USING btree (queue, seq) WHERE (status = 4);
CREATE UNIQUE INDEX messages_id ON forq.messages USING btree (id);
CREATE INDEX messages_in_flight ON forq.messages USING btree (queue, seq) WHERE (status = 1);
CREATE UNIQUE INDEX messages_key ON forq.messages USING btree (queue, kind, key) WHERE (key IS NOT NULL);
CREATE INDEX messages_queue ON forq.messages USING btree (queue, seq);
CREATE INDEX moved_pages_id ON forq.moved_pages USING btree (queue, first_id);
CREATE INDEX moved_pages_last ON forq.moved_pages USING btree (queue, last_seq);
CREATE UNIQUE INDEX moved_pages_page ON forq.moved_pages USING btree (queue, consumer, number, page);
CREATE INDEX rate_buckets_full ON forq.rate_buckets USING btree (full_ms);
CREATE INDEX rate_buckets_wake ON forq.rate_buckets USING btree (wake_at, queue, group_id) WHERE (wake_at IS NOT NULL);
CREATE INDEX schedules_due ON forq.schedules USING btree (due_at, name) WHERE (due_at IS NOT NULL);
CREATE INDEX schedules_made_by ON forq.schedules USING btree (made_by, due_at, name);
CREATE INDEX sent_by_queue ON forq.sent USING btree (queue, id);
CREATE UNIQUE INDEX staged_parts_order ON forq.staged_parts USING btree (stage_id, page, part);
CREATE INDEX stages_expire ON forq.stages USING btree (expires_at, id) WHERE (stage IS NOT NULL);
CREATE INDEX stages_made_by ON forq.stages USING btree (made_by, id) WHERE ((stage IS NOT NULL) AND (messages = 0));
CREATE UNIQUE INDEX stages_name ON forq.stages USING btree (queue, stage) WHERE (stage IS NOT NULL);
CREATE INDEX stages_on_the_way ON forq.stages USING btree (queue) WHERE (published = 1);
CREATE INDEX stages_work ON forq.stages USING btree (published DESC, turn) WHERE (turn IS NOT NULL);
CREATE UNIQUE INDEX tokens_digest ON forq.tokens USING btree (digest);
GRANT USAGE ON SCHEMA forq TO PUBLIC;
REVOKE ALL ON FUNCTION forq.send(queue text, content text, process_after bigint, delay_ms bigint, priority bigint, ttl_ms bigint, attributes jsonb, deduplication_id text, deduplication_window_ms bigint, "group" text, max_attempts bigint, dead_letter_queue text) FROM PUBLIC;
REVOKE ALL ON FUNCTION forq.tell_of_sent(queue text) FROM PUBLIC;
