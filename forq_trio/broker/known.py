"""Which queues are known: calls that read or change a queue as a whole are refused for a name that nobody has used.

Sends and settings make a queue. Receives and peeks find an unknown one empty, for a consumer may start first (F3).
"""

from forq_trio.model.errors import QueueNotFound
from forq_trio.model.messages import check_queue_name
from forq_trio.model.queue_names import DLQ_SUFFIX, is_dead_letter_queue
from forq_trio.writer_actor import WriterActor


class Known:
    """From the cache, as of the last commit, without a query."""

    _writer: WriterActor

    def is_known(self, queue: str) -> bool:
        """True for a queue that has, or had, messages, or has settings."""
        snapshot = self._writer.snapshot()
        return queue in snapshot.counts or queue in snapshot.settings

    def check_known(self, queue: str) -> str:
        """Return `queue`, or raise InvalidQueueName, or QueueNotFound for a name that nobody has used.

        Known is what `is_known` says, a queue for its dead letters, and one that consumers wait for or have opened.
        """
        snapshot = self._writer.snapshot()
        if (
            self.is_known(check_queue_name(queue))
            or (is_dead_letter_queue(queue) and self.is_known(queue.removesuffix(DLQ_SUFFIX)))
            or self.waiting(queue)
            or any(settings.dead_letter_queue == queue for settings in snapshot.settings.values())
            or any(consumer.queue == queue for consumer in snapshot.consumers.values())
        ):
            return queue
        raise QueueNotFound(f"there is no queue called {queue}", field="queue")

    def waiting(self, queue: str) -> int:
        """How many receivers are parked on `queue`."""
        return self._writer.parked.count(queue)
