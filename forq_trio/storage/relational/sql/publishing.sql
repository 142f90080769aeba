-- Stages and publications, on the write connection.

-- name: load_staging
-- The totals of all stages, and how many apps have published.
SELECT count(*), coalesce(sum(stored_bytes), 0), count(turn), min(turn) FILTER (WHERE published = 1),
       coalesce(max(turn), 0), (SELECT count(*) FROM apps)
FROM stages;

-- name: load_stages
-- The key that made each stage, whether the stage waits, and the bytes of its parts as they are stored.
SELECT made_by, stage IS NOT NULL, stored_bytes FROM stages;

-- name: count_apps
-- How many apps each key made.
SELECT made_by, count(*) FROM apps GROUP BY made_by;

-- name: find_stage
-- An unpublished stage.
-- rows of: one thing
SELECT id, made_by FROM stages WHERE queue = ? AND stage = ?;

-- name: find_stages
-- Stages that wait to be published, in the order of these queues and names; one that is not there has no pages.
-- rows of: one thing
SELECT stages.id, made_by, coalesce(pages, 0), coalesce(last_page, -1), coalesce(messages, 0), coalesce(bytes, 0)
FROM json_each(?) AS wanted LEFT JOIN stages ON queue = wanted.value ->> 0 AND stage = wanted.value ->> 1;

-- name: begin_stage
-- A new stage, without pages.
INSERT INTO stages (queue, stage, pages, last_page, messages, bytes, stored_bytes, expires_at, made_by)
VALUES (?, ?, 0, -1, 0, 0, 0, ?, ?)
RETURNING id;

-- name: oldest_empty_stage
-- The oldest stage of a key that waits and has no messages.
SELECT id, made_by, queue FROM stages WHERE made_by = ? AND stage IS NOT NULL AND messages = 0 ORDER BY id LIMIT 1;

-- name: find_staged_page
-- The parts, messages and bytes of a page.
-- rows of: one thing
SELECT count(*), coalesce(sum(messages), 0), coalesce(sum(bytes), 0) FROM staged_parts WHERE stage_id = ? AND page = ?;

-- name: add_part
-- A part of a page.
INSERT INTO staged_parts (stage_id, page, part, messages, bytes, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: grow_stage
-- One more page.
UPDATE stages SET pages = pages + 1, last_page = max(last_page, ?2), messages = messages + ?3, bytes = bytes + ?4,
                  expires_at = ?5, stored_bytes = stored_bytes + ?6
WHERE id = ?1;

-- name: queue_stage
-- Number a stage, published or to be removed: `turn` is its entry number. Its name is free again.
UPDATE stages SET stage = NULL, turn = ?2, published = ?3 WHERE id = ?1;

-- name: find_expired_stages
-- Stages whose life is over.
SELECT id, made_by FROM stages WHERE stage IS NOT NULL AND expires_at <= ? ORDER BY expires_at, id LIMIT ?;

-- name: on_the_way
-- The messages and bytes that are published and not yet in their queue.
-- rows of: one thing
SELECT coalesce(sum(messages), 0), coalesce(sum(bytes), 0) FROM stages
WHERE queue = ? AND published = 1;

-- name: next_stage
-- The stage to work on: published ones first, in order.
SELECT id, queue, published, bytes, made_by FROM stages WHERE turn IS NOT NULL ORDER BY published DESC, turn LIMIT 1;

-- name: first_entry
-- The entry number of the first published stage.
SELECT min(turn) FROM stages WHERE published = 1 AND turn IS NOT NULL;

-- name: next_part
-- The next part of a stage, and the length of its body, which is not read.
SELECT rowid, messages, bytes, length(body) FROM staged_parts WHERE stage_id = ? ORDER BY page, part LIMIT 1;

-- name: part_body
-- The messages of a part.
SELECT body FROM staged_parts WHERE rowid = ?;

-- name: remove_part
-- Remove a part.
DELETE FROM staged_parts WHERE rowid = ?;

-- name: shrink_stage
-- A part of a stage is in its queue, or removed.
UPDATE stages SET messages = messages - ?2, bytes = bytes - ?3, stored_bytes = stored_bytes - ?4
WHERE id = ?1;

-- name: forget_stage
-- Remove a stage without parts.
DELETE FROM stages WHERE id = ?;

-- name: set_stage_aside
-- Set a damaged stage aside: it stays where it is, and no batch works on it any more.
UPDATE stages SET turn = NULL, published = 0 WHERE id = ?;

-- name: find_apps
-- The apps of a name.
-- rows of: one thing
SELECT number, app, version, published_at, once, made_by, queues FROM apps WHERE app = ? ORDER BY number;

-- name: save_app
-- An app published a version.
INSERT INTO apps (app, version, published_at, once, made_by, queues) VALUES (?, ?, ?, ?, ?, ?);

-- name: oldest_app
-- The app of a kind that published longest ago.
SELECT number, published_at, made_by FROM apps WHERE once = ? ORDER BY number LIMIT 1;

-- name: oldest_app_of
-- The app of a key and a kind that published longest ago.
SELECT number, published_at, made_by FROM apps WHERE made_by = ? AND once = ? ORDER BY number LIMIT 1;

-- name: forget_app
-- Forget what an app published.
DELETE FROM apps WHERE number = ?;
