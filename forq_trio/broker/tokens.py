"""Access tokens: made, listed, revoked, and found by what a client shows. A part of `Broker`.

The text of a token leaves this module once, as the result of `create_token`. Only its hash is stored, and a presented
key is looked up by its hash: one SHA-256 and one dict look-up, whatever the number of tokens.

Uses are noted in memory, and stored by a job and when the system stops, so that requests do not write.
"""

from collections.abc import Iterable

import trio
from msgspec.structs import replace

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.views import token_info
from forq_trio.model.access import (
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
from forq_trio.model.clock import Clock
from forq_trio.model.commands import NoteTokenUse, RevokeToken, SaveToken
from forq_trio.model.errors import TokenNotFound
from forq_trio.wire.tokens import CreatedToken, TokenInfo
from forq_trio.writer_actor import WriterActor


class KnownTokens:
    """The tokens by their hashes, as of the last commit, and the uses that are not saved yet."""

    def __init__(self, writer: WriterActor, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._changes_seen = -1
        self._by_digest: dict[str, AccessToken] = {}
        self._used_at: dict[str, int] = {}

    def use(self, key: str) -> AccessToken | None:
        """The token of which `key` is the text, noted as used now; None if there is none, or it has expired."""
        return self.by_digest(digest(key))

    def by_digest(self, token_digest: str) -> AccessToken | None:
        """The token of which the text has this digest, noted as used now; None like `use`."""
        token = self._current().get(token_digest)
        now_ms = self._clock.now_ms()
        if token is None or token.expired(now_ms):
            return None
        self._used_at[token_digest] = now_ms
        return token

    def all(self) -> list[AccessToken]:
        """All tokens by name, each with its latest use, saved or not."""
        tokens = [
            replace(token, last_used_at=max(token.last_used_at or 0, used_at))
            if (used_at := self._used_at.get(token.digest.hex)) is not None
            else token
            for token in self._current().values()
        ]
        return sorted(tokens, key=lambda token: token.name)

    def unsaved_uses(self) -> dict[str, int]:
        """The uses that are not saved yet: epoch ms by name."""
        tokens = self._current()
        return {tokens[token_digest].name: used_at for token_digest, used_at in self._used_at.items()}

    def saved(self, uses: dict[str, int]) -> None:
        """Forget these uses: they are saved."""
        self._used_at = {
            token_digest: used_at
            for token_digest, used_at in self._used_at.items()
            if (token := self._by_digest.get(token_digest)) is not None and used_at != uses.get(token.name)
        }

    def _current(self) -> dict[str, AccessToken]:
        """The tokens by hash. Uses of revoked tokens are forgotten, so that a new token of the name has none."""
        changes = self._writer.token_changes
        if changes != self._changes_seen:
            self._by_digest = {token.digest.hex: token for token in self._writer.snapshot().tokens.values()}
            self._used_at = {
                token_digest: at
                for token_digest, at in self._used_at.items()
                if token_digest in self._by_digest
            }
            self._changes_seen = changes
        return self._by_digest


class Tokens(BrokerBase):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    _known_tokens: KnownTokens

    async def create_token(
        self,
        name: str,
        scopes: Iterable[Scope],
        queues: str = ALL_QUEUES,
        *,
        expires_at: int | None = None,
    ) -> CreatedToken:
        """Create a token with `scopes` on the queues that the glob matches; only the result has its text.

        name: 1-64 characters of A-Z a-z 0-9 . _ -; expires_at: epoch ms, None for never.
        Raises InvalidToken, TokenExists, TooManyTokens.
        """
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
        """Revoke a token, with effect from the commit; its name is free again. Raises TokenNotFound."""
        if not (is_token_name(name) and await self._writer.execute(RevokeToken(name))):
            raise TokenNotFound

    async def tokens(self) -> list[TokenInfo]:
        """All tokens by name, also expired ones; from the cache."""
        await trio.lowlevel.checkpoint()
        now_ms = self._clock.now_ms()
        return [token_info(token, now_ms) for token in self._known_tokens.all()]

    def use_token(self, key: str) -> AccessToken | None:
        """The token of which `key` is the text; None if there is none, it was revoked or has expired.

        Does not wait. The use is noted in memory and stored within TOKEN_USE_SAVE_SECONDS.
        """
        return self._known_tokens.use(key)

    def token_by_digest(self, token_digest: str) -> AccessToken | None:
        """`use_token` by the digest of the key, for sessions that were opened with it."""
        return self._known_tokens.by_digest(token_digest)

    async def _save_token_uses(self) -> int:
        """Store when tokens were last used, and return of how many; sends no command if none was."""
        uses = self._known_tokens.unsaved_uses()
        if uses:
            await self._writer.execute(NoteTokenUse(uses))
            self._known_tokens.saved(uses)
        return len(uses)

    def _post_token_uses(self) -> None:
        """The same without waiting, for the moment before the writer stops."""
        uses = self._known_tokens.unsaved_uses()
        if uses:
            self._writer.post(NoteTokenUse(uses))
