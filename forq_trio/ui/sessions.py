"""Sessions: a login with the secret or an access token sets a cookie, which identifies the viewer of each request.

The cookie has 256 random bits; the database has their digest, with the digest of the key that opened the session. So a
session ends when its token is revoked or expires, when the server's secret changes, when the session is revoked, and
after seven days. It survives a restart.
"""

from hmac import compare_digest

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.access.types import Scope, digest
from forq_trio.model.errors import Forbidden
from forq_trio.ui.one_time_link import OneTimeLink
from forq_trio.ui.viewer import Viewer

COOKIE = "ForqSession"


def session_id(cookies: bytes) -> str:
    """The session's id in the Cookie headers of a request, "" without one."""
    for cookie in cookies.split(b";"):
        name, _, value = cookie.strip().partition(b"=")
        if name == COOKIE.encode():
            return value.decode("latin-1")
    return ""


class UiSessions:
    """Opens, finds and ends sessions. link: one that opens a session of the secret, None for none."""

    def __init__(self, broker: Broker, secret: str, link: OneTimeLink | None = None) -> None:
        self.link = link
        self._broker = broker
        self._secret = secret.encode()
        self._secret_digest = digest(secret)

    async def open(self, key: str, client: str, agent: str) -> str | None:
        """The id of a new session with this key; None for a wrong key.

        Raises Forbidden for a token that may not browse.

        Cancelled, the session may be stored without anybody knowing its id.
        """
        if compare_digest(key.encode(), self._secret):
            return await self._broker.sessions.open(None, self._secret_digest, client, agent)
        token = self._broker.keys.use(key)
        if token is None:
            return None
        if not token.allows(Scope.BROWSE):
            raise Forbidden("This token may not browse; logging in takes the scope browse.")
        return await self._broker.sessions.open(token.name, token.digest.hex, client, agent)

    async def open_by_link(self, token: str, client: str, agent: str) -> str | None:
        """The id of a new session with the token of the link; None if it is wrong, too old or was used.

        Cancelled, or with the database away, the link is used up and no session known.
        """
        if self.link is None or not self.link.use(token):
            return None
        return await self._broker.sessions.open(None, self._secret_digest, client, agent)

    def find(self, session_id: str) -> Viewer | None:
        """The viewer of a valid session; None if it is invalid or has ended. Does not wait."""
        if not session_id or len(session_id) > limits.SESSION_ID_LENGTH_MAX:
            return None
        session = self._broker.sessions.use(session_id)
        if session is None:
            return None
        if session.key_name is None:
            valid = compare_digest(session.key_digest, self._secret_digest)
            return Viewer(session_id, session.digest, None) if valid else None
        token = self._broker.keys.by_digest(session.key_digest)
        if token is None or not token.allows(Scope.BROWSE):
            return None
        return Viewer(session_id, session.digest, token)

    async def find_elsewhere(self, session_id: str) -> Viewer | None:
        """`find` for a session that another server may have just opened."""
        if session_id:
            await self._broker.sessions.look_elsewhere()
        return self.find(session_id)

    def holds(self, session_id: str) -> bool:
        """True while `find` would find a viewer."""
        return self.find(session_id) is not None

    async def end(self, viewer: Viewer) -> None:
        """Log out."""
        await self._broker.sessions.end(viewer.digest)
