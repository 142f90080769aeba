"""Requests as bytes, and answers scanned whole and cut short at every byte."""

import json

import pytest

from bench.load.api import Api, Delivered, decode_batch, decode_message
from bench.load.wire import Response, WireError, encode_request, scan_response

ANSWERS = {
    "no content": (b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", Response(204, b"")),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Response(200, b"hello")),
    "length first in lower case": (
        b"HTTP/1.1 404 Not Found\r\ncontent-length:2\r\nA: b\r\n\r\n{}",
        Response(404, b"{}"),
    ),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Response(200, b"")),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\n\r\n", Response(304, b"")),
    "chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        Response(200, b"abc0123456789"),
    ),
}


@pytest.mark.parametrize(("data", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_is_read_once_it_is_whole_and_not_a_byte_earlier(data, expected):
    for end in range(len(data)):
        assert scan_response(data[:end]) is None
    assert scan_response(data) == (expected, len(data))
    assert scan_response(data + b"HTTP/1.1 204") == (expected, len(data))


@pytest.mark.parametrize("data", [b"SSH-2.0-server\r\n\r\n", b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"])
def test_what_cannot_be_framed_is_refused(data):
    with pytest.raises(WireError):
        scan_response(data)


def test_a_request_states_the_length_of_its_body():
    head, _, body = encode_request("POST", "h:1", "/p", {"X-A": "b"}, b"{}").partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[:3] == [b"POST /p HTTP/1.1", b"Host: h:1", b"X-A: b"]
    assert b"Content-Length: 2" in head
    assert body == b"{}"
    assert b"Content-Length: 0" in encode_request("POST", "h", "/p")
    assert b"Content-Length" not in encode_request("GET", "h", "/p")


def test_the_api_speaks_below_any_base_url():
    api = Api("http://example.test:81/queues/", "secret")
    assert api.address == ("example.test", 81)
    head, _, body = api.send("orders", "x" * 186).partition(b"\r\n\r\n")
    assert head.startswith(
        b"POST /queues/api/v1/queues/orders/messages HTTP/1.1\r\nHost: example.test:81\r\n"
    )
    assert b"X-API-Key: secret" in head
    assert len(body) == 200
    assert json.loads(body) == {"content": "x" * 186}


def test_an_ack_carries_the_receipt_only_if_there_is_one():
    api = Api("http://127.0.0.1", "k")
    assert b"X-Forq-Receipt: r1\r\n" in api.ack("q", Delivered("i", "c", "r1"))
    assert b"X-Forq-Receipt" not in api.ack("q", Delivered("i", "c"))


def test_messages_are_decoded_with_and_without_receipts():
    assert decode_message(b'{"id":"1","content":"c","more":true}') == Delivered("1", "c", "")
    assert decode_batch(b'{"messages":[{"id":"1","content":"c","receipt":"r"}]}') == [
        Delivered("1", "c", "r")
    ]


@pytest.mark.parametrize("url", ["https://example.test", "example.test:80", ""])
def test_only_plain_http_urls_are_taken(url):
    with pytest.raises(ValueError, match="speaks no TLS"):
        Api(url, "k")
