"""What all spans of Forq have in common. Needs the extra `otel`.

Names and kinds follow OpenTelemetry's conventions for messaging. The context of a send travels in the attributes
`traceparent` and `tracestate` of the message (`traces.py`): a span of a handler has it as its parent, a span of a
receive has a link to it for each message.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.extras import needing
from forq_trio.model.traces import TRACEPARENT, TRACESTATE, is_tracestate

with needing("otel", "forq_trio.model.tracing"):
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Status, StatusCode, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

MessageT = TypeVar("MessageT", bound=Struct)

SEND, RECEIVE, SETTLE, PROCESS = "send", "receive", "settle", "process"
"""The types of operations, `messaging.operation.type`."""

_W3C = TraceContextTextMapPropagator()
_COUNT = "messaging.batch.message_count"
_ID = "messaging.message.id"


def about(queue: str, kind: str, name: str = "") -> dict[str, str]:
    """The attributes of each span about messages. kind: the type of the operation; name: "" for that of its type."""
    return {
        "messaging.system": "forq",
        "messaging.operation.type": kind,
        "messaging.operation.name": name or kind,
        "messaging.destination.name": queue,
    }


def context_in(carrier: Mapping[str, str] | None) -> Context:
    """The context in attributes or headers; an empty one if there is none, or none that can be read."""
    if carrier is None or TRACEPARENT not in carrier:
        return Context()
    read = {TRACEPARENT: carrier[TRACEPARENT]}
    if is_tracestate(carrier.get(TRACESTATE, "")):
        read[TRACESTATE] = carrier[TRACESTATE]
    return _W3C.extract(read, Context())


def carried(context: Context | None = None) -> dict[str, str]:
    """A context as attributes; empty if it has no span. context: None for the current one.

    A `tracestate` that is longer than an attribute may be is left out.
    """
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, context)
    if len(carrier.get(TRACESTATE, "")) > limits.ATTRIBUTE_VALUE_LENGTH_MAX:
        del carrier[TRACESTATE]
    return carrier


def with_context(message: MessageT, context: Mapping[str, str], outer: Mapping[str, str]) -> MessageT:
    """A message to send, with the context of its send in its attributes.

    outer: the context around the send. A message that has this one was sent inside of a handler that passes it on. With
    any other `traceparent`, or one attribute too many, it stays as it is.
    """
    own: dict[str, str] = getattr(message, "attributes", None) or {}
    if outer and own.get(TRACEPARENT) == outer[TRACEPARENT]:
        own = {name: value for name, value in own.items() if name not in outer}
    if TRACEPARENT not in own:
        # A `tracestate` without a `traceparent` belongs to no trace, and is ignored (W3C Trace Context, processing
        # model): beside the parent that is added here it would be read as that trace's.
        own = {name: value for name, value in own.items() if name != TRACESTATE}
    left = limits.ATTRIBUTES_MAX - len(own)
    if not context or TRACEPARENT in own or left < 1:
        return message
    return replace(message, attributes=own | dict([*context.items()][:left]))


def describe_messages(span: Span, ids: Sequence[str | None]) -> None:
    """Say the id of one message, None if it was refused; how many there are of another number."""
    if len(ids) != 1:
        span.set_attribute(_COUNT, len(ids))
    elif ids[0] is not None:
        span.set_attribute(_ID, ids[0])


def describe_received(span: Span, received: Sequence[tuple[str, Mapping[str, str] | None]]) -> None:
    """Say which messages were received, by their ids and attributes, with links to the spans that sent them."""
    describe_messages(span, [message_id for message_id, _ in received])
    for message_id, attributes in received:
        sent = get_current_span(context_in(attributes)).get_span_context()
        if sent.is_valid:
            span.add_link(sent, {_ID: message_id})


def describe_error(span: Span, error: BaseException) -> None:
    """Mark a span as failed. A cancellation is no error, but is named, too."""
    is_error = isinstance(error, Exception)
    span.set_attribute("error.type", type(error).__name__ if is_error else "cancelled")
    if is_error:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
