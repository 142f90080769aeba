-- Statements of `forq move` that only PostgreSQL has.

-- name: session
-- A copy may take long. Rows come in the order of an index, which needs no space to sort them.
SELECT set_config(name, value, false) FROM (VALUES
    ('search_path', 'forq'), ('statement_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
    ('lock_timeout', '3s'), ('enable_sort', 'off'), ('enable_seqscan', 'off'), ('jit', 'off')
) AS settings (name, value);

-- name: hold_gate
-- Let no process run a batch as long as this transaction is open.
LOCK TABLE gate IN SHARE UPDATE EXCLUSIVE MODE;

-- name: alive
-- The processes that use the database: those that reported lately.
SELECT name FROM processes WHERE heard_at > extract(epoch FROM clock_timestamp()) * 1000 - %s ORDER BY name LIMIT 3;

-- name: columns
-- The stored columns of all tables, with their types, and whether they number rows.
SELECT relname, attname, atttypid::regtype::text, attidentity <> ''
FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'forq'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    AND attgenerated = '' AND attidentity <> 'a'
ORDER BY relname, attnum;

-- name: count_sent
-- How many messages of applications wait for a batch, and how many were set aside.
SELECT (SELECT count(*) FROM sent), (SELECT count(*) FROM sent_set_aside);

-- name: bound
-- Some queues that are bound to tables.
SELECT queue FROM queues WHERE settings::json ->> 'table' IS NOT NULL ORDER BY queue LIMIT %s;

-- name: identify_mark
-- The mark may be in a publication for all tables, too.
ALTER TABLE moving REPLICA IDENTITY FULL;

-- name: copy
-- Rows.
COPY {table} ({columns}) FROM STDIN;

-- name: number_on
-- The next number of a column is above its highest.
SELECT setval(pg_get_serial_sequence(%s, %s), greatest(max({column}), 1), max({column}) IS NOT NULL) FROM {table};

-- name: read_anew
-- Store a batch whose changes nobody can read, so that processes with the tables in memory read them again.
INSERT INTO batches_2 (version, made_by, changed) SELECT coalesce(max(version), 0) + 1, 'move', '' FROM batches_2;
