"""Three servers on one PostgreSQL database: one after the other is killed, or stopped and continued, under load.

What the clients saw and what the database's log of events says is one history (crossed.py): nothing is lost, nothing
has two holders, messages keep their order, each time of a schedule has its message once. The other servers go on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import psycopg
import pytest
import trio

from reliability.process.load import BROKEN_OFF
from reliability.process.several import SERVERS, Load, Servers, load_on
from support.effort import soak_seconds

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]

ROUND_SENDS_MAX = 100


@pytest.fixture
def servers(database) -> Iterator[Servers]:
    servers = Servers(database)
    yield servers
    servers.close()


async def disturb(servers: Servers, load: Load, rounds: int, ends_at: float) -> int:
    """At least so many rounds, and as many more as there is time for: kill or stop a server. Returns how many."""
    rng = load.rng
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
    begun = trio.current_time()
    async with load_on(servers, rng) as load:
        done = await disturb(servers, load, rounds // 2, begun + seconds / 2)
        with held_snapshot(url):
            done += await disturb(servers, load, rounds - rounds // 2, begun + seconds)
    print(f"{done} disturbances")
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
