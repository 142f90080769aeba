"""Every operation as a value: what to send, how long the answer may take, how to read it. No I/O in here.

The sync and the async client only differ in how they carry a `Call` to the server.
"""

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from forq_trio.client.errors import ForqApiError, ForqProtocolError, ForqUnreachable
from forq_trio.client.settings import QueueConfiguration, QueueSettings, SettingsChange
from forq_trio.client.types import (
    Delivery,
    MessageInfo,
    NewMessage,
    Produced,
    QueueInfo,
    ReceiptResult,
    Rejected,
)

ResultT = TypeVar("ResultT")

# InvalidURL and LocalProtocolError come from a URL or secret that cannot be used; there is no answer then,
# either.
TRANSPORT_ERRORS = (httpx.TransportError, httpx.InvalidURL)
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
PURGE_SECONDS = 600.0  # a purge removes a thousand messages at a time and answers at its end
IDLE_SECONDS = 60.0  # well below the server's five minutes, so that no request meets a closing connection


@dataclass(frozen=True, slots=True)
class Call(Generic[ResultT]):
    """One request.

    read: makes the result of an answer's body. wait_seconds: how long the server may hold the answer back.
    """

    method: str
    path: str
    read: Callable[[bytes], ResultT]
    body: bytes | None = None
    wait_seconds: float = 0.0

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.body is None else {"Content-Type": "application/json"}

    @property
    def timeout(self) -> httpx.Timeout:
        return httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=ANSWER_SECONDS + self.wait_seconds)

    def result(self, response: httpx.Response) -> ResultT:
        """Read the answer. Raises ForqApiError or ForqProtocolError."""
        if not response.is_success:
            raise _refusal(response)
        try:
            return self.read(response.content)
        except msgspec.MsgspecError as problem:
            raise ForqProtocolError(f"the answer is not one of Forq's: {problem}") from problem


def unreachable(url: str, problem: Exception) -> ForqUnreachable:
    """The error for a request that got no answer."""
    if isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout):
        return ForqUnreachable(f"no server can be reached at {url} ({_reason(problem)})", sent=False)
    return ForqUnreachable(f"the server at {url} did not answer ({_reason(problem)})", sent=True)


def http_settings(url: str, secret: str) -> dict[str, Any]:
    """What both clients give to httpx.

    An address without TLS needs no certificate authorities, and loading them takes longer than a request: such a client
    trusts none.
    """
    return {
        "base_url": url,
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if httpx.URL(url).scheme == "http" else True,
        "headers": {"X-API-Key": secret, "User-Agent": "forq-trio-client"},
        "limits": httpx.Limits(keepalive_expiry=IDLE_SECONDS),
        "follow_redirects": False,
    }


class _Wire(msgspec.Struct):
    """Base of the bodies that are no public types themselves."""


class _ProduceResult(_Wire):
    id: str | None = None
    sequence: int | None = None
    duplicate: bool = False
    code: str | None = None
    field: str | None = None


class _ProduceResults(_Wire):
    results: list[_ProduceResult]


class _Deliveries(_Wire):
    messages: list[Delivery]


class _ReceiptResults(_Wire):
    results: list[ReceiptResult]


class _Queues(_Wire):
    queues: list[QueueInfo]


class _Messages(_Wire):
    messages: list[MessageInfo]


class _Purged(_Wire):
    purged: int


class _Error(_Wire):
    """Of what explains a code: the member it is about, the scope that is missing, or a sentence."""

    code: str
    field: str | None = None
    scope: str | None = None
    message: str | None = None


_SETTING_NAMES = {
    each.name: each.encode_name for each in msgspec.structs.fields(QueueSettings) if each.name != "paused"
}


def produce_many(queue: str, messages: Sequence[NewMessage]) -> Call[list[Produced | Rejected]]:
    def read(body: bytes) -> list[Produced | Rejected]:
        return [_produced(result) for result in msgspec.json.decode(body, type=_ProduceResults).results]

    return Call("POST", f"{queue_path(queue)}/messages/batch", read, json_body({"messages": messages}))


def produce(queue: str, message: NewMessage) -> Call[Produced]:
    """A batch of one: unlike the plain send, it is answered with the message's id."""
    batch = produce_many(queue, [message])

    def read(body: bytes) -> Produced:
        results = batch.read(body)
        if len(results) != 1:
            raise ForqProtocolError("the answer does not hold one result for one message")
        if isinstance(results[0], Rejected):
            raise ForqApiError(400, results[0].code, results[0].field)
        return results[0]

    return Call(batch.method, batch.path, read, batch.body)


