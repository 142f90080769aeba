"""Workers that make themselves known. Our additions to Forq's API.

No path of a worker names its queues: a report is checked for each of them, and a list has those that the key covers.
"""

from functools import partial

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling, with_key
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors, limits
from forq_trio.model.workers import endpoints as api
from forq_trio.model.workers.bodies import WorkerState
from forq_trio.model.workers.withdrawn import WithdrawnRequest

_read_state = BodyReader(WorkerState)
_read_withdrawn = BodyReader(WithdrawnRequest)


class WorkerEndpoints:
    """What workers say of themselves."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._reading = trio.Lock()  # one report at a time: a large one takes milliseconds of the loop

    async def report(self, request: Request, worker_id: str) -> Response:
        """Take the report of a worker."""
        if len(request.body) > limits.WORKER_REPORT_BYTES_MAX:
            most = limits.WORKER_REPORT_BYTES_MAX
            raise Refused(errors.ContentTooLarge, f"a report has at most {most} bytes", status=413)
        async with self._reading:
            report = _read_state(request.body).report(worker_id)
            await self._broker.report_worker(report, key=request.principal.key)
        return NO_CONTENT

    async def withdrawn(self, request: Request) -> Response:
        """Wait for messages that were removed while a consumer had them; a disconnect ends the wait."""
        wanted = _read_withdrawn(request.body)
        ask = partial(self._broker.withdrawn, wanted.queues, wanted.after, key=request.principal.key)
        found = await ask(wait_ms=0)
        if not found.messages and wanted.wait_ms:
            async with request.cancelled_on_disconnect():
                found = await ask(wait_ms=wanted.wait_ms)
        return json_response(found)


def worker_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of workers. route: makes one of an endpoint and its function."""
    workers = WorkerEndpoints(broker)
    return [
        calling(route, api.LIST_WORKERS, broker.workers, wraps=True, about_caller=with_key),
        route(api.REPORT_WORKER, workers.report),
        calling(route, api.FORGET_WORKER, broker.forget_worker, about_caller=with_key),
        route(api.LIST_WITHDRAWN, workers.withdrawn),
    ]
