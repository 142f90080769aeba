"""Methods for access tokens."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from forq_trio.model.access.bodies import CreatedToken, TokenInfo
from forq_trio.model.access.types import Scope


class TokenMethods(ABC):
    """They need the server's secret, or a token with the scope admin for all queues."""

    @abstractmethod
    async def create_token(
        self, name: str, scopes: Iterable[Scope], queues: str = "*", *, expires_at: int | None = None
    ) -> CreatedToken:
        """Create a token with `scopes` on the queues that the glob matches; only this result has its text.

        name: 1-64 characters of A-Z a-z 0-9 . _ -; expires_at: epoch ms, None for never. If there are TOKENS_MAX
        tokens, the one that expired longest ago is removed. Raises InvalidToken, TokenExists, TooManyTokens. For this
        method, `tokens` and `revoke_token` a client needs the secret, or a token with the scope admin for all queues.
        """

    @abstractmethod
    async def tokens(self) -> list[TokenInfo]:
        """All tokens by name, also expired ones."""

    @abstractmethod
    async def revoke_token(self, name: str) -> None:
        """Revoke a token, with effect from the commit; its name is free again. Raises TokenNotFound."""
