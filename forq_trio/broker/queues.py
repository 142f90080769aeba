"""What one does to a queue as a whole: settings, pause, purge. A part of `Broker`.

Settings are read from the writer's memory, as of the last commit: no read touches the database.
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
        """Change what `change` names, at once for all messages of the queue; returns what is set now.

        A changed order, delay or TTL holds for messages sent from now on. Raises InvalidQueueName, InvalidSetting.
        """
        check_queue_name(queue)
        return await self._writer.execute(commands.Configure(queue, check_change(queue, change)))

    async def forget_settings(self, queue: str) -> None:
        """Go back to the defaults. A paused queue stays paused. Raises InvalidQueueName."""
        await self._writer.execute(commands.Configure(check_queue_name(queue), None))

    def settings(self, queue: str) -> QueueSettings:
        """What is set for a queue; nothing for one that is virtual. Raises InvalidQueueName."""
        return self._writer.snapshot().settings.get(check_queue_name(queue)) or QueueSettings()

    def all_settings(self) -> Mapping[str, QueueSettings]:
        """The queues for which something is set."""
        return dict(self._writer.snapshot().settings)

    def rules(self, queue: str) -> QueueRules:
        """What holds for a queue, defaults filled in. Raises InvalidQueueName."""
        return self._writer.snapshot().rules(check_queue_name(queue))

    async def pause(self, queue: str) -> None:
        """Hand out no messages of this queue until `resume`; sends go on, receivers wait. Raises InvalidQueueName."""
        await self._writer.execute(commands.Pause(check_queue_name(queue), paused=True))

    async def resume(self, queue: str) -> None:
        """End a pause and serve who waits. Raises InvalidQueueName."""
        await self._writer.execute(commands.Pause(check_queue_name(queue), paused=False))

    async def purge(self, queue: str) -> int:
        """Remove all messages that were sent to the queue before this call, in whatever status; returns how many.

        Done in parts, between which others are served; cancelled, what was removed stays removed.
        Deduplication ids are remembered all the same. Raises InvalidQueueName.
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
        """Take an empty queue off the list, and forget its settings. Raises InvalidQueueName, QueueNotEmpty."""
        if not await self._writer.execute(commands.ForgetQueue(check_queue_name(queue))):
            raise QueueNotEmpty
