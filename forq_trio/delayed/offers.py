"""Offers of payloads: what is offered, its due time, and batches cut to what one request takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from forq_trio.delayed.cron import MILLISECOND, epoch_ms
from forq_trio.model import limits
from forq_trio.model.checks import check_content
from forq_trio.model.errors import CallerError, ForqError, ProcessAfterInPast
from forq_trio.model.keys import Mode, Offering, Outcome
from forq_trio.model.offers import check_key

T = TypeVar("T")

Due = datetime | timedelta | None
"""When a message is due: a time with a time zone, a delay from now, or None for at once. Parts of a ms are dropped."""


@dataclass(frozen=True)
class Scheduled(Generic[T]):
    """A message to offer in a batch."""

    key: str
    payload: T
    due: Due = None  # see `Due`
    can_update: bool = True  # whether a message that the key has already is updated, or stays
    input: Any = None  # anything that the caller wants to find in the result


@dataclass(frozen=True)
class OfferedMessage(Generic[T]):
    """What became of one offer of a batch."""

    message: Scheduled[T]
    outcome: Outcome | None  # None for one that was refused
    error: ForqError | None = None  # why, else None

    @property
    def input(self) -> Any:
        """The input of the message, as it was given."""
        return self.message.input


def offering(key: str, kind: str, content: str, due: Due, mode: Mode, now_ms: int) -> Offering:
    """An offer. A time that has passed is at once: servers refuse it, because it is often a mistake.

    Raises ValueError for a time without a time zone.
    """
    at_ms = None if due is None or isinstance(due, timedelta) else epoch_ms(due)
    delay_ms = due // MILLISECOND if isinstance(due, timedelta) and due > timedelta(0) else None
    if at_ms is not None and at_ms <= now_ms:
        at_ms = None
    return Offering(key=key, kind=kind, content=content, mode=mode, process_after=at_ms, delay_ms=delay_ms)


def refusal(offer: Offering) -> CallerError | None:
    """Why no request can carry this offer: its key or its content. None if one can."""
    try:
        check_key(offer.key, offer.kind)
        check_content(offer.content)
    except CallerError as error:
        return error
    return None


def at_once(offer: Offering, result: object) -> Offering | None:
    """The offer without its time, if by the server's clock that has passed; None for any other result."""
    return replace(offer, process_after=None) if isinstance(result, ProcessAfterInPast) else None


def parts(offers: Sequence[Offering]) -> Iterator[Sequence[Offering]]:
    """The offers as one request takes them: up to 1,000, and 4 MiB of JSON."""
    start = size = 0
    for index, each in enumerate(offers):
        more = len(msgspec.json.encode(each))
        if index > start and (
            index - start == limits.OFFER_BATCH_MAX or size + more > limits.PRODUCE_BATCH_BYTES_MAX
        ):
            yield offers[start:index]
            start, size = index, 0
        size += more
    if start < len(offers):
        yield offers[start:]
