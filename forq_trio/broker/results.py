"""Waits for the end of a message, and reads its result. A part of `Broker`."""

import trio
from msgspec.structs import replace

from forq_trio.broker.base import BrokerBase
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.commands import Ping
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.messages.types import check_message_id, check_queue_name
from forq_trio.model.results.methods import ResultMethods
from forq_trio.model.results.types import MessageResult


class ResultCalls(ResultMethods, BrokerBase):
    """The database is read when a message may have ended, and not again and again."""

    async def message_result(self, queue: str, message_id: str, *, wait_ms: int = 0) -> MessageResult:
        check_queue_name(queue)
        wanted = check_message_id(message_id)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        found = await self._known_result(queue, wanted)
        if found is None:
            raise MessageNotFound
        if found.state != "waiting" or not wait_ms:
            return found
        return await self._wait_for_end(found, wait_ms / 1_000)

    async def _wait_for_end(self, seen: MessageResult, seconds: float) -> MessageResult:
        ended = self._writer.announced.ended
        with ended.on(seen.id) as watcher:
            with trio.move_on_after(seconds):
                await self._writer.execute(
                    Ping()
                )  # a batch that runs now does not tell of acks without a result
                found: MessageResult | None = seen
                while found is not None and found.state == "waiting" and not ended.closed:
                    watcher.mark()
                    found = await self._known_result(seen.queue, seen.id)
                    if found is not None and found.state == "waiting":
                        await watcher.wait()
            ending = ended.ending(seen.id)
        found = await self._known_result(seen.queue, seen.id)
        if found is not None:
            return found
        if ending is None:
            raise MessageNotFound
        return replace(seen, state=ending)  # nothing is stored of it, but this was told

    async def _known_result(self, queue: str, message_id: str) -> MessageResult | None:
        return await self._readers.run(lambda reader: reader.message_result(queue, message_id))
