"""Spans and metrics of a worker, as OpenTelemetry's own SDK and Prometheus' own client see them."""

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest

from forq_trio.worker import DeadLetter, Discard, Retry, Worker
from forq_trio.worker.metrics import measure
from forq_trio.worker.tracing import current_trace, trace
from support.spans import PARENT, SPAN, TRACE, Spans


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def app(face, spans) -> Worker:
    app = Worker(face.methods)
    trace(app, spans.provider)
    return app


async def test_a_message_has_a_span_with_queue_and_id_below_its_sender(face, app, spans) -> None:
    inside = []

    @app.on("emails")
    async def handle(mail: str) -> None:
        inside.append(current_trace()["traceparent"])

    sent = await face.methods.produce("emails", "x", attributes=PARENT)
    await app.drain()
    (span,) = spans.ended
    assert (span.name, span.kind) == ("process emails", SpanKind.CONSUMER)
    assert format_trace_id(span.context.trace_id) == TRACE
    assert format_span_id(span.parent.span_id) == SPAN
    assert inside[0].startswith(f"00-{TRACE}-{format_span_id(span.context.span_id)}-")
    assert dict(span.attributes) == {
        "messaging.system": "forq",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": "emails",
        "messaging.message.id": sent.id,
        "forq.attempt": 1,
        "forq.outcome": "ack",
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_a_parent_that_cannot_be_read_starts_a_trace(face, app, spans) -> None:
    @app.on("emails")
    async def handle(mail: str) -> None: ...

    headers = ["", "00-x-y-01", f"00-{TRACE}-{SPAN}-01\r\nX: y", "0" * 1_024]
    for header in headers:
        await face.methods.produce("emails", "x", attributes={"traceparent": header, "tracestate": "=;,"})
    with spans.tracer.start_as_current_span("of the program"):
        await app.drain()
    *handled, _ = spans.ended
    assert [span.parent for span in handled] == [None] * len(headers)


RESULTS = (
    (Discard("old"), "discard", None),
    (DeadLetter("bad"), "dead", "bad"),
    (Retry(5, "busy"), "nack", "busy"),
    (ValueError("no"), "nack", "ValueError: no"),
    (KeyError("k"), "dead", "KeyError: 'k'"),
)


async def test_a_span_says_what_became_of_the_message(face, app, spans) -> None:
    @app.on("emails", dead=(KeyError,), concurrency=1)
    async def handle(number: int) -> None:
        raise RESULTS[number][0]

    for number in range(len(RESULTS)):
        await face.methods.produce("emails", str(number))
    await app.drain()
    for span, (result, outcome, problem) in zip(spans.ended, RESULTS, strict=True):
        assert span.attributes["forq.outcome"] == outcome
        assert span.status.description == problem
        assert len(span.events) == isinstance(result, (ValueError, KeyError))


async def test_each_message_of_a_batch_has_its_span(face, app, spans) -> None:
    @app.on("emails", batch=3)
    async def handle(mails: list[str]) -> list[object]:
        return [None, Discard("old"), ValueError("no")]

    for number in range(3):
        await face.methods.produce("emails", str(number), attributes=PARENT if number == 1 else None)
    await app.drain()
    assert [span.attributes["forq.outcome"] for span in spans.ended] == ["ack", "discard", "nack"]
    assert [span.parent is not None for span in spans.ended] == [False, True, False]


async def test_a_handler_that_is_cancelled_ends_its_span(face, app, spans) -> None:
    @app.on("emails", timeout=0.05)
    async def handle(mail: str) -> None:
        await trio.sleep_forever()

    await face.methods.produce("emails", "x")
    with trio.fail_after(9):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.drain)
            while not spans.ended:
                await trio.testing.wait_all_tasks_blocked()
                trio.lowlevel.current_clock().jump(0.1)
    (span,) = spans.ended
    assert span.attributes["forq.outcome"] == "interrupted"
    assert span.status.status_code is StatusCode.ERROR


