"""The methods of a broker and a client that delayed queues use; both have them in the same form."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Unpack

from forq_trio.model.consumers.consuming import Consuming
from forq_trio.model.errors import ForqError
from forq_trio.model.keys.types import Offered, Offering
from forq_trio.model.messages.types import KeyedMessage, KeyPage
from forq_trio.model.queues.bodies import QueueConfiguration
from forq_trio.model.queues.settings import SettingsOptions

if TYPE_CHECKING:
    from forq_trio.broker.broker import Broker
    from forq_trio.client.aio import AsyncForqClient


class KeyedSource(Consuming, Protocol):
    """A `Broker` or an `AsyncForqClient`, which document the methods."""

    async def offer_many(self, queue: str, messages: Sequence[Offering]) -> list[Offered | ForqError]: ...

    async def cancel(self, queue: str, message_id: str) -> None: ...

    async def keyed_message(self, queue: str, key: str, kind: str = ...) -> KeyedMessage | None: ...

    async def contains_key(self, queue: str, key: str, kind: str = ...) -> bool: ...

    async def keyed_messages(
        self,
        queue: str,
        *,
        prefix: str = ...,
        kind: str | None = ...,
        after: str | None = ...,
        limit: int = ...,
    ) -> KeyPage: ...

    async def ack_revision(self, queue: str, key: str, revision: int, kind: str = ...) -> bool: ...

    async def drop_key(self, queue: str, key: str, kind: str = ...) -> bool: ...

    async def drop_keys(self, queue: str, kind: str, *, confirm: str) -> int: ...

    async def settings(self, queue: str) -> QueueConfiguration: ...

    async def configure(self, queue: str, **changes: Unpack[SettingsOptions]) -> QueueConfiguration: ...


if TYPE_CHECKING:

    def _both(broker: Broker, client: AsyncForqClient) -> tuple[KeyedSource, KeyedSource]:
        """Never called: it makes the type checker verify that both have these methods."""
        return broker, client
