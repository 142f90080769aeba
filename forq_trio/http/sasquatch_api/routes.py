"""The twelve endpoints of the dialect. Each answers all its errors itself, and counts its answers."""

from collections.abc import Awaitable, Callable

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access, LocalGate
from forq_trio.http.errors import MethodNotAllowed
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Gate, Respond, Route
from forq_trio.http.sasquatch_api.errors import METHOD_NOT_ALLOWED, SasquatchError, answer
from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.http.sasquatch_api.queues import SasquatchQueueEndpoints
from forq_trio.http.sasquatch_api.receiving import ReceiveEndpoints
from forq_trio.http.sasquatch_api.sending import SendEndpoints
from forq_trio.http.sasquatch_api.settling import SettleEndpoints
from forq_trio.http.sasquatch_api.stats import RequestCounts
from forq_trio.model.access.types import Scope
from forq_trio.model.clock import Clock
from forq_trio.model.endpoint import Operation

# "METHOD /path": a summary, and the scope that a token needs (None: no key is needed).
ENDPOINTS: dict[str, tuple[str, Scope | None]] = {
    "POST /send": ("Send a message", Scope.PRODUCE),
    "POST /send_batch": ("Send 1 to 10 messages in one commit", Scope.PRODUCE),
    "POST /receive": ("Receive messages, or peek at one, waiting for the first", Scope.CONSUME),
    "POST /delete": ("Delete messages by their receipt handles", Scope.CONSUME),
    "POST /change_visibility": ("Change when messages become visible again", Scope.CONSUME),
    "POST /delete_all": ("Delete all messages of a queue, or of all queues", Scope.ADMIN),
    "POST /queue_length": ("Count the messages of a queue", Scope.BROWSE),
    "GET /queues": ("List the queues with their counts", Scope.BROWSE),
    "GET /health": ("Is the server able to work?", None),
    "GET /stats": ("A page with request counters", Scope.BROWSE),
    "POST /enqueue": ("Send the body as a message (legacy)", Scope.PRODUCE),
    "POST /dequeue": ("The same as /receive (legacy)", Scope.CONSUME),
}

_IN_PLACE = frozenset(
    ("/send", "/send_batch", "/receive", "/delete", "/change_visibility", "/enqueue", "/dequeue")
)
"""They usually wait for the writer alone, so a task would cost more than the work (in_place.py)."""


def sasquatch_routes(
    broker: Broker, clock: Clock, options: SasquatchOptions, access: Access | None, version: str
) -> list[Route]:
    """All endpoints. access: None for no authentication."""
    counts = RequestCounts(ENDPOINTS, clock)
    sending = SendEndpoints(broker, options)
    receiving = ReceiveEndpoints(broker, options)
    settling = SettleEndpoints(broker, options)
    queues = SasquatchQueueEndpoints(broker, options, version)
    endpoints: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "POST /send": sending.send,
        "POST /send_batch": sending.send_batch,
        "POST /receive": receiving.receive,
        "POST /delete": settling.delete,
        "POST /change_visibility": settling.change_visibility,
        "POST /delete_all": queues.delete_all,
        "POST /queue_length": queues.queue_length,
        "GET /queues": queues.queues,
        "GET /health": queues.health,
        "GET /stats": counts.page,
        "POST /enqueue": sending.enqueue,
        "POST /dequeue": receiving.receive,
    }
    return [_route(name, endpoint, counts, access) for name, endpoint in endpoints.items()]


def _route(
    name: str,
    endpoint: Callable[[Request], Awaitable[Response]],
    counts: RequestCounts,
    access: Access | None,
) -> Route:
    method, path = name.split()
    summary, scope = ENDPOINTS[name]

    def refuse(error: Exception, request: Request) -> Response:
        """Answer a request that is refused before its endpoint is called: another method, a wrong key, ..."""
        if isinstance(error, MethodNotAllowed):
            error = SasquatchError(METHOD_NOT_ALLOWED, f"{path} takes {method} only", error.headers)
        response = answer(error)
        counts.record(name, response.status)
        return response

    gate: Gate | None = None
    if access is None:
        gate = LocalGate()
    elif scope is not None:
        gate = access.gate(scope, None)  # the queue is named in the body, which the endpoint reads and checks
    operation: Operation[None] = Operation(
        name=path.removeprefix("/"), tag="Sasquatch", summary=summary, answers=()
    )
    respond = _counted(name, endpoint, counts)
    return Route(method, path, respond, operation, refuse, gate, options=False, in_place=path in _IN_PLACE)


def _counted(name: str, endpoint: Callable[[Request], Awaitable[Response]], counts: RequestCounts) -> Respond:
    async def respond(request: Request) -> Response:
        try:
            response = await endpoint(request)
        except Exception as error:
            response = answer(error)
        counts.record(name, response.status)
        return response

    return respond
