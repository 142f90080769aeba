"""PostgreSQL is restarted, and killed, under the load of a server, which serves again at once and has lost nothing."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import httpx
import psycopg
import pytest
import trio

from reliability.process.load import make_client, messages_of
from support.postgres import Postgres
from support.real_server import real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2, pytest.mark.timeout(200)]

PRODUCERS, CONSUMERS = 3, 2
RECOVERY_SECONDS_MAX = 5.0
"""From the database's first answer to that of the server behind it."""
PATH = messages_of("q")


class Load:
    """Producers and consumers of one server.

    answered: contents of sends; received: contents that consumers got; unsure: those whose ack was answered with an
    error, although the database may have stored it.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._numbers = count(1)
        self._changed = trio.Event()
        self.producing = self.consuming = True
        self.answered: set[str] = set()
        self.received: set[str] = set()
        self.acked: set[str] = set()
        self.unsure: set[str] = set()
        self.statuses = [[0] for _ in range(PRODUCERS)]
        """Of each producer, one after the other."""

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    async def until_all(self, healthy: bool) -> None:
        """Until each producer was answered so, from now on."""
        behind = [len(each) for each in self.statuses]
        await self.until(
            lambda: all(
                any((status == 200) is healthy for status in each[known:])
                for each, known in zip(self.statuses, behind, strict=True)
            )
        )

    async def until_empty(self) -> None:
        """Until the queue has no message."""
        while True:
            answer = await self._client.get(PATH.removesuffix("/messages"))
            counts = answer.json()  # with an error where a reader finds out that its connection is gone
            if answer.status_code == 200 and not counts["ready"] and not counts["processing"]:
                return
            await self._changed.wait()

    async def produce(self, place: int) -> None:
        while self.producing:
            content = str(next(self._numbers))
            answer = await self._client.post(f"{PATH}/batch", json={"messages": [{"content": content}]})
            assert answer.status_code in (200, 500, 503), answer.text
            if answer.status_code == 200:
                self.answered.add(content)
            self.statuses[place].append(answer.status_code)
            self._tell()

    async def consume(self) -> None:
        while self.consuming:
            answer = await self._client.post(
                f"{PATH}/receive", json={"max": 10, "waitMs": 2_000, "leaseMs": 3_000}
            )
            messages = answer.json()["messages"] if answer.status_code == 200 else []
            for message in messages:
                assert message["content"] not in self.acked, "an acknowledged message came again"
                self.received.add(message["content"])
            if messages:
                receipts = [message["receipt"] for message in messages]
                answer = await self._client.post(f"{PATH}/ack", json={"receipts": receipts})
                if answer.status_code == 200:
                    results = answer.json()["results"]
                else:
                    results = []
                    self.unsure |= {message["content"] for message in messages}
                self.acked |= {
                    message["content"]
                    for message, result in zip(messages, results, strict=False)
                    if result["ok"]
                }
            self._tell()


async def restart(postgres: Postgres, load: Load, client: httpx.AsyncClient) -> None:
    """Ended in order, and away until everybody has noticed."""
    await trio.to_thread.run_sync(postgres.stop)
    await load.until_all(healthy=False)
    assert (await client.get("/healthcheck")).status_code == 503
    await trio.to_thread.run_sync(postgres.start)


async def crash(postgres: Postgres, load: Load, client: httpx.AsyncClient) -> None:
    """As when one of its processes fails: all connections end, and it recovers from its log."""

    def log_writer() -> int | None:
        with suppress(psycopg.OperationalError):
            for (number,) in postgres.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
            ):
                return number
        return None

    killed = log_writer()
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    while await trio.to_thread.run_sync(log_writer) in (None, killed):
        pass


async def test_the_server_serves_again_when_the_database_is_back(postgres, database):
    with real_server(database) as server:
        threading.Thread(
            target=deque, args=(server.process.stderr, 0)
        ).start()  # else its log would fill the pipe
        async with make_client(server.url) as client, trio.open_nursery() as nursery:
            assert (await client.put("/api/v1/queues/q/settings", json={"maxAttempts": 1_000})).is_success
            load = Load(client)
            for place in range(PRODUCERS):
                nursery.start_soon(load.produce, place)
            for _ in range(CONSUMERS):
                nursery.start_soon(load.consume)
            with trio.fail_after(150):
                for disturb in (restart, crash, restart, crash):
                    await load.until_all(healthy=True)
                    await disturb(postgres, load, client)
                    began = trio.current_time()
                    await load.until_all(healthy=True)
                    assert trio.current_time() - began < RECOVERY_SECONDS_MAX
                    assert (await client.get("/healthcheck")).status_code == 204
                load.producing = False
                await load.until(lambda: load.answered <= load.acked | load.unsure)
                await load.until_empty()
                load.consuming = False
