"""Message batches, in the same way through every face."""

import pytest

from forq_trio import (
    AddressedMessage,
    InvalidAttributes,
    InvalidName,
    InvalidRequest,
    MessageBatchEnded,
    MessageBatchExists,
    MessageBatchNotFound,
    NewMessage,
    NewMessageBatch,
    OutOfRange,
    Produced,
    ProduceToDeadLetterQueue,
)

from .face import Face

THEN = AddressedMessage("reports", NewMessage("all done", priority=7))


def members(*texts: str, queue: str = "q") -> list[AddressedMessage]:
    return [AddressedMessage(queue, NewMessage(text)) for text in texts]


async def test_a_batch_counts_and_sends(face: Face) -> None:
    methods = face.methods
    made = await methods.open_batch(NewMessageBatch(then=THEN), batch_id="b")
    assert (made.id, made.state, made.then_queue, made.made_by) == ("b", "open", "reports", None)
    assert await methods.open_batch(NewMessageBatch(then=THEN), batch_id="b") == made
    first, refused, last = await methods.add_to_batch(
        "b", [*members("1"), *members("2", queue="q-dlq"), *members("3")]
    )
    assert last.sequence > first.sequence
    assert isinstance(refused, ProduceToDeadLetterQueue)
    assert (await methods.close_batch("b")).state == "closed"
    delivery = await face.take()
    assert delivery.attributes == {"forq-batch": "b"}
    await methods.ack("q", delivery.receipt)
    assert (await methods.batch("b")).left == 1
    await methods.ack("q", (await face.take()).receipt)
    sent = await face.take("reports")
    assert (sent.content, sent.priority, sent.attributes) == ("all done", 7, {"forq-ended-batch": "b"})
    ended = await methods.batch("b")
    assert (ended.outcome, ended.then_id, ended.done, ended.members) == ("sent", sent.id, 2, 2)
    assert (await methods.batches()).batches == [ended]
    with pytest.raises(MessageBatchEnded):
        await methods.add_to_batch("b", members("4"))


async def test_a_batch_without_an_id_gets_one_and_is_abandoned(face: Face) -> None:
    methods = face.methods
    one, two = [await methods.open_batch(NewMessageBatch()) for _ in range(2)]
    assert one.id != two.id
    assert (await methods.abandon_batch(one.id)).outcome == "abandoned"
    page = await methods.batches(limit=1)
    assert [each.id for each in page.batches] == [two.id]
    rest = await methods.batches(before=page.next)
    assert ([each.id for each in rest.batches], rest.next) == ([one.id], None)


async def test_a_message_leaves_as_many_attributes_as_a_batch_adds(face: Face) -> None:
    def message(attributes: int) -> AddressedMessage:
        return AddressedMessage("q", NewMessage("m", attributes={f"a{n}": "" for n in range(attributes)}))

    methods = face.methods
    await methods.open_batch(NewMessageBatch(then=message(8)), batch_id="b")
    with pytest.raises(InvalidAttributes):
        await methods.open_batch(NewMessageBatch(then=message(9)))
    sent, refused = await methods.add_to_batch("b", [message(9), message(10)])
    assert isinstance(sent, Produced)
    assert isinstance(refused, InvalidAttributes)
    assert len((await face.take()).attributes or {}) == 10


async def test_what_is_wrong_is_refused(face: Face) -> None:
    methods = face.methods
    await methods.open_batch(NewMessageBatch(), batch_id="b")
    known = AddressedMessage("r", NewMessage("m", deduplication_id="d"))
    wrong = {
        MessageBatchExists: NewMessageBatch(then=THEN),
        ProduceToDeadLetterQueue: NewMessageBatch(then=AddressedMessage("r-dlq", NewMessage("m"))),
        InvalidRequest: NewMessageBatch(then=known),
        MessageBatchNotFound: NewMessageBatch(outer="none"),
        OutOfRange: NewMessageBatch(expires_ms=1),
    }
    for error, batch in wrong.items():
        with pytest.raises(error):
            await methods.open_batch(batch, batch_id="b" if error is MessageBatchExists else "c")
    for call in (methods.batch, methods.close_batch, methods.abandon_batch):
        with pytest.raises(MessageBatchNotFound):
            await call("none")
        with pytest.raises(InvalidName):
            await call("no such/name")
    for options in ({"limit": 0}, {"limit": 101}, {"before": -1}):
        with pytest.raises(OutOfRange):
            await methods.batches(**options)
    with pytest.raises(OutOfRange):
        await methods.add_to_batch("b", members(*["m"] * 1_001))
    with pytest.raises(MessageBatchNotFound):
        await methods.add_to_batch("none", members("m"))
