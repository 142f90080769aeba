"""The connection to the database is cut, or falls silent, at random bytes of random batches: no answer is a lie.

What was answered as done is there, and what was answered as unavailable is not. An outcome is unknown only while the
database stays away, and then all of the batch is there, or nothing.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from forq_trio.model.commands import Ack, Configure, Nack, Produce
from forq_trio.model.errors import StorageUnavailable
from forq_trio.model.messages.types import Delivery, QueueCounts, Status
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, EngineSettings, OutcomeLost
from forq_trio.storage.postgres import connection as connection_module
from forq_trio.storage.postgres import engine as module
from forq_trio.storage.postgres.dialect import SQL
from forq_trio.storage.postgres.engine import PostgresEngine
from support.actors import T0
from support.batches import do
from support.database_proxy import (
    ANSWERED,
    ANYTHING,
    ASKED,
    COMMIT,
    COMMITTED,
    DatabaseProxy,
    Fault,
    database_proxy,
)
from support.effort import count, many_trials
from support.words import ack, claim, nack, send

LEASE_MS = 5_000
BYTES_MAX = 2_500
"""About what a batch asks, and what it is answered."""

Table = dict[int, Any]


class Witness:
    """A connection beside the proxy: what is stored when no batch runs."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def table(self) -> Table:
        with self._connection.transaction():
            self._connection.execute("SET search_path = forq")
            self._connection.execute(SQL["gate"])  # whatever was cut off has ended then
            return {row.seq: row for row in self._connection.execute("SELECT * FROM forq.messages")}


def counted(table: Table) -> tuple[int, int, int]:
    found = [row.status for row in table.values()]
    return found.count(Status.READY), found.count(Status.PROCESSING), found.count(Status.DELAYED)


