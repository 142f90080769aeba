"""Builds the requests that offer messages, and reads their results. No I/O in here."""

from collections.abc import Sequence

from forq_trio.client.sends import read_results
from forq_trio.model.checks import check_texts
from forq_trio.model.errors import ForqError, ForqProtocolError
from forq_trio.model.keys.bodies import OfferResult
from forq_trio.model.keys.checks import check_is_offering
from forq_trio.model.keys.types import Mode, Offer, Offered, Offering, OfferOptions
from forq_trio.model.values import seen


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


def read_offer_results(results: Sequence[OfferResult], expected: int) -> list[Offered | ForqError]:
    """The results of the `expected` offers. Raises ForqProtocolError."""
    return read_results(results, expected, _read_offered)


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
