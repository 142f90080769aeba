"""HTTP as a face: our own client, and Forq's four endpoints as any client would call them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.client import (
    AsyncForqClient,
    Delivery,
    ForqApiError,
    MessageInfo,
    NewMessage,
    Produced,
    Rejected,
)
from forq_trio.client.types import QueueRules, QueueSettings
from forq_trio.model.messages import QueueCounts

from .face import Face, Polled, Refused


@contextmanager
def refusals() -> Iterator[None]:
    """The client's errors in the suite's words."""
    try:
        yield
    except ForqApiError as error:
        raise Refused(error.code) from error


def named(settings: QueueSettings | QueueRules) -> dict[str, Any]:
    """Settings by their names."""
    return msgspec.structs.asdict(settings)


class HttpFace(Face):
    """client: reaches the server; http: the same server, with the key, below /api/v1/queues."""

    def __init__(self, client: AsyncForqClient, http: httpx.AsyncClient, broker: Broker) -> None:
        super().__init__(broker)
        self._client = client
        self._http = http

    async def send(self, content="x", queue="q", **options) -> Produced:
        with refusals():
            return await self._client.produce(queue, content, **options)

    async def send_many(self, messages: Sequence[NewMessage], queue="q") -> list[Produced | str]:
        with refusals():
            results = await self._client.produce_many(queue, messages)
        return [result.code if isinstance(result, Rejected) else result for result in results]

    async def receive(self, queue="q", *, most=1, wait_ms=0, lease_ms=None, shuffle=False) -> list[Delivery]:
        with refusals():
            return await self._client.receive(
                queue, max_messages=most, wait_ms=wait_ms, lease_ms=lease_ms, shuffle=shuffle
            )

    async def poll(self, queue="q") -> Polled | None:
        response = await self._http.get(f"/{queue}/messages")
        if response.status_code == 204:
            return None
        assert response.status_code == 200
        message = response.json()
        return Polled(message["id"], message["content"], message["receipt"])

    async def ack(self, *receipts, queue="q") -> list[bool]:
        with refusals():
            return [result.ok for result in await self._client.ack(queue, receipts)]

    async def nack(self, *receipts, queue="q", delay_ms=None, reason=None) -> list[bool]:
        with refusals():
            results = await self._client.nack(queue, receipts, delay_ms=delay_ms, reason=reason)
        return [result.ok for result in results]

    async def extend(self, *receipts, lease_ms, queue="q") -> list[int | None]:
        with refusals():
            return [result.lease_until for result in await self._client.extend(queue, receipts, lease_ms)]

    async def release(self, *receipts, queue="q", delay_ms=0) -> list[bool]:
        with refusals():
            return [result.ok for result in await self._client.release(queue, receipts, delay_ms=delay_ms)]

    async def ack_by_id(self, message_id, receipt=None, queue="q") -> None:
        await self._settle_by_id("ack", message_id, receipt, queue)

    async def nack_by_id(self, message_id, receipt=None, queue="q") -> None:
        await self._settle_by_id("nack", message_id, receipt, queue)

    async def _settle_by_id(self, verb: str, message_id: str, receipt: str | None, queue: str) -> None:
        headers = {} if receipt is None else {"X-Forq-Receipt": receipt}
        response = await self._http.post(f"/{queue}/messages/{message_id}/{verb}", headers=headers)
        if response.status_code != 204:
            raise Refused(response.json()["code"])

    async def counts(self, queue="q") -> QueueCounts:
        with refusals():
            info = await self._client.queue_stats(queue)
        return QueueCounts(info.ready, info.processing, info.failed, info.delayed, info.held)

    async def size(self, queue="q") -> int:
        with refusals():
            return (await self._client.queue_stats(queue)).bytes

    async def waiting(self, queue="q") -> int:
        with refusals():
            return (await self._client.queue_stats(queue)).waiting

    async def message(self, message_id, queue="q") -> MessageInfo:
        with refusals():
            return await self._client.message(queue, message_id)

    async def peek(self, queue="q", *, limit=10, shuffle=False) -> list[MessageInfo]:
        with refusals():
            return await self._client.peek(queue, limit=limit, shuffle=shuffle)

    async def look(self, queue="q", *, most=1, wait_ms=0) -> list[str]:
        wanted = {"max": most, "waitMs": wait_ms, "peek": True}
        response = await self._http.post(f"/{queue}/messages/receive", json=wanted)
        assert response.status_code == 200
        messages = response.json()["messages"]
        assert not any("receipt" in message for message in messages)
        return [message["content"] for message in messages]

    async def configure(self, queue="q", **changes) -> None:
        with refusals():
            await self._client.configure(queue, **changes)

    async def settings(self, queue="q") -> dict[str, Any]:
        with refusals():
            return named((await self._client.settings(queue)).settings)

    async def rules(self, queue="q") -> dict[str, Any]:
        with refusals():
            return named((await self._client.settings(queue)).effective)

    async def forget_settings(self, queue="q") -> None:
        with refusals():
            await self._client.reset_settings(queue)

    async def pause(self, queue="q") -> None:
        with refusals():
            await self._client.pause(queue)

    async def resume(self, queue="q") -> None:
        with refusals():
            await self._client.resume(queue)

    async def purge(self, queue="q") -> int:
        with refusals():
            return await self._client.purge(queue)

    async def remove(self, queue="q") -> None:
        with refusals():
            await self._client.delete_queue(queue)

    async def queues(self) -> list[str]:
        return [info.queue for info in await self._client.queues()]
