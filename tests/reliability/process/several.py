"""Several servers on one PostgreSQL database, and clients of all of them, whose history crossed.py checks.

How long the answers of servers took that nobody disturbed is measured, beside how long this process, which asks for
nothing but a timer, had to wait for the machine meanwhile.
"""

import json
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from random import Random
from typing import Any, NamedTuple

import httpx
import trio

from reliability.process.crossed import CAPPED, FIFO, GROUPS, PRIORITIES, STRICT, TICKS, History, Line
from reliability.process.load import make_client, messages_of
from support.real_server import RealServer, real_server

SERVERS, PRODUCERS, SCHEDULES = 3, 6, 5
CONSUMED = FIFO, CAPPED, STRICT, FIFO, CAPPED, STRICT, STRICT, TICKS
"""The queue of each consumer."""
SETTINGS: dict[str, dict[str, object]] = {
    FIFO: {},
    CAPPED: {"groupInFlightMax": 1},
    STRICT: {"groupOrder": "strict"},
    TICKS: {},
}
PENDING_MAX = 500
LEASE_MS = 3_000
GIVE_UP_SECONDS = 4.0
STALL_SECONDS_MAX = 2.5
"""A stopped server may hold the gate for two seconds."""
MACHINE_SECONDS = 0.02
"""How often it is measured how late the machine is."""
MACHINE_TIMES = 4
"""A request passes from process to process: each of them may have to wait for the machine."""
SLOW_SHARE_MAX = 0.001
"""Of the requests to sound servers, how many may take longer for no reason that was measured."""
RUN_LATE_MS_MAX = 15_000
"""A schedule sends when the next batch runs."""
GONE = (httpx.TransportError,)
LINES = [Line(FIFO, number) for number in range(len(PRIORITIES))] + [
    Line(queue, number) for queue in (CAPPED, STRICT) for number in range(len(GROUPS))
]


