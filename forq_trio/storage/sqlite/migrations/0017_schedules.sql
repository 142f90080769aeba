-- Schedules, and what became of their runs.
--
-- definition   JSON of what was saved: queue, content and options, timing
-- made_by      the access token that made it, NULL for the server's secret; paused_by: the same
-- paused_at    NULL for one that is not paused
-- next_run     the nominal time of the next run; NULL while it is paused, and when there is none any more
-- due_at       when that is to be sent: later by its jitter
-- last_nominal the nominal time of the last run; catching_up: missed runs up to this one are sent one after the other
-- last_sequence   of the last message that was sent
-- runs         how many runs were noted so far
CREATE TABLE schedules (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    made_at       INTEGER NOT NULL,
    made_by       TEXT,
    updated_at    INTEGER NOT NULL,
    paused_at     INTEGER,
    paused_by     TEXT,
    next_run      INTEGER,
    due_at        INTEGER,
    last_nominal  INTEGER,
    catching_up   INTEGER,
    last_sequence INTEGER,
    runs          INTEGER NOT NULL DEFAULT 0,
    definition    TEXT    NOT NULL
);

-- What is due next.
CREATE INDEX schedules_due ON schedules (due_at, name) WHERE due_at IS NOT NULL;

-- How many each token has made.
CREATE INDEX schedules_made_by ON schedules (made_by);

-- The latest runs of each schedule, numbered from 1. run: JSON
CREATE TABLE schedule_runs (
    schedule_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    run         TEXT    NOT NULL,
    PRIMARY KEY (schedule_id, number)
) WITHOUT ROWID;
