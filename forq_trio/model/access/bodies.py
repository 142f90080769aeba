"""Access tokens: to create, as created with their text, and as listed without it."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.access.types import ALL_QUEUES, Scope, Token
from forq_trio.model.values import LEFT_OUT, EpochMs, text_up_to

TokenName = Annotated[
    str,
    text_up_to(
        limits.TOKEN_NAME_LENGTH_MAX, "1 to 64 characters of A-Z a-z 0-9 . _ -, but not . or .. alone."
    ),
]
Scopes = Annotated[
    list[Scope],
    Meta(description="What it allows; admin includes the others.", extra_json_schema={"minItems": 1}),
]
Queues = Annotated[
    str,
    text_up_to(
        limits.TOKEN_QUEUES_LENGTH_MAX,
        "The queues that it is for: a glob over their names, with * ? [...] [!...]",
    ),
]


class NewToken(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A token to create."""

    name: TokenName
    scopes: Scopes
    queues: Queues = ALL_QUEUES
    expires_at: EpochMs | None = None  # at most 3,660 days ahead; null: never


class CreatedToken(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A new token."""

    name: str  # as it was asked for
    token: str  # its text, which clients send as the key; no other answer has it, and it is not stored
    # the token as a pair of keys, for clients that sign their requests as Amazon's do; absent where there is no server
    access_key_id: Annotated[str | None, LEFT_OUT] = None
    secret_access_key: Annotated[str | None, LEFT_OUT] = None  # signs; the other is sent


class TokenInfo(Token, frozen=True, gc=False):
    """A token without its text."""

    expired: bool  # it lets nobody in any more


class TokenList(Struct, frozen=True, rename="camel"):
    """All tokens."""

    tokens: list[TokenInfo]  # by name, those that were not revoked
