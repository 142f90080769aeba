"""Reads how a message ended, for who waits for its result."""

from forq_trio.model.results.types import MessageResult
from forq_trio.storage.relational.needs import Needs
from forq_trio.storage.relational.statements import Query


def read_result(query: Query, queue: str, message_id: str) -> MessageResult | None:
    """See `Reader.message_result`. To be called in a snapshot. Raises ReadAfter."""
    for place, attempts, last_error, source, dead_lettered_at in query("stored_message", message_id):
        if place == queue:
            return MessageResult(message_id, queue, "waiting", attempts, None, last_error)
        if source == queue:
            return MessageResult(message_id, place, "dead", attempts, None, last_error, dead_lettered_at)
        return None
    Needs(query).message(queue, message_id)
    for place, outcome, attempts, result, last_error, finished_at in query(
        "finished_from", message_id, queue
    ):
        return MessageResult(message_id, place, outcome, attempts, result, last_error, finished_at)
    return None
