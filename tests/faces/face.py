"""What a face of the queue offers, as this suite speaks to it: the same words, whatever carries them.

Times are milliseconds. A refusal is `Refused` with the code of Forq's API, also where no HTTP is involved.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import trio
import trio.testing

from forq_trio.broker.broker import Broker
from forq_trio.client import Delivery, MessageInfo, NewMessage, Produced
from forq_trio.client.types import MessageOptions, SettingsChange
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages import QueueCounts
from support.actors import all_idle

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


class Refused(Exception):
    """The face did not do it. code: Forq's word for the reason."""

    def __init__(self, code: str | None) -> None:
        super().__init__(code)
        self.code = code


class Polled(NamedTuple):
    """What Forq's own receive hands over."""

    id: str
    content: str
    receipt: str


class Face(ABC):
    """A running queue. `q` is the queue meant where none is named.

    The broker behind it serves only to see that time has done its work; what is tested goes through the face.
    """

    def __init__(self, broker: Broker) -> None:
        self.__broker = broker
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        self.__clock = clock

    async def advance(self, ms: int) -> None:
        """Let time pass; returns when everything that falls due in it is done and committed."""
        self.jump(ms)
        await all_idle()
        await self.__broker.ping()  # a commit may run in a thread, which counts as blocked

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

    @abstractmethod
    async def send(self, content: str = "x", queue: str = "q", **options: Unpack[MessageOptions]) -> Produced:
        """Store one message."""

    @abstractmethod
    async def send_many(self, messages: Sequence[NewMessage], queue: str = "q") -> list[Produced | str]:
        """Store messages in one commit; per message what was stored, or the code why not."""

    @abstractmethod
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

    @abstractmethod
    async def poll(self, queue: str = "q") -> Polled | None:
        """Forq's own receive: one message for five minutes, or None after waiting 30 seconds."""

    @abstractmethod
    async def ack(self, *receipts: str, queue: str = "q") -> list[bool]:
        """Remove messages; per receipt whether it was the current one."""

    @abstractmethod
    async def nack(
        self, *receipts: str, queue: str = "q", delay_ms: int | None = None, reason: str | None = None
    ) -> list[bool]:
        """Give failed messages back."""

    @abstractmethod
    async def extend(self, *receipts: str, lease_ms: int, queue: str = "q") -> list[int | None]:
        """Move the ends of leases; per receipt the new end."""

    @abstractmethod
    async def release(self, *receipts: str, queue: str = "q", delay_ms: int = 0) -> list[bool]:
        """Give messages back untouched."""

    @abstractmethod
    async def ack_by_id(self, message_id: str, receipt: str | None = None, queue: str = "q") -> None:
        """Forq's own ack."""

    @abstractmethod
    async def nack_by_id(self, message_id: str, receipt: str | None = None, queue: str = "q") -> None:
        """Forq's own nack."""

    @abstractmethod
    async def counts(self, queue: str = "q") -> QueueCounts:
        """The queue's messages by status."""

    @abstractmethod
    async def size(self, queue: str = "q") -> int:
        """The bytes of all content and attributes of the queue."""

    @abstractmethod
    async def waiting(self, queue: str = "q") -> int:
        """How many receivers are parked."""

    @abstractmethod
    async def message(self, message_id: str, queue: str = "q") -> MessageInfo:
        """Look at a message."""

    @abstractmethod
    async def peek(self, queue: str = "q", *, limit: int = 10, shuffle: bool = False) -> list[MessageInfo]:
        """Look at the next ready messages."""

    @abstractmethod
    async def look(self, queue: str = "q", *, most: int = 1, wait_ms: int = 0) -> list[str]:
        """Receive without taking, waiting for the first: the contents."""

    @abstractmethod
    async def configure(self, queue: str = "q", **changes: Unpack[SettingsChange]) -> None:
        """Change settings."""

    @abstractmethod
    async def settings(self, queue: str = "q") -> dict[str, Any]:
        """What is set, by the names that `configure` takes, and `paused`."""

    @abstractmethod
    async def rules(self, queue: str = "q") -> dict[str, Any]:
        """What holds, by the same names."""

    @abstractmethod
    async def forget_settings(self, queue: str = "q") -> None:
        """Go back to the defaults."""

    @abstractmethod
    async def pause(self, queue: str = "q") -> None:
        """Hand out nothing."""

    @abstractmethod
    async def resume(self, queue: str = "q") -> None:
        """Go on."""

    @abstractmethod
    async def purge(self, queue: str = "q") -> int:
        """Remove all messages; how many there were."""

    @abstractmethod
    async def remove(self, queue: str = "q") -> None:
        """Forget an empty queue."""

    @abstractmethod
    async def queues(self) -> list[str]:
        """The names of all queues that have messages, or had some."""
