"""Access tokens with scopes on queues, stored only as hashes; principals with the rights of a token; and callers."""

import re
import secrets
from collections.abc import Iterable
from contextvars import ContextVar
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import NamedTuple

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.checks import check_is_integer, check_is_list
from forq_trio.model.errors import Forbidden, InvalidToken
from forq_trio.model.member_names import python_name
from forq_trio.model.values import EpochMs

TOKEN_PREFIX = "forq_"
ALL_QUEUES = "*"
_TOKEN_BYTES = 32
# Not . or .. alone: clients and proxies remove them from a URL.
_NAME = re.compile(rf"(?!\.{{1,2}}\Z)[A-Za-z0-9._-]{{1,{limits.TOKEN_NAME_LENGTH_MAX}}}")
_GLOB = re.compile(rf"[A-Za-z0-9._*?!\[\]-]{{1,{limits.TOKEN_QUEUES_LENGTH_MAX}}}")


class Scope(StrEnum):
    """What a token allows. ADMIN includes all others."""

    PRODUCE = "produce"
    CONSUME = "consume"
    BROWSE = "browse"
    REDRIVE = "redrive"
    CANCEL = "cancel"
    SCHEDULE = "schedule"
    ADMIN = "admin"


class Key(NamedTuple):
    """The key of a caller."""

    name: str = ""  # of an access token, "" for the server's secret
    queues: str = ALL_QUEUES  # the token's glob

    def covers(self, queue: str) -> bool:
        """Whether the glob matches this queue, or, if `queue` is a glob itself, everything that it matches."""
        return self.queues == ALL_QUEUES or fnmatchcase(queue, self.queues)

    def covers_all(self, queues: Iterable[str]) -> bool:
        """Whether the glob matches each of these queues."""
        return all(map(self.covers, queues))


SECRET = Key()
"""The key of the server's secret, and of applications that embed the queue."""
UNKNOWN = "?"
"""In place of a key's name, for data that an earlier version stored without one."""


class Token(Struct, frozen=True, gc=False, rename="camel"):
    """An access token as callers see it."""

    name: str  # for people, and unique
    scopes: tuple[Scope, ...]  # what it allows
    queues: str  # a glob (* ? [...]) over queue names
    created_at: EpochMs  # when it was made
    expires_at: EpochMs | None  # null for never
    last_used_at: EpochMs | None  # null for never


class Digest:
    """SHA-256 of a token's text in hex. It is neither a str nor a Struct, so no encoder can put it into an answer."""

    __slots__ = ("hex",)

    def __init__(self, hex: str) -> None:
        self.hex = hex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self.hex == other.hex

    def __hash__(self) -> int:
        return hash(self.hex)


class AccessToken(Token, frozen=True, gc=False):
    """An access token as it is stored, with the digest of its text."""

    digest: Digest

    def allows(self, scope: Scope) -> bool:
        """Whether the token has this scope for any queue."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def covers(self, queue: str) -> bool:
        """True if the token's glob matches this queue."""
        return self.key.covers(queue)

    @property
    def key(self) -> Key:
        return Key(self.name, self.queues)

    def expired(self, now_ms: int) -> bool:
        """True from the millisecond `expires_at` on."""
        return self.expires_at is not None and self.expires_at <= now_ms


def is_token_name(name: str) -> bool:
    """True for 1 to 64 characters of A-Z a-z 0-9 . _ -, other than . and .."""
    return _NAME.fullmatch(name) is not None


def check_scopes(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """The scopes as a set; each may be given as its word. Raises InvalidToken for an unknown one."""
    check_is_list("scopes", scopes)
    try:
        return frozenset(map(Scope, scopes))
    except ValueError as error:
        raise _invalid("scopes", str(error)) from None


def check_token(token: AccessToken) -> AccessToken:
    """Return `token` if it is valid; raise InvalidToken, naming the member, or InvalidRequest if not."""
    if not is_token_name(token.name):
        raise _invalid("name", f"1 to {limits.TOKEN_NAME_LENGTH_MAX} characters of A-Z a-z 0-9 . _ -")
    if not token.scopes:
        raise _invalid("scopes", "at least one is needed")
    if _GLOB.fullmatch(token.queues) is None:
        raise _invalid(
            "queues", f"1 to {limits.TOKEN_QUEUES_LENGTH_MAX} characters of queue names and * ? [ ] !"
        )
    if token.expires_at is not None:
        check_is_integer("expires_at", token.expires_at)
        life_ms = token.expires_at - token.created_at
        if not 0 < life_ms <= limits.TOKEN_LIFE_DAYS_MAX * limits.DAY_MS:
            raise _invalid("expiresAt", f"in the future, within {limits.TOKEN_LIFE_DAYS_MAX} days")
    return token


def _invalid(member: str, problem: str) -> InvalidToken:
    return InvalidToken(f"{python_name(member)}: {problem}", field=member)


def new_token_text() -> str:
    """The text of a new token: a prefix that marks it as one of ours, and 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def digest(text: str) -> str:
    """SHA-256 of a token's text in hex. The text is random, so a plain hash does not help to guess it."""
    return sha256(text.encode()).hexdigest()


class Principal:
    """The party on whose behalf a request is made. token: None for the server's own secret, which has all rights."""

    __slots__ = ("token",)

    def __init__(self, token: AccessToken | None = None) -> None:
        self.token = token

    @property
    def key(self) -> Key:
        return SECRET if self.token is None else self.token.key

    def may(self, scope: Scope, queue: str) -> bool:
        """True if the principal has the scope for this queue."""
        token = self.token
        return token is None or (token.allows(scope) and token.covers(queue))

    def check(self, scope: Scope, queue: str | None = None) -> None:
        """Raise Forbidden unless the principal has the scope for this queue (None: for all queues)."""
        token = self.token
        if token is None:
            return
        covered = token.queues == ALL_QUEUES if queue is None else token.covers(queue)
        if not covered or not token.allows(scope):
            where = "all queues" if queue is None else "this queue"
            raise Forbidden(f"the token has not the scope {scope.value} for {where}")

    def check_somewhere(self, scope: Scope) -> None:
        """Raise Forbidden unless the principal has the scope for any queue."""
        if self.token is not None and not self.token.allows(scope):
            raise Forbidden(f"the token has not the scope {scope.value} for this queue")


EVERYBODY = Principal()
"""The principal of a request to a route without a gate."""

CALLER: ContextVar[str] = ContextVar("caller", default="")
"""The caller for whom the current task works, so that callers are served round-robin: an access token, a session of the
admin UI, or the address of any other client; "" for an application that embeds the queue, and for the server's own
work. Set in the task of a request."""


def expired_longest(tokens: Iterable[AccessToken], now_ms: int) -> str | None:
    """The name of the token that expired longest ago; None if none has."""
    expired = [(token.expires_at, token.name) for token in tokens if token.expired(now_ms)]
    return min(expired, default=(None, None))[1]
