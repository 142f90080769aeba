"""The SQLite engine against the reference model: the same random batches, compared after every one of them.

Commands are drawn with stand-ins for what only an engine can give: `Receipt(n, 0)` stands for the receipt of the
n-th delivery counted from the latest, a message id "n" for the n-th message sent, counted the same way. Each side
gets them translated into its own. The engines agree when all else they say is equal; only of the next due time
may SQLite say that it is earlier than the model knows it to be, never later.
"""

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from forq_trio import limits
from forq_trio.commands import (
    Ack,
    AckById,
    Claim,
    Extend,
    Nack,
    NackById,
    Optimize,
    Ping,
    Produce,
    ProduceMany,
    Release,
    Sweep,
    SweepKind,
)
from forq_trio.model import Delivery, NewMessage, Produced, Receipt
from forq_trio.storage.engine import Batch, Engine, EngineSettings
from forq_trio.storage.memory import MemoryEngine
from forq_trio.storage.sqlite.engine import SqliteEngine

from .script import T0

STANDARD_QUEUES = ("a", "b")
QUEUES = ("a", "b", "a-dlq", "b-dlq")
SETTINGS = EngineSettings(queue_ttl_ms=60_000, dlq_ttl_ms=90_000, attempts_max=3)
DUE_BATCH_MAX = 6
# No shrinking: it takes minutes with scripts this long. The blob repeats a failure, Phase.shrink makes it small.
PHASES = (Phase.explicit, Phase.generate)

queues = st.sampled_from(QUEUES)
standard_queues = st.sampled_from(STANDARD_QUEUES)
stand_in_receipts = st.lists(st.builds(Receipt, st.integers(0, 9), st.just(0)), min_size=1, max_size=4)
stand_in_ids = st.integers(0, 9).map(str)
delays_ms = st.sampled_from((0, 1, 1_000, 30_000, 70_000))
leases_ms = st.sampled_from((0, 1, 1_000, 40_000, 200_000))
messages = st.builds(
    NewMessage,
    content=st.sampled_from(("", "x", "größe")),
    # Relative to the batch's time; the machine adds that.
    process_after_ms=st.one_of(st.none(), st.sampled_from((-5_000, 0, 1, 1_000, 50_000))),
    priority=st.sampled_from((0, 100, 100, 1_000)),
    deduplication_id=st.one_of(st.none(), st.sampled_from("kl")),
    deduplication_window_ms=st.sampled_from((1, 5_000)),
)
claims = st.builds(Claim, queues, st.integers(1, 5), leases_ms)
commands = st.one_of(
    st.builds(Produce, standard_queues, messages),
    st.builds(ProduceMany, standard_queues, st.lists(messages, min_size=1, max_size=5).map(tuple)),
    claims,
    claims,
    st.builds(Ack, queues, stand_in_receipts.map(tuple)),
    st.builds(Ack, queues, stand_in_receipts.map(lambda some: tuple(some[:1])), stand_in_ids),
    st.builds(AckById, queues, stand_in_ids),
    st.builds(
        Nack,
        queues,
        stand_in_receipts.map(tuple),
        st.one_of(st.none(), delays_ms),
        st.sampled_from((None, "", "broke")),
    ),
    st.builds(NackById, queues, stand_in_ids),
    st.builds(Extend, queues, stand_in_receipts.map(tuple), leases_ms),
    st.builds(Release, queues, stand_in_receipts.map(tuple), delays_ms),
    st.builds(Sweep, st.sampled_from(SweepKind)),
    st.sampled_from((Optimize(), Ping())),
)


