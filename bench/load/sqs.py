"""Requests of Amazon SQS as bytes, signed: in the JSON protocol, as SDKs write them.

A signature costs some microseconds here, so the load generator stays what is not measured. Requests that are the same
each time are signed once: a signature is good for a quarter of an hour.
"""

import hmac
import time
from collections.abc import Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from bench.load.generator import Address
from bench.load.wire import Response, exchange

REGION = "us-east-1"
WAIT_SECONDS = 20
_SIGNED_HEADERS = "content-type;host;x-amz-date;x-amz-target"
_CONTENT_TYPE = "application/x-amz-json-1.0"
_encode = msgspec.json.encode


class Received(Struct, rename="pascal"):
    """A message, as far as a consumer needs it."""

    receipt_handle: str
    body: str


class _Answer(Struct, rename="pascal"):
    messages: list[Received] = []


_read_answer = msgspec.json.Decoder(_Answer).decode


def received(body: bytes) -> list[Received]:
    """The messages of an answer to a receive."""
    return _read_answer(body).messages


class SqsApi:
    """One server's API. All methods but `exchange` and `create` only make bytes. key: id and secret."""

    def __init__(self, address: Address, key: tuple[str, str]) -> None:
        self.address = address
        self.key = key
        self._host = f"{address.host}:{address.port}"
        self._day, self._day_key = "", b""

    def request(self, operation: str, body: object) -> bytes:
        """An operation, signed now."""
        payload = _encode(body)
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        if not at.startswith(self._day) or not self._day:
            self._start_day(at[:8])
        scope = f"{self._day}/{REGION}/sqs/aws4_request"
        canonical = (
            f"POST\n/\n\ncontent-type:{_CONTENT_TYPE}\nhost:{self._host}\nx-amz-date:{at}\n"
            f"x-amz-target:AmazonSQS.{operation}\n\n{_SIGNED_HEADERS}\n{sha256(payload).hexdigest()}"
        )
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._day_key, text.encode(), "sha256").hex()
        return (
            f"POST / HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {_CONTENT_TYPE}\r\n"
            f"X-Amz-Target: AmazonSQS.{operation}\r\nX-Amz-Date: {at}\r\n"
            f"Authorization: AWS4-HMAC-SHA256 Credential={self.key[0]}/{scope}, SignedHeaders={_SIGNED_HEADERS}, "
            f"Signature={signature}\r\nContent-Length: {len(payload)}\r\n\r\n"
        ).encode() + payload

    def _start_day(self, day: str) -> None:
        key = f"AWS4{self.key[1]}".encode()
        for part in (day, REGION, "sqs", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._day, self._day_key = day, key

    def create(self, name: str) -> str:
        """Make a queue; returns its URL. Raises OSError, WireError, or ValueError for an answer that is none."""
        answer = self.exchange(self.request("CreateQueue", {"QueueName": name}))
        if answer.status != 200:
            raise ValueError(f"CreateQueue: {answer.status} {answer.body[:200]!r}")
        return str(msgspec.json.decode(answer.body)["QueueUrl"])

    def send(self, queue: str, content: str) -> bytes:
        return self.request("SendMessage", {"QueueUrl": queue, "MessageBody": content})

    def send_batch(self, queue: str, contents: Sequence[str]) -> bytes:
        entries = [{"Id": str(at), "MessageBody": content} for at, content in enumerate(contents)]
        return self.request("SendMessageBatch", {"QueueUrl": queue, "Entries": entries})

    def receive(self, queue: str, most: int = 1) -> bytes:
        """A long poll."""
        asked = {"QueueUrl": queue, "MaxNumberOfMessages": most, "WaitTimeSeconds": WAIT_SECONDS}
        return self.request("ReceiveMessage", asked)

    def delete(self, queue: str, message: Received) -> bytes:
        return self.request("DeleteMessage", {"QueueUrl": queue, "ReceiptHandle": message.receipt_handle})

    def delete_batch(self, queue: str, messages: Sequence[Received]) -> bytes:
        entries = [{"Id": str(at), "ReceiptHandle": each.receipt_handle} for at, each in enumerate(messages)]
        return self.request("DeleteMessageBatch", {"QueueUrl": queue, "Entries": entries})

    def exchange(self, payload: bytes) -> Response:
        """Send one request over a connection of its own and wait for the answer. Raises OSError or WireError."""
        return exchange(self.address, payload)
