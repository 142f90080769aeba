"""Fills an engine with something of all that it can store: rows in every table that a move has to bring along."""

from typing import NamedTuple

import msgspec

from forq_trio.model import commands
from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken, Digest, Key, Scope
from forq_trio.model.consumers.types import Settling
from forq_trio.model.keys.types import Offering
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Produced
from forq_trio.model.outboxes.types import RelayedMessage
from forq_trio.model.publishing.types import Stage, StagedPart
from forq_trio.model.queues.setting_values import Rate
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.engine import Engine
from support.actors import T0
from support.batches import do, run
from support.redrives import redrive_task
from support.words import ack, claim, nack, receipts, send

MINUTE_MS = 60_000
TOKEN = AccessToken("ann", (Scope.CONSUME, Scope.PRODUCE), "*", T0, None, None, Digest("d" * 64))


class Filled(NamedTuple):
    """once: a message with a deduplication id. leased: a delivery that is not settled."""

    once: Produced
    leased: Delivery


def fill(engine: Engine) -> Filled:
    """At T0 and a little later; with the history and lifecycle events, where the engine has them turned on."""
    change = SettingsChange(
        lease_ms=7 * MINUTE_MS, group_in_flight_max=1, rate=Rate(50, 1_000), max_attempts=2
    )
    do(engine, commands.Configure("groups", change))
    do(engine, commands.SaveToken(TOKEN))
    session = UiSession("a" * 64, "ann", "d" * 64, T0, T0 + 10**9, T0, "192.0.2.7", "Größe/1.0")
    do(engine, commands.SaveSession(session))
    do(engine, commands.SaveSession(msgspec.structs.replace(session, digest="F" * 64, key_name=None)))
    once = do(
        engine, send("größe ✓ \\ \t\n'\"", deduplication_id="once", priority=7, attributes={"k": "ü\\n"})
    )
    run(engine, *(send("x" * number, group=f"g{number % 3}", queue="groups") for number in range(12)))
    for leased in do(engine, claim(queue="groups", most=5))[:2]:
        do(engine, nack(leased, queue="groups"), T0 + 1)
    do(engine, claim(queue="groups", most=1), T0 + 2)
    for number in range(9):
        do(engine, send(f"m{number}", delay_ms=number * MINUTE_MS, ttl_ms=90 * MINUTE_MS))
    for delivery in do(engine, claim(most=1)):
        do(engine, ack(delivery))
    _fail(engine)
    (leased,) = do(engine, claim())
    _offer_keys(engine)
    _schedule(engine)
    _open_batches(engine)
    _consume(engine)
    _publish(engine)
    relayed = tuple(RelayedMessage(id, "relayed", NewMessage(f"r{id}")) for id in (3, 4))
    do(engine, commands.RelayMessages("shop", 0, relayed, Key("ann", "*")))
    do(engine, commands.SaveRedrive(redrive_task(state="paused", paused_at=T0)))
    return Filled(once, leased)


def _fail(engine: Engine) -> None:
    """Dead letters, with what failed."""
    for queue in ("fails", "fails-more"):
        do(engine, send("dead", queue=queue, max_attempts=1, attributes={"why": "x"}))
        (delivery,) = do(engine, claim(queue=queue))
        do(engine, commands.Nack(queue, receipts([delivery]), None, "error 17 at 0x22"))


def _open_batches(engine: Engine) -> None:
    """One with members, of which one is dead; another inside of it."""
    then = AddressedMessage("reports", NewMessage("größe ✓", attributes={"k": "v"}))
    do(engine, commands.OpenMessageBatch("b", NewMessageBatch(then=then, on_dead=then), "ann"))
    do(engine, commands.OpenMessageBatch("inner", NewMessageBatch(outer="b")))
    members = tuple(
        AddressedMessage("members", NewMessage(f"m{number}", max_attempts=1)) for number in range(3)
    )
    do(engine, commands.AddToMessageBatch("b", members))
    first, second = do(engine, claim(queue="members", most=2))
    do(engine, nack(first, queue="members"))
    do(engine, ack(second, queue="members"))


def _offer_keys(engine: Engine) -> None:
    """Keys that are pending, and an offer that waits behind a message in process."""
    offers = tuple(Offering(f"v{n}", key=f"k{n}", kind="job") for n in range(3))
    do(engine, commands.OfferMany("keys", offers))
    do(engine, claim(queue="keys", most=1))
    waiting = Offering("later", key="k0", kind="job", mode="once_more")
    do(engine, commands.OfferMany("keys", (waiting,)))


def _schedule(engine: Engine) -> None:
    for name in ("a", "b"):
        new = NewSchedule(queue="runs", content=name, every="10s")
        do(engine, commands.SaveSchedule(name, new, False, "ann"))
        do(engine, commands.RunSchedule(name))
    do(engine, commands.PauseSchedule("b", True, "ann"))


def _consume(engine: Engine) -> None:
    """A consumer with a lease that is not settled, and one that was forgotten."""
    run(engine, *(send(f"page {n}", queue="lake") for n in range(4)))
    for name in ("spark", "gone"):
        generation = do(engine, commands.OpenConsumer("lake", name)).generation
        do(engine, commands.LeaseMessages("lake", name, generation, 1, 2, 10**6))
    do(engine, commands.SettleLease("lake", "gone", 1, 1, Settling.RELEASE))
    while do(engine, commands.ForgetConsumer("lake", "gone")) is not None:
        pass


def move_into_pages(engine: Engine) -> None:
    """A lease whose messages are in its pages only: of an engine without history."""
    run(engine, *(send(f"größe {n}", queue="river", attributes={"n": str(n)}) for n in range(3)))
    opened = do(engine, commands.OpenConsumer("river", "moving"))
    do(engine, commands.LeaseMessages("river", "moving", opened.generation, opened.leased + 1, 100, 10**6))


def _publish(engine: Engine) -> None:
    """A stage that waits, and an app that published."""
    for name in ("waits", "done"):
        messages = [NewMessage(f"{name} {n}") for n in range(3)]
        size = sum(len(message.content) for message in messages)
        part = StagedPart(msgspec.msgpack.encode(messages), len(messages), size)
        do(engine, commands.StagePage("stages", name, 0, (part, part)))
    do(engine, commands.Publish("app", 4, (Stage("stages", "done", 1),)))
