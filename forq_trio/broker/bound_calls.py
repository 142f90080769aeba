"""Binding queues to tables of applications, and unbinding them. A part of `Broker`."""

from typing import Literal

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands
from forq_trio.model.errors import FeatureUnavailable, QueueBound, QueueNotBound
from forq_trio.model.messages import check_queue_name
from forq_trio.model.queue_settings import QueueTable


class BoundCalls(BrokerBase):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    @property
    def has_tables(self) -> bool:
        """Whether the database has tables of applications, so that queues can be bound to them."""
        return self._backends.tables is not None

    async def bind(self, queue: str, table: str, *, layout: Literal["pgq"] = "pgq") -> QueueTable:
        """Bind a queue to a table of pgq's layout in the server's database: its messages are the rows there.

        The queue has no messages, and no settings but the lease and the attempts. Raises InvalidQueueName,
        FeatureUnavailable (not PostgreSQL), InvalidTableName, NoTable, WrongTable (it names columns and indexes that
        are missing), QueueNotEmpty, InvalidSetting, QueueBound (the table has a queue already, or a schedule sends to
        the queue), and what reads raise.
        """
        check_queue_name(queue)
        if self._backends.tables is None:
            raise FeatureUnavailable
        await self._backends.tables.check(table)
        sending = await self._readers.run(lambda reader: reader.schedule_of_queue(queue), long=True)
        if sending is not None:
            raise QueueBound(
                f"the schedule {sending} sends to the queue: delete it, or give it another queue"
            )
        await name_queues(self._writer, queue)
        bound = QueueTable(layout, table)
        await self._writer.execute(commands.BindTable(queue, bound))
        return bound

    async def bound_table(self, queue: str) -> QueueTable:
        """The table to which a queue is bound. Raises InvalidQueueName, QueueNotBound."""
        table = self.known.settings_of(queue).table
        await trio.lowlevel.checkpoint()
        if table is None:
            raise QueueNotBound
        return table

    async def unbind(self, queue: str) -> None:
        """The queue has messages of its own again; the table stays as it is. Raises InvalidQueueName, QueueNotBound."""
        await self._writer.execute(commands.BindTable(check_queue_name(queue), None))
