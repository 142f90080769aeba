"""The methods of the asynchronous client for pipelines: logs, consumers, stages and exports.

`sync_pipelines.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client import protocol
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.consumers import endpoints as consumer_api
from forq_trio.model.consumers.bodies import (
    AcknowledgeLease,
    ConsumerInfo,
    ConsumerLease,
    ConsumersQuery,
    LeasePage,
    LeasePageQuery,
    LeaseRequest,
    OpenConsumerRequest,
)
from forq_trio.model.consumers.methods import ConsumerMethods
from forq_trio.model.limits import (
    APPS_PAGE_MAX,
    CONSUMER_LEASE_MESSAGES_DEFAULT,
    EXPORT_PAGE_MAX,
    EXPORT_PARTITIONS_DEFAULT,
    LOG_PAGE_DEFAULT,
)
from forq_trio.model.logs import endpoints as log_api
from forq_trio.model.logs.bodies import (
    EventPage,
    EventRange,
    EventsQuery,
    HistoryPage,
    HistoryPageQuery,
    HistoryRange,
)
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.logs.methods import LogMethods
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing import endpoints as publishing_api
from forq_trio.model.publishing.bodies import (
    AppPage,
    AppsQuery,
    ExportPage,
    ExportPartitions,
    ExportQuery,
    NamedStage,
    PartitionsQuery,
    Publication,
    PublishRequest,
)
from forq_trio.model.publishing.methods import PublishingMethods
from forq_trio.model.publishing.types import PublishedVersion, Stage, Staged


class AsyncPipelines(ConsumerMethods, LogMethods, PublishingMethods, AsyncConnection):
    """A client with the methods for pipelines only, as Spark's data source uses it.

    It imports half of what a whole client does, because its modules name only the types that they need; `types` has all
    of them.
    """

    async def stage(self, queue: str, stage: str, page: int, messages: Sequence[NewMessage]) -> Staged:
        lines = protocol.lines_of(messages)
        return await self._call(publishing_api.STAGE_PAGE, lines, queue=queue, stage=stage, page=page)

    async def discard_stage(self, queue: str, stage: str) -> None:
        await self._call(publishing_api.DISCARD_STAGE, queue=queue, stage=stage)

    async def publish(
        self, app: str, version: int, stages: Sequence[Stage], *, once: bool = False
    ) -> Publication:
        named = [NamedStage(each.queue, each.stage, each.pages) for each in stages]
        wanted = PublishRequest(app, version, named, once)
        waits = protocol.PUBLISH_SECONDS
        first = answer = await self._call(publishing_api.PUBLISH, wanted, wait_seconds=waits)
        while answer.moving:
            answer = await self._call(publishing_api.PUBLISH, wanted, wait_seconds=waits)
        return Publication(first.published, first.messages)

    async def publication(self, app: str) -> PublishedVersion:
        return await self._call(publishing_api.SHOW_PUBLICATION, app=app)

    async def apps(self, *, after: int = 0, limit: int = APPS_PAGE_MAX) -> AppPage:
        return await self._call(publishing_api.LIST_APPS, query=AppsQuery(after=after, limit=limit))

    async def delete_app(self, app: str) -> None:
        await self._call(publishing_api.DELETE_APP, app=app)

    async def export(
        self, queue: str, *, after: int = 0, until: int | None = None, limit: int = EXPORT_PAGE_MAX
    ) -> ExportPage:
        query = ExportQuery(after=after, until=until, limit=limit)
        answer = await self._exchange(publishing_api.EXPORT_QUEUE, query=query, queue=queue)
        return protocol.read_export(answer)

    async def export_partitions(self, queue: str, count: int = EXPORT_PARTITIONS_DEFAULT) -> ExportPartitions:
        return await self._call(
            publishing_api.EXPORT_PARTITIONS, query=PartitionsQuery(count=count), queue=queue
        )

    async def history(
        self, after: int = 0, *, until: int | None = None, limit: int = 1_000, queue: str | None = None
    ) -> HistoryPage:
        query = HistoryPageQuery(after=after, until=until, limit=limit, queue=queue)
        return protocol.read_history(await self._exchange(log_api.READ_HISTORY, query=query))

    async def history_range(self) -> HistoryRange:
        return await self._call(log_api.SHOW_HISTORY_RANGE)

    async def open_consumer(self, queue: str, name: str, *, idle_seconds: int | None = None) -> ConsumerInfo:
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
        query = LeasePageQuery(page=page, pages=pages, made_at=made_at)
        answer = await self._exchange(
            consumer_api.READ_LEASE, query=query, queue=queue, consumer=name, number=number
        )
        return protocol.read_lease_page(answer)

    async def acknowledge(
        self, queue: str, name: str, generation: int, number: int, *, made_at: int | None = None
    ) -> ConsumerInfo:
        wanted = AcknowledgeLease(generation, number, made_at)
        while True:
            info = await self._call(consumer_api.ACKNOWLEDGE_LEASE, wanted, queue=queue, consumer=name)
            if info.acknowledged >= number:
                return info

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        while True:
            info = await self._call(consumer_api.RELEASE_CONSUMER, queue=queue, consumer=name)
            if not info.settling:
                return info

    async def delete_consumer(self, queue: str, name: str) -> None:
        deletion = consumer_api.DELETE_CONSUMER
        while (await self._exchange(deletion, queue=queue, consumer=name)).status == protocol.ACCEPTED:
            pass

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        if queue is not None:
            return (await self._call(consumer_api.LIST_CONSUMERS, queue=queue)).consumers
        page = await self._call(consumer_api.LIST_ALL_CONSUMERS)
        found = page.consumers
        while page.next is not None:
            page = await self._call(consumer_api.LIST_ALL_CONSUMERS, query=ConsumersQuery(after=page.next))
            found += page.consumers
        return found

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
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
        query = EventsQuery(after=after, until=until, limit=limit, queue=queue, wait_ms=wait_ms)
        answer = await self._exchange(log_api.LIST_EVENTS, query=query, wait_seconds=wait_ms / 1000)
        return protocol.read_events(answer)

    async def event_range(self) -> EventRange:
        return await self._call(log_api.SHOW_EVENT_RANGE)

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        return await self._call(log_api.LIST_MESSAGE_EVENTS, queue=queue, messageId=message_id)
