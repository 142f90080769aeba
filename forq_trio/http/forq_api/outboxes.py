"""Outboxes. Our additions to Forq's API.

The gate checks that the token may send somewhere; the broker refuses each message whose queue it does not cover.
"""

from collections.abc import Sequence

from msgspec import Raw, Struct

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling, with_key
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.sends import ReadSlices, at_most, entries_of, read_batch, read_our_message
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors, limits
from forq_trio.model.outboxes import endpoints as api
from forq_trio.model.outboxes.bodies import RelayRequest
from forq_trio.model.outboxes.types import OutboxRefusal, RelayedMessage


class _RawRelay(Struct, frozen=True, forbid_unknown_fields=True):
    """RelayRequest whose messages are not decoded yet."""

    after: int
    messages: at_most(limits.OUTBOX_PAGE_MAX)  # type: ignore[valid-type]


class _RawRelayed(Struct, frozen=True, forbid_unknown_fields=True):
    """RelayedMessage whose message is not decoded yet."""

    id: int
    queue: str
    message: Raw


_read_relay = BodyReader(_RawRelay, RelayRequest)
_read_relayed = BodyReader(_RawRelayed, RelayedMessage)


class OutboxEndpoints:
    """Each relay of a page is one commit."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def relay(self, request: Request, outbox: str) -> Response:
        """Store the next messages of an outbox."""
        if len(request.body) > limits.PRODUCE_BATCH_BYTES_MAX:
            most = limits.PRODUCE_BATCH_BYTES_MAX
            raise Refused(errors.ContentTooLarge, f"a page has at most {most} bytes", status=413)
        wanted = read_batch(_read_relay, request.body)
        messages, refused = await _read_messages(entries_of(wanted))
        last = messages[-1].id if messages else wanted.after
        if refused is not None and refused.id <= last:
            raise errors.OutOfRange(
                f"ids have to grow, and {refused.id} comes behind {last}", field="messages"
            )
        key = request.principal.key
        stored = await self._broker.relay_outbox(outbox, wanted.after, messages, key=key)
        return json_response(stored.then(last, refused))


async def _read_messages(entries: Sequence[Raw]) -> tuple[list[RelayedMessage], OutboxRefusal | None]:
    """The messages before the first invalid one, and why that one is refused.

    Raises Refused for an entry without id or queue.
    """
    messages: list[RelayedMessage] = []
    slices = ReadSlices()
    for index, raw in enumerate(entries):
        await slices.read(len(raw))
        try:
            each = _read_relayed(raw)
        except Refused as refusal:
            view = refusal.view
            field = f"$.messages[{index}]{(view.field or '$')[1:]}"
            raise Refused(refusal.reason, view.message, field=field) from None
        try:
            messages.append(RelayedMessage(each.id, each.queue, read_our_message(each.message)))
        except Refused as refusal:
            return messages, OutboxRefusal(each.id, refusal.reason.code, refusal.view.message or "")
    return messages, None


def outbox_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of outboxes. route: makes one of an endpoint and its function."""
    return [
        route(api.RELAY_OUTBOX, OutboxEndpoints(broker).relay),
        calling(route, api.SHOW_OUTBOX, broker.outbox_position, about_caller=with_key),
        calling(route, api.LIST_SET_ASIDE, broker.set_aside, wraps=True),
        calling(route, api.RETRY_SET_ASIDE, broker.retry_set_aside, wraps=True),
        calling(route, api.DELETE_SET_ASIDE, broker.delete_set_aside, wraps=True),
    ]
