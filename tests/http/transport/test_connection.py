"""HTTP/1.1 over real sockets: order, persistence, limits, errors (F9, F12)."""

import os
import resource

import pytest
import trio
import trio.testing

from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.transport.config import TransportConfig, refuse_without_body
from support.garbage import without_collections
from support.transport import ERROR_BODIES, Client, chunked, echo, get, post, running

SECURITY = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
}


async def test_keep_alive_and_bodies():
    async with running() as transport:
        client = await transport.connect()
        for request, body in (
            (get("/a?b=c"), b"GET /a?b=c\n"),
            (post(b"x" * 200_000), b"POST /?\n" + b"x" * 200_000),
            (chunked(b"ab", b"cd"), b"POST /?\nabcd"),
        ):
            await client.send(request)
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, body)
            assert answer.headers.items() >= SECURITY.items()
            assert b"connection" not in answer.headers
        assert transport.server.connections == 1


async def test_byte_by_byte_over_a_socket():
    async with running() as transport:
        client = await transport.connect()
        for byte in post(b"body") + get("/next"):
            await client.send(bytes([byte]))
        assert (await client.answer()).body == b"POST /?\nbody"
        assert (await client.answer()).body == b"GET /next?\n"


async def test_pipelined_requests_are_handled_one_after_the_other():
    under_way, most, order = 0, 0, []

    async def handler(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(
            5 - int(request.path[1:]) % 5
        ):  # Later ones would overtake earlier ones if they could.
            await trio.lowlevel.checkpoint()
        order.append(request.path)
        under_way -= 1
        return Response(200, request.path.encode())

    async with running(handler) as transport:
        client = await transport.connect()
        paths = [f"/{number}" for number in range(200)]
        await client.send(b"".join(map(get, paths)))
        assert [(await client.answer()).body.decode() for _ in paths] == paths
        assert order == paths
        assert most == 1


async def test_few_requests_are_parsed_ahead():
    parsed = []

    async def handler(request):
        parsed.append(len(alive()))
        return NO_CONTENT

    with without_collections(Request) as alive:
        async with running(handler, TransportConfig(pipelined_requests_max=3)) as transport:
            client = await transport.connect()
            await client.send(get() * 20)
            assert [(await client.answer()).status for _ in range(20)] == [204] * 20
    assert 1 <= max(parsed) <= 3


async def test_nothing_is_read_while_a_handler_works():
    """Back-pressure: a client that sends without reading answers is stopped by its own full socket."""
    release = trio.Event()

    async def handler(request):
        await release.wait()
        return NO_CONTENT

    async with running(handler) as transport, trio.open_nursery() as nursery:
        client = await transport.connect()
        await client.send(get())
        stalled = trio.Event()

        async def flood():
            for _ in range(2_000):
                with trio.move_on_after(0.2) as patience:
                    await client.send(get() * 1_000)
                if patience.cancelled_caught:
                    stalled.set()
                    return

        nursery.start_soon(flood)
        await stalled.wait()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_close_is_honoured(version):
    async with running() as transport:
        client = await transport.connect()
        await client.send(get("/1", "Connection: close", version=version) + get("/2"))
        answer = await client.answer()
        assert answer.headers[b"connection"] == b"close"
        assert await client.ends() == b""


async def test_http_1_0():
    async with running() as transport:
        client = await transport.connect()
        await client.send(b"GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert (await client.answer()).headers[b"connection"] == b"keep-alive"
        await client.send(b"GET /2 HTTP/1.0\r\n\r\n")
        assert (await client.answer()).headers[b"connection"] == b"close"
        assert await client.ends() == b""


async def test_head_is_dispatched_and_answered_without_its_body():
    async with running() as transport:
        client = await transport.connect()
        await client.send(get("/x").replace(b"GET", b"HEAD") + get("/y"))
        head = await client.answer("HEAD")
        assert head.headers[b"content-length"] == b"%d" % len(b"HEAD /x?\n")
        assert head.body == b""
        assert (await client.answer()).body == b"GET /y?\n"


async def test_expect_100_continue():
    async with running() as transport:
        client = await transport.connect()
        await client.send(post(b"1234", "Expect: 100-continue")[:-4])
        interim = b""
        while not interim.endswith(b"\r\n\r\n"):
            interim += await client.stream.receive_some()
        assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"1234")
        assert (await client.answer()).body == b"POST /?\n1234"


async def test_no_continue_for_a_body_that_came_along():
    async with running() as transport:
        client = await transport.connect()
        await client.send(post(b"1234", "Expect: 100-continue"))
        assert (await client.answer()).informational == ()


REFUSALS = {
    "length announced": (post(b"x" * 11, "Expect: 100-continue")[:-11], 413),
    "chunks": (chunked(b"x" * 6, b"x" * 6), 413),
    "expectation": (get("/", "Expect: more"), 417),
    "malformed": (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "smuggled": (post(b"x", "Transfer-Encoding: chunked"), 400),
    "long head": (get("/", "A: " + "x" * 20_000), 431),
    "many headers": (get("/", *(f"A{number}: b" for number in range(100))), 431),
    "long target": (get("/" + "x" * 9_000), 414),
}


async def test_refusals_are_answered_and_close():
    async with running(config=TransportConfig(body_bytes_max=10)) as transport:
        for name, (request, status) in REFUSALS.items():
            client = await transport.connect()
            await client.send(get("/first") + request)
            assert (await client.answer()).body == b"GET /first?\n"
            answer = await client.answer()
            answered = answer.status, answer.body, answer.informational
            assert answered == (status, ERROR_BODIES[status], ()), name
            assert answer.headers.items() >= {b"connection": b"close", **SECURITY}.items()
            assert await client.ends() == b"", name


async def test_an_answer_is_not_lost_to_a_body_still_under_way():
    """A client that reads only after it has sent everything gets the 413, not a reset."""
    async with running(config=TransportConfig(body_bytes_max=10)) as transport:
        client = await transport.connect()
        await client.send(post(b"x" * 3_000_000))
        assert (await client.answer()).status == 413


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"nonsense\r\n\r\n", (400, "", "")),
        (get("/first") + b"nonsense\r\n\r\n", (400, "", "")),
        (get("/long", "X: " + "x" * 1_000), (431, "GET", "/long")),
        (get("/first") + post(b"x" * 11, path="/large?q"), (413, "POST", "/large")),
        (chunked(b"x" * 11).replace(b"POST /", b"POST /chunks"), (413, "POST", "/chunks")),
        (get("/fails"), (500, "GET", "/fails")),
    ],
)
async def test_a_refusal_knows_what_was_asked(sent: bytes, told: tuple[int, str, str]):
    refused = []

    def refuse(*asked) -> Response:
        refused.append((*asked[:3], asked[3].get(b"host")))
        return Response(asked[0])

    async def handler(request):
        if request.path == "/fails":
            raise LookupError("a defect")
        return await echo(request)

    config = TransportConfig(body_bytes_max=10, header_bytes_max=1_000, uri_bytes_max=500)
    async with running(handler, config, refuse=refuse, errors_expected=True) as transport:
        client = await transport.connect()
        await client.send(sent)
        if sent.startswith(get("/first")):
            assert (await client.answer()).status == 200
        assert (await client.answer()).status == told[0]
    assert refused == [(*told, b"test" if told[1] else None)]


