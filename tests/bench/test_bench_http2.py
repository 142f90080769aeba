"""The load generator's HTTP/2: its frames are read by h2, and it reads what h2 writes."""

import struct

import h2.config
import h2.connection
import h2.events
import hpack
import pytest

from bench.load.http2 import END_STREAM, Http2Api, encode_request, on_stream, status_of
from bench.load.wire import WireError


@pytest.mark.parametrize("status", [200, 204, 400, 401, 404, 429, 500, 503])
@pytest.mark.parametrize("huffman", [False, True])
@pytest.mark.parametrize("table_size", [None, 0])
def test_the_status_of_any_server_s_header_block(status: int, huffman: bool, table_size: int | None):
    encoder = hpack.Encoder()
    if table_size is not None:
        encoder.header_table_size = table_size
    block = encoder.encode([(":status", str(status)), ("content-type", "text/plain")], huffman=huffman)
    assert status_of(block) == status


def test_a_block_that_does_not_begin_with_its_status():
    with pytest.raises(WireError):
        status_of(hpack.Encoder().encode([("date", "now")]))


def test_requests_are_what_a_server_understands():
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    first = b"\x82\x86\x41\x01a\x04\x01/\x40\x09x-api-key\x01k\x5f\x10application/json"
    server.receive_data(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"))
    server.receive_data(struct.pack(">IBI", len(first) << 8 | 1, 4 | END_STREAM, 1) + first)
    api = Http2Api("http://a", "k")
    ack = encode_request("POST", "/" + "x" * 200, [("x-forq-receipt", "r" * 36)])
    for stream_id, payload in ((3, api.send("q", "text")), (5, ack), (7, api.receive("q"))):
        events = server.receive_data(on_stream(payload, stream_id))
        (request,) = [event for event in events if isinstance(event, h2.events.RequestReceived)]
        headers = dict(request.headers)
        assert request.stream_id == stream_id
        assert (headers[b":authority"], headers[b"x-api-key"]) == (b"a", b"k")
        assert isinstance(events[-1], h2.events.StreamEnded)
