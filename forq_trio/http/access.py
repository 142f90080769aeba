"""Authentication and authorization: gates that check the key of a request, each for some routes.

A key comes as `X-API-Key: <key>` or `Authorization: Bearer <key>`. The server's own secret passes every gate, an access
token those of its scopes and queues. The secret is compared in constant time; a token is found by its hash. A wrong key
and the text of a revoked or expired token are the same failure. Failures are counted by client address, and too many of
them lock the address out.

A gate refuses a request by raising Unauthorized, LockedOut or Forbidden.
"""

from hmac import compare_digest
from ipaddress import ip_address
from typing import NoReturn
from urllib.parse import unquote

from forq_trio.broker.access_tokens import AccessTokens
from forq_trio.http.errors import ForeignSite, LockedOut, Unauthorized
from forq_trio.http.message import Request
from forq_trio.http.throttle import Throttle
from forq_trio.model.access.types import AccessToken, Principal, Scope
from forq_trio.model.holders import OWNER, Holder, HolderKind, network
from forq_trio.telemetry.log import LogEvent, log

CLIENT_LENGTH_MAX = 64
QUEUE_SEGMENT = "{queue}"


class KeyFailures:
    """Counts wrong keys by client address."""

    __slots__ = ("_trust_proxy_headers", "throttle")

    def __init__(self, throttle: Throttle, *, trust_proxy_headers: bool = False) -> None:
        self.throttle = throttle
        self._trust_proxy_headers = trust_proxy_headers

    def forget(self, request: Request) -> None:
        """Forget the failures of the client's address, because a key of it was right."""
        if self.throttle:
            self.throttle.succeeded(self.address(request))

    def refuse(self, request: Request) -> NoReturn:
        """Count a wrong or missing key; raises Unauthorized, or LockedOut while the address is locked out."""
        client = self.address(request)
        locked_seconds = self.throttle.locked_seconds(client)
        if locked_seconds:
            raise LockedOut(locked_seconds)
        if self.throttle.failed(client):
            log(LogEvent.AUTH_THROTTLED, client=client)
        raise Unauthorized

    def address(self, request: Request) -> str:
        """The address of the client."""
        return client_address(request, trust_proxy_headers=self._trust_proxy_headers)


class ApiKeyGate:
    """A `router.Gate` that passes requests with one secret, as `X-API-Key` or as bearer token, and no access token."""

    scope = None

    def __init__(self, secret: str, throttle: Throttle, *, trust_proxy_headers: bool = False) -> None:
        self._secret = secret.encode()
        self._failures = KeyFailures(throttle, trust_proxy_headers=trust_proxy_headers)

    def __call__(self, request: Request) -> None:
        if not compare_digest(presented_key(request), self._secret):
            self._failures.refuse(request)
        request.holder = OWNER
        self._failures.forget(request)


class LocalGate:
    """Lets all clients on this machine pass except web pages; a `router.Gate` for routes without a key.

    Any web page can make its reader's browser send requests to this machine. The browser then names the page's site in
    the header Origin. If the site's own name resolves to this machine (DNS rebinding), the header Host has that name.
    """

    scope = None

    def __call__(self, request: Request) -> None:
        origin = request.headers.get(b"origin")
        if origin is not None and not _is_local(origin.partition(b"://")[2]):
            raise ForeignSite
        if not _is_local(request.headers.get(b"host", b"localhost")):
            raise ForeignSite
        request.holder = Holder(HolderKind.OPEN, request.holder.name)


def _is_local(authority: bytes) -> bool:
    """Whether the host in `authority` (host and port) means this machine alone."""
    host = (
        authority.partition(b"]")[0].lstrip(b"[")
        if authority.startswith(b"[")
        else authority.partition(b":")[0]
    )
    if host.lower() == b"localhost":
        return True
    try:
        return ip_address(host.decode("latin-1")).is_loopback
    except ValueError:
        return False


