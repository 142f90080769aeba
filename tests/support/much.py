"""A PostgreSQL database with many rows of everything that somebody can make up, none of which is due."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from support.actors import T0
from support.postgres import Postgres, name_of

LATER = T0 + 10**11
FILL = f"""
SET search_path = forq;
CREATE TEMP TABLE many AS SELECT generate_series(1, {{count}})::bigint AS n;
CREATE TEMP TABLE places AS
    SELECT n, 'a' || n AS queue, 0 AS status, 'g' AS group_id, 100 AS priority, NULL AS kind FROM many
    UNION ALL SELECT n, 'z' || n, 0, NULL, 100, NULL FROM many
    UNION ALL SELECT n, 'a' || n % 50 || '-dlq', 0, NULL, 100, NULL FROM many
    UNION ALL SELECT n, queue, status, CASE WHEN status <> 3 THEN 'h' || n END, 0, NULL
        FROM many, unnest(ARRAY[{{queues}}]) AS queue, unnest(ARRAY[0, 1, 3, 4]) AS status
    UNION ALL SELECT n, queue, 3, NULL, 0, kind
        FROM many, unnest(ARRAY[{{queues}}]) AS queue, unnest(ARRAY['j' || n % 100, 'j']) AS kind;
INSERT INTO messages (seq, id, queue, is_dlq, status, process_after, received_at, updated_at, expires_after, priority,
                      position, lease_until, receipt, attempts, bytes, group_id, kind, key, attributes, content)
SELECT row_number() OVER (), 'made-up-' || row_number() OVER (), queue, (queue LIKE '%-dlq')::integer, status,
       CASE WHEN status = 3 THEN {LATER} ELSE 1 END, 1, 1, {LATER}, priority, row_number() OVER (),
       CASE WHEN status = 1 THEN {LATER} END, CASE WHEN status = 1 THEN 7 END, CASE WHEN status = 1 THEN 1 ELSE 0 END,
       1, group_id, kind, CASE WHEN kind IS NOT NULL THEN 'made-up-' || n END, '{{{{"c": "d"}}}}', 'x'
FROM places;
INSERT INTO message_keys (message, own_key, mode, due, revision, offers, first_offer_at, last_offer_at)
SELECT seq, key, 'createIfAbsent', {LATER}, 1, 1, 1, 1 FROM messages WHERE key IS NOT NULL;
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, grouped, last_seq, updated_at,
                          made_by)
SELECT queue, count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1), 0,
       count(*) FILTER (WHERE status = 3), count(*) FILTER (WHERE status = 4), sum(bytes), 1, max(seq), 1,
       't' || max(seq) % 1000
FROM messages GROUP BY queue;
INSERT INTO queues SELECT 'a' || n, '{{{{"maxAttempts": 3}}}}', 1 FROM many;
INSERT INTO dedup SELECT queue, 'made-up-' || n, 'x', n, {LATER}
FROM many, unnest(ARRAY[{{queues}}, 'a' || n]) AS queue;
INSERT INTO tokens SELECT 't' || n, lpad(n::text, 64, 'e'), '["produce"]', '*', 1, NULL, NULL FROM many WHERE n <= 900;
INSERT INTO ui_sessions SELECT lpad(n::text, 64, 'f'), NULL, 'k', 1, {LATER}, 1, 'c', 'a' FROM many WHERE n <= 900;
INSERT INTO stages (queue, stage, pages, last_page, messages, bytes, stored_bytes, expires_at, made_by)
SELECT queue, 'made-up-' || n, 1, 0, n % 2, 1, 1, {LATER}, made_by
FROM many, unnest(ARRAY[{{queues}}, 'a' || n]) AS queue, unnest(ARRAY['k', 't' || n]) AS made_by WHERE n <= 1000
ON CONFLICT DO NOTHING;
INSERT INTO staged_parts (stage_id, page, part, messages, bytes, body) SELECT id, 0, 0, messages, 1, '' FROM stages;
INSERT INTO history (id, seq, message_id, queue, outcome, finished_at, attempts, priority, received_at, bytes, number,
                     total, content)
SELECT row_number() OVER (), 1, 'made-up-' || n, queue, 'acked', {T0}, 1, 100, 1, 1,
       row_number() OVER (PARTITION BY queue), row_number() OVER (PARTITION BY queue), 'x'
FROM many, unnest(ARRAY[{{queues}}, 'a' || n, 'z' || n]) AS queue;
UPDATE history_ends SET last = (SELECT max(id) FROM history);
INSERT INTO events (id, at, kind, queue, seq, message_id, bytes, total, received_at)
SELECT n, {T0}, 1, 'a' || n, n, 'made-up-' || n, 1, n, 1 FROM many;
INSERT INTO consumer_numbers (consumer, number, acknowledged) SELECT 'made-up-' || n, n, n FROM many;
INSERT INTO apps (app, version, published_at, once, made_by, queues)
SELECT 'made-up-' || n, 1, {LATER}, n % 2, made_by, '[]' FROM many, unnest(ARRAY['k', 't' || n]) AS made_by;
INSERT INTO rate_buckets SELECT queue, 'made-up-' || n, 2, 1000, {LATER}, {LATER}, CASE WHEN n % 2 = 0 THEN {LATER} END
FROM many, unnest(ARRAY[{{queues}}, 'a' || n]) AS queue;
INSERT INTO schedules (name, made_at, made_by, updated_at, next_run, due_at, definition)
SELECT 'made-up-' || n, 1, 't' || n, 1, {LATER}, {LATER}, '{{{{"queue": "q", "content": "x", "every": "1h"}}}}'
FROM many;
INSERT INTO schedule_runs SELECT id, 1, '{{{{}}}}' FROM schedules;
INSERT INTO outboxes SELECT 'made-up-' || n, 1, 't' || n % 5, 1 FROM many;
INSERT INTO sent_set_aside SELECT n, 'a' || n, 'x', 'NotFound', 'x' FROM many;
INSERT INTO batches_2 SELECT n, 'made-up', '' FROM generate_series(1, least({{count}}, 1000)) n;
"""


@contextmanager
def much_of_everything(postgres: Postgres, count: int, queues: str) -> Iterator[str]:
    """The name of such a database, to be copied. queues: SQL for the names of queues that have much each."""
    url = postgres.new_database()
    PostgresEngine(url, EngineSettings(history=True, events=True), "normal").close()
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in FILL.format(count=count, queues=queues).split(";\n"):
            if statement.strip():
                connection.execute(statement.encode())
        connection.execute("VACUUM ANALYZE")
    yield name_of(url)
    postgres.drop_database(url)
