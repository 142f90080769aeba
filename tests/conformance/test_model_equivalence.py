"""The SQLite engine against the reference model: the same random batches, compared after every one of them.

Commands are drawn with stand-ins for what only an engine can give (random_commands.py); each side gets them translated
into its own. The engines agree when all else they say is equal; only of the next due time may SQLite say that it is
earlier than the model knows it to be, never later. Shuffled claims are left out: test_shuffle.py has them.

The bounds here are part of what commands mean. Those on how much one batch does are as large as ever, so that each
batch does all there is to do, as the model does; test_bounded_equivalence.py has them small.
"""

import math
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from forq_trio.model import limits
from forq_trio.model.commands import (
    AckById,
    LeaseMessages,
    NackById,
    OpenConsumer,
    Produce,
    PurgeHistory,
    SettleLease,
    TrimHistory,
)
from forq_trio.model.consumers.types import Settling, consumer_key
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery
from forq_trio.storage.engine import ACKED, CLEANED_UP, PRODUCED, Engine, EngineSettings
from forq_trio.storage.logs import event_bytes
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.postgres.failures import DatabaseFailed
from forq_trio.storage.relational.parts.heads import Heads
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from support.aside import ReaderAside
from support.batches import read_events
from support.by_id import BY_ID
from support.effort import count, many_trials
from support.heads import check_heads, small_heads
from support.postgres import empty
from support.rough import Rough

from . import strict_commands
from .random_commands import QUEUES, batches, claims, queues
from .random_filters import filters
from .script import T0
from .side import Side, lines_of

SETTINGS = EngineSettings(queue_ttl_ms=60_000, dlq_ttl_ms=90_000, attempts_max=3, history=True, events=True)
SMALL_BOUNDS = {
    "SESSIONS_MAX": 2,
    "ERROR_GROUPS_MAX": 2,
    "FAILURES_PER_MESSAGE_MAX": 3,
    "STAGED_BYTES_MAX": 40,
    "STAGES_MAX": 5,
    "APPS_MAX": 2,
    "STAGE_LIFE_MS": 30_000,
    "MESSAGE_BATCHES_MAX": 2,
    "MESSAGE_BATCHES_OF_TOKENS_MAX": 3,
    "MESSAGE_BATCH_MEMBERS_MAX": 5,
    "MESSAGE_BATCH_DEPTH_MAX": 2,
    "MESSAGE_BATCH_REMEMBERED_MS": 20_000,
    "MESSAGE_BATCH_RETRY_MS": 3_000,
    "SCHEDULES_MAX": 3,
    "SCHEDULES_A_TOKEN_MAX": 1,
    "RUNS_KEPT_MAX": 3,
    "RUNS_COUNTED_MS_MAX": 35_000,
    "RUNS_CAUGHT_UP_MAX": 4,
    "RUN_GRACE_MS": 10_000,
    "CONSUMERS_MAX": 2,
    "CONSUMER_PAGE_MESSAGES_MAX": 2,
    "CONSUMER_LEASES_KEPT_MAX": 1,
    "CONSUMER_KEPT_BYTES_MAX": 500,
    "EVENTS_SLICE": 3,
    "EVENTS_SCAN_MAX": 7,
    "MESSAGE_EVENTS_MAX": 4,
}
LEFT_TO_SWEEPS = {"FAILED_MOVED_MAX": 0}
"""Messages that fail stay FAILED until a sweep."""
_READY_AFTER = {"produced", "nacked", "released", "lease_expired", "dead_lettered", "requeued", "updated"}
LAST_EVENTS = {
    "ready": _READY_AFTER,
    "held": _READY_AFTER,
    "delayed": {"produced", "nacked", "released", "updated"},
    "processing": {"delivered", "extended"},
    "failed": {"nacked", "lease_expired"},
    None: {"acked", "expired", "deleted", "cancelled"},
}
"""What the last event of a message may be, by its status; None: it is gone."""
# No shrinking: it takes minutes with scripts this long. The blob repeats a failure, Phase.shrink makes it small.
PHASES = (Phase.explicit, Phase.generate)


