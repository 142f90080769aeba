"""OpenTelemetry spans of requests: from when a request was whole until its answer is made, which is after the commit.

Needs the extra `otel`. The header `traceparent` of a request says the parent of its span.

Each request has a context of its own, in which its span stays current to the end: that of its task, or the one in
which all parts of a handler run that runs in place (in_place.py). If such a handler is given up and begun again in a
task, the span of the first try is never ended, so nobody exports it.
"""

from forq_trio.http.message import Handler, Request, Response
from forq_trio.in_place import TaskRequired
from forq_trio.model.extras import needing
from forq_trio.model.traces import TRACEPARENT, TRACESTATE

with needing("otel", "forq_trio.http.tracing"):
    from opentelemetry.context import attach
    from opentelemetry.trace import (
        SpanKind,
        Status,
        StatusCode,
        TracerProvider,
        get_tracer,
        set_span_in_context,
    )

    from forq_trio.model import tracing

_NOT_TRACED = ("healthcheck", "live", "metrics", "openapi", "openapiAtRoot")
"""What needs no key, and scrapes, by the names of their operations: they tell nothing."""


def tracing_requests(handler: Handler, provider: TracerProvider | None = None) -> Handler:
    """`handler`, with a span around each request. provider: None for the global one."""
    tracer = get_tracer("forq_trio.server", tracer_provider=provider)

    async def handle(request: Request) -> Response:
        route = None if request.route is None else request.route[0]
        if route is None or route.operation.name in _NOT_TRACED:
            return await handler(request)
        span = tracer.start_span(
            f"{request.method} {route.path}",
            tracing.context_in(_carrier(request)),
            SpanKind.SERVER,
            {
                "http.request.method": request.method,
                "http.route": route.path,
                "url.path": request.path,
                "client.address": request.client,
            },
        )
        attach(set_span_in_context(span))
        try:
            response = await handler(request)
        except TaskRequired:
            raise  # this span is never ended
        except BaseException as error:
            tracing.describe_error(span, error)
            span.end()
            raise
        span.set_attribute("http.response.status_code", response.status)
        if response.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()
        return response

    return handle


def _carrier(request: Request) -> dict[str, str]:
    named = ((name, request.headers.get(name.encode())) for name in (TRACEPARENT, TRACESTATE))
    return {name: value.decode("latin-1") for name, value in named if value is not None}
