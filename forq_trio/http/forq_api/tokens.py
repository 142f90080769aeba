"""Makes access tokens, each with the pair of keys that signs requests."""

from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access
from forq_trio.model.access.bodies import CreatedToken
from forq_trio.model.access.signing_keys import signing_key
from forq_trio.model.access.types import ALL_QUEUES, Scope, digest


def with_signing_key(broker: Broker, access: Access) -> Callable[..., Awaitable[CreatedToken]]:
    """`Broker.create_token`, for callers who may sign requests with the token, too."""

    async def create_token(
        name: str, scopes: Iterable[Scope], queues: str = ALL_QUEUES, *, expires_at: int | None = None
    ) -> CreatedToken:
        created = await broker.create_token(name, scopes, queues, expires_at=expires_at)
        key = signing_key(access.secret.decode(), digest(created.token))
        return replace(created, access_key_id=key.id, secret_access_key=key.secret)

    return create_token
