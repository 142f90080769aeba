"""Words for tests of message batches."""

from forq_trio.model.commands import (
    AddToMessageBatch,
    CloseMessageBatch,
    OpenMessageBatch,
    ShowMessageBatches,
)
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage

from .script import T0, contents, do, receive

THEN = AddressedMessage("reports", NewMessage("all done"))
ALARM = AddressedMessage("alarms", NewMessage("one is dead"))


def opened(engine, id="b", *, by=None, now=T0, **terms):
    return do(engine, OpenMessageBatch(id, NewMessageBatch(**terms), by), now)


def added(engine, *texts, id="b", queue="q", now=T0, **options):
    messages = tuple(AddressedMessage(queue, NewMessage(text, **options)) for text in texts)
    return do(engine, AddToMessageBatch(id, messages), now)


def close(engine, id="b", *, abandon=False, by=None, now=T0):
    return do(engine, CloseMessageBatch(id, abandon, by), now)


def shown(engine, id="b", *, by=None, now=T0):
    page = do(engine, ShowMessageBatches(id, by=by), now)
    return page.batches[0] if page.batches else None


def counts(engine, id="b", now=T0):
    batch = shown(engine, id, now=now)
    return batch.left, batch.done, batch.removed, batch.dead


def waiting(engine, queue):
    """The contents of the messages that are in a queue now, which are taken out of it."""
    return contents(receive(engine, 10, queue=queue))
