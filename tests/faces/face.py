"""What a face of the queue offers, as this suite speaks to it: the same words, whatever carries them.

Times are milliseconds. A refusal is a ForqError with the code of Forq's API, also where no HTTP is involved.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import msgspec
import trio
import trio.testing

from forq_trio import (
    AsyncForqClient,
    Broker,
    Delivery,
    MessageInfo,
    MessageOptions,
    NewMessage,
    Produced,
    QueueNotFound,
    SettingsOptions,
)
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages.types import QueueCounts
from support.actors import all_idle
from support.results import oks

NOT_FOUND = "not_found.message"
RECEIPT_INVALID = "bad_request.receipt.invalid"
MESSAGE_ID_INVALID = "bad_request.messageId.invalid"
CONTENT_TOO_LARGE = "bad_request.body.content.exceeds_limit"
IN_PAST = "bad_request.body.processAfter.in_past"
TOO_FAR = "bad_request.body.processAfter.too_far"
QUEUE_INVALID = "bad_request.queue.invalid_name"
SENT_TO_DLQ = "bad_request.queue.produce_to_dlq"
QUEUE_FULL = "forq.queue_full"
NOT_EMPTY = "conflict.queue_not_empty"
SETTING_INVALID = "bad_request.settings."
"""Followed by the setting's name."""

NOBODY = QueueCounts()


class Polled(NamedTuple):
    """What Forq's own receive hands over."""

    id: str
    content: str
    receipt: str


