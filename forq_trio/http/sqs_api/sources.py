"""Where dead letters came from, for receives that ask: one read for each message, of such queues alone."""

from collections.abc import Sequence

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.details import queue_in_house
from forq_trio.http.sqs_api.names import SqsAccount, SqsQueue
from forq_trio.in_place import require_task
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.messages.types import Delivery

SOURCE = "DeadLetterQueueSourceArn"


class Sources:
    """Reads the source queues of dead letters."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def needed(self, queue: SqsQueue, names: Sequence[str]) -> bool:
        """Whether to read them for this receive. Call it before messages are claimed: it needs a task then."""
        if SOURCE not in names or not self._broker.known.takes_dead_letters(queue.house_name):
            return False
        require_task()
        return True

    async def of(
        self, queue: SqsQueue, deliveries: Sequence[Delivery], account: SqsAccount
    ) -> dict[str, str]:
        """The ARNs by message id; none for a message that was sent here, or that is gone."""
        found: dict[str, str] = {}
        for each in deliveries:
            try:
                source = (await self._broker.message(queue.house_name, each.id)).source_queue
            except MessageNotFound:
                continue
            known = None if source is None else queue_in_house(self._broker, source, queue.region, account)
            if known is not None:
                found[each.id] = known.arn
        return found
