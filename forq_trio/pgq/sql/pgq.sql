-- Tables of pgq's layout. {table} and the like are quoted names.

-- condition: claimable
-- What a consumer takes: not finished, not locked, and what it asks for. A parameter that is NULL asks for nothing.
(processed_at IS NULL AND (locked_until IS NULL OR locked_until < CURRENT_TIMESTAMP)
    AND (%(attempts)s::int IS NULL OR consumed_count < %(attempts)s::int)
    AND (%(history)s::interval IS NULL OR created_at >= CURRENT_TIMESTAMP - %(history)s::interval)
    AND (%(equal)s::jsonb IS NULL OR metadata @> %(equal)s::jsonb)
    AND (%(keys)s::text[] IS NULL OR NOT EXISTS (
        SELECT FROM unnest(%(keys)s::text[], %(values)s::text[], %(absent)s::bool[]) AS other (key, value, absent)
        WHERE NOT coalesce(metadata ->> other.key <> other.value, other.absent)
    )));

-- columns: claim_order
-- In this order: what is due by its time, then by deliveries and age.
scheduled_for ASC NULLS LAST, consumed_count, created_at;

-- columns: mine
-- The deliveries of receipts. The time and number of a claim say whose it is; extending the lock changes neither.
unnest(%(ids)s::uuid[], %(created)s::timestamptz[], %(started)s::timestamptz[], %(counts)s::int[])
    WITH ORDINALITY AS mine (id, created_at, started_at, consumed_count, place);

-- condition: still_mine
-- Nobody has claimed, finished or given back the message since.
message.id = mine.id AND message.created_at = mine.created_at AND message.started_at = mine.started_at
    AND message.consumed_count = mine.consumed_count
    AND message.locked_until IS NOT NULL AND message.processed_at IS NULL;

-- columns: state
-- The state of a message, in one word.
CASE
    WHEN processed_at IS NOT NULL AND error_detail IS NULL THEN 'ok'
    WHEN processed_at IS NOT NULL THEN 'failed'
    WHEN locked_until > CURRENT_TIMESTAMP THEN 'in process'
    WHEN consumed_count >= %(attempts)s::int THEN 'exhausted'
    WHEN scheduled_for >= CURRENT_TIMESTAMP THEN 'scheduled'
    ELSE 'waiting'
END AS state;

-- columns: shown
-- What is shown of a message that is not finished. One that is too large is not read.
id::text, CASE WHEN size <= %(bytes)s THEN payload::text END,
CASE WHEN size <= %(bytes)s AND (size <= %(metadata_bytes)s OR octet_length(metadata::text) <= %(metadata_bytes)s)
    THEN metadata::text END,
consumed_count, extract(epoch FROM created_at)::float8, extract(epoch FROM scheduled_for)::float8,
extract(epoch FROM started_at)::float8, extract(epoch FROM locked_until)::float8, reason, state, size;

-- columns: measured
-- What `shown` reads. A table may have columns of other names, which are not read.
id, payload, metadata, consumed_count, created_at, scheduled_for, started_at, locked_until,
octet_length(concat(payload, metadata)) AS size, left(error_detail, %(characters)s) AS reason;

-- name: create_table
-- A queue: the columns that pgq's programs read and write.
CREATE TABLE IF NOT EXISTS {table} (
    id             UUID        PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at     TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
    started_at     TIMESTAMPTZ,
    locked_until   TIMESTAMPTZ,
    scheduled_for  TIMESTAMPTZ,
    processed_at   TIMESTAMPTZ,
    consumed_count INTEGER     NOT NULL DEFAULT 0,
    error_detail   TEXT,
    payload        JSONB       NOT NULL,
    metadata       JSONB       NOT NULL
);

-- name: create_created_at_index
-- Of pgq: the history by age.
CREATE INDEX IF NOT EXISTS {created_at_idx} ON {table} (created_at);

-- name: create_processed_at_null_index
-- Of pgq: what is not finished.
CREATE INDEX IF NOT EXISTS {processed_at_null_idx} ON {table} (processed_at) WHERE processed_at IS NULL;

-- name: create_scheduled_for_index
-- Of pgq: what falls due next.
CREATE INDEX IF NOT EXISTS {scheduled_for_idx} ON {table} (scheduled_for ASC NULLS LAST) WHERE processed_at IS NULL;

