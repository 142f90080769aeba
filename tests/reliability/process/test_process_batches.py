"""A server that is killed while members of batches are acknowledged sends the message of each batch once."""

from collections import Counter
from pathlib import Path

import pytest
import trio

from forq_trio import AddressedMessage, ForqClient, NewMessage, NewMessageBatch, open_broker
from support.real_server import SECRET, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]

BATCHES = 40
MEMBERS = 5
ACKS_A_ROUND = 60
ROUNDS = 2
LEASE_MS = 1_000
"""What a killed server has delivered is delivered again after this time."""


async def prepare(url: str) -> None:
    """Each batch has its members all over the queue, so that many are about to end at once."""
    async with open_broker(url) as broker:
        for n in range(BATCHES):
            then = AddressedMessage("reports", NewMessage(str(n)))
            await broker.open_batch(NewMessageBatch(then=then), batch_id=f"b{n}")
        for number in range(MEMBERS):
            for n in range(BATCHES):
                await broker.add_to_batch(f"b{n}", [AddressedMessage("q", NewMessage(f"{n}.{number}"))])
        for n in range(BATCHES):
            await broker.close_batch(f"b{n}")


async def check(url: str) -> Counter[str]:
    """Handle what is left; returns how often each batch has sent its message."""
    async with open_broker(url) as broker:
        left = BATCHES
        while left:
            for each in await broker.receive("q", max_messages=50, wait_ms=100, lease_ms=LEASE_MS):
                await broker.ack("q", each.receipt)
            batches = [await broker.batch(f"b{n}") for n in range(BATCHES)]
            left = sum(each.ended_at is None for each in batches)
        assert {(each.done, each.left, each.outcome) for each in batches} == {(MEMBERS, 0, "sent")}
        page = await broker.export("reports")
        assert page.next is None
        return Counter(message.content for message in page.messages)


def test_kills_while_members_are_acknowledged_send_each_message_once(place):
    url = f"sqlite:///{place}" if isinstance(place, Path) else place
    trio.run(prepare, url)
    for _ in range(ROUNDS):
        with real_server(place) as server, ForqClient(server.url, SECRET) as client:
            acked = 0
            while acked < ACKS_A_ROUND:
                found = client.receive("q", max_messages=10, lease_ms=LEASE_MS)
                client.ack("q", [each.receipt for each in found])
                acked += len(found)
            server.process.kill()
            server.process.wait()
    assert trio.run(check, url) == {str(n): 1 for n in range(BATCHES)}
