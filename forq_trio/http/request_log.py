"""Logs every answered request of every dialect and transport at debug level, as one event: `request.answered`.

Duration includes the wait of a long poll. A request whose client disconnected is not answered, and not logged.
"""

import time
from collections.abc import Mapping

from forq_trio.http.message import Admit, Handler, Request, Response
from forq_trio.http.transport.config import Refuse
from forq_trio.telemetry.log import LogEvent, log


def logging_requests(handler: Handler) -> Handler:
    """`handler`, with the requests that it answers logged. If it raises, the transport answers and logs."""

    async def handle(request: Request) -> Response:
        started = time.perf_counter()
        response = await handler(request)
        _log_answer(request, response, round((time.perf_counter() - started) * 1_000, 3))
        return response

    return handle


def logging_refused_heads(admit: Admit) -> Admit:
    """`admit`, with its refusals logged."""

    def admit_and_log(request: Request) -> Response | None:
        refused = admit(request)
        if refused is not None:
            _log_answer(request, refused, 0.0)
        return refused

    return admit_and_log


def logging_refusals(refuse: Refuse) -> Refuse:
    """`refuse`, with the answers that it makes for the transport logged."""

    def refuse_and_log(status: int, method: str, path: str, headers: Mapping[bytes, bytes]) -> Response:
        log(LogEvent.REQUEST_ANSWERED, method=method, path=path, status=status)
        return refuse(status, method, path, headers)

    return refuse_and_log


def _log_answer(request: Request, response: Response, duration_ms: float) -> None:
    log(
        LogEvent.REQUEST_ANSWERED,
        method=request.method,
        path=request.path,
        client=request.client,
        status=response.status,
        duration_ms=duration_ms,
    )
