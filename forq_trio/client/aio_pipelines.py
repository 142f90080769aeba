"""The methods of the asynchronous client for pipelines: logs, consumers, stages and exports.

`sync_pipelines.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client import protocol
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.client.types import (
    AppPage,
    ConsumerInfo,
    ConsumerLease,
    EventPage,
    EventRange,
    ExportPage,
    ExportPartitions,
    FinishedMessage,
    FinishedPage,
    HistoryFilter,
    HistoryPage,
    HistoryRange,
    LeasePage,
    MessageEvent,
    NewMessage,
    Publication,
    PublishedVersion,
    Stage,
    Staged,
)
from forq_trio.wire.consumers import AcknowledgeLease, ConsumerList, LeaseRequest, OpenConsumer
from forq_trio.wire.limits import (
    APPS_PAGE_MAX,
    CONSUMER_LEASE_MESSAGES_DEFAULT,
    EXPORT_PAGE_MAX,
    EXPORT_PARTITIONS_DEFAULT,
    LOG_PAGE_DEFAULT,
)
from forq_trio.wire.publishing import NamedStage, PublishRequest
from forq_trio.wire.queues import Purged


class AsyncPipelines(AsyncConnection):
    """What a client does for pipelines."""

    async def stage(self, queue: str, stage: str, page: int, messages: Sequence[NewMessage]) -> Staged:
        """Store a page of up to 10,000 messages (4 MiB) beside the queue, until `publish`; returns once it is durable.

        stage: a unique name of the caller's choice. page: its number, from 0; one that is there already is ignored, and
        answered like the first time, so a call can be repeated. All or nothing: the error for a message that cannot be
        stored names its line in `field`. A stage ends by itself a day after its last page.
        """
        path = f"{protocol.stage_path(queue, stage)}/pages/{page}"
        return await self._ask("POST", path, Staged, protocol.lines_of(messages))

    async def discard_stage(self, queue: str, stage: str) -> None:
        """End a stage that is not to be published, if it is there."""
        await self._request("DELETE", protocol.stage_path(queue, stage))

    async def publish(
        self, app: str, version: int, stages: Sequence[Stage], *, once: bool = False
    ) -> Publication:
        """Publish up to 1,000 stages in this order, in one transaction; returns when all messages are in their queues.

        Nothing is done if the app published this version, or a later one, before: so it can be repeated until it is
        answered. once: the app's name is used for one job only; it is remembered for 7 days instead of 366.

        Raises StageMissing for a stage that has not exactly these pages; PublicationUnfinished where it is published,
        but nothing can be stored for 30 seconds: to repeat the call is to wait until all messages are in their queues.
        """
        named = [NamedStage(each.queue, each.stage, each.pages) for each in stages]
        wanted = PublishRequest(app, version, named, once)
        waits = protocol.PUBLISH_SECONDS
        first = answer = await self._ask("POST", protocol.PUBLICATIONS, Publication, wanted, waits)
        while answer.moving:
            answer = await self._ask("POST", protocol.PUBLICATIONS, Publication, wanted, waits)
        return Publication(first.published, first.messages)

    async def publication(self, app: str) -> PublishedVersion:
        """The last version that an app published. Raises PublicationNotFound."""
        return await self._ask("GET", protocol.publication_path(app), PublishedVersion)

    async def apps(self, *, after: int = 0, limit: int = APPS_PAGE_MAX) -> AppPage:
        """The apps that are remembered, in the order in which they published last, at most `limit` (1-1,000).

        after: the `next` of the page before. Of a token for some queues only apps that write no others.
        """
        return await self._ask("GET", f"{protocol.PUBLICATIONS}?after={after}&limit={limit}", AppPage)

    async def delete_app(self, app: str) -> None:
        """Forget what an app published: the same version is then published again. Raises PublicationNotFound."""
        await self._request("DELETE", protocol.publication_path(app))

    async def export(
        self, queue: str, *, after: int = 0, until: int | None = None, limit: int = EXPORT_PAGE_MAX
    ) -> ExportPage:
        """Messages as they are, by sequence: those above `after`, up to `until` (None: all); nothing is changed.

        At most `limit` (1-10,000) and 4 MiB of content; go on with `next` as `after`.
        """
        last = "" if until is None else f"&until={until}"
        path = f"{protocol.queue_path(queue)}/export?after={after}{last}&limit={limit}"
        return protocol.read_export(await self._request("GET", path))

    async def export_partitions(self, queue: str, count: int = EXPORT_PARTITIONS_DEFAULT) -> ExportPartitions:
        """Cut what is stored now into at most `count` (1-1,000) ranges for `export`, to be read side by side."""
        path = f"{protocol.queue_path(queue)}/export/partitions?count={count}"
        return await self._ask("GET", path, ExportPartitions)

    async def history(
        self, after: int = 0, *, until: int | None = None, limit: int = 1_000, queue: str | None = None
    ) -> HistoryPage:
        """Finished messages with history ids above `after` (and up to `until`), oldest first, 1-10,000 a page.

        A page has at most 4 MiB. queue: None for all; a token that does not cover all has to name one. The page after
        it begins at its `next`.
        """
        path = protocol.log_path("history", after, until, limit, queue)
        return protocol.read_history(await self._request("GET", path))

    async def history_range(self) -> HistoryRange:
        """Which history ids are kept, and whether messages that end now are."""
        return await self._ask("GET", "/api/v1/history/range", HistoryRange)

    async def search_history(
        self,
        queue: str,
        wanted: HistoryFilter | None = None,
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> FinishedPage:
        """A page (1-100) of finished messages of a queue that match, newest first; reads 10,000 messages at most."""
        query = protocol.search_query(wanted or HistoryFilter(), before, limit)
        return await self._ask("GET", f"{protocol.queue_path(queue)}/history?{query}", FinishedPage)

    async def finished_message(self, queue: str, message_id: str) -> FinishedMessage:
        """One finished message of a queue, with its content and how it ended."""
        return await self._ask("GET", protocol.finished_path(queue, message_id), FinishedMessage)

    async def purge_history(self, queue: str) -> int:
        """Remove all messages of a queue from the history that ended before this call; returns how many."""
        path = f"{protocol.queue_path(queue)}/history"
        answer = await self._ask("DELETE", path, Purged, wait_seconds=protocol.PURGE_SECONDS)
        return answer.purged

    async def open_consumer(self, queue: str, name: str, *, idle_seconds: int | None = None) -> ConsumerInfo:
        """Open a consumer, and make it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when it is not used for so long; None for what was set, or a day.
        """
        return await self._ask(
            "PUT", protocol.consumer_path(queue, name), ConsumerInfo, OpenConsumer(idle_seconds)
        )

    async def lease(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        max_messages: int = CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
        wait_ms: int = 0,
    ) -> ConsumerLease:
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: the same number has the same messages for ever. Without any that are ready it waits up to `wait_ms`
        (0-30,000) for one; then the result has no messages, and the lease is not made. A long one takes several
        requests.
        """
        path = f"{protocol.consumer_path(queue, name)}/lease"
        wanted = LeaseRequest(generation, number, acknowledge, max_messages, max_bytes, wait_ms)
        while True:
            lease = await self._ask("POST", path, ConsumerLease, wanted, wait_ms / 1000)
            if lease.complete:
                return lease

    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1
    ) -> LeasePage:
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable."""
        path = protocol.lease_page_path(queue, name, number, page, pages)
        return protocol.read_lease_page(await self._request("GET", path))

    async def acknowledge(self, queue: str, name: str, generation: int, number: int) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; one that was acknowledged before stays so."""
        path = f"{protocol.consumer_path(queue, name)}/acknowledge"
        wanted = AcknowledgeLease(generation, number)
        while True:
            info = await self._ask("POST", path, ConsumerInfo, wanted)
            if info.acknowledged >= number:
                return info

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        """Give the messages of the open lease back, the attempt uncounted: it can no longer be acknowledged.

        With an open lease the generation grows: whoever has the consumer open has to open it again.
        """
        path = f"{protocol.consumer_path(queue, name)}/release"
        while True:
            info = await self._ask("POST", path, ConsumerInfo)
            if not info.settling:
                return info

    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and forget the consumer, which nobody goes on with from now on.

        Raises ConsumerFenced if it is opened again before it is forgotten.
        """
        path = protocol.consumer_path(queue, name)
        while (await self._request("DELETE", path)).status == protocol.ACCEPTED:
            pass

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""
        page = await self._ask("GET", protocol.consumers_path(queue), ConsumerList)
        found = page.consumers
        while page.next is not None:
            page = await self._ask("GET", protocol.consumers_path(queue, page.next), ConsumerList)
            found += page.consumers
        return found

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer."""
        return await self._ask("GET", protocol.consumer_path(queue, name), ConsumerInfo)

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
        path = protocol.log_path("events", after, until, limit, queue, wait_ms)
        return protocol.read_events(await self._request("GET", path, wait_seconds=wait_ms / 1000))

    async def event_range(self) -> EventRange:
        """Whether lifecycle events are kept, and which."""
        return await self._ask("GET", "/api/v1/events/range", EventRange)

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        """The latest 1,000 events of a message, oldest first, also of one that has gone."""
        return await self._ask("GET", protocol.message_events_path(queue, message_id), list[MessageEvent])
