"""Whatever is set for a full queue, and whatever is asked of it: no batch works through what is stored.

Work is counted in steps of SQLite's virtual machine, so the test measures no machine. A queue holds thousands of
messages in all states, the bounds of a batch are small, and one batch after another does random things to it; one that
walked over the queue would take many times the steps.
"""

import random
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec import UNSET

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Claim,
    Command,
    Configure,
    Extend,
    Nack,
    Pause,
    Produce,
    ProduceEach,
    ProduceMany,
    Purge,
    RedrivePolicy,
    Sweep,
    SweepKind,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import do, run
from support.effort import count, many_trials
from support.vm_steps import Steps

STORED = 20_000
BATCH_STEPS_MAX = 90_000
"""Of a batch with small bounds. A walk over the queue takes five steps a message, a claim of each 100."""


@pytest.fixture
def filled(tmp_path) -> Iterator[SqliteEngine]:
    """It has thousands of messages: ready ones of many sizes, priorities and groups, delayed, held and leased."""
    path = tmp_path / "forq.db"
    with closing(SqliteEngine(str(path), EngineSettings(), "normal")) as engine:
        do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
        for start in range(0, STORED, 500):
            part = range(start, start + 500)
            groups = [None if n % 3 else f"g{n % 400}" for n in part]
            many = [
                NewMessage("x" * (n % 40), priority=n % 5, group=group)
                for n, group in zip(part, groups, strict=True)
            ]
            do(engine, ProduceMany("q", tuple(many)))
            do(engine, ProduceMany("q", tuple(NewMessage("later", delay_ms=1_000 + n) for n in part[::5])))
            do(engine, Claim("q", 100, 60_000))
        yield engine


@pytest.fixture
def small_bounds(monkeypatch) -> None:
    for name in (
        *("EVICTED_MAX", "CLAIM_FILTERED_MAX", "DUE_BATCH_MAX"),
        *("FAILED_MOVED_MAX", "SWEEP_BATCH_MAX", "PURGE_BATCH_MAX"),
    ):
        monkeypatch.setattr(limits, name, 10)
    monkeypatch.setattr(limits, "SHUFFLE_EXACT_MAX", 10)
    monkeypatch.setattr(limits, "COMMIT_MESSAGES_MAX", 40)
    monkeypatch.setattr(limits, "STEP_BYTES_MAX", 400)
    monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 400)
    monkeypatch.setattr(limits, "COMMIT_CHANGES_MAX", 200)


class Requests:
    """Draws what clients and operators may ask for; knows some current receipts."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.receipts: list[Receipt] = []

    def draw(self) -> list[Command]:
        kinds = [self._settings, self._sends, self._claims, self._settlements, self._sweeps]
        return [command for kind in self.rng.sample(kinds, self.rng.randint(1, 3)) for command in kind()]

    def _settings(self) -> list[Command]:
        rng = self.rng
        change = SettingsChange(
            max_messages=rng.choice((UNSET, None, 1, 50, STORED // 2, STORED * 2)),
            max_bytes=rng.choice((UNSET, None, 1, 500, 20_000)),
            overflow=rng.choice((UNSET, *Overflow)),
            order=rng.choice((UNSET, *Order)),
            group_in_flight_max=rng.choice((UNSET, None, 1, 2, 30)),
            max_attempts=rng.choice((UNSET, None, 1, 2)),
            ttl_ms=rng.choice((UNSET, None, 1_000)),
        )
        return [Configure("q", change), *(Pause("q", rng.random() < 0.1) for _ in range(rng.randint(0, 1)))]

    def _sends(self) -> list[Command]:
        rng = self.rng
        made = [
            NewMessage(
                "y" * rng.choice((0, 5, 300)),
                priority=rng.randint(0, 5),
                group=rng.choice((None, "g0", "new")),
            )
            for _ in range(rng.randint(1, 8))
        ]
        each = ProduceEach(tuple(("q", message) for message in made), rng.choice((None, 100)))
        return [ProduceMany("q", tuple(made)), *(Produce("q", message) for message in made), each]

    def _claims(self) -> list[Command]:
        rng = self.rng
        policies = (None, None, RedrivePolicy(1, "x"), RedrivePolicy(1), RedrivePolicy())
        return [
            Claim(
                "q",
                rng.choice((1, 9)),
                rng.choice((0, 5, 60_000)),
                0,
                rng.random() < 0.2,
                rng.choice(policies),
            )
            for _ in range(rng.randint(1, 5))
        ]

    def _settlements(self) -> list[Command]:
        named = [tuple(self.rng.sample(self.receipts, min(4, len(self.receipts)))) for _ in range(3)]
        return [Ack("q", named[0]), Nack("q", named[1], 0), Extend("q", named[2], self.rng.choice((0, 9)))]

    def _sweeps(self) -> list[Command]:
        return [Sweep(self.rng.choice(list(SweepKind))), *(Purge("q") for _ in range(self.rng.randint(0, 1)))]


@many_trials
def test_no_batch_works_through_a_full_queue(filled, small_bounds, rng) -> None:
    requests = Requests(rng)
    now_ms = 2_000_000_000_000  # later than the whole life of what was sent
    steps = Steps(filled._database.connection)
    for _ in filled._database.connection.execute("SELECT bytes FROM messages WHERE queue = 'q'"):
        pass
    assert steps.count > BATCH_STEPS_MAX  # a walk over the queue would be noticed
    for number in range(count("bounded_batches")):
        commands = requests.draw()
        steps.count = 0
        result = run(filled, *commands, now_ms=now_ms if number % 3 == 0 else 1_700_000_000_000 + number)
        assert steps.count <= BATCH_STEPS_MAX, commands
        for command, outcome in zip(commands, result.outcomes, strict=True):
            if isinstance(command, Claim) and isinstance(outcome, tuple):
                requests.receipts += [Receipt.parse(delivery.receipt) for delivery in outcome]
        del requests.receipts[:-50]


@pytest.mark.usefixtures("small_bounds")
def test_a_shuffle_gives_up_where_most_positions_belong_to_one_message(tmp_path) -> None:
    stored = limits.SHUFFLE_EXACT_MAX + 100
    with closing(SqliteEngine(str(tmp_path / "shuffled.db"), EngineSettings(), "normal")) as engine:
        many = tuple(NewMessage("m") for _ in range(stored))
        run(engine, ProduceMany("q", many))  # their positions are sequence numbers
        run(engine, Configure("q", SettingsChange(order=Order.DUE)), Produce("q", NewMessage("at a time")))
        steps = Steps(engine._database.connection)
        (claimed,) = run(engine, Claim("q", 40, None, shuffle=True)).outcomes
        assert len({delivery.id for delivery in claimed}) == 40
        shuffled = steps.count
        steps.count = 0
        run(engine, Claim("q", 40, None))
        assert shuffled < 2 * steps.count
