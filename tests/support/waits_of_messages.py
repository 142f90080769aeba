"""Batches of sends, offers, settlements and changes (`waits_of`)."""

from typing import Any

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import Scope
from forq_trio.model.commands import (
    Ack,
    AckById,
    AckRevision,
    BindTable,
    ChangeRedrive,
    Command,
    Configure,
    Delete,
    DiscardMessages,
    DropKey,
    DropKeys,
    EndSessions,
    Extend,
    ForgetQueue,
    ForgetRedrive,
    Nack,
    NackById,
    NameQueues,
    NoteSessionUse,
    NoteTokenUse,
    OfferMany,
    Pause,
    Ping,
    Produce,
    ProduceEach,
    ProduceMany,
    Purge,
    Redrive,
    RelayMessages,
    Release,
    RescheduleKey,
    Resubmit,
    RevokeToken,
    SaveRedrive,
    SaveSession,
    SaveToken,
    TakeSetAside,
)
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.outboxes.types import RelayedMessage
from forq_trio.model.queues.setting_values import Order, Overflow, Rate
from forq_trio.model.queues.settings import QueueTable, SettingsChange
from support.access import access_token
from support.actors import T0
from support.by_id import BY_ID
from support.redrives import redrive_task
from support.waits_of import Case, Commands, World, case, moved_pages, names, offered, offering
from support.words import receipts

# Sends


@case(Produce)
def sends(world: World, n: int) -> Commands:
    return [Produce("q", NewMessage("x")) for _ in range(n)]


@case(Produce)
def sends_to_many_queues(world: World, n: int) -> Commands:
    world.send(names(n))
    return [Produce(queue, NewMessage("x")) for queue in names(n)]


@case(Produce)
def sends_to_new_queues_with_groups(world: World, n: int) -> Commands:
    return [Produce(queue, NewMessage("x", group="g")) for queue in names(n)]