class Side:
    """One engine, with what it alone knows: the ids and receipts it gave out, in order."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reader = engine.open_reader()
        self.ids: dict[int, str] = {}
        self.deliveries: list[tuple[str, Receipt]] = []

    def close(self) -> None:
        self.reader.close()
        self.engine.close()

    def translate(self, command: Any, now_ms: int) -> Any:
        """The command with this side's receipts and ids, and its times made absolute."""
        changes: dict[str, Any] = {}
        match command:
            case Produce(_, message):
                changes["message"] = _at(message, now_ms)
            case ProduceMany(_, many):
                changes["messages"] = tuple(_at(message, now_ms) for message in many)
            case Ack() | Nack() | Extend() | Release():
                changes["receipts"] = tuple(self._receipt(receipt.seq) for receipt in command.receipts)
        if getattr(command, "message_id", None) is not None:
            changes["message_id"] = self._id(int(command.message_id))
        if self.deliveries and "receipts" in changes and command.receipts[0].seq < 8:
            changes["queue"] = self._queue(command.receipts[0].seq, command.queue)
        return msgspec.structs.replace(command, **changes) if changes else command

    def _receipt(self, age: int) -> Receipt:
        return self.deliveries[-1 - age][1] if age < len(self.deliveries) else Receipt(1, age)

    def _queue(self, age: int, otherwise: str) -> str:
        """Mostly the queue that the message was delivered from: a wrong one would only ever be refused."""
        return self.deliveries[-1 - age][0] if age < len(self.deliveries) else otherwise

    def _id(self, age: int) -> str:
        known = list(self.ids.values())
        return known[-1 - age] if age < len(known) else "00000000-0000-7000-8000-000000000000"

    def run(self, batch: list[Any], parked: dict[str, list[Claim]], now_ms: int) -> tuple[Any, int | None]:
        """Execute and commit; what came of it without what only this side can know, and the next due time."""
        translated = [self.translate(command, now_ms) for command in batch]
        result = self.engine.execute_batch(Batch(translated, now_ms, parked))
        self.engine.commit()
        for outcome in result.outcomes:
            self._learn_ids(outcome)
        outcomes = [
            self._take(command.queue if isinstance(command, Claim) else "", outcome)
            for command, outcome in zip(translated, result.outcomes, strict=True)
        ]
        served = {
            queue: [(place, self._take(queue, deliveries)) for place, deliveries in parts]
            for queue, parts in sorted(result.served.items())
        }
        return (outcomes, served, result.events, result.failed_queued), result.next_due_ms

    def _learn_ids(self, outcome: Any) -> None:
        match outcome:
            case Produced(message_id, sequence):
                assert self.ids.setdefault(sequence, message_id) == message_id
            case tuple():
                for each in outcome:
                    self._learn_ids(each)

    def _take(self, queue: str, outcome: Any) -> Any:
        """The outcome without this side's ids and receipts, which are noted."""
        match outcome:
            case Produced():
                return msgspec.structs.replace(outcome, id="")
            case Delivery():
                receipt = Receipt.parse(outcome.receipt)
                assert receipt.seq == outcome.sequence
                assert self.ids[outcome.sequence] == outcome.id
                self.deliveries.append((queue, receipt))
                return msgspec.structs.replace(outcome, id="", receipt="")
            case tuple():
                return tuple(self._take(queue, each) for each in outcome)
            case _:
                return outcome

    def view(self, *, with_oldest: bool) -> Any:
        """Everything a reader can see. with_oldest: also since when the oldest ready message waits."""
        seen = []
        for queue in QUEUES:
            everything = self.reader.browse(queue, None, 100)
            for message in everything:
                assert self.ids[message.sequence] == message.id
                assert self.reader.message(queue, message.id) == message
            info = self.reader.queue(queue)
            peeked = [message.sequence for message in self.reader.peek(queue, 5)]
            seen.append(
                (
                    info if with_oldest else msgspec.structs.replace(info, oldest_ready_at=None),
                    [msgspec.structs.replace(message, id="") for message in everything],
                    peeked,
                )
            )
        return seen, self.reader.queues(), dict(self.engine.counts())


def _at(message: NewMessage, now_ms: int) -> NewMessage:
    if message.process_after_ms is None:
        return message
    return msgspec.structs.replace(message, process_after_ms=now_ms + message.process_after_ms)


class EnginesAgree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.exit = ExitStack()
        directory = self.exit.enter_context(tempfile.TemporaryDirectory())
        path = str(Path(directory) / "forq.db")
        self.model = self.exit.enter_context(closing(Side(MemoryEngine(SETTINGS))))
        self.sqlite = self.exit.enter_context(closing(Side(SqliteEngine(path, SETTINGS, "normal"))))
        self.now_ms = T0
        self.due_ms: int | None = None
        self.stepped_back = False

    def teardown(self) -> None:
        self.exit.close()

    @rule(
        batch=st.lists(commands, max_size=6),
        parked=st.dictionaries(queues, st.lists(claims, min_size=1, max_size=3), max_size=3),
        later_ms=st.sampled_from((0, 0, 1, 999, 5_000)),
    )
    def execute(self, batch, parked, later_ms):
        self.now_ms += later_ms
        ready = {queue for queue, counts in self.model.engine.counts().items() if counts.ready}
        # The writer parks a receiver only when its queue has nothing ready.
        waiting = {
            queue: [msgspec.structs.replace(claim, queue=queue) for claim in some]
            for queue, some in parked.items()
            if queue not in ready
        }
        expected, due_ms = self.model.run(batch, waiting, self.now_ms)
        found, sqlite_due_ms = self.sqlite.run(batch, waiting, self.now_ms)
        assert found == expected
        if due_ms is not None:
            assert sqlite_due_ms is not None
            assert sqlite_due_ms <= due_ms
        self.due_ms = due_ms

    @rule(ms=st.sampled_from((-2_000, 1_000, 15_000, 40_000, 60_000, 100_000)))
    def jump(self, ms):
        self.now_ms += ms
        self.stepped_back |= ms < 0

    @rule(early_ms=st.sampled_from((0, 1)))
    def jump_to_due(self, early_ms):
        if self.due_ms is not None:
            self.now_ms = max(self.now_ms, self.due_ms - early_ms)

    @invariant()
    def the_same_is_stored(self):
        # SQLite looks at the first arrival of each priority; a clock set back may give a later one an earlier time.
        with_oldest = not self.stepped_back
        assert self.sqlite.view(with_oldest=with_oldest) == self.model.view(with_oldest=with_oldest)


def test_sqlite_does_what_the_model_does(monkeypatch):
    """F2-F7 in any combination; a small bound on what one batch settles makes the bound part of the game."""
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", DUE_BATCH_MAX)
    run_state_machine_as_test(
        EnginesAgree,
        settings=settings(
            max_examples=50,
            stateful_step_count=30,
            deadline=None,
            database=None,
            print_blob=True,
            phases=PHASES,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
