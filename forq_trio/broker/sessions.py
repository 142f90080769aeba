"""Sessions of the admin UI: opened by a login, found by what the browser's cookie says, ended. A part of `Broker`.

The id of a session leaves this module once, as the result of `open_session`. Only its hash is stored. A session ends
SESSION_LIFE_MS after its login, and with the access token that was shown then: once that is revoked or has expired, the
session is unknown.

Uses are noted in memory, and stored by a job and when the system stops, so that requests do not write.
"""

from msgspec.structs import replace

from forq_trio.broker.base import BrokerBase
from forq_trio.model import limits
from forq_trio.model.access import digest
from forq_trio.model.clock import Clock
from forq_trio.model.commands import EndSessions, NoteSessionUse, SaveSession
from forq_trio.model.sessions import UiSession, new_session
from forq_trio.writer_actor import WriterActor


class KnownSessions:
    """The sessions as of the last commit, and the uses that are not saved yet."""

    def __init__(self, writer: WriterActor, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._used_at: dict[str, int] = {}

    def use(self, session_id: str) -> UiSession | None:
        """The session of this id, noted as used now; None if there is none, or it is over."""
        session = self._writer.snapshot().sessions.get(digest(session_id))
        if session is None or self._is_over(session):
            return None
        self._used_at[session.digest] = self._clock.now_ms()
        return session

    def all(self) -> list[UiSession]:
        """The sessions that are not over, each with its latest use, saved or not; the latest used first."""
        sessions = [
            replace(session, last_used_at=max(session.last_used_at, self._used_at.get(session.digest, 0)))
            for session in self._writer.snapshot().sessions.values()
            if not self._is_over(session)
        ]
        return sorted(sessions, key=lambda session: (-session.last_used_at, session.digest))

    def unsaved_uses(self) -> dict[str, int]:
        """The uses that are not saved yet, of sessions that have not ended: epoch ms by digest."""
        sessions = self._writer.snapshot().sessions
        self._used_at = {each: used_at for each, used_at in self._used_at.items() if each in sessions}
        return self._used_at.copy()

    def saved(self, uses: dict[str, int]) -> None:
        """Forget these uses: they are saved."""
        self._used_at = {each: at for each, at in self._used_at.items() if at != uses.get(each)}

    def _is_over(self, session: UiSession) -> bool:
        now_ms = self._clock.now_ms()
        if session.key_name is None or session.expired(now_ms):
            return session.expired(now_ms)
        token = self._writer.snapshot().tokens.get(session.key_name)
        return token is None or token.digest.hex != session.key_digest or token.expired(now_ms)


class Sessions(BrokerBase):
    """Cancellation is that of `Broker`; errors are the ServiceErrors."""

    _known_sessions: KnownSessions

    async def open_session(self, key_name: str | None, key_digest: str, client: str, agent: str) -> str:
        """Open a session for somebody who has shown a key; returns its id, which only the result has.

        key_name: the name of the access token, None for the server's secret; key_digest: the key's hash. Where there
        are SESSIONS_A_KEY_MAX with this key, or SESSIONS_MAX in all, the one that was used longest ago ends.
        """
        of_key = [each.digest for each in self._known_sessions.all() if each.key_digest == key_digest]
        too_many = tuple(of_key[limits.SESSIONS_A_KEY_MAX - 1 :])
        if too_many:
            await self._writer.execute(EndSessions(too_many))
        session_id, session = new_session(key_name, key_digest, client, agent, self._clock.now_ms())
        await self._save_session_uses()
        await self._writer.execute(SaveSession(session))
        return session_id

    def session_of(self, session_id: str) -> UiSession | None:
        """The session of this id; None if there is none, it was ended or is over.

        Does not wait. The use is noted in memory and stored within TOKEN_USE_SAVE_SECONDS.
        """
        return self._known_sessions.use(session_id)

    def ui_sessions(self) -> list[UiSession]:
        """The sessions that are not over, the latest used first; from the cache."""
        return self._known_sessions.all()

    async def end_session(self, session_digest: str) -> bool:
        """End a session, with effect from the commit; False if there is none of this digest."""
        ended = await self._writer.execute(EndSessions((session_digest,)))
        return ended > 0

    async def end_sessions(self) -> int:
        """End all sessions; returns how many there were."""
        return await self._writer.execute(EndSessions(None))

    async def _save_session_uses(self) -> int:
        """Store when sessions were last used, and return of how many; sends no command if none was."""
        uses = self._known_sessions.unsaved_uses()
        if uses:
            await self._writer.execute(NoteSessionUse(uses))
            self._known_sessions.saved(uses)
        return len(uses)

    def _post_session_uses(self) -> None:
        """The same without waiting, for the moment before the writer stops."""
        uses = self._known_sessions.unsaved_uses()
        if uses:
            self._writer.post(NoteSessionUse(uses))
