"""Reads of queues and messages. A part of `Broker`.

Counts and settings come from memory, as of the last commit, without a query.
"""

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.messages.methods import MessageMethods
from forq_trio.model.messages.types import MessageInfo, check_message_id, check_queue_name
from forq_trio.model.queues.bodies import QueueInfo
from forq_trio.model.queues.methods import QueueMethods


class MessageReads(MessageMethods, QueueMethods, BrokerBase):
    """All reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping; a cancelled read is interrupted."""

    async def queues(self) -> list[QueueInfo]:
        await trio.lowlevel.checkpoint()
        return self.known.queues(self.known.queue_names())

    async def queue_stats(self, queue: str) -> QueueInfo:
        self.known.check_queue(queue)
        counts, oldest_at = await self._backends.of(queue).queue(queue)
        age_ms = None if oldest_at is None else max(0, self._clock.now_ms() - oldest_at)
        return self.known.queue(queue, counts, age_ms)

    async def message(self, queue: str, message_id: str) -> MessageInfo:
        check_queue_name(queue)
        found = await self._backends.of(queue).message(queue, check_message_id(message_id))
        if found is None:
            raise MessageNotFound
        return found

    async def peek(
        self, queue: str, *, limit: int = 1, shuffle: bool = False, wait_ms: int = 0
    ) -> list[MessageInfo]:
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.BROWSE_PAGE_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        return await self._backends.of(queue).peek(queue, limit, shuffle=shuffle, wait_ms=wait_ms)
