"""OpenTelemetry spans of a client: `trace(client)`. Needs the extra `otel` (docs/telemetry.md).

A client that is not traced knows nothing of this: `trace` puts a function around the one through which all of its calls
go, and a transport around its own, which tells the server the current span.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.extras import needing
from forq_trio.model.keys import endpoints as key_api
from forq_trio.model.messages import endpoints as message_api

with needing("otel", "forq_trio.client.tracing"):
    from opentelemetry.trace import Span, SpanKind, Tracer, TracerProvider, get_tracer, use_span

    from forq_trio.model import tracing

if TYPE_CHECKING:
    from forq_trio.client.aio import AsyncForqClient
    from forq_trio.client.aio_connection import AsyncTransport
    from forq_trio.client.sync import ForqClient
    from forq_trio.client.sync_connection import Transport


class _Operation(NamedTuple):
    """What a call does with messages. kind: the type of the operation, in the sense of the conventions."""

    kind: str
    name: str


_OPERATIONS = {
    message_api.SEND_MESSAGES.name: _Operation(tracing.SEND, "send"),
    key_api.OFFER_MESSAGE.name: _Operation(tracing.SEND, "offer"),
    key_api.OFFER_MESSAGES.name: _Operation(tracing.SEND, "offer"),
    message_api.RECEIVE_MESSAGES.name: _Operation(tracing.RECEIVE, "receive"),
    message_api.ACK_MESSAGES.name: _Operation(tracing.SETTLE, "ack"),
    message_api.NACK_MESSAGES.name: _Operation(tracing.SETTLE, "nack"),
    message_api.DISCARD_MESSAGES.name: _Operation(tracing.SETTLE, "discard"),
    message_api.RELEASE_MESSAGES.name: _Operation(tracing.SETTLE, "release"),
}
"""By the names of endpoints. Calls of others have no span."""


class _Received(Struct):
    """A message, as far as its span tells of it."""

    id: str
    attributes: dict[str, str] | None = None


class _Sent(Struct):
    """The result of a message that was sent. id: None for one that was refused."""

    id: str | None = None


class _Answer(Struct):
    """The answer of a receive, or of a send of several messages."""

    messages: list[_Received] = []
    results: list[_Sent] = []


_read_answer = msgspec.json.Decoder(_Answer).decode
_read_sent = msgspec.json.Decoder(_Sent).decode


def trace(client: "AsyncForqClient | ForqClient", provider: TracerProvider | None = None) -> None:
    """Make a span for each send, receive and settlement of a client, and have its messages carry the context.

    Messages that have another `traceparent`, or ten attributes, stay as they are. Acks that share a request have one
    span, without a parent. provider: None for the global one.
    """
    tracer = get_tracer("forq_trio.client", tracer_provider=provider)
    exchange: Any = client._exchange

    async def traced(endpoint: Endpoint[object], body: object = None, **options: Any) -> HttpAnswer:
        with _span_around(tracer, endpoint, body, options) as call:
            answer: HttpAnswer = await exchange(endpoint, call.body, **options)
            call.answer = answer
        return answer

    def traced_blocking(endpoint: Endpoint[object], body: object = None, **options: Any) -> HttpAnswer:
        with _span_around(tracer, endpoint, body, options) as call:
            answer: HttpAnswer = exchange(endpoint, call.body, **options)
            call.answer = answer
        return answer

    traced_client: Any = client
    if inspect.iscoroutinefunction(exchange):
        traced_client._exchange = traced
        traced_client._transport = _AsyncTelling(traced_client._transport)
    else:
        traced_client._exchange = traced_blocking
        traced_client._transport = _Telling(traced_client._transport)


class _Call:
    """A call while it runs. body: what is sent; answer: what came, None before it."""

    def __init__(self, body: Any) -> None:
        self.body = body
        self.answer: HttpAnswer | None = None


@contextmanager
def _span_around(
    tracer: Tracer, endpoint: Endpoint[object], body: Any, options: Mapping[str, Any]
) -> Iterator[_Call]:
    """Make the span of a call current while it runs, if it is to have one."""
    operation = _OPERATIONS.get(endpoint.name)
    call = _Call(body)
    if operation is None:
        yield call
        return
    queue = options["queue"]
    sends = operation.kind == tracing.SEND
    outer = tracing.carried()
    span = tracer.start_span(
        f"{operation.name} {queue}",
        kind=SpanKind.PRODUCER if sends else SpanKind.CLIENT,
        attributes=tracing.about(queue, operation.kind, operation.name),
    )
    with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        if sends:
            call.body = _with_context(body, tracing.carried(), outer)
        try:
            yield call
        except BaseException as error:
            tracing.describe_error(span, error)
            raise
        _describe(span, operation, call)


def _with_context(body: Any, context: Mapping[str, str], outer: Mapping[str, str]) -> Any:
    """The body of a send, with the context in each of its messages."""
    if isinstance(body, dict):
        return {"messages": [tracing.with_context(message, context, outer) for message in body["messages"]]}
    return tracing.with_context(body, context, outer)


def _describe(span: Span, operation: _Operation, call: _Call) -> None:
    """Say which messages it was about, as far as the answer tells."""
    assert call.answer is not None
    content = call.answer.content
    try:
        if operation.kind == tracing.RECEIVE:
            tracing.describe_received(
                span, [(each.id, each.attributes) for each in _read_answer(content).messages]
            )
        elif operation.kind == tracing.SETTLE:
            tracing.describe_messages(span, _receipts(call.body))
        else:
            many = isinstance(call.body, dict)
            results = _read_answer(content).results if many else [_read_sent(content)]
            tracing.describe_messages(span, [each.id for each in results])
    except (msgspec.MsgspecError, RecursionError):
        return  # who reads the answer next says so


def _receipts(body: Any) -> Sequence[None]:
    """One None for each receipt: what message it is of, only the server knows."""
    return [None] * len(body.receipts)


class _AsyncTelling:
    """A transport that tells the server which span a request belongs to."""

    def __init__(self, inner: "AsyncTransport") -> None:
        self._inner = inner
        self.close = inner.close

    async def exchange(self, request: ClientRequest) -> HttpAnswer:
        return await self._inner.exchange(_told(request))


class _Telling:
    """The same of a blocking client."""

    def __init__(self, inner: "Transport") -> None:
        self._inner = inner
        self.close = inner.close

    def exchange(self, request: ClientRequest) -> HttpAnswer:
        return self._inner.exchange(_told(request))


def _told(request: ClientRequest) -> ClientRequest:
    return request._replace(headers=(*request.headers, *tracing.carried().items()))
