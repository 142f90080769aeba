"""Promise 5: what a batch does costs the same however much is stored, counted in steps of SQLite's virtual machine."""

from collections.abc import Callable
from contextlib import closing
from typing import get_args

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Claim,
    Command,
    Configure,
    Delete,
    Pause,
    ProduceMany,
    Purge,
    Redrive,
    RedrivePolicy,
    Resubmit,
)
from forq_trio.model.dead_letters.searches import ListedState, MessageFilter
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.reader import SqliteReader
from support.batches import do, run
from support.vm_steps import Steps
from support.words import ack, claim, nack, send

FEW, MANY = 100, 1_000
GROWTH_MAX = 1.2
"""A little is left to chance (random draws). Whatever looked at each message would take ten times the steps."""


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch) -> None:
    """So that few messages are more than any bound."""
    for name in (
        "SHUFFLE_EXACT_MAX",
        "CLAIM_FILTERED_MAX",
        "PURGE_BATCH_MAX",
        "DUE_BATCH_MAX",
        "FAILED_MOVED_MAX",
        "SWEEP_BATCH_MAX",
    ):
        monkeypatch.setattr(limits, name, 10)


@pytest.fixture
def filled(tmp_path) -> Callable[[int, SettingsChange | None, str | None], SqliteEngine]:
    """Makes engines whose queue q holds as many messages as one says, in another queue as many dead ones."""
    engines: list[SqliteEngine] = []

    def fill(count: int, change: SettingsChange | None, group: str | None) -> SqliteEngine:
        engine = SqliteEngine(str(tmp_path / f"{count}.db"), EngineSettings(), "normal")
        engines.append(engine)
        if change is not None:
            do(engine, Configure("q", change))
        for start in range(0, count, 20):
            part = range(start, start + 20)
            many = tuple(NewMessage(f"m{n}", group=group, priority=n % 3) for n in part)
            do(engine, ProduceMany("q", many))
            do(engine, ProduceMany("q", tuple(NewMessage("later", delay_ms=60_000) for _ in part)))
            do(
                engine,
                ProduceMany("dead", tuple(NewMessage(f"d{n}", attributes={"n": str(n)}) for n in part)),
            )
        return engine

    yield fill
    for engine in engines:
        engine.close()


def steps_of(engine: SqliteEngine, *commands: Command) -> int:
    steps = Steps(engine._database.connection)
    run(engine, *commands)
    engine._database.connection.trace_v2(0)
    return steps.count


def flow(engine: SqliteEngine) -> list[int]:
    """Messages sent, claimed, given back, acknowledged."""
    steps = [
        steps_of(engine, send("one more", group="noisy")),
        steps_of(engine, send("quiet", group="quiet")),
    ]
    steps.append(steps_of(engine, send("plain"), send("again", priority=7)))
    deliveries = do(engine, claim(most=2))
    steps.append(steps_of(engine, claim(most=3)))
    steps.append(steps_of(engine, nack(*deliveries[:1], delay_ms=0), claim()))
    steps.append(steps_of(engine, ack(*deliveries[1:]), claim()))
    return steps


@pytest.mark.parametrize(
    ("change", "group"),
    [
        (None, None),
        (None, "noisy"),
        (SettingsChange(group_in_flight_max=1), "noisy"),
        (SettingsChange(max_messages=100_000, max_bytes=1_000_000_000), None),
    ],
    ids=["plain", "grouped", "bounded groups", "bounded queue"],
)
def test_messages_flow_at_the_same_cost(filled, change, group) -> None:
    few, many = (flow(filled(count, change, group)) for count in (FEW, MANY))
    assert_flat(few, many)


def assert_flat(few: list[int], many: list[int]) -> None:
    assert all(few)
    for before, after in zip(few, many, strict=True):
        assert after <= before * GROWTH_MAX, (few, many)


@pytest.mark.parametrize("overflow", list(Overflow))
def test_a_full_queue_makes_room_or_refuses_at_the_same_cost(filled, overflow) -> None:
    steps = []
    for count in (FEW, MANY):
        engine = filled(count, None, None)
        do(engine, Configure("q", SettingsChange(max_messages=2 * count, overflow=overflow)))
        steps.append([steps_of(engine, send("one")), steps_of(engine, send("two"), send("three"))])
        assert engine.snapshot().counts["q"].total == 2 * count
    assert_flat(*steps)


