"""The 23 operations under their names, and how a request becomes one of them."""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request, Response
from forq_trio.http.sqs_api.access import SqsGate
from forq_trio.http.sqs_api.caller import SqsCaller, Undoable
from forq_trio.http.sqs_api.details import DetailChanges
from forq_trio.http.sqs_api.errors import UnknownQueue
from forq_trio.http.sqs_api.explain import explain
from forq_trio.http.sqs_api.json_protocol import TARGET_HEADER, JsonProtocol
from forq_trio.http.sqs_api.moves import SqsMoves
from forq_trio.http.sqs_api.names import SqsAccount
from forq_trio.http.sqs_api.query_protocol import QueryProtocol
from forq_trio.http.sqs_api.queues import SqsQueues
from forq_trio.http.sqs_api.receiving import SqsReceiving
from forq_trio.http.sqs_api.sending import SqsSending
from forq_trio.http.sqs_api.settling import SqsSettling
from forq_trio.http.sqs_api.shapes import Wire
from forq_trio.http.sqs_api.signature import hash_of
from forq_trio.http.sqs_api.tags import SqsTags
from forq_trio.http.sqs_api.xml_budget import XmlAnswers
from forq_trio.in_place import require_task
from forq_trio.model import limits
from forq_trio.model.errors import QueueNotFound

_IN_PLACE = frozenset(
    (
        "SendMessage",
        "SendMessageBatch",
        "ReceiveMessage",
        "DeleteMessage",
        "DeleteMessageBatch",
        "ChangeMessageVisibility",
        "ChangeMessageVisibilityBatch",
    )
)
"""They usually wait for the writer alone, so a task would cost more than the work (in_place.py)."""

_PROCESS = str(uuid4())[:-12]
_answers = itertools.count(1)

WireProtocol = type[JsonProtocol] | type[QueryProtocol]
Operation = Callable[[SqsCaller, Any], Awaitable[Wire | Undoable]]


class SqsService:
    """Answers requests of both protocols."""

    def __init__(self, broker: Broker, gate: SqsGate, account: SqsAccount, sender_key: bytes | None) -> None:
        """sender_key: see `senders.sender_key`; None where no signatures are checked."""
        self._broker = broker
        self._gate = gate
        self._account = account
        self._operations = _operations(broker, sender_key)
        self._reading = trio.Lock()
        self._xml_answers = XmlAnswers()

    async def respond(self, request: Request, *_path: str) -> Response:
        """Check the signature, read the request, carry it out, answer it.

        Raises Overloaded if there is no space for a long answer.

        _path: account and queue, or nothing; the query protocol reads them from the request.
        """
        request_id = new_request_id()
        protocol = protocol_of(request.headers)
        if protocol is QueryProtocol:
            require_task()  # for the pauses in its answer
        try:
            region = self._gate.verify(request, await hash_of(request.body))
            operation, asked = await self._read(protocol, request)
            if operation not in _IN_PLACE:
                require_task()
            done = await self._carry_out(operation, SqsCaller(request, region, self._account), asked)
        except Exception as error:
            return protocol.refuse(explain(error), request_id)
        if not isinstance(done, Undoable):
            return await self._answer(protocol, operation, done, request_id)
        try:
            response = await self._answer(protocol, operation, done.result, request_id)
        except BaseException:
            done.undo()
            raise
        response.on_unsent = done.undo
        return response

    async def _read(self, protocol: WireProtocol, request: Request) -> tuple[str, Wire]:
        """The operation and its request. Of long ones, one is read in a pass of the event loop. That needs a task."""
        if len(request.body) <= limits.READ_SLICE_BYTES:
            return protocol.read(request)
        require_task()
        async with self._reading:
            return protocol.read(request)

    async def _answer(
        self, protocol: WireProtocol, operation: str, result: Wire, request_id: str
    ) -> Response:
        if protocol is JsonProtocol:
            return JsonProtocol.answer(result, request_id)
        return await self._xml_answers.make(operation, result, request_id)

    async def _carry_out(self, operation: str, caller: SqsCaller, asked: Any) -> Wire | Undoable:
        """Carry an operation out; once more if another server may have made its queue a moment ago."""
        carry_out = self._operations[operation]
        try:
            return await carry_out(caller, asked)
        except (UnknownQueue, QueueNotFound) as error:
            unknown = error
        if not await self._broker.take_over():
            raise unknown
        return await carry_out(caller, asked)

    @staticmethod
    def refuse(error: Exception, request: Request) -> Response:
        """Answer a request that is refused before it is read."""
        return protocol_of(request.headers).refuse(explain(error), new_request_id())


def new_request_id() -> str:
    """The id of an answer, for logs of clients: a UUID of this process, counted up, because random ones cost more."""
    return f"{_PROCESS}{next(_answers):012x}"


def protocol_of(headers: Mapping[bytes, bytes]) -> WireProtocol:
    """The protocol that a request with these headers speaks."""
    return JsonProtocol if TARGET_HEADER in headers else QueryProtocol


def _operations(broker: Broker, sender_key: bytes | None) -> dict[str, Operation]:
    changes = DetailChanges(broker)
    queues, tags, moves = SqsQueues(broker, changes), SqsTags(broker, changes), SqsMoves(broker)
    sending, receiving = SqsSending(broker, sender_key), SqsReceiving(broker, sender_key)
    settling = SqsSettling(broker)
    return {
        "AddPermission": tags.add_permission,
        "CancelMessageMoveTask": moves.cancel,
        "ChangeMessageVisibility": settling.change_visibility,
        "ChangeMessageVisibilityBatch": settling.change_visibility_batch,
        "CreateQueue": queues.create,
        "DeleteMessage": settling.delete,
        "DeleteMessageBatch": settling.delete_batch,
        "DeleteQueue": queues.delete,
        "GetQueueAttributes": queues.attributes,
        "GetQueueUrl": queues.url,
        "ListDeadLetterSourceQueues": queues.sources,
        "ListMessageMoveTasks": moves.tasks,
        "ListQueueTags": tags.tags,
        "ListQueues": queues.queues,
        "PurgeQueue": queues.purge,
        "ReceiveMessage": receiving.receive,
        "RemovePermission": tags.remove_permission,
        "SendMessage": sending.send_message,
        "SendMessageBatch": sending.send_batch,
        "SetQueueAttributes": queues.set_attributes,
        "StartMessageMoveTask": moves.start,
        "TagQueue": tags.tag,
        "UntagQueue": tags.untag,
    }
