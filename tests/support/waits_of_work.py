"""Batches of claims, of long work, and of what runs by itself (`waits_of`)."""

import msgspec

from forq_trio.model.access.types import SECRET
from forq_trio.model.commands import (
    Ack,
    Claim,
    Compact,
    Configure,
    DeleteSchedule,
    DiscardStage,
    DropPages,
    EndStages,
    ForgetApp,
    ForgetConsumer,
    LeaseMessages,
    MoveBack,
    NoteConsumerUse,
    OpenConsumer,
    Optimize,
    PauseSchedule,
    Ping,
    Produce,
    Publish,
    PurgeHistory,
    RedrivePolicy,
    RunSchedule,
    SaveSchedule,
    SettleLease,
    StagePage,
    Sweep,
    SweepKind,
    TrimEvents,
    TrimHistory,
)
from forq_trio.model.consumers.types import Settling
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import NewMessageWithDefaultBound
from forq_trio.model.messages.where import Condition
from forq_trio.model.publishing.types import Stage, StagedPart
from forq_trio.model.queues.setting_values import Order, Rate, RatePer
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.engine import Receiver
from support.actors import T0
from support.waits_of import LEASE_MS, Commands, World, case, moved_pages, names
from support.words import receipts

# Claims


@case(Claim)
def claims(world: World, n: int) -> Commands:
    world.send(["q"], n)
    return [Claim("q", 1, LEASE_MS) for _ in range(n)]


@case(Claim)
def claims_of_many_queues(world: World, n: int) -> Commands:
    world.send(names(n), 3)
    return [Claim(queue, 1, LEASE_MS) for queue in names(n)]


@case(Claim)
def claims_of_many_queues_with_an_order(world: World, n: int) -> Commands:
    world.configure(names(n), order=Order.LIFO, in_flight_max=2)
    world.send(names(n), 3, priority=7)
    world.claim(names(n))
    return [Claim(queue, 5, LEASE_MS) for queue in names(n)]


@case(Claim)
def claims_with_their_own_leases(world: World, n: int) -> Commands:
    world.send(["q"], n)
    return [Claim("q", 1, LEASE_MS + index) for index in range(n)]


@case(Claim)
def claims_of_what_is_sent_at_once(world: World, n: int) -> Commands:
    world.send(names(n))
    sends = [Produce(queue, NewMessage("x")) for queue in names(n)]
    return [*sends, *[Claim(queue, 2, LEASE_MS) for queue in names(n)]]


@case(None)
def receivers_that_wait(world: World, n: int) -> Commands:
    world.receivers = {
        queue: (Receiver(index, Claim(queue, 1, LEASE_MS)),) for index, queue in enumerate(names(n))
    }
    return [Produce(queue, NewMessage("x", group="g")) for queue in names(n)]


@case(Claim)
def claims_under_a_limit_of_groups(world: World, n: int) -> Commands:
    world.configure(["q"], group_in_flight_max=1)
    world.run(*[Produce("q", NewMessage("x", group=name)) for name in names(n, "g")])
    return [Claim("q", 1, LEASE_MS) for _ in range(n)]


@case(Claim)
def claims_of_many_queues_under_a_limit_of_groups(world: World, n: int) -> Commands:
    world.configure(names(n), group_in_flight_max=1)
    world.send(names(n), 3, group="g")
    return [Claim(queue, 2, LEASE_MS) for queue in names(n)]


@case(Claim)
def claims_under_a_rate(world: World, n: int) -> Commands:
    world.configure(names(n), rate=Rate(2, 1_000))
    world.send(names(n), 5)
    world.claim(names(n))
    return [Claim(queue, 2, LEASE_MS) for queue in names(n)]


@case(Claim)
def claims_under_a_rate_of_groups(world: World, n: int) -> Commands:
    world.configure(["q"], rate=Rate(2, 1_000, RatePer.GROUP))
    world.run(*[Produce("q", NewMessage("x", group=name)) for name in names(n, "g") for _ in range(3)])
    world.claim(["q"], n)
    return [Claim("q", 2, LEASE_MS) for _ in range(n)]


@case(Claim)
def claims_of_many_queues_under_a_rate_of_groups(world: World, n: int) -> Commands:
    world.configure(names(n), rate=Rate(2, 1_000, RatePer.GROUP))
    world.send(names(n), 4, group="g")
    return [Claim(queue, 3, LEASE_MS) for queue in names(n)]


@case(Claim)
def claims_by_attributes(world: World, n: int) -> Commands:
    world.send(["q"], n, attributes={"a": "b"})
    return [Claim("q", 1, LEASE_MS, where=(Condition("a", "b"),)) for _ in range(n)]


@case(Claim)
def claims_by_attributes_of_many_queues(world: World, n: int) -> Commands:
    world.send(names(n), attributes={"a": "b"})
    return [Claim(queue, 1, LEASE_MS, where=(Condition("a", "b"),)) for queue in names(n)]


