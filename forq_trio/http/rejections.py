"""Counts requests that HTTP itself refuses; the writer counts those that the queue refuses.

The cause follows from the status of the answer, so that no dialect has to know about metrics. That costs a comparison
for each request and a look-up for each error.
"""

from collections.abc import Callable

from forq_trio.http.message import Handler, Request, Response
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.rejections import Cause

_BY_HANDLER = {
    401: Cause.UNAUTHORIZED,
    403: Cause.FORBIDDEN,
    413: Cause.TOO_LARGE,
    429: Cause.THROTTLED,
}
_BY_TRANSPORT = {
    408: Cause.SLOW_REQUEST,
    413: Cause.TOO_LARGE,
    414: Cause.TOO_LARGE,
    431: Cause.TOO_LARGE,
    503: Cause.OVERLOADED,
}


def counting_rejections(handler: Handler, counters: Counters, too_large: Response | None = None) -> Handler:
    """`handler`, with the rejections among its answers counted.

    too_large: the one Response by which a dialect refuses what is too large with another status than 413.
    """

    async def handle(request: Request) -> Response:
        response = await handler(request)
        if response.status >= 400:
            cause = _BY_HANDLER.get(response.status)
            if response is too_large:
                cause = Cause.TOO_LARGE
            if cause is not None:
                counters.record_rejection(cause)
        return response

    return handle


def transport_rejections(counters: Counters) -> Callable[[int], None]:
    """The function that a server calls with the status of every answer that the transport gives by itself."""

    def count(status: int) -> None:
        cause = _BY_TRANSPORT.get(status)
        if cause is not None:
            counters.record_rejection(cause)

    return count
