"""Spans of clients, of the server, and one trace from the send of a message to its handler."""

import json
import logging
from collections.abc import Iterator

import anyio
import httpx
import pytest
from opentelemetry.trace import SpanKind, StatusCode

from forq_trio import AsyncForqClient, ForqClient, InvalidQueueName, NewMessage, Offering
from forq_trio.client import tracing as of_clients
from forq_trio.model import limits
from forq_trio.worker import Job, Worker
from forq_trio.worker import tracing as of_workers
from support.in_process import in_process_server
from support.real_server import SECRET
from support.spans import PARENT, SPAN, TRACE, Spans, is_below, trace_of

PRODUCER, CLIENT, SERVER, INTERNAL = SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.SERVER, SpanKind.INTERNAL
SEND = "POST /api/v1/queues/{queue}/messages/batch"


@pytest.fixture
def spans(caplog: pytest.LogCaptureFixture) -> Iterator[Spans]:
    """The spans of clients and of the server; OpenTelemetry logs a context that was not left where it was entered."""
    with caplog.at_level(logging.WARNING, "opentelemetry"):
        yield Spans()
    assert caplog.records == []


@pytest.fixture
def server(spans: Spans) -> Iterator[str]:
    with in_process_server(tracer_provider=spans.provider) as url:
        yield url


@pytest.fixture
def client(server: str, spans: Spans) -> Iterator[ForqClient]:
    with ForqClient(server, SECRET) as client:
        of_clients.trace(client, spans.provider)
        yield client


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_one_trace_leads_from_the_send_through_the_server_to_the_handler(
    server: str, client: ForqClient, spans: Spans, backend: str
) -> None:
    async def work() -> None:
        async with AsyncForqClient(server, SECRET) as of_worker:
            of_clients.trace(of_worker, spans.provider)
            app = Worker(of_worker, presence=False)
            of_workers.trace(app, spans.provider)

            @app.on("orders")
            async def handle(order: str, job: Job) -> None:
                if order == "first":
                    await app.send("parcels", "second")

            @app.on("parcels")
            async def pack(parcel: str) -> None: ...

            await app.drain()

    with spans.tracer.start_as_current_span("of the program") as program:
        sent = client.produce("orders", "first")
    anyio.run(work, backend=backend)

    send, stored = spans.one("send orders", PRODUCER), spans.one("send orders", INTERNAL)
    (request,) = [each for each in spans.named(SEND) if is_below(each, send)]
    process, again = spans.one("process orders"), spans.one("process parcels")
    assert is_below(send, program)
    assert is_below(stored, request)
    assert is_below(process, send)
    onward = spans.one("send parcels", PRODUCER)
    assert is_below(onward, process)
    assert is_below(again, onward)
    assert {trace_of(each) for each in (program, send, request, stored, process, again)} == {
        trace_of(program)
    }
    assert send.start_time <= request.start_time <= stored.start_time
    assert stored.end_time <= request.end_time <= send.end_time
    assert send.attributes == {
        "messaging.system": "forq",
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": "orders",
        "messaging.message.id": sent.id,
    }
    assert request.kind is SERVER
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/api/v1/queues/{queue}/messages/batch",
        "url.path": "/api/v1/queues/orders/messages/batch",
        "client.address": "127.0.0.1",
        "http.response.status_code": 200,
    }
    received = [each for each in spans.named("receive orders") if each.links]
    assert {each.kind for each in received} == {CLIENT, INTERNAL}
    assert {each.links[0].context.span_id for each in received} == {send.context.span_id}
    assert {each.attributes["messaging.message.id"] for each in received} == {sent.id}
    assert {each.attributes["messaging.operation.type"] for each in spans.named("ack orders")} == {"settle"}


def test_a_sender_without_spans_of_ours_is_followed_by_its_header(server: str, spans: Spans) -> None:
    headers = {"X-API-Key": SECRET, **PARENT, "tracestate": "vendor=1"}
    with httpx.Client(base_url=f"{server}/api/v1/queues/q", headers=headers, verify=False) as http:
        assert http.post("/messages", json={"content": "x"}).status_code == 204
        message = http.get("/messages", headers={"X-Forq-Answer": "full"}).json()
    stored = spans.one("send q")
    assert trace_of(stored) == TRACE
    assert message["attributes"]["traceparent"].startswith(f"00-{TRACE}-")
    assert message["attributes"]["traceparent"] != PARENT["traceparent"]
    assert message["attributes"]["tracestate"] == "vendor=1"
    request = spans.one("POST /api/v1/queues/{queue}/messages")
    assert f"{request.parent.span_id:016x}" == SPAN
    assert is_below(stored, request)


def test_what_the_sender_says_has_priority(client: ForqClient) -> None:
    full = {f"a{number}": "x" for number in range(10)}
    nearly = {f"a{number}": "x" for number in range(9)}
    messages = [NewMessage("x", attributes=each) for each in (PARENT, full, nearly, None)]
    client.produce_many("q", messages)
    own, tenth, ninth, none = [each.attributes for each in client.receive("q", max_messages=4)]
    assert (own, tenth) == (PARENT, full)
    assert ninth.keys() == nearly.keys() | {"traceparent"}
    assert none.keys() == {"traceparent"}


