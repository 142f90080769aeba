"""Engines whose batches do little, against the model, whose batches do everything: the same comes of it in the end.

Every history has the small bounds of one topic. It gives the sides one command at a time, or a few alike, to their end
(to_the_end.py); then what it answered, its events, and all that a reader sees are compared. Where an engine stops, and
that it stops in time, is what test_bounded_batches.py and the tests of each operation are about.

A batch ends with work of its own: failed messages move, held ones become ready, offers that waited are stored. So for
some commands it matters how many batches they take, and either way is right. Each topic leaves those out; in the
histories of test_model_equivalence.py they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from msgspec import UNSET
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    AckRevision,
    AckWithResult,
    Claim,
    Configure,
    Delete,
    DeleteSchedule,
    DiscardMessages,
    DropKey,
    Extend,
    LeaseMessages,
    Nack,
    NackById,
    OfferMany,
    OpenMessageBatch,
    PauseSchedule,
    Produce,
    ProduceEach,
    ProduceMany,
    PurgeHistory,
    Redrive,
    RelayMessages,
    Release,
    RescheduleKey,
    RunSchedule,
    SaveSchedule,
    StagePage,
    TrimHistory,
)
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import GroupOrder, Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.engine import ACKED, CLEANED_UP
from support.by_id import BY_ID
from support.dealt import Dealt
from support.effort import count, many_trials

from . import long_commands, strict_commands
from .long_commands import (
    batching,
    claims,
    evicting,
    limiting,
    moves,
    offers,
    publications,
    removals,
    runs,
    sends,
    settlements,
    together,
)
from .random_commands import SENT_TO, valid
from .test_model_equivalence import (
    SETTINGS,
    STEPS,
    EnginesAgree,
    MovedAgrees,
    PostgresAgrees,
    make_rough,
    run_histories,
)
from .to_the_end import ToTheEnd

STEP_BOUNDS = {
    "DUE_BATCH_MAX": 2,
    "FAILED_MOVED_MAX": 1,
    "CLAIM_FILTERED_MAX": 2,
    "PURGE_BATCH_MAX": 4,
    "EVICTED_MAX": 2,
    "STEP_BYTES_MAX": 12,
    "REWRITE_BYTES_MAX": 12,
    "COMMIT_MESSAGES_MAX": 2,
    "PUBLISH_STEP_MESSAGES_MAX": 4,
    "PUBLISH_STEP_BYTES_MAX": 9,
    "STAGES_ENDED_MAX": 1,
    "HISTORY_STEP_MESSAGES": 3,
    "HISTORY_STEP_BYTES": 6,
    "RUNS_STEP_MAX": 1,
    "STEP_SHARE": 3,
    "CONSUMER_STEP_MESSAGES_MAX": 6,
    "CONSUMER_STEP_DROPPED_MAX": 1,
    "CONSUMER_MOVED_BACK_MESSAGES_MAX": 2,
    "EVENTS_TRIMMED_MAX": 5,
}
"""How much a batch does at most."""
TOGETHER = {
    *(Ack, AckById, AckWithResult, DiscardMessages, Nack, NackById, Extend, Release),
    *(*BY_ID, Delete, Redrive, RescheduleKey, AckRevision, DropKey),
}
"""Commands of which several are in one batch: those that it leaves to the next one come there in the same order."""
SCHEDULING = SaveSchedule, PauseSchedule, DeleteSchedule, RunSchedule


def bounds(*names: str) -> dict[str, int]:
    return {name: STEP_BOUNDS[name] for name in names}


class OneByOne(EnginesAgree):
    """Each command alone and to its end.

    bounds: those that are small. doing: what its histories are full of. unset: settings that no queue has. alone:
    commands of which only the first part is given. seen: what took SQLite more batches than the model (commands, and
    what is due without one), and what was evicted.
    """

    bounds: ClassVar[Mapping[str, int]]
    doing: ClassVar[st.SearchStrategy[list[Any]]]
    unset: ClassVar[Sequence[str]]
    alone: ClassVar[Mapping[type, str]] = {}
    seen: ClassVar[Counter[str]] = Counter()
    steps: ClassVar = (*EnginesAgree.steps_of_any[3:], *["do"] * 14)

    @property
    def drawn(self):
        return STEPS | {"do": {"batch": self.doing}}

    def do(self, batch):
        self.execute(batch, {}, 0)

    def execute(self, batch, parked, later_ms):
        self.now_ms += later_ms
        adapted = filter(None, map(self.adapted, batch))
        for kind, some in groupby(adapted, type):
            if kind in TOGETHER:
                self.execute_together(list(some))
            else:
                for command in some:
                    self.execute_together([command])

    def adapted(self, command: Any) -> Any:
        """The command as this topic has it; None if it is left out."""
        part = self.alone.get(type(command))
        if part is not None:
            command = replace(command, **{part: getattr(command, part)[:1]})
        match command:
            case Claim():  # a lease that ends at once would end before the rest is claimed
                return replace(command, lease_ms=command.lease_ms or 1_000)
            case OfferMany():  # what waits behind a message is stored when a batch ends; so is what has expired removed
                return replace(command, offerings=tuple(map(_without_waiting, command.offerings)))
            case Configure(change=SettingsChange() as change):
                return replace(command, change=replace(change, **dict.fromkeys(self.unset, UNSET)))
            case _ if isinstance(command, SCHEDULING):
                return None
            case _:
                return command

    def execute_together(self, commands: list[Any]) -> None:
        before = self.in_process()
        sides = self.model, self.sqlite
        works = [ToTheEnd(side, self.now_ms) for side in sides]
        outcomes: list[list[Any]] = []
        rested, done = [], []
        for side, work in zip(sides, works, strict=True):
            work.rest()
            rested.append(work.batches)
            translated = [side.translate(command, self.now_ms) for command in commands]
            got = work.do_together(translated) if len(commands) > 1 else [work.do(translated[0])]
            outcomes.append([side.take(*each) for each in zip(translated, got, strict=True)])
            done.append(work.batches - rested[-1])
            work.rest()
        expected, found = works
        self.seen["due"] += rested[1] > rested[0]
        self.seen[type(commands[0]).__name__] += done[1] > done[0]
        self.seen["evicted"] += sum(reason == "overflow" for _, _, reason in found.counted)
        assert outcomes[1] == outcomes[0]
        assert found.counted == expected.counted
        assert found.events == expected.events
        assert found.durations == expected.durations
        assert found.runs == expected.runs
        assert found.woken >= expected.woken
        self.check_bounds((outcomes[1], {}), before)
        self.check_due(found.next_due_ms, expected.next_due_ms)
        self.due_ms = expected.next_due_ms
        for (kind, _, _), number in found.counted.items():
            self.events[kind] += number
        self.finished = self.events[ACKED] + self.events[CLEANED_UP]
        for command, outcome in zip(commands, outcomes[1], strict=True):
            if isinstance(command, PurgeHistory | TrimHistory):
                self.forgotten += outcome.count


def _without_waiting(offering: Any) -> Any:
    mode = offering.mode if offering.mode.startswith("create") else "createOrUpdate"
    at = offering.process_after
    return valid(replace(offering, mode=mode, process_after=None if at is None else max(at, 0)))


class Plain(OneByOne, MovedAgrees):
    """Queues without bounds, limits of groups and a history. Leases move their messages."""

    bounds = bounds(*(STEP_BOUNDS.keys() - {"EVICTED_MAX", "RUNS_STEP_MAX"}))
    long = long_commands.alone(*[sends, claims, settlements] * 2, moves, offers, removals)
    doing = long_commands.one_of(*[long] * 6, publications, together, together)
    unset = "max_messages", "max_bytes", "group_in_flight_max", "group_order", "rate", "max_attempts"
    steps = (*MovedAgrees.steps[3:], *["consume"] * 5, *["do"] * 10)


class Finished(OneByOne):
    """The same with a history, which has the order in which batches settle what is due: they settle all of it."""

    bounds = bounds(*(Plain.bounds.keys() - {"DUE_BATCH_MAX", "FAILED_MOVED_MAX", "REWRITE_BYTES_MAX"}))
    doing = Plain.doing
    unset = Plain.unset


class FullPages(Plain):
    """The pages of consumers reach their bounds, and acknowledged ones are evicted."""

    bounds = bounds("CONSUMER_STEP_MESSAGES_MAX", "STEP_SHARE") | {
        "CONSUMER_PAGES_BYTES_MAX": 2_000,
        "CONSUMER_PAGES_BYTES_A_KEY_MAX": 1_200,
    }


class FullQueues(OneByOne):
    """Queues that evict for a send, of which each looks at few messages."""

    bounds = bounds("EVICTED_MAX", "STEP_BYTES_MAX")
    doing = long_commands.alone(evicting, *[sends] * 5, claims, settlements)
    unset = "group_in_flight_max", "group_order", "rate", "max_attempts"
    alone = {ProduceEach: "messages", RelayMessages: "messages", OfferMany: "offerings"}  # noqa: RUF012

    @initialize()
    def bound(self):
        few = SettingsChange(max_messages=3, overflow=Overflow.DROP_OLDEST)
        small = SettingsChange(max_bytes=30, overflow=Overflow.DEAD_LETTER)
        self.execute([Configure("a", few), Configure("b", small)], {}, 0)


class Groups(OneByOne):
    """Groups with one message in process, of which many are freed at once. Messages do not expire.

    Each batch makes one held message of a freed group ready. A group that is freed by messages that expire in several
    batches would have more of them ready.
    """

    settings = replace(SETTINGS, queue_ttl_ms=10**9, dlq_ttl_ms=10**9)
    future_ms = settings.queue_ttl_ms // 2
    bounds = bounds("DUE_BATCH_MAX", "CLAIM_FILTERED_MAX")
    doing = long_commands.alone(sends, sends, claims, claims, settlements, settlements, moves, limiting)
    unset: ClassVar = ("ttl_ms", "rate", "max_attempts", "group_order")
    limited: ClassVar = SettingsChange(group_in_flight_max=1)

    @initialize()
    def limit(self):
        self.execute([Configure(queue, self.limited) for queue in sorted({*SENT_TO})], {}, 0)

    def adapted(self, command: Any) -> Any:
        command = super().adapted(command)
        match command:
            case StagePage() | LeaseMessages():  # a page may end where the filter does
                return None
            case Claim():
                return replace(command, redrive_policy=None)
            case Configure(change=SettingsChange(group_in_flight_max=int()) as change):
                return replace(command, change=replace(change, group_in_flight_max=1))
            case Produce(message=message):
                return replace(command, message=replace(message, ttl_ms=None))
            case ProduceMany(messages=messages):
                return replace(command, messages=tuple(replace(each, ttl_ms=None) for each in messages))
            case ProduceEach(messages=messages):
                named = tuple((queue, replace(each, ttl_ms=None)) for queue, each in messages)
                return replace(command, messages=named)
            case RelayMessages(messages=relayed):
                some = tuple(replace(each, message=replace(each.message, ttl_ms=None)) for each in relayed)
                return replace(command, messages=some)
            case OfferMany(offerings=offerings):
                return replace(command, offerings=tuple(replace(each, ttl_ms=None) for each in offerings))
            case _:
                return command


class StrictGroups(Groups):
    """Groups that keep an order, of which many are freed at once.

    A claim that gets the rest of its messages in another batch would be another claim: the filter is as large as ever.
    """

    bounds = bounds("DUE_BATCH_MAX")
    doing = long_commands.alone(
        *[sends] * 2,
        *[claims] * 2,
        *[settlements] * 2,
        *[strict_commands.settlements, strict_commands.sends, strict_commands.claims],
        *(moves, strict_commands.ordering),
    )
    unset = "ttl_ms", "rate", "max_attempts"
    limited = SettingsChange(group_order=GroupOrder.STRICT)


class Runs(OneByOne):
    """One schedule with many runs at once."""

    bounds = bounds("RUNS_STEP_MAX")
    doing = long_commands.alone(runs, claims, settlements)
    unset = "rate", "group_in_flight_max", "group_order"

    @initialize()
    def schedule(self):
        every_run = NewSchedule(queue="a", content="x", every="4s", missed="all")
        self.execute([SaveSchedule("e", every_run)], {}, 0)

    def adapted(self, command: Any) -> Any:
        return replace(command, name="e") if isinstance(command, SCHEDULING) else super().adapted(command)


class Members(OneByOne):
    """Batches of messages, of which each batch of the writer changes one."""

    bounds: ClassVar = {
        "MESSAGE_BATCH_WEIGHT": limits.COMMIT_MESSAGES_MAX,
        "MESSAGE_BATCHES_MAX": 3,
        "MESSAGE_BATCH_DEPTH_MAX": 3,
        "MESSAGE_BATCH_MEMBERS_MAX": 20,
    }
    doing = long_commands.alone(*[batching] * 3, *[claims] * 2, *[settlements] * 2, moves, removals)
    unset = Plain.unset

    @initialize()
    def open_batches(self):
        for id, outer in (("p", None), ("q", "p"), ("r", None)):
            then = AddressedMessage("a", NewMessage(f"after {id}"))
            new = NewMessageBatch(then=then, on_dead=then, outer=outer)
            self.execute([OpenMessageBatch(id, new)], {}, 0)

    def jump_to_due(self, early_ms):
        """Not to where batches expire: members that end at that time are counted before that, or not at all."""
        if self.due_ms is not None and self.due_ms < self.now_ms + limits.DAY_MS:
            super().jump_to_due(early_ms)


class Calm(PostgresAgrees):
    """On three engines that keep their connections: with one, rounds of groups and numbers of entries are forgotten."""

    def open_engine(self):
        super().open_engine()
        return Dealt(self.engines, self.random)


@pytest.mark.parametrize(
    "topic", [Plain, Finished, FullPages, FullQueues, Groups, StrictGroups, Runs, Members]
)
@many_trials
def test_what_takes_many_batches_comes_to_what_the_model_does_in_one(monkeypatch, topic):
    monkeypatch.setattr(MovedAgrees, "missed", 0, raising=False)
    monkeypatch.setattr(topic, "seen", Counter())
    run_histories(topic, count("bounded_histories"), monkeypatch, topic.bounds)
    assert count("bounded_histories") < 20 or +topic.seen


@pytest.mark.tier2
@pytest.mark.parametrize("topic", [Finished, FullQueues, Groups, StrictGroups, Runs, Members])
@many_trials
def test_so_it_does_on_postgres(monkeypatch, shared_database, topic):
    make_rough(monkeypatch, shared_database)
    on_postgres = type("OnPostgres", (topic, Calm), {})
    run_histories(on_postgres, max(count("bounded_histories") // 2, 1), monkeypatch, topic.bounds)
