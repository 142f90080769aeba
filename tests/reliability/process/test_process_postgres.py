"""Three servers on one PostgreSQL database: one after the other is killed, or stopped and continued, under load.

What the clients saw and what the database's log of events says is one history (crossed.py): nothing is lost, nothing
has two holders, messages keep their order, each time of a schedule has its message once. The other servers go on.
"""

import json
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from random import Random
from typing import Any

import httpx
import psycopg
import pytest
import trio

from reliability.process.crossed import FIFO, GROUPS, PRIORITIES, STRICT, TICKS, History, Line
from reliability.process.load import BROKEN_OFF, make_client, messages_of
from support.effort import soak_seconds
from support.real_server import RealServer, real_server

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]

SERVERS, PRODUCERS, CONSUMERS, SCHEDULES = 3, 3, 5, 5
ROUND_SENDS_MAX = 200
PENDING_MAX = 500
LEASE_MS = 3_000
GIVE_UP_SECONDS = 4.0
STALL_SECONDS_MAX = 2.5
"""A stopped server may hold the gate for two seconds."""
SLOW_SHARE_MAX = 0.001
"""Of the requests to sound servers, how many may take longer: the machine is busy, too."""
GONE = (httpx.TransportError,)
LINES = [Line(FIFO, number) for number in range(len(PRIORITIES))] + [
    Line(STRICT, number) for number in range(len(GROUPS))
]


