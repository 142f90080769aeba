"""GET /stats: the answers of each endpoint by status, since the server started."""

import time
from collections.abc import Callable, Iterable

from forq_trio.http.message import Request, Response
from forq_trio.http.sasquatch_api.page import EndpointRow, render
from forq_trio.model.access.types import Scope
from forq_trio.model.clock import Clock


class RequestCounts:
    """Answers by endpoint and status. endpoints: those to list, in this order, e.g. "POST /send".

    monotonic: a clock in seconds that never goes back; the uptime counts from the construction.
    """

    def __init__(
        self, endpoints: Iterable[str], clock: Clock, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._answers: dict[str, dict[int, int]] = {endpoint: {} for endpoint in endpoints}
        self._monotonic = monotonic
        self._started = monotonic()
        self._started_at_ms = clock.now_ms()

    def record(self, endpoint: str, status: int) -> None:
        """Count one answer."""
        answers = self._answers[endpoint]
        answers[status] = answers.get(status, 0) + 1

    async def page(self, request: Request) -> Response:
        """The counters as one HTML document."""
        request.principal.check(Scope.BROWSE)
        rows = [EndpointRow(endpoint, dict(sorted(by.items()))) for endpoint, by in self._answers.items()]
        html = render(rows, self._monotonic() - self._started, self._started_at_ms)
        headers = ((b"cache-control", b"no-store"),)
        return Response(200, html.encode(), b"text/html; charset=utf-8", headers)
