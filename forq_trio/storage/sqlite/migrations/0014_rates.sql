-- The tokens of queues with a rate (storage/engine.py's rule 18).
--
-- group_id   the group whose bucket this is, '' for that of the queue
-- count, period_ms   the rate by which the bucket is filled; of another one the bucket no longer counts
-- full_at    when the bucket is full again, in parts of a millisecond: `count` of them make one (epoch)
-- full_ms    the same in milliseconds, rounded up; from then on the row says nothing
-- wake_at    when somebody who waits for a token may get one (epoch ms), NULL for nobody
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
