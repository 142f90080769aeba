"""HTTP/2 on the same port: prior knowledge, TLS with ALPN (F12); our limits and headers hold there too."""

import select
import ssl
import struct
from contextlib import suppress
from math import inf

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import pytest
import trio
import trio.testing

from forq_trio.http.message import NO_CONTENT, Response
from forq_trio.http.transport.config import TransportConfig
from support.passes import Passes
from support.transport import ERROR_BODIES, Answer, Client, echo, get, post, running

SECURITY = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
}


class Http2Client:
    """One HTTP/2 connection, spoken by h2."""

    def __init__(self, stream):
        self.stream = stream
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding=None)
        )
        self.answers: dict[int, Answer] = {}
        self.ended: set[int] = set()

    async def start(self):
        self.h2.initiate_connection()
        await self.flush()

    async def flush(self):
        await self.stream.send_all(self.h2.data_to_send())

    async def request(self, method="GET", path="/", body=b"", *, end=True) -> int:
        stream_id = self.h2.get_next_available_stream_id()
        pseudo = ((":method", method), (":scheme", "http"), (":authority", "test"), (":path", path))
        self.h2.send_headers(stream_id, pseudo, end_stream=end and not body)
        for start in range(0, len(body), 16_384):
            self.h2.send_data(stream_id, body[start : start + 16_384])
        if body and end:
            self.h2.end_stream(stream_id)
        await self.flush()
        return stream_id

    async def answer(self, stream_id: int) -> Answer:
        while stream_id not in self.ended:
            assert await self.receive(), "the connection ended instead of an answer"
        return self.answers[stream_id]

    async def receive(self) -> bool:
        data = await self.stream.receive_some()
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                headers = dict(event.headers)
                # A body of 12 MB comes in 732 frames: bytes would be copied for each.
                self.answers[event.stream_id] = Answer(int(headers[b":status"]), headers, bytearray())
            elif isinstance(event, h2.events.DataReceived):
                self.answers[event.stream_id].body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset):
                self.ended.add(event.stream_id)
        if data:
            await self.flush()
        return bool(data)


async def http2(transport) -> Http2Client:
    client = Http2Client((await transport.connect()).stream)
    await client.start()
    return client


ACK_OF_SETTINGS = bytes.fromhex("000000 04 01 00000000")
GOAWAY = bytes.fromhex("000008 07 00 00000000") + bytes(8)
DATA_OF_NO_STREAM = bytes.fromhex("000000 00 00 00000001")


@pytest.mark.parametrize("last", [ACK_OF_SETTINGS, GOAWAY, DATA_OF_NO_STREAM])
async def test_a_client_that_has_left_takes_no_connection(last: bytes):
    async with running() as transport:
        for _ in range(3):
            client = await http2(transport)
            await client.stream.send_all(last)
            await client.stream.aclose()
        while transport.server.connections:
            await trio.lowlevel.checkpoint()


async def test_prior_knowledge_many_requests_at_once():
    async with running() as transport:
        client = await http2(transport)
        streams = {
            f"/{number}": await client.request("POST", f"/{number}?q", b"body") for number in range(20)
        }
        for path, stream_id in streams.items():
            answer = await client.answer(stream_id)
            assert (answer.status, answer.body) == (200, f"POST {path}?q\nbody".encode())
            assert answer.headers.items() >= SECURITY.items()
            assert b"date" in answer.headers
            assert b"server" not in answer.headers


async def test_a_preface_that_arrives_byte_by_byte():
    async with running() as transport:
        client = Http2Client((await transport.connect()).stream)
        client.h2.initiate_connection()
        for byte in client.h2.data_to_send():
            await client.stream.send_all(bytes([byte]))
        assert (await client.answer(await client.request())).body == b"GET /?\n"


