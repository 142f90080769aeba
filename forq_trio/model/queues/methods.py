"""Methods for queues: their settings, states and tables."""

from abc import ABC, abstractmethod
from typing import Literal, Unpack

from forq_trio.model.queues.bodies import QueueConfiguration, QueueInfo
from forq_trio.model.queues.settings import QueueTable, SettingsOptions


class QueueMethods(ABC):
    """A queue exists from its first message or setting on."""

    @abstractmethod
    async def queues(self) -> list[QueueInfo]:
        """All queues by name, without oldest_ready_age_ms; fast with thousands of them.

        A client makes one request for a thousand of them.
        """

    @abstractmethod
    async def queue_stats(self, queue: str) -> QueueInfo:
        """One queue. Raises InvalidQueueName, QueueNotFound."""

    @abstractmethod
    async def settings(self, queue: str) -> QueueConfiguration:
        """The settings of a queue, as they were set and with the defaults filled in.

        Raises InvalidQueueName, QueueNotFound.
        """

    @abstractmethod
    async def configure(self, queue: str, **changes: Unpack[SettingsOptions]) -> QueueConfiguration:
        """Change settings: those not named are not changed, None resets to the default. Returns the settings then.

        Applies at once to all messages of the queue; order, delay and time to live apply only to those sent from now
        on. Raises InvalidQueueName, InvalidSetting, InvalidRequest (a value of another type), TypeError (no such
        setting).
        """

    @abstractmethod
    async def reset_settings(self, queue: str) -> None:
        """Reset all settings to the defaults; a paused queue stays paused. Raises InvalidQueueName, QueueNotFound."""

    @abstractmethod
    async def bind(self, queue: str, table: str, *, layout: Literal["pgq"] = "pgq") -> QueueTable:
        """Bind a queue to a table of pgq's layout in the server's PostgreSQL database: its messages are the rows there.

        The queue has no messages, and no settings but the lease and the attempts. Raises InvalidQueueName,
        FeatureUnavailable (not PostgreSQL), InvalidTableName, NoTable, WrongTable (it names columns and indexes that
        are missing), QueueNotEmpty, InvalidSetting, QueueBound (the table or the queue is in use otherwise, which it
        says), and what reads raise.
        """

    @abstractmethod
    async def bound_table(self, queue: str) -> QueueTable:
        """The table to which a queue is bound. Raises InvalidQueueName, QueueNotBound."""

    @abstractmethod
    async def unbind(self, queue: str) -> None:
        """The queue has messages of its own again; the table stays as it is. Raises InvalidQueueName, QueueNotBound."""

    @abstractmethod
    async def pause(self, queue: str) -> None:
        """Deliver no messages of the queue until `resume`; sends go on, receivers wait.

        Raises InvalidQueueName, QueueNotFound.
        """

    @abstractmethod
    async def resume(self, queue: str) -> None:
        """End a pause and serve waiting receivers. Raises InvalidQueueName, QueueNotFound."""

    @abstractmethod
    async def purge(self, queue: str) -> int:
        """Remove all messages that were sent to the queue before this call, in whatever status; returns how many.

        Done in steps, between which other calls are served; cancelled, it stops after a step. Deduplication ids are
        still remembered. Raises InvalidQueueName, QueueNotFound.
        """

    @abstractmethod
    async def delete_queue(self, queue: str) -> None:
        """Forget an empty queue, its settings, its consumers and its deduplication ids.

        Raises InvalidQueueName, QueueNotFound, QueueNotEmpty. What an open lease of a consumer holds is stored.
        """