async def test_what_a_handler_sends_continues_its_trace(face, app, spans) -> None:
    @app.on("emails")
    async def handle(mail: str) -> None:
        await app.send("parcels", mail, attributes={"region": "eu"})
        await pack.later(mail, key="k", attributes={"traceparent": "mine"})

    @app.on("parcels")
    async def pack(parcel: str) -> None: ...

    received = []

    @app.middleware
    async def look(job, call_next):
        received.append(job.attributes)
        return await call_next()

    await face.methods.produce("emails", "x")
    await app.drain()
    (first,) = (span for span in spans.ended if span.name == "process emails")
    header = f"00-{format_trace_id(first.context.trace_id)}-{format_span_id(first.context.span_id)}-"
    assert received[0] == {}
    (added,) = (attributes for attributes in received if "region" in attributes)
    assert (added["region"], added["traceparent"][: len(header)]) == ("eu", header)
    assert {"traceparent": "mine"} in received
    others = [span.parent for span in spans.ended if span.name == "process parcels"]
    assert sorted(parent is not None for parent in others) == [False, True]


async def test_attributes_of_the_sender_need_no_room_for_the_trace(face, app, spans) -> None:
    full = {f"a{number}": "x" for number in range(10)}
    with spans.tracer.start_as_current_span("of the program"):
        await app.send("emails", "x", attributes=full)
    (sent,) = await face.methods.peek("emails")
    assert sent.attributes == full


async def test_metrics_count_messages_and_time_handlers(face) -> None:
    registry = CollectorRegistry()
    app = Worker(face.methods)
    measure(app, registry)

    @app.on("emails", concurrency=7)
    async def handle(number: int) -> None:
        running.append(registry.get_sample_value("forq_handler_running", {"queue_name": "emails"}))
        if number == 2:
            raise Discard("old")
        if number == 3:
            raise DeadLetter("bad")
        if number == 4:
            raise Retry(60)

    running: list[float | None] = []
    for content in ("1", "2", "3", "4", "no number", "5"):
        await face.methods.produce("emails", content)
    await app.drain()

    def count(outcome: str) -> float | None:
        labels = {"queue_name": "emails", "outcome": outcome}
        return registry.get_sample_value("forq_handler_messages_total", labels)

    counts = {each: count(each) for each in ("handled", "failed", "discarded", "dead", "lost")}
    assert counts == {"handled": 2, "failed": 1, "discarded": 1, "dead": 2, "lost": 0}
    of_queue = {"queue_name": "emails"}
    assert registry.get_sample_value("forq_handler_seconds_count", of_queue) == 5
    assert registry.get_sample_value("forq_handler_slots", of_queue) == 7
    assert registry.get_sample_value("forq_handler_running", of_queue) == 0
    assert max(running) >= 1
    with pytest.raises(ValueError, match="forq_handler_seconds"):
        measure(Worker(face.methods), registry)


async def test_the_trace_of_a_message_is_an_exemplar_of_how_long_its_handler_took(face) -> None:
    registry = CollectorRegistry()
    app = Worker(face.methods)
    measure(app, registry)

    @app.on("emails")
    async def handle(mail: str) -> None: ...

    await face.methods.produce("emails", "untraced")
    await app.drain()
    assert b"trace_id" not in generate_latest(registry)
    await face.methods.produce("emails", "traced", attributes=PARENT)
    await app.drain()
    (line,) = [each for each in generate_latest(registry).decode().splitlines() if "trace_id" in each]
    assert line.startswith('forq_handler_seconds_bucket{le="0.005",queue_name="emails"} 2.0 # ')
    assert f'{{trace_id="{TRACE}"}}' in line


async def test_a_state_of_the_trace_travels_with_it(face, app, spans) -> None:
    inside = []

    @app.on("emails")
    async def handle(mail: str) -> None:
        inside.append(current_trace()["tracestate"])

    await face.methods.produce("emails", "x", attributes=PARENT | {"tracestate": "vendor=1"})
    await app.drain()
    assert inside == ["vendor=1"]
