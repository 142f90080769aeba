-- The statements of a shuffle, for the write connection and the read-only ones.

-- name: ready_sequences
-- The sequences of the next ready messages of a queue.
SELECT seq FROM messages WHERE queue = ? AND status = 0 ORDER BY priority DESC, position, seq LIMIT ?;

-- name: ready_priorities
-- The priorities of the ready messages of a queue, found by skipping along the index.
WITH RECURSIVE priorities (priority) AS (
    SELECT (SELECT priority FROM messages WHERE queue = ?1 AND status = 0 ORDER BY priority DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT messages.priority FROM messages
            WHERE queue = ?1 AND status = 0 AND messages.priority < priorities.priority
            ORDER BY messages.priority DESC LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
)
SELECT priority FROM priorities WHERE priority IS NOT NULL;

-- name: ready_positions
-- The first and the last position of ready messages of a queue and priority.
SELECT (SELECT position FROM messages WHERE queue = ?1 AND status = 0 AND priority = ?2 ORDER BY position LIMIT 1),
       (SELECT position FROM messages WHERE queue = ?1 AND status = 0 AND priority = ?2 ORDER BY position DESC LIMIT 1);

-- name: ready_from
-- The first ready message of a queue and priority at or after a position.
SELECT seq FROM messages WHERE queue = ? AND status = 0 AND priority = ? AND position >= ? ORDER BY position, seq LIMIT 1;
