"""The wall clock set back and forth by an hour while the server runs: nothing gets stuck, nothing comes early by more.

A server on real sockets, with all its jobs, whose two clocks are the test's: trio's stands still until the test moves
it, the wall clock follows it and can be set. So an hour passes in milliseconds, and every moment is exact.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
import trio.testing

from faces.running import real_deadline
from forq_trio.http.access import Access
from forq_trio.http.forq_api import answer_error, forq_routes
from forq_trio.http.router import HttpRouter
from forq_trio.http.throttle import Throttle
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server
from forq_trio.model import limits
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import open_system
from support.actors import TrioClock, all_idle, on_the_loop

HOUR = 3_600
SECRET = "s" * 32
# Who waits looks at the wall clock again after so long at the latest (CLOCK_CHECK_SECONDS_MAX).
STEP = 30
LATE = limits.CLOCK_CHECK_SECONDS_MAX + 2 * STEP


class SetClock(TrioClock):
    """A wall clock that somebody sets. set_by_ms: by how much it is off now."""

    def __init__(self) -> None:
        self.set_by_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms


class Shop:
    """Clients of the server: what was sent when, and what was received when, in seconds of trio's clock."""

    def __init__(
        self, http: httpx.AsyncClient, nursery: trio.Nursery, clock: SetClock, mock: trio.testing.MockClock
    ) -> None:
        self.http = http
        self.nursery = nursery
        self.clock = clock
        self.mock = mock
        self.received: dict[str, list[float]] = {}

    def set_clock(self, seconds: int) -> None:
        self.clock.set_by_ms = 1_000 * seconds

    async def send(self, content: str, **members: object) -> float:
        answer = await self.http.post("/q/messages", json={"content": content, **members})
        assert answer.status_code == 204
        return trio.current_time()

    async def receive(self, wait_ms: int, lease_ms: int) -> list[dict]:
        wanted = {"max": 10, "waitMs": wait_ms, "leaseMs": lease_ms}
        answer = await self.http.post("/q/messages/receive", json=wanted)
        assert answer.status_code == 200
        return answer.json()["messages"]

    async def consume(self, lease_ms: int) -> None:
        """Receive for ever, and acknowledge nothing: leases are to end."""
        while True:
            for message in await self.receive(30_000, lease_ms):
                self.received.setdefault(message["content"], []).append(trio.current_time())

    async def pass_time(self, seconds: float) -> None:
        end = trio.current_time() + seconds
        while (left := end - trio.current_time()) > 0:
            await all_idle()
            self.mock.jump(min(left, STEP))
        await all_idle()

    async def until_received(self, content: str, times: int, seconds_max: float) -> float:
        """Let time pass until it has come so often; when it came the last time."""
        end = trio.current_time() + seconds_max
        while len(self.received.get(content, ())) < times:
            assert trio.current_time() < end, f"{content} is stuck: {self.received}"
            await self.pass_time(STEP)
        return self.received[content][times - 1]


@pytest.fixture
async def shop(tmp_path, mock_clock) -> AsyncIterator[Shop]:
    with real_deadline(300):
        async with serving(f"sqlite:///{tmp_path / 'forq.db'}", mock_clock) as shop:
            yield shop


@asynccontextmanager
async def serving(url: str, mock: trio.testing.MockClock) -> AsyncIterator[Shop]:
    clock = SetClock()
    errors: list[Exception] = []
    engine = open_engine(url, EngineSettings(), "normal")
    async with open_system(engine, clock, policy=on_the_loop()) as system:
        access = Access(SECRET, system.broker.keys, Throttle())
        handler = HttpRouter(forq_routes(system.broker, access, system.monitor), answer_error)
        config = TransportConfig(idle_seconds=1e9)
        server = Server(handler, await open_listeners("127.0.0.1", 0), config, on_error=errors.append)
        base = f"http://127.0.0.1:{server.ports[0]}/api/v1/queues"
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            async with (
                httpx.AsyncClient(
                    base_url=base, headers={"X-API-Key": SECRET}, timeout=None, verify=False
                ) as http,
                trio.open_nursery() as clients,
            ):
                yield Shop(http, clients, clock, mock)
                clients.cancel_scope.cancel()
            await server.drain(0)
    assert errors == []


