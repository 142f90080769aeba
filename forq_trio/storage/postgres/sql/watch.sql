-- What the server reports about itself. It reads no table of messages, so it costs the same however many there are.

-- name: database_figures
-- Connections: all, ours, at most, those whose state is hidden; dead rows of messages, the last vacuum, bytes.
SELECT count(*) FILTER (WHERE backend_type = 'client backend' OR (backend_type IS NULL AND datid IS NOT NULL)),
       count(*) FILTER (WHERE usename = current_user AND datname = current_database()
                        AND application_name = current_setting('application_name')),
       current_setting('max_connections')::bigint,
       count(*) FILTER (WHERE datname = current_database() AND backend_type IS NULL),
       pg_stat_get_dead_tuples('forq.messages'::regclass),
       (extract(epoch FROM greatest(pg_stat_get_last_vacuum_time('forq.messages'::regclass),
                                    pg_stat_get_last_autovacuum_time('forq.messages'::regclass))) * 1000)::bigint,
       pg_database_size(current_database())
FROM pg_stat_activity;

-- name: snapshot_keepers
-- Who keeps dead rows from being removed, the oldest first; a vacuum does not. Idle: since when it cannot have moved on.
SELECT kind, name, pid, state, oldest, coalesce((extract(epoch FROM clock_timestamp() - idle_since) * 1000)::bigint, 0)
FROM (
    SELECT 'session' AS kind, coalesce(application_name, '') AS name, pid, state,
           CASE WHEN age(backend_xmin) > coalesce(age(backend_xid), -1) THEN backend_xmin ELSE backend_xid END AS oldest,
           CASE WHEN state LIKE 'idle in transaction%' THEN state_change END AS idle_since
    FROM pg_stat_activity
    WHERE (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND pid <> pg_backend_pid()
      AND (datid IS NULL OR datname = current_database())
      AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
    UNION ALL
    SELECT 'prepared', gid, NULL, NULL, transaction, prepared FROM pg_prepared_xacts
    WHERE database = current_database()
    UNION ALL
    SELECT 'slot', slot_name, NULL, NULL, xmin, NULL FROM pg_replication_slots WHERE xmin IS NOT NULL
) AS keepers ORDER BY age(oldest) DESC, idle_since, pid, name LIMIT $1;