def test_holding_and_letting_go_cost_the_same(filled) -> None:
    steps = []
    for count in (FEW, MANY):
        engine = filled(count, SettingsChange(group_in_flight_max=1), "noisy")
        (first,) = do(engine, claim())
        taken = [steps_of(engine, claim()) for _ in range(3)]
        while engine.snapshot().counts["q"].ready:
            run(engine, claim())
        assert engine.snapshot().counts["q"].held == count - 1
        taken.append(steps_of(engine, ack(first), claim()))
        taken.append(steps_of(engine, Configure("q", SettingsChange(group_in_flight_max=5))))
        taken.append(steps_of(engine))
        steps.append(taken)
    assert_flat(*steps)


def test_random_and_poisoned_claims_cost_the_same(filled) -> None:
    steps = []
    for count in (FEW, MANY):
        engine = filled(count, None, None)
        taken = [steps_of(engine, Claim("q", 5, 0, shuffle=True))]
        for _ in range(3):
            do(engine, nack(*do(engine, claim(most=2)), delay_ms=0))
        taken.append(steps_of(engine, Claim("q", 2, None, redrive_policy=RedrivePolicy(2, "away", 10))))
        assert engine.snapshot().counts["away"].total == 2
        steps.append(taken)
    assert_flat(*steps)


def test_an_administrators_work_costs_the_same(filled) -> None:
    steps = []
    for count in (FEW, MANY):
        engine = filled(count, None, None)
        with closing(engine.open_reader()) as reader:
            ids = tuple(message.id for message in reader.browse("dead", None, 8))
        steps.append(
            [
                steps_of(engine, Redrive("dead", ids[:3], "q")),
                steps_of(engine, Delete("dead", ids[3:6])),
                steps_of(engine, Resubmit("dead", ids[6], "edited", target="q", remove=True)),
                steps_of(engine, Purge("dead")),
                steps_of(engine, Pause("q", True)),
                steps_of(engine, Pause("q", False), claim()),
                steps_of(engine, Configure("q", SettingsChange(lease_ms=5))),
            ]
        )
    assert_flat(*steps)


def test_looking_costs_the_same(filled) -> None:
    steps = []
    for count in (FEW, MANY):
        engine = filled(count, None, None)
        do(engine, claim(most=8))
        with closing(engine.open_reader()) as reader:
            taken = []
            for look in (
                lambda reader: reader.peek("q", 5),
                lambda reader: reader.peek_shuffled("q", 5),
                lambda reader: reader.browse("q", None, 5),
                lambda reader: reader.search(
                    "dead", MessageFilter(text="7", attributes={"n": "7"}), None, 5, 10
                ),
                lambda reader: reader.find_messages(
                    "dead", MessageFilter(text="7", error="", attributes={"n": "7"}), None, 5, 10
                ),
                lambda reader: reader.find_messages("q", MessageFilter(above_sequence=30), None, 5, 10),
                lambda reader: reader.count_messages("dead", MessageFilter(text="7", error=""), None, 10),
                lambda reader: reader.error_groups("dead", None, 10),
                *(
                    lambda reader, state=state: reader.list_messages("q", state, None, 5)
                    for state in get_args(ListedState)
                ),
                lambda reader: reader.list_messages("q", "ready", "1_7_7", 5),
                lambda reader: reader.list_messages("q", "delayed", "70", 5),
                lambda reader: reader.queue("q"),
                lambda reader: reader.queues_of([1, 2, 3]),
            ):
                taken.append(looked_at(reader, look))
            steps.append(taken)
    assert_flat(*steps)


def looked_at(reader: SqliteReader, look: Callable[[SqliteReader], object]) -> int:
    counter = Steps(reader._connection)
    look(reader)
    reader._connection.trace_v2(0)
    return counter.count


def test_a_look_at_each_message_would_be_seen(filled) -> None:
    """The measure itself can fail."""
    steps = []
    for count in (FEW, MANY):
        with closing(filled(count, None, None).open_reader()) as reader:
            everything = "SELECT sum(bytes) FROM messages"
            steps.append(looked_at(reader, lambda reader: reader._connection.execute(everything).get))  # noqa: B023
    assert steps[1] > 9 * steps[0]


class _Token(str):
    """The name of a token, which counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Token.compared += 1
        return str.__eq__(self, other)


def _compared_by_names(count: int) -> int:
    tx = Transaction.new(EngineSettings(), heads=False)
    _Token.compared = 0
    for number in range(count):
        assert tx.name(f"q{number}", _Token("narrow")) is None
    return _Token.compared


def test_a_new_name_costs_the_same_however_many_the_batch_has_made() -> None:
    assert 0 < _compared_by_names(400) <= 2 * _compared_by_names(200) + 10
