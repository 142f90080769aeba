"""POST /queue_length and /delete_all, GET /queues and /health: queues and the server as a whole."""

from urllib.parse import parse_qsl

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request, Response
from forq_trio.http.pages import page_of
from forq_trio.http.sasquatch_api import bodies
from forq_trio.http.sasquatch_api.bodies import SasquatchBodyReader, required
from forq_trio.http.sasquatch_api.errors import SERVICE_UNAVAILABLE, SasquatchError
from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import ServiceError
from forq_trio.model.messages.types import QueueCounts, check_queue_name

ALL_QUEUES = "*"


class SasquatchQueueEndpoints:
    """version: the server's, for /health."""

    def __init__(self, broker: Broker, options: SasquatchOptions, version: str) -> None:
        self._broker = broker
        self._read = SasquatchBodyReader(bodies.QueueRequest, options.request_bytes_max)
        self._healthy = msgspec.json.encode({"status": "ok", "version": version})

    async def queue_length(self, request: Request) -> Response:
        """One queue, from the cache; zeros for a queue that is not known."""
        queue = check_queue_name(required("queue_name", self._read(request).queue_name))
        request.principal.check(Scope.BROWSE, queue)
        length = _length(queue, self._broker.known.counts_of(queue))
        return Response(200, msgspec.json.encode(length))

    async def queues(self, request: Request) -> Response:
        """A page of the queues by name, from the cache; for a token, those it covers. A Link header names the next."""
        request.principal.check_somewhere(Scope.BROWSE)
        after = dict(parse_qsl(request.query)).get("after", "")
        page, last = page_of(
            self._broker.known.queue_names(), request.principal, after, limits.QUEUES_PAGE_MAX
        )
        lengths = msgspec.json.encode([_length(queue, self._broker.known.counts_of(queue)) for queue in page])
        headers = () if last is None else ((b"link", f'</queues?after={last}>; rel="next"'.encode()),)
        return Response(200, lengths, headers=headers)

    async def delete_all(self, request: Request) -> Response:
        """Remove all messages of a queue, in whatever state, or of all queues ("*")."""
        queue = required("queue_name", self._read(request).queue_name)
        if queue == ALL_QUEUES:
            request.principal.check(Scope.ADMIN)
            stored = self._broker.known.stored_counts().items()
            queues = [name for name, counts in stored if counts.total]
        else:
            request.principal.check(Scope.ADMIN, check_queue_name(queue))
            queues = [queue] if self._broker.known.has_queue(queue) else []
        deleted = 0
        for each in queues:
            deleted += await self._broker.purge(each)
        return Response(200, msgspec.json.encode(bodies.PurgedQueues("ok", deleted)))

    async def health(self, request: Request) -> Response:
        """A real operation on the write connection; ServiceUnavailable when it fails or takes too long."""
        with trio.move_on_after(limits.HEALTH_SECONDS_MAX):
            try:
                await self._broker.healthcheck()
            except ServiceError:
                raise SasquatchError(SERVICE_UNAVAILABLE, "the database does not work") from None
            return Response(200, self._healthy)
        raise SasquatchError(SERVICE_UNAVAILABLE, "the database did not answer in time")


def _length(queue: str, counts: QueueCounts) -> bodies.QueueLength:
    """The counts of a queue. Held messages count as visible, like ready ones: Sasquatch has no group limit."""
    return bodies.QueueLength(queue, counts.ready + counts.held, counts.processing)
