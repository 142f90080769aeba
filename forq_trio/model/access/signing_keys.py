"""The key pair of an access token, for clients that sign their requests and send no key.

The secret is made of the token's digest and the server's own secret, so nothing that could sign is stored: a copy of
the database signs no request, and a server with another secret has other keys.
"""

import hmac
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

KEY_ID_DIGITS = 16
_PREFIX = "FORQ"
_PURPOSE = b"secret access key"
_KEYS_CACHED_MAX = 1_024


class SigningKey(NamedTuple):
    """A key pair."""

    id: str
    secret: str


@lru_cache(_KEYS_CACHED_MAX)  # it is needed twice for each request
def signing_key(server_secret: str, token_digest: str) -> SigningKey:
    """The key pair of the token with this digest (hex), for a server with this secret."""
    made = hmac.new(server_secret.encode(), _PURPOSE + token_digest.encode(), sha256).digest()
    return SigningKey(_PREFIX + token_digest[:KEY_ID_DIGITS].upper(), b64encode(made).decode().rstrip("="))


def digest_start(key_id: str) -> str:
    """The first KEY_ID_DIGITS digits of the digest of a key's token; "" for an id that is of no token."""
    if not key_id.startswith(_PREFIX) or len(key_id) != len(_PREFIX) + KEY_ID_DIGITS:
        return ""
    return key_id.removeprefix(_PREFIX).lower()