-- name: create_metadata_index
-- Of pgq: what has certain metadata.
CREATE INDEX IF NOT EXISTS {metadata_idx} ON {table} USING GIN (metadata) WHERE processed_at IS NULL;

-- name: create_forq_order_index
-- Ours: the order of claims, so that a claim takes as long with a million waiting messages as with one.
CREATE INDEX IF NOT EXISTS {forq_order_idx} ON {table} (scheduled_for ASC NULLS LAST, consumed_count, created_at)
WHERE processed_at IS NULL;

-- name: may_create_function
-- Whether the trigger's function is missing, or ours to replace: it may be somebody else's, who made the first table.
SELECT NOT EXISTS (
    SELECT FROM pg_proc WHERE oid = to_regproc(%(trigger)s)
        AND NOT (pg_has_role(proowner, 'USAGE') AND pronamespace = to_regnamespace(quote_ident(current_schema())))
);

-- name: create_function
-- Ours: tells consumers of new messages, once a statement, when its transaction commits; only while one waits (await_messages).
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    key CONSTANT int := 64 + (hashtext(TG_TABLE_NAME::text) & 63);
BEGIN
    IF pg_try_advisory_lock(1718579825, key) AND pg_advisory_unlock(1718579825, key) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (  -- by itself: it costs much more, and who tries the lock at the same time fails, too
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = 1718579825 AND objid = key::oid AND objsubid = 2 AND mode = 'ShareLock'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    THEN
        PERFORM pg_notify('forq_pgq', TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END
$$;

-- name: await_messages
-- Have the function tell of this table, and of those that share its lock; false where somebody has the lock alone.
SELECT pg_try_advisory_lock_shared(1718579825, 64 + (hashtext(%(table)s::text) & 63));

-- name: stop_awaiting_messages
-- Nobody waits for messages of this table.
SELECT pg_advisory_unlock_shared(1718579825, 64 + (hashtext(%(table)s::text) & 63));

-- name: create_trigger
-- Ours: see the function.
CREATE TRIGGER {trigger} AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}();

-- name: has_trigger
-- Whether the table has the trigger.
SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(%(quoted)s) AND tgname = %(trigger)s);

-- name: has_old_function
-- Whether the table's trigger runs a function of an earlier version, which does not ask whether somebody waits.
SELECT EXISTS (
    SELECT FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
    WHERE tgrelid = to_regclass(%(quoted)s) AND tgname = %(trigger)s
        AND prosrc LIKE '%%pg_notify%%' AND prosrc NOT LIKE '%%pg_try_advisory_lock(1718579825, key)%%'
);

-- name: drop_table
-- The queue with its messages and indexes.
DROP TABLE IF EXISTS {table};

-- name: find_columns
-- The columns of a table.
SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%(quoted)s) AND attnum > 0 AND NOT attisdropped;

-- name: lacks_rights
-- What a role needs and may not do with a table.
SELECT need FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS need
WHERE NOT has_table_privilege(to_regclass(%(quoted)s), need);

-- name: find_indexes
-- The columns with which the indexes of a table begin.
SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
WHERE indrelid = to_regclass(%(quoted)s) AND indisvalid;

-- name: lock_creation
-- One creation of a table at a time: two at once would fail.
SELECT pg_advisory_xact_lock(hashtext('forq_pgq'));

-- name: publish
-- Store messages, and return their ids in the order of the messages, which they keep by their times.
INSERT INTO {table} (created_at, scheduled_for, payload, metadata)
SELECT clock_timestamp() + place * INTERVAL '1 microsecond', coalesce(scheduled_for, CURRENT_TIMESTAMP + delay), payload::jsonb, metadata::jsonb
FROM unnest(%(scheduled)s::timestamptz[], %(delays)s::interval[], %(payloads)s::text[], %(metadata)s::text[])
    WITH ORDINALITY AS new (scheduled_for, delay, payload, metadata, place)
ORDER BY place
RETURNING id;

