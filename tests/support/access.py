"""Access tokens as they are stored."""

from forq_trio.model.access.types import AccessToken, Digest, Scope


def access_token(
    name: str,
    digest: str,
    scopes: tuple[Scope, ...],
    queues: str = "*",
    created_at: int = 0,
    expires_at: int | None = None,
    last_used_at: int | None = None,
) -> AccessToken:
    return AccessToken(name, scopes, queues, created_at, expires_at, last_used_at, Digest(digest))
