"""Offers of payloads: their due times, their results, and how many fit in a request."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from forq_trio.delayed.cron import epoch_ms
from forq_trio.model import limits
from forq_trio.model.checks import check_content
from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.errors import CallerError, ForqError, ProcessAfterInPast
from forq_trio.model.keys.checks import check_key
from forq_trio.model.keys.types import Mode, Offering, Outcome

T = TypeVar("T")

Due = datetime | Duration | None
"""When a message is due: a time with a time zone; or from now on a timedelta, a text as "5 min", or seconds; None: at
once.
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

    Raises ValueError for a time without a time zone, TypeError and ValueError for what is no duration.
    """
    at_ms = epoch_ms(due) if isinstance(due, datetime) else None
    delay_ms = None if due is None or isinstance(due, datetime) else ms_of(due)
    if at_ms is not None and at_ms <= now_ms:
        at_ms = None
    if delay_ms is not None and delay_ms <= 0:
        delay_ms = None
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
