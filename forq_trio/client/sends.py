"""Builds the requests that send and offer messages, and reads their results. No I/O in here."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from forq_trio.client.types import Mode, NewMessage, Offered, Offering, OfferOptions, Produced
from forq_trio.model.checks import check_texts
from forq_trio.model.errors import ForqError, ForqProtocolError, error_of
from forq_trio.model.key_checks import check_is_offering
from forq_trio.model.values import seen
from forq_trio.wire.keys import Offer, OfferResult
from forq_trio.wire.messages import SendResult

ResultT = TypeVar("ResultT", SendResult, OfferResult)
DoneT = TypeVar("DoneT")


def batch_of(messages: Sequence[NewMessage]) -> dict[str, Sequence[NewMessage]]:
    """The request that sends messages. Raises TypeError for what is no NewMessage, and a text that is not a str."""
    for message in messages:
        check_texts(message)
    return {"messages": messages}


def offer_of(content: str, mode: Mode, max_wait_ms: int | None, options: OfferOptions) -> Offer:
    """The request that offers a message. Raises TypeError for a text that is not a str."""
    offer = Offer(content, mode=mode, max_wait_ms=max_wait_ms, **options)
    check_texts(offer.message)
    return offer


def offers_of(messages: Sequence[Offering]) -> dict[str, Sequence[Offering]]:
    """The request that offers messages. Raises TypeError for what is no Offering, and a text that is not a str."""
    for message in messages:
        check_is_offering(message)
        check_texts(message.message)
    return {"messages": messages}


def read_send_results(results: Sequence[SendResult], expected: int) -> list[Produced | ForqError]:
    """The results of the `expected` messages that were sent. Raises ForqProtocolError."""
    return _read_results(results, expected, _read_sent)


def read_offer_results(results: Sequence[OfferResult], expected: int) -> list[Offered | ForqError]:
    """The results of the `expected` offers. Raises ForqProtocolError."""
    return _read_results(results, expected, _read_offered)


def _read_results(
    results: Sequence[ResultT], expected: int, read: Callable[[ResultT], DoneT]
) -> list[DoneT | ForqError]:
    if len(results) != expected:
        raise ForqProtocolError("the answer does not have one result for each message")
    return [
        read(each) if each.code is None else error_of(each.code, field=each.field, message=each.message)
        for each in results
    ]


def _read_sent(result: SendResult) -> Produced:
    if result.id is None or result.sequence is None:
        raise ForqProtocolError("the answer has neither an id nor a code for a message")
    return Produced(result.id, result.sequence, result.duplicate)


def _read_offered(result: OfferResult) -> Offered:
    if (
        result.outcome is None
        or result.id is None
        or result.sequence is None
        or result.process_after is None
        or result.revision is None
    ):
        raise ForqProtocolError("the answer has neither an outcome nor a code for an offer")
    return seen(Offered, result)
