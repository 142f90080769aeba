"""Relays of outboxes, and messages that were set aside. A part of `Broker`."""

from collections.abc import Sequence

import trio

from forq_trio.broker.queue_names import refused_queues
from forq_trio.broker.sends import Sends
from forq_trio.model import commands, limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.checks import check_message, check_producible, check_range
from forq_trio.model.errors import CallerError, Forbidden, OutOfRange
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.outboxes.methods import OutboxMethods
from forq_trio.model.outboxes.types import OutboxPosition, OutboxRefusal, RelayedMessage
from forq_trio.model.publishing.types import check_pipeline_name


class OutboxCalls(OutboxMethods, Sends):
    """Cancellation is that of `Broker`; a repeated relay stores nothing twice."""

    async def relay_outbox(
        self, outbox: str, after: int, messages: Sequence[RelayedMessage], *, key: Key = SECRET
    ) -> OutboxPosition:
        check_pipeline_name(outbox, "outbox")
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        check_range("number of messages", len(messages), 0, limits.OUTBOX_PAGE_MAX, "messages")
        _check_ids(after, messages)
        accepted, refused = self._accepted(messages, key)
        named = [name for each in accepted for name in (each.queue, each.message.dead_letter_queue)]
        if not_made := await refused_queues(self._writer, named):
            for index, each in enumerate(accepted):
                error = not_made.get(each.queue) or not_made.get(each.message.dead_letter_queue or "")
                if error is not None:
                    accepted, refused = accepted[:index], OutboxRefusal.of(each.id, error)
                    break
        stored = await self._store_page(outbox, after, accepted, key)
        return stored.then(accepted[-1].id if accepted else after, refused)

    async def _store_page(
        self, outbox: str, after: int, messages: Sequence[RelayedMessage], key: Key
    ) -> OutboxPosition:
        """Store these messages in one commit, or in several if other calls wait: none waits for a whole page."""
        left = list(messages)
        while True:
            page = left[: self._part_of(left)]
            stored = await self._writer.execute(commands.RelayMessages(outbox, after, tuple(page), key))
            left = left[len(page) :]
            if not left or stored != OutboxPosition(page[-1].id):
                return stored
            after = stored.position

    def _part_of(self, messages: Sequence[RelayedMessage]) -> int:
        """How many of these messages are stored in the next commit."""
        if not self._writer.steps.shared(trio.current_time()):
            return len(messages)
        left = limits.OUTBOX_PAGE_BYTES_MAX // limits.STEP_SHARE
        count_max = limits.OUTBOX_PAGE_MAX // limits.STEP_SHARE
        for count, each in enumerate(messages[:count_max]):
            left -= len(each.message.content)
            if left < 0:
                return max(count, 1)
        return count_max

    async def outbox_position(self, outbox: str, *, key: Key = SECRET) -> OutboxPosition:
        check_pipeline_name(outbox, "outbox")
        return await self._writer.execute(commands.RelayMessages(outbox, 0, (), key))

    async def set_aside(
        self, *, after: int = 0, limit: int = limits.SET_ASIDE_PAGE_DEFAULT
    ) -> list[SetAside]:
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        check_range("limit", limit, 1, limits.SET_ASIDE_PAGE_MAX)
        return await self._readers.run(lambda reader: reader.set_aside(after, limit))

    async def retry_set_aside(self, ids: Sequence[int]) -> int:
        return await self._take_set_aside(ids, again=True)

    async def delete_set_aside(self, ids: Sequence[int]) -> int:
        return await self._take_set_aside(ids, again=False)

    async def _take_set_aside(self, ids: Sequence[int], *, again: bool) -> int:
        check_range("number of ids", len(ids), 0, limits.SET_ASIDE_PAGE_MAX, "ids")
        left = sorted(set(ids))
        for each in left:
            check_range("id", each, 0, limits.SEQUENCE_MAX, "ids")
        count = 0
        while left:
            taken = await self._writer.execute(commands.TakeSetAside(tuple(left), again))
            if not taken:
                break
            count += len(taken)
            left = [each for each in left if each > taken[-1]]
        return count

    def _accepted(
        self, messages: Sequence[RelayedMessage], key: Key
    ) -> tuple[list[RelayedMessage], OutboxRefusal | None]:
        """The messages up to the first that cannot be stored, and why it cannot."""
        now_ms = self._clock.now_ms()
        accepted: list[RelayedMessage] = []
        for each in messages:
            try:
                check_producible(each.queue)
                _check_covered(key, each)
                self._check_texts(check_message(each.message, now_ms))
                accepted.append(each)
            except CallerError as error:
                return accepted, OutboxRefusal.of(each.id, error)
        return accepted, None


def _check_ids(after: int, messages: Sequence[RelayedMessage]) -> None:
    last = after
    for each in messages:
        if not last < each.id <= limits.SEQUENCE_MAX:
            raise OutOfRange(f"ids have to grow, and {each.id} comes behind {last}", field="messages")
        last = each.id


def _check_covered(key: Key, relayed: RelayedMessage) -> None:
    for queue in (relayed.queue, relayed.message.dead_letter_queue):
        if queue and not key.covers(queue):
            raise Forbidden(f"the token has not the scope produce for the queue {queue}")
