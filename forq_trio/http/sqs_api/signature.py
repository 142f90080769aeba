"""Signature Version 4: who signed a request, and whether it is signed as a client with that key would sign it.

A signature is over method, path, query, some headers and the hash of the body. So it is checked once the body is there.
What all requests of a client have in common is read once and remembered, because a check is a good part of what a
request costs.
Source: the AWS Signature Version 4 documentation, "Create a signed AWS API request".
"""

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote

import trio

from forq_trio.http.message import Request
from forq_trio.http.sqs_api.errors import (
    EXPIRED_SIGNATURE,
    INCOMPLETE_SIGNATURE,
    NO_CREDENTIALS,
    WRONG_SIGNATURE,
    SqsError,
)
from forq_trio.in_place import require_task
from forq_trio.model import limits
from forq_trio.model.amazon_names import REGION

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW_SECONDS_MAX = 15 * 60
PRESIGNED_SECONDS_MAX = 7 * 24 * 3600
_DAYS_CACHED_MAX = 1_024  # keys of a day, each of a key and a region
_TERMS_CACHED_MAX = 1_024
_TIMES_CACHED_MAX = 256  # many requests are signed in the same second
_TERMS_LENGTH_MAX = 2_048
_NAMES_MAX = 64  # signed headers; SDKs have about ten
_TERMS = re.compile(rf"{ALGORITHM} +Credential=([^, ]{{1,256}}) *, *SignedHeaders=([^, ]{{1,2048}}) *, *")
_SIGNED_HEADERS = re.compile(r"[a-z0-9;-]{1,2048}")
_SIGNATURE = re.compile(rb"[0-9a-f]{64}")
_CREDENTIAL = re.compile(rf"([^/]{{1,128}})/([0-9]{{8}})/({REGION})/sqs/aws4_request")
_HOST = b"host"
_NEEDED_IF_SENT = (
    _HOST,
    b"content-type",
    b"x-amz-target",
    b"x-amz-date",
    b"x-amz-security-token",
    b"x-amz-content-sha256",
)


class SignatureTerms(NamedTuple):
    """What the signatures of a client have in common all day."""

    key_id: str
    day: str  # YYYYMMDD
    region: str
    headers: bytes  # the names of the signed headers, as they were sent
    names: tuple[tuple[bytes, bytes], ...]  # the same, each also with a colon
    left_out: tuple[bytes, ...]  # headers that have to be signed, too, if they are sent
    are_sorted: bool  # whether the names are, as they have to be


class Signature(NamedTuple):
    """What a request says about its signature."""

    terms: SignatureTerms
    time: str  # YYYYMMDDTHHMMSSZ
    hex: bytes
    expires_seconds: int | None  # of a presigned URL; None for a header


def signature_of(request: Request) -> Signature:
    """The signature of a request, from its header or its URL; raises SqsError if it has none, or half of one."""
    authorization = request.headers.get(b"authorization")
    if authorization is not None:
        text, _, signature = authorization.rpartition(b"Signature=")
        terms = _terms(text) if len(text) <= _TERMS_LENGTH_MAX else None
        if terms is None or _SIGNATURE.fullmatch(signature) is None:
            raise _incomplete("The header Authorization is not one of Signature Version 4.")
        return Signature(terms, request.headers.get(b"x-amz-date", b"").decode("latin-1"), signature, None)
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    if query.get("X-Amz-Algorithm") != ALGORITHM:
        raise SqsError(NO_CREDENTIALS, "The request has no signature of Signature Version 4.")
    signature = query.get("X-Amz-Signature", "").encode()
    if _SIGNATURE.fullmatch(signature) is None:
        raise _incomplete("X-Amz-Signature is not 64 hexadecimal digits.")
    return Signature(
        _terms_of(query.get("X-Amz-Credential", ""), query.get("X-Amz-SignedHeaders", "")),
        query.get("X-Amz-Date", ""),
        signature,
        _seconds(query.get("X-Amz-Expires", "")),
    )


@lru_cache(_TERMS_CACHED_MAX)
def _terms(text: bytes) -> SignatureTerms | None:
    """Those of a header Authorization, which is cut before its signature; None if it is not one."""
    found = _TERMS.fullmatch(text.decode("latin-1"))
    return None if found is None else _terms_of(found[1], found[2])


def _terms_of(credential: str, signed: str) -> SignatureTerms:
    scope = _CREDENTIAL.fullmatch(credential)
    if scope is None:
        raise _incomplete("The credential is not KEY/YYYYMMDD/REGION/sqs/aws4_request.")
    if _SIGNED_HEADERS.fullmatch(signed) is None:
        raise _incomplete("The signed headers have characters that they cannot have.")
    names = signed.encode().split(b";")
    if len(names) > _NAMES_MAX:
        raise _incomplete(f"More than {_NAMES_MAX} headers are signed.")
    return SignatureTerms(
        scope[1],
        scope[2],
        scope[3],
        signed.encode(),
        tuple((name, name + b":") for name in names),
        tuple(name for name in _NEEDED_IF_SENT if name not in names),
        names == sorted(set(names)),
    )


