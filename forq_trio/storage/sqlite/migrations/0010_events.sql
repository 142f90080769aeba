-- Lifecycle events, in the order of commits; empty until they are turned on. The newest row is never removed.
--
-- kind         see KINDS in storage/lifecycle.py
-- queue        where the message was; target: the queue that it went to, NULL where it stayed
-- duration_ms  how long it could have been claimed, or how long its claim lasted
-- bytes        of content and attributes
-- total        the bytes of all events before this one, so that the size of any range is a subtraction
--
-- No column refuses a value: what a damaged message has must not fail the batch that settles it.
CREATE TABLE events (
    id          INTEGER PRIMARY KEY,
    at          INTEGER,
    kind        INTEGER,
    queue       TEXT,
    seq         INTEGER,
    message_id  TEXT,
    attempt     INTEGER,
    reason      TEXT,
    target      TEXT,
    received_at INTEGER,
    duration_ms INTEGER,
    bytes       INTEGER,
    total       INTEGER
);

-- What happened to one message, also when it has gone. Ids grow, so it is written at its end.
CREATE INDEX events_message ON events (message_id);
