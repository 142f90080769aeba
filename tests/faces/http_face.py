"""HTTP as a face: our own client, Forq's four endpoints as any client would call them, and operations of Amazon SQS."""

from typing import Any

import httpx

from forq_trio import AsyncForqClient, Broker
from forq_trio.model.errors import error_of

from .face import Face, Polled


class HttpFace(Face):
    """client: reaches the server; http: the same server, with the key, below /api/v1/queues."""

    def __init__(self, client: AsyncForqClient, http: httpx.AsyncClient, broker: Broker) -> None:
        super().__init__(client, broker)
        self._http = http

    async def poll(self, queue="q") -> Polled | None:
        response = await self._http.get(f"/{queue}/messages")
        if response.status_code == 204:
            return None
        assert response.status_code == 200
        message = response.json()
        return Polled(message["id"], message["content"], message["receipt"])

    async def ack_by_id(self, message_id, receipt=None, queue="q") -> None:
        await self._settle_by_id("ack", message_id, receipt, queue)

    async def nack_by_id(self, message_id, receipt=None, queue="q") -> None:
        await self._settle_by_id("nack", message_id, receipt, queue)

    async def _settle_by_id(self, verb: str, message_id: str, receipt: str | None, queue: str) -> None:
        headers = {} if receipt is None else {"X-Forq-Receipt": receipt}
        response = await self._http.post(f"/{queue}/messages/{message_id}/{verb}", headers=headers)
        if response.status_code != 204:
            raise error_of(response.json()["code"])

    async def sqs(self, operation: str, **members: object) -> dict[str, Any]:
        """An operation of Amazon SQS, on the same server: the members of its request and of its answer."""
        response = await self._http.post(
            self._http.base_url.copy_with(path="/"),
            json=members,
            headers={"X-Amz-Target": f"AmazonSQS.{operation}", "Content-Type": "application/x-amz-json-1.0"},
        )
        assert response.status_code == 200, response.text
        return response.json() if response.content else {}

    async def look(self, queue="q", *, most=1, wait_ms=0) -> list[str]:
        wanted = {"max": most, "waitMs": wait_ms, "peek": True}
        response = await self._http.post(f"/{queue}/messages/receive", json=wanted)
        assert response.status_code == 200
        messages = response.json()["messages"]
        assert not any("receipt" in message for message in messages)
        return [message["content"] for message in messages]
