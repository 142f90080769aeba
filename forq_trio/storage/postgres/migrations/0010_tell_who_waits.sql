-- An application's transaction notifies only while a server waits for what it sends (model/wake_ups.py): PostgreSQL commits
-- transactions that notify one after the other. The lock is that of the statement `await_sent`. It is tried for a moment,
-- which fails for others in that moment, too; so what is there is looked at, but only then: that costs much more.
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

CREATE OR REPLACE FUNCTION send(
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
