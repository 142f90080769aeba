"""Requests that ask for HTTP/2 by Upgrade are answered over HTTP/1.1, as RFC 9110 section 7.8 allows."""

import pytest

from support.transport import chunked, get, post, running

# What curl --http2 and the JDK's HttpClient send with their first request to an http:// URL.
H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")

REQUESTS = {
    "no body": (get("/here", *H2C), b"GET /here?\n"),
    "empty body": (post(b"", *H2C), b"POST /?\n"),
    "body": (post(b"GET / HTTP/1.1\r\n\r\n", *H2C), b"POST /?\nGET / HTTP/1.1\r\n\r\n"),
    "chunked body": (chunked(b"ab", b"c", headers=H2C), b"POST /?\nabc"),
    "settings that are none": (get("/here", *H2C[:2], "HTTP2-Settings: A"), b"GET /here?\n"),
    "HTTP/1.0": (get("/here", *H2C, "Connection: keep-alive", version="1.0"), b"GET /here?\n"),
    "websocket": (get("/here", "Connection: Upgrade", "Upgrade: websocket"), b"GET /here?\n"),
}


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
async def test_answered_over_http_1_and_the_connection_goes_on(first):
    async with running() as transport:
        for name, (request, body) in REQUESTS.items():
            client = await transport.connect()
            if not first:
                await client.send(get("/before"))
                assert (await client.answer()).body == b"GET /before?\n"
            for _ in range(2):
                await client.send(request)
                answer = await client.answer()
                assert (answer.status, answer.informational, answer.body) == (200, (), body), name
                assert b"upgrade" not in answer.headers
            await client.send(request + get("/next"))
            assert (await client.answer()).body == body
            assert (await client.answer()).body == b"GET /next?\n"


async def test_a_client_that_waits_before_it_sends_its_body_is_told_to_go_on():
    async with running() as transport:
        client = await transport.connect()
        await client.send(post(b"body", *H2C, "Expect: 100-continue")[:-4])
        assert await client.stream.receive_some() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"body")
        assert (await client.answer()).body == b"POST /?\nbody"