class Face(ABC):
    """A running queue, called in the same way whatever it is. `q` is the queue meant where none is named.

    The broker behind it serves only to see that time has done its work; what is tested goes through the face.
    """

    def __init__(self, queue: Broker | AsyncForqClient, broker: Broker) -> None:
        self._queue = queue
        self.__broker = broker
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        self.__clock = clock

    @property
    def methods(self) -> Broker | AsyncForqClient:
        """The face itself: what programs call, as they call it."""
        return self._queue

    async def advance(self, ms: int) -> None:
        """Let time pass; returns when everything that falls due in it is done and committed."""
        self.jump(ms)
        await all_idle()
        await self.__broker.healthcheck()  # a commit may run in a thread, which counts as blocked

    def jump(self, ms: int) -> None:
        """Let time pass and wait for nothing: what it sets off, the writer's own timer has to see to."""
        # The fraction sees to it that no sum of jumps stays a rounding error short of a deadline.
        self.__clock.jump(ms / 1_000 + 1e-7)

    async def take(self, queue: str = "q", *, lease_ms: int | None = None) -> Delivery:
        """The one message that is there for the taking."""
        (delivery,) = await self.receive(queue, lease_ms=lease_ms)
        return delivery

    async def take_when_there(self, queue: str = "q") -> Delivery:
        """The next message of `queue`, waiting for it without letting time pass."""
        (delivery,) = await self.receive(queue, wait_ms=WAIT_MS_MAX)
        return delivery

    async def has_nothing(self, queue: str = "q") -> bool:
        """Whether a consumer would go away with empty hands. One that does not takes the message."""
        return await self.receive(queue) == []

    async def has_parked(self, receivers: int, queue: str = "q") -> None:
        """Return once as many receivers as that wait."""
        while await self.waiting(queue) != receivers:
            await trio.lowlevel.checkpoint()

    async def has_asker(self, message_id: str) -> None:
        """Return once somebody waits for the end of a message."""
        while message_id not in self.__broker._writer.announced.ended:
            await trio.lowlevel.checkpoint()

    async def send(self, content: str = "x", queue: str = "q", **options: Unpack[MessageOptions]) -> Produced:
        """Store one message."""
        return await self._queue.produce(queue, content, **options)

    async def send_many(self, messages: Sequence[NewMessage], queue: str = "q") -> list[Produced | str]:
        """Store messages in one commit; per message what was stored, or the code why not."""
        results = await self._queue.produce_many(queue, messages)
        return [result if isinstance(result, Produced) else result.code for result in results]

    async def receive(
        self,
        queue: str = "q",
        *,
        most: int = 1,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        shuffle: bool = False,
    ) -> list[Delivery]:
        """Lease messages for `lease_ms` (None: as the queue has it), waiting for the first."""
        return await self._queue.receive(
            queue, max_messages=most, wait_ms=wait_ms, lease_ms=lease_ms, shuffle=shuffle
        )

    async def ack(self, *receipts: str, queue: str = "q") -> list[bool]:
        """Remove messages; per receipt whether it was the current one."""
        return oks(await self._queue.ack(queue, receipts))

    async def nack(
        self,
        *receipts: str,
        queue: str = "q",
        delay_ms: int | None = None,
        reason: str | None = None,
        final: bool = False,
    ) -> list[bool]:
        """Give failed messages back."""
        return oks(await self._queue.nack(queue, receipts, delay_ms=delay_ms, reason=reason, final=final))

    async def discard(self, *receipts: str, reason: str = "no use", queue: str = "q") -> list[bool]:
        """End messages that no attempt can process."""
        return oks(await self._queue.discard(queue, receipts, reason=reason))

    async def extend(self, *receipts: str, lease_ms: int, queue: str = "q") -> list[int | None]:
        """Move the ends of leases; per receipt the new end."""
        return [result.lease_until for result in await self._queue.extend(queue, receipts, lease_ms)]

    async def release(self, *receipts: str, queue: str = "q", delay_ms: int = 0) -> list[bool]:
        """Give messages back untouched."""
        return oks(await self._queue.release(queue, receipts, delay_ms=delay_ms))

    async def counts(self, queue: str = "q") -> QueueCounts:
        """The queue's messages by status; nobody's where there is no such queue."""
        try:
            info = await self._queue.queue_stats(queue)
        except QueueNotFound:
            return NOBODY
        return QueueCounts(info.ready, info.processing, info.failed, info.delayed, info.held)

    async def size(self, queue: str = "q") -> int:
        """The bytes of all content and attributes of the queue."""
        return (await self._queue.queue_stats(queue)).bytes

    async def waiting(self, queue: str = "q") -> int:
        """How many receivers are parked."""
        try:
            return (await self._queue.queue_stats(queue)).waiting
        except QueueNotFound:
            return 0

    async def message(self, message_id: str, queue: str = "q") -> MessageInfo:
        """Look at a message."""
        return await self._queue.message(queue, message_id)

    async def peek(self, queue: str = "q", *, limit: int = 10, shuffle: bool = False) -> list[MessageInfo]:
        """Look at the next ready messages."""
        return await self._queue.peek(queue, limit=limit, shuffle=shuffle)

    async def configure(self, queue: str = "q", **changes: Unpack[SettingsOptions]) -> None:
        """Change settings."""
        await self._queue.configure(queue, **changes)

    async def settings(self, queue: str = "q") -> dict[str, Any]:
        """What is set, by the names that `configure` takes, and `paused`."""
        return msgspec.structs.asdict((await self._queue.settings(queue)).settings)

    async def rules(self, queue: str = "q") -> dict[str, Any]:
        """What holds, by the same names."""
        return msgspec.structs.asdict((await self._queue.settings(queue)).effective)

    async def forget_settings(self, queue: str = "q") -> None:
        """Go back to the defaults."""
        await self._queue.reset_settings(queue)

    async def pause(self, queue: str = "q") -> None:
        """Hand out nothing."""
        await self._queue.pause(queue)

    async def resume(self, queue: str = "q") -> None:
        """Go on."""
        await self._queue.resume(queue)

    async def purge(self, queue: str = "q") -> int:
        """Remove all messages; how many there were."""
        return await self._queue.purge(queue)

    async def remove(self, queue: str = "q") -> None:
        """Forget an empty queue."""
        await self._queue.delete_queue(queue)

    async def queues(self) -> list[str]:
        """The names of all queues that have messages, or had some."""
        return [info.queue for info in await self._queue.queues()]

    @abstractmethod
    async def poll(self, queue: str = "q") -> Polled | None:
        """Forq's own receive: one message for five minutes, or None after waiting 30 seconds."""

    @abstractmethod
    async def ack_by_id(self, message_id: str, receipt: str | None = None, queue: str = "q") -> None:
        """Forq's own ack."""

    @abstractmethod
    async def nack_by_id(self, message_id: str, receipt: str | None = None, queue: str = "q") -> None:
        """Forq's own nack."""

    @abstractmethod
    async def look(self, queue: str = "q", *, most: int = 1, wait_ms: int = 0) -> list[str]:
        """Receive without taking, waiting for the first: the contents."""