class Servers:
    """Three servers; one that was killed is started again. disturbed: how often each was; odd while it is.

    up: those that clients ask; not one that is being started."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._environments: list[dict[str, str]] = [{} for _ in range(SERVERS)]
        self._opened = [ExitStack() for _ in range(SERVERS)]
        self.disturbed = [0] * SERVERS
        self.up = set(range(SERVERS))
        self.logs: deque[str] = deque(maxlen=200)
        self.running: list[RealServer] = []
        for place in range(SERVERS):
            self.running.append(self._start(place))

    def _start(self, place: int) -> RealServer:
        server = self._opened[place].enter_context(
            real_server(self._url, FORQ_EVENTS="on", **self._environments[place])
        )
        threading.Thread(target=self._keep_log, args=(server,)).start()
        return server

    def _keep_log(self, server: RealServer) -> None:
        assert server.process.stderr is not None
        for line in server.process.stderr:
            self.logs.append(line)

    async def kill(self, place: int) -> None:
        """Kill a server, and start it again."""
        self.running[place].process.kill()
        await self._replace(place)

    async def upgrade(self, place: int, **environment: str) -> None:
        """Stop a server, and start one in another environment in its place."""
        assert await trio.to_thread.run_sync(self.running[place].stop) == 0
        self._environments[place] = environment
        await self._replace(place)

    async def _replace(self, place: int) -> None:
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


class Stall(NamedTuple):
    """A request to a server that nobody disturbed. machine: how late the machine was meanwhile, at most."""

    seconds: float
    sends: bool
    machine: float

    @property
    def unexplained(self) -> bool:
        return self.seconds > STALL_SECONDS_MAX + MACHINE_TIMES * self.machine


class Machine:
    """How late this process is woken by a timer: in each stretch of time, at most."""

    def __init__(self) -> None:
        self._late: deque[tuple[float, float]] = deque()
        self.most = 0.0

    async def measure(self) -> None:
        while True:
            wanted = trio.current_time() + MACHINE_SECONDS
            with trio.CancelScope(deadline=wanted):
                await trio.Event().wait()
            now = trio.current_time()
            self._late.append((now, now - wanted))
            self.most = max(self.most, now - wanted)
            while self._late[0][0] < now - 2 * GIVE_UP_SECONDS:
                self._late.popleft()

    def late(self, since: float) -> float:
        return max((late for at, late in self._late if at >= since), default=0.0)


class Load:
    """Clients of random servers. sound: what sound servers took. statuses: what all answered, 0 for nothing."""

    def __init__(self, servers: Servers, rng: Random) -> None:
        self.history = History()
        self.machine = Machine()
        self._servers = servers
        self.rng = rng
        self.opened = AsyncExitStack()
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._waiting: list[tuple[int, trio.Event]] = []
        self._fewer = trio.Event()
        self._all_read = trio.Event()
        self.sound: list[Stall] = []
        self.statuses: Counter[int] = Counter()
        self.sending = True

    async def goes_on(self, sends: int) -> None:
        """Wait until so many more messages are sent, by whichever server."""
        reached = trio.Event()
        self._waiting.append((self.history.seen["sent"] + sends, reached))
        await reached.wait()

    async def ask(
        self, method: str, path: str, body: object = None, seconds: float = 0.0
    ) -> httpx.Response | None:
        """The answer, if it is a success; None where nobody can know what happened. seconds: it may wait."""
        up = [*self._servers.up]
        (place,) = self.rng.choices(up, [0.2 if self._servers.disturbed[each] % 2 else 1.0 for each in up])
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
            took = trio.current_time() - began
            self.sound.append(Stall(took, path.endswith("/batch"), self.machine.late(began)))
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
            line = self.rng.choice(LINES)
            contents = [self.history.new_content(line) for _ in range(self.rng.randrange(1, 4))]
            more: dict[str, object] = {"priority": PRIORITIES[line.number]} if line.queue == FIFO else {}
            if line.queue in (CAPPED, STRICT):
                more["group"] = GROUPS[line.number]
            newest = self.history.sending()
            messages = [{"content": content, **more} for content in contents]
            answer = await self.ask("POST", f"{messages_of(line.queue)}/batch", {"messages": messages})
            if answer is not None:
                results = [each["sequence"] for each in answer.json()["results"]]
                self.history.sent(newest, contents, results)
                for sends, reached in self._waiting:
                    if self.history.seen["sent"] >= sends:
                        reached.set()
                self._waiting = [each for each in self._waiting if not each[1].is_set()]

    async def consume(self, queue: str) -> None:
        while True:
            wanted = {"max": self.rng.randrange(1, 9), "waitMs": 1_000, "leaseMs": LEASE_MS}
            answer = await self.ask("POST", f"{messages_of(queue)}/receive", wanted, 1.0)
            if answer is None:
                continue
            messages = answer.json()["messages"]
            self.history.answered(messages)
            # Some are given back, some are left alone: their leases end.
            draw = self.rng.random() if self.sending else 1.0
            verb = "nack" if draw < 0.05 else "extend" if draw < 0.07 else "ack"
            await self._settle(queue, messages[:1] if draw < 0.1 else messages, verb)

    async def _settle(self, queue: str, messages: Sequence[dict[str, Any]], verb: str) -> None:
        if not messages:
            return
        for message in messages:
            self.history.settling(message)
        body: dict[str, object] = {"receipts": [message["receipt"] for message in messages]}
        if verb == "nack":  # elsewhere later messages pass one that waits for its next attempt
            body["delayMs"] = self.rng.choice((0, 500)) if queue == STRICT else 0
        if verb == "extend":
            body["leaseMs"] = 0
        answer = await self.ask("POST", f"{messages_of(queue)}/{verb}", body)
        if answer is None or verb != "ack":
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
            answer = await self.ask("GET", path, seconds=1.0)
            if answer is not None:
                self.history.read([json.loads(line) for line in answer.text.splitlines()])
        self._all_read.set()

    async def everything_is_read(self) -> None:
        self.sending = False
        await self._all_read.wait()

    async def prepare(self) -> None:
        for queue, more in SETTINGS.items():
            assert await self.ask("PUT", f"/api/v1/queues/{queue}/settings", {"maxAttempts": 1_000, **more})
        for number in range(SCHEDULES):
            body = {"queue": TICKS, "content": f"tick {number}", "every": "1s", "missed": "all"}
            assert await self.ask("PUT", f"/api/v1/schedules/s{number}", body)


class Ticks:
    """The runs of the schedules, read before they are forgotten."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.runs: list[dict[int, str]] = [{} for _ in range(SCHEDULES)]
        self.late_ms = 0

    async def keep_reading(self) -> None:
        while True:
            await self._load.goes_on(30)
            await self.read()

    async def read(self) -> None:
        for number, runs in enumerate(self.runs):
            answer = None
            while answer is None:
                answer = await self._load.ask("GET", f"/api/v1/schedules/s{number}?runs=100")
            for run in answer.json()["runs"]:
                assert run["result"] == "sent", run
                assert runs.setdefault(run["nominal"], run["messageId"]) == run["messageId"]
                self.late_ms = max(self.late_ms, run["lateMs"])

    def check(self, seconds: float) -> None:
        """seconds: how long they ran, at least."""
        for runs in self.runs:
            first = min(runs)
            assert sorted(runs) == [first + 1_000 * n for n in range(len(runs))]
            assert len(runs) >= seconds - RUN_LATE_MS_MAX / 1_000
        assert self.late_ms <= RUN_LATE_MS_MAX
        noted = [each for runs in self.runs for each in runs.values()]
        assert len(set(noted)) == len(noted)
        assert set(noted) == self._load.history.tick_ids


@asynccontextmanager
async def load_on(servers: Servers, rng: Random) -> AsyncIterator[Load]:
    """Clients of these servers, during the body; then everything is consumed, and the history is checked."""
    load = Load(servers, rng)
    ticks = Ticks(load)
    async with load.opened, trio.open_nursery() as nursery:
        await load.prepare()
        for _ in range(PRODUCERS):
            nursery.start_soon(load.produce)
        for queue in CONSUMED:
            nursery.start_soon(load.consume, queue)
        nursery.start_soon(load.read_events)
        nursery.start_soon(load.machine.measure)
        nursery.start_soon(ticks.keep_reading)
        scheduled_at = trio.current_time()
        yield load
        scheduled = trio.current_time() - scheduled_at
        for number in range(SCHEDULES):
            while not await load.ask("POST", f"/api/v1/schedules/s{number}/pause"):
                pass
        await ticks.read()
        await load.everything_is_read()
        nursery.cancel_scope.cancel()
    load.history.check_end()
    ticks.check(scheduled)
    print(f"in {scheduled:.0f} s: {dict(load.history.seen)}, {dict(load.statuses)}")
    sends = [each for each in load.sound if each.sends]
    slow = [each for each in load.sound if each.seconds > STALL_SECONDS_MAX]
    print(
        f"{len(load.sound)} requests to sound servers, {len(sends)} of them sends: the slowest took"
        f" {max(load.sound).seconds:.2f} s, the slowest send {max(sends).seconds:.2f} s; longer than"
        f" {STALL_SECONDS_MAX} s: {slow}; the machine was late by {load.machine.most:.2f} s at most, its load is"
        f" {os.getloadavg()}; a schedule was late by {ticks.late_ms} ms"
    )
    assert sum(each.unexplained for each in slow) <= SLOW_SHARE_MAX * len(load.sound)
