"""Counts requests that HTTP itself refuses. What the queue refuses the writer counts, whichever dialect it was for.

Answers are told apart by their status, so that no dialect has to know about metrics: a comparison for each request, a
look-up for each that went wrong.
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
    """What a server is to call with the status of every answer that it gives by itself."""

    def count(status: int) -> None:
        cause = _BY_TRANSPORT.get(status)
        if cause is not None:
            counters.record_rejection(cause)

    return count