@pytest.mark.parametrize(
    "jump", [HOUR, *(pytest.param(each, marks=pytest.mark.tier2) for each in (-HOUR, 0))]
)
async def test_a_delay(mock_clock, shop, jump) -> None:
    """Set forward, it ends early by the jump at most; set back, late by the jump at most; without, on time."""
    shop.nursery.start_soon(shop.consume, HOUR * 1_000)
    sent = await shop.send("later", delayMs=2 * HOUR * 1_000)
    await shop.pass_time(HOUR / 4)
    shop.set_clock(jump)
    waited = await shop.until_received("later", 1, 4 * HOUR) - sent
    assert 2 * HOUR - jump <= waited <= 2 * HOUR - jump + (LATE if jump else 2 * STEP)


@pytest.mark.parametrize(
    "jump", [-HOUR, *(pytest.param(each, marks=pytest.mark.tier2) for each in (HOUR, 0))]
)
async def test_a_lease(mock_clock, shop, jump) -> None:
    sent = await shop.send("held")
    (message,) = await shop.receive(0, 2 * HOUR * 1_000)
    assert message["attempts"] == 1
    shop.nursery.start_soon(shop.consume, HOUR * 1_000)
    await shop.pass_time(HOUR / 4)
    shop.set_clock(jump)
    waited = await shop.until_received("held", 1, 4 * HOUR) - sent
    assert 2 * HOUR - jump <= waited <= 2 * HOUR - jump + (LATE if jump else 2 * STEP)


@pytest.mark.tier2
async def test_a_clock_that_is_set_there_and_back_changes_nothing(mock_clock, shop) -> None:
    shop.nursery.start_soon(shop.consume, 12 * HOUR * 1_000)
    sent = await shop.send("later", delayMs=2 * HOUR * 1_000)
    await shop.pass_time(HOUR)
    shop.set_clock(-HOUR)
    await shop.pass_time(HOUR / 2)
    shop.set_clock(0)
    waited = await shop.until_received("later", 1, HOUR) - sent
    assert 2 * HOUR <= waited <= 2 * HOUR + LATE


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_waiting_does_not_depend_on_the_wall_clock(mock_clock, shop, jump) -> None:
    """A long poll lasts as long as it was to last, and what is sent meanwhile comes at once."""
    begun = trio.current_time()
    ended: list[float] = []

    async def poll() -> None:
        assert await shop.receive(30_000, 1_000) == []
        ended.append(trio.current_time() - begun)

    shop.nursery.start_soon(poll)
    await shop.pass_time(10)
    shop.set_clock(jump)
    await shop.pass_time(20)
    assert ended == [30]
    shop.nursery.start_soon(shop.consume, HOUR * 1_000)
    sent = await shop.send("now")
    assert await shop.until_received("now", 1, 2 * STEP) - sent <= STEP


async def test_a_clock_that_is_set_at_random_for_hours(mock_clock, shop, rng) -> None:
    """Set at random within an hour each way: every message comes, and none earlier than the clock was set by."""
    shop.nursery.start_soon(shop.consume, HOUR * 1_000)
    due: dict[str, tuple[float, float]] = {}
    for number in range(15):
        delay = rng.choice([0, 1, 60, HOUR])
        due[f"m{number}"] = (await shop.send(f"m{number}", delayMs=1_000 * delay, maxAttempts=100), delay)
        await shop.pass_time(rng.randrange(500))
        shop.set_clock(rng.randrange(-HOUR // 2, HOUR // 2 + 1))
    for content, (sent, delay) in due.items():
        await shop.until_received(content, 2, 6 * HOUR)
        first, second = shop.received[content][:2]
        assert delay - HOUR <= first - sent <= delay + HOUR + LATE
        assert 0 < second - first <= 2 * HOUR + LATE
