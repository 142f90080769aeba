"""Forq's API as request bytes and decoded answers, for any base URL."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from bench.load.generator import Address
from bench.load.wire import Response, encode_request, exchange


class Delivered(Struct):
    """A received message; `receipt` is "" from servers that have none (Forq before 1.0)."""

    id: str
    content: str
    receipt: str = ""


class DeliveredBatch(Struct):
    messages: list[Delivered]


_delivered = msgspec.json.Decoder(Delivered)
_delivered_batch = msgspec.json.Decoder(DeliveredBatch)
_encode = msgspec.json.encode

decode_message = _delivered.decode


def decode_batch(body: bytes) -> list[Delivered]:
    return _delivered_batch.decode(body).messages


class Api:
    """One server's API. All methods but `exchange` only make bytes. host, key: for every request."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise ValueError(f"the load generator speaks no TLS: http://host:port, not {url}")
        self.url = url
        self.address = Address(parts.hostname, parts.port or 80)
        self.host = parts.netloc
        self.key = key
        self._prefix = parts.path.rstrip("/") + "/api/v1/queues"
        self._root = parts.path.rstrip("/")
        self._headers = {"X-API-Key": key}

    @staticmethod
    def encode_body(body: object) -> bytes:
        """A body as JSON; None for no body."""
        return b"" if body is None else _encode(body)

    def _request(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        return encode_request(method, self.host, path, {**self._headers, **headers}, self.encode_body(body))

    def send(self, queue: str, content: str) -> bytes:
        return self._request("POST", f"{self._prefix}/{queue}/messages", {"content": content})

    def offer(self, queue: str, key: str, content: str, **members: object) -> bytes:
        """Offer a message by its key, which must have only characters that need no escape in a path."""
        return self._request("PUT", f"{self._prefix}/{queue}/keys/{key}", {"content": content, **members})

    def offer_batch(
        self, queue: str, keys: Sequence[str], content: str, process_after: int | None = None
    ) -> bytes:
        due = {} if process_after is None else {"processAfter": process_after}
        messages = [{"key": key, "content": content, **due} for key in keys]
        return self._request("POST", f"{self._prefix}/{queue}/keys", {"messages": messages})

    def receive(self, queue: str) -> bytes:
        """The long poll of one message."""
        return self._request("GET", f"{self._prefix}/{queue}/messages")

    def ack(self, queue: str, message: Delivered) -> bytes:
        """Acknowledge a message, fenced by its receipt if the server gave one."""
        return self._ack_request(f"{self._prefix}/{queue}/messages/{message.id}/ack", message.receipt)

    def _ack_request(self, path: str, receipt: str) -> bytes:
        # Written out, not through _request: this one is made anew for every message of a load.
        fence = f"X-Forq-Receipt: {receipt}\r\n" if receipt else ""
        return (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"X-API-Key: {self.key}\r\n{fence}Content-Length: 0\r\n\r\n"
        ).encode()

    def send_batch(self, queue: str, contents: Sequence[str], process_after: int | None = None) -> bytes:
        due = {} if process_after is None else {"processAfter": process_after}
        messages = [{"content": content, **due} for content in contents]
        return self._request("POST", f"{self._prefix}/{queue}/messages/batch", {"messages": messages})

    def receive_batch(self, queue: str, max_messages: int, wait_ms: int, lease_ms: int = 300_000) -> bytes:
        body = {"max": max_messages, "waitMs": wait_ms, "leaseMs": lease_ms}
        return self._request("POST", f"{self._prefix}/{queue}/messages/receive", body)

    def ack_batch(self, queue: str, messages: Sequence[Delivered]) -> bytes:
        body = {"receipts": [message.receipt for message in messages]}
        return self._request("POST", f"{self._prefix}/{queue}/messages/ack", body)

    def queues(self) -> bytes:
        return self._request("GET", self._prefix)

    def queue(self, queue: str) -> bytes:
        return self._request("GET", f"{self._prefix}/{queue}")

    def get(self, path: str, key: str | None = None) -> bytes:
        """Any other page of the server, with a key of its own if given."""
        headers = self._headers if key is None else {"X-API-Key": key}
        return encode_request("GET", self.host, self._root + path, headers)

    def exchange(self, payload: bytes) -> Response:
        """Send one request over a connection of its own and wait for the answer. Raises OSError or WireError."""
        return exchange(self.address, payload)
