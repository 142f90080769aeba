"""HTTP over TLS: what a client may send, and how it may leave."""

import socket
import ssl
import struct
from contextlib import suppress

import pytest
import trio

from forq_trio.http.message import Response
from forq_trio.http.transport import tls_socket
from forq_trio.http.transport.poller import Later, Poller
from support.transport import Client, get, post, running

KIB = 1_024


class TlsClient:
    """Encrypts in memory, so that the test decides which bytes go when."""

    def __init__(self, client: Client, context: ssl.SSLContext) -> None:
        self.client = client
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")

    def hello(self) -> bytes:
        """The first bytes of the handshake."""
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._outgoing.read()

    async def shake_hands(self) -> None:
        await self.client.send(await self.last_flight())

    async def last_flight(self) -> bytes:
        """What ends the handshake, not sent yet."""
        await self.client.send(self.hello())
        while True:
            self._incoming.write(await self.client.stream.receive_some())
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                continue
            return self._outgoing.read()

    def encrypted(self, data: bytes) -> bytes:
        """A record."""
        self._tls.write(data)
        return self._outgoing.read()

    async def received(self) -> bytes:
        """What the server says next, decrypted; b"" at its end."""
        while True:
            try:
                return self._tls.read(64 * KIB)
            except ssl.SSLWantReadError:
                more = await self.client.stream.receive_some()
                if more:
                    self._incoming.write(more)
                else:
                    self._incoming.write_eof()


async def echo_length(request) -> Response:
    return Response(200, b"%d" % len(request.body))


async def test_records_of_one_byte_take_no_more_memory_than_plain_bytes(certificates, monkeypatch):
    """And no more than one place among what is done later."""
    most = {"bytes": 0, "later": 0}
    take = tls_socket.TlsSocket._decrypt
    later = Poller.later

    def measured(self) -> None:
        most["bytes"] = max(most["bytes"], self._incoming.pending)
        take(self)

    def counted(self, kind, call) -> None:
        later(self, kind, call)
        most["later"] = max(most["later"], len(self._waiting[Later.PORTION]))

    monkeypatch.setattr(tls_socket.TlsSocket, "_decrypt", measured)
    monkeypatch.setattr(Poller, "later", counted)
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        client = TlsClient(await transport.connect(), certificates[1])
        await client.shake_hands()
        body = b"x" * 20_000
        whole = post(body)
        head = whole[: -len(body)]
        sent = client.encrypted(head) + b"".join(client.encrypted(b"x") for _ in body)
        await client.client.send(sent)
        assert (await client.received()).endswith(b"\r\n\r\n20000")
    assert most["bytes"] <= 64 * KIB + 16 * KIB + 512
    assert most["later"] == 1


async def test_a_client_that_resets_in_the_handshake_is_no_error(certificates):
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        for _ in range(5):
            client = await transport.connect()
            await client.send(TlsClient(client, certificates[1]).hello())
            client.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.stream.socket.close()
            await transport.until_nobody_is_connected()
        assert transport.errors == []


async def test_a_client_that_does_not_speak_tls_is_cut(certificates):
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        client = await transport.connect()
        await client.send(get())
        assert not (await client.ends()).startswith(b"HTTP")


async def test_a_handshake_may_come_byte_by_byte(certificates):
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        client = TlsClient(await transport.connect(), certificates[1])
        send = client.client.send

        async def trickle(data: bytes) -> None:
            for byte in data:
                await send(bytes([byte]))

        client.client.send = trickle
        await client.shake_hands()
        await trickle(client.encrypted(get()) + client.encrypted(get()))
        assert (await client.received()).endswith(b"\r\n\r\n0")


def looks_like_a_long_record(data: bytes) -> bool:
    """Whether these bytes, in the middle of a record, could begin one that is longer than what follows."""
    length = tls_socket.RECORD_HEAD_BYTES + int.from_bytes(data[3:5])
    return data[0] in tls_socket.RECORD_KINDS and len(data) + KIB < length <= tls_socket.RECORD_BYTES_MAX


async def test_the_last_flight_may_be_cut_in_any_record(certificates, monkeypatch):
    """It stalled where the rest looked like a long record: one of two records came with the first part."""
    taken, first_part_taken = 0, trio.Event()
    take = tls_socket.TlsSocket._take_record

    def counted(self, data) -> None:
        nonlocal taken
        take(self, data)
        taken += len(data)
        if taken == expected:
            first_part_taken.set()

    async with running(echo_length, ssl_context=certificates[0]) as transport:
        cuts: list[int] = []
        while not cuts:  # what is encrypted is random: about a third have such a place
            client = TlsClient(await transport.connect(), certificates[1])
            flight = await client.last_flight()
            second = tls_socket.RECORD_HEAD_BYTES + int.from_bytes(flight[3:5])
            cuts = [at for at in range(second + 1, len(flight) - 5) if looks_like_a_long_record(flight[at:])]
        expected = cuts[0]
        monkeypatch.setattr(tls_socket.TlsSocket, "_take_record", counted)
        await client.client.send(flight[: cuts[0]])
        await first_part_taken.wait()
        await client.client.send(flight[cuts[0] :] + client.encrypted(get()))
        assert (await client.received()).endswith(b"\r\n\r\n0")


@pytest.mark.parametrize("how", ["with a good-bye", "without one"])
async def test_a_client_that_ends_is_answered_first(certificates, how):
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        client = TlsClient(await transport.connect(), certificates[1])
        await client.shake_hands()
        last = client.encrypted(get())
        if how == "with a good-bye":
            with suppress(ssl.SSLError):
                client._tls.unwrap()
            last += client._outgoing.read()
        await client.client.send(last)
        await client.client.stream.send_eof()
        assert (await client.client.ends()) != b""
        await transport.until_nobody_is_connected()


async def test_a_hello_in_several_records_has_its_place_among_the_handshakes_too(certificates, monkeypatch):
    """Its last record is what takes long to answer."""
    steps: list[Later] = []
    later = Poller.later

    def noted(self, kind, call) -> None:
        steps.append(kind)
        later(self, kind, call)

    monkeypatch.setattr(Poller, "later", noted)
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        client = TlsClient(await transport.connect(), certificates[1])
        hello = client.hello()
        head, content = hello[:3], hello[5:]
        for part in (content[:1], content[1:]):
            await client.client.send(head + len(part).to_bytes(2) + part)
            await client.client.arrived()
    assert steps.count(Later.HANDSHAKE) == 2


async def test_a_record_longer_than_any_is_not_waited_for(certificates):
    async with running(echo_length, ssl_context=certificates[0]) as transport:
        client = await transport.connect()
        await client.send(b"\x16\x03\x01\xff\xff" + bytes(100))
        await client.ends()
        await transport.until_nobody_is_connected()
