-- Pages whose messages are not in the table of messages (the SQLite engine's migration explains them).
CREATE TABLE moved_pages (
    queue       text COLLATE "C" NOT NULL,
    first_seq   bigint NOT NULL,
    last_seq    bigint NOT NULL,
    first_id    text COLLATE "C" NOT NULL,
    last_id     text COLLATE "C" NOT NULL,
    consumer    text COLLATE "C" NOT NULL,
    number      bigint NOT NULL,
    page        bigint NOT NULL,
    receipt     bigint NOT NULL,
    leased_at   bigint NOT NULL,
    lease_until bigint NOT NULL,
    messages    bigint NOT NULL,
    bytes       bigint NOT NULL,
    rows        text NOT NULL,
    PRIMARY KEY (queue, first_seq)
);
CREATE UNIQUE INDEX moved_pages_page ON moved_pages (queue, consumer, number, page);
CREATE INDEX moved_pages_last ON moved_pages (queue, last_seq);
CREATE INDEX moved_pages_id ON moved_pages (queue, first_id);
-- A process that does not know them would lose them.
ALTER TABLE batches RENAME COLUMN shipped TO changed;
