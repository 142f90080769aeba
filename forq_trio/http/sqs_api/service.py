"""The 23 operations under their names, and how a request becomes one of them."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request, Response
from forq_trio.http.sqs_api.access import SqsGate
from forq_trio.http.sqs_api.caller import SqsCaller, Undoable, new_request_id
from forq_trio.http.sqs_api.details import DetailChanges
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
from forq_trio.http.sqs_api.tags import SqsTags
from forq_trio.in_place import require_task
from forq_trio.model import limits

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

WireProtocol = type[JsonProtocol] | type[QueryProtocol]
Operation = Callable[[SqsCaller, Any], Awaitable[Wire | Undoable]]


class SqsService:
    """Answers requests of both protocols."""

    def __init__(self, broker: Broker, gate: SqsGate, account: SqsAccount) -> None:
        self._gate = gate
        self._account = account
        self._operations = _operations(broker)

    async def respond(self, request: Request, *path: str) -> Response:
        """Check the signature, read the request, carry it out, answer it. path: account and queue, or nothing."""
        request_id = new_request_id()
        protocol = protocol_of(request)
        if protocol is QueryProtocol:
            require_task()  # for the pauses in its answer
        try:
            region = self._gate.verify(request)
            operation, asked = protocol.read(request)
            if operation not in _IN_PLACE:
                require_task()
            done = await self._operations[operation](SqsCaller(request, region, self._account), asked)
        except Exception as error:
            return protocol.refuse(explain(error), request_id)
        if not isinstance(done, Undoable):
            return await _answer(protocol, operation, done, request_id)
        try:
            response = await _answer(protocol, operation, done.result, request_id)
        except trio.Cancelled:
            done.undo()
            raise
        response.on_unsent = done.undo
        return response

    @staticmethod
    def refuse(error: Exception, request: Request) -> Response:
        """Answer a request that is refused before it is read."""
        return protocol_of(request).refuse(explain(error), new_request_id())


async def _answer(protocol: WireProtocol, operation: str, result: Wire, request_id: str) -> Response:
    """The answer. XML of a long message takes so long that other requests are answered before the next one."""
    if protocol is JsonProtocol:
        return JsonProtocol.answer(result, request_id)
    parts = []
    for part in QueryProtocol.parts(operation, result):
        parts.append(part)
        if len(part) > limits.READ_SLICE_BYTES:
            await trio.lowlevel.checkpoint()
    return QueryProtocol.answer(operation, parts, request_id)


def protocol_of(request: Request) -> WireProtocol:
    """The protocol that a request speaks."""
    return JsonProtocol if TARGET_HEADER in request.headers else QueryProtocol


def _operations(broker: Broker) -> dict[str, Operation]:
    changes = DetailChanges(broker)
    queues, tags, moves = SqsQueues(broker, changes), SqsTags(broker, changes), SqsMoves(broker)
    sending, receiving, settling = SqsSending(broker), SqsReceiving(broker), SqsSettling(broker)
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
