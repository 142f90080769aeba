"""A connection that has ended leaves nothing for the garbage collector, which the server runs rarely."""

import pytest
import trio

from forq_trio.http.message import NO_CONTENT, Request
from forq_trio.http.transport.h1 import RequestParser
from forq_trio.http.transport.http1_connection import Http1Connection
from forq_trio.http.transport.http_socket import HttpSocket
from forq_trio.http.transport.running_handler import RunningHandler
from support.garbage import without_collections
from support.transport import get, running

KINDS = (HttpSocket, Http1Connection, RequestParser, RunningHandler, Request)


async def ends_after_its_answer(client):
    await client.send(get())
    await client.answer()


async def ends_before_its_request(client):
    await client.send(b"GET / HTT")


async def ends_with_requests_that_wait_for_their_turn(client):
    await client.send(get("/wait") * 5)
    await client.arrived()


async def ends_in_a_long_poll(client):
    await client.send(get("/poll"))
    await client.arrived()


@pytest.mark.parametrize(
    "ending",
    [
        ends_after_its_answer,
        ends_before_its_request,
        ends_with_requests_that_wait_for_their_turn,
        ends_in_a_long_poll,
    ],
    ids=lambda ending: ending.__name__,
)
async def test_a_connection_that_ended_is_gone(ending):
    release = trio.Event()

    async def handler(request):
        if request.path == "/wait":
            await release.wait()
        elif request.path == "/poll":
            async with request.cancelled_on_disconnect():
                await trio.sleep_forever()
        return NO_CONTENT

    with without_collections(*KINDS) as alive:
        async with running(handler) as transport:
            for _ in range(3):
                client = await transport.connect()
                await ending(client)
                await client.close()
            release.set()
            await transport.until_nobody_is_connected()
            assert alive() == []