async def test_what_only_begins_like_the_preface_is_http_1():
    async with running() as transport:
        client = await transport.connect()
        await client.send(b"P")
        await client.send(post(b"x")[1:])
        assert (await client.answer()).body == b"POST /?\nx"
        other = await transport.connect()
        await other.send(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
        assert (await other.answer()).status == 400


async def test_the_preface_is_no_request_where_http2_is_off():
    async with running(config=TransportConfig(http2=False)) as transport:
        client = await transport.connect()
        await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert (await client.answer()).status == 400
        assert await client.ends() == b""
        other = await transport.connect()
        await other.send(get("/1"))
        assert (await other.answer()).body == b"GET /1?\n"


async def test_head_and_no_content():
    async def handler(request):
        return NO_CONTENT if request.path == "/none" else await echo(request)

    async with running(handler) as transport:
        client = await http2(transport)
        head = await client.answer(await client.request("HEAD", "/x"))
        assert (head.status, head.body, head.headers[b"content-length"]) == (200, b"", b"9")
        none = await client.answer(await client.request(path="/none"))
        assert none.status == 204
        assert b"content-length" not in none.headers


async def test_body_limit():
    async with running(config=TransportConfig(body_bytes_max=80_000)) as transport:
        client = await http2(transport)
        refused = await client.request("POST", "/", b"x" * 60_000, end=False)
        while client.h2.local_flow_control_window(refused) < 2 * 16_384:
            await client.receive()
        for _ in range(2):
            client.h2.send_data(refused, b"x" * 16_384)
        client.h2.end_stream(refused)
        await client.flush()
        answer = await client.answer(refused)
        assert (answer.status, answer.body) == (413, ERROR_BODIES[413])
        assert (await client.answer(await client.request())).status == 200


async def test_a_refusal_knows_what_was_asked():
    refused = []

    def refuse(*asked) -> Response:
        refused.append((*asked[:3], asked[3][b"host"]))
        return Response(asked[0])

    async def handler(request):
        raise LookupError("a defect")

    config = TransportConfig(body_bytes_max=10)
    async with running(handler, config, refuse=refuse, errors_expected=True) as transport:
        client = await http2(transport)
        assert (await client.answer(await client.request("POST", "/large?q", b"x" * 11))).status == 413
        assert (await client.answer(await client.request("GET", "/fails"))).status == 500
    assert refused == [(413, "POST", "/large", b"test"), (500, "GET", "/fails", b"test")]


async def test_slow_body():
    async with running(config=TransportConfig(body_seconds=0.1)) as transport:
        client = await http2(transport)
        assert (await client.answer(await client.request("POST", "/", b"x", end=False))).status == 408


async def test_a_failing_handler():
    async def handler(request):
        raise LookupError("a defect")

    async with running(handler, errors_expected=True) as transport:
        client = await http2(transport)
        answer = await client.answer(await client.request())
        assert (answer.status, answer.body) == (500, ERROR_BODIES[500])
        assert [type(error) for error in transport.errors] == [LookupError]


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_disconnect_cancels_a_waiting_handler(how):
    started, cancelled = trio.Event(), trio.Event()

    async def handler(request):
        async with request.cancelled_on_disconnect():
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                cancelled.set()

    async with running(handler) as transport:
        client = await http2(transport)
        stream_id = await client.request()
        await started.wait()
        if how == "reset":
            client.h2.reset_stream(stream_id)
            await client.flush()
        else:
            await client.stream.aclose()
        await cancelled.wait()


@pytest.mark.parametrize("how", ["before", "while sending", "window closed"])
async def test_an_undelivered_response_is_reported_once(how):
    started, release, unsent, reported = trio.Event(), trio.Event(), [], trio.Event()

    def on_unsent():
        unsent.append(1)
        reported.set()

    async def handler(request):
        started.set()
        await release.wait()
        return Response(200, b"x" * 1_000_000, on_unsent=on_unsent)

    async with running(handler, TransportConfig(send_seconds=0.3)) as transport:
        client = await http2(transport)
        stream_id = await client.request()
        await started.wait()
        if how == "before":
            client.h2.reset_stream(stream_id)
            await client.flush()
            await trio.testing.wait_all_tasks_blocked()
        release.set()
        if how == "while sending":
            while stream_id not in client.answers:
                await client.receive()
            await client.stream.aclose()
        await reported.wait()
    assert unsent == [1]


async def test_a_delivered_response_is_not_reported():
    unsent = []

    async def handler(request):
        return Response(200, b"x" * 200_000, on_unsent=lambda: unsent.append(1))

    async with running(handler) as transport:
        client = await http2(transport)
        assert len((await client.answer(await client.request())).body) == 200_000
        await client.stream.aclose()
    assert unsent == []


async def test_drain_lets_requests_finish():
    started, release = trio.Event(), trio.Event()

    async def handler(request):
        started.set()
        await release.wait()
        return NO_CONTENT

    async with running(handler) as transport:
        client, idle = await http2(transport), await http2(transport)
        stream_id = await client.request()
        await started.wait()
        await trio.testing.wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.server.drain, 10)
            await trio.testing.wait_all_tasks_blocked()
            release.set()
            assert (await client.answer(stream_id)).status == 204
            for ending in (client, idle):
                while await ending.receive():
                    continue


@pytest.mark.parametrize("requests", [0, 1])
async def test_an_idle_connection_is_closed(requests, mock_clock):
    config = TransportConfig()
    async with running(config=config, seconds=inf) as transport:
        client = await http2(transport)
        for _ in range(requests):
            await client.answer(await client.request())
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(config.idle_seconds + 1)
        while await client.receive():
            continue


async def test_frames_that_make_no_sense_end_only_their_connection():
    async with running() as transport:
        good, bad = await http2(transport), await http2(transport)
        assert (await bad.answer(await bad.request())).status == 200
        await bad.stream.send_all(b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x")  # DATA on stream 0
        with pytest.raises(h2.exceptions.ProtocolError):  # noqa: PT012 (until it has come)
            while await bad.receive():
                continue
            raise h2.exceptions.ProtocolError
        assert (await good.answer(await good.request())).status == 200


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream_id) + payload


PRIORITIES = b"".join(frame(2, 0, stream_id, b"\0\0\0\0\x10") for stream_id in range(1, 2_400, 2))
GO_AWAY = frame(7, 0, 0, bytes(8))


