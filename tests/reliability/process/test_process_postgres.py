"""Three servers on one PostgreSQL database: one after the other is killed, or stopped and continued, under load.

Nothing that was answered is lost, no message is in the hands of two consumers, and the other servers go on.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
import trio

from reliability.process.load import BROKEN_OFF, messages_of
from support.real_server import SECRET, RealServer, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2, pytest.mark.filterwarnings(BROKEN_OFF)]

SERVERS, PRODUCERS, CONSUMERS, DISTURBANCES = 3, 3, 4, 6
STALL_SECONDS_MAX = 6.0
"""A stopped server may hold the gate for two seconds; the rest is a busy machine."""
QUEUE = "load"
LEASE_MS = 600_000
GONE = (httpx.TransportError,)


class Servers:
    """Three servers; one that was killed is started again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened = [ExitStack() for _ in range(SERVERS)]
        self.running = [stack.enter_context(real_server(url)) for stack in self._opened]

    def kill(self, place: int) -> None:
        self.running[place].process.kill()
        self._opened[place].close()

    def start(self, place: int) -> None:
        self.running[place] = self._opened[place].enter_context(real_server(self._url))

    def close(self) -> None:
        for stack in self._opened:
            stack.close()


@pytest.fixture
def servers(database) -> Iterator[Servers]:
    servers = Servers(database)
    yield servers
    servers.close()


class Load:
    """answered: contents whose send was; received: how often each content was; progress: when one server answered."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._number = 0
        self.answered: set[str] = set()
        self.received: Counter[str] = Counter()
        self.acked: set[str] = set()
        self.progress = trio.current_time()
        self.longest_stall = 0.0
        self._waiting: list[tuple[int, trio.Event]] = []

    async def goes_on(self, sends: int) -> None:
        """Wait until so many more sends are answered, by whichever server."""
        reached = trio.Event()
        self._waiting.append((len(self.answered) + sends, reached))
        await reached.wait()

    def _of(self, server: RealServer) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=server.url, headers={"X-API-Key": SECRET}, timeout=1.5)

    def _went_on(self) -> None:
        now = trio.current_time()
        self.longest_stall = max(self.longest_stall, now - self.progress)
        self.progress = now
        for sends, reached in self._waiting:
            if len(self.answered) >= sends:
                reached.set()

    async def produce(self) -> None:
        while True:
            try:
                async with self._of(random.choice(self._servers.running)) as client:
                    for _ in range(20):
                        self._number += 1
                        content = f"m{self._number}"
                        answer = await client.post(messages_of(QUEUE), json={"content": content})
                        if answer.status_code == 204:
                            self.answered.add(content)
                            self._went_on()
            except GONE:
                await trio.lowlevel.checkpoint()

    async def consume(self) -> None:
        receive = f"/api/v1/queues/{QUEUE}/messages/receive"
        while True:
            try:
                async with self._of(random.choice(self._servers.running)) as client:
                    for _ in range(20):
                        wanted = {"max": 5, "waitMs": 1_000, "leaseMs": LEASE_MS}
                        answer = await client.post(receive, json=wanted)
                        if answer.status_code == 503:
                            continue
                        found = answer.json()["messages"]
                        self.received.update(each["content"] for each in found)
                        if not found:
                            continue
                        receipts = [each["receipt"] for each in found]
                        acked = await client.post(f"{messages_of(QUEUE)}/ack", json={"receipts": receipts})
                        if acked.status_code == 200:
                            assert all(each["ok"] for each in acked.json()["results"])
                            self.acked.update(each["content"] for each in found)
                            self._went_on()
            except GONE:
                await trio.lowlevel.checkpoint()


async def disturb(servers: Servers, load: Load) -> None:
    """Kill a server and start it again, or stop one for a while, in turn."""
    for round in range(DISTURBANCES):
        await load.goes_on(random.randrange(20, 80))
        place = random.randrange(SERVERS)
        if round % 2:
            process = servers.running[place].process
            os.kill(process.pid, signal.SIGSTOP)
            await load.goes_on(80)
            os.kill(process.pid, signal.SIGCONT)
        else:
            servers.kill(place)
            await trio.to_thread.run_sync(servers.start, place)


async def test_servers_are_killed_and_stopped_under_load(servers):
    load = Load(servers)
    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            for _ in range(PRODUCERS):
                nursery.start_soon(load.produce)
            for _ in range(CONSUMERS):
                nursery.start_soon(load.consume)
            await disturb(servers, load)
            nursery.cancel_scope.cancel()
        twice = [content for content, times in load.received.items() if times > 1]
        assert twice == []
        left = await contents_left(servers.running[0])
        assert not left & load.acked
        lost = load.answered - load.received.keys() - left
        assert lost == set()
        assert len(load.answered) > 100
        assert len(load.acked) > 100
        assert load.longest_stall < STALL_SECONDS_MAX


async def contents_left(server: RealServer) -> set[str]:
    async with httpx.AsyncClient(base_url=server.url, headers={"X-API-Key": SECRET}, timeout=30) as client:
        answer = await client.get(f"/api/v1/queues/{QUEUE}/export")
        assert answer.status_code == 200, answer.text
        lines = [line for line in answer.text.splitlines() if line]
        return {httpx.Response(200, text=line).json()["content"] for line in lines}
