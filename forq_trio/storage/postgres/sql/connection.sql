-- Statements that only PostgreSQL has.

-- name: server_process
-- The process id of the server process that answers.
SELECT pg_backend_pid();

-- name: set_settings
-- Change settings, of the session or only until the transaction ends.
SELECT count(set_config(key, value, $2)) FROM json_each_text($1);

-- name: begin
-- Begin a batch: each statement behind the gate sees what others committed before, whatever the database prefers.
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: forget_plans
-- Have the plans of statements made again.
DISCARD PLANS;

-- name: gate
-- Wait until no other process runs a batch; ends with the transaction. A role without rights could block any other kind of lock.
LOCK TABLE gate IN SHARE UPDATE EXCLUSIVE MODE;

-- name: end_stopped
-- End the connection that holds the gate if its process does not read its answers: no timeout of the database does that.
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation = 'gate'::regclass AND mode = 'ShareUpdateExclusiveLock' AND granted AND wait_event = 'ClientWrite'
  AND query_start < clock_timestamp() - interval '1 s'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: batches_since
-- This batch, and the changes of later ones, of all processes; last a row without version if applications sent messages.
(SELECT version, made_by, CASE WHEN version > $1 THEN changed END FROM batches_2
 WHERE version >= $1 ORDER BY version LIMIT $2)
UNION ALL (SELECT NULL, NULL, NULL FROM sent ORDER BY id LIMIT 1);

-- name: last_batch
-- The version of the last batch, and its maker.
SELECT version, made_by FROM batches_2 ORDER BY version DESC LIMIT 1;

-- name: save_batch
-- Store the changes of this batch.
INSERT INTO batches_2 (version, made_by, changed) VALUES ($1, $2, $3);

-- name: forget_batches
-- Remove old batches: a process that has not read them by now reads all tables again.
DELETE FROM batches_2 WHERE version > $1::bigint - $2 AND version <= $1;

-- name: find_batch
-- Whether a batch of this process was committed, and whether such a batch would be forgotten by now.
SELECT EXISTS (SELECT FROM batches_2 WHERE version = $1 AND made_by = $2),
       (SELECT max(version) FROM batches_2) >= $1 + $3;

-- name: notify
-- Notify the other processes; in a transaction of its own, never in a batch.
SELECT pg_notify('forq', $1);

-- name: commit
-- End the batch, so that others see it.
COMMIT;

-- name: flush
-- Wait until everything committed so far is durable: a commit that waits for the disk, and has something to commit.
SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'forq', '');

-- name: rollback
-- Undo the batch.
ROLLBACK;

-- name: fetch
-- The next rows of the cursor.
FETCH FORWARD 32 FROM unbounded;

-- name: close_cursor
-- Close the cursor: nobody needs its other rows.
CLOSE unbounded;

-- name: savepoint
-- Begin a part of a batch that may be undone alone.
SAVEPOINT part;

-- name: undo_part
-- Undo the latest part.
ROLLBACK TO SAVEPOINT part;

-- name: end_part
-- End the latest part: from now on it cannot be undone alone.
RELEASE SAVEPOINT part;

-- name: begin_reading
-- Begin a snapshot: the next statements see one state.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: identity
-- The identity of the database, which its replicas have, too.
SELECT (SELECT system_identifier FROM pg_control_system()) || ' ' || oid FROM pg_database
WHERE datname = current_database();

-- name: encoding
-- The encoding of the database.
SELECT current_setting('server_encoding');

-- name: clock
-- The time of the server (epoch ms).
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: tables
-- The tables of our schema.
SELECT relname FROM pg_catalog.pg_class
WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'forq') AND relkind = 'r';

-- name: take_time
-- Let a migration take long but wait only shortly, because others wait for what it has locked; ends with the transaction.
SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '1s', true);

-- name: first_migration_gate
-- Wait until no other process makes the tables; it ends with the transaction.
SELECT pg_advisory_xact_lock(1718579825, 2);

-- name: migration_gate
-- The same where there are tables, by a lock that nobody else may take.
LOCK TABLE migrations IN SHARE UPDATE EXCLUSIVE MODE;

-- name: schema
-- Our schema, if it exists.
SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'forq';

-- name: create_schema
-- Create our schema.
CREATE SCHEMA forq;

-- name: create_migrations
-- The record of applied migrations, made with the first of them.
CREATE TABLE migrations (
    version    bigint PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: applied
-- The applied migrations, in order.
SELECT version, name, checksum FROM migrations ORDER BY version;

-- name: record
-- Record a migration as applied.
INSERT INTO migrations (version, name, checksum) VALUES ($1, $2, $3);

-- name: listen
-- Listen for the notices of other processes.
LISTEN forq;

-- name: await_sent
-- Have the function forq.send notify; false if somebody else holds its lock exclusively.
SELECT pg_try_advisory_lock_shared(1718579825, 3);

-- name: stop_awaiting_sent
-- Let the function forq.send stop notifying: nobody waits.
SELECT pg_advisory_unlock_shared(1718579825, 3);

-- name: meet_processes
-- Report this process, and list the others; removes old ones, and silent ones that this one replaces on their host.
WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms),
gone AS (
    DELETE FROM processes WHERE id IN (
        SELECT id FROM processes, clock
        WHERE id <> $1 AND (heard_at < ms - $6 OR (name = $2 AND heard_at < least($4, ms - $5)))
        FOR UPDATE OF processes SKIP LOCKED
    )
    RETURNING id
),
this AS (
    INSERT INTO processes (id, name, address, heard_at, state)
    SELECT $1, $2, host(inet_client_addr()), ms, $3 FROM clock
    ON CONFLICT (id) DO UPDATE SET address = excluded.address, heard_at = excluded.heard_at, state = excluded.state
    RETURNING address, heard_at, state
)
SELECT address, heard_at, state FROM this
UNION ALL
(
    SELECT address, heard_at, state FROM processes
    WHERE id <> $1 AND id NOT IN (SELECT id FROM gone)
    ORDER BY heard_at DESC LIMIT $7
);

-- name: leave_processes
-- Remove this process, which ends.
DELETE FROM processes WHERE id = $1;

-- columns: ready
-- What a claim reads of a message.
seq, id, content, attempts, received_at, priority, first_received_at, attributes, group_id, process_after, position,
bytes, key, kind, max_attempts;

-- name: select_ready_behind
-- The next messages of a queue: these ready ones, those behind a place, lower priorities; as many bytes as a step has.
-- rows of: one thing
SELECT $ready FROM (
    SELECT *, sum(bytes) OVER (ORDER BY priority DESC, position, seq ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
        (SELECT * FROM messages
         WHERE seq = ANY (translate($2, '[]', '{}')::bigint[]) AND queue || '' = $1 AND status + 0 = 0)
        UNION ALL
        (SELECT * FROM messages WHERE queue = $1 AND status = 0 AND priority = $3 AND (position, seq) > ($4, $5)
         ORDER BY position, seq LIMIT $6)
        UNION ALL
        (SELECT * FROM messages WHERE queue = $1 AND status = 0 AND priority < $3
         ORDER BY priority DESC, position, seq LIMIT $6)
        LIMIT $6) AS first
) AS summed WHERE before < :step_bytes ORDER BY priority DESC, position, seq;
