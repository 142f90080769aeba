"""Binding queues to tables of applications, and unbinding them. A part of `Broker`."""

from typing import Literal

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands
from forq_trio.model.errors import FeatureUnavailable, QueueBound, QueueNotBound
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.queues.methods import QueueMethods
from forq_trio.model.queues.settings import QueueTable


class BoundCalls(QueueMethods, BrokerBase):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    @property
    def has_tables(self) -> bool:
        """Whether the database has tables of applications, so that queues can be bound to them."""
        return self._backends.tables is not None

    async def bind(self, queue: str, table: str, *, layout: Literal["pgq"] = "pgq") -> QueueTable:
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
        table = self.known.settings_of(queue).table
        await trio.lowlevel.checkpoint()
        if table is None:
            raise QueueNotBound
        return table

    async def unbind(self, queue: str) -> None:
        await self._writer.execute(commands.BindTable(check_queue_name(queue), None))
