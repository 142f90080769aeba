"""Finds access tokens by the key of a request, with one SHA-256 and one dict lookup however many tokens there are."""

from msgspec.structs import replace

from forq_trio.broker.uses import Uses
from forq_trio.model.access.signing_keys import KEY_ID_DIGITS
from forq_trio.model.access.types import AccessToken, digest
from forq_trio.model.clock import Clock
from forq_trio.model.commands import NoteTokenUse
from forq_trio.writer_actor import WriterActor


class AccessTokens:
    """The tokens by their hashes, as of the last commit. `Broker.keys`."""

    def __init__(self, writer: WriterActor, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._changes_seen = -1
        self._by_digest: dict[str, AccessToken] = {}
        self._by_start: dict[str, str] = {}  # the digests by their first digits
        self.uses = Uses(
            writer, NoteTokenUse, lambda: {digest: token.name for digest, token in self._current().items()}
        )

    def use(self, key: str) -> AccessToken | None:
        """The token with the text `key`, noted as used now; None if there is none or it has expired."""
        return self.by_digest(digest(key))

    def by_digest(self, token_digest: str) -> AccessToken | None:
        """`use` with the digest of a key, for sessions that were opened with that key."""
        token = self._current().get(token_digest)
        now_ms = self._clock.now_ms()
        if token is None or token.expired(now_ms):
            return None
        self.uses.at[token_digest] = now_ms
        return token

    def beginning_with(self, start: str) -> AccessToken | None:
        """The token whose digest begins with these KEY_ID_DIGITS digits; None if there is none or it has expired."""
        tokens = self._current()
        token_digest = self._by_start.get(start)
        token = None if token_digest is None else tokens[token_digest]
        return None if token is None or token.expired(self._clock.now_ms()) else token

    def all(self) -> list[AccessToken]:
        """All tokens by name, each with its latest use, even if that is not saved yet."""
        tokens = [
            replace(token, last_used_at=max(token.last_used_at or 0, used_at))
            if (used_at := self.uses.at.get(token.digest.hex)) is not None
            else token
            for token in self._current().values()
        ]
        return sorted(tokens, key=lambda token: token.name)

    def _current(self) -> dict[str, AccessToken]:
        changes = self._writer.announced.token_changes
        if changes != self._changes_seen:
            self._by_digest = {token.digest.hex: token for token in self._writer.snapshot().tokens.values()}
            self._by_start = {each[:KEY_ID_DIGITS]: each for each in self._by_digest}
            self._changes_seen = changes
        return self._by_digest
