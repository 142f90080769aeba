"""The methods of the asynchronous client for outboxes, and messages that were set aside.

`sync_outboxes.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model import limits
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.outboxes import endpoints as outbox_api
from forq_trio.model.outboxes.bodies import RelayRequest, SetAsideIds, SetAsideQuery
from forq_trio.model.outboxes.methods import OutboxMethods
from forq_trio.model.outboxes.types import OutboxPosition, RelayedMessage


class AsyncOutboxes(OutboxMethods, AsyncConnection):
    """The methods of a client for relays of outboxes; `forq_trio.outbox.Relay` calls them."""

    async def relay_outbox(
        self, outbox: str, after: int, messages: Sequence[RelayedMessage]
    ) -> OutboxPosition:
        wanted = RelayRequest(after, list(messages))
        return await self._call(outbox_api.RELAY_OUTBOX, wanted, outbox=outbox)

    async def outbox_position(self, outbox: str) -> OutboxPosition:
        return await self._call(outbox_api.SHOW_OUTBOX, outbox=outbox)

    async def set_aside(
        self, *, after: int = 0, limit: int = limits.SET_ASIDE_PAGE_DEFAULT
    ) -> list[SetAside]:
        query = SetAsideQuery(after=after, limit=limit)
        return (await self._call(outbox_api.LIST_SET_ASIDE, query=query)).messages

    async def retry_set_aside(self, ids: Sequence[int]) -> int:
        return (await self._call(outbox_api.RETRY_SET_ASIDE, SetAsideIds(list(ids)))).count

    async def delete_set_aside(self, ids: Sequence[int]) -> int:
        return (await self._call(outbox_api.DELETE_SET_ASIDE, SetAsideIds(list(ids)))).count