async def test_a_refusal_without_a_body():
    async with running(refuse=refuse_without_body) as transport:
        client = await transport.connect()
        await client.send(b"nonsense\r\n\r\n")
        answer = await client.answer()
        assert (answer.status, answer.body) == (400, b"")


async def test_a_failing_handler_is_answered_500_and_the_connection_goes_on():
    async def handler(request):
        if request.path == "/bad":
            raise LookupError("a defect")
        return await echo(request)

    async with running(handler, errors_expected=True) as transport:
        client = await transport.connect()
        await client.send(get("/bad") + get("/good"))
        answer = await client.answer()
        assert (answer.status, answer.body) == (500, ERROR_BODIES[500])
        assert (await client.answer()).body == b"GET /good?\n"
        assert [type(error) for error in transport.errors] == [LookupError]


async def test_a_response_that_cannot_be_encoded_is_reported_and_unsent():
    unsent = []

    async def handler(request):
        return Response(200, headers=((b"a", b"b\r\nc"),), on_unsent=lambda: unsent.append(1))

    async with running(handler, errors_expected=True) as transport:
        client = await transport.connect()
        await client.send(get())
        assert await client.ends() == b""
        assert unsent == [1]
        assert [type(error) for error in transport.errors] == [ValueError]


async def test_one_bad_connection_leaves_the_others_alone():
    async with running() as transport:
        good, bad = await transport.connect(), await transport.connect()
        await bad.send(b"\0\0\0\0")
        assert (await bad.answer()).status == 400
        await good.send(get())
        assert (await good.answer()).status == 200


async def test_connection_cap():
    async with running(config=TransportConfig(connections_max=2)) as transport:
        first, second = await transport.connect(), await transport.connect()
        for client in (first, second):
            await client.send(get())
            assert (await client.answer()).status == 200
        third = await transport.connect()
        answer = await third.answer()
        assert answer.status == 503
        assert answer.headers.items() >= {b"connection": b"close", **SECURITY}.items()
        assert await third.ends() == b""
        await first.send(get())
        assert (await first.answer()).status == 200


async def test_running_out_of_file_descriptors_only_delays_new_connections():
    async with running() as transport:
        client_socket = trio.socket.socket()
        client = Client(trio.SocketStream(client_socket))
        transport.clients.append(client)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        next_descriptor = os.dup(0)
        os.close(next_descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor, limits[1]))
        try:
            await client_socket.connect(("127.0.0.1", transport.port))
            await client.send(get())
            await trio.testing.wait_all_tasks_blocked(cushion=0.01)
            assert transport.server.connections == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert (await client.answer()).status == 200


async def test_the_client_address_is_told():
    async def handler(request):
        return Response(200, request.client.encode())

    async with running(handler) as transport:
        client: Client = await transport.connect()
        await client.send(get())
        assert (await client.answer()).body == b"127.0.0.1"


async def test_an_error_beside_a_cancellation_is_reported_and_ends_nothing_else():
    async def fails_in_the_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise LookupError("a defect")

    async def handler(request):
        if request.path == "/wait":
            async with request.cancelled_on_disconnect(), trio.open_nursery() as nursery:
                nursery.start_soon(fails_in_the_end)
        return NO_CONTENT

    async with running(handler, errors_expected=True) as transport:
        client = await transport.connect()
        await client.send(get("/wait"))
        await client.arrived()
        await client.close()
        await transport.until_nobody_is_connected()
        other = await transport.connect()
        await other.send(get())
        assert (await other.answer()).status == 204
        assert len(transport.errors) == 1


async def test_a_wait_that_begins_when_the_connection_is_cut():
    started, go_on = trio.Event(), trio.Event()

    async def handler(request):
        with trio.CancelScope(shield=True):
            started.set()
            await go_on.wait()
            async with request.cancelled_on_disconnect():
                pass
        return NO_CONTENT

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(get())
        await started.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.server.drain, 0)
            await trio.testing.wait_all_tasks_blocked()
            go_on.set()