class Servers:
    """Three servers; one that was killed is started again. disturbed: how often each was; odd while it is.

    up: those that clients ask; not one that is being started."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened = [ExitStack() for _ in range(SERVERS)]
        self.disturbed = [0] * SERVERS
        self.up = set(range(SERVERS))
        self.logs: deque[str] = deque(maxlen=200)
        self.running: list[RealServer] = []
        for place in range(SERVERS):
            self.running.append(self._start(place))

    def _start(self, place: int) -> RealServer:
        server = self._opened[place].enter_context(real_server(self._url, FORQ_EVENTS="on"))
        threading.Thread(target=self._keep_log, args=(server,)).start()
        return server

    def _keep_log(self, server: RealServer) -> None:
        assert server.process.stderr is not None
        for line in server.process.stderr:
            self.logs.append(line)

    async def kill(self, place: int) -> None:
        """Kill a server, and start it again."""
        self.running[place].process.kill()
        self.up.discard(place)
        await trio.to_thread.run_sync(self._opened[place].close)
        self.running[place] = await trio.to_thread.run_sync(self._start, place)
        self.up.add(place)

    @contextmanager
    def stopped(self, place: int) -> Iterator[None]:
        process = self.running[place].process
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)

    def close(self) -> None:
        for stack in self._opened:
            stack.close()


@pytest.fixture
def servers(database) -> Iterator[Servers]:
    servers = Servers(database)
    yield servers
    servers.close()


class Load:
    """Clients of random servers. seconds: how long sound servers took. statuses: what all answered, 0 for nothing."""

    def __init__(self, servers: Servers, rng: Random) -> None:
        self.history = History()
        self._servers = servers
        self._rng = rng
        self.opened = AsyncExitStack()
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._waiting: list[tuple[int, trio.Event]] = []
        self._fewer = trio.Event()
        self._all_read = trio.Event()
        self.seconds: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.sending = True

    async def goes_on(self, sends: int) -> None:
        """Wait until so many more messages are sent, by whichever server."""
        reached = trio.Event()
        self._waiting.append((self.history.seen["sent"] + sends, reached))
        await reached.wait()

    async def _ask(
        self, method: str, path: str, body: object = None, seconds: float = 0.0
    ) -> httpx.Response | None:
        """The answer, if it is a success; None where nobody can know what happened. seconds: it may wait."""
        place = self._rng.choice([*self._servers.up])
        before = self._servers.disturbed[place]
        began = trio.current_time()
        answer = None
        try:
            answer = await (await self._client(place)).request(
                method, path, json=body, timeout=GIVE_UP_SECONDS + seconds
            )
        except GONE:
            await trio.lowlevel.checkpoint()
        sound = before % 2 == 0 and before == self._servers.disturbed[place]
        if sound and not seconds:
            self.seconds.append(trio.current_time() - began)
        self.statuses[0 if answer is None else answer.status_code] += 1
        return answer if answer is not None and answer.is_success else None

    async def _client(self, place: int) -> httpx.AsyncClient:
        url = self._servers.running[place].url
        if url not in self._clients:
            self._clients[url] = await self.opened.enter_async_context(make_client(url))
        return self._clients[url]

    async def produce(self) -> None:
        while self.sending:
            while self.history.pending > PENDING_MAX:
                await self._fewer.wait()
            line = self._rng.choice(LINES)
            contents = [self.history.new_content(line) for _ in range(self._rng.randrange(1, 4))]
            more: dict[str, object] = {"priority": PRIORITIES[line.number]} if line.queue == FIFO else {}
            if line.queue == STRICT:
                more["group"] = GROUPS[line.number]
            newest = self.history.sending()
            messages = [{"content": content, **more} for content in contents]
            answer = await self._ask("POST", f"{messages_of(line.queue)}/batch", {"messages": messages})
            if answer is not None:
                results = [each["sequence"] for each in answer.json()["results"]]
                self.history.sent(newest, contents, results)
                for sends, reached in self._waiting:
                    if self.history.seen["sent"] >= sends:
                        reached.set()

    async def consume(self, queue: str) -> None:
        while True:
            wanted = {"max": self._rng.randrange(1, 9), "waitMs": 1_000, "leaseMs": LEASE_MS}
            answer = await self._ask("POST", f"{messages_of(queue)}/receive", wanted, 1.0)
            if answer is None:
                continue
            messages = answer.json()["messages"]
            for message in messages:
                self.history.received(message)
            # Some are given back, some are left alone: their leases end.
            draw = self._rng.random() if self.sending else 1.0
            await self._settle(
                queue, messages[:1] if draw < 0.1 else messages, "nack" if draw < 0.05 else "ack"
            )

    async def _settle(self, queue: str, messages: Sequence[dict[str, Any]], verb: str) -> None:
        if not messages:
            return
        for message in messages:
            self.history.settling(message)
        body: dict[str, object] = {"receipts": [message["receipt"] for message in messages]}
        if verb == "nack":
            body["delayMs"] = 0
        answer = await self._ask("POST", f"{messages_of(queue)}/{verb}", body)
        if answer is None or verb == "nack":
            return
        for message, result in zip(messages, answer.json()["results"], strict=True):
            if result["ok"]:
                self.history.acked(message)
        fewer, self._fewer = self._fewer, trio.Event()
        fewer.set()

    async def read_events(self) -> None:
        """Until nothing is sent any more, and all that was sent is gone."""
        while self.sending or self.history.left:
            path = f"/api/v1/events?after={self.history.events}&limit=2000&waitMs=500"
            answer = await self._ask("GET", path, seconds=1.0)
            if answer is not None:
                self.history.read([json.loads(line) for line in answer.text.splitlines()])
        self._all_read.set()

    async def everything_is_read(self) -> None:
        self.sending = False
        await self._all_read.wait()

    async def prepare(self) -> None:
        for queue in (FIFO, STRICT, TICKS):
            more = {"groupInFlightMax": 1} if queue == STRICT else {}
            assert await self._ask("PUT", f"/api/v1/queues/{queue}/settings", {"maxAttempts": 1_000, **more})
        for number in range(SCHEDULES):
            body = {"queue": TICKS, "content": f"tick {number}", "every": "1s", "missed": "all"}
            assert await self._ask("PUT", f"/api/v1/schedules/s{number}", body)


class Ticks:
    """The runs of the schedules, read before they are forgotten."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.runs: list[dict[int, str]] = [{} for _ in range(SCHEDULES)]

    async def read(self) -> None:
        for number, runs in enumerate(self.runs):
            answer = None
            while answer is None:
                answer = await self._load._ask("GET", f"/api/v1/schedules/s{number}?runs=100")
            for run in answer.json()["runs"]:
                assert run["result"] == "sent", run
                assert runs.setdefault(run["nominal"], run["messageId"]) == run["messageId"]

    def check(self) -> None:
        for runs in self.runs:
            first = min(runs)
            assert sorted(runs) == [first + 1_000 * n for n in range(len(runs))]
        noted = [each for runs in self.runs for each in runs.values()]
        assert len(set(noted)) == len(noted)
        assert set(noted) == self._load.history.tick_ids


