-- Server processes that make themselves known. Not logged: a crash of the database may forget them.
CREATE UNLOGGED TABLE processes (
    id       text PRIMARY KEY,
    name     text NOT NULL,
    address  text,
    heard_at bigint NOT NULL,
    state    text NOT NULL CHECK (octet_length(state) <= 4096)
);
