"""The decisions about outboxes, for all engines."""

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.errors import Forbidden, TooManyOutboxes


def check_owner(made_by: str, key: Key) -> Forbidden | None:
    """Forbidden unless the key may see and move this outbox: the key that made it, or the server's secret."""
    if key.name in (SECRET.name, made_by):
        return None
    return Forbidden("another key relays this outbox")


def check_outboxes(count: int, of_key: int, key: Key) -> TooManyOutboxes | None:
    """TooManyOutboxes if no further one may be made. of_key: how many of the `count` this key made."""
    if key.name != SECRET.name and of_key >= limits.OUTBOXES_A_KEY_MAX:
        return TooManyOutboxes(f"{of_key:,} outboxes of this key are remembered, as many as may be")
    return TooManyOutboxes() if count >= limits.OUTBOXES_MAX else None