-- name: claim
-- Lock the next messages, up to a number and so many bytes; too large ones, and too large metadata, are not read. Two walks: what is for later costs nothing. walked: from where on the first one looks, NULL for the beginning.
WITH RECURSIVE due AS MATERIALIZED (
    SELECT id, created_at, scheduled_for, consumed_count, payload, metadata FROM {table}
    WHERE $claimable AND scheduled_for < CURRENT_TIMESTAMP
        AND scheduled_for >= coalesce(%(walked)s::timestamptz, '-infinity')
    ORDER BY $claim_order LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), at_once AS MATERIALIZED (
    SELECT * FROM (
        SELECT id, created_at, scheduled_for, consumed_count, payload, metadata FROM {table}
        WHERE $claimable AND scheduled_for IS NULL
        ORDER BY $claim_order LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS walk LIMIT %(limit)s - (SELECT count(*) FROM due)
), numbered AS MATERIALIZED (
    SELECT id, created_at, scheduled_for, payload, metadata, row_number() OVER () AS number
    FROM (SELECT * FROM due UNION ALL SELECT * FROM at_once) AS found
), sized (number, before, size) AS (
    SELECT number, 0, octet_length(concat(payload, metadata)) FROM numbered WHERE number = 1
    UNION ALL
    SELECT numbered.number, before + size, octet_length(concat(payload, metadata))
    FROM sized JOIN numbered ON numbered.number = sized.number + 1 WHERE before + size < %(bytes)s
), chosen AS MATERIALIZED (
    SELECT id, created_at, coalesce(scheduled_for, CURRENT_TIMESTAMP) AS due_at, number, size FROM numbered JOIN sized USING (number)
), taken AS (
    UPDATE {table} AS message
    SET locked_until = clock_timestamp() + %(lease)s, started_at = clock_timestamp(),
        consumed_count = message.consumed_count + 1
    WHERE message.id = ANY (ARRAY(SELECT id FROM chosen))
        AND message.created_at = ANY (ARRAY(SELECT created_at FROM chosen))
    RETURNING id, created_at, started_at, locked_until, consumed_count, payload, metadata
)
SELECT id::text, taken.created_at::text, started_at::text, consumed_count,
    extract(epoch FROM taken.created_at)::float8, extract(epoch FROM started_at)::float8,
    extract(epoch FROM locked_until)::float8, CASE WHEN size <= %(row_bytes)s THEN payload::text END,
    CASE WHEN size <= %(row_bytes)s AND NOT has_large_metadata THEN metadata::text END, size, has_large_metadata,
    due_at::text
FROM taken JOIN chosen USING (id), LATERAL (
    SELECT size > %(metadata_bytes)s AND coalesce(octet_length(metadata::text) > %(metadata_bytes)s, false)
) AS measured (has_large_metadata)
ORDER BY number;

-- name: next_ids
-- The next messages, unread.
SELECT id, created_at FROM {table} WHERE $claimable AND (scheduled_for IS NULL OR scheduled_for < CURRENT_TIMESTAMP)
ORDER BY $claim_order LIMIT %(limit)s;

-- name: measure
-- Read a message as a claim does.
SELECT octet_length(concat(payload, metadata)) FROM {table} WHERE id = %(id)s AND created_at = %(created_at)s;

-- name: discard_unread
-- Finish a message that nobody can read.
UPDATE {table} SET locked_until = NULL, processed_at = CURRENT_TIMESTAMP, error_detail = %(reason)s
WHERE id = %(id)s AND created_at = %(created_at)s AND processed_at IS NULL
    AND (locked_until IS NULL OR locked_until < CURRENT_TIMESTAMP)
RETURNING id::text;

-- name: next_due
-- In how many seconds the next message falls due.
SELECT extract(epoch FROM scheduled_for - clock_timestamp())::float8 FROM {table}
WHERE processed_at IS NULL AND scheduled_for >= CURRENT_TIMESTAMP AND scheduled_for < 'infinity'
ORDER BY scheduled_for ASC NULLS LAST LIMIT 1;

-- name: finish
-- Processed for good: acknowledged (the reason of an earlier failure is forgotten), or discarded with a reason.
UPDATE {table} AS message
SET locked_until = NULL, processed_at = CURRENT_TIMESTAMP, error_detail = %(reason)s
FROM $mine WHERE $still_mine
RETURNING mine.place;

-- name: ended_so
-- Which of these deliveries have ended so: after an answer that was lost.
SELECT mine.place FROM {table} AS message JOIN $mine USING (id, created_at, started_at, consumed_count)
WHERE message.processed_at IS NOT NULL AND message.error_detail IS NOT DISTINCT FROM %(reason)s::text;

-- name: return_claimed
-- Claimable again, at once or after a delay. uncounted: how many deliveries do not count.
UPDATE {table} AS message
SET locked_until = NULL, consumed_count = message.consumed_count - %(uncounted)s,
    error_detail = coalesce(%(reason)s::text, message.error_detail),
    scheduled_for = coalesce(clock_timestamp() + %(delay)s::interval, message.scheduled_for)
FROM $mine WHERE $still_mine
RETURNING mine.place;

-- name: extend
-- The lock ends so long from now.
UPDATE {table} AS message SET locked_until = clock_timestamp() + %(lease)s
FROM $mine WHERE $still_mine
RETURNING mine.place, extract(epoch FROM message.locked_until)::float8;

-- name: listen
-- To what the trigger tells.
LISTEN forq_pgq;

-- name: set_up
-- Bounds of every statement of a connection, or of a transaction.
SELECT set_config('statement_timeout', %(statement)s, %(local)s), set_config('lock_timeout', %(lock)s, %(local)s),
    set_config('datestyle', 'ISO', %(local)s);

-- name: is_partitioned
-- Whether a table has partitions: NULL without such a table.
SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(%(quoted)s);

-- name: set_one_plan
-- Up to the end of the transaction: prepared statements have one plan for all parameters, along indexes, however few rows there are.
SELECT set_config(name, value, true)
FROM (VALUES ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
    ('enable_sort', 'off')) AS setting (name, value);

-- name: forget_plans
-- A plan for a few rows is not the one for many.
DISCARD PLANS;

-- name: server_process
-- The process of the server that answers.
SELECT pg_backend_pid();

-- name: counts
-- How many messages are in each state.
SELECT state, count(*) FROM (SELECT $state FROM {table}) AS message GROUP BY state;

-- name: live_counts
-- How many messages that are not finished are in each state, of so many at the most.
SELECT state, count(*) FROM (SELECT $state FROM {table} WHERE processed_at IS NULL LIMIT %(limit)s) AS message GROUP BY state;

-- name: peek
-- The messages that the next claims get, in their order, up to a number and to so many bytes; at least one.
SELECT $shown FROM (
    SELECT *, sum(size + coalesce(octet_length(reason), 0)) OVER (ROWS UNBOUNDED PRECEDING)
        - size - coalesce(octet_length(reason), 0) AS before
    FROM (
        (SELECT $measured, $state FROM {table} WHERE $claimable AND scheduled_for < CURRENT_TIMESTAMP
            ORDER BY $claim_order LIMIT %(limit)s)
        UNION ALL
        (SELECT $measured, $state FROM {table} WHERE $claimable AND scheduled_for IS NULL
            ORDER BY $claim_order LIMIT %(limit)s)
    ) AS found LIMIT %(limit)s
) AS summed WHERE before < %(bytes)s;

-- name: look
-- A message that is not finished.
SELECT $shown FROM (
    SELECT $measured, $state FROM {table} WHERE id = %(id)s::uuid AND processed_at IS NULL
) AS message;

-- name: find
-- The newest messages in a state.
SELECT * FROM (
    SELECT id, created_at, started_at, processed_at, scheduled_for, locked_until, consumed_count, error_detail,
        left(payload::text, %(characters)s), metadata::text, $state
    FROM {table}
) AS message WHERE state = %(state)s ORDER BY created_at DESC LIMIT %(limit)s;

-- name: slowest
-- The messages that took longest, of those that ended since.
SELECT id, created_at, started_at, processed_at, scheduled_for, locked_until, consumed_count, error_detail,
    left(payload::text, %(characters)s), metadata::text, $state
FROM {table} WHERE processed_at >= %(since)s AND started_at IS NOT NULL
ORDER BY processed_at - started_at DESC LIMIT %(limit)s;

-- name: purge
-- Delete messages that ended before, up to a number.
DELETE FROM {table} WHERE id = ANY (ARRAY(
    SELECT id FROM {table} WHERE processed_at < CURRENT_TIMESTAMP - %(age)s::interval LIMIT %(limit)s
));

-- name: requeue
-- Begin again with messages that failed or are exhausted, up to a number: their deliveries count from 0.
UPDATE {table} SET processed_at = NULL, locked_until = NULL, consumed_count = 0
WHERE id = ANY (ARRAY(
    SELECT id FROM (SELECT id, locked_until, created_at, $state FROM {table}) AS message
    WHERE state IN ('failed', 'exhausted') AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
    ORDER BY created_at LIMIT %(limit)s
)) AND (locked_until IS NULL OR locked_until < CURRENT_TIMESTAMP);
