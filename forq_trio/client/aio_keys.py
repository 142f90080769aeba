"""The methods of the asynchronous client for keyed messages.

`sync_keys.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence
from typing import Unpack

from forq_trio.client import offers, protocol
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.errors import ForqError, KeyNotFound
from forq_trio.model.keys import endpoints as key_api
from forq_trio.model.keys.bodies import DropKeyQuery, DropKeysQuery, KeysQuery, KindQuery, RescheduleRequest
from forq_trio.model.keys.methods import KeyMethods
from forq_trio.model.keys.types import Mode, Offered, Offering, OfferOptions
from forq_trio.model.limits import BROWSE_PAGE_MAX
from forq_trio.model.messages.types import KeyedMessage, KeyPage


class AsyncKeys(KeyMethods, AsyncConnection):
    """The methods of a client for keyed messages.

    A key is unique per queue and kind while its message is pending.
    """

    async def offer(
        self,
        queue: str,
        key: str,
        content: str,
        *,
        kind: str = "",
        mode: Mode = "createOrUpdate",
        max_wait_ms: int | None = None,
        **options: Unpack[OfferOptions],
    ) -> Offered:
        offer = offers.offer_of(content, mode, max_wait_ms, options)
        return await self._call(
            key_api.OFFER_MESSAGE, offer, query=KindQuery(kind=kind), queue=queue, key=key
        )

    async def offer_many(self, queue: str, messages: Sequence[Offering]) -> list[Offered | ForqError]:
        answer = await self._call(key_api.OFFER_MESSAGES, offers.offers_of(messages), queue=queue)
        return offers.read_offer_results(answer.results, len(messages))

    async def keyed_messages(
        self,
        queue: str,
        *,
        prefix: str = "",
        kind: str | None = None,
        after: str | None = None,
        limit: int = BROWSE_PAGE_MAX,
    ) -> KeyPage:
        query = KeysQuery(prefix=prefix, kind=kind, after=after, limit=limit)
        return await self._call(key_api.LIST_KEYS, query=query, queue=queue)

    async def keyed_message(self, queue: str, key: str, kind: str = "") -> KeyedMessage | None:
        try:
            return await self._call(key_api.SHOW_KEY, query=KindQuery(kind=kind), queue=queue, key=key)
        except KeyNotFound:
            return None

    async def contains_key(self, queue: str, key: str, kind: str = "") -> bool:
        return await self.keyed_message(queue, key, kind) is not None

    async def reschedule_key(
        self,
        queue: str,
        key: str,
        *,
        kind: str = "",
        process_after: int | None = None,
        delay_ms: int | None = None,
        once_more: bool = False,
    ) -> Offered:
        wanted = RescheduleRequest(process_after, delay_ms, once_more)
        return await self._call(
            key_api.RESCHEDULE_KEY, wanted, query=KindQuery(kind=kind), queue=queue, key=key
        )

    async def ack_revision(self, queue: str, key: str, revision: int, kind: str = "") -> bool:
        return await self._drop(queue, key, kind, revision, once_more=False)

    async def drop_key(self, queue: str, key: str, kind: str = "", *, once_more: bool = False) -> bool:
        return await self._drop(queue, key, kind, None, once_more=once_more)

    async def drop_keys(self, queue: str, kind: str, *, confirm: str) -> int:
        query = DropKeysQuery(kind=kind, confirm=confirm)
        waits = protocol.PURGE_SECONDS
        answer = await self._call(key_api.DROP_KEYS, query=query, wait_seconds=waits, queue=queue)
        return answer.dropped

    async def _drop(self, queue: str, key: str, kind: str, revision: int | None, *, once_more: bool) -> bool:
        query = DropKeyQuery(kind=kind, revision=revision, once_more=once_more)
        try:
            await self._call(key_api.DROP_KEY, query=query, queue=queue, key=key)
        except KeyNotFound:
            return False
        return True
