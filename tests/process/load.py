"""A small bounded load on a real server: producers and consumers that keep books."""

from collections.abc import Callable

import httpx
import trio

from client.fake_forq import SECRET
from process.books import Books

QUEUE = "/api/v1/queues/load/messages"
PRODUCERS = 4
CONSUMERS = 3

# What httpx leaves behind of a request whose connection broke while its body was being sent.
BROKEN_OFF = "ignore:Async generator 'httpx._content.ByteStream.__aiter__':ResourceWarning"


def make_client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"X-API-Key": SECRET}, timeout=20)


class Load:
    """enough: asked after every answered send with their number in this run; True ends `until_enough`."""

    def __init__(self, url: str, books: Books, enough: Callable[[int], bool]) -> None:
        self._url = url
        self._books = books
        self._enough = enough
        self._sent = 0
        self._reached = trio.Event()
        self.statuses: set[int] = set()

    async def until_enough(self) -> None:
        await self._reached.wait()

    async def run(self) -> None:
        """Send and receive until cancelled, or until the server is gone."""
        async with make_client(self._url) as client, trio.open_nursery() as nursery:
            for _ in range(PRODUCERS):
                nursery.start_soon(self._until_gone, client, self._produce)
            for _ in range(CONSUMERS):
                nursery.start_soon(self._until_gone, client, self._consume)

    async def _until_gone(self, client: httpx.AsyncClient, work) -> None:
        try:
            while True:
                await work(client)
        except httpx.TransportError:
            return

    async def _produce(self, client: httpx.AsyncClient) -> None:
        content = self._books.next_content()
        answer = await client.post(QUEUE, json={"content": content})
        self.statuses.add(answer.status_code)
        if answer.status_code == 204:
            self._books.answered.add(content)
            self._sent += 1
            if self._enough(self._sent):
                self._reached.set()

    async def _consume(self, client: httpx.AsyncClient) -> None:
        answer = await client.post(f"{QUEUE}/receive", json={"max": 3, "waitMs": 5_000, "leaseMs": 1_000})
        self.statuses.add(answer.status_code)
        if answer.status_code != 200:
            return
        messages = answer.json()["messages"]
        for message in messages:
            self._books.received(message["content"])
        # Every other message is left alone: it comes back when its lease has ended.
        for message in messages[::2]:
            self._books.maybe_acked.add(message["content"])
            acked = await client.post(f"{QUEUE}/ack", json={"receipts": [message["receipt"]]})
            self.statuses.add(acked.status_code)
            if acked.status_code == 200 and acked.json()["results"][0]["ok"]:
                self._books.acked.add(message["content"])