def receive(
    queue: str, max_messages: int, wait_ms: int, lease_ms: int | None, shuffle: bool
) -> Call[list[Delivery]]:
    members = {
        "max": max_messages,
        "waitMs": wait_ms,
        "leaseMs": lease_ms,
        "order": "shuffle" if shuffle else None,
    }
    return Call(
        "POST",
        f"{queue_path(queue)}/messages/receive",
        lambda answer: msgspec.json.decode(answer, type=_Deliveries).messages,
        json_body(_without_none(members)),
        wait_ms / 1000,
    )


def settle(
    verb: str,
    queue: str,
    receipts: Sequence[str],
    *,
    delay_ms: int | None = None,
    reason: str | None = None,
    lease_ms: int | None = None,
) -> Call[list[ReceiptResult]]:
    """verb: ack, nack, extend or release; what is None is left out, so that the server's default holds."""
    members = {"receipts": receipts, "delayMs": delay_ms, "reason": reason, "leaseMs": lease_ms}
    return Call(
        "POST",
        f"{queue_path(queue)}/messages/{verb}",
        lambda answer: msgspec.json.decode(answer, type=_ReceiptResults).results,
        json_body(_without_none(members)),
    )


def queues() -> Call[list[QueueInfo]]:
    return Call("GET", "/api/v1/queues", lambda answer: msgspec.json.decode(answer, type=_Queues).queues)


def queue_stats(queue: str) -> Call[QueueInfo]:
    return Call("GET", queue_path(queue), msgspec.json.Decoder(QueueInfo).decode)


def message(queue: str, message_id: str) -> Call[MessageInfo]:
    path = f"{queue_path(queue)}/messages/{quote(message_id, safe='')}"
    return Call("GET", path, msgspec.json.Decoder(MessageInfo).decode)


def peek(queue: str, limit: int, shuffle: bool) -> Call[list[MessageInfo]]:
    order = "&order=shuffle" if shuffle else ""
    return Call(
        "GET",
        f"{queue_path(queue)}/peek?limit={limit}{order}",
        lambda answer: msgspec.json.decode(answer, type=_Messages).messages,
    )


def settings(queue: str) -> Call[QueueConfiguration]:
    return Call("GET", f"{queue_path(queue)}/settings", msgspec.json.Decoder(QueueConfiguration).decode)


def configure(queue: str, changes: SettingsChange) -> Call[QueueConfiguration]:
    """Raises TypeError for what is not the name of a setting."""
    unknown = sorted(changes.keys() - _SETTING_NAMES.keys())
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not a setting of a queue")
    members = {_SETTING_NAMES[name]: value for name, value in changes.items()}
    decode = msgspec.json.Decoder(QueueConfiguration).decode
    return Call("PUT", f"{queue_path(queue)}/settings", decode, json_body(members))


def reset_settings(queue: str) -> Call[None]:
    return Call("DELETE", f"{queue_path(queue)}/settings", _nothing)


def pause(queue: str) -> Call[None]:
    return Call("POST", f"{queue_path(queue)}/pause", _nothing)


def resume(queue: str) -> Call[None]:
    return Call("POST", f"{queue_path(queue)}/resume", _nothing)


def purge(queue: str) -> Call[int]:
    return Call(
        "POST",
        f"{queue_path(queue)}/purge",
        lambda answer: msgspec.json.decode(answer, type=_Purged).purged,
        wait_seconds=PURGE_SECONDS,
    )


def delete_queue(queue: str) -> Call[None]:
    return Call("DELETE", queue_path(queue), _nothing)


def healthcheck() -> Call[None]:
    return Call("GET", "/healthcheck", _nothing)


def queue_path(name: str) -> str:
    """Where the API has a queue. Raises ForqApiError for a name that no path can carry."""
    # A dot or two would be taken as a directory by clients and proxies, even percent-encoded.
    if name in ("", ".", ".."):
        raise ForqApiError(400, "bad_request.queue.invalid_name")
    return f"/api/v1/queues/{quote(name, safe='')}"


def _nothing(answer: bytes) -> None:
    """Of an answer without a body."""


def _without_none(members: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def json_body(members: object) -> bytes:
    """A body. Raises ForqApiError for text that UTF-8 cannot carry."""
    try:
        return msgspec.json.encode(members)
    except UnicodeEncodeError:
        raise ForqApiError(400, "bad_request.body.invalid") from None


def _produced(result: _ProduceResult) -> Produced | Rejected:
    if result.code is not None:
        return Rejected(result.code, result.field)
    if result.id is None or result.sequence is None:
        raise ForqProtocolError("the answer has neither an id nor a code for a message")
    return Produced(result.id, result.sequence, result.duplicate)


def _refusal(response: httpx.Response) -> ForqApiError:
    try:
        error = msgspec.json.decode(response.content, type=_Error)
    except msgspec.MsgspecError:
        return ForqApiError(response.status_code, None)
    return ForqApiError(response.status_code, error.code, error.message or error.field or error.scope)


def _reason(problem: Exception) -> str:
    """The error's own words without an error number, else its name."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(problem)) or type(problem).__name__