async def test_priorities_of_a_thousand_streams_end_only_their_connection():
    """Whatever a client sends is no error of the server: `running` fails for those."""
    async with running() as transport:
        good, bad = await http2(transport), await http2(transport)
        await bad.stream.send_all(PRIORITIES + GO_AWAY)
        with suppress(trio.BrokenResourceError):
            while await bad.stream.receive_some():
                continue
        assert (await good.answer(await good.request())).status == 200


async def test_a_body_that_goes_on_behind_its_answer_ends_only_its_connection():
    async with running(config=TransportConfig(body_seconds=0.05)) as transport:
        good, bad = await http2(transport), await http2(transport)
        stream_id = await bad.request("POST", body=b"x", end=False)
        assert (await bad.answer(stream_id)).status == 408
        with suppress(trio.BrokenResourceError):
            await bad.stream.send_all(frame(0, 1, stream_id, b"late") + GO_AWAY)
            while await bad.stream.receive_some():
                continue
        assert (await good.answer(await good.request())).status == 200


async def secured(transport, context, *protocols):
    if protocols:
        context.set_alpn_protocols(protocols)
    transport_stream = (await transport.connect()).stream
    stream = trio.SSLStream(transport_stream, context, server_hostname="127.0.0.1", https_compatible=True)
    await stream.do_handshake()
    return stream


async def test_tls_with_http_1(certificates):
    server_context, client_context = certificates
    async with running(ssl_context=server_context) as transport:
        stream = await secured(transport, client_context, "http/1.1")
        assert stream.selected_alpn_protocol() == "http/1.1"
        client = Client(stream)
        await client.send(get("/1") + post(b"x" * 100_000))
        assert (await client.answer()).body == b"GET /1?\n"
        assert len((await client.answer()).body) == 100_008
        await client.send(get("/", "Connection: close"))
        await client.answer()
        assert await client.ends() == b""


async def test_tls_with_http_2(certificates):
    server_context, client_context = certificates
    async with running(ssl_context=server_context) as transport:
        stream = await secured(transport, client_context, "h2", "http/1.1")
        assert stream.selected_alpn_protocol() == "h2"
        client = Http2Client(stream)
        await client.start()
        assert (await client.answer(await client.request(path="/tls"))).body == b"GET /tls?\n"


async def test_tls_long_poll_is_cancelled_by_the_disconnect(certificates):
    server_context, client_context = certificates
    started, cancelled = trio.Event(), trio.Event()

    async def handler(request):
        async with request.cancelled_on_disconnect():
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                cancelled.set()

    async with running(handler, ssl_context=server_context) as transport:
        stream = await secured(transport, client_context, "http/1.1")
        await stream.send_all(get())
        await started.wait()
        await stream.transport_stream.aclose()
        await cancelled.wait()


@pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="only Linux tells")
async def test_tls_claims_for_a_client_that_left_meanwhile_are_given_back(certificates):
    server_context, client_context = certificates
    unsent, asked, left = trio.Event(), trio.Event(), trio.Event()

    async def handler(request):
        asked.set()
        await left.wait()
        return Response(200, b"a message", on_unsent=unsent.set)

    async with running(handler, ssl_context=server_context) as transport:
        stream = await secured(transport, client_context, "http/1.1")
        await stream.send_all(get())
        await asked.wait()
        await stream.aclose()
        left.set()
        await unsent.wait()


async def test_what_is_not_tls_on_a_tls_port_is_cut(certificates):
    config = TransportConfig(header_seconds=0.1)
    async with running(config=config, ssl_context=certificates[0]) as transport:
        plain, silent = await transport.connect(), await transport.connect()
        await plain.send(get())
        assert b"HTTP/" not in await plain.ends()
        assert await silent.ends() == b""


async def test_handshakes_that_begin_at_once_take_a_pass_of_the_loop_each(certificates):
    """The first call of each has the client's first bytes: it signs, which is what takes long."""
    server_context, client_context = certificates
    passes, signed = Passes(), []
    trio.lowlevel.add_instrument(passes)

    class Counted(ssl.SSLObject):
        calls = 0

        def do_handshake(self):
            self.calls += 1
            if self.server_side and self.calls == 1:
                signed.append(passes.count)
            super().do_handshake()

    server_context.sslobject_class = Counted
    try:
        async with running(ssl_context=server_context) as transport:
            clients = [await transport.connect() for _ in range(20)]
            await trio.testing.wait_all_tasks_blocked()
            for client in clients:
                outgoing = ssl.MemoryBIO()
                hello = client_context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
                with suppress(ssl.SSLWantReadError):
                    hello.do_handshake()
                client.stream.socket._sock.send(outgoing.read())  # at once: no pass between two of them
            await trio.testing.wait_all_tasks_blocked()
            assert len(signed) == len(set(signed)) == len(clients)
    finally:
        server_context.sslobject_class = ssl.SSLObject
        trio.lowlevel.remove_instrument(passes)
