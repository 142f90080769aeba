"""A small bounded load on a real server: producers and consumers that keep books."""

from collections.abc import Callable

import httpx
import trio

from reliability.process.books import FAILING, FAILING_ATTEMPTS, LOAD, Books
from support.real_server import SECRET

PRODUCERS = 4
CONSUMERS = 3
HELD_MAX = 100
QUEUES = {LOAD: {"maxAttempts": 1_000}, FAILING: {"maxAttempts": FAILING_ATTEMPTS}}

# What httpx leaves behind of a request whose connection broke while its body was being sent.
BROKEN_OFF = "ignore:Async generator 'httpx._content.ByteStream.__aiter__':ResourceWarning"


def make_client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"X-API-Key": SECRET}, timeout=120, verify=False)


def messages_of(queue: str) -> str:
    return f"/api/v1/queues/{queue}/messages"


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
            for number in range(PRODUCERS):
                queue = FAILING if number == 0 else LOAD
                nursery.start_soon(self._until_gone, client, self._produce, queue)
            for number in range(CONSUMERS):
                work = self._fail if number == 0 else self._consume
                nursery.start_soon(self._until_gone, client, work)

    async def settle_what_was_held(self, client: httpx.AsyncClient) -> None:
        """Before anybody receives: receipts from before the restart are worth what they were worth."""
        books = self._books
        held = {
            last.receipt: content
            for content, last in books.delivered.items()
            if last.current and content.startswith(LOAD) and content not in books.maybe_acked
        }
        receipts = list(held)[:HELD_MAX]
        books.maybe_acked.update(held[receipt] for receipt in receipts)
        asked = {"receipts": receipts + books.stale[-HELD_MAX:]}
        answer = await client.post(f"{messages_of(LOAD)}/ack", json=asked)
        accepted = [result["receipt"] for result in answer.json()["results"] if result["ok"]]
        assert accepted == receipts, "a current receipt was refused or a stale one accepted"
        books.acked.update(held[receipt] for receipt in receipts)

    async def _until_gone(self, client: httpx.AsyncClient, work, *args) -> None:
        try:
            while True:
                await work(client, *args)
        except httpx.TransportError:
            return

    async def _produce(self, client: httpx.AsyncClient, queue: str) -> None:
        content = self._books.next_content(queue)
        answer = await client.post(messages_of(queue), json={"content": content, **QUEUES[queue]})
        self.statuses.add(answer.status_code)
        if answer.status_code == 204:
            self._books.answered.add(content)
            self._sent += 1
            if self._enough(self._sent):
                self._reached.set()

    async def _receive(self, client: httpx.AsyncClient, queue: str) -> list[tuple[str, str]]:
        """Contents and receipts."""
        wanted = {"max": 3, "waitMs": 5_000, "leaseMs": 1_000}
        answer = await client.post(f"{messages_of(queue)}/receive", json=wanted)
        self.statuses.add(answer.status_code)
        if answer.status_code != 200:
            return []
        messages = answer.json()["messages"]
        for message in messages:
            self._books.received(message["content"], message["attempts"], message["receipt"])
        return [(message["content"], message["receipt"]) for message in messages]

    async def _consume(self, client: httpx.AsyncClient) -> None:
        """Of three messages one is acknowledged, one refused and one left alone: it comes back after its lease."""
        for index, (content, receipt) in enumerate(await self._receive(client, LOAD)):
            if index == 0:
                self._books.maybe_acked.add(content)
                if await self._settle(client, "ack", content, receipt):
                    self._books.acked.add(content)
            elif index == 1:
                self._books.delivered[content].current = False
                await self._settle(client, "nack", content, receipt, delayMs=0)

    async def _fail(self, client: httpx.AsyncClient) -> None:
        """Refuse every message until its attempts are used up."""
        for content, receipt in await self._receive(client, FAILING):
            self._books.delivered[content].current = False
            await self._settle(client, "nack", content, receipt, delayMs=0, reason="it fails")

    async def _settle(self, client: httpx.AsyncClient, verb: str, content: str, receipt: str, **more) -> bool:
        queue = content.split()[0]
        answer = await client.post(f"{messages_of(queue)}/{verb}", json={"receipts": [receipt], **more})
        self.statuses.add(answer.status_code)
        return answer.status_code == 200 and answer.json()["results"][0]["ok"]
