"""Waiting for a message: served as one comes, and given up when the caller is cancelled."""

import trio

from forq_trio import AsyncForqClient
from support.real_server import SECRET


async def waiting(client: AsyncForqClient, queue: str, receivers: int) -> None:
    """Return once so many receivers wait at the server. The queue has settings, so that it can be looked at."""
    await client.configure(queue, max_attempts=7)
    while (await client.queue_stats(queue)).waiting != receivers:
        await trio.lowlevel.checkpoint()


async def test_a_waiting_receiver_gets_the_message_as_it_comes(url: str, queue: str):
    """F3: the long poll."""
    async with AsyncForqClient(url, SECRET) as client, trio.open_nursery() as nursery:

        async def receive() -> None:
            (delivery,) = await client.receive(queue)
            assert delivery.content == "a"
            await client.ack(queue, [delivery.receipt])

        nursery.start_soon(receive)
        await waiting(client, queue, 1)
        await client.produce(queue, "a")


async def test_the_message_of_a_cancelled_receive_goes_to_another(url: str, queue: str):
    async with AsyncForqClient(url, SECRET) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.receive, queue)
            await waiting(client, queue, 1)
            nursery.cancel_scope.cancel()
        await waiting(client, queue, 0)
        await client.produce(queue, "a")
        (delivery,) = await client.receive(queue, wait_ms=0)
        assert delivery.attempts == 1
