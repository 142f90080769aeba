"""Queues as a whole: settings, pause, purge, forget. A part of `Broker`.

Settings are read from memory, as of the last commit, without a query.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Unpack

import trio

from forq_trio.broker.consumers import Consumers
from forq_trio.broker.parts import purge_in_steps
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands, limits
from forq_trio.model.errors import ConsumerNotFound, QueueNotEmpty
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.queues.bodies import QueueConfiguration
from forq_trio.model.queues.methods import QueueMethods
from forq_trio.model.queues.setting_checks import check_change, read_change
from forq_trio.model.queues.settings import SettingsChange, SettingsOptions


class Administration(QueueMethods, Consumers):
    """Changes of queues. Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    async def configure(self, queue: str, **changes: Unpack[SettingsOptions]) -> QueueConfiguration:
        return await self.change_settings(queue, read_change(changes))

    async def change_settings(self, queue: str, change: SettingsChange) -> QueueConfiguration:
        """`configure` with the change as one value."""
        check_queue_name(queue)
        command = commands.Configure(queue, check_change(queue, change))
        await name_queues(self._writer, queue, change.dead_letter_queue or None)
        await self._writer.execute(command)
        return self._configuration(queue)

    async def reset_settings(self, queue: str) -> None:
        await self._writer.execute(commands.Configure(self.known.check_queue(queue), None))

    async def settings(self, queue: str) -> QueueConfiguration:
        self.known.check_queue(queue)
        await trio.lowlevel.checkpoint()
        return self._configuration(queue)

    def _configuration(self, queue: str) -> QueueConfiguration:
        return QueueConfiguration(self.known.settings_of(queue), self._writer.snapshot().rules(queue))

    async def pause(self, queue: str) -> None:
        command = commands.Pause(self.known.check_queue(queue), paused=True)
        await self._backends.of(queue).execute(command)

    async def resume(self, queue: str) -> None:
        await self._writer.execute(commands.Pause(self.known.check_queue(queue), paused=False))

    async def purge(self, queue: str, *, on_step: Callable[[int], None] = lambda _: None) -> int:
        backend = self._backends.of(self.known.check_queue(queue))
        return await purge_in_steps(backend, commands.Purge, queue, on_step)

    async def delete_queue(self, queue: str) -> None:
        await self._forget(queue, 0)

    async def delete_queue_with_messages(self, queue: str) -> None:
        """`delete_queue` with up to PURGE_BATCH_MAX messages, in one commit."""
        await self._forget(queue, limits.PURGE_BATCH_MAX)

    async def _forget(self, queue: str, messages_max: int) -> None:
        command = commands.ForgetQueue(self.known.check_queue(queue), messages_max)
        if not await self._writer.execute(command):
            raise QueueNotEmpty
        for consumer in self.leases.of(queue):
            with suppress(ConsumerNotFound):  # another call has just deleted it
                await self.delete_consumer(queue, consumer.name)
