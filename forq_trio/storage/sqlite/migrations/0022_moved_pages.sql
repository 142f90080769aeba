-- Pages whose messages are not in the table of messages: until they are settled or put back, their page is the only
-- copy of them. Those of a queue follow each other: no two overlap, by sequence or by id.
--
-- receipt       of all messages of the page, as in consumer_pages
-- leased_at     when they were leased, epoch ms; lease_until: as they have it
-- first_seq     the lowest sequence of them, first_id the lowest id
-- messages      how many they are, and their bytes
-- rows          JSON list of what their lines do not say (relational/operations/moved_pages.py)
CREATE TABLE moved_pages (
    queue       TEXT    NOT NULL,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    first_id    TEXT    NOT NULL,
    last_id     TEXT    NOT NULL,
    consumer    TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    page        INTEGER NOT NULL,
    receipt     INTEGER NOT NULL,
    leased_at   INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    messages    INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    rows        TEXT    NOT NULL,
    PRIMARY KEY (queue, first_seq)
);
CREATE UNIQUE INDEX moved_pages_page ON moved_pages (queue, consumer, number, page);
CREATE INDEX moved_pages_last ON moved_pages (queue, last_seq);
CREATE INDEX moved_pages_id ON moved_pages (queue, first_id);
