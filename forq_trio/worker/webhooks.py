"""Signatures of webhooks as Standard Webhooks 1.0 has them (standardwebhooks.com).

The headers of a post are `webhook-id`, the same for each attempt; `webhook-timestamp`, seconds since the epoch; and
`webhook-signature`, for each key `v1,` and the HMAC-SHA256 of "id.timestamp.body" in base64, with spaces in between.
A receiver takes a post if one of them is right: a new key signs beside the old one, until all receivers know it.
"""

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence

from forq_trio.client.http1 import Headers

PREFIX = "whsec_"
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64
KEYS_MAX = 10
NO_KEY = f"a signing key is {PREFIX} and the base64 of {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes"


def read_keys(texts: Sequence[str]) -> tuple[bytes, ...]:
    """The bytes of signing keys, each given as `whsec_…`. Raises ValueError, which shows none of them."""
    if len(texts) > KEYS_MAX:
        raise ValueError(f"there are more than {KEYS_MAX} signing keys")
    return tuple(map(_read_key, texts))


def _read_key(text: str) -> bytes:
    try:
        key = b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(PREFIX) or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(NO_KEY)
    return key


def signed_headers(keys: Sequence[bytes], message_id: str, now_seconds: float, body: bytes) -> Headers:
    """The three headers of a post. now_seconds: since the epoch."""
    timestamp = str(int(now_seconds))
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = (b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return (
        ("webhook-id", message_id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", " ".join(f"v1,{signature}" for signature in signatures)),
    )
