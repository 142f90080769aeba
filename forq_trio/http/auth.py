"""Keys at the door (contract F8): who shows a wrong one is turned away, and after five of them locked out.

`ApiKeyGate` knows one secret. The API's gates, which know access tokens too, are in `http.access`.
"""

from collections.abc import Callable
from hmac import compare_digest
from math import ceil

from forq_trio.http.codes import TOO_MANY_REQUESTS, UNAUTHORIZED, error_response
from forq_trio.http.message import Request, Response
from forq_trio.http.throttle import Throttle
from forq_trio.telemetry.log import LogEvent, log

CLIENT_LENGTH_MAX = 64

Answer = Callable[[str], Response]
"""Makes a dialect's answer of one of the codes UNAUTHORIZED and TOO_MANY_REQUESTS."""


def client_address(request: Request, *, trust_proxy_headers: bool) -> str:
    """The address failures count for: the peer's, or behind a trusted proxy the last in X-Forwarded-For.

    The last entry is the one our own proxy wrote; those before it are whatever the client claims.
    """
    if trust_proxy_headers:
        forwarded = request.headers.get(b"x-forwarded-for", b"")
        last = forwarded[forwarded.rfind(b",") + 1 :].strip()
        if last:
            return last[:CLIENT_LENGTH_MAX].decode("latin-1")
    return request.client


class Door:
    """What follows from the look at a key, right or wrong, for the address it came from."""

    __slots__ = ("_trust_proxy_headers", "throttle")

    def __init__(self, throttle: Throttle, *, trust_proxy_headers: bool = False) -> None:
        self.throttle = throttle
        self._trust_proxy_headers = trust_proxy_headers

    def admit(self, request: Request) -> None:
        """The key was right: forget the failures of its address."""
        if self.throttle:
            self.throttle.succeeded(self._address(request))

    def turn_away(self, request: Request, answer: Answer = error_response) -> Response:
        """The key was wrong, or there was none: 401 `unauthorized`.

        429 `too_many_requests` with Retry-After in seconds while the address is locked out.
        """
        client = self._address(request)
        locked_seconds = self.throttle.locked_seconds(client)
        if locked_seconds:
            locked = answer(TOO_MANY_REQUESTS)
            retry_after = (b"retry-after", b"%d" % ceil(locked_seconds))
            return Response(locked.status, locked.body, locked.content_type, (*locked.headers, retry_after))
        self.throttle.failed(client)
        if self.throttle.locked_seconds(client):
            log(LogEvent.AUTH_THROTTLED, client=client)
        return answer(UNAUTHORIZED)

    def _address(self, request: Request) -> str:
        return client_address(request, trust_proxy_headers=self._trust_proxy_headers)


class ApiKeyGate:
    """Lets requests with the right `X-API-Key` pass, compared in constant time; a `router.Gate`."""

    scope = None

    def __init__(self, secret: str, throttle: Throttle, *, trust_proxy_headers: bool = False) -> None:
        self._secret = secret.encode()
        self._door = Door(throttle, trust_proxy_headers=trust_proxy_headers)

    def __call__(self, request: Request) -> Response | None:
        if not compare_digest(request.headers.get(b"x-api-key", b""), self._secret):
            return self._door.turn_away(request)
        self._door.admit(request)
        return None
