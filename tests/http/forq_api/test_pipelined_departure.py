"""A client that sends much behind its long poll, and leaves: its message is not handed to nobody."""

import trio

from support.forq_api import Api
from support.transport import get, running


async def test_a_message_does_not_go_to_a_client_that_left_behind_what_it_had_sent(api: Api):
    key = "X-API-Key: " + "s" * 32
    async with running(api.handler) as transport:
        client = await transport.connect()
        receive = get("/api/v1/queues/q/messages", key)
        await client.send(receive)
        while not api.broker.known.waiting("q"):
            await trio.lowlevel.checkpoint()
        await client.send(1_000 * receive)  # more than is read ahead
        await client.close()
        while transport.server.connections:
            await trio.lowlevel.checkpoint()
        await api.send("message")
        assert (await api.receive())["attempts"] == 1
