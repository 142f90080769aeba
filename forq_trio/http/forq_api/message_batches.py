"""Message batches. Our additions to Forq's API.

The gate checks that the token may send somewhere; here it is checked for the queues of the messages.
"""

from msgspec import Raw, Struct

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.batches import stored
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.sends import (
    ReadSlices,
    at_most,
    entries_of,
    read_batch,
    read_our_message,
    results_of,
)
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.message_batches import endpoints as api
from forq_trio.model.message_batches.bodies import AddMembers
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.bodies import SendResult, SendResults


class _RawMembers(Struct, frozen=True, forbid_unknown_fields=True):
    """AddMembers whose messages are not decoded yet."""

    messages: at_most(limits.PRODUCE_BATCH_MAX)  # type: ignore[valid-type]


class _RawMember(Struct, frozen=True, forbid_unknown_fields=True):
    """AddressedMessage whose message is not decoded yet."""

    queue: str
    message: Raw


_read_new = BodyReader(NewMessageBatch)
_read_members = BodyReader(_RawMembers, AddMembers)
_read_member = BodyReader(_RawMember, AddressedMessage)


class MessageBatchEndpoints:
    """Those with a body."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def open(self, request: Request, batch_id: str) -> Response:
        """Open a batch."""
        wanted = _read_new(request.body)
        for each in wanted.messages:
            _check_may_send(request, each)
        return json_response(await self._broker.open_batch(wanted, batch_id=batch_id))

    async def add(self, request: Request, batch_id: str) -> Response:
        """Send messages as members of a batch; an invalid one is refused alone."""
        if len(request.body) > limits.PRODUCE_BATCH_BYTES_MAX:
            most = limits.PRODUCE_BATCH_BYTES_MAX
            raise Refused(errors.ContentTooLarge, f"the messages have at most {most} bytes", status=413)
        entries: list[AddressedMessage | Refused] = []
        slices = ReadSlices()
        for raw in entries_of(read_batch(_read_members, request.body)):
            await slices.read(len(raw))
            entries.append(_read_entry(raw))
        members = [each for each in entries if isinstance(each, AddressedMessage)]
        for each in members:
            _check_may_send(request, each)
        outcomes = await self._broker.add_to_batch(batch_id, members)
        return json_response(SendResults(results_of(entries, outcomes, stored, SendResult)))


def _read_entry(raw: Raw) -> AddressedMessage | Refused:
    try:
        each = _read_member(raw)
        return AddressedMessage(each.queue, read_our_message(each.message))
    except Refused as refusal:
        return refusal


def _check_may_send(request: Request, message: AddressedMessage) -> None:
    """Raise Forbidden unless the key may send this message."""
    for queue in message.queues:
        request.principal.check(Scope.PRODUCE, queue)


def message_batch_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of message batches. route: makes one of an endpoint and its function."""
    batches = MessageBatchEndpoints(broker)
    return [
        route(api.OPEN_BATCH, batches.open),
        route(api.ADD_TO_BATCH, batches.add),
        calling(route, api.CLOSE_BATCH, broker.close_batch),
        calling(route, api.ABANDON_BATCH, broker.abandon_batch),
        calling(route, api.SHOW_BATCH, broker.batch),
        calling(route, api.LIST_BATCHES, broker.batches),
    ]
