"""Builds requests to Forq's API and reads its answers. No I/O in here."""

import re
import ssl
from collections.abc import Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec
from msgspec import Struct

from forq_trio.client.errors import ForqApiError, ForqProtocolError, ForqUnreachable
from forq_trio.client.types import DeadLetterFilter, Delivery, Produced, QueueInfo, Rejected
from forq_trio.wire.errors import ANSWER_HEADER, FULL, ErrorView
from forq_trio.wire.messages import SendResult

AnswerT = TypeVar("AnswerT")
ResultT = TypeVar("ResultT")

DEFAULT_URL = "http://localhost:8080"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
PURGE_SECONDS = 600.0  # a purge removes a thousand messages at a time and answers at its end
CANCEL_SECONDS = 60.0  # a cancelled redrive is answered once it has ended
IDLE_SECONDS = 60.0  # well below the server's five minutes, so that no request meets a closing connection

TOKENS = "/api/v1/tokens"
# InvalidURL and LocalProtocolError come from a URL or secret that cannot be used.
TRANSPORT_ERRORS = (httpx.TransportError, httpx.InvalidURL)


class Deliveries(Struct):
    """The answer to a receive."""

    messages: list[Delivery]


class Queues(Struct):
    """The list of queues, each without the age of its oldest message."""

    queues: list[QueueInfo]


class Results(Struct, Generic[ResultT]):
    """An answer with a result for each receipt or message."""

    results: list[ResultT]


def http_settings(url: str, secret: str) -> dict[str, Any]:
    """The settings of httpx's clients.

    Plain HTTP needs no certificate authorities, and loading them takes longer than a request: such a client trusts
    none.
    """
    return {
        "base_url": url,
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if httpx.URL(url).scheme == "http" else True,
        "headers": {"X-API-Key": secret, "User-Agent": "forq-trio-client", ANSWER_HEADER: FULL},
        "limits": httpx.Limits(keepalive_expiry=IDLE_SECONDS),
        "follow_redirects": False,
    }


def request_settings(body: object | None, wait_seconds: float) -> dict[str, Any]:
    """The settings of httpx for one request.

    wait_seconds: how long the server may wait before it answers. Raises ForqApiError for text that UTF-8 cannot
    carry.
    """
    timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=ANSWER_SECONDS + wait_seconds)
    if body is None:
        return {"timeout": timeout}
    try:
        content = msgspec.json.encode(body)
    except UnicodeEncodeError:
        raise ForqApiError(400, "bad_request.body.invalid") from None
    return {"timeout": timeout, "content": content, "headers": {"Content-Type": "application/json"}}


def queue_path(name: str) -> str:
    """The path of a queue. Raises ForqApiError for a name that no path can carry."""
    # Clients and proxies take one dot or two as a directory, even percent-encoded.
    if name in ("", ".", ".."):
        raise ForqApiError(400, "bad_request.queue.invalid_name")
    return f"/api/v1/queues/{_segment(name, ForqApiError(400, 'bad_request.queue.invalid_name'))}"


def message_path(queue: str, message_id: str) -> str:
    """The path of a message."""
    return f"{queue_path(queue)}/messages/{_message_segment(message_id)}"


def dead_letters_path(queue: str) -> str:
    """The path of a queue's dead letters."""
    return f"{queue_path(queue)}/dead-letters"


def dead_letter_path(queue: str, message_id: str) -> str:
    """The path of a dead letter."""
    return f"{dead_letters_path(queue)}/{_message_segment(message_id)}"


def redrive_path(queue: str, redrive_id: str) -> str:
    """The path of a redrive."""
    segment = _segment(redrive_id, ForqApiError(404, "not_found.redrive"))
    return f"{dead_letters_path(queue)}/redrives/{segment}"


def token_path(name: str) -> str:
    """The path of a token. Raises ForqApiError for a name that no path can carry."""
    if name in ("", ".", ".."):
        raise ForqApiError(404, "not_found.token")
    return f"{TOKENS}/{_segment(name, ForqApiError(404, 'not_found.token'))}"


def _message_segment(message_id: str) -> str:
    return _segment(message_id, ForqApiError(400, "bad_request.messageId.invalid"))


def _segment(text: str, refusal: ForqApiError) -> str:
    """`text` as a segment of a path. Raises `refusal` for text that UTF-8 cannot carry."""
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise refusal from None


def search_query(wanted: DeadLetterFilter, before_sequence: int | None, limit: int) -> str:
    """The URL query of a search for dead letters. Raises ForqApiError for text that UTF-8 cannot carry."""
    members: dict[str, object] = {
        "reason": wanted.reason,
        "minAgeMs": wanted.min_age_ms,
        "maxAgeMs": wanted.max_age_ms,
        "text": wanted.text,
        "before": before_sequence,
        "limit": limit,
        "attribute": [f"{key}:{value}" for key, value in wanted.attributes.items()],
    }
    try:
        return urlencode({name: value for name, value in members.items() if value is not None}, doseq=True)
    except UnicodeEncodeError:
        raise ForqApiError(400, "bad_request.body.invalid") from None


def read_answer(response: httpx.Response, answer: type[AnswerT]) -> AnswerT:
    """The JSON of an answer. Raises ForqProtocolError."""
    try:
        return msgspec.json.decode(response.content, type=answer)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise unreadable(problem) from problem


def read_results(results: Sequence[SendResult], expected: int) -> list[Produced | Rejected]:
    """The results of the `expected` messages that were sent. Raises ForqProtocolError."""
    if len(results) != expected:
        raise ForqProtocolError("the answer does not have one result for each message")
    return [_read_result(result) for result in results]


def _read_result(result: SendResult) -> Produced | Rejected:
    if result.code is not None:
        return Rejected(result.code, result.field, result.message)
    if result.id is None or result.sequence is None:
        raise ForqProtocolError("the answer has neither an id nor a code for a message")
    return Produced(result.id, result.sequence, result.duplicate)


def refusal(response: httpx.Response) -> ForqApiError:
    """The error for an answer that is no success."""
    try:
        error = msgspec.json.decode(response.content, type=ErrorView)
    except (msgspec.MsgspecError, RecursionError):
        return ForqApiError(response.status_code, None)
    return ForqApiError(response.status_code, error.code, error.field, error.message)


def unreadable(problem: Exception) -> ForqProtocolError:
    """The error for an answer that nothing can be made of."""
    return ForqProtocolError(f"the answer is not one of Forq's: {problem}")


def unreachable(url: str, problem: Exception) -> ForqUnreachable:
    """The error for a request that got no answer."""
    # The problem's own words without an error number, else its name.
    reason = re.sub(r"^\[Errno -?\d+\] ", "", str(problem)) or type(problem).__name__
    if isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout):
        return ForqUnreachable(f"no server can be reached at {url} ({reason})", sent=False)
    return ForqUnreachable(f"the server at {url} did not answer ({reason})", sent=True)
