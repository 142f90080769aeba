"""Queues and messages, read without changing them. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.reading import query_number, query_page, query_shuffles
from forq_trio.http.forq_api.views import message_view
from forq_trio.http.message import Request, Response
from forq_trio.http.pages import page_of
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.messages import is_dead_letter_queue
from forq_trio.wire.messages import MessageViews
from forq_trio.wire.queues import QueueDetail, QueueList, QueueSummary

_encode = msgspec.json.Encoder().encode


class QueueEndpoints:
    """Reads only: from the cache, or through the pool of readers."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock

    async def list(self, request: Request) -> Response:
        """A page of the queues that the key covers, by name, from the cache: fast with thousands of them."""
        broker = self._broker
        settings = broker.all_settings()
        counts = broker.counts()
        page, last = page_of(counts, request.principal, *query_page(request.query))

        def summary(queue: str) -> QueueSummary:
            its = counts[queue]
            return QueueSummary(
                queue=queue,
                is_dlq=is_dead_letter_queue(queue),
                ready=its.ready,
                delayed=its.delayed,
                processing=its.processing,
                failed=its.failed,
                held=its.held,
                bytes=its.bytes,
                waiting=broker.waiting(queue),
                paused=queue in settings and settings[queue].paused,
            )

        return Response(200, _encode(QueueList(list(map(summary, page)), last)))

    async def show(self, request: Request, queue: str) -> Response:
        """One queue; a queue that is not known has zeros."""
        info = await self._broker.stats(queue)
        oldest_ready_age_ms = None
        if info.oldest_ready_at is not None:
            oldest_ready_age_ms = max(0, self._clock.now_ms() - info.oldest_ready_at)
        detail = QueueDetail(
            queue=queue,
            is_dlq=info.is_dlq,
            ready=info.ready,
            delayed=info.delayed,
            processing=info.processing,
            failed=info.failed,
            held=info.held,
            bytes=info.bytes,
            waiting=self._broker.waiting(queue),
            paused=self._broker.rules(queue).paused,
            oldest_ready_age_ms=oldest_ready_age_ms,
        )
        return Response(200, _encode(detail))

    async def message(self, request: Request, queue: str, message_id: str) -> Response:
        """One message, whatever its status."""
        return Response(200, _encode(message_view(await self._broker.message(queue, message_id))))

    async def peek(self, request: Request, queue: str) -> Response:
        """The next ready messages in claim order, or some at random; 10 unless `limit` says otherwise."""
        limit = query_number(
            request.query, "limit", limits.PEEK_DEFAULT, 1, limits.BROWSE_PAGE_MAX, codes.LIMIT_OUT_OF_RANGE
        )
        messages = await self._broker.peek(queue, limit=limit, shuffle=query_shuffles(request.query))
        return Response(200, _encode(MessageViews([message_view(info) for info in messages])))
