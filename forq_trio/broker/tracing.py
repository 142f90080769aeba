"""OpenTelemetry spans of a broker: `trace(broker)`. Needs the extra `otel` (docs/telemetry.md).

A broker that is not traced knows nothing of this: `trace` puts a function around the writer's `execute`, through which
all commands about messages go. A span reaches from the call to the commit. A claim that finds nothing has none.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from forq_trio.broker.of_thread import OfThread, inner_of
from forq_trio.in_place import TaskRequired
from forq_trio.model import commands
from forq_trio.model.commands import Command
from forq_trio.model.extras import needing
from forq_trio.model.messages.types import Delivery

with needing("otel", "forq_trio.broker.tracing"):
    from opentelemetry.trace import Span, SpanKind, Tracer, TracerProvider, get_tracer, set_span_in_context

    from forq_trio.model import tracing

if TYPE_CHECKING:
    from forq_trio.broker.broker import Broker
    from forq_trio.writer_actor import WriterActor


class _Traced(NamedTuple):
    """A command that has a span. kind: the type of the operation; sent: the member with the messages that it sends."""

    kind: str
    name: str
    sent: str = ""


_TRACED: dict[type[Command[Any]], _Traced] = {
    commands.Produce: _Traced(tracing.SEND, "send", "message"),
    commands.ProduceMany: _Traced(tracing.SEND, "send", "messages"),
    commands.ProduceEach: _Traced(tracing.SEND, "send", "messages"),
    commands.Claim: _Traced(tracing.RECEIVE, "receive"),
    commands.Ack: _Traced(tracing.SETTLE, "ack"),
    commands.AckById: _Traced(tracing.SETTLE, "ack"),
    commands.Nack: _Traced(tracing.SETTLE, "nack"),
    commands.NackById: _Traced(tracing.SETTLE, "nack"),
    commands.DiscardMessages: _Traced(tracing.SETTLE, "discard"),
    commands.Release: _Traced(tracing.SETTLE, "release"),
}
for _kind in commands.COMMANDS:
    if _kind.traits.order is commands.CommandOrder.OFFER:
        _TRACED[_kind] = _Traced(tracing.SEND, "offer", _kind.traits.parts)


def trace(
    broker: "Broker | OfThread", provider: TracerProvider | None = None, *, served: bool = False
) -> None:
    """Make a span for each send, receive and settlement of a broker, and have its messages carry the context.

    Messages that have another `traceparent`, or ten attributes, stay as they are. From then on its metrics have
    exemplars. provider: None for the global one. served: a server's, whose clients are elsewhere: its spans are no
    sender's or receiver's, but part of those of requests.
    """
    inner = inner_of(broker)
    writer: Any = inner._writer
    spans = _Spans(writer, get_tracer("forq_trio.broker", tracer_provider=provider), served)
    inner._backends.own.execute = writer.execute = spans.execute
    writer.note_exemplars()


class _Spans:
    """Executes commands on a writer, in spans."""

    def __init__(self, writer: "WriterActor", tracer: Tracer, served: bool) -> None:
        self._execute = writer.execute
        self._tracer = tracer
        self._served = served

    async def execute(self, command: Command[Any]) -> Any:
        """`WriterActor.execute`."""
        traced = _TRACED.get(type(command))
        if traced is None:
            return await self._execute(command)
        if traced.kind == tracing.RECEIVE:
            return await self._receive(command, traced)
        span = self._start(command, traced)
        if traced.sent:
            command = _with_context(command, traced.sent, tracing.carried(set_span_in_context(span)))
        try:
            outcome = await self._execute(command)
        except TaskRequired:
            raise  # it is begun again in a task, with another span
        except BaseException as error:
            tracing.describe_error(span, error)
            span.end()
            raise
        tracing.describe_messages(span, _ids(command, outcome))
        span.end()
        return outcome

    async def _receive(self, command: Command[Any], traced: _Traced) -> tuple[Delivery, ...]:
        started_ns = time.time_ns()
        deliveries: tuple[Delivery, ...] = await self._execute(command)
        if deliveries:
            span = self._start(command, traced, started_ns)
            tracing.describe_received(span, [(each.id, each.attributes) for each in deliveries])
            span.end()
        return deliveries

    def _start(self, command: Any, traced: _Traced, started_ns: int | None = None) -> Span:
        queue = _queue_of(command)
        kind = SpanKind.PRODUCER if traced.kind == tracing.SEND else SpanKind.CLIENT
        return self._tracer.start_span(
            f"{traced.name} {queue}" if queue else traced.name,
            kind=SpanKind.INTERNAL if self._served else kind,
            attributes=tracing.about(queue, traced.kind, traced.name),
            start_time=started_ns,
        )


def _queue_of(command: Any) -> str:
    """The queue that a command is about; "" for several."""
    if type(command) is not commands.ProduceEach:
        return command.queue or ""
    queues = {queue for queue, _ in command.messages}
    return queues.pop() if len(queues) == 1 else ""


def _with_context(command: Any, member: str, context: Mapping[str, str]) -> Any:
    """A command whose messages carry this context. member: the one that has them."""
    messages, outer = getattr(command, member), tracing.carried()
    if member == "message":
        return replace(command, message=tracing.with_context(messages, context, outer))
    if type(command) is commands.ProduceEach:
        found = tuple((queue, tracing.with_context(message, context, outer)) for queue, message in messages)
    else:
        found = tuple(tracing.with_context(message, context, outer) for message in messages)
    return replace(command, **{member: found})


def _ids(command: Any, outcome: Any) -> list[str | None]:
    """The ids of the messages that a command was about; None for those that are not known."""
    if isinstance(outcome, tuple):
        return [getattr(each, "id", None) for each in outcome]
    return [getattr(outcome, "id", None) or getattr(command, "message_id", None)]
