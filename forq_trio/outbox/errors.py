"""The errors that end a relay: the outbox is missing, or is an older copy."""

from forq_trio.model.errors import ForqError


class NoOutbox(ForqError):
    """The database has no outbox; call forq_trio.outbox.create_table once"""

    code = "outbox.missing"


class OutboxReplaced(NoOutbox):
    """The database was replaced by another one while the relay had it open"""

    code = "outbox.replaced"


class OutboxOlder(ForqError):
    """The server has stored more messages of this outbox than the database has numbered: it is an older copy. Call
    forq_trio.outbox.new_identity; messages that were relayed after the copy was made may then be sent once more"""

    code = "outbox.older"
