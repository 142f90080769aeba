"""Publications through the broker: how long one waits, and what it tells."""

import pytest

from forq_trio.model import limits
from forq_trio.model.errors import PublicationUnfinished, StorageFull
from forq_trio.model.messages import NewMessage
from forq_trio.wire.publishing import Publication, Stage

STAGES = [Stage("q", "s", 1)]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_WAIT_SECONDS", 0.001)


@pytest.mark.tier2  # its simulated seconds sometimes take many passes of the loop
async def test_while_nothing_can_be_stored_a_publication_says_so_and_a_repeated_one_waits_on(broker):
    await broker.stage("q", "s", 0, [NewMessage("x")])
    publish = broker._writer.execute

    async def publish_and_fill_the_disk(command):
        outcome = await publish(command)
        broker._writer.sends_refused = True
        return outcome

    broker._writer.execute = publish_and_fill_the_disk
    with pytest.raises(PublicationUnfinished):
        await broker.publish("app", 1, STAGES)
    broker._writer.execute = publish
    with pytest.raises(StorageFull):
        await broker.publish("app", 1, STAGES)
    broker._writer.sends_refused = False
    assert await broker.publish("app", 1, STAGES) == Publication(False)
    assert (await broker.queue_stats("q")).ready == 1


async def test_a_publication_that_takes_long_is_moving(broker, monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(limits, "PUBLISH_STEP_MESSAGES_MAX", 1)
    await broker.stage("q", "s", 0, [NewMessage("x")] * 3)
    assert await broker.publish_for_a_while("app", 1, STAGES) == Publication(True, 3, moving=True)
    assert await broker.publish("app", 1, STAGES) == Publication(False)
    assert (await broker.queue_stats("q")).ready == 3
