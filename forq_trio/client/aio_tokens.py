"""Access tokens: a part of `AsyncForqClient`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forq_trio.client import tokens
from forq_trio.client.calls import Call, ResultT
from forq_trio.client.tokens import CreatedToken, Scope, TokenInfo


class AsyncTokenMethods(ABC):
    """For the holder of the secret, or of a token with the scope admin for all queues."""

    @abstractmethod
    async def _run(self, call: Call[ResultT]) -> ResultT: ...

    async def create_token(
        self, name: str, scopes: Sequence[Scope], queues: str = "*", *, expires_at: int | None = None
    ) -> CreatedToken:
        """Make a token for the queues that the glob covers, until `expires_at` (None: for ever).

        Its text is told this once.
        """
        return await self._run(tokens.create(name, scopes, queues, expires_at))

    async def tokens(self) -> list[TokenInfo]:
        """All tokens by name, also those that expired."""
        return await self._run(tokens.all_tokens())

    async def revoke_token(self, name: str) -> None:
        """Make a token worthless, at once and for good."""
        await self._run(tokens.revoke(name))