@case(Claim)
def shuffled_claims(world: World, n: int) -> Commands:
    world.send(["q"], n)
    return [Claim("q", 1, LEASE_MS, shuffle=True) for _ in range(n)]


@case(Claim)
def shuffled_claims_of_many_queues(world: World, n: int) -> Commands:
    world.send(names(n))
    return [Claim(queue, 1, LEASE_MS, shuffle=True) for queue in names(n)]


@case(Claim)
def claims_with_a_policy(world: World, n: int) -> Commands:
    message = NewMessageWithDefaultBound("x", default_max_receives=9)
    world.run(*[Produce("q", message) for _ in range(n)])
    world.claim(["q"], n, lease_ms=1_000)
    world.now_ms += 2_000
    world.run(Ping(), is_due=True)
    return [Claim("q", 1, LEASE_MS, redrive_policy=RedrivePolicy(5, "d")) for _ in range(n)]


@case(Claim)
def claims_that_find_exhausted_messages(world: World, n: int) -> Commands:
    world.send(names(n))
    world.claim(names(n), lease_ms=1_000)
    world.now_ms += 2_000
    world.run(Ping(), is_due=True)
    world.configure(names(n), max_attempts=1)
    return [Claim(queue, 1, LEASE_MS) for queue in names(n)]


# What runs by itself


@case(None)
def delays_that_end(world: World, n: int) -> Commands:
    world.send(names(n), delay_ms=1_000)
    world.now_ms += 2_000
    world.is_due = True
    return []


@case(None)
def leases_that_end(world: World, n: int) -> Commands:
    world.configure(names(n), group_in_flight_max=1)
    world.send(names(n), 2, group="g")
    world.claim(names(n), lease_ms=1_000)
    world.now_ms += 2_000
    world.is_due = True
    return []


@case(None)
def messages_that_expire(world: World, n: int) -> Commands:
    world.send(names(n), ttl_ms=1_000, group="g")
    world.now_ms += 2_000
    world.is_due = True
    return []


@case(None)
def tokens_that_come(world: World, n: int) -> Commands:
    world.configure(names(n), rate=Rate(1, 1_000, RatePer.GROUP))
    world.send(names(n), 3, group="g")
    world.claim(names(n), 2)
    world.now_ms += 1_500
    world.is_due = True
    return []


@case(None)
def groups_that_are_freed(world: World, n: int) -> Commands:
    world.configure(names(n), group_in_flight_max=1)
    world.send(names(n), 3, group="g")
    leased = world.claim(names(n), 2)
    assert len(leased) == n
    world.is_due = True
    return [Ack(None, receipts([each])) for each in leased]


@case(None)
def limits_that_are_lifted(world: World, n: int) -> Commands:
    world.configure(names(n), group_in_flight_max=1)
    world.send(names(n), 3, group="g")
    world.claim(names(n), 2)
    return [Configure(queue, SettingsChange(group_in_flight_max=None)) for queue in names(n)]


@case(Sweep)
def sweeps(world: World, n: int) -> Commands:
    world.send(names(n), ttl_ms=1_000, deduplication_id="d", deduplication_window_ms=1_000)
    world.now_ms += 2_000
    return [Sweep(SweepKind.EXPIRED)]


@case(Sweep)
def sweeps_of_failed_messages(world: World, n: int) -> Commands:
    world.send(names(n), max_attempts=1)
    world.claim(names(n), lease_ms=1_000)
    world.now_ms += 2_000
    return [Sweep(SweepKind.FAILED)]


# Publications


def staged(world: World, n: int) -> None:
    body = msgspec.msgpack.encode([NewMessage("x")])
    world.run(*[StagePage(queue, "s", 0, (StagedPart(body, 1, 1),)) for queue in names(n)])


@case(StagePage)
def stages_of_pages(world: World, n: int) -> Commands:
    staged(world, n)
    body = msgspec.msgpack.encode([NewMessage("x")])
    return [StagePage(queue, "s", 1, (StagedPart(body, 1, 1),)) for queue in names(n)]


@case(StagePage)
def stages_that_are_new(world: World, n: int) -> Commands:
    body = msgspec.msgpack.encode([NewMessage("x")])
    return [StagePage(queue, "s", 0, (StagedPart(body, 1, 1),)) for queue in names(n)]


@case(Publish)
def publishes(world: World, n: int) -> Commands:
    staged(world, n)
    return [Publish(queue, 1, (Stage(queue, "s", 1),)) for queue in names(n)]


@case(Publish)
def publishes_many_stages(world: World, n: int) -> Commands:
    staged(world, n)
    return [Publish("app", 1, tuple(Stage(queue, "s", 1) for queue in names(n)))]


@case(None)
def publications_that_enter_their_queues(world: World, n: int) -> Commands:
    staged(world, n)
    world.run(Publish("app", 1, tuple(Stage(queue, "s", 1) for queue in names(n))))
    world.is_due = True
    return []


