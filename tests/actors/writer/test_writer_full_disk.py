"""What the writer executes while the disk is nearly full: acks with results store none."""

import pytest

from forq_trio.model.commands import Ack, AckWithResult
from forq_trio.model.errors import StorageFull
from forq_trio.model.messages.types import Receipt
from support.actors import ObservedEngine, running_writer
from support.words import claim, send


async def held(writer) -> Receipt:
    """The receipt of a message that is in process."""
    await writer.execute(send("x"))
    (delivery,) = await writer.execute(claim())
    return Receipt.parse(delivery.receipt)


async def test_while_the_disk_is_nearly_full_acks_store_no_results(engine) -> None:
    """They took the space that claims and acks need, and were never refused."""
    async with running_writer(engine) as writer:
        first, second = await held(writer), await held(writer)
        writer.storage.sends_refused = True
        assert await writer.execute(AckWithResult("q", (first, second), "r", 1_000)) == (True, True)
        assert writer.snapshot().logs["history"].last == 0
        assert writer.snapshot().counts["q"].total == 0
        writer.storage.sends_refused = False
        assert await writer.execute(AckWithResult("q", (await held(writer),), "r", 1_000)) == (True,)
        assert writer.snapshot().logs["history"].last == 1


@pytest.mark.parametrize("effect", ["alone", "with a send"])
async def test_a_batch_that_finds_the_disk_full_runs_again_without_its_results(
    engine, effect, monkeypatch
) -> None:
    """The ack was refused, so that the message was handled once more."""
    real = ObservedEngine.execute_batch

    def is_full(self, batch):
        if any(type(each) is AckWithResult for each in batch.commands):
            raise StorageFull("no space left on the disk")
        return real(self, batch)

    async with running_writer(engine) as writer:
        receipt = await held(writer)
        monkeypatch.setattr(ObservedEngine, "execute_batch", is_full)
        with_result = AckWithResult("q", (receipt,), "r", 1_000)
        if effect == "alone":
            assert await writer.execute(with_result) == (True,)
        else:
            writer.post(send("y"))
            assert await writer.execute(with_result) == (True,)
        assert [type(each) for each in engine.batches[-1].commands] == [Ack]
        assert writer.storage.sends_refused
