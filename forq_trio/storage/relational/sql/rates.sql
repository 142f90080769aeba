-- The tokens of queues with a rate. These statements run only if a queue has or had one.

-- name: find_bucket
-- When the bucket of a queue or group is full again, if it has this rate.
-- rows of: one thing
SELECT full_at FROM rate_buckets WHERE queue = ? AND group_id = ? AND count = ? AND period_ms = ?;

-- name: save_bucket
-- Store when the bucket of a queue or group is full again, after tokens were taken.
INSERT INTO rate_buckets (queue, group_id, count, period_ms, full_at, full_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, group_id) DO UPDATE SET count = excluded.count, period_ms = excluded.period_ms,
    full_at = excluded.full_at, full_ms = excluded.full_ms;

-- name: save_wake
-- Note that somebody waits for the next token of a bucket.
UPDATE rate_buckets SET wake_at = ?3 WHERE queue = ?1 AND group_id = ?2 AND wake_at IS DISTINCT FROM ?3;

-- name: take_wakes
-- The buckets whose next token is there.
UPDATE rate_buckets SET wake_at = NULL WHERE (queue, group_id) IN (
    SELECT queue, group_id FROM rate_buckets WHERE wake_at <= ? ORDER BY wake_at, queue, group_id LIMIT ?)
RETURNING queue, group_id;

-- name: next_wake
-- When the next awaited token comes.
SELECT wake_at FROM rate_buckets WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1;

-- name: expire_buckets
-- Drop buckets that are full again.
DELETE FROM rate_buckets WHERE (queue, group_id) IN (
    SELECT queue, group_id FROM rate_buckets WHERE full_ms <= ? AND wake_at IS NULL ORDER BY full_ms LIMIT ?)
RETURNING 1;

-- name: expire_some_buckets
-- Drop some buckets that are full again, without returning how many.
DELETE FROM rate_buckets WHERE (queue, group_id) IN (
    SELECT queue, group_id FROM rate_buckets WHERE full_ms <= ? AND wake_at IS NULL ORDER BY full_ms LIMIT ?);

-- name: has_buckets
-- Whether there are any buckets.
SELECT EXISTS (SELECT 1 FROM rate_buckets);
