"""Signatures beside those that botocore makes."""

import datetime
from contextlib import nullcontext
from hashlib import sha256
from unittest.mock import patch

import pytest
import trio
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from forq_trio.http.access import KeyFailures
from forq_trio.http.message import Request
from forq_trio.http.sqs_api.access import SignatureGate
from forq_trio.http.sqs_api.errors import SqsError
from forq_trio.http.sqs_api.signature import (
    SKEW_SECONDS_MAX,
    check_signature,
    check_time,
    hash_of,
    signature_of,
)
from forq_trio.http.throttle import Throttle
from forq_trio.in_place import TaskRequired, run_until_paused
from forq_trio.model import limits
from forq_trio.model.holders import HolderKind

NOW = datetime.datetime(2026, 3, 1, 12, 0, 0, tzinfo=datetime.UTC)
KEY = Credentials("AK", "secret")


def request_of(signed: AWSRequest, body: bytes = b"") -> Request:
    """The request as the server gets it."""
    path, _, query = signed.url.removeprefix("http://localhost:8080").partition("?")
    headers = {name.lower().encode(): value.encode() for name, value in signed.headers.items()}
    headers.setdefault(b"host", b"localhost:8080")
    return Request(signed.method, path, query, headers, body, "127.0.0.1", lambda: nullcontext())


def signed(path: str = "/", body: bytes = b"{}", **headers: str) -> Request:
    with patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None), create=True):
        request = AWSRequest("POST", f"http://localhost:8080{path}", data=body, headers=headers)
        SigV4Auth(KEY, "sqs", "eu-west-1").add_auth(request)
    return request_of(request, body)


def check(request: Request, secret: str = "secret", seconds: float = 0) -> None:
    signature = signature_of(request)
    check_time(signature, NOW.timestamp() + seconds)
    check_signature(request, sha256(request.body).hexdigest(), signature, secret)


@pytest.mark.parametrize("path", ["/", "/000000000000/emails", "/000000000000/emails.fifo"])
def test_what_botocore_signs_is_valid(path: str) -> None:
    request = signed(path, **{"X-Amz-Target": "AmazonSQS.SendMessage", "X-Odd": "  many   blanks "})
    assert signature_of(request).terms.region == "eu-west-1"
    check(request)


def test_another_secret_or_body_is_not() -> None:
    request = signed()
    with pytest.raises(SqsError, match="does not match"):
        check(request, "another")
    request.body = b"{} "
    with pytest.raises(SqsError, match="does not match"):
        check(request)


@pytest.mark.parametrize("seconds", [SKEW_SECONDS_MAX, -SKEW_SECONDS_MAX])
def test_the_clocks_may_differ_by_a_quarter_of_an_hour(seconds: int) -> None:
    check(signed(), seconds=seconds)
    beyond = seconds + (1 if seconds > 0 else -1)
    with pytest.raises(SqsError, match="not valid now") as error:
        check(signed(), seconds=beyond)
    assert f"{NOW + datetime.timedelta(seconds=beyond):%Y%m%dT%H%M%SZ}" in error.value.message


def test_headers_that_matter_have_to_be_signed() -> None:
    request = signed()
    request.headers = {**request.headers, b"x-amz-target": b"AmazonSQS.DeleteQueue"}
    with pytest.raises(SqsError, match="x-amz-target"):
        check(request)


def test_an_unsigned_payload_is_refused() -> None:
    request = signed(**{"X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"})
    with pytest.raises(SqsError, match="does not match"):
        check(request)


def test_a_presigned_url_is_valid_for_its_seconds() -> None:
    with patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None), create=True):
        made = AWSRequest("GET", "http://localhost:8080/?Action=ListQueues&QueueNamePrefix=a%20b")
        SigV4QueryAuth(KEY, "sqs", "eu-west-1", expires=60).add_auth(made)
    check(request_of(made), seconds=60)
    with pytest.raises(SqsError, match="not valid now"):
        check(request_of(made), seconds=61)


@pytest.mark.parametrize(
    "authorization",
    [
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 Credential=a/20260301/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=zz",
        f"AWS4-HMAC-SHA256 Credential=a/20260301/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature={'0' * 64}",
        f"AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature={'0' * 64}",
    ],
)
def test_half_signatures(authorization: str) -> None:
    request = signed()
    request.headers = {**request.headers, b"authorization": authorization.encode()}
    with pytest.raises(SqsError):
        signature_of(request)


def test_the_host_has_to_be_signed_even_if_it_is_not_sent() -> None:
    request = signed()
    authorization = request.headers[b"authorization"].replace(b"host;", b"")
    request.headers = {name: value for name, value in request.headers.items() if name != b"host"} | {
        b"authorization": authorization
    }
    with pytest.raises(SqsError, match="host"):
        check(request)


def test_what_is_signed_has_a_bound() -> None:
    request = signed()
    authorization = request.headers[b"authorization"].replace(b"host;", b"h" * 2_048 + b";host;")
    request.headers = {**request.headers, b"authorization": authorization}
    with pytest.raises(SqsError, match="not one of"):
        signature_of(request)


def test_how_many_headers_are_signed_has_a_bound() -> None:
    """Each is remembered for each of many clients, before anybody knows whether their keys are right."""
    names = [f"x-{number:02}" for number in range(63)]
    request = signed(**dict.fromkeys(names, "v"))
    with pytest.raises(SqsError, match="More than 64 headers"):
        signature_of(request)
    few = signed(**dict.fromkeys(names[:-1], "v"))
    assert len(signature_of(few).terms.names) == 64


@pytest.mark.parametrize("more", [-1, 0, 1, limits.READ_SLICE_BYTES, limits.READ_SLICE_BYTES + 1])
async def test_the_hash_of_a_body(more: int) -> None:
    body = b"x" * (limits.READ_SLICE_BYTES + more)
    assert await hash_of(body) == sha256(body).hexdigest()


async def test_while_a_long_body_is_hashed_others_go_on() -> None:
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await hash_of(b"x" * 40 * limits.READ_SLICE_BYTES)
        nursery.cancel_scope.cancel()
    assert passes >= 20
    with pytest.raises(TaskRequired):
        run_until_paused(hash_of(b"x" * 2 * limits.READ_SLICE_BYTES))


def test_a_signature_of_another_time_is_refused_before_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = SignatureGate("secret", None, KeyFailures(Throttle()))
    request = signed()
    request.headers = {
        **request.headers,
        b"authorization": request.headers[b"authorization"].replace(b"Credential=AK/", b"Credential=forq/"),
    }
    with pytest.raises(SqsError, match="not valid now"):
        gate(request)
    monkeypatch.setattr("forq_trio.http.sqs_api.access.time", NOW.timestamp)
    gate(request)


def test_who_knows_the_id_of_a_key_uses_no_share_of_another_one(monkeypatch) -> None:
    """Everybody knows the id of the secret: bodies that never end would take the share of all keys of an address."""
    gate = SignatureGate("secret", None, KeyFailures(Throttle()))
    monkeypatch.setattr(gate, "_find", lambda key_id: ("secret", None))
    monkeypatch.setattr("forq_trio.http.sqs_api.access.time", NOW.timestamp)
    one, other = signed(), signed()
    authorization = other.headers[b"authorization"].replace(b"Credential=AK/", b"Credential=forq/")
    other.headers = {**other.headers, b"authorization": authorization}
    for request in (one, other):
        gate(request)
        assert request.holder.kind is HolderKind.ADDRESS
    assert one.holder != other.holder
