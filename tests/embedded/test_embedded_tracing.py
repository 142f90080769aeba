"""Spans of embedded brokers, whose senders and receivers are in the same process."""

import asyncio

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode

from forq_trio import NewMessage, QueueFull, open_blocking_broker, open_broker
from forq_trio.broker.tracing import trace
from forq_trio.worker import Worker
from forq_trio.worker.tracing import trace as trace_worker
from support.spans import Spans, is_below


@pytest.fixture
def spans() -> Spans:
    return Spans()


def test_a_send_is_the_parent_of_its_handler(spans: Spans) -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            trace(broker, spans.provider)
            app = Worker(broker)
            trace_worker(app, spans.provider)

            @app.on("q")
            async def handle(content: str) -> None:
                await app.send("p", content)

            @app.on("p")
            async def pack(content: str) -> None: ...

            with spans.tracer.start_as_current_span("of the program"):
                await broker.produce("q", "x")
            await app.drain()

    trio.run(main)
    program, send = spans.one("of the program"), spans.one("send q")
    assert is_below(send, program)
    process, onward = spans.one("process q"), spans.one("send p")
    assert is_below(process, send)
    assert is_below(onward, process)
    assert is_below(spans.one("process p"), onward)
    assert (send.kind, spans.one("receive q").kind) == (SpanKind.PRODUCER, SpanKind.CLIENT)


def test_spans_of_callers_are_the_parents_under_asyncio_and_in_threads(spans: Spans) -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            trace(broker, spans.provider)
            with spans.tracer.start_as_current_span("of a task"):
                await broker.produce("a", "x")

    asyncio.run(main())
    with open_blocking_broker("memory:") as broker:
        trace(broker, spans.provider)
        with spans.tracer.start_as_current_span("of a thread"):
            broker.produce("b", "x")
    assert is_below(spans.one("send a"), spans.one("of a task"))
    assert is_below(spans.one("send b"), spans.one("of a thread"))


def test_a_refused_send_and_one_to_several_queues(spans: Spans) -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            trace(broker, spans.provider)
            await broker.configure("full", max_messages=1)
            await broker.produce("full", "x")
            with pytest.raises(QueueFull):
                await broker.produce("full", "y")
            await broker.produce_across([("a", NewMessage("x")), ("b", NewMessage("y"))])
            for queue in ("a", "b"):
                (delivery,) = await broker.receive(queue)
                assert delivery.attributes.keys() == {"traceparent"}

    trio.run(main)
    stored, refused = spans.named("send full")
    assert (stored.status.status_code, refused.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
    assert refused.attributes["error.type"] == "QueueFull"
    across = spans.one("send")
    assert across.attributes["messaging.batch.message_count"] == 2
    links = [each.links[0].context.span_id for each in spans.ended if each.links]
    assert links == [across.context.span_id] * 2


def test_an_empty_receive_has_no_span(spans: Spans) -> None:
    with open_blocking_broker("memory:") as broker:
        trace(broker, spans.provider)
        assert broker.receive("q", wait_ms=0) == []
    assert spans.ended == ()
