-- Consumers of pipelines: few, and all in memory, too.
--
-- consumer   JSON: its numbers, and what its leases have (model/consumers.py)
CREATE TABLE consumers (
    queue    TEXT NOT NULL,
    name     TEXT NOT NULL,
    consumer TEXT NOT NULL,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

-- One row: the highest generation of all consumers that were forgotten, 0 for none.
CREATE TABLE consumers_forgotten (
    generation INTEGER NOT NULL
);

INSERT INTO consumers_forgotten VALUES (0);

-- Pages of leases: copies of messages, so that reading them never touches the messages themselves.
--
-- receipt     of all messages of the page, while they are this lease's
-- sequences   JSON list of these messages
-- body        a line of JSON for each
CREATE TABLE consumer_pages (
    queue     TEXT    NOT NULL,
    consumer  TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    page      INTEGER NOT NULL,
    receipt   INTEGER NOT NULL,
    sequences TEXT    NOT NULL,
    body      BLOB    NOT NULL,
    PRIMARY KEY (queue, consumer, number, page)
);
