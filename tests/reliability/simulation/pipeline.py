"""One trial of a pipeline: versions are published into a queue, and a consumer drains it into a sink, through faults.

The publisher stages the messages of a version in pages and publishes them; whatever happens to it, it tries the same
version again, with a stage of another name. The drain does what Spark does: it notes which lease it is about to write,
reads it, writes it under its number, notes that it is written, and goes on with the next one, for which it acknowledges
this one. Both forget everything else when they are cancelled, when a batch is refused, and when a life of the writer
ends. A rival opens the consumer now and then, or asks with a generation that is over. In the end the sink has every
message once, in the order in which it was published.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
import trio

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.errors import ConsumerFenced, ServiceError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Stage
from forq_trio.storage.engine import Engine
from forq_trio.store import CommitFailed
from reliability.simulation.trial import TRIAL_SECONDS_MAX, Trial
from support.actors import elapse

QUEUE, CONSUMER, APP = "drained", "spark", "loader"


class PipelineTrial(Trial):
    """versions: the contents of each. published: how many of them are known to be. sink: what was written, by lease.

    written: the lease up to which the drain knows that it wrote. fenced: how often a generation that is over was
    refused.
    """

    def __init__(self, seed: int, open_store: Callable[[], Engine]) -> None:
        super().__init__(seed, open_store)
        sizes = [self.rng.choice((0, 1, 3, 12, 40)) for _ in range(self.rng.randrange(1, 6))]
        self.versions = [[self._next_content() for _ in range(size)] for size in sizes]
        self.published = 0
        self.sink: dict[int, list[str]] = {}
        self.written = 0
        self.fenced = 0
        self._stages = 0

    async def run(self) -> None:
        with trio.fail_after(TRIAL_SECONDS_MAX):
            for _ in range(self.rng.randrange(1, 5)):
                await self._live()
            async with self._writer() as (_, broker):
                while self.published < len(self.versions):
                    await self._publish(broker)
                await self._drain(broker)
                assert (await broker.consumer(QUEUE, CONSUMER)).acknowledged == self.written
                counts = await broker.queue_stats(QUEUE)
                assert (counts.ready, counts.processing) == (0, 0)
        assert sorted(self.sink) == list(range(1, self.written + 1))
        drained = [content for number in sorted(self.sink) for content in self.sink[number]]
        assert drained == [content for version in self.versions for content in version]

    async def _live(self) -> None:
        with trio.CancelScope() as life:
            try:
                async with self._writer() as (engine, broker), trio.open_nursery() as nursery:
                    for work in (self._publish, self._drain, self._rival):
                        nursery.start_soon(self._try, work, broker)
                    nursery.start_soon(self._disturb, engine)
                    await elapse(self.rng.choice((0.05, 5, 400)))
                    match self.rng.randrange(3):
                        case 0:
                            nursery.cancel_scope.cancel()
                        case 1:
                            life.cancel()
            except* CommitFailed:
                pass

    async def _try(self, work: Callable[[Broker], object], broker: Broker) -> None:
        for _ in range(self.rng.randrange(1, 8)):
            await self._pause()
            with self._cancellable(), suppress(ServiceError, ConsumerFenced):
                await work(broker)

    async def _publish(self, broker: Broker) -> None:
        """Publish the versions that are left, from what is known of those published."""
        for number in range(self.published, len(self.versions)):
            contents = self.versions[number]
            self._stages += 1
            name = f"{number}-{self._stages}"
            size = self.rng.choice((1, 5, 100))
            pages = [contents[start : start + size] for start in range(0, len(contents), size)] or [[]]
            for page, part in enumerate(pages):
                for _ in range(self.rng.choice((1, 1, 2))):  # a page that is sent again is ignored
                    await broker.stage(QUEUE, name, page, [NewMessage(content) for content in part])
                await self._pause()
            await broker.publish(APP, number, [Stage(QUEUE, name, len(pages))])
            await self._pause()
            if self.rng.random() < 0.3:
                return  # as if it were killed before it could note that
            self.published = number + 1

    async def _drain(self, broker: Broker) -> None:
        """Go on behind what is written, until nothing is ready."""
        generation = (await broker.open_consumer(QUEUE, CONSUMER)).generation
        while True:
            number = self.written + 1
            lease = await broker.lease(
                *(QUEUE, CONSUMER, generation, number),
                acknowledge=self.written,
                max_messages=self.rng.choice((1, 4, 1_000)),
            )
            if lease.messages == 0:
                return
            read = [await self._read(broker, number) for _ in range(2)]
            assert read[0] == read[1] == self.sink.get(number, read[0]), "a lease changed"
            assert len(read[0]) == lease.messages
            await self._pause()
            self.sink[number] = read[0]
            await self._pause()
            self.written = number

    async def _read(self, broker: Broker, number: int) -> list[str]:
        contents: list[str] = []
        page: int | None = 0
        while page is not None:
            answer = await broker.lease_page(QUEUE, CONSUMER, number, page, self.rng.choice((1, 3, 100)))
            contents += [message.content for message in answer.messages]
            page = answer.next
        return contents

    async def _rival(self, broker: Broker) -> None:
        """Open the consumer, so that the drain is refused; or ask with a generation that is over."""
        opened = await broker.open_consumer(QUEUE, CONSUMER)
        await broker.open_consumer(QUEUE, CONSUMER)
        with pytest.raises((ConsumerFenced, ServiceError)) as refusal:
            await broker.lease(QUEUE, CONSUMER, opened.generation, self.written + 1)
        self.fenced += refusal.type is ConsumerFenced


def small_pages(set_limit: Callable[[object, str, object], None]) -> None:
    """Bounds so low that small versions are moved, leased and settled in many steps. set_limit: of monkeypatch."""
    for name, bound in (
        ("PUBLISH_STEP_MESSAGES_MAX", 5),
        ("CONSUMER_STEP_MESSAGES_MAX", 3),
        ("CONSUMER_STEP_DROPPED_MAX", 2),
    ):
        set_limit(limits, name, bound)