async def hash_of(body: bytes) -> str:
    """The hash of a body that a signature is over. Other requests are answered between the parts of a long one.

    That needs a task (in_place.py).
    """
    if len(body) <= limits.READ_SLICE_BYTES:
        return sha256(body).hexdigest()
    require_task()
    found = sha256()
    with memoryview(body) as whole:
        for start in range(0, len(body), limits.READ_SLICE_BYTES):
            found.update(whole[start : start + limits.READ_SLICE_BYTES])
            await trio.lowlevel.checkpoint()
    return found.hexdigest()


def check_signature(request: Request, body_hash: str, signature: Signature, secret: str) -> None:
    """Raise SqsError unless `request` is signed with `secret`. body_hash: `hash_of` its body."""
    terms = signature.terms
    expected = _signer_of_day(secret, terms.day, terms.region).copy()
    expected.update(_string_to_sign(request, body_hash, signature))
    if not hmac.compare_digest(expected.hexdigest().encode(), signature.hex):
        raise SqsError(
            WRONG_SIGNATURE,
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
            " Access Key and signing method.",
        )


def check_time(signature: Signature, now_seconds: float) -> None:
    """Raise SqsError unless the time of a signature is near enough."""
    signed_at = _epoch_seconds(signature.time)
    if not signature.time.startswith(signature.terms.day):
        raise _incomplete("The day of the credential is not that of X-Amz-Date.")
    late = SKEW_SECONDS_MAX if signature.expires_seconds is None else signature.expires_seconds
    if not -SKEW_SECONDS_MAX <= now_seconds - signed_at <= late:
        now = datetime.fromtimestamp(now_seconds, UTC).strftime("%Y%m%dT%H%M%SZ")
        text = f"The signature of {signature.time} is not valid now: the clock of this server says {now}."
        raise SqsError(EXPIRED_SIGNATURE, text)


@lru_cache(_TIMES_CACHED_MAX)
def _epoch_seconds(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise _incomplete("X-Amz-Date is no time of the form YYYYMMDDTHHMMSSZ.") from None


def _string_to_sign(request: Request, body_hash: str, signature: Signature) -> bytes:
    path, terms = request.path, signature.terms
    canonical = b"%b\n%b\n%b\n%b\n\n%b\n%b" % (
        request.method.encode(),
        b"/" if path == "/" else quote(unquote(path), safe="/-_.~").encode(),
        _canonical_query(request.query) if request.query else b"",
        _canonical_headers(request.headers, terms),
        terms.headers,
        body_hash.encode(),
    )
    digest = sha256(canonical).hexdigest()
    return f"{ALGORITHM}\n{signature.time}\n{terms.day}/{terms.region}/sqs/aws4_request\n{digest}".encode()


def _canonical_headers(headers: Mapping[bytes, bytes], terms: SignatureTerms) -> bytes:
    """The signed headers, a line each; raises SqsError if one is absent, or one that has to be signed is not."""
    for name in terms.left_out:
        if name in headers or name == _HOST:
            raise _not_signed(name)
    if not terms.are_sorted:
        raise _not_signed(terms.headers)
    try:
        lines = b"\n".join([start + b" ".join(headers[name].split()) for name, start in terms.names])
    except KeyError as absent:
        raise _not_signed(absent.args[0]) from None
    return lines if lines.isascii() else lines.decode("latin-1").encode()


def _canonical_query(query: str) -> bytes:
    pairs = parse_qsl(query, keep_blank_values=True)
    encoded = sorted((_encoded(name), _encoded(value)) for name, value in pairs if name != "X-Amz-Signature")
    return "&".join(f"{name}={value}" for name, value in encoded).encode()


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


@lru_cache(_DAYS_CACHED_MAX)
def _signer_of_day(secret: str, day: str, region: str) -> hmac.HMAC:
    """The HMAC with the key of a day, to be copied: that takes less time than to begin with the key."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, "sqs", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, digestmod=sha256)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 0 < int(text) <= PRESIGNED_SECONDS_MAX):
        raise _incomplete(f"X-Amz-Expires is not a number from 1 to {PRESIGNED_SECONDS_MAX}.")
    return int(text)


def _incomplete(message: str) -> SqsError:
    return SqsError(INCOMPLETE_SIGNATURE, message)


def _not_signed(names: bytes) -> SqsError:
    return SqsError(WRONG_SIGNATURE, f"Not signed as it should be: {names.decode()}.")


def region_of(request: Request) -> str | None:
    """The region of a signature that nobody checks; None for a request without one."""
    try:
        return signature_of(request).terms.region
    except SqsError:
        return None
