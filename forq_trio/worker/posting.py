"""A handler that posts each message to a URL: `app.on("emails")(post_handler("https://example.com/hook"))`.

The content is the body. The status decides: 2xx acknowledges, 429 and 503 with Retry-After ask for another attempt
then, 410 discards, any other one is a failure whose reason has the status and the start of the body. Redirects are not
followed. Each message has a connection of its own.

Addresses that are not public are refused unless `allow_private`. The check is made on the very addresses of the
connections, so that a name cannot change its address in between; for the same reason no proxy of the environment is
used.
"""

import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

import anyio

from forq_trio.client.address import ServerAddress, address_of
from forq_trio.client.http1 import Headers, HttpAnswer, basic, encode_headers, encode_request
from forq_trio.client.tls import context_for
from forq_trio.model import limits
from forq_trio.model.json_text import is_json
from forq_trio.worker.jobs import Job, told_attributes
from forq_trio.worker.outcomes import Discard, Retry
from forq_trio.worker.post_connection import Target, post
from forq_trio.worker.webhooks import read_keys, signed_headers

TIMEOUT_SECONDS = 30.0
ATTRIBUTE_HEADERS_BYTES_MAX = 8 * 1_024
_REASON_LENGTH = limits.REASON_LENGTH_MAX - 100  # the type and the status stand in front
_CONTENT_TYPE = re.compile(r"[!-.0-~]+/[!-~]+(?: [!-~]+)*")
_VALUE_SAFE = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_DELAY_SECONDS_MAX = limits.NACK_DELAY_MS_MAX / 1_000
_RETRY_LATER = (429, 503)
_GONE = 410

Handler = Callable[[str, Job], Awaitable[None]]


class PostFailed(Exception):
    """The URL did not answer with a success"""


def post_handler(
    url: str,
    *,
    signing_keys: Sequence[str] = (),
    allow_private: bool = False,
    timeout: float = TIMEOUT_SECONDS,
    now: Callable[[], float] = time.time,
) -> Handler:
    """A handler that posts each message to `url`.

    signing_keys: each as `whsec_…`; the signature has a part for each (webhooks.py), without any there is none.
    allow_private: whether addresses that are not public may be connected to. timeout: seconds for the whole exchange;
    the lease bounds it, too. now: seconds since the epoch.
    Raises ValueError for an invalid URL or key. The handler raises PostFailed, `Retry` and `Discard`. Cancelled: the
    connection is closed; the receiver may have processed the message.
    """
    keys = read_keys(signing_keys)
    address = address_of(url)
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = Target(address, context_for() if address.tls else None, allow_private)

    async def post_message(content: str, job: Job) -> None:
        body = content.encode()
        headers = headers_of(address, job, body, keys, now())
        request = encode_request("POST", path, encode_headers(headers), body)
        with anyio.move_on_after(min(timeout, job.seconds_left)) as scope:
            _judge(await post(target, request), now())
        if scope.cancelled_caught:
            raise PostFailed("no answer in time")

    return post_message


def headers_of(
    address: ServerAddress, job: Job, body: bytes, keys: Sequence[bytes], now_seconds: float
) -> Headers:
    """The headers of a request. Whatever text an attribute has, it cannot leave its header."""
    headers = [
        ("Host", address.authority),
        ("User-Agent", "forq-work"),
        ("Connection", "close"),
        ("Content-Type", _content_type(job.attributes or {}, body)),
        ("Forq-Message-Id", job.id),
        ("Forq-Queue", job.queue),
        ("Forq-Attempt", str(job.attempt)),
    ]
    if address.credentials:
        headers.append(("Authorization", basic(address)))
    if keys:
        headers += signed_headers(keys, job.id, now_seconds, body)
    told, left_out = told_attributes(job, _attribute_header, ATTRIBUTE_HEADERS_BYTES_MAX)
    if left_out:
        told["Forq-Attributes-Left-Out"] = str(left_out)
    return (*headers, *told.items())


def _content_type(attributes: Mapping[str, str], body: bytes) -> str:
    named = next((value for name, value in attributes.items() if name.lower() == "content-type"), None)
    if named is not None and _CONTENT_TYPE.fullmatch(named):
        return named
    return "application/json" if is_json(body) else "text/plain; charset=utf-8"


def _attribute_header(name: str, value: str) -> tuple[str, str]:
    """An attribute as a header: - replaces what a header's name cannot have, and the value is percent-encoded if
    needed.
    """
    header = f"Forq-Attribute-{re.sub('[^A-Za-z0-9-]', '-', name).title()}"
    return header, quote(value, safe=_VALUE_SAFE, errors="replace")


def _judge(answer: HttpAnswer, now_seconds: float) -> None:
    """Return if the answer is a success, else raise the outcome of the message."""
    if answer.is_success:
        return
    reason = _reason(answer)
    if answer.status == _GONE:
        raise Discard(reason)
    if answer.status in _RETRY_LATER:
        delay = retry_after_seconds(answer.header("retry-after"), now_seconds)
        if delay is not None:
            raise Retry(delay, reason)
    raise PostFailed(reason)


def retry_after_seconds(value: str | None, now_seconds: float) -> float | None:
    """The seconds in a header Retry-After, at most the longest delay of a nack; None without one, or if it says "now".

    With None the queue's back-off counts: attempts without a pause would be used up at once.
    """
    text = (value or "").strip()
    if re.fullmatch("[0-9]+", text):
        seconds = float(text)
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now_seconds
        except (ValueError, OverflowError, OSError):
            return None
    return math.ceil(min(seconds, _DELAY_SECONDS_MAX)) if seconds > 0 else None


def _reason(answer: HttpAnswer) -> str:
    told = " ".join(answer.content.decode(errors="replace").replace("\0", "").split())
    redirect = " (redirects are not followed)" if 300 <= answer.status < 400 else ""
    words = f"status {answer.status}{redirect}"
    return f"{words}: {told[:_REASON_LENGTH]}" if told else words
