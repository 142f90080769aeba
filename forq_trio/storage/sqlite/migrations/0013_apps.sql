-- The last version that each app published. An app belongs to the queues that it writes: there may be several of one
-- name, for different queues.
--
-- number    grows with every publication
-- once      1 for a name that is used for one job only, and forgotten before the others
-- made_by   the name of the access token that published it last, '' for the server's secret, '?' where it is not known
-- queues    JSON list of the queues that it wrote; of what an earlier version stored, the glob of its namespace instead
CREATE TABLE apps (
    number       INTEGER PRIMARY KEY,
    app          TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    once         INTEGER NOT NULL,
    made_by      TEXT    NOT NULL,
    queues       TEXT    NOT NULL
);

INSERT INTO apps
SELECT number, substr(app, instr(app, ' ') + 1), version, published_at, once, '?',
       json_array(CASE instr(app, ' ') WHEN 0 THEN '*' ELSE substr(app, 1, instr(app, ' ') - 1) END)
FROM publications;

DROP TABLE publications;

CREATE INDEX apps_name ON apps (app);

-- Those of each kind that published longest ago are forgotten first.
CREATE INDEX apps_once ON apps (once);
CREATE INDEX apps_made_by ON apps (made_by, once);

-- made_by: as of apps. An empty stage is the first to go when its key has used up its share.
ALTER TABLE stages ADD COLUMN made_by TEXT NOT NULL DEFAULT '?';
CREATE INDEX stages_made_by ON stages (made_by, id) WHERE stage IS NOT NULL AND messages = 0;
