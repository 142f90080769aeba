"""The Broker as a face."""

from forq_trio import Broker
from forq_trio.model.limits import WAIT_MS_MAX

from .face import Face, Polled


class BrokerFace(Face):
    """broker: what it calls."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, broker)
        self.broker = broker

    async def poll(self, queue="q") -> Polled | None:
        for delivery in await self.receive(queue, wait_ms=WAIT_MS_MAX):
            return Polled(delivery.id, delivery.content, delivery.receipt)
        return None

    async def ack_by_id(self, message_id, receipt=None, queue="q") -> None:
        await self.broker.ack_message(queue, message_id, receipt)

    async def nack_by_id(self, message_id, receipt=None, queue="q") -> None:
        await self.broker.nack_message(queue, message_id, receipt)

    async def look(self, queue="q", *, most=1, wait_ms=0) -> list[str]:
        return [message.content for message in await self.broker.peek(queue, limit=most, wait_ms=wait_ms)]
