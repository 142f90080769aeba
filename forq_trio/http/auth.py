"""The key check of contract F8: `X-API-Key` against one secret in constant time, wrong keys throttled."""

from hmac import compare_digest
from math import ceil

from forq_trio.http.codes import TOO_MANY_REQUESTS, UNAUTHORIZED, error_body, error_response
from forq_trio.http.message import Request, Response
from forq_trio.http.throttle import Throttle
from forq_trio.log import LogEvent, log

CLIENT_LENGTH_MAX = 64


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


class ApiKeyGate:
    """Lets requests with the right key pass, always, and forgets their address's failures; a `router.Gate`.

    Others are answered 401 `unauthorized`, or while their address is locked out 429 `too_many_requests` with
    Retry-After in seconds.
    """

    def __init__(self, secret: str, throttle: Throttle, *, trust_proxy_headers: bool = False) -> None:
        self._secret = secret.encode()
        self._throttle = throttle
        self._trust_proxy_headers = trust_proxy_headers

    def __call__(self, request: Request) -> Response | None:
        throttle = self._throttle
        if compare_digest(request.headers.get(b"x-api-key", b""), self._secret):
            if throttle:
                throttle.succeeded(client_address(request, trust_proxy_headers=self._trust_proxy_headers))
            return None
        client = client_address(request, trust_proxy_headers=self._trust_proxy_headers)
        locked_seconds = throttle.locked_seconds(client)
        if locked_seconds:
            retry_after = ((b"retry-after", b"%d" % ceil(locked_seconds)),)
            return Response(429, error_body(TOO_MANY_REQUESTS), headers=retry_after)
        throttle.failed(client)
        if throttle.locked_seconds(client):
            log(LogEvent.AUTH_THROTTLED, client=client)
        return error_response(UNAUTHORIZED)