@case(ForgetApp)
def forgets_apps(world: World, n: int) -> Commands:
    world.run(*publishes(world, n))
    return [ForgetApp(queue, SECRET) for queue in names(n)]


@case(DiscardStage)
def discards_stages(world: World, n: int) -> Commands:
    staged(world, n)
    return [DiscardStage(queue, "s") for queue in names(n)]


@case(EndStages)
def ends_stages(world: World, n: int) -> Commands:
    staged(world, n)
    world.now_ms += 10**9
    return [EndStages() for _ in range(n)]


# Schedules


def schedule(queue: str, every: str = "1h") -> NewSchedule:
    return NewSchedule(every=every, queue=queue, content="x", while_pending="skip")


def scheduled(world: World, n: int) -> None:
    for queue in names(n):
        world.run(SaveSchedule(queue, schedule(queue), by=queue))


@case(SaveSchedule)
def saves_schedules(world: World, n: int) -> Commands:
    return [SaveSchedule(queue, schedule(queue)) for queue in names(n)]


@case(SaveSchedule)
def changes_schedules(world: World, n: int) -> Commands:
    scheduled(world, n)
    world.run(*[RunSchedule(queue) for queue in names(n)])
    return [SaveSchedule(queue, schedule(queue, "2h")) for queue in names(n)]


@case(PauseSchedule)
def pauses_schedules(world: World, n: int) -> Commands:
    scheduled(world, n)
    return [PauseSchedule(queue, True) for queue in names(n)]


@case(DeleteSchedule)
def deletes_schedules(world: World, n: int) -> Commands:
    scheduled(world, n)
    return [DeleteSchedule(queue) for queue in names(n)]


@case(RunSchedule)
def runs_schedules(world: World, n: int) -> Commands:
    scheduled(world, n)
    return [RunSchedule(queue) for queue in names(n)]


@case(None)
def runs_that_are_due(world: World, n: int) -> Commands:
    scheduled(world, n)
    world.run(*[RunSchedule(queue) for queue in names(n)])
    world.now_ms += 2 * 3_600_000
    world.is_due = True
    return []


# The history, consumers, events, maintenance


@case(PurgeHistory)
def purges_the_history(world: World, n: int) -> Commands:
    return [PurgeHistory(queue) for queue in names(n)]


@case(TrimHistory)
def trims_the_history(world: World, n: int) -> Commands:
    return [TrimHistory(T0 - 1, 10**9) for _ in range(n)]


@case(TrimEvents)
def trims_events(world: World, n: int) -> Commands:
    world.send(["q"], n + 1)
    return [TrimEvents(T0 + 1, 10**9) for _ in range(n)]


@case(OpenConsumer)
def opens_consumers(world: World, n: int) -> Commands:
    return [OpenConsumer(queue, "k") for queue in names(n)]


@case(LeaseMessages)
def leases_messages(world: World, n: int) -> Commands:
    world.send(names(n), 3)
    world.run(*[OpenConsumer(queue, "k") for queue in names(n)])
    return [LeaseMessages(queue, "k", 1, 1, 3, 10_000) for queue in names(n)]


@case(SettleLease)
def acknowledges_leases(world: World, n: int) -> Commands:
    moved_pages(world, n)
    return [SettleLease(queue, "k", 1, 1, Settling.ACKNOWLEDGE) for queue in names(n)]


@case(SettleLease)
def releases_leases(world: World, n: int) -> Commands:
    moved_pages(world, n)
    return [SettleLease(queue, "k", 1, 1, Settling.RELEASE) for queue in names(n)]


@case(MoveBack)
def puts_pages_back(world: World, n: int) -> Commands:
    sent = moved_pages(world, n)
    last = max(each.sequence for each in sent)
    return [MoveBack(queue, 0, last + 1) for queue in names(n)]


@case(DropPages)
def drops_pages(world: World, n: int) -> Commands:
    world.run(*acknowledges_leases(world, n))
    world.now_ms += 10**9
    return [DropPages(queue, "k") for queue in names(n)]


@case(ForgetConsumer)
def forgets_consumers(world: World, n: int) -> Commands:
    world.run(*opens_consumers(world, n))
    return [ForgetConsumer(queue, "k") for queue in names(n)]


@case(NoteConsumerUse)
def uses_of_consumers(world: World, n: int) -> Commands:
    world.run(*opens_consumers(world, n))
    world.now_ms += 1
    return [NoteConsumerUse(queue, "k") for queue in names(n)]


@case(Ping)
def pings(world: World, n: int) -> Commands:
    return [Ping() for _ in range(n)]


@case(Optimize)
def optimizes(world: World, n: int) -> Commands:
    return [Optimize() for _ in range(n)]


@case(Compact)
def compacts(world: World, n: int) -> Commands:
    return [Compact(4) for _ in range(n)]