class Story:
    """Random batches of two processes, of which one has a bad line. seen: how often what was told."""

    def __init__(
        self, rng: Random, proxy: DatabaseProxy, engines: list[PostgresEngine], witness: Witness
    ) -> None:
        self._rng = rng
        self._proxy = proxy
        self._engines = engines
        self._witness = witness
        self._sent = 0
        self._now_ms = T0
        self._held: list[Delivery] = []
        self._leases: dict[int, int] = {}
        self.seen = dict.fromkeys(("done", "unavailable", "unknown"), 0)

    def fault(self) -> Fault:
        rng = self._rng
        way, mark, passed = rng.choice(
            [
                (ASKED, ANYTHING, rng.randrange(BYTES_MAX)),
                (ANSWERED, ANYTHING, rng.randrange(BYTES_MAX)),
                (ASKED, COMMIT, rng.randrange(60)),
                (ANSWERED, COMMITTED, rng.choice((0, rng.randrange(60)))),
            ]
        )
        return Fault(way, mark, passed, silent=rng.random() < 0.03)

    def commands(self) -> list[Any]:
        rng = self._rng
        made: list[Any] = []
        for _ in range(rng.randrange(1, 5)):
            kind = rng.choice(("send", "send", "later", "claim", "claim", "ack", "ack", "nack"))
            if kind == "send" or kind == "later":
                self._sent += 1
                delay_ms = rng.randrange(1, 3_000) if kind == "later" else None
                made.append(send(str(self._sent) * rng.choice((1, 1, 300)), delay_ms=delay_ms))
            elif kind == "claim":
                made.append(claim(most=rng.randrange(1, 9), lease_ms=LEASE_MS))
            elif self._held:
                delivery = self._held.pop(rng.randrange(len(self._held)))
                made.append(ack(delivery) if kind == "ack" else nack(delivery, delay_ms=0))
        return made

    def step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One batch with faults in its way, and then one of the process beside it."""
        rng, proxy = self._rng, self._proxy
        self._now_ms += rng.choice((0, 1, 300, LEASE_MS + 1))
        before = self._witness.table()
        proxy.faults.extend(self.fault() for _ in range(rng.choice((1, 1, 1, 2, 3))))
        proxy.refuses_after_hit = stays_away = rng.random() < 0.1
        monkeypatch.setattr(module, "OUTCOME_SECONDS_MAX", 0.0 if stays_away else 60.0)
        told = self._run(self._engines[0], before, stays_away=stays_away)
        self.seen[told] += 1
        proxy.calm()
        assert self._run(self._engines[1], self._witness.table(), stays_away=False) == "done"

    def _run(self, engine: PostgresEngine, before: Table, *, stays_away: bool) -> str:
        commands = self.commands()
        outcomes: list[Any] = []
        try:
            result = engine.execute_batch(Batch(commands, self._now_ms))
            engine.commit()
            outcomes = result.outcomes
            told = "done"
        except StorageUnavailable:
            told = "unavailable"
        except OutcomeLost:
            assert stays_away
            told = "unknown"
        after = self._witness.table()
        if told == "unavailable":
            assert after == before
        elif told == "unknown":
            self._check_unknown(commands, before, after)
        else:
            self._check_done(commands, outcomes, before, after)
            counts = engine.snapshot().counts.get("q", QueueCounts())
            assert (counts.ready, counts.processing, counts.delayed) == counted(after)
            assert counts.total == len(after)
        return told

    def _check_unknown(self, commands: list[Any], before: Table, after: Table) -> None:
        """All is there, or nothing."""
        sent = {each.message.content for each in commands if isinstance(each, Produce)}
        acked = {
            each.seq
            for command in commands
            if isinstance(command, Ack)
            for each in command.receipts
            if each.seq in before
            and before[each.seq].receipt == each.token
            and (before[each.seq].lease_until or 0) > self._now_ms
        }
        self._forget({each.seq for command in commands for each in getattr(command, "receipts", ())})
        if after != before:
            assert sent <= {row.content for row in after.values()}
            assert not acked & after.keys()

    def _check_done(self, commands: list[Any], outcomes: list[Any], before: Table, after: Table) -> None:
        new, gone = {}, set()
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(command, Produce):
                new[outcome.sequence] = command.message.content
            elif isinstance(command, Ack | Nack):
                done = {each.seq for each, ok in zip(command.receipts, outcome, strict=True) if ok}
                self._forget(done)
                gone |= done if isinstance(command, Ack) else set()
        for outcome in outcomes:  # settlements come first in a batch
            for each in outcome if isinstance(outcome, tuple) else ():
                if isinstance(each, Delivery):
                    self._received(each, after)
        assert not new.keys() & before.keys()
        assert {seq: row.content for seq, row in after.items()} == {
            seq: content
            for seq, content in ({seq: row.content for seq, row in before.items()} | new).items()
            if seq not in gone
        }

    def _forget(self, sequences: set[int]) -> None:
        """Nobody has to have their leases any more."""
        for sequence in sequences:
            self._leases.pop(sequence, None)

    def _received(self, delivery: Delivery, after: Table) -> None:
        row = after[delivery.sequence]
        assert (row.status, row.attempts) == (Status.PROCESSING, delivery.attempts)
        assert self._leases.get(delivery.sequence, 0) <= self._now_ms, "it has two holders"
        self._leases[delivery.sequence] = delivery.lease_until
        self._held.append(delivery)


@contextmanager
def story(rng: Random, url: str, durability: str) -> Iterator[tuple[Story, DatabaseProxy]]:
    with (
        database_proxy(url) as proxy,
        closing(PostgresEngine(url, EngineSettings(), "normal")) as beside,
        closing(PostgresEngine(proxy.url, EngineSettings(), durability)) as engine,
        psycopg.connect(url, autocommit=True, row_factory=namedtuple_row) as connection,
    ):
        do(beside, Configure("q", SettingsChange(max_attempts=1_000)))
        yield Story(rng, proxy, [engine, beside], Witness(connection)), proxy


@many_trials
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_what_is_told_after_a_cut_is_true(empty_tables, monkeypatch, rng, durability):
    cuts = count("connection_cuts") // 2
    monkeypatch.setattr(connection_module, "ANSWER_SECONDS_MAX", 0.5)
    with story(rng, empty_tables, durability) as (told, proxy):
        while proxy.hit < cuts or (proxy.hit < 10 * cuts and not _both(told.seen)):
            told.step(monkeypatch)
    print(f"{proxy.hit} cuts: {told.seen}")
    assert _both(told.seen)


def _both(seen: Mapping[str, int]) -> bool:
    """Whether some batches were done, and some were not: few cuts may show one of them only."""
    return bool(seen["done"] and seen["unavailable"])
