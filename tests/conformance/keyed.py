"""The words of tests about messages with a key."""

from contextlib import closing
from typing import Any

from forq_trio.model.commands import AckRevision, DropKey, OfferMany, RescheduleKey
from forq_trio.model.keys.types import Offered, Offering
from forq_trio.model.messages.types import KeyedMessage
from forq_trio.storage.engine import Engine

from .script import T0, do


def offering(key: str = "k", content: str = "x", **members: Any) -> Offering:
    return Offering(content, key=key, **members)


def offer_all(engine: Engine, *offerings: Offering, queue: str = "q", now: int = T0) -> tuple[Any, ...]:
    """The outcomes of a batch of offers."""
    return do(engine, OfferMany(queue, offerings), now)


def offer(
    engine: Engine, key: str = "k", content: str = "x", *, queue: str = "q", now: int = T0, **members: Any
) -> Offered:
    (outcome,) = offer_all(engine, offering(key, content, **members), queue=queue, now=now)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def outcomes(offered: tuple[Offered, ...]) -> list[str]:
    return [each.outcome for each in offered]


def read(engine: Engine, key: str = "k", kind: str = "", queue: str = "q") -> KeyedMessage | None:
    """What a reader finds under a key."""
    with closing(engine.open_reader()) as reader:
        return reader.keyed_message(queue, key, kind)


def pending(engine: Engine, key: str = "k", kind: str = "", queue: str = "q") -> KeyedMessage:
    """What a reader finds under a key that is pending."""
    found = read(engine, key, kind, queue)
    assert found is not None
    return found


def drop(
    engine: Engine, key: str = "k", kind: str = "", *, once_more: bool = False, queue: str = "q"
) -> bool:
    return do(engine, DropKey(queue, key, kind, once_more))


def reschedule(
    engine: Engine, at: int, key: str = "k", kind: str = "", *, once_more: bool = False, now: int = T0
) -> Any:
    """The outcome, which may be an error."""
    return do(engine, RescheduleKey("q", key, kind, at, once_more), now)


def ack_revision(engine: Engine, revision: int, key: str = "k", now: int = T0) -> bool:
    return do(engine, AckRevision("q", key, "", revision), now)