async def disturb(servers: Servers, load: Load, ticks: Ticks, rounds: int, ends_at: float) -> int:
    """At least so many rounds, and as many more as there is time for: kill or stop a server. Returns how many."""
    rng = load._rng
    done = 0
    while done < rounds or trio.current_time() < ends_at:
        await load.goes_on(rng.randrange(ROUND_SENDS_MAX))
        place = rng.randrange(SERVERS)
        servers.disturbed[place] += 1
        if rng.random() < 0.5:
            await servers.kill(place)
        else:
            with servers.stopped(place):
                await load.goes_on(rng.randrange(ROUND_SENDS_MAX))
        await load.goes_on(10)
        servers.disturbed[place] += 1
        done += 1
        await ticks.read()
    return done


@contextmanager
def held_snapshot(url: str) -> Iterator[None]:
    """A transaction that stays open: rows that it might still see are not removed."""
    with psycopg.connect(url) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM forq.messages")
        yield


async def keep_history(servers: Servers, url: str, rng: Random, rounds: int, seconds: float = 0.0) -> Load:
    """Disturb the servers under load, half the time beside a snapshot that is held; then consume everything."""
    load = Load(servers, rng)
    ticks = Ticks(load)
    begun = trio.current_time()
    async with load.opened, trio.open_nursery() as nursery:
        await load.prepare()
        for _ in range(PRODUCERS):
            nursery.start_soon(load.produce)
        for number in range(CONSUMERS):
            nursery.start_soon(load.consume, (FIFO, STRICT, FIFO, STRICT, TICKS)[number])
        nursery.start_soon(load.read_events)
        done = await disturb(servers, load, ticks, rounds // 2, begun + seconds / 2)
        with held_snapshot(url):
            done += await disturb(servers, load, ticks, rounds - rounds // 2, begun + seconds)
        for number in range(SCHEDULES):
            while not await load._ask("POST", f"/api/v1/schedules/s{number}/pause"):
                pass
        await ticks.read()
        await load.everything_is_read()
        nursery.cancel_scope.cancel()
    load.history.check_end()
    ticks.check()
    slow = [each for each in load.seconds if each > STALL_SECONDS_MAX]
    print(
        f"{done} disturbances in {trio.current_time() - begun:.0f} s: {dict(load.history.seen)}, {dict(load.statuses)}"
    )
    print(
        f"{len(load.seconds)} requests to sound servers: slowest {sorted(load.seconds)[-5:]}, {len(slow)} slow"
    )
    assert len(slow) <= SLOW_SHARE_MAX * len(load.seconds)
    return load


@pytest.mark.tier2
@pytest.mark.timeout(300)
async def test_servers_are_killed_and_stopped_under_load(servers, database, rng):
    with trio.fail_after(240):
        load = await keep_history(servers, database, rng, 4)
    assert load.history.seen["acked"] > 100


@pytest.mark.soak
async def test_servers_are_killed_and_stopped_for_long(servers, database, rng):
    load = await keep_history(servers, database, rng, 4, soak_seconds())
    assert load.history.seen["acked"] > 100
