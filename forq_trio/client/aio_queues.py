"""The methods of the asynchronous client for queues.

`sync_queues.py` is generated from this file by script/blocking_client.py.
"""

from typing import Literal, Unpack

from forq_trio.client import configurations, protocol
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.queues import endpoints as queue_api
from forq_trio.model.queues.bodies import QueueConfiguration, QueueHealth, QueueInfo, QueuesQuery
from forq_trio.model.queues.methods import QueueMethods
from forq_trio.model.queues.settings import QueueTable, SettingsOptions, change_of


class AsyncQueueClient(QueueMethods, AsyncConnection):
    """The methods of a client for queues, their settings and tables."""

    async def queues(self) -> list[QueueInfo]:
        page = await self._call(queue_api.LIST_QUEUES)
        found = page.queues
        while page.next is not None:
            page = await self._call(queue_api.LIST_QUEUES, query=QueuesQuery(after=page.next))
            found += page.queues
        return found

    async def queue_stats(self, queue: str) -> QueueInfo:
        return await self._call(queue_api.SHOW_QUEUE, queue=queue)

    async def queue_health(self, queue: str) -> QueueHealth:
        """The health of one queue, in words, and what to do about it. Only a server watches its queues."""
        return await self._call(queue_api.SHOW_HEALTH, queue=queue)

    async def settings(self, queue: str) -> QueueConfiguration:
        return configurations.read_configuration(await self._exchange(queue_api.SHOW_SETTINGS, queue=queue))

    async def configure(self, queue: str, **changes: Unpack[SettingsOptions]) -> QueueConfiguration:
        answer = await self._exchange(queue_api.CHANGE_SETTINGS, change_of(changes), queue=queue)
        return configurations.read_configuration(answer)

    async def reset_settings(self, queue: str) -> None:
        await self._call(queue_api.FORGET_SETTINGS, queue=queue)

    async def bind(self, queue: str, table: str, *, layout: Literal["pgq"] = "pgq") -> QueueTable:
        return await self._call(queue_api.BIND_QUEUE, QueueTable(layout, table), queue=queue)

    async def bound_table(self, queue: str) -> QueueTable:
        return await self._call(queue_api.SHOW_TABLE, queue=queue)

    async def unbind(self, queue: str) -> None:
        await self._call(queue_api.UNBIND_QUEUE, queue=queue)

    async def pause(self, queue: str) -> None:
        await self._call(queue_api.PAUSE_QUEUE, queue=queue)

    async def resume(self, queue: str) -> None:
        await self._call(queue_api.RESUME_QUEUE, queue=queue)

    async def purge(self, queue: str) -> int:
        answer = await self._call(queue_api.PURGE_QUEUE, wait_seconds=protocol.PURGE_SECONDS, queue=queue)
        return answer.purged

    async def delete_queue(self, queue: str) -> None:
        await self._call(queue_api.REMOVE_QUEUE, queue=queue)
