-- Stages: messages beside a queue, until they are published.
--
-- stage          the client's name for it; NULL once it is published or has ended, so that the name is free again
-- pages          how many it has; last_page: the highest of their numbers, which begin with 0
-- messages, bytes   what of it is not yet in the queue; bytes of contents and attributes
-- stored_bytes   of its parts as they are stored
-- turn          the order in which stages enter their queues or are removed; NULL while it only waits
-- published      1: it enters its queue, 0: it is removed
CREATE TABLE stages (
    id         INTEGER PRIMARY KEY,
    queue      TEXT    NOT NULL,
    stage      TEXT,
    pages      INTEGER NOT NULL,
    last_page  INTEGER NOT NULL,
    messages   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    turn      INTEGER,
    published  INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX stages_name ON stages (queue, stage) WHERE stage IS NOT NULL;

-- Stages whose life ends by itself.
CREATE INDEX stages_expire ON stages (expires_at) WHERE stage IS NOT NULL;

-- What the next batches work on.
CREATE INDEX stages_work ON stages (published DESC, turn) WHERE turn IS NOT NULL;

-- What is on its way to a queue counts against its bounds.
CREATE INDEX stages_on_the_way ON stages (queue) WHERE published = 1;

-- A part of a page: so many messages as enter the queue in one batch. body: MessagePack; last, so that the other columns
-- are read without it.
CREATE TABLE staged_parts (
    stage_id INTEGER NOT NULL,
    page     INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    body     BLOB    NOT NULL
);

CREATE UNIQUE INDEX staged_parts_order ON staged_parts (stage_id, page, part);

-- The last version that each app published. number: grows with every publication. once: 1 for a name that is used for one
-- job only, and forgotten before the others.
CREATE TABLE publications (
    number       INTEGER PRIMARY KEY,
    app          TEXT    NOT NULL UNIQUE,
    version      INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    once         INTEGER NOT NULL
);

-- Those of each kind that published longest ago are forgotten first.
CREATE INDEX publications_once ON publications (once);
