"""Counts requests that HTTP itself refuses; the writer counts those that the queue refuses.

The cause follows from the status of the answer, so that no dialect has to know about metrics. That costs a comparison
for each request and a look-up for each error.
"""

from collections.abc import Mapping

from forq_trio.http.message import Admit, Handler, Request, Response
from forq_trio.http.transport.config import Refuse
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.rejections import Cause

_BY_HANDLER = {401: Cause.UNAUTHORIZED, 403: Cause.FORBIDDEN, 413: Cause.TOO_LARGE, 429: Cause.THROTTLED}
_BY_TRANSPORT = {
    408: Cause.SLOW_REQUEST,
    413: Cause.TOO_LARGE,
    414: Cause.TOO_LARGE,
    431: Cause.TOO_LARGE,
    503: Cause.OVERLOADED,
}


def counting_rejections(handler: Handler, counters: Counters, too_large: bytes | None = None) -> Handler:
    """`handler`, with the rejections among its answers counted.

    too_large: the beginning of the bodies with which a dialect says "too large" under another status than 413.
    """

    async def handle(request: Request) -> Response:
        response = await handler(request)
        if response.status >= 400:
            cause = _BY_HANDLER.get(response.status)
            if too_large is not None and response.body.startswith(too_large):
                cause = Cause.TOO_LARGE
            if cause is not None:
                counters.record_rejection(cause)
        return response

    return handle


def counting_refused_heads(admit: Admit, counters: Counters) -> Admit:
    """`admit`, with the rejections among its answers counted."""

    def admit_and_count(request: Request) -> Response | None:
        refused = admit(request)
        if refused is not None and (cause := _BY_HANDLER.get(refused.status)) is not None:
            counters.record_rejection(cause)
        return refused

    return admit_and_count


def counting_refusals(refuse: Refuse, counters: Counters) -> Refuse:
    """`refuse`, with the rejections among the answers of the transport counted."""

    def refuse_and_count(status: int, method: str, path: str, headers: Mapping[bytes, bytes]) -> Response:
        cause = _BY_TRANSPORT.get(status)
        if cause is not None:
            counters.record_rejection(cause)
        return refuse(status, method, path, headers)

    return refuse_and_count
