"""Batches of commands on message batches (`waits_of`)."""

from forq_trio.model.commands import (
    Ack,
    AddToMessageBatch,
    CloseMessageBatch,
    OpenMessageBatch,
    ShowMessageBatches,
)
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from support.waits_of import Commands, World, case, names
from support.words import receipts

THEN = AddressedMessage("reports", NewMessage("x"))


def opened(world: World, n: int) -> None:
    for name in names(n, "b"):
        world.run(OpenMessageBatch(name, NewMessageBatch(then=THEN)))


@case(OpenMessageBatch)
def opens_batches(world: World, n: int) -> Commands:
    return [OpenMessageBatch(name, NewMessageBatch(then=THEN)) for name in names(n, "b")]


@case(AddToMessageBatch)
def adds_to_batches(world: World, n: int) -> Commands:
    opened(world, n)
    return [
        AddToMessageBatch(name, (AddressedMessage("members", NewMessage("x")),)) for name in names(n, "b")
    ]


@case(AddToMessageBatch)
def adds_many_to_a_batch(world: World, n: int) -> Commands:
    opened(world, 1)
    world.send(["members"], group="g", deduplication_id="d")
    made = [NewMessage("x", group=each, deduplication_id=each) for each in names(4 * n, "m")]
    return [AddToMessageBatch("b0", tuple(AddressedMessage("members", each) for each in made))]


@case(CloseMessageBatch)
def closes_batches(world: World, n: int) -> Commands:
    opened(world, n)
    return [CloseMessageBatch(name) for name in names(n, "b")]


@case(ShowMessageBatches)
def shows_batches(world: World, n: int) -> Commands:
    opened(world, n)
    return [ShowMessageBatches(name) for name in names(n, "b")]


@case(Ack)
def acks_of_members_of_many_batches(world: World, n: int) -> Commands:
    opened(world, n)
    for name in names(n, "b"):
        messages = tuple(AddressedMessage("members", NewMessage("x")) for _ in range(2))
        world.run(AddToMessageBatch(name, messages))
    deliveries = world.claim(["members"], 2 * n)
    return [Ack("members", receipts([each])) for each in deliveries[::2]]