leasing = st.sampled_from("aab")
by_id = st.sampled_from((AckById, NackById, *BY_ID))
ages = st.integers(0, 12).map(str)
STEPS = {
    "execute": {
        "batch": batches,
        "parked": st.dictionaries(queues, st.lists(claims, min_size=1, max_size=3), max_size=3),
        "later_ms": st.sampled_from((0, 0, 1, 999, 5_000)),
    },
    "keep_order": {
        "batch": strict_commands.batches,
        "parked": st.dictionaries(
            strict_commands.queues, st.lists(strict_commands.claims, min_size=1, max_size=3), max_size=2
        ),
        "later_ms": st.sampled_from((0, 0, 1, 999, 5_000)),
    },
    "jump": {"ms": st.sampled_from((-2_000, 1_000, 15_000, 40_000, 60_000, 100_000))},
    "jump_to_due": {"early_ms": st.sampled_from((0, 1))},
    "search": {
        "queue": queues,
        "wanted": filters,
        "age": st.integers(0, 20),
        "limit": st.integers(1, 3),
        "scan": st.integers(1, 9),
    },
    "search_history": {
        "queue": queues,
        "wanted": filters,
        "limit": st.integers(1, 3),
        "scan": st.integers(1, 9),
    },
    "list_messages": {"queue": queues, "limit": st.integers(1, 4)},
    "consume": {
        "queue": leasing,
        "sent": st.integers(0, 5),
        "most": st.integers(1, 6),
        "how": st.sampled_from((None, None, *Settling)),
        "too_late_ms": st.sampled_from((None, 0, 0, 1)),
        "ahead": st.integers(0, 1),
    },
    "settle_by_id": {
        "named": st.lists(st.builds(lambda of, *named: of(*named), by_id, leasing, ages), max_size=3)
    },
}
"""What the methods of the machines are called with."""


