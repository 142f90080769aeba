"""The methods of the asynchronous client for message batches.

`sync_message_batches.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence
from uuid import uuid4

from forq_trio.client import sends
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.checks import check_texts
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import MESSAGE_BATCHES_PAGE_DEFAULT
from forq_trio.model.message_batches import endpoints as batch_api
from forq_trio.model.message_batches.bodies import AddMembers, MessageBatchesQuery
from forq_trio.model.message_batches.methods import MessageBatchMethods
from forq_trio.model.message_batches.types import (
    AddressedMessage,
    MessageBatch,
    MessageBatchPage,
    NewMessageBatch,
)
from forq_trio.model.messages.types import Produced


class AsyncMessageBatches(MessageBatchMethods, AsyncConnection):
    """The methods of a client for message batches, which the server counts."""

    async def open_batch(self, batch: NewMessageBatch, *, batch_id: str | None = None) -> MessageBatch:
        name = str(uuid4()) if batch_id is None else batch_id
        return await self._call(batch_api.OPEN_BATCH, batch, batch=name)

    async def add_to_batch(
        self, batch_id: str, messages: Sequence[AddressedMessage]
    ) -> list[Produced | ForqError]:
        for each in messages:
            check_texts(each.message)
        answer = await self._call(batch_api.ADD_TO_BATCH, AddMembers(list(messages)), batch=batch_id)
        return sends.read_send_results(answer.results, len(messages))

    async def close_batch(self, batch_id: str) -> MessageBatch:
        return await self._call(batch_api.CLOSE_BATCH, batch=batch_id)

    async def abandon_batch(self, batch_id: str) -> MessageBatch:
        return await self._call(batch_api.ABANDON_BATCH, batch=batch_id)

    async def batch(self, batch_id: str) -> MessageBatch:
        return await self._call(batch_api.SHOW_BATCH, batch=batch_id)

    async def batches(
        self, *, before: int | None = None, limit: int = MESSAGE_BATCHES_PAGE_DEFAULT
    ) -> MessageBatchPage:
        query = MessageBatchesQuery(before=before, limit=limit)
        return await self._call(batch_api.LIST_BATCHES, query=query)