def name_key(request: Request, key_id: str) -> None:
    """Have a request that names its key before it is checked use a share of its address and this key.

    Who knows only the id of a key, as everybody does that of the secret, uses up nothing of other keys.
    """
    request.holder = Holder(HolderKind.ADDRESS, f"{request.holder.name} {key_id}")


def give_rights(request: Request, token: AccessToken | None, address: str) -> None:
    """Give a request the rights of a token, or of the server's secret (None). address: of the client."""
    if token is None:
        request.holder, request.caller = OWNER, address
        return
    request.holder, request.caller = Holder(HolderKind.TOKEN, token.name), f"token {token.name}"
    request.principal = Principal(token)


class Access:
    """Makes the gates of the API; they share the secret, the tokens and the count of failures."""

    def __init__(
        self, secret: str, keys: AccessTokens, throttle: Throttle, *, trust_proxy_headers: bool = False
    ) -> None:
        self.secret = secret.encode()
        self.keys = keys
        self.failures = KeyFailures(throttle, trust_proxy_headers=trust_proxy_headers)

    def gate(self, scope: Scope, path: str | None) -> "AccessGate":
        """The gate of a route for which a token needs `scope`.

        path: the route's. If it has a segment {queue}, the token has to cover that queue. If not, ADMIN needs a token
        for all queues, and other scopes one for any queue: such an endpoint checks `request.principal` before it shows
        or changes a queue. None: the gate only sets `request.principal`, and the endpoint does all checks.
        """
        return AccessGate(self, scope, path)


class AccessGate:
    """A `router.Gate` that sets `request.principal` and checks its rights."""

    __slots__ = ("_access", "_checks_scope", "_queue_place", "_secret", "_throttle", "scope")

    def __init__(self, access: Access, scope: Scope, path: str | None) -> None:
        segments = (path or "").split("/")
        self.scope = scope
        self._access = access
        self._checks_scope = path is not None
        self._queue_place = segments.index(QUEUE_SEGMENT) if QUEUE_SEGMENT in segments else None
        self._secret = access.secret
        self._throttle = access.failures.throttle

    def __call__(self, request: Request) -> None:
        if compare_digest(request.headers.get(b"x-api-key", b""), self._secret):
            request.holder = OWNER
            if self._throttle:
                self._access.failures.forget(request)
            request.caller = self._access.failures.address(request)
            return
        self._check_key(request)

    def _check_key(self, request: Request) -> None:
        access = self._access
        key = presented_key(request)
        token = None
        if not compare_digest(key, self._secret):
            token = access.keys.use(key.decode("latin-1"))
            if token is None:
                access.failures.refuse(request)
        access.failures.forget(request)
        give_rights(request, token, access.failures.address(request))
        if token is not None and self._checks_scope:
            self._check(request.principal, request.path)

    def _check(self, principal: Principal, path: str) -> None:
        if self._queue_place is not None:
            principal.check(self.scope, unquote(path.split("/")[self._queue_place]))
        elif self.scope is Scope.ADMIN:
            principal.check(self.scope)
        else:
            principal.check_somewhere(self.scope)


def client_address(request: Request, *, trust_proxy_headers: bool) -> str:
    """The network for which failures are counted: the peer's, or behind a trusted proxy the last in X-Forwarded-For.

    The proxy wrote the last entry; the client may have invented the earlier ones.
    """
    if trust_proxy_headers:
        forwarded = request.headers.get(b"x-forwarded-for", b"")
        last = forwarded[forwarded.rfind(b",") + 1 :].strip()
        if last:
            return network(last[:CLIENT_LENGTH_MAX].decode("latin-1"))
    return network(request.client)


def presented_key(request: Request) -> bytes:
    """The key of a request: X-API-Key, else the bearer token, else b""."""
    key = request.headers.get(b"x-api-key")
    if key is not None:
        return key
    scheme, _, credentials = request.headers.get(b"authorization", b"").partition(b" ")
    return credentials.strip() if scheme.lower() == b"bearer" else b""
