"""The viewer of a page, with the server's secret or an access token, and what that allows."""

from forq_trio.model.access.types import ALL_QUEUES, AccessToken, Principal, Scope
from forq_trio.model.errors import Forbidden
from forq_trio.model.holders import OWNER, Holder, HolderKind


class Viewer:
    """The person behind a session. token: None with the server's own secret, which may do everything."""

    def __init__(self, session_id: str, digest: str, token: AccessToken | None) -> None:
        self.session_id = session_id
        self.digest = digest
        self.token = token
        self._principal = Principal(token)

    @property
    def name(self) -> str:
        """The token's name, or "secret"."""
        return "secret" if self.token is None else self.token.name

    @property
    def holder(self) -> Holder:
        """The client whose share of the server the viewer uses."""
        return OWNER if self.token is None else Holder(HolderKind.TOKEN, self.token.name)

    @property
    def started_by(self) -> str | None:
        """The name under which tasks are started: the token's, None for the server's secret."""
        return None if self.token is None else self.token.name

    @property
    def role(self) -> str:
        """In one word: admin, operator (may redrive) or read-only."""
        if self.may(Scope.ADMIN):
            return "admin"
        return "operator" if self.token is not None and self.token.allows(Scope.REDRIVE) else "read-only"

    @property
    def sees(self) -> str:
        """Viewers with an equal value see the same on every page."""
        return "" if self.token is None else f"{','.join(self.token.scopes)} {self.token.queues}"

    @property
    def sees_all(self) -> bool:
        """True if no queue is hidden from the viewer."""
        return self.token is None or self.token.queues == ALL_QUEUES

    def may(self, scope: Scope, queue: str | None = None) -> bool:
        """True if the viewer has the scope for this queue; None: for all queues."""
        try:
            self.require(scope, queue)
        except Forbidden:
            return False
        return True

    def require_somewhere(self, *scopes: Scope) -> None:
        """Raise Forbidden unless the viewer has these scopes, for whatever queues."""
        for scope in scopes:
            self._principal.check_somewhere(scope)

    def may_somewhere(self, *scopes: Scope) -> bool:
        """True if the viewer has these scopes, for whatever queues."""
        try:
            self.require_somewhere(*scopes)
        except Forbidden:
            return False
        return True

    def may_see(self, queue: str) -> bool:
        return self._principal.may(Scope.BROWSE, queue)

    def require(self, scope: Scope, queue: str | None = None) -> None:
        """Raise Forbidden unless `may`."""
        self._principal.check(scope, queue)
