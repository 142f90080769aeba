"""Offers of payloads: their due times, their results, and how many fit in a request."""

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
from forq_trio.model.keys.checks import check_key
from forq_trio.model.keys.types import Mode, Offering, Outcome

T = TypeVar("T")

Due = datetime | timedelta | None
"""When a message is due: a time with a time zone, a delay from now, or None for at once. Fractions of a ms are dropped.
"""


@dataclass(frozen=True)
class Scheduled(Generic[T]):
    """A message to offer in a batch."""

    key: str
    payload: T
    due: Due = None  # see `Due`
    can_update: bool = True  # True: it replaces the message that the key has; False: that one stays
    input: Any = None  # any value; the result has it, too


@dataclass(frozen=True)
class OfferedMessage(Generic[T]):
    """What became of one offer of a batch."""

    message: Scheduled[T]
    outcome: Outcome | None  # None if the offer was refused
    error: ForqError | None = None  # why it was refused; None if it was not

    @property
    def input(self) -> Any:
        """The input of the message, as it was given."""
        return self.message.input


def offering(key: str, kind: str, content: str, due: Due, mode: Mode, now_ms: int) -> Offering:
    """Make an offer. A due time in the past becomes "at once", because a server refuses it as a likely mistake.

    Raises ValueError for a time without a time zone.
    """
    at_ms = None if due is None or isinstance(due, timedelta) else epoch_ms(due)
    delay_ms = due // MILLISECOND if isinstance(due, timedelta) and due > timedelta(0) else None
    if at_ms is not None and at_ms <= now_ms:
        at_ms = None
    return Offering(key=key, kind=kind, content=content, mode=mode, process_after=at_ms, delay_ms=delay_ms)


def refusal(offer: Offering) -> CallerError | None:
    """Why no request can contain this offer, because of its key or content; None if one can."""
    try:
        check_key(offer.key, offer.kind)
        check_content(offer.content)
    except CallerError as error:
        return error
    return None


def at_once(offer: Offering, result: object) -> Offering | None:
    """The offer, now due at once, if the server refused its time as past; None for any other result."""
    return replace(offer, process_after=None) if isinstance(result, ProcessAfterInPast) else None


def parts(offers: Sequence[Offering]) -> Iterator[Sequence[Offering]]:
    """Split the offers into requests, each with at most 1,000 offers and 4 MiB of JSON."""
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
