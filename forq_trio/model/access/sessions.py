"""Sessions of the admin UI: one for each login, stored by the hash of an id that only its browser has."""

import secrets

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.access.types import digest

_ID_BYTES = 32


class UiSession(Struct, frozen=True, gc=False, rename="camel"):
    """A session as it is stored."""

    digest: str  # SHA-256 of its id in hex; times are epoch ms
    # the name of the access token that was used for the login, None for the server's secret
    key_name: str | None
    key_digest: str  # the hash of that key
    created_at: int
    expires_at: int
    last_used_at: int
    client: str  # the address from which the login came
    agent: str  # the browser's User-Agent

    def expired(self, now_ms: int) -> bool:
        """True from the millisecond `expires_at` on."""
        return self.expires_at <= now_ms


def new_session(
    key_name: str | None, key_digest: str, client: str, agent: str, now_ms: int
) -> tuple[str, UiSession]:
    """A new session and its id (256 random bits, as text for a cookie); returns (id, session). Long texts are cut."""
    session_id = secrets.token_urlsafe(_ID_BYTES)
    session = UiSession(
        digest(session_id),
        key_name,
        key_digest,
        now_ms,
        now_ms + limits.SESSION_LIFE_MS,
        now_ms,
        _cut(client, limits.SESSION_CLIENT_LENGTH_MAX),
        _cut(agent, limits.SESSION_AGENT_LENGTH_MAX),
    )
    return session_id, session


def _cut(text: str, length_max: int) -> str:
    """The first characters of a text; those that UTF-8 cannot encode are replaced."""
    return text[:length_max].encode(errors="replace").decode()