class EnginesAgree(RuleBasedStateMachine):
    """One rule takes all steps: of several, Hypothesis leaves some out of a whole history, also that which commits."""

    settings = SETTINGS
    future_ms: ClassVar[float] = math.inf  # no jump leads further than that into the future
    drawn: ClassVar = STEPS
    steps_of_any: ClassVar = (
        *["execute"] * 5,
        *("jump", "jump_to_due", "search", "search_history", "list_messages"),
    )
    steps: ClassVar = (*steps_of_any, *["keep_order"] * 3)

    def __init__(self) -> None:
        super().__init__()
        self.exit = ExitStack()
        self.model = self.exit.enter_context(closing(Side(self.open_model())))
        self.sqlite = self.exit.enter_context(closing(Side(self.open_engine())))
        self.now_ms = T0
        self.due_ms: int | None = None
        self.events: Counter[str] = Counter()
        self.finished = self.forgotten = 0

    def open_model(self) -> Engine:
        return cast("Engine", MemoryEngine(self.settings))

    def open_engine(self) -> Engine:
        """The engine that is compared with the model."""
        directory = self.exit.enter_context(tempfile.TemporaryDirectory())
        return SqliteEngine(str(Path(directory) / "forq.db"), self.settings, "normal")

    def teardown(self) -> None:
        self.exit.close()

    @rule(data=st.data())
    def take_a_step(self, data):
        step = data.draw(st.sampled_from(self.steps), "step")
        arguments = data.draw(st.fixed_dictionaries(self.drawn[step]), step)
        getattr(self, step)(**arguments)

    def execute(self, batch, parked, later_ms):
        self.now_ms += later_ms
        waiting = {
            queue: [msgspec.structs.replace(claim, queue=queue) for claim in some]
            for queue, some in parked.items()
        }
        expected, due_ms = self.model.run(batch, waiting, self.now_ms)
        before = self.in_process()
        found, sqlite_due_ms = self.sqlite.run(batch, waiting, self.now_ms)
        assert found == expected
        self.check_bounds(found, before)
        for event in found[2]:
            self.events[event.kind] += event.count
        self.check_due(sqlite_due_ms, due_ms)
        self.finished = self.events[ACKED] + self.events[CLEANED_UP]
        for command, outcome in zip(batch, found[0], strict=True):
            if isinstance(command, PurgeHistory | TrimHistory):
                self.forgotten += outcome.count
        self.due_ms = due_ms

    def keep_order(self, batch, parked, later_ms):
        self.execute(batch, parked, later_ms)

    def check_due(self, found: int | None, expected: int | None) -> None:
        if expected is not None:
            assert found is not None
            assert found <= expected

    def in_process(self) -> Counter[tuple[str, str]]:
        """How many messages of each group are processing, by queue and group."""
        messages = [message for queue in QUEUES for message in self.sqlite.reader.browse(queue, None, 1_000)]
        return Counter(
            (message.queue, message.group)
            for message in messages
            if message.group is not None and message.status == "processing"
        )

    def check_bounds(self, said: Any, before: Counter[tuple[str, str]]) -> None:
        """No delivery is one too many, and no group gets above its limit (it may be, when that was lowered)."""
        outcomes, served, *_ = said
        lines = [deliveries for line in served.values() for _, deliveries in line]
        for deliveries in [*filter(lambda outcome: isinstance(outcome, tuple), outcomes), *lines]:
            for delivery in deliveries:
                if isinstance(delivery, Delivery):
                    self.check_attempts(delivery)
        for (queue, group), count_now in self.in_process().items():
            limit = self.sqlite.engine.snapshot().rules(queue).group_in_flight_max
            assert limit is None or count_now <= max(limit, before[queue, group])

    def check_attempts(self, delivery: Delivery) -> None:
        sequence = delivery.sequence
        queue = self.sqlite.reader.queues_of([sequence])[sequence]
        message = self.sqlite.reader.message(queue, self.sqlite.ids[sequence])
        rules = self.sqlite.engine.snapshot().rules(queue)
        assert message is not None
        assert delivery.attempts <= (message.max_attempts or rules.max_attempts)

    @invariant()
    def nothing_is_stored_or_gone_without_an_event(self):
        stored = sum(counts.total for counts in self.sqlite.engine.snapshot().counts.values())
        assert stored == self.events[PRODUCED] - self.events[ACKED] - self.events[CLEANED_UP]

    @invariant()
    def what_is_gone_is_in_the_history(self):
        """Every message that was ever stored is in a queue or in the history, once; all else was trimmed or purged."""
        assert self.sqlite.engine.snapshot().history_of(None).messages == self.finished - self.forgotten
        page = lines_of(self.sqlite.reader.log_lines("history", 0, None, 10_000, None).lines)
        finished = [line["sequence"] for line in page]
        assert len(finished) == len(set(finished)) == self.finished - self.forgotten
        assert not self.sqlite.reader.queues_of(finished)

    @invariant()
    def the_last_event_of_a_message_says_where_it_is(self):
        for side in (self.model, self.sqlite):
            stored = {m.sequence: m for queue in QUEUES for m in side.reader.browse(queue, None, 1_000)}
            for sequence, event in side.last_events.items():
                message = stored.get(sequence)
                status = None if message is None else message.status
                assert event["kind"] in LAST_EVENTS[status]
                if message is not None:
                    assert message.queue == (event["target"] or event["queue"])
                    assert message.received_at == event["receivedAt"]
                    waited = 0 if message.keyed is None else event["bytes"] - message.bytes
                    assert event["bytes"] == message.bytes + max(waited, 0)  # what waited behind it then
            assert stored.keys() <= side.last_events.keys()

    @invariant()
    def the_kept_events_have_the_bytes_that_are_told(self):
        for side in (self.model, self.sqlite):
            log, kept = side.engine.snapshot().logs["events"], read_events(side.reader)
            assert [event["id"] for event in kept] == list(range(log.first, log.last + 1))
            assert log.bytes == sum(
                event_bytes(event["queue"], event["reason"], event["target"]) for event in kept
            )

    def jump(self, ms):
        self.now_ms += ms

    def jump_to_due(self, early_ms):
        if self.due_ms is not None and not self.is_far(self.due_ms):
            self.now_ms = max(self.now_ms, self.due_ms - early_ms)

    def is_far(self, due_ms: int) -> bool:
        """Whether no jump leads there."""
        return due_ms > self.now_ms + self.future_ms

    def search(self, queue, wanted, age, limit, scan):
        before = None if age == 0 else max(self.model.ids, default=0) - age
        found = self.sqlite.search(queue, wanted, before, limit, scan)
        assert found == self.model.search(queue, wanted, before, limit, scan)

    def search_history(self, queue, wanted, limit, scan):
        found = self.sqlite.find_finished(queue, wanted, limit, scan)
        assert found == self.model.find_finished(queue, wanted, limit, scan)

    def list_messages(self, queue, limit):
        assert self.sqlite.lists(queue, limit) == self.model.lists(queue, limit)

    @invariant()
    def the_same_is_stored(self):
        assert self.sqlite.view() == self.model.view()

    @invariant()
    def the_oldest_came_at_the_same_time(self):
        """SQLite looks at the first of each priority. Where that is the oldest (no groups, no LIFO, no clock set
        back), they agree; else it may be too new, never too old."""
        for queue in QUEUES:
            firsts: dict[int, int] = {}
            for message in self.model.reader.peek(queue, 1_000):
                firsts.setdefault(message.priority, message.received_at)
            _, oldest = self.model.reader.queue(queue)
            _, found = self.sqlite.reader.queue(queue)
            assert found == oldest if oldest == min(firsts.values(), default=None) else found >= oldest


