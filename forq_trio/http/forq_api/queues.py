"""Queues and messages, read without changing them. Our additions to Forq's API."""

from msgspec.structs import replace

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.pages import page_of
from forq_trio.model.queues.bodies import QueueInfo, QueueList, QueuesQuery
from forq_trio.monitor.monitor import Monitor

_read_page = QueryReader(QueuesQuery)


class QueueEndpoints:
    """Reads only: from the cache, from the monitor, or through the pool of readers."""

    def __init__(self, broker: Broker, monitor: Monitor) -> None:
        self._broker = broker
        self._monitor = monitor

    async def list(self, request: Request) -> Response:
        """A page of the queues that the key covers, by name, from the cache: fast with thousands of them."""
        wanted = _read_page(request.query)
        names = self._broker.known.queue_names()
        page, last = page_of(names, request.principal, wanted.after, wanted.limit)
        return json_response(
            QueueList([self._judged(info) for info in self._broker.known.queues(page)], last)
        )

    async def show(self, request: Request, queue: str) -> Response:
        """One queue."""
        return json_response(self._judged(await self._broker.queue_stats(queue)))

    async def health(self, request: Request, queue: str) -> Response:
        """The health of one queue."""
        health = self._monitor.health(self._broker.known.check_queue(queue))
        return json_response(replace(health, sends_refused=self._broker.known.sends_refused))

    def _judged(self, info: QueueInfo) -> QueueInfo:
        """The queue with the monitor's verdict about its health."""
        health = self._monitor.health(info.queue)
        return replace(info, level=health.level, verdict=health.verdict)
