"""A streaming replica: reads go to it where it has what this process knows, and it takes over from a dead primary."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path

import pytest
import trio

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.errors import ServiceError, StorageOpenError
from forq_trio.model.server.database_urls import OtherUrls
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.system import open_broker
from support.actors import until
from support.batches import do
from support.postgres import Postgres, programs
from support.processes import WAIT_SECONDS_MAX
from support.words import send

pytestmark = pytest.mark.tier2
Pair = tuple[Postgres, Postgres]


@pytest.fixture
def make_pair(postgres) -> Iterator[Callable[..., Pair]]:
    """Starts a primary and a replica of it."""
    bin = programs()
    assert bin is not None
    with ExitStack() as stack:

        def start(primary: Postgres | None, **settings: str) -> Postgres:
            directory = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="forq-pair-", ignore_cleanup_errors=True)
                )
            )
            server = Postgres(bin, directory, primary, **settings)
            stack.callback(server.stop)
            return server

        def make(**settings: str) -> Pair:
            primary = start(None, **settings)
            return primary, start(primary)

        yield make


def make_synchronous(primary: Postgres) -> None:
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    while primary.execute("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != [(1,)]:
        assert time.monotonic() < ends_at


@pytest.fixture
def reading(make_pair, monkeypatch) -> Iterator[tuple[PostgresEngine, Postgres]]:
    """An engine whose readers use a replica, and that replica."""
    monkeypatch.setattr(limits, "REPLICA_AWAY_SECONDS", 0.0)
    primary, replica = make_pair()
    others = OtherUrls(replica=replica.url())
    with closing(PostgresEngine(primary.url(), EngineSettings(), "full", others)) as engine:
        ends_at = time.monotonic() + WAIT_SECONDS_MAX
        while replica.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'forq'") == [(0,)]:
            assert time.monotonic() < ends_at, "the replica does not get our tables"
        yield engine, replica


def test_reads_go_to_the_replica_and_see_what_was_just_stored(reading, monkeypatch):
    monkeypatch.setattr(limits, "REPLICA_WAIT_SECONDS", 20.0)
    engine, _ = reading
    with closing(engine.open_reader()) as reader:
        for number in range(1, 50):
            do(engine, send())
            assert reader.queue("q")[0].ready == number
            assert len(reader.peek("q", 100)) == number
        assert reader._to_replica is reader._connection
        assert reader._to_primary is None
    assert engine.facts().replica == "used"


def test_a_replica_that_is_behind_or_away_is_passed_over_until_it_is_back(reading, monkeypatch):
    engine, replica = reading
    with closing(engine.open_reader()) as reader:
        do(engine, send())
        assert reader.queue("q")[0].ready == 1
        replica.execute("SELECT pg_wal_replay_pause()")
        do(engine, send())
        assert reader.queue("q")[0].ready == 2
        assert engine.facts().replica == "behind"
        replica.execute("SELECT pg_wal_replay_resume()")
        monkeypatch.setattr(limits, "REPLICA_WAIT_SECONDS", 20.0)
        assert reader.queue("q")[0].ready == 2
        assert engine.facts().replica == "used"
        replica.stop()
        assert reader.queue("q")[0].ready == 2
        assert engine.facts().replica == "away"
        replica.start()
        assert reader.queue("q")[0].ready == 2
        assert engine.facts().replica == "used"


def test_reads_go_on_while_the_primary_is_away(reading):
    engine, _ = reading
    with closing(engine.open_reader()) as reader:
        do(engine, send())
        assert reader.queue("q")[0].ready == 1
        engine._addresses.database.connect = None  # nobody asks it
        with closing(engine.open_reader()) as another:
            assert another.queue("q")[0].ready == 1


def test_a_database_that_is_no_replica_of_this_one_is_refused(postgres, database):
    for other in (postgres.new_database(), postgres.url()):
        with pytest.raises(StorageOpenError, match="is no replica of the database"):
            PostgresEngine(database, EngineSettings(), "full", OtherUrls(replica=other))


async def test_what_was_answered_is_there_after_a_failover_and_processes_recover_by_themselves(make_pair):
    """Synchronous replication, the primary killed under load, the replica promoted."""
    primary, replica = make_pair()
    make_synchronous(primary)
    url = f"postgresql://postgres@/postgres?host={primary.directory},{replica.directory}&target_session_attrs=read-write"
    answered: set[str] = set()
    recovered: list[float] = []

    async def produce(broker: Broker, name: str, promoted: trio.Event) -> None:
        number = 0
        while True:
            number += 1
            try:
                await broker.produce("q", f"{name}-{number}")
            except ServiceError:
                await trio.lowlevel.checkpoint()
                continue
            answered.add(f"{name}-{number}")
            if promoted.is_set():
                recovered.append(trio.current_time())
                return

    async with open_broker(url) as a, open_broker(url) as b:
        promoted = trio.Event()
        async with trio.open_nursery() as nursery:
            for place in range(6):
                nursery.start_soon(produce, (a, b)[place % 2], str(place), promoted)
            await until(lambda: len(answered) > 300)
            await trio.to_thread.run_sync(primary.kill)
            before = len(answered)
            assert await trio.to_thread.run_sync(replica.execute, "SELECT pg_promote()") == [(True,)]
            promoted_at = trio.current_time()
            promoted.set()
        assert before > 300
        assert max(recovered) - promoted_at < 5.0
        stored = {
            content for (content,) in replica.execute("SELECT content FROM forq.messages WHERE queue = 'q'")
        }
        assert answered <= stored
        received: list[str] = []
        for broker in cycle((a, b)):
            deliveries = await broker.receive("q", max_messages=100, wait_ms=0)
            received += [delivery.content for delivery in deliveries]
            if not deliveries:
                break
            await broker.ack("q", [delivery.receipt for delivery in deliveries])
        assert sorted(received) == sorted(stored)
