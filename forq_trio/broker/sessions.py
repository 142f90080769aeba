"""Opens sessions of the admin UI at a login, finds them by the browser's cookie, and ends them. `Broker.sessions`.

The id of a session leaves this module once, as the result of `open`. Only its hash is stored. A session ends
SESSION_LIFE_MS after its login, or earlier with the access token of that login: once the token is revoked or has
expired, the session is unknown.
"""

from contextlib import suppress
from math import inf

import trio
from msgspec.structs import replace

from forq_trio.broker.uses import Uses
from forq_trio.model import limits
from forq_trio.model.access.sessions import UiSession, new_session
from forq_trio.model.access.types import digest
from forq_trio.model.clock import Clock
from forq_trio.model.commands import EndSessions, NoteSessionUse, Ping, SaveSession
from forq_trio.model.errors import ServiceError
from forq_trio.writer_actor import WriterActor


class Sessions:
    """The sessions as of the last commit. Cancellation is that of `Broker`; errors are the ServiceErrors."""

    shared = False  # whether other servers on the same database open sessions, too

    def __init__(self, writer: WriterActor, clock: Clock) -> None:
        self._writer = writer
        self._looked_at = -inf  # for sessions of other servers (trio's clock)
        self._clock = clock
        self.uses = Uses(
            writer, NoteSessionUse, lambda: {each: each for each in self._writer.snapshot().sessions}
        )

    async def open(self, key_name: str | None, key_digest: str, client: str, agent: str) -> str:
        """Open a session for a login with a key; returns its id, which is nowhere else.

        key_name: the name of the access token, None for the server's secret. key_digest: the key's hash. If there are
        SESSIONS_A_KEY_MAX with this key, or SESSIONS_MAX in all, the one that was used longest ago ends.
        """
        of_key = [each.digest for each in self.all() if each.key_digest == key_digest]
        too_many = tuple(of_key[limits.SESSIONS_A_KEY_MAX - 1 :])
        if too_many:
            await self._writer.execute(EndSessions(too_many))
        session_id, session = new_session(key_name, key_digest, client, agent, self._clock.now_ms())
        await self.uses.save()
        await self._writer.execute(SaveSession(session))
        return session_id

    def use(self, session_id: str) -> UiSession | None:
        """The session with this id, noted as used now; None if there is none or it has ended."""
        session = self._writer.snapshot().sessions.get(digest(session_id))
        if session is None or self._is_over(session):
            return None
        self.uses.at[session.digest] = self._clock.now_ms()
        return session

    async def look_elsewhere(self) -> None:
        """Learn of sessions that other servers have just opened: call it for an id that `use` does not know.

        A browser may send its next request to another server before that has heard of the login. Unknown ids cost at
        most one batch in SESSION_LOOK_SECONDS.
        """
        if self.shared and trio.current_time() - self._looked_at >= limits.SESSION_LOOK_SECONDS:
            self._looked_at = trio.current_time()
            with suppress(ServiceError):  # without an answer the session is unknown
                await self._writer.execute(Ping())

    def all(self) -> list[UiSession]:
        """The open sessions, each with its latest use, even if that is not saved yet; the latest used first."""
        sessions = [
            replace(session, last_used_at=max(session.last_used_at, self.uses.at.get(session.digest, 0)))
            for session in self._writer.snapshot().sessions.values()
            if not self._is_over(session)
        ]
        return sorted(sessions, key=lambda session: (-session.last_used_at, session.digest))

    async def end(self, session_digest: str) -> bool:
        """End a session, with effect from the commit on; False if there is none with this digest."""
        ended = await self._writer.execute(EndSessions((session_digest,)))
        return ended > 0

    async def end_all(self) -> int:
        """End all sessions; returns how many there were."""
        return await self._writer.execute(EndSessions(None))

    def _is_over(self, session: UiSession) -> bool:
        now_ms = self._clock.now_ms()
        if session.key_name is None or session.expired(now_ms):
            return session.expired(now_ms)
        token = self._writer.snapshot().tokens.get(session.key_name)
        return token is None or token.digest.hex != session.key_digest or token.expired(now_ms)
