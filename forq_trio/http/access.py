"""The gates of the API: the server's own secret opens all of them, an access token those its scopes and queues name.

A key comes as `X-API-Key: <key>` or `Authorization: Bearer <key>`. The secret is compared in constant time and needs
nothing else; a token is found by its hash. A wrong key, a revoked token and one whose time is over are the same
failure, and counted (`http.auth`). A token that is good, but not for this, fails with Forbidden, which each dialect
answers in its own words.
"""

from hmac import compare_digest
from urllib.parse import unquote

from forq_trio.broker.tokens import Tokens
from forq_trio.http.auth import Answer, Door
from forq_trio.http.codes import error_response
from forq_trio.http.message import Request, Response
from forq_trio.http.throttle import Throttle
from forq_trio.model.access import Principal, Scope

_QUEUES_PATH = "/api/v1/queues/"


class Access:
    """Makes the gates; they share the secret, the tokens and the count of failures."""

    def __init__(
        self, secret: str, tokens: Tokens, throttle: Throttle, *, trust_proxy_headers: bool = False
    ) -> None:
        self.secret = secret.encode()
        self.tokens = tokens
        self.door = Door(throttle, trust_proxy_headers=trust_proxy_headers)

    def gate(
        self, scope: Scope, *, queue_in_path: bool = True, answer: Answer = error_response
    ) -> "AccessGate":
        """A gate for routes whose path names the queue (`/api/v1/queues/{queue}/...`), or that are about no queue.

        Without a queue in the path ADMIN needs a token for all queues, and other scopes one for any queue: such an
        endpoint looks at `request.principal` before it shows or does something to a queue. queue_in_path False: the
        gate only finds out who it is, and all else is the endpoint's. answer: for a dialect with its own errors.
        """
        return AccessGate(self, scope, queue_in_path, answer)


class AccessGate:
    """Sets `request.principal` and lets pass who may; a `router.Gate`. Raises Forbidden."""

    __slots__ = ("_access", "_answer", "_queue_in_path", "_secret", "_throttle", "scope")

    def __init__(self, access: Access, scope: Scope, queue_in_path: bool, answer: Answer) -> None:
        self.scope = scope
        self._access = access
        self._answer = answer
        self._queue_in_path = queue_in_path
        self._secret = access.secret
        self._throttle = access.door.throttle

    def __call__(self, request: Request) -> Response | None:
        if compare_digest(request.headers.get(b"x-api-key", b""), self._secret):
            if self._throttle:
                self._access.door.admit(request)
            return None
        return self._look_closer(request)

    def _look_closer(self, request: Request) -> Response | None:
        access = self._access
        key = presented_key(request)
        if compare_digest(key, self._secret):
            access.door.admit(request)
            return None
        token = access.tokens.use_token(key.decode("latin-1"))
        if token is None:
            return access.door.turn_away(request, self._answer)
        access.door.admit(request)
        request.principal = Principal(token)
        if self._queue_in_path:
            self._check(request.principal, request.path)
        return None

    def _check(self, principal: Principal, path: str) -> None:
        queue = queue_of(path)
        if queue is not None or self.scope is Scope.ADMIN:
            principal.check(self.scope, queue)
        else:
            principal.check_somewhere(self.scope)


def presented_key(request: Request) -> bytes:
    """What the client shows: X-API-Key, and if that is not there the bearer token; b"" for nothing."""
    key = request.headers.get(b"x-api-key")
    if key is not None:
        return key
    scheme, _, credentials = request.headers.get(b"authorization", b"").partition(b" ")
    return credentials.strip() if scheme.lower() == b"bearer" else b""


def queue_of(path: str) -> str | None:
    """The queue that a path names, decoded as the router does it; None for a path without one."""
    if not path.startswith(_QUEUES_PATH):
        return None
    return unquote(path[len(_QUEUES_PATH) :].partition("/")[0])
