"""The methods of the asynchronous client for outboxes, and messages that were set aside.

`sync_outboxes.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model import limits
from forq_trio.model.outboxes import OutboxPosition, RelayedMessage
from forq_trio.model.set_aside import SetAside
from forq_trio.wire.endpoints import outboxes as outbox_api
from forq_trio.wire.outboxes import RelayRequest, SetAsideIds, SetAsideQuery


class AsyncOutboxes(AsyncConnection):
    """The methods of a client for relays of outboxes; `forq_trio.outbox.Relay` calls them."""

    async def relay_outbox(
        self, outbox: str, after: int, messages: Sequence[RelayedMessage]
    ) -> OutboxPosition:
        """Store the next messages of an outbox (1,000 at most) with its position in one commit, beside others in some.

        after: the position that is stored; if it is another, nothing is done, and the answer is that one. Messages are
        stored in this order up to the first that cannot be stored, which the answer names: with the code of a
        CallerError it will never be, with that of a ServiceError perhaps later. A repeated call stores nothing twice.
        Raises InvalidName, OutOfRange, TooManyOutboxes.
        """
        wanted = RelayRequest(after, list(messages))
        return await self._call(outbox_api.RELAY_OUTBOX, wanted, outbox=outbox)

    async def outbox_position(self, outbox: str) -> OutboxPosition:
        """How far an outbox was relayed; the position 0 for one that is not known. Raises InvalidName."""
        return await self._call(outbox_api.SHOW_OUTBOX, outbox=outbox)

    async def set_aside(
        self, *, after: int = 0, limit: int = limits.SET_ASIDE_PAGE_DEFAULT
    ) -> list[SetAside]:
        """Messages of forq.send that were refused for good, by id, behind `after`. None with a file.

        limit: 1 to 1,000; a page is shorter where they have many bytes, and empty only at the end. Raises OutOfRange.
        """
        query = SetAsideQuery(after=after, limit=limit)
        return (await self._call(outbox_api.LIST_SET_ASIDE, query=query)).messages

    async def put_back(self, ids: Sequence[int]) -> int:
        """Send messages that were set aside again, behind all others; returns how many there were of these.

        ids: at most 1,000. Raises OutOfRange. A call that fails may have done it for the first ones.
        """
        return (await self._call(outbox_api.PUT_BACK, SetAsideIds(list(ids)))).count

    async def delete_set_aside(self, ids: Sequence[int]) -> int:
        """Delete messages that were set aside, for good; returns how many there were of these.

        Raises like `put_back`.
        """
        return (await self._call(outbox_api.DELETE_SET_ASIDE, SetAsideIds(list(ids)))).count
