"""Handlers that post: what is sent, what an answer means, and where no connection is made."""

import re
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from standardwebhooks import Webhook, WebhookVerificationError

from forq_trio.client import aio_waits
from forq_trio.model import limits
from forq_trio.worker import post_connection
from forq_trio.worker.outcomes import Discard, Retry
from forq_trio.worker.post_connection import PrivateAddress
from forq_trio.worker.posting import PostFailed, post_handler, retry_after_seconds
from forq_trio.worker.webhooks import read_keys, signed_headers

from .fake_jobs import job_of

NOW = 1_700_000_000.0
KEYS = [f"whsec_{b64encode(bytes([number]) * 32).decode()}" for number in (1, 2)]


class Receiver:
    """Answers each request with the same bytes, and has the last one."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.head = ""
        self.body = b""
        self.url = ""

    async def serve(self, stream: trio.SocketStream) -> None:
        data = b""
        async with stream:
            while b"\r\n\r\n" not in data:
                data += await stream.receive_some()
            head, _, body = data.partition(b"\r\n\r\n")
            self.head = head.decode()
            length = int(self.header("Content-Length"))
            while len(body) < length:
                body += await stream.receive_some()
            self.body = body
            try:
                await stream.send_all(self.answer)
            except trio.BrokenResourceError:
                return

    def header(self, name: str) -> str:
        return next(
            line.partition(": ")[2] for line in self.head.splitlines() if line.startswith(f"{name}: ")
        )


@asynccontextmanager
async def receiver(answer: bytes = b"HTTP/1.1 204 No Content\r\n\r\n") -> AsyncIterator[Receiver]:
    here = Receiver(answer)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(lambda task_status: _listen(here, task_status))
        here.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield here
        nursery.cancel_scope.cancel()


async def _listen(here: Receiver, task_status: trio.TaskStatus) -> None:
    await trio.serve_tcp(here.serve, 0, host="127.0.0.1", task_status=task_status)


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def test_a_success_returns_and_the_request_has_all_of_the_message():
    async with receiver() as there:
        url = there.url.replace("//", "//user:pass@") + "/hook/?a=1#here"
        handler = post_handler(url, allow_private=True, signing_keys=KEYS[:1], now=lambda: NOW)
        job = job_of('{"a": 1}', **{"trace id": "ü\r\nX-Evil: 1", "b": "plain"})
        await handler(job.content, job)
    assert there.head.splitlines()[0] == "POST /hook/?a=1 HTTP/1.1"
    assert there.body == b'{"a": 1}'
    assert there.header("Content-Type") == "application/json"
    assert there.header("Authorization") == "Basic dXNlcjpwYXNz"
    assert [there.header(f"Forq-{name}") for name in ("Message-Id", "Queue", "Attempt")] == [
        job.id,
        "emails",
        "2",
    ]
    assert there.header("Forq-Attribute-Trace-Id") == "%C3%BC%0D%0AX-Evil:%201"
    assert there.header("Forq-Attribute-B") == "plain"
    assert "\nX-Evil" not in there.head
    assert there.header("webhook-id") == job.id
    assert there.header("webhook-timestamp") == "1700000000"
    assert re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", there.header("webhook-signature"))


async def test_the_library_of_standard_webhooks_verifies_a_post():
    """Each of two keys does, as while one replaces the other; another key, body or time does not."""
    job = job_of('{"a": "ü"}')
    async with receiver() as there:
        await post_handler(there.url, allow_private=True, signing_keys=KEYS)(job.content, job)
    headers = {name: there.header(name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
    for key in KEYS:
        assert Webhook(key).verify(there.body, headers) == {"a": "ü"}
    late = headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}
    other = Webhook(f"whsec_{b64encode(bytes(32)).decode()}")
    for webhook, body, said in (
        (other, there.body, headers),
        (Webhook(KEYS[0]), there.body + b" ", headers),
        (Webhook(KEYS[0]), there.body, late),
    ):
        with pytest.raises(WebhookVerificationError):
            webhook.verify(body, said)


def test_the_signature_is_what_openssl_says():
    """printf 'id.5.body' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0101…01 -binary | base64"""
    (_, _, (_, signature)) = signed_headers(read_keys(KEYS[:1]), "id", 5.9, b"body")
    assert signature == "v1,TMOrEccNG1VIFPVKWUu0fI0CfFX/VaTnSVuRF6X0uNg="


@pytest.mark.parametrize(
    "key",
    [
        "",
        "whsec_",
        "secret",
        KEYS[0].removeprefix("whsec_"),
        f"whsec_{b64encode(bytes(23)).decode()}",
        f"whsec_{b64encode(bytes(65)).decode()}",
        f"{KEYS[0]}!",
        KEYS[0][:-1],
        "whsec_ü",
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(key: str):
    with pytest.raises(ValueError, match="a signing key is whsec_ and") as caught:
        post_handler("http://example.com", signing_keys=[key])
    assert len(key) < 10 or key not in str(caught.value)


def test_keys_have_a_bound():
    with pytest.raises(ValueError, match="more than 10"):
        read_keys(KEYS[:1] * 11)


@pytest.mark.parametrize(
    ("content", "attributes", "expected"),
    [
        ("hello", {}, "text/plain; charset=utf-8"),
        ("<a/>", {"Content-Type": "text/xml; charset=utf-8"}, "text/xml; charset=utf-8"),
        ("x", {"content-type": "text/xml\r\nX-Evil: 1"}, "text/plain; charset=utf-8"),
        ("x", {"content-type": f"a/{'b' * 60}\x7f"}, "text/plain; charset=utf-8"),
        ("1.5", {}, "application/json"),
        *(
            (content, {}, "text/plain; charset=utf-8")
            for content in (
                "NaN",
                "[Infinity]",
                "\ufeff1",
                "1\0",
                "1e999",
                '"\\ud800"',
                "[" * 500 + "]" * 500,
            )
        ),
    ],
)
async def test_the_content_type(content: str, attributes: dict[str, str], expected: str):
    async with receiver() as there:
        await post_handler(there.url, allow_private=True)(content, job_of(content, **attributes))
    assert there.header("Content-Type") == expected
    assert "\nX-Evil" not in there.head
    assert "webhook-" not in there.head


@pytest.mark.parametrize(
    ("said", "error", "reason"),
    [
        (answer("500 No", b"went\n wrong\0"), PostFailed, "status 500: went wrong"),
        (answer("404 No"), PostFailed, "status 404"),
        (answer("302 Go", b"", "Location: /x"), PostFailed, "status 302 (redirects are not followed)"),
        (answer("429 Slow"), PostFailed, "status 429"),
        (answer("503 No", b"", "Retry-After: soon"), PostFailed, "status 503"),
        (answer("410 Gone", b"bye"), Discard, "status 410: bye"),
        (answer("503 No", b"", "Retry-After: 90"), Retry, "status 503"),
        (answer("429 Slow", b"", "Retry-After: 90"), Retry, "status 429"),
    ],
)
async def test_another_answer_says_what_becomes_of_the_message(
    said: bytes, error: type[Exception], reason: str
):
    async with receiver(said) as there:
        with pytest.raises(error) as caught:
            await post_handler(there.url, allow_private=True)("x", job_of("x"))
    told = caught.value
    assert (told.reason if isinstance(told, (Discard, Retry)) else str(told)) == reason
    if isinstance(told, Retry):
        assert told.delay == 90


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("120", 120),
        ("999999999999", limits.NACK_DELAY_MS_MAX / 1_000),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2023 22:00:00 GMT", None),
        ("0", None),
        ("-5", None),
        ("9" * 5_000, limits.NACK_DELAY_MS_MAX / 1_000),
        ("\u0663", None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None):
    assert retry_after_seconds(value, NOW) == seconds


async def test_an_answer_without_end_is_read_to_a_bound():
    said = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (8 * post_connection.ANSWER_BYTES_MAX)
    async with receiver(said) as there:
        await post_handler(there.url, allow_private=True)("x", job_of("x"))


async def test_the_lease_bounds_how_long_it_waits():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        handler = post_handler(f"http://127.0.0.1:{silent.getsockname()[1]}", allow_private=True)
        with pytest.raises(PostFailed, match="no answer in time"):
            await handler("x", job_of("x", lease_seconds=0.05))


async def test_a_private_address_is_refused_when_it_is_connected_to(monkeypatch: pytest.MonkeyPatch):
    """A name may have one address when it is looked at, and another one when it is connected to."""

    async def resolve(host: str, port: int) -> list[tuple]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr(aio_waits, "resolve", resolve)
    async with receiver() as there:
        url = there.url.replace("127.0.0.1", "public.example")
        with pytest.raises(PrivateAddress, match=r"public\.example is not at a public address"):
            await post_handler(url)("x", job_of("x"))
        assert there.head == ""
        await post_handler(url, allow_private=True)("x", job_of("x"))
        assert there.header("Host").startswith("public.example:")


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", "http://a b/"])
def test_what_is_no_url_is_refused(url: str):
    with pytest.raises(ValueError, match="URL"):
        post_handler(url)