def run_histories(
    machine: type[EnginesAgree],
    trials: int,
    monkeypatch: pytest.MonkeyPatch,
    more_bounds: Mapping[str, int] | None = None,
) -> None:
    """Random histories; small bounds make them part of the game."""
    for name, bound in (SMALL_BOUNDS | dict(more_bounds or {})).items():
        monkeypatch.setattr(limits, name, bound)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Generating overly large repr"
        )  # the words for all commands are long
        _run(machine, trials)


def _run(machine: type[EnginesAgree], trials: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=trials,
            stateful_step_count=30,
            deadline=None,
            database=None,
            print_blob=True,
            phases=PHASES,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


@many_trials
def test_sqlite_does_what_the_model_does(monkeypatch):
    """F2-F7, S2-S8 in any combination."""
    trials = count("model_histories")
    run_histories(EnginesAgree, trials - trials // 3, monkeypatch)
    run_histories(EnginesAgree, trials // 3, monkeypatch, LEFT_TO_SWEEPS)


class MovedAgrees(EnginesAgree):
    """The same without a history, whose leases move messages into their pages; nothing that only looks changes that."""

    settings = msgspec.structs.replace(SETTINGS, history=False)
    future_ms = limits.CONSUMER_LEASE_MS // 2
    # few groups: of a queue that had one, no messages are moved
    steps = (*EnginesAgree.steps_of_any, *["consume"] * 5, *["settle_by_id"] * 2)
    missed: ClassVar[int]

    def open_engine(self) -> Engine:
        engine = super().open_engine()
        assert isinstance(engine, SqliteEngine)
        return cast("Engine", LooksAside(engine))

    def consume(self, queue, sent, most, how, too_late_ms, ahead):
        """The next step of a consumer: it sends plain messages, and leases some or settles its lease.

        too_late_ms: how far from the time of its lease the time is that it tells; None: it tells none.
        """
        consumer = self.model.engine.snapshot().consumers.get(consumer_key(queue, "k"))
        batch: list[Any] = [Produce(queue, NewMessage(f"plain {number}")) for number in range(sent)]
        if consumer is None:
            batch.append(OpenConsumer(queue, "k"))
        else:
            number = consumer.leased + (ahead if consumer.open is not None else 1)
            if how is None:
                leased = LeaseMessages(queue, "k", consumer.generation, number, most, 10_000, ahead > 0)
                batch.append(leased)
            else:
                number = consumer.leased - ahead
                times = consumer.lease_times()
                made_at = None if too_late_ms is None else times.get(number, self.now_ms) + too_late_ms
                batch.append(SettleLease(queue, "k", None, number, how, made_at))
        self.execute(batch, {}, 0)

    def settle_by_id(self, named):
        self.execute(named, {}, 0)

    def check_due(self, found, expected):
        """The end of their leases is years away, and the consumer's own limit ends them before."""
        if expected is None or not self.is_far(expected):
            super().check_due(found, expected)

    @invariant()
    def what_is_gone_is_in_the_history(self):
        """Messages with a result are, and no others."""
        reader = self.sqlite.reader
        pages = [reader.find_finished(queue, MessageFilter(), None, None, 1_000, 1_000) for queue in QUEUES]
        assert all(each.result is not None for page in pages for each in page.messages)
        number = sum(len(page.messages) for page in pages)
        assert self.sqlite.engine.snapshot().history_of(None).messages == number

    def teardown(self) -> None:
        MovedAgrees.missed += cast("ReaderAside", self.sqlite.reader).missed
        super().teardown()


class LooksAside:
    """An engine of which only a copy is read where reading would change it."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def open_reader(self) -> ReaderAside:
        return ReaderAside(self._engine, MovedAgrees.settings)


@many_trials
def test_messages_that_are_moved_into_pages_are_as_the_model_has_them(monkeypatch):
    monkeypatch.setattr(MovedAgrees, "missed", 0, raising=False)
    run_histories(MovedAgrees, count("moved_histories"), monkeypatch)
    assert count("moved_histories") < 20 or MovedAgrees.missed


class PostgresAgrees(EnginesAgree):
    """The same on PostgreSQL, the batches dealt over three engines whose database is rough with them."""

    url: ClassVar[str]
    seen: ClassVar[Counter[str]]

    def open_engine(self) -> Engine:
        empty(self.url)
        self.engines = [PostgresEngine(self.url, self.settings, "normal") for _ in range(3)]
        self.random = random.Random()
        self.rough = Rough(self.engines, self.random, self.url)
        return cast("Engine", self.rough)

    @initialize(number=st.integers(0, 2**32))
    def deal(self, number):
        """Hypothesis seeds the module `random` alike for all histories."""
        self.random.seed(number)

    def teardown(self) -> None:
        self.seen.update(self.rough.seen)
        super().teardown()

    @invariant()
    def every_process_knows_where_claims_begin(self):
        """Nothing that is ready is before a head: each claim is what a plain ORDER BY would answer."""
        engine = self.random.choice(self.engines)
        with suppress(DatabaseFailed):  # it finds out that it was cut off
            check_heads([engine], self.url)


def make_rough(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Heads of few messages, few heads, and processes that fall behind, so that all of it plays a part."""

    def mistaken(_: Heads, queue: str) -> bool:
        raise AssertionError(f"ready messages of {queue} were out of reach")

    monkeypatch.setattr(Heads, "mistaken", mistaken)
    small_heads(monkeypatch)
    monkeypatch.setattr(PostgresAgrees, "url", url, raising=False)
    monkeypatch.setattr(PostgresAgrees, "seen", Counter(), raising=False)


@pytest.mark.tier2
@many_trials
def test_postgres_does_what_the_model_does(monkeypatch, shared_database):
    make_rough(monkeypatch, shared_database)
    trials = count("model_histories")
    run_histories(PostgresAgrees, trials - trials // 3, monkeypatch)
    run_histories(PostgresAgrees, trials // 3, monkeypatch, LEFT_TO_SWEEPS)
    assert count("model_histories") < 20 or PostgresAgrees.seen.keys() == {
        "undone",
        "cut",
        "isolated",
        "unheard",
    }
