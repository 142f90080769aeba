"""While a snapshot is held, no row that is gone can be removed: batches must not walk past more and more of them."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    AddToMessageBatch,
    CloseMessageBatch,
    Command,
    OfferMany,
    OpenMessageBatch,
)
from forq_trio.model.keys.types import Offering
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery
from forq_trio.storage.engine import Batch
from forq_trio.storage.postgres import dialect
from forq_trio.storage.postgres import engine as module
from forq_trio.storage.postgres.engine import PostgresEngine
from support.actors import T0
from support.words import ack, claim, nack, send

BATCHES = 60
"""So many are counted together, at the beginning and at the end."""
BATCHES_BETWEEN = 4 * BATCHES
STEP_MS = 200
BLOCKS = """
SELECT relname::text, pg_stat_get_xact_blocks_fetched(oid) FROM pg_catalog.pg_class
WHERE relnamespace = 'forq'::regnamespace AND relkind = 'r'
"""
"""Of tables: an index becomes higher in time, and each of its entries that is walked costs a look into the table."""


Sends = Callable[[random.Random], list[Command]]


@pytest.fixture
def empty_tables(database) -> str:
    """In a database of its own: other tests leave indexes of any size, and the planner chooses by that."""
    return database


@pytest.fixture
def engine(open_one, monkeypatch) -> PostgresEngine:
    monkeypatch.setitem(dialect.SQL, "blocks", BLOCKS)
    monkeypatch.setattr(module, "BATCHES_STORED", 8)
    monkeypatch.setattr(module, "BATCHES_FORGOTTEN", 4)
    return open_one()


@contextmanager
def held_snapshot(url: str) -> Iterator[None]:
    with psycopg.connect(url) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT FROM forq.messages LIMIT 1")
        yield


def plain(draw: random.Random) -> list[Command]:
    return [send(), send(delay_ms=draw.randrange(10 * STEP_MS) if draw.random() < 0.2 else None)]


def keyed(draw: random.Random) -> list[Command]:
    """Each key comes twice: so numbers are given out that are no message's."""
    keys = [str(draw.random()) for _ in range(2)]
    return [OfferMany("q", tuple(Offering("x", key=key) for key in keys + keys))]


def in_message_batches(draw: random.Random) -> list[Command]:
    """Each sends its last message, and is then over; the oldest of those are forgotten."""
    id, message = str(draw.random()), AddressedMessage("q", NewMessage("x"))
    terms = NewMessageBatch(then=message, expires_ms=limits.MESSAGE_BATCH_EXPIRES_MS_MAX // 1_000)
    return [OpenMessageBatch(id, terms), AddToMessageBatch(id, (message,)), CloseMessageBatch(id)]


class Traffic:
    """Batches that send, settle and claim; `touched` is how many blocks each made the database look at."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._engine = engine
        self._draw = random.Random(1)
        self._now_ms = T0
        self._held: Sequence[Delivery] = ()
        self._before: Counter[str] = Counter()
        begin = engine.connection.begin

        def begin_and_look() -> None:
            begin()
            self._before = self._blocks()

        monkeypatch.setattr(engine.connection, "begin", begin_and_look)

    def _blocks(self) -> Counter[str]:
        return Counter(dict(self._engine.connection.query("blocks")))

    def run(self, batches: int, sends: Sends) -> Counter[str]:
        """How many blocks of each table so many batches touched."""
        touched: Counter[str] = Counter()
        for _ in range(batches):
            self._now_ms += STEP_MS
            commands = sends(self._draw)
            if self._held:
                settle = nack if self._draw.random() < 0.1 else ack
                commands.append(settle(*self._held))
            commands.append(claim(most=4, lease_ms=40 * STEP_MS))
            result = self._engine.execute_batch(Batch(commands, self._now_ms))
            touched += self._blocks() - self._before
            self._engine.commit()
            self._held = result.outcomes[-1]
        return touched


@pytest.mark.parametrize("sends", [plain, in_message_batches, pytest.param(keyed, marks=pytest.mark.tier2)])
def test_a_batch_touches_as_many_blocks_after_hundreds_of_batches(engine, empty_tables, monkeypatch, sends):
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        connection.execute(
            "VACUUM ANALYZE"
        )  # as autovacuum may have done: then no index looks better than another
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_MAX", BATCHES // 2)
    traffic = Traffic(engine, monkeypatch)
    traffic.run(BATCHES, sends)
    with held_snapshot(empty_tables):
        engine.connection.plans.outdate()  # as every five seconds
        first = traffic.run(BATCHES, sends)
        traffic.run(BATCHES_BETWEEN, sends)
        engine.connection.plans.outdate()
        last = traffic.run(BATCHES, sends)
    grown = {name: (first[name], last[name]) for name in last if last[name] > 1.5 * first[name] + BATCHES}
    assert not grown
