"""The methods of the asynchronous client for pipelines: logs, consumers, stages and exports.

`sync_pipelines.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client import protocol
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.events import MessageEvent
from forq_trio.model.new_message import NewMessage
from forq_trio.wire.consumers import (
    AcknowledgeLease,
    ConsumerInfo,
    ConsumerLease,
    ConsumersQuery,
    LeasePage,
    LeasePageQuery,
    LeaseRequest,
    OpenConsumerRequest,
)
from forq_trio.wire.endpoints import consumers as consumer_api
from forq_trio.wire.endpoints import logs as log_api
from forq_trio.wire.endpoints import publishing as publishing_api
from forq_trio.wire.limits import (
    APPS_PAGE_MAX,
    CONSUMER_LEASE_MESSAGES_DEFAULT,
    EXPORT_PAGE_MAX,
    EXPORT_PARTITIONS_DEFAULT,
    LOG_PAGE_DEFAULT,
)
from forq_trio.wire.logs import (
    EventPage,
    EventRange,
    EventsQuery,
    HistoryPage,
    HistoryPageQuery,
    HistoryRange,
)
from forq_trio.wire.publishing import (
    AppPage,
    AppsQuery,
    ExportPage,
    ExportPartitions,
    ExportQuery,
    NamedStage,
    PartitionsQuery,
    Publication,
    PublishedVersion,
    PublishRequest,
    Stage,
    Staged,
)


class AsyncPipelines(AsyncConnection):
    """A client of pipelines alone: Spark's data source is one. It imports half of what a whole client does, because
    its modules name only the types that it needs; `types` has all of them.
    """

    async def stage(self, queue: str, stage: str, page: int, messages: Sequence[NewMessage]) -> Staged:
        """Store a page of up to 10,000 messages (4 MiB) beside the queue, until `publish`; returns once it is durable.

        stage: a unique name of the caller's choice. page: its number, from 0; a page that exists already is ignored,
        and answered like the first time, so a call can be repeated. All or nothing: the error for a message that cannot
        be stored names its line in `field`. A stage ends by itself a day after its last page.
        """
        lines = protocol.lines_of(messages)
        return await self._call(publishing_api.STAGE_PAGE, lines, queue=queue, stage=stage, page=page)

    async def discard_stage(self, queue: str, stage: str) -> None:
        """Discard a stage, if it exists."""
        await self._call(publishing_api.DISCARD_STAGE, queue=queue, stage=stage)

    async def publish(
        self, app: str, version: int, stages: Sequence[Stage], *, once: bool = False
    ) -> Publication:
        """Publish up to 1,000 stages in this order, in one transaction; returns when all messages are in their queues.

        Nothing is done if the app published this version, or a later one, before: so it can be repeated until it is
        answered. once: the app's name is used for one job only; it is remembered for 7 days instead of 366.

        Raises StageMissing for a stage that has not exactly these pages; PublicationUnfinished where it is published,
        but nothing can be stored for 30 seconds: a repeated call waits until all messages are in their queues.
        """
        named = [NamedStage(each.queue, each.stage, each.pages) for each in stages]
        wanted = PublishRequest(app, version, named, once)
        waits = protocol.PUBLISH_SECONDS
        first = answer = await self._call(publishing_api.PUBLISH, wanted, wait_seconds=waits)
        while answer.moving:
            answer = await self._call(publishing_api.PUBLISH, wanted, wait_seconds=waits)
        return Publication(first.published, first.messages)

    async def publication(self, app: str) -> PublishedVersion:
        """The last version that an app published. Raises PublicationNotFound."""
        return await self._call(publishing_api.SHOW_PUBLICATION, app=app)

    async def apps(self, *, after: int = 0, limit: int = APPS_PAGE_MAX) -> AppPage:
        """The apps that are remembered, in the order in which they published last, at most `limit` (1-1,000).

        after: the `next` of the page before. Of a token for some queues only apps that write no others.
        """
        return await self._call(publishing_api.LIST_APPS, query=AppsQuery(after=after, limit=limit))

    async def delete_app(self, app: str) -> None:
        """Forget what an app published: the same version is then published again. Raises PublicationNotFound."""
        await self._call(publishing_api.DELETE_APP, app=app)

    async def export(
        self, queue: str, *, after: int = 0, until: int | None = None, limit: int = EXPORT_PAGE_MAX
    ) -> ExportPage:
        """Messages as they are, by sequence: those above `after`, up to `until` (None: all); an export changes nothing.

        At most `limit` (1-10,000) and 4 MiB of content; go on with `next` as `after`.
        """
        query = ExportQuery(after=after, until=until, limit=limit)
        answer = await self._exchange(publishing_api.EXPORT_QUEUE, query=query, queue=queue)
        return protocol.read_export(answer)

    async def export_partitions(self, queue: str, count: int = EXPORT_PARTITIONS_DEFAULT) -> ExportPartitions:
        """Divide the stored messages into at most `count` (1-1,000) ranges for parallel exports."""
        return await self._call(
            publishing_api.EXPORT_PARTITIONS, query=PartitionsQuery(count=count), queue=queue
        )

    async def history(
        self, after: int = 0, *, until: int | None = None, limit: int = 1_000, queue: str | None = None
    ) -> HistoryPage:
        """Finished messages with history ids above `after` (and up to `until`), oldest first, 1-10,000 a page.

        A page has at most 4 MiB. queue: None for all; a token that does not cover all has to name one. The page after
        it begins at its `next`.
        """
        query = HistoryPageQuery(after=after, until=until, limit=limit, queue=queue)
        return protocol.read_history(await self._exchange(log_api.READ_HISTORY, query=query))

    async def history_range(self) -> HistoryRange:
        """Which history ids are kept, and whether messages that end now are."""
        return await self._call(log_api.SHOW_HISTORY_RANGE)

    async def open_consumer(self, queue: str, name: str, *, idle_seconds: int | None = None) -> ConsumerInfo:
        """Open a consumer, and create it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when it is not used for this long; None for the previous value, or a
        day.
        """
        wanted = OpenConsumerRequest(idle_seconds)
        return await self._call(consumer_api.OPEN_CONSUMER, wanted, queue=queue, consumer=name)

    async def lease(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        acknowledge_made_at: int | None = None,
        max_messages: int = CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
        wait_ms: int = 0,
        ahead: bool = False,
    ) -> ConsumerLease:
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: a number always has the same messages. Without any that are ready it waits up to `wait_ms`
        (0-30,000) for one; then the result has no messages, and the lease is not made. A long one takes several
        requests. acknowledge_made_at, ahead: see `Broker.lease`.
        """
        wanted = LeaseRequest(
            generation, number, acknowledge, acknowledge_made_at, max_messages, max_bytes, wait_ms, ahead
        )
        while True:
            lease = await self._call(
                consumer_api.LEASE_MESSAGES, wanted, wait_seconds=wait_ms / 1000, queue=queue, consumer=name
            )
            if lease.complete or lease.waiting:
                return lease

    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1, *, made_at: int | None = None
    ) -> LeasePage:
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable.

        made_at: `ConsumerLease.made_at` of the lease that is wanted; OtherLease is raised where it is another one.
        """
        query = LeasePageQuery(page=page, pages=pages, made_at=made_at)
        answer = await self._exchange(
            consumer_api.READ_LEASE, query=query, queue=queue, consumer=name, number=number
        )
        return protocol.read_lease_page(answer)

    async def acknowledge(
        self, queue: str, name: str, generation: int, number: int, *, made_at: int | None = None
    ) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; one that was acknowledged before stays so.

        made_at: `ConsumerLease.made_at` of the lease that was read. A server that was restored from a backup, or
        another one, uses its number for other messages: OtherLease is raised then, and nothing removed. None: whichever
        lease it is.
        """
        wanted = AcknowledgeLease(generation, number, made_at)
        while True:
            info = await self._call(consumer_api.ACKNOWLEDGE_LEASE, wanted, queue=queue, consumer=name)
            if info.acknowledged >= number:
                return info

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        """Give the messages of the open lease back, without counting the attempt: it can no longer be acknowledged.

        If there is an open lease, the generation grows, and clients have to open the consumer again.
        """
        while True:
            info = await self._call(consumer_api.RELEASE_CONSUMER, queue=queue, consumer=name)
            if not info.settling:
                return info

    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and forget the consumer, which nobody goes on with from now on.

        Raises ConsumerFenced if it is opened again before it is forgotten.
        """
        deletion = consumer_api.DELETE_CONSUMER
        while (await self._exchange(deletion, queue=queue, consumer=name)).status == protocol.ACCEPTED:
            pass

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""
        if queue is not None:
            return (await self._call(consumer_api.LIST_CONSUMERS, queue=queue)).consumers
        page = await self._call(consumer_api.LIST_ALL_CONSUMERS)
        found = page.consumers
        while page.next is not None:
            page = await self._call(consumer_api.LIST_ALL_CONSUMERS, query=ConsumersQuery(after=page.next))
            found += page.consumers
        return found

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer."""
        return await self._call(consumer_api.SHOW_CONSUMER, queue=queue, consumer=name)

    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = LOG_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """Up to `limit` (1-10,000) lifecycle events behind `after`, oldest first; waits up to `wait_ms` for one."""
        query = EventsQuery(after=after, until=until, limit=limit, queue=queue, wait_ms=wait_ms)
        answer = await self._exchange(log_api.LIST_EVENTS, query=query, wait_seconds=wait_ms / 1000)
        return protocol.read_events(answer)

    async def event_range(self) -> EventRange:
        """Whether lifecycle events are kept, and which."""
        return await self._call(log_api.SHOW_EVENT_RANGE)

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        """The latest 1,000 events of a message, oldest first, also of one that has gone."""
        return await self._call(log_api.LIST_MESSAGE_EVENTS, queue=queue, messageId=message_id)
