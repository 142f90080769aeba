"""Access tokens: what goes over the wire, and each operation as a value. No I/O in here."""

from collections.abc import Sequence
from typing import Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct

from forq_trio.client.calls import Call, json_body
from forq_trio.client.errors import ForqApiError

Scope = Literal["produce", "consume", "browse", "redrive", "admin"]
"""What a token allows. admin includes the others."""

_PATH = "/api/v1/tokens"


class CreatedToken(Struct, frozen=True):
    """token: the text to show as a key. The server cannot tell it again."""

    name: str
    token: str


class TokenInfo(Struct, frozen=True, rename="camel"):
    """A token without its text. queues: a glob. expires_at, last_used_at: None for never."""

    name: str
    scopes: tuple[Scope, ...]
    queues: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    expired: bool


class _Tokens(Struct):
    tokens: list[TokenInfo]


def create(name: str, scopes: Sequence[Scope], queues: str, expires_at: int | None) -> Call[CreatedToken]:
    members = {"name": name, "scopes": scopes, "queues": queues, "expiresAt": expires_at}
    return Call("POST", _PATH, msgspec.json.Decoder(CreatedToken).decode, json_body(members))


def all_tokens() -> Call[list[TokenInfo]]:
    return Call("GET", _PATH, lambda answer: msgspec.json.decode(answer, type=_Tokens).tokens)


def revoke(name: str) -> Call[None]:
    # A dot or two would be taken as a directory by clients and proxies, even percent-encoded.
    if name in ("", ".", ".."):
        raise ForqApiError(404, "not_found.token")
    return Call("DELETE", f"{_PATH}/{quote(name, safe='')}", lambda answer: None)
