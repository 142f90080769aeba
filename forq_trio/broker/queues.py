"""Queues as a whole: settings, pause, purge, forget. A part of `Broker`.

Settings are read from the cache, as of the last commit, without a query.
"""

from collections.abc import Mapping

from forq_trio.model import commands
from forq_trio.model.errors import QueueNotEmpty
from forq_trio.model.messages import check_queue_name
from forq_trio.model.queue_settings import QueueRules, QueueSettings, SettingsChange, check_change
from forq_trio.writer_actor import WriterActor


class Administration:
    """Changes of queues. Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    _writer: WriterActor

    async def configure(self, queue: str, change: SettingsChange) -> QueueSettings:
        """Change what `change` names, at once for all messages of the queue; returns its settings now.

        A changed order, delay or TTL applies to messages sent from now on. Raises InvalidQueueName, InvalidSetting.
        """
        check_queue_name(queue)
        return await self._writer.execute(commands.Configure(queue, check_change(queue, change)))

    async def forget_settings(self, queue: str) -> None:
        """Go back to the defaults. A paused queue stays paused. Raises InvalidQueueName."""
        await self._writer.execute(commands.Configure(check_queue_name(queue), None))

    def settings(self, queue: str) -> QueueSettings:
        """The settings of a queue, all None for one without any. Raises InvalidQueueName."""
        return self._writer.snapshot().settings.get(check_queue_name(queue)) or QueueSettings()

    def all_settings(self) -> Mapping[str, QueueSettings]:
        """The settings of the queues that have any."""
        return dict(self._writer.snapshot().settings)

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue. Raises InvalidQueueName."""
        return self._writer.snapshot().rules(check_queue_name(queue))

    async def pause(self, queue: str) -> None:
        """Deliver no messages of this queue until `resume`; sends go on, receivers wait. Raises InvalidQueueName."""
        await self._writer.execute(commands.Pause(check_queue_name(queue), paused=True))

    async def resume(self, queue: str) -> None:
        """End a pause and serve waiting receivers. Raises InvalidQueueName."""
        await self._writer.execute(commands.Pause(check_queue_name(queue), paused=False))

    async def purge(self, queue: str) -> int:
        """Remove all messages that were sent to the queue before this call, in whatever status; returns how many.

        Done in steps, between which other calls are served; cancelled, it stops after a step. Deduplication ids are
        still remembered. Raises InvalidQueueName.
        """
        purge = commands.Purge(check_queue_name(queue))
        removed = 0
        while True:
            purged = await self._writer.execute(purge)
            removed += purged.count
            if purged.up_to is None:
                return removed
            purge = commands.Purge(queue, purged.up_to)

    async def forget_queue(self, queue: str) -> None:
        """Forget an empty queue and its settings. Raises InvalidQueueName, QueueNotEmpty."""
        if not await self._writer.execute(commands.ForgetQueue(check_queue_name(queue))):
            raise QueueNotEmpty
