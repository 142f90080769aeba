"""Makes, lists and revokes access tokens. A part of `Broker`; `Broker.keys` finds the token of a request.

The text of a token leaves this module once, as the result of `create_token`. Only its hash is stored.
"""

from collections.abc import Iterable

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.views import token_info
from forq_trio.model.access.bodies import CreatedToken, TokenInfo
from forq_trio.model.access.methods import TokenMethods
from forq_trio.model.access.types import (
    ALL_QUEUES,
    AccessToken,
    Digest,
    Scope,
    check_scopes,
    check_token,
    digest,
    is_token_name,
    new_token_text,
)
from forq_trio.model.commands import RevokeToken, SaveToken
from forq_trio.model.errors import TokenNotFound


class Tokens(TokenMethods, BrokerBase):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    async def create_token(
        self, name: str, scopes: Iterable[Scope], queues: str = ALL_QUEUES, *, expires_at: int | None = None
    ) -> CreatedToken:
        wanted = check_scopes(scopes)
        text = new_token_text()
        token = AccessToken(
            name=name,
            scopes=tuple(scope for scope in Scope if scope in wanted),
            queues=queues,
            created_at=self._clock.now_ms(),
            expires_at=expires_at,
            last_used_at=None,
            digest=Digest(digest(text)),
        )
        await self._writer.execute(SaveToken(check_token(token)))
        return CreatedToken(name, text)

    async def revoke_token(self, name: str) -> None:
        if not (is_token_name(name) and await self._writer.execute(RevokeToken(name))):
            raise TokenNotFound

    async def tokens(self) -> list[TokenInfo]:
        await trio.lowlevel.checkpoint()
        now_ms = self._clock.now_ms()
        return [token_info(token, now_ms) for token in self.keys.all()]