def test_each_kind_of_call_has_its_spans(client: ForqClient, spans: Spans) -> None:
    client.configure("q", max_attempts=5)
    client.produce_many("q", [NewMessage("x"), NewMessage("y"), NewMessage("z", delay_ms=-1)])
    client.offer("q", "k", "o")
    client.offer_many("q", [Offering("p", key="l")])
    one, two, *rest = client.receive("q", max_messages=10)
    client.nack("q", one, delay_ms=60_000)
    client.release("q", [two])
    client.discard("q", rest, reason="useless")
    client.receive("q", wait_ms=0)
    client.queues()
    found = {(span.name, span.kind) for span in spans.ended if span.kind is not SERVER}
    names = {name for name, _ in found}
    assert names == {"send q", "offer q", "receive q", "nack q", "release q", "discard q"}
    assert {kind for name, kind in found if name in ("send q", "offer q")} == {PRODUCER, INTERNAL}
    assert {kind for name, kind in found if name not in ("send q", "offer q")} == {CLIENT, INTERNAL}
    assert len(spans.named("offer q")) == 4
    (sent,) = [span for span in spans.named("send q") if span.kind is PRODUCER]
    assert sent.attributes["messaging.batch.message_count"] == 3
    assert {each.attributes["messaging.batch.message_count"] for each in spans.named("discard q")} == {2}
    assert {len(each.links) for each in spans.named("receive q")[:2]} == {4}
    assert {span.status.status_code for span in spans.ended} == {StatusCode.UNSET}


def test_a_refusal_is_the_error_of_its_span(client: ForqClient, spans: Spans) -> None:
    with pytest.raises(InvalidQueueName):
        client.produce("not a queue", "x")
    span = spans.one("send not a queue")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "InvalidQueueName"
    assert [event.name for event in span.events] == ["exception"]


def test_a_long_poll_ends_its_spans_when_its_message_comes(
    client: ForqClient, server: str, spans: Spans
) -> None:
    client.configure("q", max_attempts=5)

    async def receive_and_send() -> None:
        async with AsyncForqClient(server, SECRET) as waiting, anyio.create_task_group() as tasks:
            tasks.start_soon(waiting.receive, "q")
            while not (await waiting.queue_stats("q")).waiting:
                await anyio.lowlevel.checkpoint()
            await waiting.produce("q", "x")

    anyio.run(receive_and_send)
    requests = spans.named("POST /api/v1/queues/{queue}/messages/receive")
    assert len(requests) == 1
    received = spans.one("receive q")
    assert is_below(received, requests[0])
    assert received.links[0].context.span_id == spans.one("send q").context.span_id


def test_probes_have_no_spans(server: str, client: ForqClient, spans: Spans) -> None:
    client.healthcheck()
    assert spans.ended == ()


def test_a_client_that_is_not_traced_tells_nothing(server: str, spans: Spans) -> None:
    with ForqClient(server, SECRET) as client, spans.tracer.start_as_current_span("of the program"):
        client.produce("q", "x")
    (request,) = spans.named(SEND)
    assert request.parent is None
    assert json.loads(request.to_json())["kind"] == "SpanKind.SERVER"


def test_a_request_that_begins_again_in_a_task_has_one_span(client: ForqClient, spans: Spans) -> None:
    """Long bodies are read in slices, between which other tasks run: what runs in place is given up for that."""
    content = "x" * 1_000
    messages = [NewMessage(content) for _ in range(2 * limits.READ_SLICE_BYTES // len(content))]
    client.produce_many("q", messages)
    (request,) = spans.named(SEND)
    assert "error.type" not in request.attributes
    stored = [span for span in spans.named("send q") if span.kind is INTERNAL]
    assert [is_below(span, request) for span in stored] == [True]


def test_a_long_poll_of_a_client_that_leaves_ends_its_span(
    client: ForqClient, server: str, spans: Spans
) -> None:
    client.configure("q", max_attempts=5)
    name = "POST /api/v1/queues/{queue}/messages/receive"

    async def receive_and_leave() -> None:
        async with AsyncForqClient(server, SECRET) as leaving, anyio.create_task_group() as tasks:
            of_clients.trace(leaving, spans.provider)
            tasks.start_soon(leaving.receive, "q")
            while not (await leaving.queue_stats("q")).waiting:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    anyio.run(receive_and_leave)
    while not (ended := [span for span in spans.named(name) if "error.type" in span.attributes]):
        client.healthcheck()
    (left,) = ended
    received = spans.one("receive q")
    assert left.attributes["error.type"] == received.attributes["error.type"] == "cancelled"
    assert left.status.status_code is received.status.status_code is StatusCode.UNSET
    assert is_below(left, received)
