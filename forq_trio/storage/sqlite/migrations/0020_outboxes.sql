-- How far each outbox was relayed: stored in the transaction that stores its messages.
--
-- outbox      the id of the outbox, made by the application's side
-- position    the id, in the outbox, of its last message that is stored
-- made_by     the name of the access token that relayed first, '' for the server's secret
-- relayed_at  when a message was relayed last, epoch ms
CREATE TABLE outboxes (
    outbox     TEXT    PRIMARY KEY NOT NULL,
    position   INTEGER NOT NULL,
    made_by    TEXT    NOT NULL,
    relayed_at INTEGER NOT NULL
) WITHOUT ROWID;