@case(Produce)
def sends_with_deduplication(world: World, n: int) -> Commands:
    world.send(names(n // 2), deduplication_id="d")
    return [Produce(queue, NewMessage("x", deduplication_id="d")) for queue in names(n)]


@case(ProduceMany)
def many_with_deduplication(world: World, n: int) -> Commands:
    world.run(
        ProduceMany("q", tuple(NewMessage("x", deduplication_id=name) for name in names(-(-n // 2), "d")))
    )
    return [ProduceMany("q", tuple(NewMessage("x", deduplication_id=name) for name in names(n, "d")))]


@case(ProduceMany)
def many_commands_with_deduplication_to_bounded_queues(world: World, n: int) -> Commands:
    world.configure(names(n), max_messages=1_000)
    ids = [(queue, f"d{number}") for queue in names(n) for number in range(3)]
    return [ProduceMany(queue, (NewMessage("x", deduplication_id=each),)) for queue, each in ids[:n]]


@case(ProduceMany)
def many_with_groups(world: World, n: int) -> Commands:
    world.run(ProduceMany("q", tuple(NewMessage("x", group=name) for name in names(-(-n // 2), "g"))))
    return [ProduceMany("q", tuple(NewMessage("x", group=name) for name in names(n, "g")))]


@case(ProduceMany)
def many_that_are_the_first_with_groups(world: World, n: int) -> Commands:
    world.send(["q"], 3)
    return [
        ProduceMany("q", (NewMessage("x"), *(NewMessage("x", group=name) for name in names(n, "g")))),
        ProduceMany("q", tuple(NewMessage("x", group=name, priority=7) for name in names(n, "h"))),
    ]


@case(Produce)
def sends_with_groups_to_many_queues(world: World, n: int) -> Commands:
    world.send(names(n), group="g")
    return [
        Produce(queue, NewMessage("x", group=group, priority=100 + index % 3))
        for index, queue in enumerate(names(n))
        for group in "gh"
    ]


@case(Produce)
def sends_with_the_first_groups_of_queues(world: World, n: int) -> Commands:
    world.send(names(n))
    return [Produce(queue, NewMessage("x", group="g")) for queue in names(n)]


@case(ProduceEach)
def sends_across(world: World, n: int) -> Commands:
    world.send(names(n), group="g", deduplication_id="e")
    message = NewMessage("x", group="g", deduplication_id="d", dead_letter_queue="x")
    return [ProduceEach(((queue, message), ("p", NewMessage("x"))), 1_000) for queue in names(n)]


@case(Produce)
def sends_to_a_queue_that_refuses(world: World, n: int) -> Commands:
    world.configure(["q"], max_messages=1)
    world.send(["q"])
    return [Produce("q", NewMessage("x", deduplication_id=name)) for name in names(n, "d")]


@case(Produce)
def sends_that_evict(world: World, n: int) -> Commands:
    world.configure(["q"], max_messages=100, overflow=Overflow.DROP_OLDEST)
    world.send(["q"], 100)
    return [Produce("q", NewMessage("x")) for _ in range(n)]


@case(Produce)
def sends_that_evict_into_dead_letters(world: World, n: int) -> Commands:
    world.configure(names(n), max_messages=2, overflow=Overflow.DEAD_LETTER)
    world.send(names(n), 2, group="g")
    return [Produce(queue, NewMessage("x", group="h")) for queue in names(n)]


@case(Produce)
def sends_due_first(world: World, n: int) -> Commands:
    world.configure(["q"], order=Order.DUE, delay_ms=1_000)
    return [Produce("q", NewMessage("x", priority=100 + number, ttl_ms=5_000)) for number in range(n)]


@case(Resubmit)
def resubmits(world: World, n: int) -> Commands:
    return [
        Resubmit("q", produced.id, target="p", remove=index % 2 == 0)
        for index, produced in enumerate(world.send(["q"], n, attributes={"a": "b"}))
    ]


@case(RelayMessages)
def relays(world: World, n: int) -> Commands:
    message = NewMessage("x", deduplication_id="d", group="g")
    outboxes = names(n, "o")
    world.run(
        *[RelayMessages(name, 0, (RelayedMessage(1, name, NewMessage("x", group="h")),)) for name in outboxes]
    )
    return [
        RelayMessages(name, 1, (RelayedMessage(2, name, message), RelayedMessage(3, "p", message)))
        for name in outboxes
    ]


@case(RelayMessages)
def relays_of_new_outboxes(world: World, n: int) -> Commands:
    return [RelayMessages(name, 0, (RelayedMessage(1, name, NewMessage("x")),)) for name in names(n, "o")]


@case(TakeSetAside)
def takes_what_was_set_aside(world: World, n: int) -> Commands:
    return [TakeSetAside((number,), True) for number in range(n)]


# Offers


@case(OfferMany)
def offers(world: World, n: int) -> Commands:
    return [OfferMany("q", tuple(offering(name) for name in names(n, "k")))]


@case(OfferMany)
def offers_of_many_callers(world: World, n: int) -> Commands:
    return [OfferMany(f"q{number % 3}", (offering(f"k{number}"),)) for number in range(n)]


@case(OfferMany)
def offers_of_one_key(world: World, n: int) -> Commands:
    return [OfferMany("q", (offering("k", mode="update"),)) for number in range(n)]


@case(OfferMany)
def offers_with_groups_to_bounded_queues(world: World, n: int) -> Commands:
    world.configure(names(n), max_messages=1_000)
    world.send(names(n), group="g")
    return [OfferMany(queue, (offering("k", group="h"), offering("l", group="i"))) for queue in names(n)]


@case(OfferMany)
def offers_that_change(world: World, n: int) -> Commands:
    offered(world, n, delay_ms=1_000)
    modes = ("update", "debounce", "create", "createIfAbsent")
    return [
        OfferMany(
            "q",
            tuple(
                Offering(key=name, content="y", mode=modes[index % 4], delay_ms=2_000, group="g")
                for index, name in enumerate(names(n, "k"))
            ),
        )
    ]


@case(OfferMany)
def offers_that_are_the_same(world: World, n: int) -> Commands:
    offered(world, n, delay_ms=1_000)
    return [OfferMany("q", tuple(offering(name, mode="update", delay_ms=1_000) for name in names(n, "k")))]


@case(OfferMany)
def offers_that_wait(world: World, n: int) -> Commands:
    offered(world, n, mode="onceMore")
    world.claim(["q"], n)
    offered(world, -(-n // 2), mode="onceMore")
    return [OfferMany("q", tuple(offering(name, mode="onceMore") for name in names(n, "k")))]


@case(RescheduleKey)
def reschedules(world: World, n: int) -> Commands:
    offered(world, n, delay_ms=1_000)
    return [RescheduleKey("q", name, "", T0 + 5_000) for name in names(n, "k")]


@case(RescheduleKey)
def reschedules_what_waits(world: World, n: int) -> Commands:
    offered(world, n)
    world.claim(["q"], n)
    offered(world, n, mode="onceMore")
    return [RescheduleKey("q", name, "", T0 + 5_000, once_more=True) for name in names(n, "k")]


@case(AckRevision)
def acks_of_revisions(world: World, n: int) -> Commands:
    return [AckRevision("q", f"k{index}", "", each.revision) for index, each in enumerate(offered(world, n))]


@case(DropKey)
def drops(world: World, n: int) -> Commands:
    offered(world, n)
    world.claim(["q"], n // 2)
    offered(world, n // 2, mode="onceMore")
    return [DropKey("q", name, "") for name in names(n, "k")]


@case(DropKeys)
def drops_of_kinds(world: World, n: int) -> Commands:
    world.run(*[OfferMany(queue, (offering("k"),)) for queue in names(n)])
    return [DropKeys(queue, "") for queue in names(n)]


# Settlements


@case(Ack)
def acks(world: World, n: int) -> Commands:
    return [Ack("q", receipts([each])) for each in world.leased(n)]


@case(Ack)
def acks_in_many_queues_with_groups(world: World, n: int) -> Commands:
    world.configure(names(n), group_in_flight_max=1)
    leased = world.leased(2, names(n), group="g")
    assert len(leased) == n
    return [Ack(None, receipts([each])) for each in leased]


@case(Ack)
def acks_of_keys_behind_which_offers_wait(world: World, n: int) -> Commands:
    offered(world, n)
    leased = world.claim(["q"], n)
    offered(world, n, mode="onceMore", group="g")
    return [Ack("q", receipts([each])) for each in leased]


@case(AckById)
def acks_by_id(world: World, n: int) -> Commands:
    return [AckById("q", each.id) for each in world.leased(n)]


@case(AckById)
def acks_by_id_of_moved_messages(world: World, n: int) -> Commands:
    sent = moved_pages(world, n)
    return [AckById(queue, each.id) for queue, each in zip(names(n), sent, strict=True)]


@case(Nack)
def nacks(world: World, n: int) -> Commands:
    return [Nack("q", receipts([each]), 0, "no") for each in world.leased(n)]


@case(Nack)
def last_nacks(world: World, n: int) -> Commands:
    leased = world.leased(1, names(n), max_attempts=1, group="g")
    return [Nack(queue, receipts([each]), 0) for queue, each in zip(names(n), leased, strict=True)]


@case(NackById)
def nacks_by_id(world: World, n: int) -> Commands:
    return [NackById("q", each.id) for each in world.leased(n)]


@case(DiscardMessages)
def discards(world: World, n: int) -> Commands:
    return [DiscardMessages("q", receipts([each]), "why") for each in world.leased(n)]


@case(Extend)
def extends(world: World, n: int) -> Commands:
    return [Extend("q", receipts([each]), 5_000 * (index % 2)) for index, each in enumerate(world.leased(n))]


@case(Extend)
def extends_what_has_ended(world: World, n: int) -> Commands:
    world.configure(["q"], group_in_flight_max=2)
    world.run(*[Produce("q", NewMessage("x", group=name)) for name in names(n, "g")])
    leased = world.claim(["q"], n, lease_ms=1_000)
    world.now_ms += 2_000
    world.run(Ping())
    return [Extend("q", receipts([each]), 5_000) for each in leased]


@case(Release)
def releases(world: World, n: int) -> Commands:
    return [Release("q", receipts([each])) for each in world.leased(n)]


# Settings, and single messages


@case(Configure)
def configures(world: World, n: int) -> Commands:
    world.send(names(n), group="g")
    return [Configure(queue, SettingsChange(rate=Rate(5, 1_000), max_attempts=2)) for queue in names(n)]


@case(NameQueues)
def names_queues(world: World, n: int) -> Commands:
    return [NameQueues((queue,), "token") for queue in names(n)]


@case(Pause)
def pauses(world: World, n: int) -> Commands:
    return [Pause(queue, True) for queue in names(n)]


@case(BindTable)
def binds(world: World, n: int) -> Commands:
    return [BindTable(queue, QueueTable("pgq", f"t{queue}")) for queue in names(n)]


@case(Redrive)
def redrives(world: World, n: int) -> Commands:
    return [Redrive("q", (each.id,), "p") for each in world.send(["q"], n)]


@case(Redrive)
def redrives_of_keys(world: World, n: int) -> Commands:
    return [Redrive("q", tuple(each.id for each in offered(world, n)), "p")]


@case(Delete)
def deletes(world: World, n: int) -> Commands:
    return [Delete("q", (each.id,)) for each in world.send(["q"], n)]


def by_id(kind: type[Command[Any]]) -> Case:
    def prepare(world: World, n: int) -> Commands:
        return [kind("q", each.id) for each in world.send(["q"], n)]

    prepare.__name__ = f"{kind.__name__.lower()}s"
    return prepare


for each in BY_ID:
    case(each)(by_id(each))


@case(Purge)
def purges(world: World, n: int) -> Commands:
    world.send(names(n))
    return [Purge(queue) for queue in names(n)]


@case(Purge)
def purges_of_moved_messages(world: World, n: int) -> Commands:
    moved_pages(world, n)
    return [Purge(queue) for queue in names(n)]


@case(ForgetQueue)
def forgets_queues(world: World, n: int) -> Commands:
    world.run(NameQueues(tuple(names(n)), ""))
    return [ForgetQueue(queue) for queue in names(n)]


@case(ForgetQueue)
def forgets_queues_with_messages(world: World, n: int) -> Commands:
    world.send(names(n))
    return [ForgetQueue(queue, 1) for queue in names(n)]


@case(ForgetQueue)
def forgets_queues_with_deduplication(world: World, n: int) -> Commands:
    world.send(names(n), deduplication_id="d")
    for queue in names(n):
        world.run(Purge(queue))
    return forgets_queues(world, n)


# Tasks, tokens, sessions


@case(SaveRedrive)
def saves_tasks(world: World, n: int) -> Commands:
    return [SaveRedrive(redrive_task(name)) for name in names(n)]


@case(ChangeRedrive)
def changes_tasks(world: World, n: int) -> Commands:
    world.run(*saves_tasks(world, n))
    return [ChangeRedrive(name, "paused") for name in names(n)]


@case(ForgetRedrive)
def forgets_tasks(world: World, n: int) -> Commands:
    world.run(*saves_tasks(world, n))
    return [ForgetRedrive(name) for name in names(n)]


@case(SaveToken)
def saves_tokens(world: World, n: int) -> Commands:
    return [
        SaveToken(access_token(name, f"{number:064x}", (Scope.BROWSE,)))
        for number, name in enumerate(names(n))
    ]


@case(RevokeToken)
def revokes_tokens(world: World, n: int) -> Commands:
    world.run(*saves_tokens(world, n))
    return [RevokeToken(name) for name in names(n)]


@case(NoteTokenUse)
def uses_of_tokens(world: World, n: int) -> Commands:
    world.run(*saves_tokens(world, n))
    return [NoteTokenUse({name: T0}) for name in names(n)]


@case(SaveSession)
def saves_sessions(world: World, n: int) -> Commands:
    times = (T0, T0 + 10**8, T0)
    return [SaveSession(UiSession(f"{name:>64}", None, "k", *times, "c", "a")) for name in names(n)]


@case(EndSessions)
def ends_sessions(world: World, n: int) -> Commands:
    world.run(*saves_sessions(world, n))
    return [EndSessions((f"{name:>64}",)) for name in names(n)]


@case(NoteSessionUse)
def uses_of_sessions(world: World, n: int) -> Commands:
    world.run(*saves_sessions(world, n))
    return [NoteSessionUse({f"{name:>64}": T0 + 1}) for name in names(n)]
